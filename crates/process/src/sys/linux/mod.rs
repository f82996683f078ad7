//! Linux: `/proc`, pidfds, `prctl(2)`.

mod clock;
mod files;
mod group;
mod hidden;
mod info;
mod pin;
mod reader;
mod sockets;
mod stat;
mod system;
mod terminal;
mod watch;

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;

use super::Peer;
use crate::pid::Pid;

pub(crate) use clock::{now, tick, wall_clock};
pub use files::{Mounts, file_at, file_locks, kernel_path};
pub(crate) use group::group_lives;
pub use hidden::concealment;
pub(crate) use pin::Pin;
pub use reader::Reader;
pub use sockets::{socket_ends, tcp_listeners};
#[cfg(fuzzing)]
pub use stat::parse as parse_stat;
pub(crate) use system::System;
pub use terminal::{terminal_called, terminal_name};
pub use watch::Watch;

/// `PID_MAX_LIMIT` of a 64-bit kernel, proc_sys_kernel(5): numbers are below it, and it is the
/// largest that `pid_max` can be set to.
pub(crate) const PID_MAX: i32 = 4_194_304;

/// The longest path of a Unix socket: `sun_path` has 108 bytes, one of them for the NUL, unix(7).
pub(crate) const SOCKET_PATH_MAX: usize = 107;

/// The peer of a connected stream, by SO_PEERCRED, unix(7).
pub fn peer(stream: &UnixStream) -> std::io::Result<Peer> {
    let ucred = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials)?;
    Ok(Peer {
        pid: Pid::new(i64::from(ucred.pid())),
        uid: ucred.uid(),
    })
}

/// What poll(2) has to be asked for to tell that nobody is at the other end of `fd` any more: it
/// tells that unasked.
pub fn hang_up(_fd: BorrowedFd<'_>) -> PollFlags {
    PollFlags::empty()
}

/// Makes this process the one that orphaned descendants are given to, PR_SET_CHILD_SUBREAPER(2const):
/// a descendant that forks twice and starts a session of its own stays a descendant. Or, without
/// `on`, no longer; those that it was given by then it keeps.
pub fn become_subreaper(on: bool) -> std::io::Result<()> {
    rustix::process::set_child_subreaper(on.then(rustix::process::getpid))?;
    Ok(())
}

/// Collects the descendants that this process was given as a subreaper and that have ended, but
/// not the child `own`, whose end somebody waits for.
pub fn collect_adopted(own: Pid) {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let take = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
    let peek = take | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
        // Behind our own child, once that has ended, the others wait a little.
        if pid.as_raw() == own.get() || waitid(Id::Pid(pid), take).is_err() {
            return;
        }
    }
}

/// Has the kernel send KILL to the calling process once its parent is gone, PR_SET_PDEATHSIG(2const).
pub(crate) fn die_with_parent() -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// The numbers of this process's open descriptors.
pub(crate) fn open_descriptors() -> std::io::Result<Vec<i32>> {
    super::unix::numbers_in("/proc/self/fd")
}

/// Every signal to its default action, by the system call itself: the C library refuses 32 and 33,
/// which it keeps for its threads, signal(7).
pub(crate) fn default_all_signals() {
    /// The kernel's own `struct sigaction`, all zero: SIG_DFL, no flags, an empty mask.
    const DEFAULT: [u64; 4] = [0; 4];
    for signal in 1..=64 {
        // SAFETY: rt_sigaction(2) reads a kernel sigaction, which is 32 bytes at the most, from
        // `DEFAULT` and writes nothing. SIG_DFL runs no code of ours. KILL and STOP are refused.
        unsafe {
            nix::libc::syscall(
                nix::libc::SYS_rt_sigaction,
                signal,
                DEFAULT.as_ptr(),
                std::ptr::null_mut::<u64>(),
                8_usize,
            );
        }
    }
}
