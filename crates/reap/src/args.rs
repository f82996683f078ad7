//! The command line of `reap`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use process::end::{EndOptions, Scope};
use process::{Operand, Signal};
use records::{OutputArgs, duration};

/// End processes by identity, and come back only when they are dead
///
/// Targets are the operands or, without any, the records on standard input: each record is passed
/// on with what became of its process under "reap". A target is ended with all its descendants,
/// and with its process group if it leads one. Its members are found before the first signal and
/// held, so that no number which has been handed out again is ever signalled.
#[derive(Debug, clap::Parser)]
#[group(skip)]
#[command(
    version,
    after_long_help = include_str!("../manual.txt"),
    after_help = "Examples:\n  \
        reap --until vanished \"$ident\"\n  \
        holder-scan --session-id \"$id\" --own-arg wrapper.js | reap"
)]
pub struct Args {
    /// What to end: a pid, or the identity of a process; with none, records on standard input
    #[arg(value_name = "PID|IDENT", value_parser = operand)]
    pub operands: Vec<Operand>,

    /// End the process that this file names by its pid or its record (repeatable)
    #[arg(long, value_name = "FILE")]
    pub pidfile: Vec<PathBuf>,

    /// How far to reach from a target
    #[arg(long, value_name = "SCOPE", default_value = "auto")]
    pub scope: ScopeName,

    /// Take records without an identity by their pid alone
    #[arg(long)]
    pub allow_bare_pid: bool,

    /// End holders of our own in which an agent is active, too
    #[arg(long)]
    pub active: bool,

    /// Of a group whose leader is gone, take members too that are not proved to be of it
    #[arg(long)]
    pub leaderless: bool,

    /// The first signal: TERM, SIGTERM or 15
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = signal)]
    #[arg(help_heading = "Sequence")]
    pub signal: Signal,

    /// How long to wait before KILL
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    #[arg(help_heading = "Sequence")]
    pub grace: Duration,

    /// How long to wait after KILL
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    #[arg(help_heading = "Sequence")]
    pub kill_grace: Duration,

    /// Stop before KILL
    #[arg(long, help_heading = "Sequence")]
    pub no_kill: bool,

    /// Be done when all are dead, or when no entry of them is left in the process table either
    #[arg(
        long,
        value_name = "STATE",
        default_value = "dead",
        help_heading = "Sequence"
    )]
    pub until: Until,

    /// Say what would be signalled, and signal nothing
    #[arg(short = 'n', long, help_heading = "Sequence")]
    pub dry_run: bool,

    /// Show arguments whole, with the values below "env" in JSON arguments
    #[arg(long, help_heading = "Output")]
    pub full_argv: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

impl Args {
    /// How the sequence is to go.
    pub fn end_options(&self) -> EndOptions {
        EndOptions {
            signal: self.signal,
            grace: self.grace,
            kill_grace: self.kill_grace,
            kill: !self.no_kill,
            vanish: self.until == Until::Vanished,
            dry_run: self.dry_run,
        }
    }

    /// Whether the targets come from the command line.
    pub fn has_operands(&self) -> bool {
        !self.operands.is_empty() || !self.pidfile.is_empty()
    }
}

/// The words for [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// The target alone
    Process,
    /// The process group that the target leads
    Group,
    /// The target and all its descendants
    Tree,
    /// The tree, and the group too if the target leads it
    Auto,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Scope {
        match name {
            ScopeName::Process => Scope::Process,
            ScopeName::Group => Scope::Group,
            ScopeName::Tree => Scope::Tree,
            ScopeName::Auto => Scope::Auto,
        }
    }
}

/// When a target counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// When it is dead; a zombie is
    Dead,
    /// When its entries have left the process table as well
    Vanished,
}

/// A process by its number or its identity. Somebody who names a file means the record in it.
fn operand(word: &str) -> Result<Operand, String> {
    word.parse().map_err(|error: String| {
        match !word.is_empty() && std::path::Path::new(word).is_file() {
            true => format!("{error}; records are read from standard input: reap <{word}"),
            false => error,
        }
    })
}

/// A signal by its name, with SIG or without, in any case, or by its number. Only those that end a
/// process unless it decides otherwise: the others (STOP, CONT, WINCH) would end nothing.
fn signal(word: &str) -> Result<Signal, String> {
    let signal = if word.starts_with(|first: char| first.is_ascii_digit()) {
        let number = records::number::parse(word)?;
        let number = i32::try_from(number).ok();
        number.and_then(|number| Signal::try_from(number).ok())
    } else {
        let name = word.to_ascii_uppercase();
        let bare = name.strip_prefix("SIG").unwrap_or(&name);
        format!("SIG{bare}").parse().ok()
    };
    let signal = signal.ok_or("not the name or number of a signal")?;
    match signal {
        Signal::SIGSTOP
        | Signal::SIGTSTP
        | Signal::SIGTTIN
        | Signal::SIGTTOU
        | Signal::SIGCONT
        | Signal::SIGCHLD
        | Signal::SIGURG
        | Signal::SIGWINCH => Err("not a signal that ends a process".to_owned()),
        ending => Ok(ending),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn signals_by_name_and_number() {
        for word in ["TERM", "SIGTERM", "15", "term", "SigTerm"] {
            assert_eq!(signal(word), Ok(Signal::SIGTERM), "{word}");
        }
        assert_eq!(signal("KILL"), Ok(Signal::SIGKILL));
        assert_eq!(signal("hup"), Ok(Signal::SIGHUP));
        for word in [
            "",
            "0",
            "-15",
            "+15",
            "015",
            "15.0",
            "65",
            "99",
            "SIG",
            "SIGSIGTERM",
            "STOP",
            "19",
            "CONT",
            "CHLD",
            "TERM ",
            "WINCH",
        ] {
            assert!(signal(word).is_err(), "{word:?} was taken");
        }
    }
}
