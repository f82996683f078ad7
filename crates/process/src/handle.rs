//! A handle that pins one process, with the identity that was read through it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::entry::{Entry, Unread};
use crate::exit::Exit;
use crate::ident::Identity;
use crate::pid::Pid;
use crate::sys::{Pin, Reader};

/// How often a process is looked at whose end no descriptor tells: on a Linux before 5.3, or where
/// no descriptor is left.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why no handle could be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// No process has this number; a thread may.
    Gone,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The kernel took it.
    Sent,
    /// The process has ended and been collected.
    Gone,
    /// EPERM: the process lives and is not ours to signal.
    Denied,
    /// Anything else, by its errno.
    Failed(i32),
}

/// A process held by a handle: as long as this value lives, its number cannot come to mean
/// another process unnoticed.
///
/// On Linux (5.3 and later) the handle is a pidfd, and signals go through it. Elsewhere the
/// identity is read again directly before each signal; between the two calls there is a gap that
/// these systems cannot close.
#[derive(Debug)]
pub struct Handle {
    pin: Pin,
    ident: Identity,
    entry: Option<Entry>,
}

impl Handle {
    pub(crate) fn new(pin: Pin, ident: Identity, entry: Option<Entry>) -> Handle {
        Handle { pin, ident, entry }
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        self.pin.pid()
    }

    /// Its identity.
    pub fn ident(&self) -> &Identity {
        &self.ident
    }

    /// What the table said of it when the handle was opened; `None` where the table hides it
    /// (hidepid) and only its pidfd says who it is.
    pub fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    /// Whether the process has ended: it is gone, or all its threads have ended and its parent has
    /// yet to collect it (a zombie).
    pub fn has_ended(&self) -> bool {
        match self.pin.has_ended() {
            Some(ended) => ended,
            None => match self.look_again() {
                Ok(now) => Reader::new().is_dead(&now),
                Err(Unread::Gone) => true,
                Err(_) => false,
            },
        }
    }

    /// A descriptor that becomes readable at the end of the process, for a caller's own poll(2);
    /// `None` where there is none to be had and [`Handle::has_ended`] has to be asked now and then.
    pub fn end_notice(&self) -> Option<BorrowedFd<'_>> {
        self.pin.fd()
    }

    /// How the process ended, once it has: of a child of somebody else's the kernel tells that
    /// since Linux 6.15, of a zombie of the same user always, and on macOS never.
    pub fn exit(&self) -> Option<Exit> {
        self.pin.exit()
    }

    /// The state of the process now, if it still has an entry in the table that is its own.
    pub fn current(&self) -> Option<Entry> {
        self.look_again().ok()
    }

    /// Reads the table by number; [`Unread::Gone`] where the number is another process's by now.
    fn look_again(&self) -> Result<Entry, Unread> {
        let now = Reader::new().entry(self.pid())?;
        if self.is_entry(&now) && self.pin.holds_number() {
            Ok(now)
        } else {
            Err(Unread::Gone)
        }
    }

    fn is_entry(&self, now: &Entry) -> bool {
        self.entry
            .as_ref()
            .is_some_and(|then| then.start == now.start)
    }

    /// Sends `signal` to this process and no other. Init is never signalled.
    pub fn signal(&self, signal: Signal) -> Delivery {
        if self.pid().is_init() {
            return Delivery::Denied;
        }
        if !self.pin.carries_signals() {
            match self.look_again() {
                Ok(_) => (),
                Err(Unread::Gone) => return Delivery::Gone,
                Err(Unread::Denied) => return Delivery::Denied,
                Err(Unread::Errno(errno)) => return Delivery::Failed(errno),
                Err(Unread::Malformed) => return Delivery::Failed(Errno::IO.raw_os_error()),
            }
        }
        self.pin.signal(signal)
    }
}

/// Waits until one of `handles` has ended, `wake` is readable, or `deadline` has come. It may
/// return early, so the caller looks again. Without handles and `wake` it is a plain sleep.
///
/// # Errors
///
/// Those of poll(2), other than EINTR.
pub fn wait(
    handles: &[&Handle],
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> io::Result<()> {
    let ends = handles.iter().filter_map(|handle| handle.pin.fd());
    let mut fds: Vec<PollFd<'_>> = ends
        .chain(wake)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    let unwatched = handles.iter().any(|handle| handle.pin.fd().is_none());
    let left = match left {
        Some(left) if unwatched => Some(left.min(LOOK_AGAIN)),
        None if unwatched => Some(LOOK_AGAIN),
        left => left,
    };
    // A duration too long for a timespec is as good as none.
    let timeout = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
