//! A second process of this very program, in a session of its own; and what it needs to be one.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use super::child::Child;
use super::pipe::{Kind, Message, Report, next_message, pipe};
use super::{LaunchError, isolate};
use crate::helper::expect_children;
use crate::pid::Pid;
use crate::sys::{self, Fork};

/// Starts a process of this very program, the leader of a session and process group of its own,
/// that runs `work` and leaves with the status it returns. It has every signal at its default, and
/// held back until `work` drops what it is given: one that comes before it can be caught is not
/// lost. It has whatever descriptors this process has open.
///
/// # Errors
///
/// There is no such process, or it does not lead a session of its own.
pub fn fork_apart(work: impl FnOnce(Blocked) -> u8) -> Result<Child, LaunchError> {
    let failed = |error: io::Error| LaunchError::Failed(format!("cannot fork: {error}"));
    expect_children();
    let (status, status_in) = pipe().map_err(failed)?;
    match sys::fork().map_err(failed)? {
        Fork::Child => {
            drop(status);
            let report = Report(status_in);
            if let Err(why) = isolate(rustix::process::getpid().as_raw_nonzero().get()) {
                report.failed(Kind::NotIsolated, &why);
                sys::exit_now(125);
            }
            drop(report);
            sys::default_all_signals();
            sys::exit_now(work(Blocked(SigSet::empty())).into());
        }
        Fork::Parent(raw) => {
            drop(status_in);
            let pid = Pid::new(raw.into())
                .ok_or_else(|| LaunchError::Failed("fork gave no pid".to_owned()))?;
            let mut child = Child::new(pid);
            match next_message(&status, None, None)? {
                Message::End => Ok(child),
                Message::Failed(error) => {
                    child.wait();
                    Err(error)
                }
                _ => Err(LaunchError::Failed(
                    "the new process is confused".to_owned(),
                )),
            }
        }
    }
}

/// Signals that are held back as long as this value lives. Then those are held back that were
/// before.
#[derive(Debug)]
pub struct Blocked(SigSet);

/// Holds every signal back, for the moment between a fork and the time when the signals are
/// caught: one that comes in between is then not lost, nor does it end this process in the middle.
///
/// # Errors
///
/// Those of pthread_sigmask(3).
pub fn block_signals() -> io::Result<Blocked> {
    Ok(Blocked(
        SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?,
    ))
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}

/// Has a write that cannot succeed, to a pipe that nobody reads or past the limit on the size of
/// files, fail, where it would end this process: PIPE and XFSZ are ignored, write(2).
pub fn survive_failing_writes() {
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        sys::ignore_signal(signal);
    }
}

/// Closes these descriptors of this process.
pub fn close(fds: &[i32]) {
    for &fd in fds {
        let _ = nix::unistd::close(fd);
    }
}

/// Closes every descriptor of this process above 2 but those of `keep`. For a process that was
/// forked: whoever owned the others goes on in the other one.
///
/// # Errors
///
/// They cannot be listed.
pub fn close_descriptors(keep: &[i32]) -> io::Result<()> {
    sys::close_all_but(keep)
}

/// Whether the descriptor `fd` is open.
pub fn is_open(fd: i32) -> bool {
    sys::descriptor_flags(fd).is_ok()
}
