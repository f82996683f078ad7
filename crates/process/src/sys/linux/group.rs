//! Whether a process group is still the one that a process led.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

/// `PIDFD_SIGNAL_PROCESS_GROUP` of `<linux/pidfd.h>`.
const PROCESS_GROUP: libc::c_uint = 1 << 2;

/// Whether the group that the process of `pidfd` led has a member left, a zombie counting as one.
/// The answer is about that very group, also once its leader is gone and its number may have been
/// handed out again. `None` where the kernel cannot be asked (before Linux 6.9).
///
/// Nothing is sent: signal 0 only checks that there is somebody to send it to.
pub(crate) fn group_lives(pidfd: BorrowedFd<'_>) -> Option<bool> {
    // SAFETY: signal 0 with no siginfo sends nothing, and no memory is passed.
    let status = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            0,
            std::ptr::null::<libc::siginfo_t>(),
            PROCESS_GROUP,
        )
    };
    if status == 0 {
        return Some(true);
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::ESRCH) => Some(false),
        // Somebody is there who may not be signalled.
        Some(libc::EPERM) => Some(true),
        _ => None,
    }
}
