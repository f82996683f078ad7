//! Records out: as JSON lines, as columns, as words, for eyes, or not at all.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;
use serde::Serialize;

use crate::columns;
use crate::deadline::Deadline;
use crate::human::{self, HumanView};
use crate::record::Record;
use crate::say::shown;
use crate::tool::{Failure, stdout_failure};

/// From how many bytes on the buffer is written out.
const BATCH: usize = 64 << 10;

/// Where help lists the options about output.
const HEADING: &str = "Output";

/// The options about output that every tool has; to be flattened into its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub struct OutputArgs {
    /// Print only these values (dotted: verdict.state), separated by tabs
    #[arg(
        short = 'o',
        long = "output",
        help_heading = HEADING,
        value_name = "KEY[,KEY]...",
        value_delimiter = ',',
        value_parser = key
    )]
    pub keys: Vec<String>,

    /// With -o: print the values as words for the shell's eval
    #[arg(long, requires = "keys", conflicts_with = "human", help_heading = HEADING)]
    #[arg(hide_short_help = true)]
    pub sh: bool,

    /// Print an aligned line a record, for eyes
    #[arg(short = 'H', long, conflicts_with = "keys", help_heading = HEADING)]
    pub human: bool,

    /// Print nothing on stdout; the exit status is the answer
    #[arg(short, long, help_heading = HEADING)]
    pub quiet: bool,
}

/// One key of `-o`. Blanks around it are not meant: `-o 'pid, ident'` names two keys.
fn key(text: &str) -> Result<String, String> {
    match text.trim_matches([' ', '\t']) {
        "" => Err("a key is missing".to_owned()),
        key => Ok(key.to_owned()),
    }
}

impl OutputArgs {
    /// Refuses a key of `-o` that no record can have: `known` are the keys of all types of record
    /// that are printed. For a tool that prints only records of its own, before it does anything:
    /// after a start, a mistyped `-o pdi` would be the loss of the pid.
    ///
    /// # Errors
    /// Wrong usage (2), with the keys that there are.
    pub fn check_keys(&self, known: &[&[&str]]) -> Result<(), Failure> {
        let known: Vec<&str> = known.concat();
        let first = |key: &str| key.split('.').next().unwrap_or(key).to_owned();
        let unknown = self.keys.iter().map(|key| first(key));
        match unknown
            .into_iter()
            .find(|key| !known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some(key) => Err(Failure::usage(format_args!(
                "-o: no record here has the key '{key}'; there are {}",
                known.join(", ")
            ))),
        }
    }
}

enum Form {
    Json,
    Columns(Vec<String>),
    ShellWords(Vec<String>),
    Human(HumanView),
    Nothing,
}

enum Target {
    Stdout,
    Other(OwnedFd),
}

/// Where a tool's records go.
///
/// Records are buffered and written in batches, each record whole; a filter
/// calls [`Output::flush`] before it waits for more input. What is left is
/// written by [`Output::finish`], which is to be called for its errors; dropped
/// without it, as after another failure, the rest is written all the same.
pub struct Output {
    form: Form,
    target: Target,
    /// Whether several writers can share the target and writes of up to
    /// `PIPE_BUF` bytes are not torn (pipe(7)).
    is_pipe: bool,
    deadline: Deadline,
    buffer: Vec<u8>,
    /// The first failure, which stays: what could not be written once is not
    /// tried again.
    failure: Option<Failure>,
}

impl Output {
    /// Output on stdout, in the form that the options ask for.
    pub fn new(args: &OutputArgs, human: HumanView) -> Self {
        Self::with_target(args, human, Target::Stdout)
    }

    /// The same on another descriptor.
    pub fn to(args: &OutputArgs, human: HumanView, fd: OwnedFd) -> Self {
        Self::with_target(args, human, Target::Other(fd))
    }

    fn with_target(args: &OutputArgs, human: HumanView, target: Target) -> Self {
        let form = if args.quiet {
            Form::Nothing
        } else if args.human {
            Form::Human(human)
        } else if args.keys.is_empty() {
            Form::Json
        } else if args.sh {
            Form::ShellWords(args.keys.clone())
        } else {
            Form::Columns(args.keys.clone())
        };
        let stat = rustix::fs::fstat(target.as_fd());
        let is_pipe =
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        Self {
            form,
            target,
            is_pipe,
            deadline: Deadline::never(),
            buffer: Vec::new(),
            failure: None,
        }
    }

    /// Bounds all writing: a reader that does not read makes a
    /// [`Failure::deadline`] then. The descriptor's flags, which others share,
    /// stay as they are; it is asked for room first and written in small
    /// portions. (A terminal that is stopped inside of a portion is still
    /// waited for.)
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// Whether nothing is printed (`-q`), so that a tool may stop at the first
    /// answer.
    pub fn is_quiet(&self) -> bool {
        matches!(self.form, Form::Nothing)
    }

    /// Prints a record that the tool makes.
    ///
    /// # Errors
    /// stdout cannot be written (125), its reader is gone, or the deadline
    /// has passed.
    pub fn emit<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<(), Failure> {
        if self.is_quiet() {
            return Ok(());
        }
        let before = self.buffer.len();
        let made = serde_json::to_writer(&mut self.buffer, record);
        self.end_record(before, made)
    }

    /// Ends the record that begins in the buffer at `before`, if it could be made: as the line that
    /// it is, or, taken out again, in the form that is asked for.
    fn end_record(&mut self, before: usize, made: serde_json::Result<()>) -> Result<(), Failure> {
        if made.is_ok() && matches!(self.form, Form::Json) {
            return self.end_line();
        }
        let line = self.buffer[before..].to_vec();
        self.buffer.truncate(before);
        made?;
        self.pass(&line)
    }

    /// Prints a line as it is: one that is passed through, or one made by
    /// [`Record::with`]. `line` has no newline.
    ///
    /// # Errors
    /// As [`Output::emit`].
    pub fn pass(&mut self, line: &[u8]) -> Result<(), Failure> {
        let text = match &self.form {
            Form::Nothing => return Ok(()),
            Form::Json => return self.put(line),
            Form::Columns(keys) => {
                let record = Record::parse(line).ok();
                record.and_then(|record| columns::tabbed(&record, keys))
            }
            Form::ShellWords(keys) => {
                let record = Record::parse(line).ok();
                record.and_then(|record| columns::shell_words(&record, keys))
            }
            Form::Human(view) => Some(match Record::parse(line) {
                Ok(record) => human::line(&record, view),
                Err(_) => shown(&String::from_utf8_lossy(line)).into_owned(),
            }),
        };
        match text {
            Some(text) => self.put(text.as_bytes()),
            None => Ok(()),
        }
    }

    fn put(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.buffer.extend_from_slice(line);
        self.end_line()
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// As [`Output::emit`].
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.failure.is_none() && !self.buffer.is_empty() {
            self.failure = self.write_all(&self.buffer).err().map(|error| {
                if error.kind() == io::ErrorKind::TimedOut {
                    return Failure::deadline("standard output is not read");
                }
                stdout_failure(&error)
            });
        }
        self.buffer.clear();
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// As [`Output::emit`].
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }

    fn write_all(&self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            let portion = if self.deadline != Deadline::never() {
                self.wait_for_room()?;
                lines_within(rest, PIPE_BUF)
            } else if self.is_pipe {
                whole_lines(rest, PIPE_BUF)
            } else {
                rest
            };
            match rustix::io::write(self.target.as_fd(), portion) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => rest = &rest[n..],
                Err(Errno::INTR) => {}
                // Whoever shares the descriptor has made it non-blocking.
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        loop {
            let left = self.deadline.timespec();
            let fd = self.target.as_fd();
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl AsFd for Output {
    /// What is written to, so that a wait can watch it for its reader's going
    /// away.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.target.as_fd()
    }
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdout => rustix::stdio::stdout(),
            Self::Other(fd) => fd.as_fd(),
        }
    }
}

/// As many whole lines from the front of `bytes` as fit into `max`; of one longer
/// line its first `max` bytes, without a look at the rest of it.
fn lines_within(bytes: &[u8], max: usize) -> &[u8] {
    if bytes.len() <= max {
        return bytes;
    }
    let front = &bytes[..max];
    memchr::memrchr(b'\n', front).map_or(front, |end| &front[..=end])
}

/// As many whole lines from the front of `bytes` as fit into `max`; one longer
/// line whole.
fn whole_lines(bytes: &[u8], max: usize) -> &[u8] {
    if bytes.len() <= max {
        return bytes;
    }
    let end = memchr::memrchr(b'\n', &bytes[..max]).or_else(|| memchr::memchr(b'\n', bytes));
    end.map_or(bytes, |end| &bytes[..=end])
}

#[cfg(test)]
mod tests;
