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
    /// What must come before anything counts.
    ack: Option<Filter>,
    max_line: usize,
    stream: Option<Stream>,
    retry: Option<Instant>,
}

impl Socket {
    /// The socket at `path`, to which each of `send` is sent as a line.
    pub fn new(path: PathBuf, send: &[String], ack: Option<Filter>, max_line: usize) -> Socket {
        let to_send = send.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        Socket {
            path,
            to_send: to_send.flatten().copied().collect(),
            ack,
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
        if sent == Ok(true) && self.ack.is_none() {
            intake.armed();
        }
        let read = stream.read();
        while let Some(piece) = stream.lines.next_piece() {
            match take(&piece, &mut self.ack, intake) {
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
                    && let Err(why) = take(&piece, &mut self.ack, intake)
                {
                    return Turn::failed(End::SourceError, why);
                }
                match (&self.ack, sent) {
                    (Some(_), _) => Turn::failed(
                        End::NoAck,
                        "the server closed the connection without an acknowledgement",
                    ),
                    (None, Ok(true)) => Turn::done(End::Closed),
                    (None, _) => {
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
        self.stream.is_none() || self.ack.is_some()
    }

    fn at_deadline(&self) -> End {
        match (&self.stream, &self.ack) {
            (None, _) => End::Unavailable,
            (Some(_), Some(_)) => End::NoAck,
            (Some(_), None) => End::Deadline,
        }
    }
}

/// Takes a line of the server: before the acknowledgement none counts, and an error instead of it
/// ends the wait.
fn take(piece: &Piece<'_>, ack: &mut Option<Filter>, intake: &mut Intake) -> Result<bool, String> {
    let (Some(filter), Piece::Line { bytes, .. }) = (ack.as_ref(), piece) else {
        return Ok(intake.piece(piece, 0));
    };
    match filter.judge(bytes) {
        Verdict::Match => {
            intake.skipped(true);
            *ack = None;
            intake.armed();
            Ok(true)
        }
        Verdict::NotJson => {
            intake.skipped(false);
            Ok(true)
        }
        Verdict::Other => {
            intake.skipped(true);
            error_in(bytes).map_or(Ok(true), Err)
        }
    }
}

/// The error that a server answers with instead of a result, in the form of JSON-RPC.
fn error_in(line: &[u8]) -> Option<String> {
    let path = json::Path::new("error");
    let text = String::from_utf8_lossy(line);
    let wanted = json::Wanted::new([&path]);
    let error = wanted.look(&text)?.get(&path)?.to_owned();
    (error != "null").then(|| format!("the server answered with an error: {error}"))
}
