//! The job of `holder-scan`: to list the live processes that hold a session id, a file or a
//! socket, the caller's own and others'.
//!
//! The judgement is a pure function of plain data, a `Snapshot` of the process table,
//! wherever that came from.
//!
//! | room | what it knows |
//! |---|---|
//! | `args` | the command line |
//! | `live`, `glance`, `stores`, `targets` | how the live table becomes a snapshot |
//! | `table` | how a dump becomes one |
//! | `snapshot` | what a snapshot is |
//! | `id`, `names`, `program`, `claims`, `json`, `shell` | what the arguments of a process say |
//! | `claimed` | which sessions each process names, and which it still holds |
//! | `tree`, `criteria`, `judge` | whose a holding is, and what that comes to |
//! | `join` | how rows of a registry compare with the table |
//! | `record`, `evidence`, `look` | what is printed |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod claimed;
mod claims;
mod criteria;
mod evidence;
mod glance;
mod id;
mod join;
mod json;
mod judge;
mod live;
mod look;
mod names;
mod path;
mod program;
mod record;
mod run;
mod shell;
mod snapshot;
mod stores;
mod table;
mod targets;
mod tree;

/// What reads command lines, for the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::claims::{Claim, of_argv};
    pub use crate::evidence::{By, Evidence};
    pub use crate::program::Program;
}

use std::ffi::OsStr;

/// The `holder-scan` command.
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    let (words, more) = args::apart(&words);
    records::tool::main("holder-scan", words, |mut args: args::Args| {
        args.what.add(more);
        run::run(args)
    })
}

/// The command line of `holder-scan`, for what is made of it: manual page, completions.
pub fn command() -> clap::Command {
    <args::Args as clap::CommandFactory>::command()
}

#[cfg(test)]
mod cases;
