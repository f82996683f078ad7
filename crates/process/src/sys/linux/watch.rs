//! Notice of changes to files and directories (inotify(7)).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};

/// What may change about the names in a directory, and about the directory itself.
const ENTRY: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// What may change about an open file.
const CONTENT: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// File systems, by statfs(2)'s magic number, on which every change is made by this kernel, so
/// that inotify tells of all of them: ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, F2FS, ZFS,
/// bcachefs. Not among them: those whose files change elsewhere (NFS, SMB, 9p, FUSE, virtiofs) or
/// without an event (procfs, sysfs).
const NOTIFYING: [u64; 9] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x8584_58F6,
    0x794C_7630,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
];

/// A descriptor that becomes readable when something happens to one of the places it was told of.
///
/// It says that something may have happened, never what: the caller looks for itself. Places are
/// told anew in rounds, [`Watch::begin`] to [`Watch::end`]; what a round does not name again is
/// forgotten at its end.
///
/// Giving it up takes no time since Linux 6.9, and neither does the end of a process that has given
/// it up. The end of one that has not waits for the kernel, up to some tenths of a second where all
/// processors are busy.
#[derive(Debug)]
pub struct Watch {
    // Fields are dropped in this order, and it matters for these two.
    inotify: OwnedFd,
    unreachable: Option<Unreachable>,
    round: u64,
    places: HashMap<i32, Place>,
}

#[derive(Debug)]
struct Place {
    round: u64,
    /// The names that matter in a directory; everything does in a file.
    names: Option<Vec<OsString>>,
}

impl Watch {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// EMFILE: the user has `fs.inotify.max_user_instances` of them already.
    pub fn new() -> io::Result<Watch> {
        Ok(Watch {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            unreachable: None,
            round: 0,
            places: HashMap::new(),
        })
    }

    /// Begins to name the places that matter.
    pub fn begin(&mut self) {
        self.round += 1;
    }

    /// Has `name` in `directory` watched: that it comes, goes, or becomes another file.
    ///
    /// # Errors
    ///
    /// Those of inotify_add_watch(2): there is no such directory, it may not be read, or the user
    /// has too many watches.
    pub fn entry(&mut self, directory: &Path, name: &OsStr) -> io::Result<()> {
        let place = self.add(directory, ENTRY)?;
        let names = place.names.get_or_insert_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    /// Has the open file `file` watched: that it grows, shrinks, is renamed or unlinked.
    ///
    /// # Errors
    ///
    /// Those of inotify_add_watch(2).
    pub fn content(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        // Through the descriptor, because a name may lead to another file by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.add(Path::new(&path), CONTENT)?.names = None;
        Ok(())
    }

    fn add(&mut self, path: &Path, flags: WatchFlags) -> io::Result<&mut Place> {
        let wd = inotify::add_watch(&self.inotify, path, flags)?;
        let round = self.round;
        let place = self
            .places
            .entry(wd)
            .or_insert(Place { round, names: None });
        if place.round != round {
            *place = Place { round, names: None };
        }
        Ok(place)
    }

    /// Ends the round: places that it did not name are forgotten.
    pub fn end(&mut self) {
        let (inotify, round) = (&self.inotify, self.round);
        self.places.retain(|&wd, place| {
            let stays = place.round == round;
            if !stays {
                // Gone by itself, if the file was.
                let _ = inotify::remove_watch(inotify, wd);
            }
            stays
        });
    }

    /// Forgets what has happened so far; whether any of it was about a name that matters. What
    /// happens to the content of a file only wakes.
    ///
    /// # Errors
    ///
    /// Those of read(2).
    pub fn take(&mut self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut happened = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()));
                    happened |= matters(self.places.get(&event.wd()), event.events(), name);
                    if event.events().contains(ReadFlags::IGNORED) {
                        self.places.remove(&event.wd());
                    }
                }
                Err(Errno::AGAIN) => return Ok(happened),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Whether every change at `path`, which exists, comes with a notice. Where that is not so,
    /// as on a network mount, one has to look now and then.
    pub fn is_notified(path: &Path) -> bool {
        rustix::fs::statfs(path).is_ok_and(|fs| NOTIFYING.contains(&(fs.f_type as u64)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The kernel may have many watches to close then: it waits for all marks at once that have
        // been taken away before.
        for &wd in self.places.keys() {
            let _ = inotify::remove_watch(&self.inotify, wd);
        }
        // Where that fails, what follows closes the watch here and now.
        self.unreachable = Unreachable::with(self.inotify.as_fd()).ok();
    }
}

/// Sockets that nobody can reach once they are closed here, with a descriptor in their queue: the
/// kernel collects them, and so closes the descriptor in our place.
///
/// The last close(2) of an inotify descriptor waits for a grace period in which its marks are
/// taken down, and so does the end of a process that has it open: most often some milliseconds,
/// and the longer the busier the machine is. One who waits for an event is told so much later.
///
/// Therefore it is sent, as unix(7) has it with SCM_RIGHTS, to a socket that has itself in its
/// queue, too. When all are closed here only that queue still refers to them. The kernel looks for
/// such circles whenever a socket is closed while descriptors are on their way: since Linux 6.9 in
/// a worker of its own (net/unix/garbage.c), before that inside of close(2), where nothing is won
/// by it and nothing lost.
#[derive(Debug)]
struct Unreachable {
    // Closed in this order: it is the close of the other one that has the kernel look.
    _queue: OwnedFd,
    _other: OwnedFd,
}

impl Unreachable {
    /// Some with `fd`, which is to be closed before them.
    ///
    /// # Errors
    ///
    /// Those of socketpair(2) and sendmsg(2), among them ETOOMANYREFS: as many descriptors of this
    /// user are on their way as a process may have open.
    fn with(fd: BorrowedFd<'_>) -> io::Result<Unreachable> {
        let (queue, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let passed = [fd, queue.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&passed)) {
            return Err(Errno::NOBUFS.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&other, &[IoSlice::new(b"x")], &mut control, flags)?;
        Ok(Unreachable {
            _queue: queue,
            _other: other,
        })
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

fn matters(place: Option<&Place>, events: ReadFlags, name: Option<&OsStr>) -> bool {
    if events.contains(ReadFlags::QUEUE_OVERFLOW) {
        return true;
    }
    match place.map(|place| &place.names) {
        // Forgotten in the meantime.
        None => false,
        Some(Some(names)) => name.is_none_or(|name| names.iter().any(|one| one == name)),
        Some(None) => events.contains(ReadFlags::IGNORED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Write;

    use rustix::event::{PollFd, PollFlags, poll};

    fn wakes(watch: &Watch) -> bool {
        let mut fds = [PollFd::new(watch, PollFlags::IN)];
        poll(&mut fds, Some(&rustix::time::Timespec::default())).unwrap() > 0
    }

    #[test]
    fn a_directory_tells_of_the_names_that_matter() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new().unwrap();
        watch.begin();
        watch.entry(dir.path(), OsStr::new("mine")).unwrap();
        watch.entry(dir.path(), OsStr::new("other")).unwrap();
        watch.end();
        fs::write(dir.path().join("stranger"), "").unwrap();
        assert!(!watch.take().unwrap());
        fs::write(dir.path().join("mine"), "").unwrap();
        assert!(watch.take().unwrap());
        assert!(!watch.take().unwrap(), "told twice");
        fs::rename(dir.path().join("stranger"), dir.path().join("other")).unwrap();
        assert!(watch.take().unwrap());
        fs::remove_dir_all(dir.path()).unwrap();
        assert!(watch.take().unwrap());
        assert!(watch.places.is_empty(), "{:?}", watch.places);
    }

    #[test]
    fn a_file_is_watched_whatever_its_name_is_by_now() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::create(&path).unwrap();
        fs::rename(&path, dir.path().join("log.1")).unwrap();
        fs::write(&path, "").unwrap();
        let mut watch = Watch::new().unwrap();
        watch.begin();
        watch.content(file.as_fd()).unwrap();
        watch.end();
        fs::write(&path, "another file").unwrap();
        assert!(!wakes(&watch));
        file.write_all(b"more").unwrap();
        assert!(wakes(&watch));
        assert!(!watch.take().unwrap(), "no name has changed");
        assert!(!wakes(&watch));
        // A round that does not name it forgets it.
        watch.begin();
        watch.end();
        watch.take().unwrap();
        file.write_all(b"more").unwrap();
        assert!(!wakes(&watch));
    }
}
