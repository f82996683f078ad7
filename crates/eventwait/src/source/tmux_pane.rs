//! A pane of a tmux server, and how its process ended.

use std::time::{Duration, Instant};

use process::{Here, Sight};

use super::control::{Data, Listed};
use super::exit::Watched;

/// How long after its death tmux may not know yet how a pane's process ended.
pub const UNSURE: Duration = Duration::from_millis(500);

/// A pane as it was listed.
pub struct Known {
    /// What the list says of it.
    pub listed: Listed,
    /// Its process, if that lived when the pane was first listed.
    pub process: Option<Watched>,
    /// Its process has another number here, if it has one.
    is_foreign: bool,
    /// Whether its death has been told.
    pub reported: bool,
    /// Whether it was dead already in the first list.
    pub initial: bool,
    /// When it was first seen dead.
    pub dead_since: Option<Instant>,
}

impl Known {
    /// A pane in a list, with its process unless that has a number of some other place.
    pub fn new(here: Option<&Here>, listed: Listed, is_first: bool) -> Known {
        let pid = listed.pid.filter(|_| !listed.is_dead);
        let process = here.zip(pid).and_then(|(here, pid)| match here.look(pid) {
            Sight::Alive(handle) => Some(Watched::of(handle)),
            _ => None,
        });
        Known {
            is_foreign: here.is_none(),
            initial: is_first && listed.is_dead,
            listed,
            process,
            reported: false,
            dead_since: None,
        }
    }

    /// How its process ended: as tmux says, or, where it does not know yet or the pane has vanished
    /// with it, as the kernel does.
    pub fn exit(&self) -> (Option<i32>, Option<i32>) {
        if self.listed.is_explained() {
            return (self.listed.code, self.listed.signal);
        }
        let ended = self.process.as_ref().filter(|process| process.has_ended());
        let exit = ended.map(Watched::exit).unwrap_or_default();
        (exit.code, exit.signal)
    }

    /// Whether waiting longer tells nothing more of how the process of a vanished pane ended.
    pub fn is_as_known_as_can_be(&self, here: &Here) -> bool {
        let is_late = self.dead_since.is_none_or(|at| at.elapsed() >= UNSURE);
        let is_collected = self.process.as_ref().is_none_or(|process| {
            process.has_ended() && !matches!(here.look(process.pid()), Sight::Zombie(_))
        });
        is_late || is_collected || self.exit() != (None, None)
    }

    /// What is told of its death.
    pub fn death(&self) -> Data {
        let (code, signal) = self.exit();
        Data::Exited {
            pane: self.listed.id.clone(),
            pid: self.listed.pid.filter(|_| !self.is_foreign),
            code,
            signal: signal.map(process::signal_name),
        }
    }

    /// Whether its process is known to have ended.
    pub fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(Watched::has_ended)
    }

    /// Whether its process has ended and nothing was said of that yet.
    pub fn is_news(&self) -> bool {
        !self.reported && self.has_ended()
    }
}
