//! `<libproc.h>`, into buffers of the caller's.

use std::io;

use nix::errno::Errno;
use nix::libc::{self, c_int};

use crate::pid::Pid;

/// `PROC_PIDFDVNODEPATHINFO`, `PROC_PIDFDSOCKETINFO` and `PROC_PIDFDPIPEINFO`.
pub(super) const FD_VNODE_PATH: c_int = 2;
pub(super) const FD_SOCKET: c_int = 3;
pub(super) const FD_PIPE: c_int = 6;

/// The description `flavor` of `pid`; the number of bytes that were written.
pub(super) fn process(pid: Pid, flavor: c_int, into: &mut [u8]) -> io::Result<usize> {
    let size = size_of_buffer(into)?;
    Errno::clear();
    // SAFETY: at most `size` bytes are written to `into`, which holds that many.
    let written =
        unsafe { libc::proc_pidinfo(pid.get(), flavor, 0, into.as_mut_ptr().cast(), size) };
    written_bytes(written)
}

/// The description `flavor` of the descriptor `fd` of `pid`.
pub(super) fn descriptor(pid: Pid, fd: c_int, flavor: c_int, into: &mut [u8]) -> io::Result<usize> {
    let size = size_of_buffer(into)?;
    Errno::clear();
    // SAFETY: at most `size` bytes are written to `into`, which holds that many.
    let written =
        unsafe { libc::proc_pidfdinfo(pid.get(), fd, flavor, into.as_mut_ptr().cast(), size) };
    written_bytes(written)
}

/// The path of the file that `pid` executes.
pub(super) fn path(pid: Pid, into: &mut [u8]) -> io::Result<usize> {
    let size = size_of_buffer(into)?;
    Errno::clear();
    // SAFETY: at most `size` bytes are written to `into`, which holds that many.
    let written =
        unsafe { libc::proc_pidpath(pid.get(), into.as_mut_ptr().cast(), size.unsigned_abs()) };
    written_bytes(written)
}

fn size_of_buffer(into: &[u8]) -> io::Result<c_int> {
    c_int::try_from(into.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// These functions say 0, not -1, where they fail, and also where there is nothing to say: the
/// list of a process without descriptors. The errno, which was cleared before, tells them apart.
fn written_bytes(written: c_int) -> io::Result<usize> {
    match usize::try_from(written) {
        Ok(0) if Errno::last_raw() == 0 => Ok(0),
        Ok(0) | Err(_) => Err(io::Error::last_os_error()),
        Ok(written) => Ok(written),
    }
}
