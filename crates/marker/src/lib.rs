//! The file that stands for a guarded process while it runs.
//!
//! A marker whose process is gone is the record of a death that nobody has announced yet. The
//! process's guard makes it before the process may execute anything, holds its lock for life, and
//! removes it only once the death is in the announcement file. Whoever finds one whose process
//! and guard are both gone announces that death instead.
//!
//! Beside it stands, for as long as the process is being ended on purpose, `MARKER.stopping`
//! ([`Stopping`]), so that a stop is not announced as an accident.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod stopping;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use process::Identity;
use records::Record;
use records::files::{self, Access};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

pub use stopping::{Stopping, is_being_stopped};

/// The most that is read of a marker: no record is longer.
const MAX: usize = 16 << 20;

/// What a marker says.
#[derive(Clone, Debug)]
pub struct Marker {
    /// The record, as it stands in the file, without its newline.
    pub line: Vec<u8>,
    /// The process.
    pub ident: Identity,
    /// The host it runs on.
    pub host: Option<String>,
    /// Its guard.
    pub guard: Option<Identity>,
    /// The death that it stands for: one announcement has this id, and no other.
    pub death_id: String,
    /// Where that is announced.
    pub announce: PathBuf,
    /// How long the announcement file was when the marker was made, and which file it was.
    pub announce_size: u64,
    /// The inode of the announcement file at that time; 0 for none.
    pub announce_inode: u64,
}

impl Marker {
    /// Reads one line that is a marker.
    ///
    /// # Errors
    ///
    /// The text says what is missing.
    pub fn parse(line: &[u8]) -> Result<Marker, String> {
        let record = Record::parse(line)?;
        if record.kind().as_deref() != Some("marker") {
            return Err("it is no marker".to_owned());
        }
        let text = |key: &str| {
            record
                .str(key)
                .ok_or_else(|| format!("it has no {key}"))
                .map(|text| text.into_owned())
        };
        let ident = |word: &str| word.parse::<Identity>().map_err(|error| error.to_string());
        Ok(Marker {
            line: line.to_vec(),
            ident: ident(&text("ident")?)?,
            host: record.str("host").map(|host| host.into_owned()),
            guard: match record.str("guard.ident") {
                Some(word) => Some(ident(&word)?),
                None => None,
            },
            death_id: text("death_id")?,
            announce: text("announce")?.into(),
            announce_size: record.u64("announce_size").unwrap_or(0),
            announce_inode: record.u64("announce_inode").unwrap_or(0),
        })
    }

    /// Reads the marker file at `path`.
    ///
    /// # Errors
    ///
    /// It is not there, not to be trusted, or no marker; the error names it.
    pub fn read(path: &Path) -> io::Result<Marker> {
        let file = files::open_trusted(path, Access::Read)?;
        read(&file, path)
    }
}

/// A marker file that is locked by this process, and still has its name.
#[derive(Debug)]
pub struct Locked {
    file: File,
    path: PathBuf,
}

/// What a try to lock a marker found.
#[derive(Debug)]
pub enum Try {
    /// It is locked by this process now, and says this.
    Locked(Locked, Box<Marker>),
    /// Somebody else, its guard or another sweep, has it locked.
    Busy,
    /// There is none any more.
    Gone,
}

impl Locked {
    /// Makes the marker file `path` with the content `line`, locked. It appears whole, and only
    /// if there was none.
    ///
    /// # Errors
    ///
    /// Of kind `AlreadyExists` where there is one; those of making a file otherwise.
    pub fn make(path: &Path, line: &[u8]) -> io::Result<Locked> {
        let (file, temporary) = files::make_beside(path, &[line, b"\n"].concat())?;
        let linked = lock(&file).and_then(|_| std::fs::hard_link(&temporary, path));
        let removed = std::fs::remove_file(&temporary);
        linked.map_err(|error| named(path, error))?;
        removed?;
        files::sync_folder(path)?;
        Ok(Locked {
            file,
            path: path.to_owned(),
        })
    }

    /// Puts a new marker in the place of this one, locked as well, for the next process of the
    /// same guard. There is no moment without a marker.
    ///
    /// # Errors
    ///
    /// Those of making a file, the old marker is then still there; or those of having its name on
    /// the disk.
    pub fn replace(&mut self, line: &[u8]) -> io::Result<()> {
        let (file, temporary) = files::make_beside(&self.path, &[line, b"\n"].concat())?;
        let renamed = lock(&file).and_then(|_| std::fs::rename(&temporary, &self.path));
        if let Err(error) = renamed {
            let _ = std::fs::remove_file(&temporary);
            return Err(named(&self.path, error));
        }
        self.file = file;
        files::sync_folder(&self.path)
    }

    /// Tries to lock the marker file at `path`, without waiting.
    ///
    /// # Errors
    ///
    /// It is not to be trusted, or no marker.
    pub fn try_lock(path: &Path) -> io::Result<Try> {
        let file = match files::open_trusted(path, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Try::Gone),
            file => file?,
        };
        if !lock(&file)? {
            return Ok(Try::Busy);
        }
        if !files::still_named(path, &file)? {
            return Ok(Try::Gone);
        }
        let marker = read(&file, path)?;
        let path = path.to_owned();
        Ok(Try::Locked(Locked { file, path }, Box::new(marker)))
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the marker, and the note beside it that its process was being stopped. The death
    /// must be announced by now.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        // Only the file that is locked here; it cannot have been replaced while it is.
        if files::still_named(&self.path, &self.file)? {
            std::fs::remove_file(&self.path).map_err(|error| named(&self.path, error))?;
        }
        // The note second: whoever makes one looks for the marker afterwards, and finds none.
        stopping::remove(&self.path)?;
        files::sync_folder(&self.path)
    }
}

fn read(file: &File, path: &Path) -> io::Result<Marker> {
    let bytes = files::read_to_end(file, path, MAX)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Marker::parse(line).map_err(|why| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {why}", path.display()),
        )
    })
}

/// Locks `file`; `false` where somebody else has it locked.
fn lock(file: &File) -> io::Result<bool> {
    match rustix::io::retry_on_intr(|| {
        rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)
    }) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: i32) -> Vec<u8> {
        let boot = "0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e";
        format!(
            "{{\"v\":1,\"type\":\"marker\",\"pid\":{pid},\"ident\":\"linux:{boot}:7:{pid}:9:5\",\
             \"guard\":null,\"host\":\"h\",\"death_id\":\"d\",\"announce\":\"/a\",\
             \"announce_size\":12,\"announce_inode\":34}}"
        )
        .into_bytes()
    }

    #[test]
    fn what_is_a_marker() {
        let marker = Marker::parse(&line(42)).unwrap();
        assert_eq!(marker.ident.pid().get(), 42);
        assert_eq!((marker.announce_size, marker.announce_inode), (12, 34));
        for text in [
            "",
            "{}",
            "{\"type\":\"process\",\"ident\":\"x\"}",
            "{\"type\":\"marker\",\"ident\":\"x\",\"death_id\":\"d\",\"announce\":\"/a\"}",
        ] {
            assert!(Marker::parse(text.as_bytes()).is_err(), "{text}");
        }
        let whole = line(42);
        for cut in 0..whole.len() {
            assert!(
                Marker::parse(&whole[..cut]).is_err(),
                "half of one: {cut} bytes"
            );
        }
    }

    #[test]
    fn a_marker_appears_whole_and_locked_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.marker");
        assert!(matches!(Locked::try_lock(&path).unwrap(), Try::Gone));
        let mut held = Locked::make(&path, &line(42)).unwrap();
        let again = Locked::make(&path, &line(43)).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(Marker::read(&path).unwrap().ident.pid().get(), 42);
        assert!(matches!(Locked::try_lock(&path).unwrap(), Try::Busy));
        held.replace(&line(44)).unwrap();
        assert_eq!(Marker::read(&path).unwrap().ident.pid().get(), 44);
        assert!(
            matches!(Locked::try_lock(&path).unwrap(), Try::Busy),
            "the new one is locked too"
        );
        drop(held);
        let Try::Locked(held, marker) = Locked::try_lock(&path).unwrap() else {
            panic!("nobody has it locked");
        };
        assert_eq!(marker.ident.pid().get(), 44);
        held.remove().unwrap();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left"
        );
    }
}
