//! What is said of a wait at its end.

use std::path::Path;
use std::time::Duration;

use records::files;
use rustix::fs::{Access, access};
use serde::Serialize;

/// The record of `--summary`.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The version of the record.
    pub v: u8,
    /// `wait`.
    pub r#type: &'static str,
    /// How the wait has ended.
    pub end: &'static str,
    /// How many lines or events matched.
    pub matched: u64,
    /// How many there were.
    pub seen: u64,
    /// How many would have had to be JSON and were not.
    pub not_json: u64,
    /// How many matched and could not be printed.
    pub dropped: u64,
    /// How many lines were over the limit.
    pub too_long: u64,
    /// Whether the last line was printed in part.
    pub cut: bool,
    /// Where to go on in the file that was followed.
    pub offset: Option<u64>,
    /// How long the wait took.
    pub took_ms: u64,
}

/// Whether a summary will have its place in `path`, as far as can be told before.
///
/// # Errors
/// What is there is not a file that may be replaced, or no file can be made in its folder.
pub fn check(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        let error = std::io::Error::from(errno);
        std::io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
    })?;
    match files::open_trusted(path, files::Access::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        opened => opened.map(drop),
    }
}

/// `duration` in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
