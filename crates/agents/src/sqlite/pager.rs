//! Pages of a database file, or of its write-ahead log where that has newer ones.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use records::Deadline;

use super::{Result, Trouble};
use crate::open;

/// The largest write-ahead log that is read. SQLite itself begins anew after about 4 MB.
const MAX_WAL: u64 = 256 << 20;

/// A file that was written this short a time ago may be written again without its time of change
/// moving: the kernel's clock for that ticks at least every 10 ms.
const TICK: Duration = Duration::from_millis(20);

const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

fn unreadable(error: &io::Error) -> Trouble {
    Trouble::Unreadable(error.to_string())
}

fn too_long() -> Trouble {
    Trouble::Busy("reading it takes too long".to_owned())
}

/// `path` with `suffix` after its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// What a database's files look like from outside, to tell whether they have been written to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    database: Option<Facts>,
    wal: Option<Facts>,
}

#[derive(Debug, PartialEq, Eq)]
struct Facts {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// # Errors
    ///
    /// Busy, if the database is in the middle of being written to.
    pub(super) fn take(path: &Path) -> Result<Stamp> {
        let database = facts(path)?;
        let fresh = |facts: &Facts| {
            let (seconds, nanos) = facts.changed;
            let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else {
                return false;
            };
            let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
            let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
            age.is_some_and(|age| age < TICK)
        };
        if database.as_ref().is_some_and(fresh) {
            return Err(Trouble::Busy("it has just been written to".to_owned()));
        }
        Ok(Stamp {
            database,
            wal: facts(&beside(path, "-wal"))?,
        })
    }
}

fn facts(path: &Path) -> Result<Option<Facts>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(Facts {
            inode: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&error)),
    }
}

/// An open database.
pub(super) struct Pager {
    file: File,
    page_size: usize,
    usable: usize,
    pages: u32,
    wal: Wal,
    deadline: Deadline,
}

impl Pager {
    /// Opens a database; `None` if it is not there, or has nothing in it yet.
    pub(super) fn open(path: &Path, deadline: Deadline) -> Result<Option<Pager>> {
        let Some(file) = open::regular(path).map_err(|error| unreadable(&error))? else {
            return Ok(None);
        };
        let size = file.metadata().map_err(|error| unreadable(&error))?.len();
        let mut header = [0; 100];
        match file.read_exact_at(&mut header, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && size == 0 => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(&error)),
        }
        if !header.starts_with(b"SQLite format 3\0") {
            return Err(Trouble::Unreadable(
                "it is not an SQLite database".to_owned(),
            ));
        }
        let page_size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65536,
            size => usize::from(size),
        };
        let usable = page_size.saturating_sub(usize::from(header[20]));
        if !page_size.is_power_of_two() || usable < 480 {
            return Err(Trouble::Unreadable("its header is damaged".to_owned()));
        }
        if header[56..60] != [0, 0, 0, 1] && header[56..60] != [0; 4] {
            return Err(Trouble::Unreadable("its texts are not UTF-8".to_owned()));
        }
        // The format's read version: 2 is write-ahead logging.
        let wal = if header[19] == 2 {
            Wal::read(&beside(path, "-wal"), page_size, deadline)?
        } else {
            no_transaction(&beside(path, "-journal"))?;
            Wal::default()
        };
        let in_file = u32::try_from(size / page_size as u64).unwrap_or(u32::MAX);
        Ok(Some(Pager {
            file,
            page_size,
            usable,
            pages: wal.pages.unwrap_or(in_file),
            wal,
            deadline,
        }))
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// The bytes of a page that are used.
    pub(super) fn usable(&self) -> usize {
        self.usable
    }

    /// The page `number`, counted from 1.
    pub(super) fn page(&self, number: u32) -> Result<Vec<u8>> {
        if self.deadline.passed() {
            return Err(too_long());
        }
        if let Some(&at) = self.wal.newest.get(&number) {
            return Ok(self.wal.bytes[at..at + self.page_size].to_vec());
        }
        let missing = || Trouble::Unreadable(format!("page {number} is missing"));
        let offset = u64::from(number.checked_sub(1).ok_or_else(missing)?) * self.page_size as u64;
        let mut page = vec![0; self.page_size];
        match self.file.read_exact_at(&mut page, offset) {
            Ok(()) => Ok(page),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(missing()),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

/// A rollback journal with a header in it: a transaction is under way, or one was cut off and is
/// yet to be undone by a writer.
fn no_transaction(journal: &Path) -> Result<()> {
    let Ok(Some(file)) = open::regular(journal) else {
        return Ok(());
    };
    let mut magic = [0; 8];
    let has_header = file.read_exact_at(&mut magic, 0).is_ok() && magic != [0; 8];
    if has_header {
        return Err(Trouble::Busy("a transaction is under way in it".to_owned()));
    }
    Ok(())
}

/// A write-ahead log, up to its last whole transaction.
#[derive(Default)]
struct Wal {
    bytes: Vec<u8>,
    /// Where in `bytes` the newest version of a page is.
    newest: HashMap<u32, usize>,
    /// How many pages the database has after the last transaction.
    pages: Option<u32>,
}

impl Wal {
    fn read(path: &Path, page_size: usize, deadline: Deadline) -> Result<Wal> {
        let Some(file) = open::regular(path).map_err(|error| unreadable(&error))? else {
            return Ok(Wal::default());
        };
        let size = file.metadata().as_ref().map_or(0, Metadata::len);
        if size > MAX_WAL {
            return Err(Trouble::Unreadable(
                "its write-ahead log is too large".to_owned(),
            ));
        }
        let mut bytes = Vec::new();
        file.take(MAX_WAL)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        Wal::parse(bytes, page_size, deadline)
    }

    fn parse(bytes: Vec<u8>, page_size: usize, deadline: Deadline) -> Result<Wal> {
        let word = |at: usize| {
            let four = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
            u32::from_be_bytes(four.unwrap_or_default())
        };
        let mut wal = Wal::default();
        // The lowest bit of the magic number says in which order the sums take bytes.
        let big_endian = match word(0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            // A log that was just emptied, or never begun.
            _ => return Ok(wal),
        };
        if word(8) as usize != page_size || bytes.len() < WAL_HEADER {
            return Ok(wal);
        }
        let salt = bytes[16..24].to_vec();
        let mut sum = checksum((0, 0), &bytes[..24], big_endian);
        if sum != (word(24), word(28)) {
            return Ok(wal);
        }
        let mut uncommitted = Vec::new();
        let mut at = WAL_HEADER;
        while let Some(frame) = bytes.get(at..at + FRAME_HEADER + page_size) {
            // Frames of the log's last time round have another salt; a torn one another sum.
            if frame[8..16] != salt[..] {
                break;
            }
            sum = checksum(sum, &frame[..8], big_endian);
            sum = checksum(sum, &frame[FRAME_HEADER..], big_endian);
            if sum != (word(at + 16), word(at + 20)) {
                break;
            }
            if deadline.passed() {
                return Err(too_long());
            }
            uncommitted.push((word(at), at + FRAME_HEADER));
            // In the last frame of a transaction: the size of the database after it.
            let pages = word(at + 4);
            if pages != 0 {
                wal.newest.extend(uncommitted.drain(..));
                wal.pages = Some(pages);
            }
            at += FRAME_HEADER + page_size;
        }
        wal.bytes = bytes;
        Ok(wal)
    }
}

/// The log's running sum over `bytes`, whose length is a multiple of eight.
fn checksum(start: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let word = |four: &[u8]| {
        let four = four.try_into().unwrap_or_default();
        if big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    };
    bytes.chunks_exact(8).fold(start, |(a, b), pair| {
        let a = a.wrapping_add(word(&pair[..4])).wrapping_add(b);
        let b = b.wrapping_add(word(&pair[4..])).wrapping_add(a);
        (a, b)
    })
}
