//! The pipe on which a new process says how far it has come.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::LaunchError;

/// Reads the next message from the status pipe.
pub(super) fn next_message(
    status: &OwnedFd,
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<Message, LaunchError> {
    let mut head = [0; 1];
    if !read(status, &mut head, wake, deadline)? {
        return Ok(Message::End);
    }
    let mut number = [0; 4];
    let cut_short = || LaunchError::Failed("the new process broke off".to_owned());
    if !read(status, &mut number, wake, deadline)? {
        return Err(cut_short());
    }
    let number = i32::from_ne_bytes(number);
    let [tag] = head;
    match tag {
        b'P' => Ok(Message::Proved(number)),
        b'E' => Ok(Message::Executing),
        _ => {
            let length = usize::try_from(number).unwrap_or(0).min(Report::LONGEST);
            let mut text = vec![0; length];
            if !read(status, &mut text, wake, deadline)? {
                return Err(cut_short());
            }
            let why = String::from_utf8_lossy(&text).into_owned();
            Ok(Message::Failed(Kind::of(tag).error(why)))
        }
    }
}

/// Fills `bytes`; `false` where the pipe ended first.
fn read(
    status: &OwnedFd,
    bytes: &mut [u8],
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<bool, LaunchError> {
    let failed = |errno: Errno| LaunchError::Failed(format!("cannot read a pipe: {errno}"));
    let mut filled = 0;
    while filled < bytes.len() {
        let mut fds: Vec<PollFd<'_>> = std::iter::once(status.as_fd())
            .chain(wake)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Err(LaunchError::GivenUp),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        match fds.first() {
            Some(own) if !own.revents().is_empty() => {}
            _ if fds.iter().any(|fd| !fd.revents().is_empty()) => {
                return Err(LaunchError::GivenUp);
            }
            _ => continue,
        }
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        match rustix::io::read(status, rest) {
            Ok(0) => return Ok(false),
            Ok(length) => filled += length,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(true)
}

/// What the new process says of itself on the status pipe.
pub(super) enum Message {
    /// It leads its own session; this is its pid as it knows it.
    Proved(i32),
    /// All is set, exec(2) comes next.
    Executing,
    /// It gave up.
    Failed(LaunchError),
    /// The pipe is closed.
    End,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    NotFound,
    CannotRun,
    NotIsolated,
    Failed,
}

impl Kind {
    fn tag(self) -> u8 {
        match self {
            Kind::NotFound => b'N',
            Kind::CannotRun => b'C',
            Kind::NotIsolated => b'I',
            Kind::Failed => b'F',
        }
    }

    fn of(tag: u8) -> Kind {
        match tag {
            b'N' => Kind::NotFound,
            b'C' => Kind::CannotRun,
            b'I' => Kind::NotIsolated,
            _ => Kind::Failed,
        }
    }

    fn error(self, why: String) -> LaunchError {
        match self {
            Kind::NotFound => LaunchError::NotFound(why),
            Kind::CannotRun => LaunchError::CannotRun(why),
            Kind::NotIsolated => LaunchError::NotIsolated(why),
            Kind::Failed => LaunchError::Failed(why),
        }
    }
}

/// The child's end of the status pipe. A message is a tag, a number and, on failure, a text of
/// that many bytes; each is written whole, being shorter than PIPE_BUF.
pub(super) struct Report(pub(super) OwnedFd);

impl Report {
    const LONGEST: usize = 400;

    /// Its descriptor, which has to stay open.
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// It leads its own session, as the process `pid`.
    pub(super) fn proved(&self, pid: i32) {
        self.send(b'P', pid, &[]);
    }

    /// All is set, exec(2) comes next.
    pub(super) fn executing(&self) {
        self.send(b'E', 0, &[]);
    }

    /// It gives up.
    pub(super) fn failed(&self, kind: Kind, why: &str) {
        let text = why.as_bytes();
        let text = text.get(..Report::LONGEST).unwrap_or(text);
        self.send(kind.tag(), i32::try_from(text.len()).unwrap_or(0), text);
    }

    fn send(&self, tag: u8, number: i32, text: &[u8]) {
        let mut message = vec![tag];
        message.extend_from_slice(&number.to_ne_bytes());
        message.extend_from_slice(text);
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.0, &message));
    }
}

/// A pipe whose ends no program that is executed inherits.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}
