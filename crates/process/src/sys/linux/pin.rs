//! A pidfd: a handle on one process that no recycled number can take over.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};

use super::System;
use crate::handle::{Delivery, OpenError};
use crate::pid::Pid;

/// `PID_FS_MAGIC`: where pidfds live on a file system of their own (Linux 6.9), their inode is the
/// process's for the whole boot. On older kernels all pidfds share one inode. The link text in
/// `/proc/self/fd` does not tell the two apart; fstatfs(2) does.
const PID_FS_MAGIC: u64 = 0x5049_4446;

/// How often a process without a pidfd (a kernel before 5.3, or out of descriptors) is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A handle on one process.
#[derive(Debug)]
pub(crate) struct Pin {
    pid: Pid,
    pidfd: Option<OwnedFd>,
}

impl Pin {
    /// Opens a handle on `pid`. Whose handle it is must be read *after* this.
    pub(crate) fn open(pid: Pid) -> Result<Pin, OpenError> {
        match pidfd_open(pid.raw(), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Pin {
                pid,
                pidfd: Some(pidfd),
            }),
            Err(Errno::SRCH) => Err(OpenError::Gone),
            // The kernel's answer to the number of a thread that leads no group (EINVAL, and
            // ENOENT since 6.9): no process has it.
            Err(Errno::INVAL | Errno::NOENT) if !System::is_process(pid) => Err(OpenError::Gone),
            // No such call, not allowed by a sandbox, or no descriptor left.
            Err(_) if System::is_process(pid) => Ok(Pin { pid, pidfd: None }),
            Err(_) => Err(OpenError::Gone),
        }
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

    /// Sends `signal` through the handle. Without one, check and signal are two calls, and the
    /// number could change hands between them; the caller has checked just before.
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

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

/// Waits until one of `pins` has ended, `wake` is readable, or `deadline` has come; returns early
/// now and then, so the caller looks again. No pin and no `wake` is a plain sleep.
pub(crate) fn wait(
    pins: &[&Pin],
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = pins
        .iter()
        .filter_map(|pin| pin.fd())
        .chain(wake)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let polled = pins.iter().any(|pin| pin.pidfd.is_none());
    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    let left = match left {
        Some(left) if polled => Some(left.min(POLL)),
        None if polled => Some(POLL),
        left => left,
    };
    // A duration too long for a timespec is as good as none.
    let timeout = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
