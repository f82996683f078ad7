//! What Linux and macOS do alike, with the system calls that have no safe wrapper.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::unistd::ForkResult;
use rustix::process::{Pid as RawPid, WaitId, WaitIdOptions, waitid};

/// The numbers that are names in the folder `path`.
pub(crate) fn numbers_in(path: &str) -> io::Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(path)? {
        numbers.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok()),
        );
    }
    Ok(numbers)
}

/// The flags of the descriptor `fd`, F_GETFD of fcntl(2).
pub(crate) fn descriptor_flags(fd: i32) -> io::Result<i32> {
    // SAFETY: F_GETFD takes no pointer and changes nothing; a number that is no descriptor is
    // answered by EBADF.
    match unsafe { libc::fcntl(fd, libc::F_GETFD) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

/// Has the descriptor `fd` stay open across exec(2).
pub(crate) fn keep_across_exec(fd: i32) -> io::Result<()> {
    let flags = descriptor_flags(fd)? & !libc::FD_CLOEXEC;
    // SAFETY: F_SETFD takes an int and no pointer.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Closes every descriptor above 2 but those of `keep`, by the list of what is open: the limit on
/// descriptors may be a billion.
pub(crate) fn close_all_but(keep: &[i32]) -> io::Result<()> {
    for fd in super::open_descriptors()? {
        if fd > 2 && !keep.contains(&fd) {
            // The listing's own descriptor is among the numbers, and closed by now.
            let _ = nix::unistd::close(fd);
        }
    }
    Ok(())
}

/// Puts every signal back to its default action and blocks none, as a program expects to be
/// started. The real-time ones are included, and on Linux the two that the C library keeps for
/// itself and will not touch: an inherited "ignore" of those would be passed on to the program.
pub(crate) fn default_signals() {
    super::default_all_signals();
    // Unblocking comes second, so that a signal which was held back meets its default action.
    let _ = SigSet::empty().thread_set_mask();
}

/// Whether `signal` is ignored, as it is when a shell has started this process with `&` or
/// `nohup`. Such a signal stays ignored.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null new action sigaction(2) only writes the present one to `now`, which is
    // valid for that and is fully initialised, being all zero before.
    let now = unsafe {
        if libc::sigaction(signal as i32, std::ptr::null(), now.as_mut_ptr()) != 0 {
            return false;
        }
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_IGN
}

/// Puts `signal` back to its default action.
pub(crate) fn default_signal(signal: Signal) {
    // SAFETY: SIG_DFL runs no code of ours in the signal's context.
    let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
}

/// Has `signal` ignored.
pub(crate) fn ignore_signal(signal: Signal) {
    // SAFETY: SIG_IGN runs no code of ours in the signal's context.
    let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
}

/// Becomes another program; returns only the reason why not.
pub(crate) type Exec = Box<dyn Fn() -> io::Error + Send + Sync>;

/// One half of a fork(2).
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the number of the new.
    Parent(i32),
}

/// Splits this process in two. The child has every signal blocked until
/// [`default_signals`], or whoever it trusts with that.
///
/// # Errors
///
/// Those of fork(2).
pub(crate) fn fork() -> io::Result<Fork> {
    // What comes in between waits: caught in the child, it would run the parent's handlers there.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: fork(2) leaves the child with the calling thread alone. The tools have no other
    // thread when they launch a command, so no lock can be held by a thread that is not there.
    let forked = unsafe { nix::unistd::fork() };
    if let Ok(ForkResult::Child) = forked {
        return Ok(Fork::Child);
    }
    before.thread_set_mask()?;
    match forked? {
        ForkResult::Child => Ok(Fork::Child),
        ForkResult::Parent { child } => Ok(Fork::Parent(child.as_raw())),
    }
}

/// Ends this process at once, without running what the parent half of a fork has set up to run at
/// its exit.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) only ends the process.
    unsafe { libc::_exit(code) }
}

/// Strings as execve(2) takes them.
#[derive(Debug)]
pub(crate) struct Strings {
    /// What the pointers lead to. It stays in its place when this is moved.
    _strings: Vec<CString>,
    /// To each of them, and null at the end.
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to strings that this owns and that nobody changes.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    pub(crate) fn new(strings: Vec<CString>) -> Strings {
        let pointers = strings.iter().map(|string| string.as_ptr());
        Strings {
            pointers: pointers.chain([std::ptr::null()]).collect(),
            _strings: strings,
        }
    }
}

/// Becomes the program in `file`; no other is tried, and no shell either. Returns only where that
/// failed. Allocates nothing.
pub(crate) fn execve(file: &CStr, words: &Strings, variables: &Strings) -> io::Error {
    // SAFETY: both arrays have a null pointer at their end, and lead to strings that end in NUL and
    // live as long as they do.
    unsafe {
        libc::execve(
            file.as_ptr(),
            words.pointers.as_ptr(),
            variables.pointers.as_ptr(),
        );
    }
    io::Error::last_os_error()
}

/// Prepares `command` to run as a helper: default signals, and ended with its parent. `exec`, if
/// there is one, then becomes the program in the command's place; it must be async-signal-safe
/// and allocate nothing.
pub(crate) fn as_helper(command: &mut Command, exec: Option<Exec>) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only prctl(2), getppid(2), sigaction(2) and execve(2) are
    // called, all of them async-signal-safe; nothing is allocated or locked.
    unsafe {
        command.pre_exec(move || {
            default_signals();
            super::die_with_parent()?;
            if rustix::process::getppid() != Some(parent) {
                // The parent was gone before the kernel knew what to do then.
                exit_now(1);
            }
            exec.as_ref().map_or(Ok(()), |exec| Err(exec()))
        });
    }
}

/// Whether `child` has ended. It is not collected, so its number stays its own.
pub(crate) fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(raw_pid(child)), options)?.is_some())
}

/// KILL to the process group that `child` leads. Only for a child that was started as the leader
/// of a group and has not been collected: nobody else can have that number.
pub(crate) fn kill_group_of(child: &Child) {
    let _ = rustix::process::kill_process_group(raw_pid(child), rustix::process::Signal::KILL);
}

fn raw_pid(child: &Child) -> RawPid {
    RawPid::from_child(child)
}
