//! Files that are created or trusted: locks, markers, records, announcements.
//!
//! Other users may write in the directories where such files lie, so a name is
//! never enough. What is opened is no symbolic link, a regular file, owned by
//! this user or root, and writable by nobody else; what is new is 0600 and
//! appears whole, or not at all.
//!
//! All errors name the file.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::deadline::Deadline;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read. It must exist.
    Read,
    /// To be read and rewritten in place. It is made if it does not exist.
    ReadWrite,
    /// To be read, and appended to with `O_APPEND`. It is made if it does not
    /// exist.
    Append,
    /// To be written for the first time: it must not exist.
    New,
}

impl Access {
    fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY,
            Self::ReadWrite | Self::New => OFlags::RDWR,
            Self::Append => OFlags::RDWR | OFlags::APPEND,
        }
    }
}

/// Opens a file that can be trusted, or makes it, 0600 whatever the umask.
/// Never waits, whatever is there (a FIFO), and never follows a link in the
/// last part of `path`. The descriptor is close-on-exec.
///
/// # Errors
/// Those of open(2); of kind `PermissionDenied` where the file must not be
/// trusted, and why.
pub fn open_trusted(path: &Path, access: Access) -> io::Result<File> {
    let flags =
        access.flags() | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Between the two steps somebody else may make the file, or unlink it.
    for _ in 0..16 {
        if access != Access::New {
            match rustix::fs::open(path, flags, Mode::empty()) {
                Ok(fd) => return check_open(path, fd),
                Err(Errno::NOENT) if access != Access::Read => {}
                Err(error) => return Err(open_error(path, error)),
            }
        }
        match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, PRIVATE) {
            Ok(fd) => {
                rustix::fs::fchmod(&fd, PRIVATE).map_err(|error| at(path, error.into()))?;
                return check_open(path, fd);
            }
            Err(Errno::EXIST) if access != Access::New => {}
            Err(error) => return Err(open_error(path, error)),
        }
    }
    Err(untrusted(path, "comes and goes"))
}

/// Read and write for the owner alone.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

fn check_open(path: &Path, fd: OwnedFd) -> io::Result<File> {
    let stat = rustix::fs::fstat(&fd).map_err(|error| at(path, error.into()))?;
    check(path, &stat)?;
    // It was for opening alone; a command may get this descriptor.
    rustix::fs::fcntl_getfl(&fd)
        .and_then(|flags| rustix::fs::fcntl_setfl(&fd, flags - OFlags::NONBLOCK))
        .map_err(|error| at(path, error.into()))?;
    Ok(File::from(fd))
}

const WRITABLE: &str = "can be written by other users";

fn check(path: &Path, stat: &Stat) -> io::Result<()> {
    let this_user = rustix::process::geteuid().as_raw();
    match distrust(stat.st_mode as _, stat.st_uid, this_user) {
        // As under umask 002, where a redirection of the shell's makes it so.
        Some(why @ WRITABLE) => Err(untrusted(path, &format!("{why} (chmod go-w ends that)"))),
        Some(why) => Err(untrusted(path, why)),
        None => Ok(()),
    }
}

/// Why a file of this mode and owner must not be trusted; `None` if it may be.
fn distrust(mode: u32, owner: u32, this_user: u32) -> Option<&'static str> {
    match FileType::from_raw_mode(mode as _) {
        FileType::RegularFile => {}
        FileType::Symlink => return Some("is a symbolic link"),
        FileType::Directory => return Some("is a directory"),
        _ => return Some("is not a regular file"),
    }
    if owner != this_user && owner != 0 {
        return Some("is owned by another user");
    }
    (mode & 0o022 != 0).then_some(WRITABLE)
}

fn open_error(path: &Path, error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::MLINK => untrusted(path, "is a symbolic link"),
        // A FIFO without a reader, a socket, a device without a driver.
        Errno::NXIO | Errno::OPNOTSUPP => untrusted(path, "is not a regular file"),
        error => at(path, error.into()),
    }
}

fn untrusted(path: &Path, why: &str) -> io::Error {
    let message = format!("{}: {why}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// `error` with the file's name before its message, of the same kind.
fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Reads a trusted file of at most `max` bytes.
///
/// # Errors
/// As [`open_trusted`]; the file is longer than `max`.
pub fn read_trusted(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    read_to_end(&open_trusted(path, Access::Read)?, path, max)
}

/// Reads what is left of an open file, at most `max` bytes. `path` is for the
/// message.
///
/// # Errors
/// Those of read(2); there is more than `max`.
pub fn read_to_end(file: &File, path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| at(path, error))?;
    if bytes.len() > max {
        let message = format!("longer than {max} bytes");
        return Err(at(
            path,
            io::Error::new(io::ErrorKind::FileTooLarge, message),
        ));
    }
    Ok(bytes)
}

/// Puts `bytes` into the file `path`, whole and on the disk, or not at all: a
/// temporary file beside it, fsync, rename, fsync of the folder. What is there
/// already must be a trusted file. Not for files that others lock: those are
/// rewritten in place, see [`lock`].
///
/// # Errors
/// Those of the steps. The old file is untouched then, and the temporary one
/// is removed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| untrusted(path, "is not the name of a file"))?;
    let folder = Folder::of(path)?;
    match rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => check(path, &stat)?,
        Err(Errno::NOENT) => {}
        Err(error) => return Err(at(path, error.into())),
    }
    let temporary = Temporary::new(&folder, path)?;
    let mut file = &temporary.file;
    file.write_all(bytes).map_err(|error| at(path, error))?;
    file.sync_all().map_err(|error| at(path, error))?;
    rustix::fs::renameat(&folder.fd, &temporary.name, &folder.fd, name)
        .map_err(|error| at(path, error.into()))?;
    folder.sync()
}

/// Makes a new file, 0600, with the content `bytes`, on the disk, beside `path`
/// under a name that nobody can guess. Gives it open, with that name, for the
/// caller to lock, link or rename into place.
///
/// # Errors
/// Those of the steps. Nothing is left then.
pub fn make_beside(path: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let folder = Folder::of(path)?;
    let temporary = Temporary::new(&folder, path)?;
    let mut file = &temporary.file;
    file.write_all(bytes).map_err(|error| at(path, error))?;
    file.sync_all().map_err(|error| at(path, error))?;
    temporary.keep().map_err(|error| at(path, error))
}

/// Makes the names in the folder of `path` durable: what was linked, renamed or
/// unlinked there is on the disk afterwards.
///
/// # Errors
/// Those of open(2) and fsync(2).
pub fn sync_folder(path: &Path) -> io::Result<()> {
    Folder::of(path)?.sync()
}

/// An open directory.
struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// The folder that `path` lies in.
    fn of(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
        let path = parent.unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|error| at(path, error.into()))?;
        Ok(Self {
            fd,
            path: path.to_owned(),
        })
    }

    fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.fd) {
            // Not every file system can.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(error) => Err(at(&self.path, error.into())),
        }
    }
}

/// A file under a name that nobody can guess, which is removed when this is
/// dropped, unless it has been renamed.
struct Temporary<'a> {
    folder: &'a Folder,
    name: OsString,
    file: File,
}

impl<'a> Temporary<'a> {
    /// Messages name the file that it is to become, `target`.
    fn new(folder: &'a Folder, target: &Path) -> io::Result<Self> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = OsString::from(format!(".muxutils-{:016x}", unpredictable()));
            match rustix::fs::openat(&folder.fd, &name, flags, PRIVATE) {
                Ok(fd) => {
                    let file = File::from(fd);
                    let temporary = Self { folder, name, file };
                    rustix::fs::fchmod(&temporary.file, PRIVATE)
                        .map_err(|error| at(target, error.into()))?;
                    return Ok(temporary);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(at(target, error.into())),
            }
        }
    }
}

impl Temporary<'_> {
    /// The file and its name, which stays.
    fn keep(mut self) -> io::Result<(File, PathBuf)> {
        let file = self.file.try_clone()?;
        let name = std::mem::take(&mut self.name);
        Ok((file, self.folder.path.join(name)))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After the rename the name is no longer there; an empty one was kept.
        let _ = rustix::fs::unlinkat(&self.folder.fd, &self.name, AtFlags::empty());
    }
}

/// 64 bits that nobody can guess: the standard library's hash keys come from
/// the system's random numbers and differ with every use.
fn unpredictable() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Appends `line` and a newline with a single write, so that lines of several
/// writers never mix. `file` is one that was opened with [`Access::Append`].
///
/// # Errors
/// Those of write(2), with `name` before the message. A line that was written
/// in part (a full disk) is one, too: the part stays.
pub fn append_line(file: &File, name: impl Display, line: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    loop {
        return match rustix::io::write(file, &bytes) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(n) => Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!(
                    "{name}: only {n} of {} bytes could be appended",
                    bytes.len()
                ),
            )),
            Err(Errno::INTR) => continue,
            Err(error) => {
                let error = io::Error::from(error);
                Err(io::Error::new(error.kind(), format!("{name}: {error}")))
            }
        };
    }
}

/// The longest pause between two tries to get a lock: flock(2) has no time
/// limit of its own.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Opens a trusted file, or makes it, and takes its flock(2), waiting for it up
/// to the deadline. The file that is locked is the one that has the name: if it
/// was replaced meanwhile, the new one is opened.
///
/// # Errors
/// As [`open_trusted`]; of kind `TimedOut` at the deadline.
pub fn lock(path: &Path, deadline: Deadline) -> io::Result<LockedFile> {
    let mut pause = Duration::from_millis(1);
    loop {
        let file = open_trusted(path, Access::ReadWrite)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(at(path, error.into())),
            }
            if deadline.passed() {
                let error = io::Error::new(io::ErrorKind::TimedOut, "locked by another process");
                return Err(at(path, error));
            }
            deadline.sleep(pause);
            pause = (pause * 2).min(LOCK_PAUSE);
            if !still_named(path, &file)? {
                break;
            }
        }
        if still_named(path, &file)? {
            let path = path.to_owned();
            return Ok(LockedFile { file, path });
        }
    }
}

/// Whether `path` is still the name of `file`.
///
/// # Errors
/// Those of fstat(2) and lstat(2), except that there is no such name.
pub fn still_named(path: &Path, file: impl AsFd) -> io::Result<bool> {
    let open = rustix::fs::fstat(file).map_err(|error| at(path, error.into()))?;
    match rustix::fs::lstat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(at(path, error.into())),
    }
}

/// A file whose lock this process holds until this is dropped (or, if a child
/// has inherited the descriptor, until that is gone as well).
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    path: PathBuf,
}

impl LockedFile {
    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the descriptor, and with it the lock, to the caller.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The whole content, up to `max` bytes.
    ///
    /// # Errors
    /// Those of read(2); the file is longer than `max`.
    pub fn read(&self, max: usize) -> io::Result<Vec<u8>> {
        let mut file = &self.file;
        file.rewind().map_err(|error| at(&self.path, error))?;
        read_to_end(file, &self.path, max)
    }

    /// Replaces the content in place and puts it on the disk. A crash in
    /// between leaves the file empty or with a part of `bytes`, which a reader
    /// must take as empty.
    ///
    /// # Errors
    /// Those of ftruncate(2), write(2) and fsync(2).
    pub fn rewrite_in_place(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.sync_all())
            .map_err(|error| at(&self.path, error))
    }
}

#[cfg(test)]
mod tests;
