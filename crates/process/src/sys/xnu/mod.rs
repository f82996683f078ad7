//! What the kernel of macOS hands out, read from plain bytes. Nothing here makes a system call,
//! so that these readers are tested on every platform.

pub(crate) mod fdinfo;
pub(crate) mod kinfo;
pub(crate) mod procargs;

/// The four bytes at `at`, as the kernel of the same machine wrote them.
fn word(bytes: &[u8], at: usize) -> Option<i32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    four.try_into().ok().map(i32::from_ne_bytes)
}

/// The eight bytes at `at`.
fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    eight.try_into().ok().map(u64::from_ne_bytes)
}

/// The string that begins at `at`, has at most `size` bytes and ends at the first NUL.
fn string(bytes: &[u8], at: usize, size: usize) -> Option<&[u8]> {
    let field = bytes.get(at..at.checked_add(size)?)?;
    field.split(|&byte| byte == 0).next()
}
