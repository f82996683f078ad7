//! The book-keeping of a command's death: its marker, and the announcement.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use marker::{Locked, Marker, Stopping, Try};
use process::{Here, Named, Pid, ProcessRecord, Standing};
use records::{Deadline, Failure, Record};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::announce::{self, Place};
use crate::args::{self, Args};
use crate::death::{By, ExitRecord};
use crate::sweep::{self, Verdict};

/// How long a sweep may take that has a marker locked which is in the way of a new one.
const PATIENCE: Duration = Duration::from_secs(2);

/// What stands for the death of the command that runs, until it is announced.
#[derive(Debug)]
pub struct Keeper {
    /// The file in which deaths are announced.
    announce: PathBuf,
    /// The marker file, where there is one.
    path: Option<PathBuf>,
    /// What is copied into all records.
    tag: Option<String>,
    /// The guard, where there is one.
    guard: Option<Named>,
    now: RefCell<Option<Now>>,
    stopped: Cell<bool>,
}

/// The present command.
#[derive(Debug)]
struct Now {
    marker: Marker,
    file: Option<Locked>,
}

impl Keeper {
    /// As the command line says, whose paths are absolute by now.
    ///
    /// # Errors
    ///
    /// It names no file for announcements.
    pub fn new(args: &Args, guard: Option<Named>) -> Result<Keeper, Failure> {
        let announce = args.announce.clone();
        Ok(Keeper {
            announce: announce.ok_or_else(|| Failure::usage("--announce is missing"))?,
            path: args.marker.clone(),
            tag: args.tag.clone(),
            guard,
            now: RefCell::new(None),
            stopped: Cell::new(false),
        })
    }

    /// The guard.
    pub fn guard(&self) -> Option<&Named> {
        self.guard.as_ref()
    }

    /// The marker file's name.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Makes the marker of the command `record`, which has not been executed yet, in the place of
    /// the one before it.
    ///
    /// # Errors
    ///
    /// It cannot be made; it stands for another command that lives; its deaths could not be
    /// announced; or the one before it was ended on purpose ([`Keeper::is_stopped`]).
    pub fn register(&self, record: &ProcessRecord, here: &Here) -> Result<(), Failure> {
        let place = Place::now(&self.announce)?;
        let death_id = Uuid::new_v4().to_string();
        let line = marker_line(record, &self.tag, &death_id, &self.announce, place)?;
        let marker = Marker::parse(&line).map_err(Failure::failed)?;
        let Some(path) = &self.path else {
            *self.now.borrow_mut() = Some(Now { marker, file: None });
            return Ok(());
        };
        let before = self.now.borrow_mut().as_mut().and_then(|now| {
            let file = now.file.take()?;
            Some((file, now.marker.ident.clone()))
        });
        let (file, replaced) = match before {
            Some((mut file, ident)) => {
                let replaced = file.replace(&line);
                if let Err(error) = replaced {
                    // The old one is still there, for the next try, or to be removed.
                    if let Some(now) = self.now.borrow_mut().as_mut() {
                        now.file = Some(file);
                    }
                    return Err(error.into());
                }
                (file, Some(ident))
            }
            None => {
                make_room(path, &self.announce, here)?;
                (Locked::make(path, &line)?, None)
            }
        };
        *self.now.borrow_mut() = Some(Now {
            marker,
            file: Some(file),
        });
        // Whoever ends a command on purpose notes it, and then looks whether the marker is still
        // that command's. Seen from here it is the other way round, so one sees the other.
        if replaced.is_some_and(|ident| marker::is_being_stopped(path, &ident, here)) {
            self.stopped.set(true);
            return Err(Failure::no("it is being stopped"));
        }
        Ok(())
    }

    /// Whether a restart was given up because the command before it was ended on purpose.
    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// The command was not executed after all: there is no death to announce.
    pub fn forget(&self) {
        let _ = self.close();
    }

    /// What the marker says of the present command, as the beginning of the record of its
    /// death; `None` where none was executed.
    pub fn death(&self, by: By) -> Option<ExitRecord> {
        self.now
            .borrow()
            .as_ref()
            .map(|now| ExitRecord::of_marker(&now.marker, by))
    }

    /// Whether the present command is being ended on purpose, by the note beside its marker.
    pub fn is_being_stopped(&self, here: &Here) -> bool {
        let now = self.now.borrow();
        match (&self.path, now.as_ref()) {
            (Some(path), Some(now)) => marker::is_being_stopped(path, &now.marker.ident, here),
            _ => false,
        }
    }

    /// Notes beside the marker that the present command is ended on purpose, by this process;
    /// `None` where it has no marker, or somebody else is ending it already.
    pub fn note_stop(&self, here: &Here) -> Option<Stopping> {
        let now = self.now.borrow();
        let (path, now) = (self.path.as_ref()?, now.as_ref()?);
        Stopping::note(path, &now.marker.ident, here).ok().flatten()
    }

    /// Announces the death of the present command, once. The marker stays.
    ///
    /// # Errors
    ///
    /// The announcement is not on the disk; it may be tried again.
    pub fn announce(&self, exit: &ExitRecord, deadline: Deadline) -> io::Result<()> {
        let now = self.now.borrow();
        let Some(now) = now.as_ref() else {
            return Ok(());
        };
        let line = serde_json::to_vec(exit)?;
        announce::once(&self.announce, &now.marker, &line, deadline).map(|_| ())
    }

    /// Puts a line that is no death into the announcement file.
    ///
    /// # Errors
    ///
    /// As [`Keeper::announce`].
    pub fn note<T: Serialize>(&self, record: &T, deadline: Deadline) -> io::Result<()> {
        announce::note(&self.announce, &serde_json::to_vec(record)?, deadline)
    }

    /// Removes the marker: the death is announced, and nothing follows.
    ///
    /// # Errors
    ///
    /// It cannot be removed. Whoever sweeps finds the death announced, and removes it.
    pub fn close(&self) -> io::Result<()> {
        match self.now.take() {
            Some(Now {
                file: Some(file), ..
            }) => file.remove(),
            _ => Ok(()),
        }
    }
}

/// Makes room for a new marker at `path`: one that is there stands for a death which nobody has
/// announced yet, and which is announced now.
///
/// # Errors
///
/// It stands for a command that lives, or it cannot be told whether that lives.
fn make_room(path: &Path, announce: &Path, here: &Here) -> Result<(), Failure> {
    let shown = path.display();
    let patience = Deadline::after(PATIENCE);
    loop {
        match Locked::try_lock(path)? {
            Try::Gone => return Ok(()),
            Try::Busy => match Guarded::by_marker(path, here) {
                Some(guarded) if !guarded.has_ended || patience.passed() => {
                    return Err(guarded.in_the_way(path));
                }
                None if patience.passed() => {
                    return Err(Failure::failed(format_args!(
                        "{shown}: the marker of a command that is guarded"
                    )));
                }
                // By a sweep, or a guard that announces a death, which is soon done with it.
                _ => patience.sleep(Duration::from_millis(5)),
            },
            Try::Locked(file, marker) => match sweep::judge(here, &marker) {
                Verdict::Announce => {
                    sweep::announce(file, &marker, announce, here)?;
                    return Ok(());
                }
                Verdict::Leave => {
                    return Err(taken(path, marker.ident.pid()));
                }
                Verdict::Unknown(why) => {
                    return Err(Failure::unknown(format_args!("{shown}: {why}")));
                }
            },
        }
    }
}

/// Who has a marker: a guard that lives, and its command.
#[derive(Debug)]
pub struct Guarded {
    pid: Pid,
    guard: Pid,
    /// Whether the command has ended. Then its guard announces that, or is about to start it again.
    pub has_ended: bool,
    /// The lock file of the command, as its record shows it.
    pub lock: Option<String>,
}

impl Guarded {
    /// Who has the marker at `path`, if the guard that this names lives.
    pub fn by_marker(path: &Path, here: &Here) -> Option<Guarded> {
        let marker = Marker::read(path).ok()?;
        let host = marker.host.as_deref();
        let guard = marker.guard.as_ref()?;
        if !matches!(here.find(guard, host), Standing::Same(_)) {
            return None;
        }
        let command = here.find(&marker.ident, host);
        let record = Record::parse(&marker.line).ok()?;
        Some(Guarded {
            pid: marker.ident.pid(),
            guard: guard.pid(),
            has_ended: match command {
                Standing::Gone { .. } => true,
                Standing::Recycled(_) => marker.ident.is_exact(),
                Standing::Same(_) | Standing::Unknown(_) => false,
            },
            lock: record.str("lock").map(|lock| lock.into_owned()),
        })
    }

    /// Why there can be no start with the marker at `path`.
    fn in_the_way(&self, path: &Path) -> Failure {
        match self.has_ended {
            true => Failure::failed(format_args!("{}: {self}", path.display())),
            false => taken(path, self.pid),
        }
    }
}

impl fmt::Display for Guarded {
    /// Of a command that has ended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarded { pid, guard, .. } = self;
        write!(
            f,
            "process {pid} has ended, and its guard, process {guard}, is yet to announce that, or \
             to start it again"
        )
    }
}

/// The marker at `path` is in use by the process `pid`, and what can be done about it.
fn taken(path: &Path, pid: Pid) -> Failure {
    let path = path.display();
    Failure::failed(format_args!(
        "{path}: process {pid} runs under it: reap <{path} ends that, and with --lock FILE it is \
         no error that it runs"
    ))
}

/// The process's record, as a marker.
fn marker_line(
    record: &ProcessRecord,
    tag: &Option<String>,
    death_id: &str,
    announce: &Path,
    place: Place,
) -> Result<Vec<u8>, Failure> {
    let path = args::utf8(announce)?;
    let mut line = serde_json::to_vec(record)?;
    for (key, value) in [
        ("type", json!("marker")),
        ("tag", json!(tag)),
        ("death_id", json!(death_id)),
        ("announce", json!(path)),
        ("announce_size", json!(place.size)),
        ("announce_inode", json!(place.inode)),
    ] {
        line = Record::parse(&line)
            .map_err(Failure::failed)?
            .with(key, &value)?;
    }
    Ok(line)
}
