//! The process table, read by `sysctl(3)` and `proc_pidinfo`.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::libc;
use rustix::io::Errno;

use super::super::PipeEnd;
use super::super::strings;
use super::super::xnu::kinfo::{self, Kinfo};
use super::super::xnu::{fdinfo, procargs};
use super::{libproc, sysctl};
use crate::entry::{Entry, Unread};
use crate::pid::Pid;

/// `ARG_MAX` of macOS, for where the kernel does not say.
const ARG_MAX: usize = 1024 * 1024;

/// Enough for every description of one descriptor (a socket's is the longest, below 1 KiB, and a
/// vnode's has a path).
const DESCRIPTION: usize = 4096;

/// Reads processes, one at a time, into buffers that are used again and again.
///
/// Bytes stay bytes, and each answer that could not be had says why.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// A reader of the live table.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// The pids of all processes that can be seen, in no order.
    ///
    /// # Errors
    ///
    /// Those of sysctl(3).
    pub fn pids(&self) -> io::Result<Vec<Pid>> {
        let mut name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_ALL, 0];
        let mut bytes = Vec::new();
        loop {
            // Room for those that start between the two calls.
            let size = sysctl::size(&mut name)? + 64 * kinfo::SIZE;
            match sysctl::read(&mut name, size, &mut bytes) {
                Ok(()) => break,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOMEM) => (),
                Err(error) => return Err(error),
            }
        }
        let processes = bytes.chunks_exact(kinfo::SIZE);
        Ok(processes.filter_map(kinfo::pid).collect())
    }

    /// What the table says of `pid`.
    pub fn entry(&mut self, pid: Pid) -> Result<Entry, Unread> {
        let mut entry = self.kinfo(pid)?.entry;
        // The table leaves the session out, and a zombie has none.
        if let Ok(sid) = rustix::process::getsid(Some(pid.raw())) {
            entry.sid = sid.as_raw_nonzero().get();
        }
        Ok(entry)
    }

    /// Whether the process of `entry` has ended. Only a whole process becomes a zombie here.
    pub fn is_dead(&mut self, entry: &Entry) -> bool {
        entry.state.is_zombie()
    }

    /// Its whole argument list, as the kernel has it, however long. Empty for a zombie.
    pub fn argv(&mut self, pid: Pid) -> Result<Vec<Vec<u8>>, Unread> {
        self.raw_argv(pid).map(strings::split)
    }

    /// The bytes of its argument list, each argument ended by NUL, in this reader's own buffer.
    pub fn raw_argv(&mut self, pid: Pid) -> Result<&[u8], Unread> {
        let argv = self.lists(pid)?.argv;
        self.range(argv)
    }

    /// The environment it was started with, as `NAME=VALUE`. Empty where the program is protected.
    pub fn environ(&mut self, pid: Pid) -> Result<Vec<Vec<u8>>, Unread> {
        let environ = self.lists(pid)?.environ;
        self.range(environ).map(strings::split)
    }

    /// Its working directory.
    pub fn cwd(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.bytes.clear();
        self.bytes.resize(fdinfo::VNODE_PATHS, 0);
        libproc::process(pid, libc::PROC_PIDVNODEPATHINFO, &mut self.bytes)
            .map_err(|error| Unread::of(&error))?;
        fdinfo::working_directory(&self.bytes)
            .filter(|path| !path.is_empty())
            .map(to_path)
            .ok_or(Unread::Malformed)
    }

    /// The file it executes.
    pub fn exe(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.bytes.clear();
        self.bytes
            .resize(libc::PROC_PIDPATHINFO_MAXSIZE as usize, 0);
        let length = libproc::path(pid, &mut self.bytes).map_err(|error| {
            match Errno::from_io_error(&error) {
                // The file is gone, which says nothing about the process.
                Some(errno @ Errno::NOENT) => Unread::Errno(errno.raw_os_error()),
                _ => Unread::of(&error),
            }
        })?;
        self.range(0..length).map(to_path)
    }

    /// Its effective user id.
    pub fn uid(&mut self, pid: Pid) -> Result<u32, Unread> {
        self.kinfo(pid).map(|kinfo| kinfo.uid)
    }

    /// What each of its open descriptors is: a path, or `pipe:[HANDLE]` and `socket:[HANDLE]` by
    /// the kernel's handle, which both ends of a pipe share. Nothing is opened or looked up, so no
    /// dead mount can hold this up.
    pub fn descriptors(&mut self, pid: Pid) -> Result<Vec<(i32, PathBuf)>, Unread> {
        let size = self.list_descriptors(pid)?;
        let mut description = [0; DESCRIPTION];
        let mut found = Vec::new();
        for (fd, kind) in fdinfo::descriptors(self.bytes.get(..size).unwrap_or_default()) {
            // One that was closed meanwhile is no descriptor any more.
            if let Some(target) = target(pid, fd, kind, &mut description) {
                found.push((fd, target));
            }
        }
        Ok(found)
    }

    /// Its children, where the kernel says them for certain, which here only the whole table does:
    /// never.
    pub fn children(&mut self, _pid: Pid) -> Option<Vec<Pid>> {
        None
    }

    /// Those of its open descriptors that are ends of pipes without a name.
    pub fn pipe_ends(&mut self, pid: Pid) -> Result<Vec<PipeEnd>, Unread> {
        let size = self.list_descriptors(pid)?;
        let mut description = [0; DESCRIPTION];
        let mut found = Vec::new();
        for (fd, kind) in fdinfo::descriptors(self.bytes.get(..size).unwrap_or_default()) {
            if kind != fdinfo::Kind::Pipe {
                continue;
            }
            let Some(pipe) = target(pid, fd, kind, &mut description) else {
                continue;
            };
            let (reads, writes) = fdinfo::directions(&description);
            found.push(PipeEnd {
                fd,
                pipe,
                reads,
                writes,
            });
        }
        Ok(found)
    }

    /// Fills the buffer with number and kind of each descriptor of `pid`; how many bytes they are.
    fn list_descriptors(&mut self, pid: Pid) -> Result<usize, Unread> {
        self.bytes.clear();
        self.bytes.resize(DESCRIPTION, 0);
        loop {
            let size = libproc::process(pid, libc::PROC_PIDLISTFDS, &mut self.bytes)
                .map_err(|error| Unread::of(&error))?;
            // A full buffer may have cut the list.
            if size < self.bytes.len() {
                return Ok(size);
            }
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    fn kinfo(&mut self, pid: Pid) -> Result<Kinfo, Unread> {
        let mut name = [
            libc::CTL_KERN,
            libc::KERN_PROC,
            libc::KERN_PROC_PID,
            pid.get(),
        ];
        sysctl::read(&mut name, kinfo::SIZE, &mut self.bytes)
            .map_err(|error| Unread::of(&error))?;
        // No such process: no error, and no bytes.
        if self.bytes.is_empty() {
            return Err(Unread::Gone);
        }
        kinfo::parse(&self.bytes)
            .filter(|kinfo| kinfo.entry.pid == pid)
            .ok_or(Unread::Malformed)
    }

    /// Fills the buffer with the strings of `pid`, and finds the lists in it.
    fn lists(&mut self, pid: Pid) -> Result<procargs::Lists, Unread> {
        let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid.get()];
        match sysctl::read(&mut name, arg_max(), &mut self.bytes) {
            Ok(()) => procargs::parse(&self.bytes).ok_or(Unread::Malformed),
            Err(error) => self.why_no_lists(pid, &error),
        }
    }

    /// The kernel says EINVAL alike for no process, a zombie, and one of another user's.
    fn why_no_lists(&mut self, pid: Pid, error: &io::Error) -> Result<procargs::Lists, Unread> {
        let Kinfo { entry, uid } = self.kinfo(pid)?;
        if entry.state.is_zombie() {
            return Ok(procargs::Lists {
                argv: 0..0,
                environ: 0..0,
            });
        }
        if uid != rustix::process::geteuid().as_raw() {
            return Err(Unread::Denied);
        }
        Err(Unread::of(error))
    }

    fn range(&self, range: Range<usize>) -> Result<&[u8], Unread> {
        self.bytes.get(range).ok_or(Unread::Malformed)
    }
}

/// What the descriptor `fd` of `pid` is, in one word.
fn target(pid: Pid, fd: i32, kind: fdinfo::Kind, buffer: &mut [u8]) -> Option<PathBuf> {
    let flavor = match kind {
        fdinfo::Kind::Vnode => libproc::FD_VNODE_PATH,
        fdinfo::Kind::Pipe => libproc::FD_PIPE,
        fdinfo::Kind::Socket => libproc::FD_SOCKET,
        fdinfo::Kind::Other(kind) => return Some(format!("other:[{kind}]").into()),
    };
    let size = libproc::descriptor(pid, fd, flavor, buffer).ok()?;
    let bytes = buffer.get(..size)?;
    match kind {
        fdinfo::Kind::Vnode => fdinfo::vnode_path(bytes).map(to_path),
        fdinfo::Kind::Pipe => fdinfo::pipe(bytes).map(|handle| format!("pipe:[{handle}]").into()),
        _ => fdinfo::socket(bytes).map(|handle| format!("socket:[{handle}]").into()),
    }
}

/// The size of the largest argument list, `sysctl KERN_ARGMAX`.
fn arg_max() -> usize {
    let mut bytes = Vec::new();
    let read = sysctl::read(
        &mut [libc::CTL_KERN, libc::KERN_ARGMAX],
        size_of::<i32>(),
        &mut bytes,
    );
    let number = read.ok().and_then(|()| bytes.as_slice().try_into().ok());
    number
        .and_then(|bytes| usize::try_from(i32::from_ne_bytes(bytes)).ok())
        .unwrap_or(ARG_MAX)
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
