//! The book-keeping of a command's death: its marker, and the announcement.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use marker::{Locked, Marker, Try};
use process::{Here, Named, ProcessRecord, Standing};
use records::{Deadline, Failure, Record};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::announce::{self, Place};
use crate::args::Args;
use crate::death::{By, ExitRecord};
use crate::sweep;

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
    /// It cannot be made, or it stands for another command that lives.
    pub fn register(&self, record: &ProcessRecord, here: &Here) -> Result<(), Failure> {
        let place = Place::now(&self.announce);
        let death_id = Uuid::new_v4().to_string();
        let line = marker_line(record, &self.tag, &death_id, &self.announce, place)?;
        let marker = Marker::parse(&line).map_err(Failure::failed)?;
        let before = self.now.take().and_then(|now| now.file);
        let file = match (&self.path, before) {
            (None, _) => None,
            (Some(_), Some(mut file)) => {
                let replaced = file.replace(&line);
                if let Err(error) = replaced {
                    // The old marker is still there, and its death is announced.
                    let _ = file.remove();
                    return Err(error.into());
                }
                Some(file)
            }
            (Some(path), None) => {
                make_room(path, &self.announce, here)?;
                Some(Locked::make(path, &line)?)
            }
        };
        // Without a guard nobody holds the lock: whoever finds the process gone may announce it.
        let file = file.filter(|_| self.guard.is_some());
        *self.now.borrow_mut() = Some(Now { marker, file });
        Ok(())
    }

    /// The command was not executed after all: there is no death to announce.
    pub fn forget(&self) {
        match self.now.take() {
            Some(Now {
                file: Some(file), ..
            }) => {
                let _ = file.remove();
            }
            _ => {
                if let Some(path) = &self.path
                    && let Ok(Try::Locked(file, _)) = Locked::try_lock(path)
                {
                    let _ = file.remove();
                }
            }
        }
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
    match Locked::try_lock(path)? {
        Try::Gone => Ok(()),
        Try::Busy => Err(Failure::failed(format_args!(
            "{shown}: the marker of a command that is guarded"
        ))),
        Try::Locked(file, marker) => match here.find(&marker.ident, marker.host.as_deref()) {
            Standing::Gone { .. } | Standing::Recycled(_) => {
                sweep::announce(file, &marker, announce, here)?;
                Ok(())
            }
            Standing::Same(_) => Err(Failure::failed(format_args!(
                "{shown}: the marker of process {}, which lives",
                marker.ident.pid()
            ))),
            Standing::Unknown(why) => Err(Failure::unknown(format_args!("{shown}: {why}"))),
        },
    }
}

/// The process's record, as a marker.
fn marker_line(
    record: &ProcessRecord,
    tag: &Option<String>,
    death_id: &str,
    announce: &Path,
    place: Place,
) -> Result<Vec<u8>, Failure> {
    let path = announce.to_str().ok_or_else(|| {
        Failure::failed(format_args!(
            "{}: the name is not UTF-8",
            announce.display()
        ))
    })?;
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
