//! Which files a process has open, by device and inode, as `proc_pidfdinfo` says it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::super::xnu::fdinfo;
use super::libproc;
use super::reader::Reader;
use crate::entry::Unread;
use crate::files::{DescriptorInfo, FileId, FileLock, SocketEnd};
use crate::pid::Pid;

/// Enough for the description of a vnode with its path.
const DESCRIPTION: usize = 4096;

/// The mounted file systems. Devices are told with the inode here, so there is nothing to know.
#[derive(Clone, Debug, Default)]
pub struct Mounts;

impl Mounts {
    /// The device that the file system below which `path` lies is on: not to be had without
    /// touching it.
    pub fn device_at(&self, _path: &Path) -> Option<(u32, u32)> {
        None
    }
}

impl Reader {
    /// What the kernel says of the descriptor `fd` of `pid`. It does not tell of locks.
    pub fn descriptor(
        &mut self,
        pid: Pid,
        fd: i32,
        _mounts: &Mounts,
    ) -> Result<DescriptorInfo, Unread> {
        let mut bytes = [0; DESCRIPTION];
        let size = libproc::descriptor(pid, fd, libproc::FD_VNODE_PATH, &mut bytes)
            .map_err(|error| Unread::of(&error))?;
        let file = fdinfo::vnode_file(bytes.get(..size).unwrap_or_default());
        Ok(DescriptorInfo {
            file: file.map(|(device, inode)| file_id(device, inode)),
            locked: false,
        })
    }

    /// The files that `pid` has mapped: not read on this system.
    pub fn mappings(&mut self, _pid: Pid) -> Result<Vec<(FileId, PathBuf)>, Unread> {
        Ok(Vec::new())
    }

    /// Its root directory: not read on this system, where next to none has one of its own.
    pub fn root(&mut self, _pid: Pid) -> Result<PathBuf, Unread> {
        Ok(PathBuf::from("/"))
    }

    /// The mount namespace of `pid`: there is but one here.
    pub fn mount_space(&mut self, _pid: Pid) -> Result<PathBuf, Unread> {
        Ok(PathBuf::new())
    }

    /// The mounts that `pid` sees.
    pub fn mounts(&mut self, _pid: Pid) -> Result<Mounts, Unread> {
        Ok(Mounts)
    }

    /// The file behind the link `cwd`, `root` or `exe` of `pid`: there are no such links.
    pub fn linked_file(&mut self, _pid: Pid, _link: &str) -> Result<FileId, Unread> {
        Err(Unread::Errno(libc::ENOTSUP))
    }
}

/// The file `path` names, in the numbers in which descriptors are told, and in those of stat(2),
/// which are the same here.
///
/// # Errors
///
/// Those of stat(2).
pub fn file_at(path: &Path) -> io::Result<(FileId, FileId)> {
    let stat = std::fs::metadata(path)?;
    // `dev_t` has 32 bits.
    let file = file_id(stat.dev() as u32, stat.ino());
    Ok((file, file))
}

fn file_id(device: u32, inode: u64) -> FileId {
    FileId {
        device: (device >> 24, device & 0xff_ffff),
        inode,
    }
}

/// `path` with its links resolved, as the kernel names it in its tables.
///
/// # Errors
///
/// Those of looking it up.
pub fn kernel_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// The locks on files: there is no such list here.
///
/// # Errors
///
/// Always.
pub fn file_locks() -> io::Result<Vec<FileLock>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The sockets bound to `path`: not to be had on this system without its private interfaces.
///
/// # Errors
///
/// Always.
pub fn socket_ends(_path: &Path) -> io::Result<Vec<SocketEnd>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The sockets that listen on a port: not to be had on this system without its private interfaces.
///
/// # Errors
///
/// Always.
pub fn tcp_listeners(_port: u16) -> io::Result<Vec<u64>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether processes are hidden from the table: they are not on this system.
pub fn concealment() -> Option<String> {
    None
}

/// The name of the terminal with this device number, below `/dev`; `None` for no terminal.
pub fn terminal_name(tty: u64) -> Option<String> {
    // NODEV is -1.
    if tty == 0 || u32::try_from(tty).is_ok_and(|tty| tty == u32::MAX) {
        return None;
    }
    let entries = std::fs::read_dir("/dev").ok()?;
    entries.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_terminal = name.starts_with("tty") || name == "console";
        (is_terminal && entry.metadata().ok()?.rdev() == tty).then_some(name)
    })
}

/// The name, as of [`terminal_name`], of the terminal that is called `name`.
pub fn terminal_called(name: &Path) -> String {
    let path = Path::new("/dev").join(name);
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let name = path.strip_prefix("/dev").unwrap_or(&path);
    name.to_string_lossy().into_owned()
}
