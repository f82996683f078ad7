//! A kqueue that waits for the end of one process: it tells that end from whatever the number
//! comes to mean later.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use nix::sys::signal::{Signal, kill};
use rustix::event::{PollFd, PollFlags, poll};

use super::Reader;
use crate::entry::Unread;
use crate::handle::{Delivery, OpenError};
use crate::pid::Pid;

/// A handle on one process.
#[derive(Debug)]
pub(crate) struct Pin {
    pid: Pid,
    watch: Watch,
}

#[derive(Debug)]
enum Watch {
    /// It lived when this began to watch, and the queue is readable once it has ended.
    Queue(Kqueue),
    /// It had ended before; a zombie cannot be watched.
    Zombie,
    /// No queue could be had, so the table has to be looked at.
    Nothing,
}

impl Pin {
    /// Opens a handle on `pid`. Whose handle it is must be read *after* this.
    pub(crate) fn open(pid: Pid) -> Result<Pin, OpenError> {
        let watch = match watch(pid) {
            Ok(queue) => Watch::Queue(queue),
            Err(Errno::ESRCH) => match Reader::new().entry(pid) {
                Err(Unread::Gone) => return Err(OpenError::Gone),
                Ok(entry) if entry.state.is_zombie() => Watch::Zombie,
                // It is on its way out, or the table cannot be read.
                Ok(_) | Err(_) => Watch::Nothing,
            },
            Err(_) => Watch::Nothing,
        };
        Ok(Pin { pid, watch })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// There is no number here that outlives the process's own.
    pub(crate) fn inode(&self) -> Option<u64> {
        None
    }

    /// Whether the process has ended. `None` where that needs a look at the table.
    pub(crate) fn has_ended(&self) -> Option<bool> {
        match &self.watch {
            Watch::Queue(queue) => {
                let mut fds = [PollFd::new(queue, PollFlags::IN)];
                let now = rustix::time::Timespec::default();
                poll(&mut fds, Some(&now)).ok().map(|ready| ready > 0)
            }
            Watch::Zombie => Some(true),
            Watch::Nothing => None,
        }
    }

    /// Whether the number is still this process's, as far as can be told: a process that has
    /// ended while it was watched may have lost it.
    pub(crate) fn holds_number(&self) -> bool {
        match &self.watch {
            Watch::Queue(_) => self.has_ended() != Some(true),
            Watch::Zombie | Watch::Nothing => true,
        }
    }

    /// Whether a signal goes through the handle. There is no such call here: the caller has to
    /// check who has the number directly before.
    pub(crate) fn carries_signals(&self) -> bool {
        false
    }

    /// Sends `signal` to whoever has the number.
    pub(crate) fn signal(&self, signal: Signal) -> Delivery {
        match kill(nix::unistd::Pid::from_raw(self.pid.get()), signal) {
            Ok(()) => Delivery::Sent,
            Err(Errno::ESRCH) => Delivery::Gone,
            Err(Errno::EPERM) => Delivery::Denied,
            Err(errno) => Delivery::Failed(errno as i32),
        }
    }

    /// How the process ended: the kernel tells that to its parent alone.
    pub(crate) fn exit(&self) -> Option<crate::exit::Exit> {
        None
    }

    /// What becomes readable at the end of the process.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.watch {
            Watch::Queue(queue) => Some(queue.as_fd()),
            Watch::Zombie | Watch::Nothing => None,
        }
    }
}

/// A queue that gets one event, at the end of `pid`. ESRCH for a zombie too.
fn watch(pid: Pid) -> Result<Kqueue, Errno> {
    let queue = Kqueue::new()?;
    let number = usize::try_from(pid.get()).map_err(|_| Errno::ESRCH)?;
    let end = KEvent::new(
        number,
        EventFilter::EVFILT_PROC,
        EvFlags::EV_ADD,
        FilterFlag::NOTE_EXIT,
        0,
        0,
    );
    queue.kevent(&[end], &mut [], None)?;
    Ok(queue)
}
