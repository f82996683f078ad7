//! `--socket`: the lines that a Unix stream socket sends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::stream::{Attempt, Read, Stream, connect};
use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::filter::{Filter, Verdict};
use crate::intake::Intake;
use crate::json;
use crate::split::Piece;

/// How often a server whose queue is full is tried again: the kernel gives no notice of a place.
const RETRY: Duration = Duration::from_millis(20);

/// A socket to be read from.
pub struct Socket {
    path: PathBuf,
    to_send: Vec<u8>,
    talk: Talk,
    max_line: usize,
    stream: Option<Stream>,
    retry: Option<Instant>,
}

/// How far the talk with the server is.
enum Talk {
    /// There are no rules to it: every line may be an event.
    Lines,
    /// A line that matches this must come before anything counts.
    Ack(Filter),
    /// That line has come.
    Acked,
}

impl Talk {
    /// Whether no acknowledgement is waited for, or not any more.
    fn is_armed(&self) -> bool {
        !matches!(self, Talk::Ack(_))
    }
}

impl Socket {
    /// The socket at `path`, to which each of `send` is sent as a line.
    pub fn new(path: PathBuf, send: &[String], ack: Option<Filter>, max_line: usize) -> Socket {
        let to_send = send.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        Socket {
            path,
            to_send: to_send.flatten().copied().collect(),
            talk: ack.map_or(Talk::Lines, Talk::Ack),
            max_line,
            stream: None,
            retry: None,
        }
    }

    fn connect(&mut self) -> Result<(), Turn> {
        let cannot = |why: &dyn std::fmt::Display| {
            let why = format!("cannot connect to {}: {why}", self.path.display());
            Turn::failed(End::Unavailable, why)
        };
        match connect(&self.path).map_err(|error| cannot(&error))? {
            Attempt::Connected(socket) => {
                let to_send = std::mem::take(&mut self.to_send);
                self.stream = Some(Stream::new(socket, to_send, self.max_line));
                self.retry = None;
                Ok(())
            }
            Attempt::Full => {
                self.retry = Some(Instant::now() + RETRY);
                Err(Turn::Idle)
            }
            Attempt::Refused(errno) => Err(cannot(&errno)),
        }
    }
}

impl Source for Socket {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        if self.stream.is_none()
            && let Err(turn) = self.connect()
        {
            return turn;
        }
        let Some(stream) = &mut self.stream else {
            return Turn::Idle;
        };
        let sent = stream.send();
        if sent == Ok(true) && self.talk.is_armed() {
            intake.armed();
        }
        let read = stream.read();
        while let Some(piece) = stream.lines.next_piece() {
            match take(&piece, &mut self.talk, intake) {
                Ok(true) => {}
                Ok(false) => return Turn::Idle,
                Err(why) => return Turn::failed(End::SourceError, why),
            }
        }
        match read {
            Read::Some => Turn::More,
            Read::Nothing => Turn::Idle,
            Read::End => {
                if let Some(piece) = stream.lines.rest()
                    && let Err(why) = take(&piece, &mut self.talk, intake)
                {
                    return Turn::failed(End::SourceError, why);
                }
                match (&self.talk, sent) {
                    (Talk::Ack(_), _) => Turn::failed(
                        End::NoAck,
                        "the server closed the connection without an acknowledgement",
                    ),
                    (_, Ok(true)) => Turn::done(End::Closed),
                    (_, _) => {
                        Turn::failed(End::Unavailable, "the server did not take what was sent")
                    }
                }
            }
        }
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        if let Some(stream) = &self.stream {
            stream.wakers(wakers);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.retry
    }

    fn is_looking(&self) -> bool {
        self.stream.is_none() || !self.talk.is_armed()
    }

    fn at_deadline(&self) -> End {
        match (&self.stream, &self.talk) {
            (None, _) => End::Unavailable,
            (Some(_), Talk::Ack(_)) => End::NoAck,
            (Some(_), Talk::Lines | Talk::Acked) => End::Deadline,
        }
    }
}

/// Takes a line of the server. Before the acknowledgement none counts; an error instead of it, or
/// one that comes later and was not asked for, ends the wait.
fn take(piece: &Piece<'_>, talk: &mut Talk, intake: &mut Intake) -> Result<bool, String> {
    let bytes = match piece {
        Piece::Line { bytes, .. } => bytes,
        Piece::TooLong => return Ok(intake.piece(piece, 0)),
    };
    let ack = match talk {
        Talk::Lines => return Ok(intake.piece(piece, 0)),
        Talk::Acked => {
            return match error_in(bytes).filter(|error| error.starts_with('{')) {
                Some(error) if !intake.asks_for(bytes) => {
                    intake.skipped(true);
                    Err(format!("the server sent an error: {error}"))
                }
                _ => Ok(intake.piece(piece, 0)),
            };
        }
        Talk::Ack(ack) => ack,
    };
    match ack.judge(bytes) {
        Verdict::Match => {
            intake.skipped(true);
            *talk = Talk::Acked;
            intake.armed();
            Ok(true)
        }
        Verdict::NotJson => {
            intake.skipped(false);
            Ok(true)
        }
        Verdict::Other => {
            intake.skipped(true);
            let answered = |error| format!("the server answered with an error: {error}");
            error_in(bytes).map_or(Ok(true), |error| Err(answered(error)))
        }
    }
}

/// What a line has as its error, in the form of JSON-RPC.
fn error_in(line: &[u8]) -> Option<String> {
    // Most lines speak of none, and need not be read.
    memchr::memmem::find(line, b"error")?;
    let path = json::Path::new("error");
    let text = String::from_utf8_lossy(line);
    let wanted = json::Wanted::new([&path]);
    let error = wanted.look(&text)?.get(&path)?.to_owned();
    (error != "null").then_some(error)
}
