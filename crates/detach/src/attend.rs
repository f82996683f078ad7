//! The caller's half of a guarded start: it starts the guard, and prints what that says.

use std::time::Duration;

use process::{Interrupts, LaunchError, Signal};
use records::{Deadline, Failure, exit};

use crate::args::Args;
use crate::guard;
use crate::lock::Lock;
use crate::status::{Answers, Message, Report};

/// How long a guard that was asked to end its command during the start may take: this process has
/// a tenth of a second to follow the signal.
const HASTE: Duration = Duration::from_millis(90);

/// How long a guard may take to end a command whose record could not be printed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a guard, which starts the command, and prints what came of that; in the foreground stays
/// until the command has ended.
///
/// # Errors
///
/// There is no guard, or it was lost.
pub fn attend(
    args: &Args,
    lock: Option<Lock>,
    deadline: Deadline,
) -> Result<exit::Status, Failure> {
    let held_back = process::block_signals()?;
    let (answers, report) = std::io::pipe()?;
    let report = std::fs::File::from(std::os::fd::OwnedFd::from(report));
    let guard = process::fork_apart(move || {
        use std::os::fd::AsRawFd;
        let locked = lock.as_ref().map(Lock::descriptor);
        let own = [report.as_raw_fd()].into_iter().chain(locked);
        let keep: Vec<i32> = args.keep_fd.iter().copied().chain(own).collect();
        if process::close_descriptors(&keep).is_err() {
            return exit::Status::Failed.code();
        }
        guard::run(args, lock, deadline, Report(report))
    })
    .map_err(|error: LaunchError| Failure::failed(error))?;
    let interrupts = Interrupts::catch(crate::signals(args))?;
    drop(held_back);

    let mut answers = Answers::new(answers.into());
    let mut interrupted = None;
    let started = answers.next(&interrupts, |signal| {
        if signal == Signal::SIGCHLD {
            return None;
        }
        guard.signal(signal);
        if args.wait {
            return None;
        }
        interrupted = Some(signal);
        Some(HASTE)
    })?;
    if let Some(signal) = interrupted {
        process::die_by(signal);
    }
    match started {
        Some(Message::Up(record)) if args.wait => {
            let _ = record;
            foreground(&mut answers, &interrupts, &guard)
        }
        Some(Message::Up(record)) => {
            let printed = crate::print(args, &record, exit::Status::Done);
            if printed.is_err() && args.record.is_none() && args.lock.is_none() {
                guard.signal(Signal::SIGTERM);
                let until = Deadline::after(PATIENCE);
                while guard.ended().is_none() && !until.passed() {
                    until.sleep(Duration::from_millis(5));
                }
            }
            printed
        }
        Some(Message::NotUp(record, status)) => {
            crate::print(args, &record, exit::Status::Code(status))
        }
        Some(Message::Failed(status) | Message::Ended(status)) => Ok(exit::Status::Code(status)),
        None => Err(Failure::failed("guard lost")),
    }
}

/// Passes signals on to the guard, which passes them on to the command, until that has ended.
fn foreground(
    answers: &mut Answers,
    interrupts: &Interrupts,
    guard: &process::Child,
) -> Result<exit::Status, Failure> {
    let ended = answers.next(interrupts, |signal| {
        if signal != Signal::SIGCHLD {
            guard.signal(signal);
        }
        None
    })?;
    match ended {
        Some(Message::Ended(status)) => Ok(exit::Status::Code(status)),
        _ => Err(Failure::failed("guard lost")),
    }
}
