//! Where records come from: files, standard input, and the pipes of a shell's `<(…)`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use records::files::{self, Access};
use records::input::{Input, Lines};
use records::{Failure, Record, say};

/// The longest row or decision, in bytes.
const MAX: u64 = 16 << 20;

/// Whether `path` means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_stdin(path) {
        records::input::announce_terminal();
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).map_err(|error| named(path, &error))?;
    Ok(Box::new(file))
}

/// As [`open`], for what decides about a launch: a regular file must be one that nobody else can
/// write to.
fn open_trusted(path: &Path) -> Result<Box<dyn Read>, Failure> {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if is_stdin(path) || !is_file {
        return open(path);
    }
    Ok(Box::new(files::open_trusted(path, Access::Read)?))
}

fn named(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format_args!("{}: {error}", path.display()))
}

/// The one record in `path`, which may be spread over several lines.
///
/// # Errors
///
/// It cannot be read. Inside: it is not one record, and why.
pub fn one(path: &Path) -> Result<Result<String, String>, Failure> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(MAX + 1).read_to_end(&mut bytes);
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
/// It cannot be opened or read; `trusted`: or not be trusted.
pub fn each(path: &Path, trusted: bool, mut hear: impl FnMut(&Record<'_>)) -> Result<u64, Failure> {
    let reader = if trusted {
        open_trusted(path)?
    } else {
        open(path)?
    };
    let name = match is_stdin(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let mut lines = Lines::new(name, reader);
    let mut bad = 0;
    while let Some(line) = lines.next_record()? {
        match line {
            Input::Record(record) => hear(&record),
            Input::Bad(line) => {
                say!("{line}");
                bad += 1;
            }
        }
    }
    Ok(bad)
}
