//! `detach`: starts a command outside the caller's session, proves it, and says when it is ready.
//!
//! | room | what it knows |
//! |---|---|
//! | `args` | the command line |
//! | `start` | the start: hold, write down, release, wait until ready |
//! | `ready` | when a command counts as ready |
//! | `lock` | one at a time: the file with the record of the one that runs |
//! | `foreground` | `--wait`: signals in, status out, the timeout |
//! | `ending` | how what was started is ended again |
//!
//! How a process leaves its session and what proves it is the business of the `process` crate.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod ending;
mod foreground;
mod lock;
mod ready;
mod start;

use std::process::ExitCode;
use std::time::Instant;

use clap::CommandFactory;
use process::{ENDING, Here, Interrupts};
use records::human::{Column, HumanView};
use records::{Deadline, Failure, Output, exit, tool};

use args::Args;
use ending::Patience;
use lock::Lock;
use start::{Outcome, Printed, Starter, Up};

/// What `-H` shows.
const HUMAN: HumanView = &[(
    "process",
    &[
        Column {
            key: "status",
            width: 8,
        },
        Column {
            key: "pid",
            width: 7,
        },
        Column {
            key: "took_ms",
            width: 6,
        },
        Column {
            key: "argv",
            width: 0,
        },
    ],
)];

/// The tool's `main`.
pub fn main() -> ExitCode {
    tool::main("detach", run)
}

/// The command line's definition, for manual page and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn run(args: Args) -> Result<exit::Status, Failure> {
    args.check()?;
    let began = Instant::now();
    let here = Here::new();
    let deadline = Deadline::after(args.ready_timeout);
    // Until there is something to end or to report, a signal may end this process as it likes.
    let lock = match &args.lock {
        Some(path) => Some(Lock::take(path, deadline)?),
        None => None,
    };
    let signals: &[process::Signal] = match args.wait {
        true => &foreground::CAUGHT,
        false => &ENDING,
    };
    let interrupts = Interrupts::catch(signals)?;
    let starter = Starter {
        args: &args,
        here: &here,
        interrupts: &interrupts,
        deadline,
        lock,
        began,
    };
    let outcome = starter.start()?;
    drop(starter);
    match outcome {
        Outcome::Up(up) if args.wait => foreground::stay(&args, &here, *up, &interrupts),
        Outcome::Up(up) => report(&args, &here, *up, &interrupts),
        Outcome::Not(Printed::Made(record), status) => {
            let line = serde_json::to_vec(&record)?;
            print(&args, &line, status)
        }
        Outcome::Not(Printed::Found(line), status) => print(&args, &line, status),
        Outcome::Interrupted(signal) => {
            process::die_by(signal);
            Err(Failure::failed("interrupted"))
        }
    }
}

/// Prints the record of a command that runs. One whose record reaches nobody is ended, since its
/// caller, told of a failure, would start another beside it.
fn report(
    args: &Args,
    here: &Here,
    mut up: Up,
    interrupts: &Interrupts,
) -> Result<exit::Status, Failure> {
    let printed = print(args, &serde_json::to_vec(&up.record)?, exit::Status::Done);
    let recorded = args.record.is_some() || args.lock.is_some();
    let signal = interrupts.take().first().copied();
    if printed.is_err() && !recorded {
        ending::end(here, &mut up.child, Patience::Usual);
    }
    match signal {
        // It was under way when the record had been printed; the caller may yet want to see it.
        Some(signal) if printed.is_ok() => {
            process::die_by(signal);
            printed
        }
        _ => printed,
    }
}

fn print(args: &Args, line: &[u8], status: exit::Status) -> Result<exit::Status, Failure> {
    // In the foreground stdout is the command's; the record goes to the file alone.
    if args.wait {
        if let Some(path) = &args.record {
            start::write_record(path, line)?;
        }
        return Ok(status);
    }
    let mut output = Output::new(&args.output, HUMAN);
    output.pass(line)?;
    output.finish()?;
    Ok(status)
}
