//! Waiting for what can take long: the caller is told at the terminal, and a signal ends the wait.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use process::{Interrupts, helper};
use records::waiting::Waiting;
use records::{Deadline, Failure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// How long the end of the helpers may take when a signal has come; all of it is to take less than
/// 100 ms.
const LAST_LIMIT: Duration = Duration::from_millis(80);

/// Does `work` in a thread of its own. From two seconds on it says at the terminal, if there is
/// one, what is waited for. A signal that has come ends this process by that signal, with all
/// helpers that it has started.
///
/// # Errors
///
/// No descriptor is left for it, or waiting fails.
pub fn during<T: Send>(
    what: &str,
    deadline: Deadline,
    interrupts: &Interrupts,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    during_or(what, deadline, interrupts, || {}, work)
}

/// As [`during`], and does `last` before a signal ends this process. It must not take long.
///
/// # Errors
///
/// As [`during`].
pub fn during_or<T: Send>(
    what: &str,
    deadline: Deadline,
    interrupts: &Interrupts,
    last: impl FnOnce(),
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let (done, working) = UnixStream::pair()?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Closed at the end, whichever way that comes.
            let _working = working;
            work()
        });
        let mut waiting = Waiting::new(what, deadline);
        loop {
            waiting.tick();
            if let Some(signal) = interrupts.take().first() {
                drop(waiting);
                last();
                helper::kill_all(LAST_LIMIT);
                process::die_by(*signal);
            }
            let wake = interrupts.wake();
            let mut fds = [
                PollFd::from_borrowed_fd(wake, PollFlags::IN),
                PollFd::from_borrowed_fd(done.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, waiting.next().timespec().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(std::io::Error::from(errno).into()),
            }
            if !fds[1].revents().is_empty() {
                break;
            }
        }
        drop(waiting);
        match worker.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Lets signals end this process again, as by default, and ends it if one has come meanwhile.
pub fn release(interrupts: Interrupts) {
    if let Some(signal) = interrupts.release() {
        process::die_by(signal);
    }
}
