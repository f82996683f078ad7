//! `--herdr`: what happens to herdr's panes.
//!
//! The subscription comes first and the present state after its acknowledgement. herdr 0.8 replays
//! old lifecycle events to a new subscriber as if they were new, so that a pane is gone is said
//! only after it has been asked for. A server that goes says nothing of its panes: the end of the
//! stream means "ask again".

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mux::herdr::{Message, parse_message, request_line};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::herdr_wire::{Fields, STATUS, event, subscriptions};
use super::stream::{Attempt, Read, Stream, connect};
use super::{Source, Turn, Wakers};
use crate::args::Kind;
use crate::end::End;
use crate::intake::Intake;
use crate::split::Piece;

/// How often a server whose queue is full is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// A pane that is there although an event has it gone is asked for once more after this: the
/// server tells of what it does in steps of 100 ms.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// How many looks may be due before the stream is left to wait.
const MAX_LOOKS: usize = 256;

/// The id of our requests; an error may carry another one.
const ID: &str = "eventwait";

/// herdr's word for a pane that it does not have.
const PANE_NOT_FOUND: &str = "pane_not_found";

/// herdr's panes.
pub struct Herdr {
    socket: PathBuf,
    panes: Vec<Pane>,
    kinds: Vec<Kind>,
    initial: bool,
    max_line: usize,
    subscription: Option<Stream>,
    acked: bool,
    retry: Option<Instant>,
    /// When to subscribe again after a refusal.
    resubscribe: Option<Instant>,
    looks: VecDeque<Look>,
    /// The answer to the first of the looks.
    answer: Option<Stream>,
}

struct Pane {
    /// By which it was asked for.
    asked: String,
    /// Its id now: a pane that is moved gets another one, and keeps the old one as an alias.
    now: String,
    gone: bool,
}

/// A pane that is to be asked for.
struct Look {
    pane: usize,
    why: Why,
    not_before: Option<Instant>,
}

enum Why {
    /// Its state at the start.
    Initial,
    /// The subscription was refused for want of a pane: is it this one?
    Refused,
    /// An event has it gone.
    Gone {
        event: String,
        data: Box<RawValue>,
        again: bool,
    },
}

impl Herdr {
    /// The panes `panes` of the server at `socket`.
    pub fn new(
        socket: PathBuf,
        mut panes: Vec<String>,
        kinds: Vec<Kind>,
        initial: bool,
        max_line: usize,
    ) -> Herdr {
        let mut seen = std::collections::HashSet::new();
        panes.retain(|pane| seen.insert(pane.clone()));
        let pane = |asked: String| Pane {
            now: asked.clone(),
            asked,
            gone: false,
        };
        Herdr {
            socket,
            panes: panes.into_iter().map(pane).collect(),
            kinds,
            initial,
            max_line,
            subscription: None,
            acked: false,
            retry: None,
            resubscribe: None,
            looks: VecDeque::new(),
            answer: None,
        }
    }

    /// Whether it matters that a pane is gone.
    fn wants_gone(&self) -> bool {
        self.kinds.iter().any(|kind| *kind != Kind::Status)
    }

    /// A connection over which `request` goes; `None` while the server's queue is full.
    fn connect(&mut self, request: Vec<u8>) -> Result<Option<Stream>, String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!(
                "cannot connect to herdr at {}: {why}",
                self.socket.display()
            )
        };
        match connect(&self.socket).map_err(|error| cannot(&error))? {
            Attempt::Connected(socket) => {
                self.retry = None;
                Ok(Some(Stream::new(socket, request, self.max_line)))
            }
            Attempt::Full => {
                self.retry = Some(Instant::now() + RETRY);
                Ok(None)
            }
            Attempt::Refused(errno) => Err(cannot(&errno)),
        }
    }

    fn subscribe(&mut self) -> Result<(), String> {
        let live = self.panes.iter().filter(|pane| !pane.gone);
        let live: Vec<&str> = live.map(|pane| pane.asked.as_str()).collect();
        let params = json!({ "subscriptions": subscriptions(&live, &self.kinds) });
        self.subscription = self.connect(request_line(ID, "events.subscribe", &params))?;
        Ok(())
    }

    /// Takes a line of the subscription. An error ends the wait.
    fn take(&mut self, line: &[u8], intake: &mut Intake) -> Result<(), Turn> {
        let message = parse_message(line);
        if !self.acked {
            intake.skipped(message.is_ok());
            return self.take_ack(message, intake);
        }
        match message {
            Ok(Message::Event { name, data }) => self.take_event(&name, data, intake),
            Ok(Message::Error { code, message }) => {
                let why = format!("herdr broke off the events: {message} ({code})");
                return Err(Turn::failed(End::SourceError, why));
            }
            Ok(Message::Result(_)) => intake.skipped(true),
            Err(_) => intake.skipped(false),
        }
        Ok(())
    }

    fn take_ack(
        &mut self,
        message: Result<Message, String>,
        intake: &mut Intake,
    ) -> Result<(), Turn> {
        #[derive(Deserialize)]
        struct Started<'a> {
            r#type: &'a str,
        }
        let refused =
            |why: &str| Turn::failed(End::SourceError, format!("herdr did not subscribe: {why}"));
        match message {
            Ok(Message::Result(result)) => {
                // Not a sequence, of which the type would be the first element.
                let started = Some(result.get()).filter(|text| text.starts_with('{'));
                let started =
                    started.and_then(|text| serde_json::from_str::<Started<'_>>(text).ok());
                if started.is_none_or(|started| started.r#type != "subscription_started") {
                    return Err(refused(result.get()));
                }
                self.acked = true;
                intake.armed();
                if self.initial {
                    self.look_at_all(|| Why::Initial);
                }
                Ok(())
            }
            Ok(Message::Error { code, message }) => {
                // The whole subscription is refused, and not who is missing but who is there is
                // asked for: what is gone is an answer, if that is what is waited for.
                if code != PANE_NOT_FOUND || !self.wants_gone() || !self.initial {
                    return Err(refused(&format!("{message} ({code})")));
                }
                self.subscription = None;
                // Before it is tried again, should they all be there.
                self.resubscribe = Some(Instant::now() + SECOND_LOOK);
                self.look_at_all(|| Why::Refused);
                Ok(())
            }
            Ok(Message::Event { .. }) => Err(refused("an event is no acknowledgement")),
            Err(why) => Err(refused(&why)),
        }
    }

    fn look_at_all(&mut self, why: impl Fn() -> Why) {
        let live = self.panes.iter().enumerate().filter(|(_, pane)| !pane.gone);
        let look = |(pane, _): (usize, &Pane)| Look {
            pane,
            why: why(),
            not_before: None,
        };
        self.looks.extend(live.map(look));
    }

    fn take_event(&mut self, name: &str, data: Box<RawValue>, intake: &mut Intake) {
        let fields = Fields::of(&data);
        if name == "pane.moved" {
            intake.skipped(true);
            let to = fields.pane.as_ref().map(|pane| pane.pane_id.clone());
            let from = fields.previous_pane_id;
            let moved = self
                .panes
                .iter_mut()
                .find(|pane| from.as_ref() == Some(&pane.now));
            if let (Some(moved), Some(to)) = (moved, to) {
                moved.now = to;
            }
            return;
        }
        let kind = match name {
            STATUS => Kind::Status,
            "pane.exited" => Kind::Exit,
            "pane.closed" => Kind::Close,
            _ => return intake.skipped(true),
        };
        let about = fields.pane_id.as_deref();
        let pane = self.panes.iter().position(|pane| {
            !pane.gone && (about == Some(&pane.asked) || about == Some(&pane.now))
        });
        match (pane, kind) {
            // Subscribed to for these panes alone.
            (_, Kind::Status) => {
                intake.record(&event(name, &data, false));
            }
            (Some(pane), _) if self.kinds.contains(&kind) => self.looks.push_back(Look {
                pane,
                why: Why::Gone {
                    event: name.to_owned(),
                    data,
                    again: false,
                },
                not_before: None,
            }),
            _ => intake.skipped(true),
        }
    }

    /// The pane that is to be asked for now.
    fn next_look(&self) -> Option<&Pane> {
        let now = Instant::now();
        let look = self.looks.front()?;
        let waits = [look.not_before, self.retry]
            .into_iter()
            .flatten()
            .any(|at| at > now);
        self.panes.get(look.pane).filter(|_| !waits)
    }

    /// Asks for the panes that are to be looked at, one after the other. `true` while there is
    /// something to do at once.
    fn look(&mut self, intake: &mut Intake) -> Result<bool, Turn> {
        let Some(pane) = self.next_look() else {
            return Ok(false);
        };
        if self.answer.is_none() {
            let params = json!({ "pane_id": pane.asked });
            let request = request_line(ID, "pane.get", &params);
            let lost = if self.acked {
                End::Closed
            } else {
                End::Unavailable
            };
            self.answer = self
                .connect(request)
                // The server has gone, and the stream will say so too.
                .map_err(|why| Turn::failed(lost, why))?;
        }
        let Some(stream) = &mut self.answer else {
            return Ok(false);
        };
        // A server that has gone may have answered before.
        let _ = stream.send();
        let read = stream.read();
        let message = match (stream.lines.next_piece(), read) {
            (Some(Piece::Line { bytes, .. }), _) => parse_message(bytes),
            (None, Read::Some) => return Ok(true),
            (None, Read::Nothing) => return Ok(false),
            (Some(Piece::TooLong), _) | (None, Read::End) => {
                let why = "herdr did not say what is in a pane";
                return Err(Turn::failed(End::Closed, why));
            }
        };
        self.answer = None;
        if let Some(look) = self.looks.pop_front() {
            self.looked(look, message, intake)?;
        }
        Ok(true)
    }

    /// What the answer to a look means.
    fn looked(
        &mut self,
        look: Look,
        answer: Result<Message, String>,
        intake: &mut Intake,
    ) -> Result<(), Turn> {
        let wants_gone = self.wants_gone();
        let wants_status = self.kinds.contains(&Kind::Status);
        let Some(pane) = self.panes.get_mut(look.pane) else {
            return Ok(());
        };
        let is_gone = match answer {
            Ok(Message::Error { code, .. }) if code == PANE_NOT_FOUND => true,
            Ok(Message::Result(result)) => {
                let info = Fields::of(&result).pane;
                if let Some(info) = info {
                    pane.now.clone_from(&info.pane_id);
                    if matches!(look.why, Why::Initial) && wants_status {
                        intake.record(&event(STATUS, info, true));
                    }
                }
                false
            }
            Ok(Message::Error { code, message }) => {
                let why = format!("herdr did not say what is in a pane: {message} ({code})");
                return Err(Turn::failed(End::SourceError, why));
            }
            Ok(Message::Event { .. }) | Err(_) => {
                let why = "herdr did not say what is in a pane";
                return Err(Turn::failed(End::SourceError, why));
            }
        };
        match look.why {
            Why::Initial | Why::Refused if is_gone && !pane.gone && wants_gone => {
                pane.gone = true;
                // That was why, and the others are subscribed to at once.
                self.resubscribe = None;
                let data = json!({ "pane_id": pane.asked, "workspace_id": null });
                intake.record(&event("pane.closed", data, true));
            }
            Why::Initial | Why::Refused => {}
            Why::Gone {
                event: name, data, ..
            } if is_gone => {
                pane.gone = true;
                intake.record(&event(&name, &data, false));
            }
            Why::Gone { again: true, .. } => intake.skipped(true),
            Why::Gone { event, data, .. } => self.looks.push_back(Look {
                why: Why::Gone {
                    event,
                    data,
                    again: true,
                },
                not_before: Some(Instant::now() + SECOND_LOOK),
                ..look
            }),
        }
        Ok(())
    }
}

impl Source for Herdr {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        let mut more = match self.look(intake) {
            Ok(more) => more,
            Err(turn) => return turn,
        };
        if self.panes.iter().all(|pane| pane.gone) {
            return Turn::done(End::Closed);
        }
        if self.looks.len() > MAX_LOOKS || intake.is_satisfied() {
            return Turn::Idle;
        }
        if self.subscription.is_none() && self.looks.is_empty() {
            let later = self.retry.max(self.resubscribe);
            if later.is_some_and(|at| at > Instant::now()) {
                return Turn::Idle;
            }
            self.resubscribe = None;
            if let Err(why) = self.subscribe() {
                return Turn::failed(End::Unavailable, why);
            }
        }
        let Some(mut stream) = self.subscription.take() else {
            return if more { Turn::More } else { Turn::Idle };
        };
        let sent: Result<bool, Errno> = stream.send();
        let read = stream.read();
        self.subscription = Some(stream);
        loop {
            // The subscription is given up where it was refused.
            let piece =
                self.subscription
                    .as_mut()
                    .and_then(|stream| match stream.lines.next_piece() {
                        Some(Piece::Line { bytes, .. }) => Some(Some(bytes.to_vec())),
                        Some(Piece::TooLong) => Some(None),
                        None => None,
                    });
            let taken = match piece {
                None => break,
                Some(None) => {
                    intake.piece(&Piece::TooLong, 0);
                    Ok(())
                }
                Some(Some(line)) => self.take(&line, intake),
            };
            if let Err(turn) = taken {
                return turn;
            }
            if intake.is_satisfied() {
                return Turn::Idle;
            }
        }
        more |= read == Read::Some || self.answer.is_none() && self.next_look().is_some();
        match (read, self.subscription.is_some()) {
            (Read::End, true) if self.acked => Turn::done(End::Closed),
            (Read::End, true) if sent.is_err() => {
                Turn::failed(End::Unavailable, "herdr did not take the subscription")
            }
            (Read::End, true) => Turn::failed(
                End::NoAck,
                "herdr closed the connection without an acknowledgement",
            ),
            _ if more => Turn::More,
            _ => Turn::Idle,
        }
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        for stream in self.subscription.iter().chain(&self.answer) {
            stream.wakers(wakers);
        }
    }

    fn due(&self) -> Option<Instant> {
        let look = self.looks.front().and_then(|look| look.not_before);
        let again = self.resubscribe.filter(|_| self.looks.is_empty());
        [self.retry, again, look].into_iter().flatten().min()
    }

    fn is_looking(&self) -> bool {
        !self.acked || !self.looks.is_empty()
    }

    fn at_deadline(&self) -> End {
        match (&self.subscription, self.acked) {
            (_, true) => End::Deadline,
            (None, false) if self.looks.is_empty() => End::Unavailable,
            (_, false) => End::NoAck,
        }
    }
}
