//! `sysctl(3)`, into buffers of the caller's.

use std::ffi::CStr;
use std::io;

use nix::libc::{self, c_int};

/// The answer for `name`, in at most `size` bytes, in place of what `into` held. How an answer is
/// cut that does not fit depends on the name.
pub(super) fn read(name: &mut [c_int], size: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    into.resize(size, 0);
    let mut length = size;
    // SAFETY: `name` holds as many integers as are said; at most `length` bytes are written to
    // `into`, which holds that many; nothing is set.
    let status = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            name.len() as libc::c_uint,
            into.as_mut_ptr().cast(),
            &mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if status != 0 {
        into.clear();
        return Err(io::Error::last_os_error());
    }
    into.truncate(length);
    Ok(())
}

/// How many bytes the answer for `name` would have now.
pub(super) fn size(name: &mut [c_int]) -> io::Result<usize> {
    let mut length = 0;
    // SAFETY: `name` holds as many integers as are said; without a place to write to only
    // `length` is written; nothing is set.
    let status = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            name.len() as libc::c_uint,
            std::ptr::null_mut(),
            &mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length)
}

/// The string called `name`, if it is one of fewer than 64 bytes.
pub(super) fn string(name: &CStr) -> Option<String> {
    let mut bytes = [0_u8; 64];
    let mut length = bytes.len();
    // SAFETY: `name` ends in NUL; at most `length` bytes are written to `bytes`, which holds that
    // many; nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            bytes.as_mut_ptr().cast(),
            &mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if status != 0 {
        return None;
    }
    let text = CStr::from_bytes_until_nul(&bytes).ok()?;
    text.to_str().ok().map(str::to_owned)
}
