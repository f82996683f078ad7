//! The line at the terminal that says what a long wait is for.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::deadline::Deadline;
use crate::say;

/// A wait shorter than this shows nothing.
const QUIET: Duration = Duration::from_secs(2);

/// How often the time left is renewed.
const EVERY: Duration = Duration::from_secs(1);

/// The most that is said of what is awaited, so that the line does not wrap.
const MAX_WHAT: usize = 48;

/// Shows, from two seconds on and where stderr is a terminal, one line there:
/// what is awaited and the time left. It is erased when this is dropped. In the
/// background nothing is shown: the terminal is another's then, and may stop
/// whoever writes there (`stty tostop`).
///
/// The loop that waits calls [`Waiting::tick`] each time round, and waits no
/// longer than [`Waiting::next`].
#[derive(Debug)]
pub struct Waiting {
    what: String,
    deadline: Deadline,
    /// When the line is due; `None` where nobody would see it.
    due: Option<Instant>,
    width: usize,
}

impl Waiting {
    /// A wait for `what` ("the socket /run/x.sock") that begins now.
    pub fn new(what: impl Into<String>, deadline: Deadline) -> Self {
        let seen = std::io::stderr().is_terminal();
        Self {
            what: what.into(),
            deadline,
            due: seen.then(|| Instant::now() + QUIET),
            width: 0,
        }
    }

    /// Renews the line if it is due.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = Some(now + EVERY);
        self.erase();
        let line = line(&self.what, self.deadline.left());
        self.width = line.chars().count();
        write(&line);
    }

    /// When the next tick is due, or never.
    pub fn next(&self) -> Deadline {
        let now = Instant::now();
        Deadline::after_or_never(self.due.map(|due| due.saturating_duration_since(now)))
    }

    /// Erases the line, as before a message.
    pub fn erase(&mut self) {
        if self.width > 0 {
            write(&format!("\r{}\r", " ".repeat(self.width)));
            self.width = 0;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.erase();
    }
}

fn line(what: &str, left: Option<Duration>) -> String {
    let what: String = say::shown(what).chars().take(MAX_WHAT).collect();
    let tool = say::tool();
    match left {
        Some(left) => format!("{tool}: waiting for {what} ({}s left)", left.as_secs()),
        None => format!("{tool}: waiting for {what}"),
    }
}

/// Writes, unless the terminal takes nothing at the moment (it was stopped with
/// ^S, or this is a background job): what is only shown must not hold up the wait.
fn write(text: &str) {
    if is_background() {
        return;
    }
    let mut fds = [PollFd::from_borrowed_fd(
        rustix::stdio::stderr(),
        PollFlags::OUT,
    )];
    let now = Timespec::default();
    if poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0) {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Whether another process group has the terminal. One that is not the
/// controlling terminal is nobody's (ENOTTY), and stops nobody.
fn is_background() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stderr())
        .is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_and_how_long() {
        let left = Some(Duration::from_millis(7900));
        assert!(line("pid 12\x1b", left).ends_with("waiting for pid 12\\x1b (7s left)"));
        assert!(line(&"x".repeat(500), None).chars().count() < 78);
    }
}
