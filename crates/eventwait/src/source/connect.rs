//! `--connect`: a Unix socket accepts a connection. A file that a dead server left behind does not.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use records::{text, time};
use rustix::io::Errno;
use serde::Serialize;

use super::stream::{Attempt, connect};
use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;

/// How often it is tried. The kernel gives no notice of listen(2), nor of a place in a queue.
const RETRY: Duration = Duration::from_millis(20);

/// A socket that is to answer.
pub struct Connect {
    path: PathBuf,
    due: Instant,
    answered: bool,
}

#[derive(Serialize)]
struct Event {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    path: String,
    state: &'static str,
    at: String,
    lossy: bool,
    argv_cut: bool,
}

impl Connect {
    /// Waits for the socket at `path`.
    pub fn new(path: PathBuf) -> Connect {
        Connect {
            path,
            due: Instant::now(),
            answered: false,
        }
    }
}

impl Source for Connect {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        intake.armed();
        let now = Instant::now();
        if now < self.due || self.answered {
            return Turn::Idle;
        }
        self.due = now + RETRY;
        let name = self.path.display();
        match connect(&self.path) {
            Ok(Attempt::Connected(_)) => {
                self.answered = true;
                let (path, lossy) = text::lossy(self.path.as_os_str().as_encoded_bytes());
                intake.record(&Event {
                    v: 1,
                    r#type: "event",
                    source: "connect",
                    path,
                    state: "answers",
                    at: time::now(),
                    lossy,
                    argv_cut: false,
                });
                Turn::done(intake.after_all(1))
            }
            Ok(Attempt::Refused(
                errno @ (Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG | Errno::PROTOTYPE),
            )) => Turn::failed(
                End::Unavailable,
                format!("cannot connect to {name}: {errno}"),
            ),
            Ok(Attempt::Full | Attempt::Refused(_)) => Turn::Idle,
            Err(error) => Turn::failed(
                End::Unavailable,
                format!("cannot connect to {name}: {error}"),
            ),
        }
    }

    fn wakers<'a>(&'a self, _: &mut Wakers<'a>) {}

    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn look_again(&mut self) {
        self.due = Instant::now();
    }
}
