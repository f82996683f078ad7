//! The command line of `pane-ident`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use process::{Identity, Pid};
use records::{OutputArgs, duration};

use crate::claim::LegacyKey;
use crate::servers::ServerArgs;
use crate::verdict::State;

/// Bind a multiplexer pane to the process that owns it, and tell later whether that still holds
///
/// A pane id is an address, not an identity: after a restart of the multiplexer the same id is
/// somebody else's pane. 'capture' binds the address to the process that owns it; 'verify' tells
/// whether that still holds, before anything is typed into the pane, read from it or removed with
/// it; 'exec' runs a command between two such checks.
#[derive(Debug, clap::Parser)]
#[group(skip)]
#[command(
    version,
    subcommand_required = true,
    arg_required_else_help = false,
    disable_help_subcommand = true,
    after_long_help = include_str!("../manual.txt"),
    after_help = "Examples:\n  \
        pane-ident capture --tmux %3 > task.json\n  \
        pane-ident verify --only match -q < task.json && tmux send-keys -t %3 make Enter"
)]
pub struct Args {
    /// What is to be done
    #[command(subcommand)]
    pub job: Job,
}

/// The three jobs.
#[derive(Debug, clap::Subcommand)]
pub enum Job {
    /// Print a record that binds a pane to its process
    ///
    /// The pane's process is read, its identity taken, and the pane looked at again: if it has
    /// changed hands meanwhile, all of it is done again, so that a record never mixes two.
    /// Exit status: 0 bound, 1 no such pane or no process in it, 3 the multiplexer did not
    /// say, 124 not in time.
    #[command(after_help = "Examples:\n  \
        pane-ident capture --tmux work:build --merge task.json > task.bound.json\n  \
        pane-ident capture --self -o ident")]
    Capture(CaptureArgs),
    /// Tell of records, or of identities, whether they still hold
    ///
    /// Every record of standard input is printed with a key 'verdict'. Its state is unknown,
    /// unbound, foreign, self, match, moved, orphaned or gone, tried in this order. With IDENT
    /// operands, a record of each process is printed instead.
    /// Exit status: 0 all match, 3 something is unknown, 1 otherwise; with --only: 0 something was
    /// passed on, else 3 if something is unknown, else 1.
    #[command(after_help = "Examples:\n  \
        cat tasks/*.json | pane-ident verify --only match -o task,pane\n  \
        pane-ident verify -q \"$ident\" || echo 'not that process any more'")]
    Verify(VerifyArgs),
    /// Run a command only while a record holds
    ///
    /// The record is verified, COMMAND is run, and the record is verified again. An argument that
    /// is exactly {pane}, {pid} or {socket} is replaced by the binding's; no shell is run.
    /// Exit status: 122 no match before, nothing was run; 123 the pane changed hands meanwhile; 124 the
    /// command was ended at the timeout; 126, 127 it could not be run, was not found; else its own.
    #[command(after_help = "Examples:\n  \
        pane-ident exec --binding task.json -- tmux capture-pane -p -t {pane}\n  \
        pane-ident exec --binding task.json --timeout 10s -- herdr pane send-keys {pane} enter")]
    Exec(ExecArgs),
}

/// What is to be bound.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Subject {
    /// Bind a process alone
    #[arg(long, value_name = "PID")]
    pub pid: Option<Pid>,

    /// A tmux pane: %N, @N or SESSION:WINDOW[.PANE]; a window is its active pane
    #[arg(long, value_name = "PANE")]
    pub tmux: Option<String>,

    /// A herdr pane
    #[arg(long, value_name = "PANE")]
    pub herdr: Option<String>,

    /// A kitty window
    #[arg(long, value_name = "ID")]
    pub kitty: Option<String>,

    /// The pane that this runs in, by its environment, checked
    #[arg(long = "self")]
    pub own: bool,
}

/// `capture`
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct CaptureArgs {
    /// What is to be bound.
    #[command(flatten)]
    pub subject: Subject,

    /// Put the binding's keys into the record in FILE (-: standard input), which keeps its type
    #[arg(long, value_name = "FILE")]
    pub merge: Option<PathBuf>,

    /// Show arguments whole, with the values below "env" in JSON arguments
    #[arg(long)]
    pub full_argv: bool,

    /// How long all of it may take
    #[arg(long, value_name = "D", default_value = "5s", value_parser = duration::parse)]
    pub timeout: Duration,

    /// Which servers there are.
    #[command(flatten)]
    pub servers: ServerArgs,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `verify`
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("address").args(["tmux", "herdr", "kitty"]).requires("idents"))]
pub struct VerifyArgs {
    /// Identities to be judged, instead of records on standard input
    #[arg(value_name = "IDENT", value_parser = identity)]
    pub idents: Vec<Identity>,

    /// Pass on only the records of these states
    #[arg(
        long,
        value_name = "STATE[,STATE]...",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub only: Vec<State>,

    /// Judge only the records that name this pane; drop the others
    #[arg(long, value_name = "ID", conflicts_with = "idents")]
    pub pane: Option<String>,

    /// Compare a record without identity by these of its keys (cwd, label)
    #[arg(
        long,
        value_name = "KEY[,KEY]",
        value_delimiter = ',',
        hide_possible_values = true,
        conflicts_with = "idents"
    )]
    pub legacy: Vec<LegacyKey>,

    /// The process must still run the same program with the same arguments
    #[arg(long, conflicts_with = "idents")]
    pub same_argv: bool,

    /// IDENT must be the process of this tmux pane
    #[arg(long, value_name = "PANE")]
    pub tmux: Option<String>,

    /// IDENT must be the process of this herdr pane
    #[arg(long, value_name = "PANE")]
    pub herdr: Option<String>,

    /// IDENT must be the process of this kitty window
    #[arg(long, value_name = "ID")]
    pub kitty: Option<String>,

    /// IDENT must be an ancestor of the caller
    #[arg(long, requires = "idents")]
    pub ancestor: bool,

    /// Believe 'gone' only if it still is after this time
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    pub settle: Option<Duration>,

    /// How long all records together may take
    #[arg(long, value_name = "D", default_value = "5s", value_parser = duration::parse)]
    pub timeout: Duration,

    /// Which servers there are.
    #[command(flatten)]
    pub servers: ServerArgs,

    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// An identity. What is easily given instead is a pid, or the file with the record.
fn identity(word: &str) -> Result<Identity, String> {
    let parsed = word.parse::<Identity>();
    parsed.map_err(|error| {
        if word.parse::<Pid>().is_ok() {
            return format!(
                "a pid alone cannot be verified; its identity is told by \
                 'pane-ident capture --pid {word} -o ident'"
            );
        }
        let hint = process::file_hint(
            word,
            "records are read from standard input, 'pane-ident verify",
        );
        format!("{error}{hint}")
    })
}

/// `exec`
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ExecArgs {
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,

    /// The file that holds the binding's record
    #[arg(long, value_name = "FILE")]
    pub binding: PathBuf,

    /// The process must still run the same program with the same arguments
    #[arg(long)]
    pub same_argv: bool,

    /// End the command after this time: by TERM, and a second later by KILL
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    pub timeout: Option<Duration>,

    /// Write a record of what was done to this file
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,

    /// Which servers there are.
    #[command(flatten)]
    pub servers: ServerArgs,
}
