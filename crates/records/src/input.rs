//! Reading lines and records in bounded memory.

use std::fmt;
use std::io::{self, IsTerminal as _, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::deadline::Deadline;
use crate::record::Record;
use crate::say;

/// The longest line that is taken, without its newline: 16 MiB.
pub const MAX_LINE: usize = 16 << 20;

/// How much is asked for at once; a pipe's usual capacity.
const CHUNK: usize = 64 << 10;

/// Reads lines from anything that can be read.
///
/// Memory grows with the longest line that was met, never with the input, and
/// never beyond the limit: a longer line is skipped to its end and reported.
/// A last line without a newline is a line.
pub struct Lines<R> {
    reader: R,
    name: Arc<str>,
    max_line: usize,
    buffer: Vec<u8>,
    /// `buffer[start..end]` has been read and not been given out.
    start: usize,
    end: usize,
    /// Lines given out so far.
    number: u64,
    at_end: bool,
}

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line within the limit.
    Whole {
        /// Counted from 1.
        number: u64,
        /// Its bytes, without the newline.
        bytes: &'a [u8],
    },
    /// A line over the limit, which has been skipped.
    TooLong {
        /// Counted from 1.
        number: u64,
    },
}

/// One line of an input that is to consist of records.
#[derive(Debug)]
pub enum Input<'a> {
    /// A JSON object.
    Record(Record<'a>),
    /// Something else. It is said on stderr, it makes the exit status 65, and
    /// the rest is done.
    Bad(BadLine),
}

/// A line that is not a record. Its `Display` is the message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// What was read, for people: a file's name or `standard input`.
    pub input: Arc<str>,
    /// The line's number, counted from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: String,
    /// Whether it is a number and nothing else, as `pgrep` prints them.
    pub is_number: bool,
}

/// Whether a line has nothing but a number on it.
fn is_number(bytes: &[u8]) -> bool {
    let word = bytes.trim_ascii();
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: {}", self.input, self.number, self.why)
    }
}

/// Reads a descriptor up to a deadline, without changing its flags, which
/// others may share.
#[derive(Debug)]
pub struct Timed<F> {
    fd: F,
    deadline: Deadline,
}

impl<F: AsFd> Timed<F> {
    /// Reads `fd`; at the deadline, an error of kind `TimedOut`.
    pub fn new(fd: F, deadline: Deadline) -> Self {
        Self { fd, deadline }
    }
}

impl<F: AsFd> Read for Timed<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            match poll(&mut fds, self.deadline.timespec().as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(n) => return Ok(n),
                // Another reader of the same pipe was faster.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Says that standard input is about to be read, where that is a terminal: somebody who has
/// forgotten the input sees a silent program otherwise.
pub fn announce_terminal() {
    if rustix::stdio::stdin().is_terminal() {
        say!("reading standard input, which is a terminal; Ctrl-D ends it");
    }
}

/// The lines of standard input.
pub type StdinLines = Lines<Timed<BorrowedFd<'static>>>;

impl StdinLines {
    /// The lines of standard input, however long they take.
    pub fn stdin() -> Self {
        Self::stdin_until(Deadline::never())
    }

    /// The lines of standard input that come before the deadline; then an error
    /// of kind `TimedOut`.
    pub fn stdin_until(deadline: Deadline) -> Self {
        Self::new(
            "standard input",
            Timed::new(rustix::stdio::stdin(), deadline),
        )
    }
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`, which messages call `name`.
    pub fn new(name: impl Into<Arc<str>>, reader: R) -> Self {
        Self {
            reader,
            name: name.into(),
            max_line: MAX_LINE,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            number: 0,
            at_end: false,
        }
    }

    /// The same with another limit for one line, in bytes.
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// What is read, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next line; `None` at the end of the input.
    ///
    /// # Errors
    /// What the reader says, with the input's name before it and of the same kind.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        // How much of the unread bytes is known to hold no newline.
        let mut searched = 0;
        let (length, newline) = loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr(b'\n', &unread[searched..]) {
                break (searched + at, 1);
            }
            searched = unread.len();
            if searched > self.max_line {
                return self.skip_line();
            }
            if self.at_end {
                if searched == 0 {
                    return Ok(None);
                }
                break (searched, 0);
            }
            self.fill()?;
        };
        let start = self.start;
        self.start += length + newline;
        self.number += 1;
        let number = self.number;
        if length > self.max_line {
            return Ok(Some(Line::TooLong { number }));
        }
        let bytes = &self.buffer[start..start + length];
        Ok(Some(Line::Whole { number, bytes }))
    }

    /// The next line, as a record; `None` at the end of the input.
    ///
    /// # Errors
    /// As [`Lines::next_line`].
    pub fn next_record(&mut self) -> io::Result<Option<Input<'_>>> {
        let (name, max_line) = (Arc::clone(&self.name), self.max_line);
        let bad = |number, why, is_number| {
            Input::Bad(BadLine {
                input: name,
                number,
                why,
                is_number,
            })
        };
        Ok(self.next_line()?.map(|line| match line {
            Line::Whole { number, bytes } => match Record::parse(bytes) {
                Ok(record) => Input::Record(record),
                Err(why) => bad(number, why, is_number(bytes)),
            },
            Line::TooLong { number } => bad(number, format!("longer than {max_line} bytes"), false),
        }))
    }

    /// Whether the next line can be had without waiting for input. A filter
    /// that answers line by line flushes its output where this is false.
    pub fn has_buffered_line(&self) -> bool {
        let unread = &self.buffer[self.start..self.end];
        memchr(b'\n', unread).is_some() || (self.at_end && !unread.is_empty())
    }

    /// Drops the line under way up to its newline, or to the end of the input.
    fn skip_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr(b'\n', unread) {
                self.start += at + 1;
                break;
            }
            self.start = self.end;
            if self.at_end {
                break;
            }
            self.fill()?;
        }
        self.number += 1;
        Ok(Some(Line::TooLong {
            number: self.number,
        }))
    }

    /// Reads once, behind what is unread.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK {
            // Doubling keeps a long line's copying linear.
            let room = (self.buffer.len() * 2).max(self.end + CHUNK);
            self.buffer
                .resize(room.min(self.end + self.max_line.max(CHUNK)), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("{}: {error}", self.name);
                    return Err(io::Error::new(error.kind(), message));
                }
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `chunk` bytes at a time, with an interruption before each.
    struct Slow<'a> {
        rest: &'a [u8],
        chunk: usize,
        interrupted: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = self.chunk.min(self.rest.len()).min(buffer.len());
            let (now, later) = self.rest.split_at(n);
            buffer[..n].copy_from_slice(now);
            self.rest = later;
            Ok(n)
        }
    }

    fn slow(rest: &[u8], chunk: usize) -> Slow<'_> {
        Slow {
            rest,
            chunk,
            interrupted: false,
        }
    }

    /// Lines as text, a skipped one as its number alone.
    fn all<R: Read>(mut lines: Lines<R>) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(match line {
                Line::Whole { number, bytes } => {
                    format!("{number}:{}", String::from_utf8_lossy(bytes))
                }
                Line::TooLong { number } => format!("{number}!"),
            });
        }
        all
    }

    #[test]
    fn lines_come_whole_whatever_the_portions() {
        let text = b"one\n\ntwo\r\n12345678\n123456789\nlong long line\nlast";
        let want = ["1:one", "2:", "3:two\r", "4:12345678", "5!", "6!", "7:last"];
        for chunk in 1..=text.len() {
            let lines = Lines::new("x", slow(text, chunk)).with_max_line(8);
            assert_eq!(all(lines), want, "in portions of {chunk}");
        }
    }

    #[test]
    fn the_end_needs_no_newline() {
        let table: [(&[u8], &[&str]); 6] = [
            (b"", &[]),
            (b"\n", &["1:"]),
            (b"a", &["1:a"]),
            (b"a\n", &["1:a"]),
            (b"too long", &["1!"]),
            (b"too long\n", &["1!"]),
        ];
        for (text, want) in table {
            assert_eq!(all(Lines::new("x", text).with_max_line(4)), want);
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_memory_stays_below_it() {
        let mut text = vec![b'x'; MAX_LINE];
        text.push(b'\n');
        text.extend(vec![b'y'; MAX_LINE + 1]);
        text.extend(b"\n{}\n");
        let mut lines = Lines::new("x", text.as_slice());
        let length = match lines.next_line().unwrap().unwrap() {
            Line::Whole { number: 1, bytes } => bytes.len(),
            line => panic!("{line:?}"),
        };
        assert_eq!(length, MAX_LINE);
        let second = lines.next_line().unwrap().unwrap();
        assert_eq!(second, Line::TooLong { number: 2 });
        let third = lines.next_line().unwrap().unwrap();
        let bytes = b"{}".as_slice();
        assert_eq!(third, Line::Whole { number: 3, bytes });
        assert!(lines.next_line().unwrap().is_none());
        assert!(lines.buffer.capacity() <= 2 * MAX_LINE + CHUNK);
    }

    #[test]
    fn an_endless_line_needs_no_more_memory_than_the_limit() {
        let endless = io::repeat(b'x').take(64 << 20);
        let mut lines = Lines::new("x", endless).with_max_line(1 << 20);
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!(line, Line::TooLong { number: 1 });
        assert!(lines.buffer.capacity() <= 3 << 20);
    }

    #[test]
    fn bad_lines_are_counted_and_the_rest_is_read() {
        let text = b"{\"a\":1}\nnope\n\n{\"b\":\xff}\n{\"c\":3}";
        let mut lines = Lines::new("rows.json", text.as_slice());
        let mut seen = Vec::new();
        while let Some(input) = lines.next_record().unwrap() {
            seen.push(match input {
                Input::Record(record) => record.text().to_owned(),
                Input::Bad(bad) => bad.to_string(),
            });
        }
        assert_eq!(
            seen,
            [
                "{\"a\":1}",
                "rows.json: line 2: not a JSON object",
                "rows.json: line 3: not a JSON object: an empty line",
                "rows.json: line 4: not a JSON object: not UTF-8 at byte 6",
                "{\"c\":3}",
            ]
        );
    }

    #[test]
    fn a_filter_knows_when_it_would_wait() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut lines = Lines::new("pipe", Timed::new(read, Deadline::never()));
        assert!(!lines.has_buffered_line());
        rustix::io::write(&write, b"one\ntwo\nthr").unwrap();
        assert!(lines.next_line().unwrap().is_some());
        assert!(lines.has_buffered_line());
        assert!(lines.next_line().unwrap().is_some());
        assert!(!lines.has_buffered_line());
        drop(write);
        assert!(lines.next_line().unwrap().is_some());
        assert!(!lines.has_buffered_line());
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn reading_ends_at_the_deadline() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let deadline = Deadline::after(std::time::Duration::from_millis(20));
        let mut lines = Lines::new("the pipe", Timed::new(read, deadline));
        let error = lines.next_line().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().starts_with("the pipe: "), "{error}");
        assert!(deadline.passed());
    }
}
