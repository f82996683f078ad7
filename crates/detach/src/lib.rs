//! `detach`: starts a command outside the caller's session, proves it, and says when it is ready.
//!
//! | room | what it knows |
//! |---|---|
//! | `args` | the command line |
//! | `start` | the start: hold, write down, release, wait until ready |
//! | `running` | what was to be started, and is there already |
//! | `ready` | when a command counts as ready |
//! | `lock` | one at a time: the file with the record of the one that runs |
//! | `pause` | one at a time: the one that is about to be started again |
//! | `foreground` | `--wait`: signals in, status out, the timeout |
//! | `ending` | how what was started is ended again |
//! | `guard`, `attend` | the process that announces the command's death, and whoever has started it |
//! | `keeper`, `death`, `announce` | the marker, the record of a death, and that it is told once |
//! | `breaker`, `restarts` | whether a command that has ended is started again, and with what |
//! | `sweep` | deaths whose guards have died too |
//!
//! How a process leaves its session and what proves it is the business of the `process` crate.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod announce;
mod args;
mod attend;
mod breaker;
mod death;
mod ending;
mod foreground;
mod guard;
mod keeper;
mod lock;
mod pause;
mod print;
mod ready;
mod restarts;
mod running;
mod start;
mod status;
mod sweep;

use std::ffi::OsStr;
use std::time::Instant;

use clap::CommandFactory;
use process::{ENDING, Here, Interrupts, Signal};
use records::human::{Column, HumanView};
use records::{Deadline, Failure, exit, tool};

use args::Args;
use ending::Patience;
use keeper::Keeper;
use print::print;
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
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    tool::main("detach", words, run)
}

/// The command line's definition, for manual page and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn run(mut args: Args) -> Result<exit::Status, Failure> {
    process::unblock(&process::ENDING);
    // Before it is caught: what was ignored at the start is not.
    process::helper::expect_children();
    // Otherwise a limit on the size of files would end this process between the start of the
    // command and its report.
    process::survive_failing_writes();
    args.check()?;
    args.output.check_keys(&[match args.sweep {
        Some(_) => death::ExitRecord::KEYS,
        None => process::ProcessRecord::KEYS,
    }])?;
    args.make_absolute()?;
    args.check_names()?;
    if let (Some(dir), Some(announce)) = (&args.sweep, &args.announce) {
        return sweep::sweep(&args, dir, announce);
    }
    let began = Instant::now();
    let here = Here::new();
    let deadline = Deadline::after(args.ready_timeout);
    // Until there is something to end or to report, a signal may end this process as it likes.
    let lock = match &args.lock {
        Some(path) => Some(pause::take_lock(&args, &here, path, deadline)?),
        None => None,
    };
    if args.is_guarded() {
        return attend::attend(&args, lock, deadline);
    }
    let keeper = match &args.marker {
        Some(_) => Some(Keeper::new(&args, None)?),
        None => None,
    };
    let interrupts = Interrupts::catch(signals(&args))?;
    let starter = Starter {
        args: &args,
        here: &here,
        interrupts: &interrupts,
        deadline,
        lock,
        began,
        keeper: keeper.as_ref(),
        streams: None,
    };
    let outcome = starter.start();
    drop(starter);
    let outcome = match outcome {
        // It gave up because of the signal, which says more than that it did.
        Err(_) | Ok(Outcome::Broken(..))
            if !args.wait
                && let Some(signal) = interrupts.take().first() =>
        {
            ending::say_interrupted(*signal, "nothing of the command is left");
            Outcome::Interrupted(*signal, None)
        }
        outcome => outcome?,
    };
    match outcome {
        Outcome::Up(up) if args.wait => {
            foreground::stay(&args, &here, *up, keeper.as_ref(), &interrupts)
        }
        Outcome::Up(up) => report(&args, &here, *up, keeper.as_ref(), &interrupts),
        Outcome::Unready(up, status) => {
            let line = serde_json::to_vec(&up.record)?;
            tell(&args, &line, status, &interrupts)
        }
        Outcome::Not(Printed::Made(record), status) => {
            let line = serde_json::to_vec(&record)?;
            tell(&args, &line, status, &interrupts)
        }
        Outcome::Not(Printed::Found(line), status) => tell(&args, &line, status, &interrupts),
        Outcome::Broken(_, failure) => Err(failure),
        Outcome::Interrupted(signal, _) => process::die_by(signal),
    }
}

/// The signals that are caught: those that are the command's, in the foreground; else those that
/// end this process.
fn signals(args: &Args) -> &'static [Signal] {
    match args.wait {
        true => &foreground::CAUGHT,
        false => &ENDING,
    }
}

/// Prints the record of a command that runs. One whose record reaches nobody is ended, since its
/// caller, told of a failure, would start another beside it.
fn report(
    args: &Args,
    here: &Here,
    mut up: Up,
    keeper: Option<&Keeper>,
    interrupts: &Interrupts,
) -> Result<exit::Status, Failure> {
    let printed = print(args, &serde_json::to_vec(&up.record)?, interrupts);
    let patience = match &printed {
        Ok(None) => None,
        Ok(Some(_)) => Some(Patience::Hasty),
        Err(_) => Some(Patience::Usual),
    };
    let ended = match patience.filter(|_| !args.is_recorded()) {
        Some(patience) => ending::end_on_purpose(here, &mut up.child, keeper, patience),
        None => ending::ENDED,
    };
    let unread = read_by_somebody(args, printed, ended)?;
    // One that comes when the record has been printed: the caller may yet want to see it.
    if let Some(signal) = unread.or_else(|| interrupts.take().first().copied()) {
        process::die_by(signal);
    }
    Ok(exit::Status::Done)
}

/// What came of printing the record of a command that runs, which has been ended by now, as `ended`
/// says, unless it can be found by a file. Says which of the two it is, where the record has not
/// been read.
fn read_by_somebody(
    args: &Args,
    printed: Result<Option<Signal>, Failure>,
    ended: &str,
) -> Result<Option<Signal>, Failure> {
    let outcome = match args.record.as_ref().or(args.lock.as_ref()) {
        Some(file) => format!("the command runs; its record is in {}", file.display()),
        None => ended.to_owned(),
    };
    if let Ok(Some(signal)) = printed {
        ending::say_interrupted(signal, &outcome);
    }
    // A reader that is gone is no reason to say anything.
    printed.map_err(|failure| match failure.is_reader_gone() {
        true => failure,
        false => Failure::new(
            failure.status(),
            format_args!("{}; {outcome}", failure.message()),
        ),
    })
}

/// Prints the record of what does not run, or has run before.
fn tell(
    args: &Args,
    line: &[u8],
    status: exit::Status,
    interrupts: &Interrupts,
) -> Result<exit::Status, Failure> {
    if let Some(signal) = print(args, line, interrupts)? {
        process::die_by(signal);
    }
    Ok(status)
}
