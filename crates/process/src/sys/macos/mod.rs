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
use std::os::unix::net::UnixStream;

use nix::libc;

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
