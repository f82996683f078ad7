//! The pipe on which a guard says what came of the start, and, in the foreground, of the end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use process::{Interrupts, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// The guard's end. A message is one line: a letter, and what belongs to it.
#[derive(Debug)]
pub struct Report(pub File);

/// What a guard says.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// The command runs; this is its record.
    Up(Vec<u8>),
    /// It does not; this is what to print, and the exit status.
    NotUp(Vec<u8>, u8),
    /// The start failed with this status; why has been said.
    Failed(u8),
    /// The command has ended with this status.
    Ended(u8),
}

impl Report {
    /// Says it. Whoever started the guard may be gone by now; the guard goes on.
    pub fn tell(&mut self, message: &Message) {
        let (head, record): (&[u8], &[u8]) = match message {
            Message::Up(record) => (b"U", record),
            Message::NotUp(record, status) => (&[b'N', *status], record),
            Message::Failed(status) => (&[b'F', *status], b""),
            Message::Ended(status) => (&[b'E', *status], b""),
        };
        let length = u32::try_from(record.len()).unwrap_or(0).to_ne_bytes();
        let _ = self.0.write_all(&[head, &length, record].concat());
    }
}

/// The other end.
#[derive(Debug)]
pub struct Answers {
    pipe: OwnedFd,
    bytes: Vec<u8>,
}

impl Answers {
    /// Reads from `pipe`.
    pub fn new(pipe: OwnedFd) -> Answers {
        Answers {
            pipe,
            bytes: Vec::new(),
        }
    }

    /// The next message; `None` where the guard has gone without another word, or said nothing
    /// for as long as `patience`. Each signal that comes meanwhile is given to `pass_on`, which
    /// says how long to wait from then on.
    ///
    /// # Errors
    ///
    /// Those of poll(2) and read(2).
    pub fn next(
        &mut self,
        interrupts: &Interrupts,
        mut pass_on: impl FnMut(Signal) -> Option<Duration>,
    ) -> io::Result<Option<Message>> {
        let mut patience = None;
        loop {
            if let Some((message, length)) = parse(&self.bytes) {
                self.bytes.drain(..length);
                return Ok(Some(message));
            }
            let mut fds = [self.pipe.as_fd(), interrupts.wake()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let timeout = patience.and_then(|left| rustix::time::Timespec::try_from(left).ok());
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if !fds[0].revents().is_empty() {
                let mut chunk = vec![0; 64 << 10];
                match rustix::io::read(&self.pipe, &mut chunk) {
                    Ok(0) => return Ok(None),
                    Ok(length) => self
                        .bytes
                        .extend_from_slice(chunk.get(..length).unwrap_or_default()),
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
                // A signal that came at the same moment came too late to change what is said.
                if parse(&self.bytes).is_some() {
                    continue;
                }
            }
            for signal in interrupts.take() {
                patience = pass_on(signal).or(patience);
            }
        }
    }
}

/// The message that `bytes` begin with, if it is whole, and its length.
fn parse(bytes: &[u8]) -> Option<(Message, usize)> {
    let (&letter, rest) = bytes.split_first()?;
    let (status, rest) = match letter {
        b'U' => (0, rest),
        _ => {
            let (&status, rest) = rest.split_first()?;
            (status, rest)
        }
    };
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let record = rest.get(..u32::from_ne_bytes(*length) as usize)?;
    let message = match letter {
        b'U' => Message::Up(record.to_vec()),
        b'N' => Message::NotUp(record.to_vec(), status),
        b'E' => Message::Ended(status),
        _ => Message::Failed(status),
    };
    Some((message, bytes.len() - rest.len() + record.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn messages_are_read_as_they_are_sent() {
        let (mut read, write) = io::pipe().unwrap();
        let mut report = Report(File::from(OwnedFd::from(write)));
        let said = [
            Message::Up(b"{\"a\":1}\n".to_vec()),
            Message::NotUp(Vec::new(), 1),
            Message::Failed(127),
            Message::Ended(143),
        ];
        for message in &said {
            report.tell(message);
        }
        drop(report);
        let mut bytes = Vec::new();
        read.read_to_end(&mut bytes).unwrap();
        let mut messages = Vec::new();
        let mut rest = &bytes[..];
        while let Some((message, length)) = parse(rest) {
            for cut in 0..length {
                assert!(
                    parse(&rest[..cut]).is_none(),
                    "took {cut} of {length} bytes"
                );
            }
            messages.push(message);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        assert_eq!(messages, said);
    }
}
