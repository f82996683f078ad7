//! `--follow`: the lines appended to a file, under whatever file has the name.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::points::{Points, kind};
use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;
use crate::sink::Mark;
use crate::split::{CHUNK, Splitter};

/// How often a FIFO without a writer is looked at, where it could not be opened for both.
const UNNOTIFIED: Duration = Duration::from_millis(20);

/// Where to begin in a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With its first line.
    Start,
    /// With what is appended from now on; a line that has begun before counts.
    End,
    /// With this byte.
    Byte(u64),
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<From, String> {
        match text {
            "start" => Ok(From::Start),
            "end" => Ok(From::End),
            number => records::number::parse(number)
                .map(From::Byte)
                .map_err(|why| format!("neither start, end nor the number of a byte: {why}")),
        }
    }
}

/// How much of what was read last is compared with what the file has there now. It is more than
/// most lines have, so that what was written anew is hardly ever alike in it.
const BEFORE: usize = 256;

/// A file that is followed.
pub struct Follow {
    path: PathBuf,
    /// Where to begin in the file that is there at the start.
    from: From,
    max_line: usize,
    points: Points,
    file: Option<File>,
    /// How many files had the name before.
    generation: u32,
    /// Whether the name has been looked up yet: a file that appears later is read from its start.
    looked: bool,
    /// The name may mean another file by now.
    doubted: bool,
}

struct File {
    fd: OwnedFd,
    device: u64,
    inode: u64,
    is_stream: bool,
    has_writer: bool,
    lines: Splitter,
    /// What is in the file right before where it was read to.
    before: Vec<u8>,
}

/// What reading a file has come to.
enum Read {
    /// There may be more.
    More,
    /// That is all at the moment.
    AtEnd,
    /// There has been enough.
    Enough,
}

impl Follow {
    /// Follows the file that `path` names, and those that will have the name later; or only looks
    /// `once`.
    pub fn new(path: PathBuf, from: From, max_line: usize, once: bool) -> Follow {
        Follow {
            path,
            from,
            max_line,
            points: Points::new(once),
            file: None,
            generation: 0,
            looked: false,
            doubted: false,
        }
    }

    /// Arms the watch: on the name first, then on the file that has it.
    fn arm(&mut self) -> Result<(), String> {
        self.points.begin();
        self.points.arm(&self.path);
        let opened = match &self.file {
            None => self.open(),
            Some(_) => Ok(()),
        };
        if let Some(file) = &self.file
            && !file.is_stream
        {
            self.points.arm_content(file.fd.as_fd(), &self.path);
        }
        self.points.end();
        self.looked = true;
        opened
    }

    fn open(&mut self) -> Result<(), String> {
        let cannot = |errno: Errno| format!("cannot follow {}: {errno}", self.path.display());
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let open = |access| rustix::fs::open(&self.path, access | flags, Mode::empty());
        let mut fd = match open(OFlags::RDONLY) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            // It may become readable, as it may come to be.
            Err(Errno::ACCESS) if self.looked => return Ok(()),
            Err(errno) => return Err(cannot(errno)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(cannot)?;
        let is_stream = match kind(&stat) {
            FileType::RegularFile => false,
            FileType::Directory => return Err(cannot(Errno::ISDIR)),
            FileType::Fifo => {
                // Open for writing too, a FIFO does not come to an end when its last writer
                // leaves, which would wake the wait without end, fifo(7).
                if let Ok(both) = open(OFlags::RDWR) {
                    fd = both;
                }
                true
            }
            _ => true,
        };
        let position = match self.from {
            _ if is_stream || self.looked => 0,
            From::Start => 0,
            From::End => line_start(&fd, size(&stat), self.max_line),
            // What is shorter now has been truncated or replaced.
            From::Byte(byte) if byte <= size(&stat) => byte,
            From::Byte(_) => 0,
        };
        let mut before = vec![0; BEFORE.min(usize::try_from(position).unwrap_or(BEFORE))];
        let from = position - before.len() as u64;
        if rustix::io::pread(&fd, &mut before, from) != Ok(before.len()) {
            // It is being truncated.
            before.clear();
        }
        self.file = Some(File {
            fd,
            device: device(&stat),
            inode: stat.st_ino,
            is_stream,
            has_writer: true,
            lines: Splitter::new(self.max_line, position),
            before,
        });
        Ok(())
    }

    /// Whether the name means another file now than the one that is open.
    fn is_replaced(&self) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        rustix::fs::stat(&self.path)
            .is_ok_and(|stat| (device(&stat), stat.st_ino) != (file.device, file.inode))
    }

    /// Reads on in the open file.
    fn read(&mut self, intake: &mut Intake) -> Result<Read, Errno> {
        let Some(file) = &mut self.file else {
            return Ok(Read::AtEnd);
        };
        let length = file.read()?;
        let generation = self.generation;
        while let Some(piece) = file.lines.next_piece() {
            if !intake.piece(&piece, generation) {
                return Ok(Read::Enough);
            }
        }
        Ok(if length > 0 { Read::More } else { Read::AtEnd })
    }

    /// The file at its end is another one's predecessor: its last line will not be completed.
    fn leave(&mut self, intake: &mut Intake) {
        if let Some(mut file) = self.file.take() {
            if let Some(piece) = file.lines.rest() {
                intake.piece(&piece, self.generation);
            }
            self.generation += 1;
        }
    }
}

impl File {
    /// Reads once; 0 where there is nothing at the moment.
    fn read(&mut self) -> Result<usize, Errno> {
        let read = match self.is_stream {
            true => rustix::io::read(&self.fd, self.lines.room()),
            false => match self.read_on() {
                Ok(None) => {
                    // What comes now is new, and the line that had begun is gone.
                    self.lines.restart();
                    self.before.clear();
                    return self.read();
                }
                Ok(Some(length)) => Ok(length),
                Err(errno) => Err(errno),
            },
        };
        match read {
            Ok(length) => {
                self.has_writer = length > 0 || !self.is_stream;
                self.lines.filled(length);
                Ok(length)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno),
        }
    }

    /// Reads from where the last read ended, and what is right before that, too; `None` where that
    /// is not what was there: the file has been truncated, and perhaps written to again. (Its size
    /// alone would not tell: `echo x > file` leaves it as it was, or larger.)
    fn read_on(&mut self) -> Result<Option<usize>, Errno> {
        let position = self.lines.read_to();
        let known = self.before.len();
        if position > 0 && known == 0 && size(&rustix::fs::fstat(&self.fd)?) < position {
            return Ok(None);
        }
        let mut seen = [0; BEFORE];
        let room = self.lines.room();
        // In one read, so that nothing happens between the one and the other.
        let mut both = [
            IoSliceMut::new(&mut seen[..known]),
            IoSliceMut::new(&mut *room),
        ];
        let read = rustix::io::preadv(&self.fd, &mut both, position - known as u64)?;
        if read < known || seen[..known] != self.before {
            return Ok(None);
        }
        let new = &room[..read - known];
        let kept = known.min(BEFORE - new.len().min(BEFORE));
        self.before.drain(..known - kept);
        self.before
            .extend_from_slice(&new[new.len().saturating_sub(BEFORE)..]);
        Ok(Some(new.len()))
    }
}

impl Source for Follow {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        let failed = |why| Turn::failed(End::SourceError, why);
        if self.points.is_stale() {
            if let Err(why) = self.arm() {
                return failed(why);
            }
            self.doubted = true;
        }
        intake.armed();
        let name = self.path.display().to_string();
        let cannot = |errno: Errno| failed(format!("cannot read {name}: {errno}"));
        match self.read(intake) {
            Ok(Read::More) => return Turn::More,
            Ok(Read::Enough) => return Turn::Idle,
            Ok(Read::AtEnd) => {}
            Err(errno) => return cannot(errno),
        }
        // Only at the end of one file it matters whether there is another.
        if !std::mem::take(&mut self.doubted) || !self.is_replaced() {
            return Turn::Idle;
        }
        // Whoever wrote to the old file before it was replaced has done so by now.
        match self.read(intake) {
            Ok(Read::More) => self.doubted = true,
            Ok(Read::Enough) => return Turn::Idle,
            Ok(Read::AtEnd) => {
                self.leave(intake);
                self.points.look_again();
            }
            Err(errno) => return cannot(errno),
        }
        Turn::More
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        self.points.wakers(wakers);
        if let Some(file) = &self.file
            && file.is_stream
            && file.has_writer
        {
            wakers.readable(file.fd.as_fd());
        }
    }

    fn due(&self) -> Option<Instant> {
        let stream = self.file.as_ref().filter(|file| !file.has_writer);
        let stream = stream.map(|_| Instant::now() + UNNOTIFIED);
        [self.points.due(), stream].into_iter().flatten().min()
    }

    fn look_again(&mut self) {
        self.points.look_again();
    }

    fn wind_down(&mut self) {
        self.points.release();
    }

    fn leave(&mut self) {
        self.points.leave();
    }

    fn offset(&self) -> Option<Mark> {
        let offset = self.file.as_ref().map_or(0, |file| file.lines.position());
        Some(Mark {
            generation: self.generation,
            offset,
        })
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

fn device(stat: &Stat) -> u64 {
    // The type differs between systems.
    #[allow(clippy::unnecessary_cast)]
    let device = stat.st_dev as u64;
    device
}

/// Where the line begins that the byte at `end` belongs to, or the next one; no further back than
/// a line may be long.
fn line_start(fd: &OwnedFd, end: u64, max_line: usize) -> u64 {
    let mut at = end;
    let mut chunk = vec![0; CHUNK];
    while at > 0 && end - at <= max_line as u64 {
        let length = usize::try_from(at).map_or(CHUNK, |at| at.min(CHUNK));
        let from = at - length as u64;
        match rustix::io::pread(fd, &mut chunk[..length], from) {
            Ok(read) if read == length => {}
            // It is being truncated; what comes then is new.
            _ => return end,
        }
        if let Some(newline) = memchr::memrchr(b'\n', &chunk[..length]) {
            return from + newline as u64 + 1;
        }
        at = from;
    }
    at
}
