//! Linux: `/proc`, pidfds, `prctl(2)`.

mod pin;
mod reader;
mod stat;
mod system;

use std::os::unix::net::UnixStream;

use crate::pid::Pid;

pub(crate) use pin::{Pin, wait};
pub use reader::Reader;
pub(crate) use system::{Reach, System};

/// `PID_MAX_LIMIT` of a 64-bit kernel, proc_sys_kernel(5): numbers are below it, and it is the
/// largest that `pid_max` can be set to.
pub(crate) const PID_MAX: i32 = 4_194_304;

/// Who is at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process that connected, or that listened; `None` where it is outside this pid namespace.
    pub pid: Option<Pid>,
    /// Its effective user at that moment.
    pub uid: u32,
}

/// The peer of a connected stream, by SO_PEERCRED, unix(7).
pub fn peer(stream: &UnixStream) -> std::io::Result<Peer> {
    let ucred = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials)?;
    Ok(Peer {
        pid: Pid::new(i64::from(ucred.pid())),
        uid: ucred.uid(),
    })
}

/// Makes this process the one that orphaned descendants are given to, PR_SET_CHILD_SUBREAPER(2const):
/// a descendant that forks twice and starts a session of its own stays a descendant.
pub fn become_subreaper() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
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
