//! macOS: `sysctl(3)`, kqueue, `proc_pidinfo`.

mod clock;
mod files;
mod libproc;
mod pin;
mod reader;
mod sysctl;
mod system;
mod watch;

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use nix::libc;
use rustix::event::PollFlags;
use rustix::fs::FileType;

use super::Peer;
use crate::pid::Pid;

pub(crate) use clock::{group_lives, now, tick, wall_clock};
pub use files::{
    Mounts, concealment, file_at, file_locks, kernel_path, socket_ends, tcp_listeners,
    terminal_called, terminal_name,
};
pub(crate) use pin::Pin;
pub use reader::Reader;
pub(crate) use system::System;
pub use watch::Watch;

/// `PID_MAX` of the kernel.
pub(crate) const PID_MAX: i32 = 99_999;

/// The longest path of a Unix socket: `sun_path` has 104 bytes, one of them for the NUL, unix(4).
pub(crate) const SOCKET_PATH_MAX: usize = 103;

/// The peer of a connected stream, by LOCAL_PEERPID and getpeereid(3).
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let pid = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::LocalPeerPid)?;
    let (uid, _) = nix::unistd::getpeereid(stream)?;
    Ok(Peer {
        pid: Pid::new(pid.into()),
        uid: uid.as_raw(),
    })
}

/// What poll(2) has to be asked for to tell that nobody is at the other end of `fd` any more. It
/// is made of a kqueue that is told nothing of a descriptor for which nothing is asked. And what is
/// asked of a file, a terminal or a socket ends the poll with every byte that could be read there,
/// for nothing: only of a pipe can it be asked.
pub fn hang_up(fd: BorrowedFd<'_>) -> PollFlags {
    let is_pipe = rustix::fs::fstat(fd)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe {
        PollFlags::HUP
    } else {
        PollFlags::empty()
    }
}

/// No process but launchd adopts orphans here.
pub fn become_subreaper(_on: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As no orphan is adopted here, there is none to collect.
pub fn collect_adopted(_own: Pid) {}

/// The kernel does not end a process with its parent; the parent has to.
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// The numbers of this process's open descriptors.
pub(crate) fn open_descriptors() -> io::Result<Vec<i32>> {
    super::unix::numbers_in("/dev/fd")
}

/// Every signal to its default action.
pub(crate) fn default_all_signals() {
    // `NSIG` is 32: there are no real-time signals.
    for signal in 1..32 {
        // SAFETY: SIG_DFL runs no code of ours. KILL and STOP are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
