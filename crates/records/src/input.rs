//! Reading lines and records in bounded memory.

use std::fmt;
use std::io::{self, Read};

use memchr::memchr;

use crate::record::Record;

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
    name: String,
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
    pub input: String,
    /// The line's number, counted from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: {}", self.input, self.number, self.why)
    }
}

impl Lines<io::Stdin> {
    /// The lines of standard input.
    pub fn stdin() -> Self {
        Self::new("standard input", io::stdin())
    }
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`, which messages call `name`.
    pub fn new(name: impl Into<String>, reader: R) -> Self {
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
        let (name, max_line) = (self.name.clone(), self.max_line);
        let bad = |number, why| {
            Input::Bad(BadLine {
                input: name,
                number,
                why,
            })
        };
        Ok(self.next_line()?.map(|line| match line {
            Line::Whole { number, bytes } => match Record::parse(bytes) {
                Ok(record) => Input::Record(record),
                Err(why) => bad(number, why),
            },
            Line::TooLong { number } => bad(number, format!("longer than {max_line} bytes")),
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
