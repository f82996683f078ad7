//! When a command counts as ready.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use process::{Peer, Pid, SocketPath, probe_socket};
use records::files::{self, Access};

use crate::args::Args;
use crate::running::stranger;

/// How often a socket is tried whose file is there.
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// The conditions that must all hold. One that has held is not looked at again.
#[derive(Debug)]
pub struct Readiness {
    waiting: VecDeque<Condition>,
    last: Option<&'static str>,
}

/// What a look at the conditions found.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// All hold; the word is the kind of the last one that came true.
    Ready(&'static str),
    /// One does not yet.
    NotYet,
    /// A socket is answered by this process. Whether that is the command's own is for the caller
    /// to find out, and to say by [`Readiness::accept`].
    Answered(SocketPath, Peer),
}

#[derive(Debug)]
enum Condition {
    Socket {
        path: SocketPath,
        next: Option<Instant>,
        /// Why the last try could not be made.
        trouble: Option<io::Error>,
    },
    File {
        path: PathBuf,
        before: Option<Stamp>,
    },
    Line {
        text: Vec<u8>,
        log: Tail,
    },
}

/// What tells two states of a file apart: it was made anew, or written.
type Stamp = (u64, u64, i64, i64);

impl Readiness {
    /// What the command line asks for, with things as they are before the start.
    pub fn before_start(args: &Args) -> Readiness {
        Readiness::new(args, stamp, file_length)
    }

    /// What the command line asks for, of a command that was started at `since` by somebody else:
    /// a file that was written since then, a line anywhere in the log.
    pub fn of_running(args: &Args, since: Option<SystemTime>) -> Readiness {
        let old = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            let written = meta.modified().ok()?;
            since
                .filter(|&since| written < since)
                .map(|_| stamp_of(&meta))
        };
        Readiness::new(args, old, |_| 0)
    }

    fn new(
        args: &Args,
        before: impl Fn(&Path) -> Option<Stamp>,
        from: impl Fn(&Path) -> u64,
    ) -> Readiness {
        let sockets = args.ready_socket.iter().map(|path| Condition::Socket {
            path: path.clone(),
            next: None,
            trouble: None,
        });
        let files = args.ready_file.iter().map(|path| Condition::File {
            path: path.clone(),
            before: before(path),
        });
        let lines = args.log.iter().flat_map(|log| {
            let from = from(log);
            args.ready_line.iter().map(move |text| Condition::Line {
                text: text.as_bytes().to_vec(),
                log: Tail::new(log.clone(), from),
            })
        });
        Readiness {
            waiting: sockets.chain(files).chain(lines).collect(),
            last: None,
        }
    }

    /// Looks at what has not held yet.
    ///
    /// # Errors
    ///
    /// The log is there and may not be looked at.
    pub fn look(&mut self) -> io::Result<Look> {
        let mut left = VecDeque::new();
        while let Some(mut condition) = self.waiting.pop_front() {
            let held = match &mut condition {
                Condition::Socket {
                    path,
                    next,
                    trouble,
                } => match try_socket(path, next, trouble) {
                    Some(peer) => {
                        let answered = Look::Answered(path.clone(), peer);
                        self.waiting.push_front(condition);
                        self.waiting.append(&mut left);
                        return Ok(answered);
                    }
                    None => false,
                },
                Condition::File { path, before } => {
                    stamp(path).is_some_and(|now| *before != Some(now))
                }
                Condition::Line { text, log } => {
                    log.find(text).map_err(|error| log.named(error))?
                }
            };
            if held {
                self.last = Some(condition.kind());
            } else {
                left.push_back(condition);
            }
        }
        self.waiting = left;
        Ok(match self.last {
            Some(last) if self.waiting.is_empty() => Look::Ready(last),
            _ => Look::NotYet,
        })
    }

    /// Looks once more, after the end of the command `leader`: the word for the last condition that
    /// came true, if all have. One that cannot be looked at has not.
    pub fn last_look(&mut self, leader: Option<Pid>) -> Option<&'static str> {
        for condition in &mut self.waiting {
            if let Condition::Socket { next, .. } = condition {
                *next = None;
            }
        }
        loop {
            match self.look() {
                Ok(Look::Ready(last)) => return Some(last),
                Ok(Look::Answered(socket, peer)) if stranger(peer, leader).is_none() => {
                    self.accept(&socket);
                }
                _ => return None,
            }
        }
    }

    /// The socket that [`Look::Answered`] named is the command's own.
    pub fn accept(&mut self, socket: &SocketPath) {
        self.last = Some("socket");
        self.waiting.retain(
            |condition| !matches!(condition, Condition::Socket { path, .. } if path == socket),
        );
    }

    /// What is awaited, for the eyes of who waits.
    pub fn awaited(&self) -> String {
        match self.waiting.front() {
            Some(Condition::Socket {
                path,
                trouble: Some(error),
                ..
            }) => format!("answer of the socket {path} ({error})"),
            Some(Condition::Socket { path, .. }) => format!("socket {path}"),
            Some(Condition::File { path, .. }) => format!("file {}", path.display()),
            Some(Condition::Line { text, .. }) => {
                format!("line \"{}\"", String::from_utf8_lossy(text))
            }
            None => String::new(),
        }
    }
}

impl Condition {
    fn kind(&self) -> &'static str {
        match self {
            Condition::Socket { .. } => "socket",
            Condition::File { .. } => "file",
            Condition::Line { .. } => "line",
        }
    }
}

/// Tries `path` when its file has appeared, and then now and again. One that may not be connected to
/// may yet be: servers bind first, and say who may connect after that.
fn try_socket(
    path: &SocketPath,
    next: &mut Option<Instant>,
    trouble: &mut Option<io::Error>,
) -> Option<Peer> {
    let now = Instant::now();
    if next.is_some_and(|next| now < next) || !path.as_path().exists() {
        return None;
    }
    *next = Some(now + PROBE_EVERY);
    let tried = probe_socket(path);
    *trouble = None;
    tried.unwrap_or_else(|error| {
        *trouble = Some(error);
        None
    })
}

fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|meta| stamp_of(&meta))
}

fn stamp_of(meta: &Metadata) -> Stamp {
    (meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec())
}

fn file_length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// The part of a log that was written after some point, searched as it grows.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    offset: u64,
    /// The end of what was searched, in which a text may have begun.
    carry: Vec<u8>,
}

impl Tail {
    fn new(path: PathBuf, offset: u64) -> Tail {
        Tail {
            path,
            offset,
            carry: Vec::new(),
        }
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }

    /// Whether `text` has appeared. A log that was made anew or cut is read from its beginning.
    fn find(&mut self, text: &[u8]) -> io::Result<bool> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() < self.offset {
            self.offset = 0;
            self.carry.clear();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let length = file.read(&mut chunk)?;
            if length == 0 {
                return Ok(false);
            }
            self.offset += length as u64;
            self.carry
                .extend_from_slice(chunk.get(..length).unwrap_or_default());
            if contains(&self.carry, text) {
                return Ok(true);
            }
            let keep = text.len().saturating_sub(1).min(self.carry.len());
            self.carry.drain(..self.carry.len() - keep);
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty()
        || haystack
            .windows(needle.len())
            .any(|window| window == needle)
}

/// The last lines that were written to `log` after its first `from` bytes: at most ten, and 4 KiB.
pub fn last_lines(log: &Path, from: u64) -> io::Result<Vec<u8>> {
    const LINES: usize = 10;
    let mut bytes = last_bytes(log, from)?;
    let ends = bytes
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n');
    let skip = usize::from(bytes.ends_with(b"\n"));
    let first = ends
        .map(|(at, _)| at + 1)
        .nth(LINES - 1 + skip)
        .unwrap_or(0);
    bytes.drain(..first);
    Ok(bytes)
}

/// The end of what was written to `log` after its first `from` bytes: whole lines, at most 4 KiB;
/// of a line that is longer its end.
pub fn last_bytes(log: &Path, from: u64) -> io::Result<Vec<u8>> {
    const BYTES: u64 = 4096;
    let mut file = files::open_trusted(log, Access::Read)?;
    let length = file.metadata()?.len();
    let from = if length < from { 0 } else { from };
    let start = length.saturating_sub(BYTES);
    let mut bytes = Vec::new();
    if start <= from {
        file.seek(SeekFrom::Start(from))?;
        file.take(BYTES).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    // With the byte before, which tells whether the first line is whole.
    file.seek(SeekFrom::Start(start - 1))?;
    file.take(BYTES + 1).read_to_end(&mut bytes)?;
    let cut = bytes
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(1, |at| at + 1);
    bytes.drain(..cut);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_text_is_found_across_reads_and_after_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = Tail::new(path.clone(), 0);
        assert!(!tail.find(b"ready").unwrap(), "no log yet");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"getting re").unwrap();
        assert!(!tail.find(b"ready").unwrap());
        log.write_all(b"ady now\n").unwrap();
        assert!(tail.find(b"ready").unwrap());

        let mut tail = Tail::new(path.clone(), file_length(&path));
        assert!(!tail.find(b"ready").unwrap(), "it was there before");
        std::fs::write(&path, b"ready\n").unwrap();
        assert!(tail.find(b"ready").unwrap(), "the log was made anew");
    }

    #[test]
    fn a_file_counts_when_it_is_new_or_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let none = stamp(&path);
        std::fs::write(&path, "").unwrap();
        let made = stamp(&path);
        assert_ne!(none, made);
        assert_eq!(made, stamp(&path));
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_ne!(made, stamp(&path), "touched");
    }

    #[test]
    fn the_last_lines_are_whole_and_few() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let lines: String = (0..30).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, &lines).unwrap();
        let last = String::from_utf8(last_lines(&path, 0).unwrap()).unwrap();
        assert_eq!(last.lines().next(), Some("line 20"));
        assert_eq!(last.lines().count(), 10);
        let from = lines.find("line 28").unwrap() as u64;
        assert_eq!(last_lines(&path, from).unwrap(), b"line 28\nline 29\n");
        let long = "x".repeat(10_000) + "\nend";
        std::fs::write(&path, long).unwrap();
        assert_eq!(last_lines(&path, 0).unwrap(), b"end");
        std::fs::write(&path, "y".repeat(10_000)).unwrap();
        assert_eq!(
            last_lines(&path, 0).unwrap().len(),
            4096,
            "one long line is shown by its end"
        );
    }
}
