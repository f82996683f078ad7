//! Which files a process has open, by device and inode, as far as the kernel says it without
//! touching them: a dead mount answers nobody.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, statx};

use super::reader::Reader;
use crate::entry::Unread;
use crate::files::{DescriptorInfo, FileId, FileLock};
use crate::pid::Pid;

impl Reader {
    /// What the kernel says of the descriptor `fd` of `pid`, proc_pid_fdinfo(5). `mounts` are those
    /// of the process.
    pub fn descriptor(
        &mut self,
        pid: Pid,
        fd: i32,
        mounts: &Mounts,
    ) -> Result<DescriptorInfo, Unread> {
        self.read(pid, &format!("fdinfo/{fd}"))?;
        let info = parse_fdinfo(&self.bytes);
        let file = match (info.inode, info.mount.and_then(|id| mounts.device_of(id))) {
            (Some(inode), Some(device)) => Some(FileId { device, inode }),
            _ => None,
        };
        Ok(DescriptorInfo {
            file,
            locked: info.locked,
        })
    }

    /// The files that `pid` has mapped, each once, with their paths, proc_pid_maps(5).
    pub fn mappings(&mut self, pid: Pid) -> Result<Vec<(FileId, PathBuf)>, Unread> {
        self.read(pid, "maps")?;
        let mut found: Vec<(FileId, PathBuf)> = Vec::new();
        for line in self.bytes.split(|&byte| byte == b'\n') {
            if let Some((file, path)) = parse_mapping(line)
                && found.iter().all(|(known, _)| *known != file)
            {
                found.push((file, path));
            }
        }
        Ok(found)
    }

    /// Its root directory.
    pub fn root(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.link(pid, "root")
    }

    /// The mount namespace of `pid`, by a word: processes with the same one see the same mounts.
    pub fn mount_space(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.link(pid, "ns/mnt")
    }

    /// The mounts that `pid` sees.
    pub fn mounts(&mut self, pid: Pid) -> Result<Mounts, Unread> {
        self.read(pid, "mountinfo")?;
        Ok(Mounts::parse(&self.bytes))
    }

    /// The file behind the link `cwd`, `root` or `exe` of `pid`. This looks at the file itself, so
    /// it is only for those on a mount that is known to answer.
    pub fn linked_file(&mut self, pid: Pid, link: &str) -> Result<FileId, Unread> {
        self.behind(pid, link).map_err(|error| Unread::of(&error))
    }

    fn behind(&mut self, pid: Pid, link: &str) -> io::Result<FileId> {
        let path = format!("/proc/{pid}/{link}");
        let flags = AtFlags::STATX_DONT_SYNC;
        let stat = statx(CWD, path.as_str(), flags, StatxFlags::INO)?;
        Ok(FileId {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
        })
    }
}

/// The mounted file systems, by the numbers that descriptors name them by.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    devices: HashMap<u64, (u32, u32)>,
    points: Vec<(PathBuf, (u32, u32))>,
}

impl Mounts {
    /// The device that the file system below which `path` lies is on.
    pub fn device_at(&self, path: &Path) -> Option<(u32, u32)> {
        let mut best: Option<(usize, (u32, u32))> = None;
        for (point, device) in &self.points {
            let length = point.as_os_str().len();
            // Of mounts on one another the last one is seen.
            if path.starts_with(point) && best.is_none_or(|(longest, _)| length >= longest) {
                best = Some((length, *device));
            }
        }
        best.map(|(_, device)| device)
    }

    fn device_of(&self, id: u64) -> Option<(u32, u32)> {
        self.devices.get(&id).copied()
    }

    /// Reads a mountinfo, proc_pid_mountinfo(5).
    fn parse(text: &[u8]) -> Mounts {
        let mut mounts = Mounts::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b' ');
            let mut next = || fields.next();
            let (Some(id), _, Some(device), _, Some(point)) =
                (next(), next(), next(), next(), next())
            else {
                continue;
            };
            let number = str::from_utf8(id).ok().and_then(|id| id.parse().ok());
            if let (Some(id), Some(device)) = (number, parse_device(device, 10)) {
                mounts.devices.insert(id, device);
                let point = PathBuf::from(OsString::from_vec(unescape(point)));
                mounts.points.push((point, device));
            }
        }
        mounts
    }
}

/// The file `path` names, in the numbers in which descriptors are told, and in those of stat(2).
///
/// # Errors
///
/// Those of opening it, which only looks it up.
pub fn file_at(path: &Path) -> io::Result<(FileId, FileId)> {
    use std::os::fd::AsRawFd;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let by_stat = FileId {
        device: (
            rustix::fs::major(stat.st_dev),
            rustix::fs::minor(stat.st_dev),
        ),
        inode: stat.st_ino,
    };
    let mut reader = Reader::new();
    let own = Pid::own();
    let mounts = reader.mounts(own).unwrap_or_default();
    let info = reader.descriptor(own, file.as_raw_fd(), &mounts);
    let by_descriptor = info.ok().and_then(|info| info.file);
    Ok((by_descriptor.unwrap_or(by_stat), by_stat))
}

/// All locks on files that the kernel knows of, proc_locks(5).
///
/// # Errors
///
/// Those of reading the list.
pub fn file_locks() -> io::Result<Vec<FileLock>> {
    let mut locks = Vec::new();
    for _ in 0..READINGS {
        let text = read_list("/proc/locks")?;
        let before = locks.len();
        for line in text.split(|&byte| byte == b'\n') {
            let lock = str::from_utf8(line).ok().and_then(parse_lock);
            locks.extend(lock.filter(|lock| !locks.contains(lock)));
        }
        if text.len() < PIECE || locks.len() == before {
            break;
        }
    }
    Ok(locks)
}

/// How often a list of more than one piece is read for entries that were passed over.
const READINGS: usize = 4;

/// The most that the kernel gives of a list in one read: what fits its own buffer.
const PIECE: usize = 4096;

/// Reads a list of the kernel's, which goes on at an entry's number from one read to the next: where
/// an earlier one is gone by then, one is passed over. So the first read takes a whole piece; the
/// standard library's first one takes 32 bytes.
pub(super) fn read_list(path: &str) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut text = Vec::new();
    let mut piece = vec![0; 4 * PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(text),
            Ok(length) => text.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// `1: FLOCK  ADVISORY  WRITE 10256 fe:00:382078 0 EOF`; one that waits has `->` as second field.
fn parse_lock(line: &str) -> Option<FileLock> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if fields.next()? == "->" {
        return None;
    }
    let pid: i64 = fields.nth(2)?.parse().ok()?;
    let (device, inode) = fields.next()?.rsplit_once(':')?;
    Some(FileLock {
        pid: Pid::new(pid),
        file: FileId {
            device: parse_device(device.as_bytes(), 16)?,
            inode: inode.parse().ok()?,
        },
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct FdInfo {
    inode: Option<u64>,
    mount: Option<u64>,
    locked: bool,
}

fn parse_fdinfo(text: &[u8]) -> FdInfo {
    let mut info = FdInfo::default();
    for line in text.split(|&byte| byte == b'\n') {
        let Some((key, value)) = str::from_utf8(line)
            .ok()
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        let number = || value.trim().parse().ok();
        match key {
            "ino" => info.inode = number(),
            "mnt_id" => info.mount = number(),
            "lock" => info.locked |= !value.contains("->"),
            _ => {}
        }
    }
    info
}

/// `7f12…-7f12… r-xp 00000000 fe:00 3047 /usr/bin/x`
fn parse_mapping(line: &[u8]) -> Option<(FileId, PathBuf)> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let device = parse_device(fields.nth(3)?, 16)?;
    let inode: u64 = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.next()?.trim_ascii_start();
    // A newline in a name is written as an escape, and nothing else is.
    let path = replace(path, b"\\012", b'\n');
    (inode != 0).then(|| (FileId { device, inode }, OsString::from_vec(path).into()))
}

fn parse_device(text: &[u8], radix: u32) -> Option<(u32, u32)> {
    let (major, minor) = str::from_utf8(text).ok()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, radix).ok();
    Some((number(major)?, number(minor)?))
}

/// A path of mountinfo: blanks, tabs, newlines and backslashes are written as `\NNN`.
fn unescape(text: &[u8]) -> Vec<u8> {
    [
        (b"\\040", b' '),
        (b"\\011", b'\t'),
        (b"\\012", b'\n'),
        (b"\\134", b'\\'),
    ]
    .iter()
    .fold(text.to_vec(), |text, (escape, byte)| {
        replace(&text, escape, *byte)
    })
}

fn replace(text: &[u8], escape: &[u8; 4], byte: u8) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(escape) {
            replaced.push(byte);
            rest = after;
        } else {
            replaced.push(first);
            rest = tail;
        }
    }
    replaced
}

/// `path` with its links resolved, as the kernel names it in its tables. The file is only looked
/// up, not opened.
///
/// # Errors
///
/// Those of looking it up.
pub fn kernel_path(path: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_while_others_come_and_go() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| fs::File::create(dir.path().join(name)).unwrap();
        let others: Vec<fs::File> = (0..8).map(|n| file(&n.to_string())).collect();
        let held = file("held");
        held.lock().unwrap();
        let (by_descriptor, _) = file_at(&dir.path().join("held")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    others.iter().for_each(|other| other.lock().unwrap());
                    others.iter().for_each(|other| other.unlock().unwrap());
                }
            });
            let missed = (0..2000).filter(|_| {
                let locks = file_locks().unwrap();
                !locks.iter().any(|lock| lock.file == by_descriptor)
            });
            let missed = missed.count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(missed, 0);
        });
    }

    #[test]
    fn an_open_file_is_told_by_device_and_inode() {
        use std::os::fd::AsRawFd;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a file");
        let file = fs::File::create(&path).unwrap();
        let (by_descriptor, by_stat) = file_at(&path).unwrap();
        let mut reader = Reader::new();
        let mounts = reader.mounts(Pid::own()).unwrap();
        let info = |reader: &mut Reader| {
            reader
                .descriptor(Pid::own(), file.as_raw_fd(), &mounts)
                .unwrap()
        };
        assert_eq!(info(&mut reader).file, Some(by_descriptor));
        assert_eq!(by_descriptor.inode, by_stat.inode);
        assert!(!info(&mut reader).locked);
        file.lock().unwrap();
        assert!(info(&mut reader).locked);
        let own = |lock: &FileLock| lock.file == by_descriptor && lock.pid == Some(Pid::own());
        assert!(file_locks().unwrap().iter().any(own));
        assert_eq!(mounts.device_at(&path), Some(by_descriptor.device));
    }

    #[test]
    fn the_executable_is_among_the_mappings() {
        let exe = std::env::current_exe().unwrap();
        let (exe, _) = file_at(&exe).unwrap();
        let maps = Reader::new().mappings(Pid::own()).unwrap();
        assert!(maps.iter().any(|(file, _)| *file == exe));
    }

    #[test]
    fn lines_of_the_kernel() {
        let lock = parse_lock("1: POSIX  ADVISORY  WRITE 10256 fe:00:382078 0 EOF").unwrap();
        assert_eq!(
            (lock.pid, lock.file.device, lock.file.inode),
            (Pid::new(10256), (254, 0), 382_078)
        );
        assert_eq!(
            parse_lock("1: -> FLOCK  ADVISORY  WRITE 10 fe:00:3 0 EOF"),
            None
        );
        let ofd = parse_lock("2: OFDLCK ADVISORY  WRITE -1 00:2a:3 0 EOF").unwrap();
        assert_eq!(ofd.pid, None);
        assert_eq!(parse_lock(""), None);
        let (file, path) =
            parse_mapping(b"7f00-7f01 r--p 00000000 fe:01 77                 /a b\\012c (deleted)")
                .unwrap();
        assert_eq!((file.device, file.inode), ((254, 1), 77));
        assert_eq!(path, Path::new("/a b\nc (deleted)"));
        assert_eq!(
            parse_mapping(b"7f00-7f01 rw-p 00000000 00:00 0 [heap]"),
            None
        );
        let mounts = Mounts::parse(b"24 1 0:6 / /dev rw - devtmpfs d rw\n30 24 0:21 / /a\\040b rw - x y rw\n31 1 8:1 / / rw\n");
        assert_eq!(mounts.device_at(Path::new("/a b/c")), Some((0, 21)));
        assert_eq!(mounts.device_at(Path::new("/a")), Some((8, 1)));
        assert_eq!(mounts.device_of(24), Some((0, 6)));
    }
}
