//! The caller's half of a guarded start: it starts the guard, and prints what that says.

use std::time::Duration;

use process::{Here, Identity, Interrupts, LaunchError, Signal, Standing};
use records::{Deadline, Failure, Record, exit};

use crate::args::Args;
use crate::lock::Lock;
use crate::print::print;
use crate::status::{Answers, Message, Report};
use crate::{ending, guard};

/// How long a guard that was asked to end its command during the start may take: this process has
/// a tenth of a second to follow the signal.
const HASTE: Duration = Duration::from_millis(90);

/// How long a guard may take to end a command whose record could not be printed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long such a command has to end by TERM.
const GRACE: Duration = Duration::from_secs(2);

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
    let guard = process::fork_apart(move |held_back| {
        use std::os::fd::AsRawFd;
        let locked = lock.as_ref().map(Lock::descriptor);
        let own = [report.as_raw_fd()].into_iter().chain(locked);
        let keep: Vec<i32> = args.keep_fd.iter().copied().chain(own).collect();
        if process::close_descriptors(&keep).is_err() {
            return exit::Status::Failed.code();
        }
        guard::run(args, lock, deadline, Report(report), held_back)
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
    match started {
        Some(Message::Up(_)) if args.wait => foreground(&mut answers, &interrupts, &guard),
        Some(Message::Up(record)) => {
            // A signal that came first has ended this call already, though the guard was faster:
            // the record is not printed, for which a reader would have to be waited for.
            let printed = match interrupted {
                Some(signal) => Ok(Some(signal)),
                None => print(args, &record, &interrupts),
            };
            if !args.is_recorded() {
                match &printed {
                    Ok(None) => {}
                    Ok(Some(_)) => end_unreported(&record, &guard, HASTE / 2, HASTE),
                    Err(_) => end_unreported(&record, &guard, GRACE, PATIENCE),
                }
            }
            let unread = crate::read_by_somebody(args, printed, ending::ENDED)?;
            // One that comes now is too late for the command, which the caller knows of.
            let late = || interrupts.take().first().copied();
            if let Some(signal) = interrupted.or(unread).or_else(late) {
                process::die_by(signal);
            }
            Ok(exit::Status::Done)
        }
        _ if let Some(signal) = interrupted => {
            // In every other case the guard itself has said so, or is going to.
            if matches!(started, Some(Message::Ended(_))) {
                ending::say_interrupted(signal, ending::ENDED);
            }
            process::die_by(signal);
        }
        Some(Message::NotUp(record, status)) => {
            crate::tell(args, &record, exit::Status::Code(status), &interrupts)
        }
        Some(Message::Failed(status) | Message::Ended(status)) => Ok(exit::Status::Code(status)),
        None => Err(Failure::failed("guard lost")),
    }
}

/// Ends the command `record`, of which its caller could not be told, and waits for its guard, all
/// of it for at most `patience`. KILL comes `grace` after TERM.
fn end_unreported(record: &[u8], guard: &process::Child, grace: Duration, patience: Duration) {
    guard.signal(Signal::SIGTERM);
    let until = Deadline::after(patience);
    let kill_at = Deadline::after(grace);
    let ident = Record::parse(record)
        .ok()
        .and_then(|record| record.str("ident")?.parse::<Identity>().ok());
    let mut command = ident.and_then(|ident| match Here::new().find(&ident, None) {
        Standing::Same(handle) => Some(handle),
        _ => None,
    });
    while guard.ended().is_none() && !until.passed() {
        if kill_at.passed()
            && let Some(command) = command.take()
        {
            command.signal(Signal::SIGKILL);
        }
        until.sleep(Duration::from_millis(5));
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
