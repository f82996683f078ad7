//! `--exit`: processes have ended.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use process::{Exit, Handle, Here, Identity, Operand, Pid, Sight, Standing};
use records::time;
use serde::Serialize;

use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;

/// How often a process is looked at of whose end the kernel gives no notice.
const UNNOTIFIED: Duration = Duration::from_millis(10);

/// A process that is watched.
#[derive(Debug)]
pub struct Watched {
    pid: Pid,
    ident: Option<Identity>,
    /// `None`: it had ended before.
    handle: Option<Handle>,
    /// How it had ended before.
    exit: Option<Exit>,
}

impl Watched {
    /// Holds on to the process that `operand` names, if that has not ended yet.
    ///
    /// # Errors
    /// It cannot be judged whether it has; the text says why.
    pub fn new(here: &Here, operand: &Operand) -> Result<Watched, String> {
        let (pid, ident, handle) = match operand {
            Operand::Pid(pid) => match here.look(*pid) {
                Sight::Alive(handle) => (*pid, Some(handle.ident().clone()), Some(handle)),
                Sight::Zombie(ident) => (*pid, Some(ident), None),
                Sight::Absent => {
                    // Perhaps it has, perhaps it is a slip of the pen.
                    crate::tell(&format!(
                        "there is no process {pid}, which counts as its end"
                    ));
                    (*pid, None, None)
                }
                Sight::Unknown(why) => return Err(format!("process {pid}: {why}")),
            },
            Operand::Ident(ident) => match here.find(ident, None) {
                Standing::Same(handle) => (ident.pid(), Some(ident.clone()), Some(handle)),
                Standing::Recycled(_) | Standing::Gone { .. } => {
                    (ident.pid(), Some(ident.clone()), None)
                }
                Standing::Unknown(why) => return Err(format!("{ident}: {why}")),
            },
        };
        let ended = ident.as_ref().filter(|_| handle.is_none());
        let exit = ended.and_then(|ident| here.exit_of_zombie(ident));
        Ok(Watched {
            pid,
            ident,
            handle,
            exit,
        })
    }

    /// The process of this handle.
    pub fn of(handle: Handle) -> Watched {
        Watched {
            pid: handle.pid(),
            ident: Some(handle.ident().clone()),
            handle: Some(handle),
            exit: None,
        }
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, once it has and as far as the kernel tells.
    pub fn exit(&self) -> Exit {
        let exit = self.handle.as_ref().and_then(Handle::exit);
        exit.or(self.exit).unwrap_or_default()
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.handle.as_ref().is_none_or(Handle::has_ended)
    }

    /// What wakes a wait for its end.
    pub fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        if let Some(end) = self.handle.as_ref().and_then(Handle::end_notice) {
            wakers.readable(end);
        }
    }

    /// When to look at it, where the kernel gives no notice.
    pub fn due(&self) -> Option<Instant> {
        let handle = self.handle.as_ref()?;
        match handle.end_notice() {
            Some(_) => None,
            None => Some(Instant::now() + UNNOTIFIED),
        }
    }

    fn event(&self) -> Event {
        let exit = self.exit();
        Event {
            v: 1,
            r#type: "event",
            source: "exit",
            pid: self.pid,
            ident: self.ident.clone(),
            code: exit.code,
            signal: exit.signal.map(process::signal_name),
            at: time::now(),
        }
    }
}

#[derive(Serialize)]
struct Event {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    pid: Pid,
    ident: Option<Identity>,
    code: Option<i32>,
    signal: Option<String>,
    at: String,
}

/// Processes whose end is waited for.
pub struct Exits {
    operands: Vec<Operand>,
    /// How many processes they are.
    all: u64,
    /// Those that have not been reported yet.
    pending: Option<Vec<Watched>>,
}

impl Exits {
    /// Waits for the end of each of `operands`.
    pub fn new(mut operands: Vec<Operand>) -> Exits {
        let mut seen = HashSet::new();
        operands.retain(|operand| seen.insert(operand.to_string()));
        Exits {
            operands,
            all: 0,
            pending: None,
        }
    }
}

impl Source for Exits {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        let pending = match &mut self.pending {
            Some(pending) => pending,
            None => {
                let here = Here::new();
                let watched = self
                    .operands
                    .iter()
                    .map(|operand| Watched::new(&here, operand));
                match watched.collect::<Result<Vec<_>, String>>() {
                    Ok(mut watched) => {
                        // By its number and by its identity it is still one process.
                        let mut seen = HashSet::new();
                        watched.retain(|one| match &one.ident {
                            Some(ident) => seen.insert(ident.to_string()),
                            None => true,
                        });
                        self.all = watched.len() as u64;
                        self.pending.insert(watched)
                    }
                    Err(why) => return Turn::failed(End::Unavailable, why),
                }
            }
        };
        intake.armed();
        pending.retain(|process| {
            if intake.is_satisfied() || !process.has_ended() {
                return true;
            }
            intake.record(&process.event());
            false
        });
        match pending.is_empty() {
            true => Turn::done(intake.after_all(self.all)),
            false => Turn::Idle,
        }
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        for process in self.pending.iter().flatten() {
            process.wakers(wakers);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.pending.iter().flatten().filter_map(Watched::due).min()
    }
}
