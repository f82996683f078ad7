//! A handle that pins one process, with the identity that was read through it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use nix::sys::signal::Signal;

use crate::entry::{Entry, Unread};
use crate::ident::Identity;
use crate::pid::Pid;
use crate::sys::{self, Pin, Reader};

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
            None => match Reader::new().entry(self.pid()) {
                Ok(now) => !self.is_entry(&now) || Reader::new().is_dead(&now),
                Err(Unread::Gone) => true,
                Err(_) => false,
            },
        }
    }

    /// The state of the process now, if it still has an entry in the table that is its own.
    pub fn current(&self) -> Option<Entry> {
        let now = Reader::new().entry(self.pid()).ok()?;
        self.is_entry(&now).then_some(now)
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
        if self.pin.has_ended().is_none() && self.current().is_none() {
            return Delivery::Gone;
        }
        self.pin.signal(signal)
    }
}

/// Waits until one of `handles` has ended, `wake` is readable, or `deadline` has come. It may
/// return early, so the caller looks again. Without handles and `wake` it is a plain sleep.
///
/// # Errors
///
/// Those of poll(2) or kevent(2), other than EINTR.
pub fn wait(
    handles: &[&Handle],
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> io::Result<()> {
    let pins: Vec<&Pin> = handles.iter().map(|handle| &handle.pin).collect();
    sys::wait(&pins, wake, deadline)
}
