//! The process table, read from `/proc`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::PipeEnd;
use super::super::strings;
use super::stat;
use crate::entry::{Entry, Unread};
use crate::pid::Pid;

/// How often, and after which pause, a process without arguments is looked at again. From its new
/// memory to the arguments in it execve(2) takes no time to speak of, but on a busy machine the
/// process may have to wait in between for its turn.
const EXEC_LOOKS: usize = 250;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// How often the children of a process are listed again, while they come and go.
const LISTINGS: usize = 4;

/// The least room for a read. Some files of `/proc` come in pages.
const MIN_READ: usize = 4096;

/// The files of which one read gives as much as there is room for. Theirs are most of the reads of a
/// scan, and the one that only says that there is no more is left away.
const IN_ONE_PIECE: [&str; 2] = ["stat", "cmdline"];

/// Reads processes, one at a time, into buffers that are used again and again.
///
/// Bytes stay bytes, and each answer that could not be had says why.
#[derive(Debug)]
pub struct Reader {
    root: String,
    path: String,
    pub(super) bytes: Vec<u8>,
    /// The process whose main thread was last seen to live.
    lives: Option<Pid>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::new()
    }
}

impl Reader {
    /// A reader of the live table.
    pub fn new() -> Reader {
        Reader::at("/proc")
    }

    /// A reader of the table below `root`, which has the form of `/proc`.
    pub fn at(root: &str) -> Reader {
        Reader {
            root: root.to_owned(),
            path: String::with_capacity(64),
            bytes: Vec::with_capacity(2 * MIN_READ),
            lives: None,
        }
    }

    /// The pids of all processes that can be seen, in no order.
    ///
    /// # Errors
    ///
    /// Those of reading the folder.
    pub fn pids(&self) -> io::Result<Vec<Pid>> {
        let mut pids = Vec::with_capacity(256);
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse::<i64>().ok());
            pids.extend(number.and_then(Pid::new));
        }
        Ok(pids)
    }

    /// What the table says of `pid`.
    pub fn entry(&mut self, pid: Pid) -> Result<Entry, Unread> {
        self.read(pid, "stat")?;
        let entry = stat::parse(&self.bytes).ok_or(Unread::Malformed)?;
        if entry.pid == pid {
            Ok(entry)
        } else {
            Err(Unread::Malformed)
        }
    }

    /// Whether the process of `entry` has ended: it is a zombie and no other thread of it runs.
    pub fn is_dead(&mut self, entry: &Entry) -> bool {
        if !entry.state.is_zombie() {
            return false;
        }
        if entry.threads <= 1 {
            return true;
        }
        match self.living_thread(entry.pid) {
            Ok(thread) => thread.is_none(),
            // Threads that cannot be seen may run.
            Err(error) => Unread::of(&error) == Unread::Gone,
        }
    }

    /// A thread of `pid` that has not ended.
    fn living_thread(&self, pid: Pid) -> io::Result<Option<Pid>> {
        let tasks = fs::read_dir(format!("{}/{pid}/task", self.root))?;
        Ok(tasks.flatten().find_map(|task| {
            let stat = fs::read(task.path().join("stat")).unwrap_or_default();
            let thread = stat::parse(&stat).filter(|thread| !thread.state.is_zombie());
            thread.map(|thread| thread.pid)
        }))
    }

    /// Where `what` of `pid` is, if its main thread has ended and others run. The folder of a
    /// process is that of its main thread, which has neither memory nor files then.
    fn in_living_thread(&mut self, pid: Pid, what: &str) -> Option<String> {
        if self.lives == Some(pid) {
            return None;
        }
        let entry = self.entry(pid).ok()?;
        if !entry.state.is_zombie() {
            self.lives = Some(pid);
            return None;
        }
        let others = entry.threads > 1;
        let thread = others.then(|| self.living_thread(pid).ok()).flatten()?;
        Some(format!("task/{}/{what}", thread?))
    }

    /// Its children, in no order, where the kernel says them for certain, proc_tid_children(5). Not
    /// every kernel does.
    pub fn children(&mut self, pid: Pid) -> Option<Vec<Pid>> {
        let mut said = self.children_lists(pid)?;
        for _ in 0..LISTINGS {
            let again = self.children_lists(pid)?;
            if again == said {
                let words = said
                    .iter()
                    .flat_map(|(_, list)| list.split(|&byte| byte == b' '));
                let number = |word: &[u8]| str::from_utf8(word).ok()?.parse().ok();
                return Some(words.filter_map(number).filter_map(Pid::new).collect());
            }
            said = again;
        }
        None
    }

    /// The kernel's list of the children of each of its threads. A list goes on at a number: when
    /// one that it has named is gone, the next one is left out, and when a thread is gone, its
    /// children are in another's. Two readings that are the same are complete, since who was gone in
    /// the middle of the first is not in the second.
    fn children_lists(&mut self, pid: Pid) -> Option<Vec<(OsString, Vec<u8>)>> {
        let tasks = fs::read_dir(format!("{}/{pid}/task", self.root)).ok()?;
        let lists = tasks.map(|task| {
            let task = task?;
            Ok((task.file_name(), fs::read(task.path().join("children"))?))
        });
        lists.collect::<io::Result<_>>().ok()
    }

    /// Its whole argument list, as the kernel has it, however long. Empty for the dead and for a
    /// kernel thread.
    pub fn argv(&mut self, pid: Pid) -> Result<Vec<Vec<u8>>, Unread> {
        self.raw_argv(pid).map(strings::split)
    }

    /// The bytes of its argument list, each argument ended by NUL, in this reader's own buffer.
    /// EAGAIN where a live process of a user's keeps on showing none: what it is cannot be told then.
    pub fn raw_argv(&mut self, pid: Pid) -> Result<&[u8], Unread> {
        self.read(pid, "cmdline")?;
        // In the middle of execve(2) a process has no arguments for a moment. Whoever looks for
        // it by them must not miss it then.
        for _ in 0..EXEC_LOOKS {
            if !self.bytes.is_empty() {
                return Ok(&self.bytes);
            }
            let entry = self.entry(pid)?;
            if entry.state.is_zombie() || entry.kernel_thread {
                let inside = (!entry.kernel_thread)
                    .then(|| self.in_living_thread(pid, "cmdline"))
                    .flatten();
                self.bytes.clear();
                if let Some(inside) = inside {
                    // That thread may have ended meanwhile, and another one run.
                    self.read_file(pid, &inside)
                        .map_err(|_| Unread::Errno(Errno::AGAIN.raw_os_error()))?;
                }
                return Ok(&self.bytes);
            }
            std::thread::sleep(EXEC_PAUSE);
            self.read(pid, "cmdline")?;
        }
        Err(Unread::Errno(Errno::AGAIN.raw_os_error()))
    }

    /// The environment it was started with, as `NAME=VALUE` (a process can overwrite it).
    pub fn environ(&mut self, pid: Pid) -> Result<Vec<Vec<u8>>, Unread> {
        self.read(pid, "environ")?;
        for _ in 0..EXEC_LOOKS {
            // In the middle of execve(2) it comes right after the arguments, or there is none.
            if !self.bytes.is_empty() || self.raw_argv(pid)?.is_empty() || self.has_environ(pid)? {
                break;
            }
            std::thread::sleep(EXEC_PAUSE);
            self.read(pid, "environ")?;
        }
        if self.bytes.is_empty() {
            self.read(pid, "environ")?;
        }
        Ok(strings::split(&self.bytes))
    }

    /// Whether the kernel knows by now where the environment of `pid` is, proc_pid_stat(5): the
    /// field `env_end`.
    fn has_environ(&mut self, pid: Pid) -> Result<bool, Unread> {
        const ENV_END: usize = 51;
        self.read(pid, "stat")?;
        // The third field is the first behind the name, which ends with the last parenthesis.
        let name = self.bytes.iter().rposition(|byte| *byte == b')');
        let mut fields = self.bytes[name.unwrap_or_default()..].split(|byte| *byte == b' ');
        let is_known = fields.nth(ENV_END - 2).is_none_or(|end| end != b"0");
        self.bytes.clear();
        Ok(is_known)
    }

    /// Its working directory. A directory that is gone ends in ` (deleted)`.
    pub fn cwd(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.link(pid, "cwd")
    }

    /// The file it executes. A file that is gone ends in ` (deleted)`.
    pub fn exe(&mut self, pid: Pid) -> Result<PathBuf, Unread> {
        self.link(pid, "exe")
    }

    /// Its effective user id.
    pub fn uid(&mut self, pid: Pid) -> Result<u32, Unread> {
        // Not the owner of the folder: that is root's where the process is not dumpable.
        self.read(pid, "status")?;
        std::str::from_utf8(&self.bytes)
            .ok()
            .and_then(|status| status.lines().find_map(|line| line.strip_prefix("Uid:")))
            .and_then(|ids| ids.split_ascii_whitespace().nth(1))
            .and_then(|effective| effective.parse().ok())
            .ok_or(Unread::Malformed)
    }

    /// What each of its open descriptors is, as the kernel names it: a path, `pipe:[INODE]`,
    /// `socket:[INODE]`. Nothing is opened or looked up, so no dead mount can hold this up.
    pub fn descriptors(&mut self, pid: Pid) -> Result<Vec<(i32, PathBuf)>, Unread> {
        let open = self.descriptors_in(pid, "fd");
        if open.as_ref().is_ok_and(|open| !open.is_empty()) {
            return open;
        }
        match self.in_living_thread(pid, "fd") {
            Some(inside) => self.descriptors_in(pid, &inside),
            None => open,
        }
    }

    fn descriptors_in(&mut self, pid: Pid, folder: &str) -> Result<Vec<(i32, PathBuf)>, Unread> {
        self.locate(pid, folder);
        let folder = fs::read_dir(&self.path).map_err(|error| Unread::of(&error))?;
        let mut found = Vec::new();
        for entry in folder {
            let entry = entry.map_err(|error| Unread::of(&error))?;
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            // One that was closed meanwhile is no descriptor any more.
            if let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) {
                found.push((number, target));
            }
        }
        Ok(found)
    }

    /// Those of its open descriptors that are ends of pipes without a name.
    pub fn pipe_ends(&mut self, pid: Pid) -> Result<Vec<PipeEnd>, Unread> {
        let mut found = Vec::new();
        for (fd, pipe) in self.descriptors(pid)? {
            if !pipe.as_os_str().as_bytes().starts_with(b"pipe:[") {
                continue;
            }
            // The link's own mode is that of the open file description, proc_pid_fd(5).
            let link = format!("{}/{pid}/fd/{fd}", self.root);
            if let Ok(link) = fs::symlink_metadata(link) {
                let mode = link.permissions().mode();
                found.push(PipeEnd {
                    fd,
                    pipe,
                    reads: mode & 0o400 != 0,
                    writes: mode & 0o200 != 0,
                });
            }
        }
        Ok(found)
    }

    pub(super) fn link(&mut self, pid: Pid, what: &str) -> Result<PathBuf, Unread> {
        self.locate(pid, what);
        let mut link = fs::read_link(&self.path);
        if link.is_err()
            && let Some(inside) = self.in_living_thread(pid, what)
        {
            self.locate(pid, &inside);
            link = fs::read_link(&self.path);
        }
        link.map_err(|error| Unread::of(&error))
    }

    pub(super) fn read(&mut self, pid: Pid, what: &str) -> Result<(), Unread> {
        let mut read = self.read_file(pid, what);
        let is_missing = match read {
            Ok(()) => what == "maps" && self.bytes.is_empty(),
            Err(_) => what != "stat",
        };
        if is_missing {
            let inside = self.in_living_thread(pid, what);
            self.bytes.clear();
            if let Some(inside) = inside {
                read = self.read_file(pid, &inside);
            }
        }
        read.map_err(|error| Unread::of(&error.into()))
    }

    fn read_file(&mut self, pid: Pid, what: &str) -> rustix::io::Result<()> {
        self.locate(pid, what);
        self.bytes.clear();
        self.read_all(IN_ONE_PIECE.contains(&what))
    }

    /// Reads the file at the present path, of which a read that does not fill its room is the last
    /// if it comes `in_one_piece`. The standard library would ask for its size and position first,
    /// which a file of `/proc` does not have, and that is half of the time.
    fn read_all(&mut self, in_one_piece: bool) -> rustix::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.path.as_str(), flags, Mode::empty())?;
        loop {
            if self.bytes.capacity() - self.bytes.len() < MIN_READ {
                self.bytes.reserve(self.bytes.len().max(MIN_READ));
            }
            let room = self.bytes.capacity() - self.bytes.len();
            match rustix::io::read(&file, spare_capacity(&mut self.bytes)) {
                Ok(0) => return Ok(()),
                Ok(read) if in_one_piece && read < room => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn locate(&mut self, pid: Pid, what: &str) {
        self.path.clear();
        let _ = write!(self.path, "{}/{pid}/{what}", self.root);
    }
}
