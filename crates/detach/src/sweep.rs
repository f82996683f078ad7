//! The backstop: deaths whose guard has died as well.

use std::path::{Path, PathBuf};

use marker::{Locked, Marker, Try};
use process::{Here, Standing};
use records::{Deadline, Failure, Output, Record, exit, say};

use crate::announce;
use crate::args::Args;
use crate::death::{By, ExitRecord, Left};

/// What becomes of one marker.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its process or its guard lives.
    Leave,
    /// Both are gone.
    Announce,
    /// It cannot be told, and why.
    Unknown(String),
}

/// Announces, in the folder `dir`, each marker of ours whose process and guard are gone, and
/// removes it. Prints what it announced. Nothing else in the folder is opened or removed.
///
/// # Errors
///
/// The folder cannot be read, or an announcement not be made.
pub fn sweep(args: &Args, dir: &Path, announce: &Path) -> Result<exit::Status, Failure> {
    let here = Here::new();
    let mut output = Output::new(&args.output, crate::HUMAN);
    let mut status = exit::Status::Done;
    for path in markers(dir)? {
        let (file, marker) = match Locked::try_lock(&path) {
            Ok(Try::Locked(file, marker)) => (file, marker),
            // Its guard, or another sweep, has it.
            Ok(Try::Busy | Try::Gone) => continue,
            Err(error) => {
                say!("{error}");
                continue;
            }
        };
        match judge(&here, &marker) {
            Verdict::Leave => {}
            Verdict::Unknown(why) => {
                say!("{}: {why}", path.display());
                status = status.worse(exit::Status::Unknown);
            }
            Verdict::Announce => match self::announce(file, &marker, announce, &here) {
                Ok(Some(record)) => output.emit(&record)?,
                Ok(None) => {}
                Err(failure) => {
                    say!("{}", failure.message());
                    status = status.worse(failure.status());
                }
            },
        }
    }
    output.finish()?;
    Ok(status)
}

/// The files of `dir` that are markers by their name, in its order.
fn markers(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let named = |error| Failure::failed(format_args!("{}: {error}", dir.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(named)? {
        let path = entry.map_err(named)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "marker")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// What is to become of `marker`, by what lives of it.
pub fn judge(here: &Here, marker: &Marker) -> Verdict {
    let host = marker.host.as_deref();
    let process = match here.find(&marker.ident, host) {
        // A start time of `ps` is not enough to sweep a marker.
        Standing::Recycled(_) if !marker.ident.is_exact() => {
            Verdict::Unknown("its process may have been replaced by another one".to_owned())
        }
        Standing::Gone { .. } | Standing::Recycled(_) => Verdict::Announce,
        Standing::Same(_) => Verdict::Leave,
        Standing::Unknown(why) => Verdict::Unknown(why),
    };
    let guard = marker.guard.as_ref().map(|guard| here.find(guard, host));
    match (process, guard) {
        (Verdict::Announce, Some(Standing::Same(_))) => Verdict::Leave,
        (Verdict::Announce, Some(Standing::Unknown(why))) => Verdict::Unknown(why),
        (process, _) => process,
    }
}

/// Announces the death that `marker` stands for, unless it was announced before, and removes the
/// marker, which is locked as `file`. The record, if it was not.
///
/// # Errors
///
/// It cannot be announced, or the marker not be removed.
pub fn announce(
    file: Locked,
    marker: &Marker,
    announce: &Path,
    here: &Here,
) -> Result<Option<ExitRecord>, Failure> {
    let record = record(file.path(), marker, here);
    let line = serde_json::to_vec(&record)?;
    let deadline = Deadline::after(std::time::Duration::from_secs(10));
    let new = announce::once(announce, marker, &line, deadline)?;
    file.remove()?;
    Ok(new.then_some(record))
}

/// What the marker and the machine tell of the death.
fn record(path: &Path, marker: &Marker, here: &Here) -> ExitRecord {
    let mut record = ExitRecord::of_marker(marker, By::Sweep);
    record.deliberate = marker::is_being_stopped(path, &marker.ident, here);
    record.unnatural = !record.deliberate;
    record.stranded = Left::by(marker.ident.pid(), here).named();
    let log = Record::parse(&marker.line)
        .ok()
        .and_then(|said| said.str("log"));
    if let Some(log) = log {
        record.with_log(Path::new(&*log), 0);
    }
    record
}
