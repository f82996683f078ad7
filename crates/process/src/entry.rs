//! One process of the table, as plain data.

use crate::pid::Pid;

/// What one reading of the table says of a process.
///
/// Numbers of other processes are raw, since 0 stands there for "outside this pid namespace".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The process.
    pub pid: Pid,
    /// Its parent; 0 where that is outside the namespace.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    /// Its session.
    pub sid: i32,
    /// The device number of its controlling terminal, 0 for none.
    pub tty: u64,
    /// The foreground process group of that terminal, -1 for none.
    pub tpgid: i32,
    /// What it is doing.
    pub state: State,
    /// How many threads it has; 1 on macOS, whose table does not say.
    pub threads: i32,
    /// Whether it is a thread of the kernel's own, which no signal ends.
    pub kernel_thread: bool,
    /// When it started.
    pub start: Start,
    /// Its short name (`comm`): 15 bytes on Linux, of any kind.
    pub name: Vec<u8>,
}

/// The state of a process by its letter, ps(1): R, S, D, T, t, Z, X, I.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(pub char);

impl State {
    /// Z or X. A process whose main thread has ended shows this too while other threads of it
    /// run, so this alone does not say that the process is dead.
    pub fn is_zombie(self) -> bool {
        matches!(self.0, 'Z' | 'X')
    }

    /// Stopped by a signal (T), or by a tracer (t).
    pub fn is_stopped(self) -> bool {
        matches!(self.0, 'T' | 't')
    }
}

impl serde::Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_char(self.0)
    }
}

/// When a process started, in the unit of the kernel's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// Clock ticks since boot (Linux).
    Ticks(u64),
    /// Seconds and microseconds since the epoch (macOS).
    Epoch(u64, u32),
}

impl Start {
    /// When that was by the wall clock, as it is set at present. Good enough to be shown and to
    /// refuse by, never to tell who a process is: the clock moves.
    pub fn wall_clock(self) -> Option<std::time::SystemTime> {
        crate::sys::wall_clock(self)
    }
}

/// Why something about a process could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// There is no such process, or no longer.
    Gone,
    /// It is another user's, or protected.
    Denied,
    /// The kernel's table was not of the expected form.
    Malformed,
    /// Anything else, by its errno.
    Errno(i32),
}

impl Unread {
    /// The meaning of a failed system call on a process's files.
    pub(crate) fn of(error: &std::io::Error) -> Unread {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::SRCH) => Unread::Gone,
            Some(Errno::ACCESS | Errno::PERM) => Unread::Denied,
            Some(errno) => Unread::Errno(errno.raw_os_error()),
            None => Unread::Malformed,
        }
    }
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::Gone => f.write_str("no such process"),
            Unread::Denied => f.write_str("permission denied"),
            Unread::Malformed => f.write_str("the process table is not of the expected form"),
            Unread::Errno(errno) => std::io::Error::from_raw_os_error(*errno).fmt(f),
        }
    }
}
