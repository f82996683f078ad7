//! Notice of changes to files and directories (kqueue(2)).

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::libc;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use rustix::fs::{Mode, OFlags};

/// How an event tells what it is about.
const ENTRY: isize = 1;
const CONTENT: isize = 2;

/// A descriptor that becomes readable when something happens to one of the places it was told of.
///
/// It says that something may have happened, never what: the caller looks for itself. Places are
/// told anew in rounds, [`Watch::begin`] to [`Watch::end`]; what a round does not name again is
/// forgotten at its end.
#[derive(Debug)]
pub struct Watch {
    queue: Kqueue,
    /// What is watched must stay open; closing it ends the watch.
    places: Vec<OwnedFd>,
    forgotten: Vec<OwnedFd>,
}

impl Watch {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new() -> io::Result<Watch> {
        Ok(Watch {
            queue: Kqueue::new()?,
            places: Vec::new(),
            forgotten: Vec::new(),
        })
    }

    /// Begins to name the places that matter.
    pub fn begin(&mut self) {
        self.forgotten = std::mem::take(&mut self.places);
    }

    /// Has `directory` watched, in which `name` matters: that it comes, goes, or becomes another
    /// file. (A kqueue does not tell names apart.)
    ///
    /// # Errors
    ///
    /// There is no such directory, it may not be read, or no descriptor is left.
    pub fn entry(&mut self, directory: &Path, name: &OsStr) -> io::Result<()> {
        let _ = name;
        // Only for its events, so that it does not keep its file system from being unmounted.
        let events_only = OFlags::from_bits_retain(libc::O_EVTONLY as u32);
        let flags = events_only | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(directory, flags, Mode::empty())?;
        self.add(fd, ENTRY)
    }

    /// Has the open file `file` watched: that it grows, shrinks, is renamed or unlinked.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn content(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.add(rustix::io::fcntl_dupfd_cloexec(file, 3)?, CONTENT)
    }

    fn add(&mut self, fd: OwnedFd, what_it_is: isize) -> io::Result<()> {
        let what = FilterFlag::NOTE_WRITE
            | FilterFlag::NOTE_EXTEND
            | FilterFlag::NOTE_ATTRIB
            | FilterFlag::NOTE_LINK
            | FilterFlag::NOTE_DELETE
            | FilterFlag::NOTE_RENAME
            | FilterFlag::NOTE_REVOKE;
        let ident = fd.as_raw_fd() as usize;
        let flags = EvFlags::EV_ADD | EvFlags::EV_CLEAR;
        let change = KEvent::new(ident, EventFilter::EVFILT_VNODE, flags, what, 0, what_it_is);
        self.queue.kevent(&[change], &mut [], None)?;
        self.places.push(fd);
        Ok(())
    }

    /// Ends the round: places that it did not name are forgotten.
    pub fn end(&mut self) {
        self.forgotten.clear();
    }

    /// Forgets what has happened so far; whether any of it was about a directory, and so perhaps
    /// about a name that matters. What happens to the content of a file only wakes.
    ///
    /// # Errors
    ///
    /// Those of kevent(2).
    pub fn take(&mut self) -> io::Result<bool> {
        let none = KEvent::new(
            0,
            EventFilter::EVFILT_USER,
            EvFlags::empty(),
            FilterFlag::empty(),
            0,
            0,
        );
        let mut events = [none; 64];
        let mut happened = false;
        loop {
            let now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let count = self.queue.kevent(&[], &mut events, Some(now))?;
            happened |= events
                .iter()
                .take(count)
                .any(|event| event.udata() == ENTRY);
            if count < events.len() {
                return Ok(happened);
            }
        }
    }

    /// Whether every change at `path`, which exists, comes with a notice: whether its file system
    /// is a local one. Elsewhere one has to look now and then.
    pub fn is_notified(path: &Path) -> bool {
        rustix::fs::statfs(path).is_ok_and(|fs| fs.f_flags & libc::MNT_LOCAL as u32 != 0)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
