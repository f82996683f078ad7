//! The one place that knows platforms, and the one place with `unsafe`.
//!
//! `linux` and `macos` have the same names with the same signatures; `unix` and `strings` are what
//! both share, `xnu` reads what the kernel of macOS hands out.
//! What each side provides:
//!
//! | name | meaning |
//! |---|---|
//! | [`PID_MAX`] | the largest number a process can have |
//! | [`System`] | what identities on this machine are made of, and which can be judged here |
//! | [`Pin`] | a handle on one process, so that its number cannot change hands unnoticed |
//! | [`group_lives`] | whether a group is still the one that a process led |
//! | [`Reader`] | the process table, a process at a time |
//! | [`now`], [`tick`], [`wall_clock`] | the clock of the table's start times |
//! | [`Mounts`], [`file_at`], [`kernel_path`], [`file_locks`] | files by device and inode |
//! | [`socket_ends`], [`tcp_listeners`] | who listens where |
//! | [`concealment`] | whether the table hides processes |
//! | [`terminal_name`], [`terminal_called`] | what terminals are called |
//! | [`Watch`] | notice of changes to files and directories |
//! | [`peer`] | who is at the other end of a Unix socket |
//! | [`hang_up`] | how poll(2) is asked whether the other end is closed |
//! | [`SOCKET_PATH_MAX`] | how long the path of a Unix socket may be |
//! | [`become_subreaper`], [`collect_adopted`] | adopt orphaned descendants, where the kernel can |
//! | [`die_with_parent`] | have the kernel end a helper whose parent is gone, where it can |
//! | [`start`], [`ClosedOutput`] | the beginning of a tool |
//! | [`open_descriptors`] | the numbers of this process's descriptors |
//! | [`default_all_signals`] | every signal to its default action |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod start;
mod strings;
mod unix;
#[cfg(any(target_os = "macos", test))]
mod xnu;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(target_os = "macos")]
use macos as platform;

#[cfg(all(fuzzing, target_os = "linux"))]
pub use linux::parse_stat;
pub use platform::{
    Mounts, Reader, Watch, become_subreaper, collect_adopted, concealment, file_at, file_locks,
    hang_up, kernel_path, peer, socket_ends, tcp_listeners, terminal_called, terminal_name,
};
pub(crate) use platform::{
    PID_MAX, Pin, SOCKET_PATH_MAX, System, default_all_signals, die_with_parent, group_lives, now,
    open_descriptors, tick, wall_clock,
};
pub use start::{ClosedOutput, start};
#[cfg(fuzzing)]
pub use strings::split as split_strings;
pub(crate) use unix::{
    Exec, Fork, Strings, as_helper, close_all_but, default_signal, default_signals,
    descriptor_flags, execve, exit_now, fork, has_ended, ignore_signal, is_ignored,
    keep_across_exec, kill_group_of,
};

/// A descriptor that is an end of a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeEnd {
    /// Its number.
    pub fd: i32,
    /// The pipe, as the kernel names it.
    pub pipe: std::path::PathBuf,
    /// Whether it can be read from.
    pub reads: bool,
    /// Whether it can be written to.
    pub writes: bool,
}

/// Who is at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process that connected, or that listened; `None` where it is outside this pid namespace.
    pub pid: Option<crate::Pid>,
    /// Its effective user at that moment.
    pub uid: u32,
}

/// Where a recorded identity stands to this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its pid is a number of here.
    Here,
    /// It was taken in another boot.
    OtherBoot,
    /// Looking here says nothing about it; the text says why.
    Elsewhere(&'static str),
}
