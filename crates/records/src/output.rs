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
pub struct OutputArgs {
    /// Print only these values of each record (dotted: verdict.state), separated by tabs
    #[arg(
        short = 'o',
        long = "output",
        help_heading = HEADING,
        value_name = "KEY[,KEY]...",
        value_delimiter = ',',
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub keys: Vec<String>,

    /// With -o: print the values as words for the shell's eval
    #[arg(long, requires = "keys", conflicts_with = "human", help_heading = HEADING)]
    pub sh: bool,

    /// Print an aligned line a record, for eyes
    #[arg(short = 'H', long, conflicts_with = "keys", help_heading = HEADING)]
    pub human: bool,

    /// Print nothing on stdout; the exit status is the answer
    #[arg(short, long, help_heading = HEADING)]
    pub quiet: bool,
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
        let line = serde_json::to_vec(record)?;
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
            let mut portion = rest;
            if self.is_pipe {
                portion = whole_lines(rest, PIPE_BUF);
            }
            if self.deadline != Deadline::never() {
                self.wait_for_room()?;
                portion = &portion[..portion.len().min(PIPE_BUF)];
            }
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
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::time::Duration;

    use crate::exit::Status;
    use crate::human::Column;

    const VIEW: HumanView = &[("x", &[Column { key: "a", width: 3 }])];

    fn args(words: &[&str]) -> Result<OutputArgs, clap::Error> {
        use clap::{Args, FromArgMatches};
        let command = OutputArgs::augment_args(clap::Command::new("x").no_binary_name(true));
        OutputArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// What the lines become under these options.
    fn print(words: &[&str], lines: &[&str]) -> String {
        let file = tempfile::tempfile().unwrap();
        let fd = OwnedFd::from(file.try_clone().unwrap());
        let mut output = Output::to(&args(words).unwrap(), VIEW, fd);
        for line in lines {
            output.pass(line.as_bytes()).unwrap();
        }
        output.finish().unwrap();
        let mut file = file;
        std::io::Seek::rewind(&mut file).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn options_choose_the_form() {
        let lines = [r#"{ "type":"x","a":1e400,"b":"t\tu" }"#, "{}"];
        let table: [(&[&str], &str); 8] = [
            (&[], "{ \"type\":\"x\",\"a\":1e400,\"b\":\"t\\tu\" }\n{}\n"),
            (&["-o", "a"], "1e400\n"),
            (&["-o", "b,none", "--output", "a"], "t u\t\t1e400\n"),
            (&["-o", "b,a", "--sh"], "'t\tu' 1e400\n"),
            (&["-H"], "1e400\n-\n"),
            (&["-q"], ""),
            (&["-q", "-o", "a"], ""),
            (&["-qH"], ""),
        ];
        for (words, want) in table {
            assert_eq!(print(words, &lines), want, "{words:?}");
        }
    }

    #[test]
    fn options_that_contradict_are_refused() {
        let wrong: [&[&str]; 6] = [
            &["--sh"],
            &["-H", "-o", "a"],
            &["-o", ""],
            &["-o", "a,,b"],
            &["-o", "a,"],
            &["-H", "--sh"],
        ];
        for words in wrong {
            assert!(args(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_heading_does_not_reach_the_tools_own_options() {
        #[derive(clap::Parser)]
        struct Tool {
            #[command(flatten)]
            _output: OutputArgs,
            #[arg(long)]
            _other: bool,
        }
        let command = <Tool as clap::CommandFactory>::command();
        let heading = |id: &str| {
            let mut all = command.get_arguments();
            all.find(|arg| arg.get_id() == id)
                .unwrap()
                .get_help_heading()
        };
        assert_eq!(heading("sh"), Some("Output"));
        assert_eq!(heading("_other"), None);
        command.debug_assert();
    }

    #[test]
    fn a_record_keeps_the_order_of_its_keys() {
        #[derive(Serialize)]
        struct Made {
            v: u8,
            r#type: &'static str,
            a: Option<u64>,
        }
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut output = Output::to(&OutputArgs::default(), VIEW, write);
        let (v, a) = (1, None);
        output.emit(&Made { v, r#type: "x", a }).unwrap();
        output.finish().unwrap();
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        assert_eq!(text, "{\"v\":1,\"type\":\"x\",\"a\":null}\n");
    }

    #[test]
    fn a_reader_that_went_away_ends_it_quietly_and_for_good() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut output = Output::to(&OutputArgs::default(), VIEW, write);
        output.pass(b"{}").unwrap();
        drop(read);
        assert!(output.flush().unwrap_err().is_reader_gone());
        assert!(output.flush().unwrap_err().is_reader_gone());
        assert!(output.finish().unwrap_err().is_reader_gone());
    }

    #[test]
    fn a_full_disk_is_a_failure_of_the_tool() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = Output::to(&OutputArgs::default(), VIEW, full.into());
        output.pass(b"{}").unwrap();
        let failure = output.finish().unwrap_err();
        assert_eq!(failure.status(), Status::Failed);
        assert!(
            failure
                .message()
                .starts_with("cannot write to standard output: ")
        );
    }

    #[test]
    fn a_reader_that_does_not_read_is_waited_for_no_longer_than_allowed() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        let mut output = Output::to(&OutputArgs::default(), VIEW, write);
        let deadline = Deadline::after(Duration::from_millis(50));
        output.set_deadline(deadline);
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
        let failure = output.pass(long.as_bytes()).unwrap_err();
        assert_eq!(failure.status(), Status::Deadline);
        assert!(deadline.passed());
    }

    #[test]
    fn a_non_blocking_descriptor_is_waited_for() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::ioctl_fionbio(&write, true).unwrap();
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::from(read).read_to_string(&mut text).map(|_| text)
        });
        let mut output = Output::to(&OutputArgs::default(), VIEW, write);
        output.pass(long.as_bytes()).unwrap();
        output.finish().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), format!("{long}\n"));
    }

    #[test]
    fn lines_of_several_writers_to_a_pipe_do_not_mix() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let writers: Vec<_> = ["a", "b"]
            .map(|letter| {
                let fd = write.try_clone().unwrap();
                std::thread::spawn(move || {
                    let mut output = Output::to(&OutputArgs::default(), VIEW, fd);
                    for i in 0..2000 {
                        let line = letter.repeat(1 + i % 700);
                        output.pass(line.as_bytes()).unwrap();
                    }
                    output.finish().unwrap();
                })
            })
            .into();
        drop(write);
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(text.lines().count(), 4000);
        for line in text.lines() {
            let first = &line[..1];
            assert_eq!(line.trim_matches(first.chars().next().unwrap()), "");
        }
    }

    #[test]
    fn the_rest_is_written_when_it_is_dropped() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut output = Output::to(&OutputArgs::default(), VIEW, write);
        output.pass(b"{}").unwrap();
        drop(output);
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}\n");
    }

    #[test]
    fn portions_are_whole_lines() {
        let table: [(&[u8], usize, &[u8]); 5] = [
            (b"ab\ncd\n", 6, b"ab\ncd\n"),
            (b"ab\ncd\n", 5, b"ab\n"),
            (b"ab\ncd\nef\n", 6, b"ab\ncd\n"),
            (b"abcdef\ng\n", 3, b"abcdef\n"),
            (b"abcdef", 3, b"abcdef"),
        ];
        for (bytes, max, want) in table {
            assert_eq!(whole_lines(bytes, max), want);
        }
    }
}
