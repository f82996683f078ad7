//! The command line of `detach`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use process::SocketPath;
use records::{Failure, OutputArgs, duration, number};

/// Start a command outside the caller's session, prove it, and say when it is ready
///
/// COMMAND becomes the leader of a session and process group of its own, without a controlling
/// terminal, and detach returns when that is proved, the command has been executed and, if asked,
/// it is ready. Its record is printed; nothing of the caller's is left open in it.
#[derive(Debug, clap::Parser)]
#[command(
    version,
    after_help = "Examples:\n  \
        pid=$(detach -o pid --log srv.log --ready-socket srv.sock -- ./server)\n  \
        detach --wait --timeout 10m -- make test"
)]
pub struct Args {
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true
    )]
    pub command: Vec<OsString>,

    /// Start it in this directory
    #[arg(long, value_name = "DIR")]
    pub chdir: Option<PathBuf>,

    /// Append its standard output and error to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Leave this descriptor open in it (repeatable)
    #[arg(long, value_name = "N", value_parser = descriptor)]
    pub keep_fd: Vec<i32>,

    /// Set this variable to its own pid (repeatable)
    #[arg(long, value_name = "NAME", value_parser = variable)]
    pub pid_env: Vec<OsString>,

    /// Write its record to this file too, whole, before returning
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Show arguments whole, with the values below "env" in JSON arguments
    #[arg(long)]
    pub full_argv: bool,

    /// It is ready when this Unix socket accepts a connection (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Readiness", value_parser = socket())]
    pub ready_socket: Vec<SocketPath>,

    /// It is ready when this file is made or changed after the start (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Readiness")]
    pub ready_file: Vec<PathBuf>,

    /// It is ready when this text appears in the log after the start (repeatable)
    #[arg(long, value_name = "TEXT", help_heading = "Readiness", requires = "log", value_parser = OsStringValueParser::new().try_map(not_empty))]
    pub ready_line: Vec<OsString>,

    /// How long it may take to be ready
    #[arg(long, value_name = "D", help_heading = "Readiness", default_value = "10s", value_parser = duration::parse)]
    pub ready_timeout: Duration,

    /// Start it only if the process whose record is in this file is gone
    #[arg(long, value_name = "FILE", help_heading = "One at a time")]
    pub lock: Option<PathBuf>,

    /// Exit with 1, not 0, if it is already running
    #[arg(long, help_heading = "One at a time", requires = "lock")]
    pub fail_if_running: bool,

    /// Stay until it ends, pass signals on to it, and exit with its status
    #[arg(long, help_heading = "In the foreground")]
    pub wait: bool,

    /// End it, and all that it has started, after this time (exit status 124)
    #[arg(long, value_name = "D", help_heading = "In the foreground", requires = "wait", value_parser = duration::parse)]
    pub timeout: Option<Duration>,

    /// How long it may take to end at the timeout before it is killed
    #[arg(long, value_name = "D", help_heading = "In the foreground", requires = "timeout", default_value = "5s", value_parser = duration::parse)]
    pub grace: Duration,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Args {
    /// What the grammar cannot say: descriptors that are to be kept must be open. Asked before
    /// anything else is opened, since that might take the number.
    ///
    /// # Errors
    ///
    /// Wrong usage.
    pub fn check(&self) -> Result<(), Failure> {
        match self.keep_fd.iter().find(|&&fd| !process::is_open(fd)) {
            Some(fd) => Err(Failure::usage(format_args!(
                "descriptor {fd} is to be kept, and is not open"
            ))),
            None => Ok(()),
        }
    }

    /// Whether readiness was asked for.
    pub fn wants_ready(&self) -> bool {
        !(self.ready_socket.is_empty() && self.ready_file.is_empty() && self.ready_line.is_empty())
    }
}

fn descriptor(word: &str) -> Result<i32, String> {
    let number = number::in_range(word, 0..=i32::MAX as u64)?;
    i32::try_from(number).map_err(|error| error.to_string())
}

fn variable(word: &str) -> Result<OsString, String> {
    if word.is_empty() || word.contains('=') {
        return Err("a variable's name is not empty and has no '='".to_owned());
    }
    Ok(word.into())
}

fn socket() -> impl TypedValueParser<Value = SocketPath> {
    OsStringValueParser::new().try_map(|path| SocketPath::new(&path))
}

fn not_empty(text: OsString) -> Result<OsString, String> {
    if text.is_empty() {
        return Err("an empty text is in every log".to_owned());
    }
    Ok(text)
}
