//! Where records come from: files, standard input, and the pipes of a shell's `<(…)`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use records::files::{self, Access};
use records::input::{Input, Lines, Timed};
use records::{Failure, Record, say};

use crate::clock::Clock;
use crate::look;

/// The longest row or decision, in bytes.
const MAX: u64 = 16 << 20;

/// Whether `path` means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a file is believed that others can write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It is.
    Any,
    /// It is not: it decides about a launch.
    Own,
}

/// Opens `path`, and reads no longer than the clock allows.
fn open(path: &Path, trust: Trust, clock: Clock) -> Result<Box<dyn Read>, Failure> {
    if is_stdin(path) {
        records::input::announce_terminal();
        let stdin = rustix::stdio::stdin();
        return Ok(Box::new(Timed::new(stdin, clock.stdin())));
    }
    let deadline = clock.step();
    // A FIFO that nobody writes to is waited for in open(2) itself.
    let owned = path.to_owned();
    match look::in_time(deadline, move || open_file(&owned, trust)) {
        Ok(Some(file)) => Ok(Box::new(Timed::new(file?, deadline))),
        Ok(None) => Err(named(path, &ErrorKind::TimedOut.into())),
        Err(error) => Err(named(path, &error)),
    }
}

/// Only a regular file can be one that others can write to.
fn open_file(path: &Path, trust: Trust) -> Result<File, Failure> {
    let is_file = || std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if trust == Trust::Own && is_file() {
        return Ok(files::open_trusted(path, Access::Read)?);
    }
    File::open(path).map_err(|error| named(path, &error))
}

/// What messages call the input `path`.
fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// What has not come in time is not known.
fn named(path: &Path, error: &io::Error) -> Failure {
    let name = name(path);
    match error.kind() {
        ErrorKind::TimedOut => {
            Failure::unknown(format_args!("{name}: its end has not come in time"))
        }
        _ => Failure::failed(format_args!("{name}: {error}")),
    }
}

/// Whether there is no file `path` for certain.
///
/// # Errors
///
/// It cannot be told in time.
pub fn is_missing(path: &Path, clock: Clock) -> Result<bool, Failure> {
    let owned = path.to_owned();
    let look = move || {
        let file = std::fs::symlink_metadata(owned);
        file.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let missing = look::in_time(clock.step(), look);
    let missing = missing.and_then(|missing| missing.ok_or(ErrorKind::TimedOut.into()));
    missing.map_err(|error| named(path, &error))
}

/// The one record in `path`, which may be spread over several lines.
///
/// # Errors
///
/// It cannot be read, or not in time (3). Inside: it is not one record, and why.
pub fn one(path: &Path, clock: Clock) -> Result<Result<String, String>, Failure> {
    let mut bytes = Vec::new();
    let read = open(path, Trust::Any, clock)?
        .take(MAX + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| named(path, &error))?;
    if bytes.len() as u64 > MAX {
        return Ok(Err(format!("longer than {MAX} bytes")));
    }
    Ok(Record::parse(bytes.trim_ascii()).map(|record| record.text().to_owned()))
}

/// Reads the records of `path`, and says on stderr which lines are none. The answer is how many of
/// those there were.
///
/// # Errors
///
/// It cannot be opened, read, or trusted; or not in time (3).
pub fn each(
    path: &Path,
    trust: Trust,
    clock: Clock,
    mut hear: impl FnMut(&Record<'_>),
) -> Result<u64, Failure> {
    let mut lines = Lines::new(name(path), open(path, trust, clock)?);
    let mut bad = 0;
    loop {
        let line = lines.next_record().map_err(|error| match error.kind() {
            ErrorKind::TimedOut => named(path, &error),
            _ => error.into(),
        })?;
        match line {
            Some(Input::Record(record)) => hear(&record),
            Some(Input::Bad(line)) => {
                say!("{line}");
                bad += 1;
            }
            None => return Ok(bad),
        }
    }
}
