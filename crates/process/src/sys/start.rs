//! Where a tool begins: at `main`, as the C library calls it.
//!
//! The standard library's own start asks for the bounds of the stack, to be able to say that it
//! overflowed, for which glibc reads `/proc/self/maps`: three quarters of the instructions that
//! `true` has from its first to its last. What else that start does for a tool is done here.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::mem;
use std::os::unix::ffi::OsStrExt as _;

use nix::fcntl::{OFlag, open};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use super::{descriptor_flags, exit_now, ignore_signal};

/// The exit status of a tool that failed itself.
const FAILED: i32 = 125;

/// What becomes of what is written to stdout where that was closed from the beginning (`>&-`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedOutput {
    /// Writing fails with EBADF, as it would without this.
    Fails,
    /// It is dropped.
    IsDropped,
}

/// Defines the program's `main`, which calls the function that is named, with the arguments, for the
/// exit status. The program is to be `#![no_main]`.
#[macro_export]
macro_rules! main {
    ($tool:path) => {
        $crate::main!($tool, $crate::ClosedOutput::Fails);
    };
    ($tool:path, $closed:expr) => {
        // SAFETY: the C library looks for `main` by this name and calls it once. Nothing else of a
        // program is called so.
        #[unsafe(no_mangle)]
        extern "C" fn main(
            count: ::core::ffi::c_int,
            words: *const *const ::core::ffi::c_char,
        ) -> ::core::ffi::c_int {
            // SAFETY: they are what the C library has given.
            unsafe { $crate::start(count, words, $tool, $closed) }
        }
    };
}

/// Readies the process and runs `tool`; see [`main!`](crate::main).
///
/// # Safety
///
/// `words` points at `count` strings that end in NUL, and that stay as they are until the process
/// ends.
pub unsafe fn start(
    count: c_int,
    words: *const *const c_char,
    tool: fn(Vec<&'static OsStr>) -> u8,
    closed: ClosedOutput,
) -> c_int {
    fill_standard_descriptors(closed);
    // A reader that is gone is an error of write(2), which the tools answer.
    ignore_signal(Signal::SIGPIPE);
    let count = usize::try_from(count).unwrap_or_default();
    let words = (0..count).map(|at| {
        // SAFETY: it is one of the strings that the caller vouches for.
        let word = unsafe { CStr::from_ptr(*words.add(at)) };
        OsStr::from_bytes(word.to_bytes())
    });
    let status = tool(words.collect());
    // By way of the standard library, which writes what it has kept of stdout.
    std::process::exit(status.into())
}

/// Opens those of the descriptors 0 to 2 that are closed, on nothing: the next file would get the
/// number, and be read as the input or have the messages written to it. They are opened the wrong
/// way round, so that whoever reads or writes them hears of it, as of closed ones.
fn fill_standard_descriptors(closed: ClosedOutput) {
    for fd in 0..3 {
        // The lowest number that is free is given, and those below are not.
        if descriptor_flags(fd).is_ok() {
            continue;
        }
        let access = match (fd, closed) {
            (0, _) => OFlag::O_WRONLY,
            (_, ClosedOutput::Fails) => OFlag::O_RDONLY,
            (_, ClosedOutput::IsDropped) => OFlag::O_WRONLY,
        };
        match open("/dev/null", access, Mode::empty()) {
            // It stays open until the process ends.
            Ok(opened) => mem::forget(opened),
            Err(_) => exit_now(FAILED),
        }
    }
}
