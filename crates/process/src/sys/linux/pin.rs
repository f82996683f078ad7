//! A pidfd: a handle on one process that no recycled number can take over.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    PidfdFlags, Resource, getrlimit, kill_process, pidfd_open, pidfd_send_signal,
};

use super::info;
use crate::exit::Exit;
use crate::handle::{Delivery, OpenError};
use crate::pid::Pid;

/// `PID_FS_MAGIC`: where pidfds live on a file system of their own (Linux 6.9), their inode is the
/// process's for the whole boot. On older kernels all pidfds share one inode. The link text in
/// `/proc/self/fd` does not tell the two apart; fstatfs(2) does.
const PID_FS_MAGIC: u64 = 0x5049_4446;

/// How many descriptors handles leave to others: for a table and what is read below it, for
/// output and a wait.
const SPARE_DESCRIPTORS: u64 = 16;

/// A handle on one process.
#[derive(Debug)]
pub(crate) struct Pin {
    pid: Pid,
    pidfd: Option<OwnedFd>,
}

impl Pin {
    /// Opens a handle on `pid`. Whose handle it is must be read *after* this.
    pub(crate) fn open(pid: Pid) -> Result<Pin, OpenError> {
        let pidfd = match pidfd_open(pid.raw(), PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd).filter(|pidfd| !is_one_of_the_last(pidfd)),
            // No process, or the number of a thread that leads no group (EINVAL, on newer kernels
            // ENOENT).
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(OpenError::Gone),
            // No such call, not allowed by a sandbox, or no descriptor left.
            Err(_) if names_process(pid) => None,
            Err(_) => return Err(OpenError::Gone),
        };
        Ok(Pin { pid, pidfd })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The inode of the process on pidfs, where the kernel has that.
    pub(crate) fn inode(&self) -> Option<u64> {
        let pidfd = self.pidfd.as_ref()?;
        let fs = rustix::fs::fstatfs(pidfd).ok()?;
        if fs.f_type as u64 != PID_FS_MAGIC {
            return None;
        }
        rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
    }

    /// Whether the process, every thread of it, has ended. `None` where that needs a look at the
    /// table, for want of a pidfd.
    pub(crate) fn has_ended(&self) -> Option<bool> {
        let pidfd = self.pidfd.as_ref()?;
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let now = rustix::time::Timespec::default();
        match poll(&mut fds, Some(&now)) {
            Ok(ready) => Some(ready > 0),
            Err(_) => None,
        }
    }

    /// Whether the number is still this process's, be it a zombie's. What was read by number
    /// before this was asked is then of this process. Without a pidfd: whether anything has it.
    pub(crate) fn holds_number(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => is_uncollected(pidfd),
            None => names_anything(self.pid),
        }
    }

    /// Whether a signal goes through the handle. If not, the number could change hands between
    /// check and signal, so the caller has to check directly before.
    pub(crate) fn carries_signals(&self) -> bool {
        self.pidfd.is_some()
    }

    /// Sends `signal` through the handle; without one, to whoever has the number.
    pub(crate) fn signal(&self, signal: Signal) -> Delivery {
        let Some(raw) = rustix::process::Signal::from_named_raw(signal as i32) else {
            return Delivery::Failed(Errno::INVAL.raw_os_error());
        };
        let sent = match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd, raw),
            None => kill_process(self.pid.raw(), raw),
        };
        match sent {
            Ok(()) => Delivery::Sent,
            Err(Errno::SRCH) => Delivery::Gone,
            Err(Errno::PERM) => Delivery::Denied,
            Err(errno) => Delivery::Failed(errno.raw_os_error()),
        }
    }

    /// How the process ended, once it has and where the kernel tells.
    pub(crate) fn exit(&self) -> Option<Exit> {
        info::how_it_ended(self.pid, self.pidfd.as_ref()?.as_fd())
    }

    /// What becomes readable at the end of the process.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

/// Whether `fd` is one of the last descriptors that this process may have. Those are left to
/// whoever reads the table, which goes by descriptors here: with none left, a process that is not
/// held could not be looked at either.
fn is_one_of_the_last(fd: &OwnedFd) -> bool {
    let number = u64::try_from(fd.as_raw_fd()).unwrap_or_default();
    let limit = getrlimit(Resource::Nofile).current;
    limit.is_some_and(|limit| number.saturating_add(SPARE_DESCRIPTORS) >= limit)
}

/// Whether the process of `pidfd` still has its entry in the table.
fn is_uncollected(pidfd: &OwnedFd) -> bool {
    // SAFETY: signal 0 with no siginfo only checks that there is somebody to send it to.
    let status = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            0,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    // EPERM is an answer of somebody's.
    status == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whether `pid` may be a process: something has the number, and `/proc` does not say that it is
/// one of a process's threads.
fn names_process(pid: Pid) -> bool {
    names_anything(pid) && thread_group(pid).is_none_or(|group| group == pid)
}

/// Whether a process or thread has the number `pid`.
fn names_anything(pid: Pid) -> bool {
    rustix::process::test_kill_process(pid.raw()) != Err(Errno::SRCH)
}

/// The process that `pid` is a thread of, as far as `/proc` says: `/proc/TID` opens for every
/// thread, and kill(2) takes its number.
fn thread_group(pid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    Pid::new(group.trim().parse().ok()?)
}
