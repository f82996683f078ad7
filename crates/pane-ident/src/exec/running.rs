//! The command while it runs.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use process::end::{self, EndOptions, Scope, Target, Watch};
use process::{Handle, Here, Interrupts, Pid, Signal};
use records::{Failure, Status, say};

/// What becomes of a command that is not done at its timeout: TERM, and KILL after this time.
const GRACE: Duration = Duration::from_secs(1);

/// The same where this process is asked to end, which takes 100 ms at the most.
const LAST_GRACE: Duration = Duration::from_millis(40);

/// How a command's run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    ByItself,
    /// It was ended at its timeout.
    TimedOut,
    /// It was ended because this process was asked to end.
    Interrupted(Signal),
}

/// The command while it runs, a child in this process's own group, so that it has the terminal.
pub(super) struct Running {
    child: Child,
}

impl Running {
    pub(super) fn start(argv: &[OsString]) -> Result<Running, Failure> {
        let (program, words) = argv
            .split_first()
            .ok_or_else(|| Failure::usage("there is no command"))?;
        process::helper::expect_children();
        let child = Command::new(program).args(words).spawn().map_err(|error| {
            let (status, why) = match error.kind() {
                ErrorKind::NotFound if process::command_exists(program) => {
                    (Status::CannotRun, "its interpreter is missing".to_owned())
                }
                ErrorKind::NotFound => (Status::NotFound, error.to_string()),
                _ => (Status::CannotRun, error.to_string()),
            };
            let program = program.to_string_lossy();
            Failure::new(status, format_args!("{program}: {why}"))
        })?;
        Ok(Running { child })
    }

    /// Waits until the command has ended, or ends it.
    pub(super) fn finish(
        mut self,
        here: &Here,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<(Ending, Option<ExitStatus>), Failure> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let pid = Pid::new(self.child.id().into());
        // A child that has not been collected keeps its number.
        let handle = pid.and_then(|pid| here.open(pid).ok());
        loop {
            let exit = self.child.try_wait()?;
            // A terminal sends its signals to this process and to the command alike.
            if let Some(signal) = interrupts.take().first() {
                if exit.is_none() {
                    self.end(here, *signal, LAST_GRACE)?;
                }
                return Ok((Ending::Interrupted(*signal), self.child.try_wait()?));
            }
            if let Some(exit) = exit {
                return Ok((Ending::ByItself, Some(exit)));
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                self.end(here, Signal::SIGTERM, GRACE)?;
                return Ok((Ending::TimedOut, self.child.try_wait()?));
            }
            wait_once(handle.as_ref(), interrupts, until)?;
        }
    }

    /// Ends the command and what it has started.
    fn end(&mut self, here: &Here, signal: Signal, grace: Duration) -> Result<(), Failure> {
        let Some(pid) = Pid::new(self.child.id().into()) else {
            return Ok(());
        };
        let Ok(handle) = here.open(pid) else {
            // Nothing of it is left but its status.
            return Ok(());
        };
        let options = EndOptions {
            signal,
            grace,
            kill_grace: grace,
            ..EndOptions::default()
        };
        let targets = vec![Target::alive(handle, Scope::Tree)];
        let ended = end::end(here, targets, &options, Watch::default())?;
        let left: usize = ended
            .reports
            .iter()
            .map(|report| report.survivors.len())
            .sum();
        if left > 0 {
            say!("not yet dead: {left} of the command's processes");
        }
        Ok(())
    }
}

/// Waits until the command ends, a signal comes, or it is time.
fn wait_once(
    handle: Option<&Handle>,
    interrupts: &Interrupts,
    until: Option<Instant>,
) -> io::Result<()> {
    match handle {
        Some(handle) => process::wait(&[handle], Some(interrupts.wake()), until),
        // It has ended already, or cannot be held: look again soon.
        None => {
            let soon = Instant::now() + Duration::from_millis(10);
            let until = until.map_or(soon, |until| until.min(soon));
            process::wait(&[], Some(interrupts.wake()), Some(until))
        }
    }
}
