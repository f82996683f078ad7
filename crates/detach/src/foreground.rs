//! In the foreground: the command's signals, its status, and its time.

use process::{Handle, Here, Interrupts, Signal};
use records::waiting::Waiting;
use records::{Deadline, Failure, exit, say};

use crate::args::Args;
use crate::ending::{self, Patience};
use crate::keeper::Keeper;
use crate::start::Up;

/// What is passed on to the command's process group; and CHLD, which only wakes the wait: orphaned
/// descendants may have been given to us, and want to be collected.
pub const CAUGHT: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCHLD,
];

/// Stays until the command ends, and takes over its status; or until its time is over.
///
/// # Errors
///
/// The wait itself failed.
pub fn stay(
    args: &Args,
    here: &Here,
    mut up: Up,
    keeper: Option<&Keeper>,
    interrupts: &Interrupts,
) -> Result<exit::Status, Failure> {
    let deadline = Deadline::after_or_never(args.timeout);
    let mut shown = Waiting::new("end of the command", deadline);
    loop {
        // First, so that a child which ends after it has been looked at wakes the wait below.
        for signal in interrupts.take() {
            if signal != Signal::SIGCHLD {
                up.child.signal_group(signal);
            }
        }
        if let Some(exit) = up.child.exit() {
            let status = exit.shell_status().ok_or_else(|| {
                Failure::failed("the command has ended, and the kernel does not tell how")
            })?;
            return Ok(exit::Status::Code(status));
        }
        process::collect_adopted(up.child.pid());
        if deadline.passed() {
            let patience = Patience::Grace(args.grace);
            let ended = ending::end_on_purpose(here, &mut up.child, keeper, patience);
            if ended != ending::ENDED {
                say!("{ended}");
            }
            return Ok(exit::Status::Deadline);
        }
        if args.timeout.is_some() {
            shown.tick();
        }
        let next = match args.timeout {
            Some(_) => deadline.min(shown.next()),
            None => deadline,
        };
        let handles: Vec<&Handle> = up.handle.iter().collect();
        process::wait(&handles, Some(interrupts.wake()), next.instant())?;
    }
}
