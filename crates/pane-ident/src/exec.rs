//! `exec`: a command between two checks.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use process::end::{self, EndOptions, Scope, Target, Watch};
use process::{ENDING, Handle, Here, Interrupts, Pid, Signal};
use records::{Deadline, Failure, Record, Status, files, say};
use serde::Serialize;

use crate::args::ExecArgs;
use crate::claim::Claim;
use crate::scene::Wishes;
use crate::verdict::State;
use crate::verify::{Verdict, verdicts};

/// How long each of the two checks may take.
const CHECK: Duration = Duration::from_secs(5);

/// The largest record of a binding.
const MAX_RECORD: usize = 16 << 20;

/// What becomes of a command that is not done at its timeout: TERM, and KILL after this time.
const GRACE: Duration = Duration::from_secs(1);

/// The same where this process is asked to end, which takes 100 ms at the most.
const LAST_GRACE: Duration = Duration::from_millis(40);

/// The record of what was done.
#[derive(Debug, Serialize)]
struct Summary {
    v: u8,
    r#type: &'static str,
    /// Whether the command was run.
    ran: bool,
    /// Its status, as a shell tells it.
    exit: Option<u8>,
    before: State,
    /// `None` where there was no second check.
    after: Option<State>,
    /// How old the first check was when the command had ended.
    window_ms: Option<u64>,
}

/// Runs `exec`.
///
/// # Errors
///
/// The record cannot be read, it does not match, or the command cannot be run.
pub fn run(args: &ExecArgs) -> Result<Status, Failure> {
    let binding = Binding::read(&args.binding)?;
    check_summary(args)?;
    let here = Here::new();
    let checked = Instant::now();
    let before = binding.check(&here, args);
    if before.state != State::Match {
        write_summary(args, &not_run(before.state))?;
        return Err(Failure::new(
            Status::NoMatch,
            format_args!("nothing was run: {}: {}", before.reason, before.message),
        ));
    }
    let argv = binding.fill_in(&args.command, &before)?;
    let (ending, exit) = match Running::start(&argv) {
        Ok(running) => running.finish(&here, args.timeout)?,
        Err(failure) => {
            write_summary(args, &not_run(before.state))?;
            return Err(failure);
        }
    };
    let window = checked.elapsed().as_millis();
    let after = match ending {
        // Time is up.
        Ending::Interrupted(_) => None,
        Ending::ByItself | Ending::TimedOut => Some(binding.check(&here, args)),
    };
    let summary = Summary {
        ran: true,
        exit: exit.and_then(shell_status),
        after: after.as_ref().map(|after| after.state),
        window_ms: u64::try_from(window).ok(),
        ..not_run(before.state)
    };
    write_summary(args, &summary)?;
    let after = match (ending, after) {
        (Ending::Interrupted(signal), _) => {
            process::die_by(signal);
            return Ok(Status::Code(128 + signal as u8));
        }
        (Ending::TimedOut, _) => {
            return Err(Failure::deadline("the command was not done, and was ended"));
        }
        (Ending::ByItself, after) => after,
    };
    if let Some(after) = after.filter(|after| after.state != State::Match) {
        return Err(Failure::new(
            Status::Changed,
            format_args!(
                "the pane changed hands while the command ran: {}: {}",
                after.reason, after.message
            ),
        ));
    }
    summary
        .exit
        .map(Status::Code)
        .ok_or_else(|| Failure::failed("it cannot be told how the command ended"))
}

fn not_run(before: State) -> Summary {
    Summary {
        v: 1,
        r#type: "exec",
        ran: false,
        exit: None,
        before,
        after: None,
        window_ms: None,
    }
}

/// Finds out before anything is run whether the summary can be written.
fn check_summary(args: &ExecArgs) -> Result<(), Failure> {
    let Some(path) = &args.summary else {
        return Ok(());
    };
    match files::open_trusted(path, files::Access::Read) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            match folder.unwrap_or(Path::new(".")).is_dir() {
                true => Ok(()),
                false => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn write_summary(args: &ExecArgs, summary: &Summary) -> Result<(), Failure> {
    let Some(path) = &args.summary else {
        return Ok(());
    };
    let mut line = serde_json::to_vec(summary)?;
    line.push(b'\n');
    // A signal must not leave a half-made file behind.
    let interrupts = Interrupts::catch(&ENDING)?;
    let written = files::write_whole(path, &line);
    if let Some(signal) = interrupts.release() {
        process::die_by(signal);
    }
    Ok(written?)
}

/// The record of the binding.
struct Binding {
    claim: Claim,
    socket: Option<String>,
}

impl Binding {
    fn read(path: &Path) -> Result<Binding, Failure> {
        let bytes = files::read_trusted(path, MAX_RECORD)?;
        let record = Record::parse(&bytes)
            .map_err(|why| Failure::failed(format_args!("{}: {why}", path.display())))?;
        let claim = Claim::of(&record).ok_or_else(|| {
            let path = path.display();
            Failure::new(
                Status::NoMatch,
                format_args!("{path}: the record names neither a pane nor a process"),
            )
        })?;
        let socket = record.str("server.socket");
        Ok(Binding {
            claim,
            socket: socket.map(std::borrow::Cow::into_owned),
        })
    }

    fn check(&self, here: &Here, args: &ExecArgs) -> Verdict {
        let wishes = Wishes {
            same_argv: args.same_argv,
            ..Wishes::default()
        };
        let claims = [&self.claim];
        let found = verdicts(
            here,
            &claims,
            &wishes,
            &args.servers,
            Deadline::after(CHECK),
        );
        // One claim, one verdict.
        found.into_iter().next().unwrap_or_else(|| Verdict {
            state: State::Unknown,
            reason: "unreadable",
            message: "nothing was found out".to_owned(),
            weak: false,
            pane: None,
            live: None,
            checked_at: records::time::now(),
        })
    }

    /// The command with its placeholders replaced: whole arguments only, so that nothing is ever
    /// pasted into a text.
    fn fill_in(&self, command: &[OsString], verdict: &Verdict) -> Result<Vec<OsString>, Failure> {
        let pid = verdict.live.as_ref().map(|live| live.pid.to_string());
        let value = |word: &OsStr| match word.to_str() {
            Some("{pane}") => Some(verdict.pane.clone()),
            Some("{pid}") => Some(pid.clone()),
            Some("{socket}") => Some(self.socket.clone()),
            _ => None,
        };
        let fill = |word: &OsString| match value(word) {
            None => Ok(word.clone()),
            Some(Some(value)) => Ok(value.into()),
            Some(None) => Err(Failure::usage(format_args!(
                "the binding has nothing to put in place of {}",
                word.to_string_lossy()
            ))),
        };
        command.iter().map(fill).collect()
    }
}

/// How a command's run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    ByItself,
    /// It was ended at its timeout.
    TimedOut,
    /// It was ended because this process was asked to end.
    Interrupted(Signal),
}

/// The command while it runs, a child in this process's own group, so that it has the terminal.
struct Running {
    child: Child,
    interrupts: Interrupts,
}

impl Running {
    fn start(argv: &[OsString]) -> Result<Running, Failure> {
        let (program, words) = argv
            .split_first()
            .ok_or_else(|| Failure::usage("there is no command"))?;
        // First, so that no signal can end this process and leave the command behind.
        let interrupts = Interrupts::catch(&ENDING)?;
        let child = Command::new(program).args(words).spawn().map_err(|error| {
            let status = match error.kind() {
                ErrorKind::NotFound => Status::NotFound,
                _ => Status::CannotRun,
            };
            let program = program.to_string_lossy();
            Failure::new(status, format_args!("{program}: {error}"))
        })?;
        Ok(Running { child, interrupts })
    }

    /// Waits until the command has ended, or ends it. Afterwards signals end this process again.
    fn finish(
        mut self,
        here: &Here,
        timeout: Option<Duration>,
    ) -> Result<(Ending, Option<ExitStatus>), Failure> {
        let (ending, exit) = self.wait(here, timeout)?;
        // A terminal sends its signals to this process and to the command alike.
        match self.interrupts.release() {
            Some(signal) if ending == Ending::ByItself => Ok((Ending::Interrupted(signal), exit)),
            _ => Ok((ending, exit)),
        }
    }

    fn wait(
        &mut self,
        here: &Here,
        timeout: Option<Duration>,
    ) -> Result<(Ending, Option<ExitStatus>), Failure> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let pid = Pid::new(self.child.id().into());
        // A child that has not been collected keeps its number.
        let handle = pid.and_then(|pid| here.open(pid).ok());
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((Ending::ByItself, Some(status)));
            }
            if let Some(signal) = self.interrupts.take().first() {
                self.end(here, *signal, LAST_GRACE)?;
                return Ok((Ending::Interrupted(*signal), self.child.try_wait()?));
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                self.end(here, Signal::SIGTERM, GRACE)?;
                return Ok((Ending::TimedOut, self.child.try_wait()?));
            }
            self.wait_once(handle.as_ref(), until)?;
        }
    }

    fn wait_once(&self, handle: Option<&Handle>, until: Option<Instant>) -> io::Result<()> {
        match handle {
            Some(handle) => process::wait(&[handle], Some(self.interrupts.wake()), until),
            // It has ended already, or cannot be held: look again soon.
            None => {
                let soon = Instant::now() + Duration::from_millis(10);
                let until = until.map_or(soon, |until| until.min(soon));
                process::wait(&[], Some(self.interrupts.wake()), Some(until))
            }
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

/// A command's status as a shell tells it: 128 and the signal's number where one ended it.
fn shell_status(status: ExitStatus) -> Option<u8> {
    let number = status.code().or_else(|| Some(128 + status.signal()?))?;
    u8::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::LiveProcess;

    #[test]
    fn placeholders_are_whole_arguments() {
        let verdict = Verdict {
            state: State::Match,
            reason: "same_process",
            message: String::new(),
            weak: false,
            pane: Some("%3; rm -rf /".to_owned()),
            live: Some(LiveProcess {
                pid: Pid::new(4242).unwrap(),
                ident: None,
                cwd: None,
                label: None,
                pane: None,
            }),
            checked_at: String::new(),
        };
        let binding = Binding {
            claim: Claim::default(),
            socket: None,
        };
        let fill = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            binding.fill_in(&words, &verdict)
        };
        let filled = fill(&["x", "{pane}", "{pid}", "a{pane}", "{}", "{pane}x"]).unwrap();
        let expected = ["x", "%3; rm -rf /", "4242", "a{pane}", "{}", "{pane}x"];
        assert_eq!(filled, expected);
        assert_eq!(
            fill(&["x", "{socket}"]).unwrap_err().status(),
            Status::Usage
        );
    }
}
