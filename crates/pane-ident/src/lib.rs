//! `pane-ident`: bind a multiplexer pane to the process that owned it, and later tell whether that
//! still holds.
//!
//! | room | what it knows |
//! |---|---|
//! | [`verdict`] | whether a record still holds: the decision, on plain data |
//! | [`claim`] | what a record claims |
//! | [`scene`] | what is to be seen of the servers, panes and processes of the claims |
//! | [`servers`] | which servers can be asked |
//! | [`program`], [`caller`] | what a process runs; who asks |
//! | [`capture`], [`verify`], [`exec`] | the three jobs |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
pub mod caller;
pub mod capture;
pub mod claim;
pub mod exec;
mod notice;
pub mod program;
pub mod scene;
pub mod servers;
pub mod verdict;
pub mod verify;

use std::ffi::OsStr;

use clap::CommandFactory;
use records::human::{Column, HumanView};
use records::{Failure, Status, tool};

pub use args::{Args, CaptureArgs, ExecArgs, Job, Subject, VerifyArgs};

/// How records are shown to eyes.
const HUMAN: HumanView = &[("binding", COLUMNS), ("process", COLUMNS)];

const COLUMNS: &[Column] = &[
    column("pane", 10),
    column("pid", 7),
    column("verdict.state", 8),
    column("verdict.reason", 14),
    column("label", 12),
    column("cwd", 24),
    column("exe", 0),
];

const fn column(key: &'static str, width: usize) -> Column {
    Column { key, width }
}

/// The `pane-ident` command.
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    tool::main("pane-ident", words, run)
}

/// The command line's definition, for manual page and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn run(args: Args) -> Result<Status, Failure> {
    match args.job {
        Job::Capture(args) => capture::run(&args),
        Job::Verify(args) => verify::run(&args),
        Job::Exec(args) => exec::run(&args),
    }
}
