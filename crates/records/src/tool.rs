//! The frame of every tool: arguments in, exit status out.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, Write as _};

use crate::exit::Status;
use crate::say;

/// Why a tool stops early: an exit status and the message that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    status: Status,
    message: Option<String>,
}

impl Failure {
    /// A failure with a status and a message.
    pub fn new(status: Status, message: impl Display) -> Self {
        Self {
            status,
            message: Some(message.to_string()),
        }
    }

    /// Wrong usage that the command line's grammar cannot express (2).
    pub fn usage(message: impl Display) -> Self {
        Self::new(Status::Usage, message)
    }

    /// The tool itself failed (125).
    pub fn failed(message: impl Display) -> Self {
        Self::new(Status::Failed, message)
    }

    /// It could not be found out (3).
    pub fn unknown(message: impl Display) -> Self {
        Self::new(Status::Unknown, message)
    }

    /// The answer is no (1), and why.
    pub fn no(message: impl Display) -> Self {
        Self::new(Status::No, message)
    }

    /// The deadline passed (124), and what was waited for.
    pub fn deadline(message: impl Display) -> Self {
        Self::new(Status::Deadline, message)
    }

    /// The reader of stdout went away. [`main`] then ends the process as
    /// `grep` would end: quietly, by SIGPIPE.
    pub fn reader_gone() -> Self {
        Self {
            status: Status::Code(128 + 13),
            message: None,
        }
    }

    /// Whether this is [`Failure::reader_gone`]. A tool in the middle of
    /// something that must be finished looks here, finishes, and then returns it.
    pub fn is_reader_gone(&self) -> bool {
        self.message.is_none()
    }

    /// The exit status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The message; empty where nothing is to be said.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Puts what was being done before the message: `CONTEXT: message`.
    #[must_use]
    pub fn context(mut self, context: impl Display) -> Self {
        if let Some(message) = &mut self.message {
            *message = format!("{context}: {message}");
        }
        self
    }
}

impl From<io::Error> for Failure {
    /// The tool itself failed (125). The message is the error's own, so it
    /// should name the file already, as all errors of this crate do.
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(format_args!("cannot make a record: {error}"))
    }
}

/// A tool's `main`: reads the command line `words`, runs, and gives the exit status.
///
/// - `--help` and `--version` go to stdout, with status 0.
/// - Wrong usage is said on stderr as `NAME: message`, with status 2.
/// - A [`Failure`] is said as `NAME: message`, with its own status.
/// - [`Failure::reader_gone`] ends the process by SIGPIPE.
///
/// Nothing is coloured, whatever the terminal and the environment.
pub fn main<A: clap::Parser>(
    name: &'static str,
    words: Vec<&OsStr>,
    run: impl FnOnce(A) -> Result<Status, Failure>,
) -> u8 {
    say::set_tool(name);
    let outcome = match parse(name, words) {
        Ok(args) => run(args),
        Err(error) => not_parsed(&error),
    };
    match outcome {
        Ok(status) => status.code(),
        Err(failure) if failure.is_reader_gone() => die_by_sigpipe(),
        Err(failure) => {
            say!("{}", failure.message());
            failure.status().code()
        }
    }
}

fn parse<A: clap::Parser>(name: &'static str, words: Vec<&OsStr>) -> Result<A, clap::Error> {
    let mut command = A::command().name(name).bin_name(name);
    let mut matches = command.try_get_matches_from_mut(words)?;
    A::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Help and version are output; everything else is wrong usage.
fn not_parsed(error: &clap::Error) -> Result<Status, Failure> {
    let text = error.render().to_string();
    if error.use_stderr() {
        say::say_lines(text.strip_prefix("error: ").unwrap_or(&text));
        return Ok(Status::Usage);
    }
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| stdout_failure(&error))?;
    Ok(Status::Done)
}

/// What an error on stdout means for the tool.
pub(crate) fn stdout_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::reader_gone(),
        _ => Failure::failed(format_args!("cannot write to standard output: {error}")),
    }
}

/// Ends this process by SIGPIPE, so that a shell's `pipefail` and a parent's
/// wait see what they see of any other filter. The runtime ignores SIGPIPE
/// since start; here its default action is put back, it is unblocked and raised.
fn die_by_sigpipe() -> u8 {
    // The first process of a pid namespace cannot die so, and would be made to
    // crash instead.
    if std::process::id() != 1 {
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    }
    // What a shell makes of a death by SIGPIPE.
    Failure::reader_gone().status().code()
}
