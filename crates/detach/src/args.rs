//! The command line of `detach`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use process::SocketPath;
use records::{Failure, OutputArgs, duration, number};

use crate::breaker::Policy;

/// Start a command outside the caller's session, prove it, and say when it is ready
///
/// COMMAND becomes the leader of a session and process group of its own, without a controlling
/// terminal, and detach returns when that is proved, the command has been executed and, if asked,
/// it is ready. Its record is printed; nothing of the caller's is left open in it.
#[derive(Clone, Debug, clap::Parser)]
#[group(skip)]
#[command(
    version,
    override_usage = "detach [OPTIONS] [--] COMMAND [ARG]...\n       \
        detach --sweep DIR --announce FILE",
    after_long_help = include_str!("../manual.txt"),
    after_help = "Examples:\n  \
        pid=$(detach -o pid --log srv.log --ready-socket srv.sock -- ./server)\n  \
        detach --wait --timeout 10m -- make test"
)]
pub struct Args {
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required_unless_present = "sweep",
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments
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
    #[arg(hide_short_help = true)]
    pub keep_fd: Vec<i32>,

    /// Set this variable to its own pid (repeatable)
    #[arg(long, value_name = "NAME", value_parser = variable)]
    pub pid_env: Vec<OsString>,

    /// Write its record to this file too, whole, before returning
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Show arguments whole, with the values below "env" in JSON arguments
    #[arg(long)]
    #[arg(hide_short_help = true)]
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
    #[arg(long, help_heading = "One at a time")]
    #[arg(hide_short_help = true)]
    pub fail_if_running: bool,

    /// Stay until it ends, pass signals on to it, and exit with its status
    #[arg(long, help_heading = "In the foreground")]
    pub wait: bool,

    /// End it, and all that it has started, after this time (exit status 124)
    #[arg(long, value_name = "D", help_heading = "In the foreground", requires = "wait", value_parser = duration::parse)]
    pub timeout: Option<Duration>,

    /// How long it may take to end at the timeout before it is killed
    #[arg(long, value_name = "D", help_heading = "In the foreground", requires = "timeout", default_value = "5s", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub grace: Duration,

    /// Have a process of its own wait for it, and announce its death
    #[arg(long, help_heading = "Death is never silent", requires = "announce")]
    pub guard: bool,

    /// Append a line to this file when it ends
    #[arg(long, value_name = "FILE", help_heading = "Death is never silent")]
    pub announce: Option<PathBuf>,

    /// This file stands for it while it runs, and until its death is announced
    #[arg(long, value_name = "FILE.marker", help_heading = "Death is never silent", requires = "announce", value_parser = OsStringValueParser::new().try_map(marker))]
    pub marker: Option<PathBuf>,

    /// Copy this text into its marker and announcements
    #[arg(
        long,
        value_name = "TEXT",
        help_heading = "Death is never silent",
        requires = "announce"
    )]
    #[arg(hide_short_help = true)]
    pub tag: Option<String>,

    /// Announce the deaths in this folder whose guards have died too; no command is started
    #[arg(long, value_name = "DIR", help_heading = "Death is never silent", requires = "announce", conflicts_with_all = ["command", "guard", "marker", "wait", "lock", "restart", "tag"])]
    pub sweep: Option<PathBuf>,

    /// Start it again when it has ended unnaturally
    #[arg(long, value_name = "WHEN", help_heading = "Restarts", requires_all = ["marker", "announce"])]
    pub restart: Option<Restart>,

    /// Give up after this many restarts in a row that were not healthy
    #[arg(long, value_name = "N", help_heading = "Restarts", requires = "restart", default_value = "5", value_parser = count)]
    #[arg(hide_short_help = true)]
    pub max_restarts: u32,

    /// A run that lasts this long is healthy
    #[arg(long, value_name = "D", help_heading = "Restarts", requires = "restart", default_value = "60s", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub healthy: Duration,

    /// Exit status 0 sooner than this is no natural end
    #[arg(long, value_name = "D", help_heading = "Restarts", default_value = "8s", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub min_uptime: Duration,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When a command is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Restart {
    /// When it has ended by a signal, with a code other than 0, or too soon.
    OnFailure,
}

impl Args {
    /// What the grammar cannot say: descriptors that are to be kept must be open. Asked before
    /// anything else is opened, since that might take the number.
    ///
    /// # Errors
    ///
    /// Wrong usage.
    pub fn check(&self) -> Result<(), Failure> {
        if self.announce.is_some() && !self.guard && self.marker.is_none() && self.sweep.is_none() {
            return Err(Failure::usage(
                "--announce goes with --guard, --marker or --sweep",
            ));
        }
        if self.fail_if_running && self.lock.is_none() && self.ready_socket.is_empty() {
            return Err(Failure::usage(
                "--fail-if-running goes with --lock or --ready-socket",
            ));
        }
        match self.keep_fd.iter().find(|&&fd| !process::is_open(fd)) {
            Some(fd) => Err(Failure::usage(format_args!(
                "descriptor {fd} is to be kept, and is not open"
            ))),
            None => Ok(()),
        }
    }

    /// Makes the names of files that are written absolute, so that they mean the same from any
    /// directory.
    ///
    /// # Errors
    ///
    /// There is no present directory to begin at.
    pub fn make_absolute(&mut self) -> Result<(), Failure> {
        let paths = [
            &mut self.log,
            &mut self.record,
            &mut self.lock,
            &mut self.announce,
        ];
        for path in paths
            .into_iter()
            .chain([&mut self.marker, &mut self.chdir])
            .flatten()
        {
            *path = std::path::absolute(&*path)
                .map_err(|error| Failure::failed(format_args!("{}: {error}", path.display())))?;
        }
        Ok(())
    }

    /// What can be asked of the names of files once they are absolute: no two are the same, or one
    /// of them would be written over the other; and those that others find by a record can be
    /// written down in it.
    ///
    /// # Errors
    ///
    /// Wrong usage; or a name that is not UTF-8.
    pub fn check_names(&self) -> Result<(), Failure> {
        let names = [
            ("--lock", &self.lock),
            ("--record", &self.record),
            ("--marker", &self.marker),
            ("--announce", &self.announce),
            ("--log", &self.log),
        ];
        if let Some((one, other, path)) = same_name(&names) {
            let path = path.display();
            return Err(Failure::usage(format_args!(
                "{one} and {other} are the same file, {path}"
            )));
        }
        if self.sweep.is_some() {
            return Ok(());
        }
        // The log is read again by whoever announces a death in the place of the guard.
        let log = self.log.as_ref().filter(|_| self.marker.is_some());
        let written = [&self.marker, &self.announce].into_iter().flatten();
        for path in written.chain(log) {
            utf8(path)?;
        }
        Ok(())
    }

    /// Whether a guard stays with the command.
    pub fn is_guarded(&self) -> bool {
        self.guard || self.restart.is_some()
    }

    /// Whether the command can be found by a file, should nobody read the record that is printed.
    pub fn is_recorded(&self) -> bool {
        self.record.is_some() || self.lock.is_some()
    }

    /// When the command is started again.
    pub fn policy(&self) -> Policy {
        Policy {
            restart: self.restart.is_some(),
            max_restarts: self.max_restarts,
            healthy: self.healthy,
            min_uptime: self.min_uptime,
        }
    }

    /// Whether readiness was asked for.
    pub fn wants_ready(&self) -> bool {
        !(self.ready_socket.is_empty() && self.ready_file.is_empty() && self.ready_line.is_empty())
    }
}

/// The first two options that name the same file, and the file.
fn same_name<'a>(
    names: &[(&'a str, &'a Option<PathBuf>)],
) -> Option<(&'a str, &'a str, &'a PathBuf)> {
    names.iter().enumerate().find_map(|(at, (other, name))| {
        let path = name.as_ref()?;
        let before = names.get(..at)?.iter();
        let (one, _) = before
            .clone()
            .find(|(_, name)| name.as_ref() == Some(path))?;
        Some((*one, *other, path))
    })
}

/// The name of a file that goes into a record and is read from there again: it has to be the same
/// then.
///
/// # Errors
///
/// It is not UTF-8.
pub fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str()
        .ok_or_else(|| Failure::failed(format_args!("{}: the name is not UTF-8", path.display())))
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

/// A marker's name ends in `.marker`, or no sweep would ever find it.
fn marker(path: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    match path.extension() {
        Some(extension) if extension == "marker" => Ok(path),
        _ => Err("a marker's name ends in .marker".to_owned()),
    }
}

fn count(word: &str) -> Result<u32, String> {
    let number = number::in_range(word, 0..=u32::MAX.into())?;
    u32::try_from(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Args {
        use clap::Parser;
        let mut args = Args::parse_from([&["detach"], words, &["true"]].concat());
        args.make_absolute().unwrap();
        args
    }

    #[test]
    fn no_file_is_two_things() {
        let options = ["--lock", "--record", "--marker", "--announce", "--log"];
        let here = std::env::current_dir().unwrap().join("x.marker");
        let spellings = ["x.marker", "./x.marker", here.to_str().unwrap()];
        for (at, one) in options.iter().enumerate() {
            for other in &options[at + 1..] {
                for spelling in spellings {
                    let mut words = vec![*one, "x.marker", *other, spelling];
                    if !words.contains(&"--announce") {
                        words.extend(["--announce", "a"]);
                    }
                    let failure = args(&words).check_names().unwrap_err();
                    assert_eq!(failure.status(), records::exit::Status::Usage, "{words:?}");
                    let expected = format!("{one} and {other} are the same file");
                    assert!(failure.message().starts_with(&expected), "{words:?}");
                }
            }
        }
        let others = ["--lock", "l", "--record", "r", "--marker", "m.marker"];
        let more = ["--announce", "a", "--log", "o"];
        assert!(
            args(&[&others[..], &more[..]].concat())
                .check_names()
                .is_ok()
        );
    }
}
