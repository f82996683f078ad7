//! `exec`: a command between two checks.

mod running;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use process::{ENDING, Here, Interrupts};
use records::{Deadline, Failure, Record, Status, files, say};
use serde::Serialize;

use crate::args::ExecArgs;
use crate::claim::Claim;
use crate::notice;
use crate::scene::Wishes;
use crate::verdict::State;
use crate::verify::{Verdict, verdicts};
use running::{Ending, Running};

/// How long each of the two checks may take.
const CHECK: Duration = Duration::from_secs(5);

/// The largest record of a binding.
const MAX_RECORD: usize = 16 << 20;

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
    check_summary(args)?;
    let Some(binding) = Binding::read(&args.binding)? else {
        write_summary(args, &not_run(State::Unbound))?;
        let path = args.binding.display();
        return Err(Failure::new(
            Status::NoMatch,
            format_args!("{path}: the record names neither a pane nor a process"),
        ));
    };
    let here = Here::new();
    // From the beginning, so that no signal can leave the command or half a file behind.
    let interrupts = Interrupts::catch(&ENDING)?;
    let check = |last: &dyn Fn()| {
        let deadline = Deadline::after(CHECK);
        notice::during_or("the multiplexer", deadline, &interrupts, last, || {
            binding.check(args, deadline)
        })
    };
    let checked = Instant::now();
    let before = check(&|| {})?;
    if before.state != State::Match {
        write_summary(args, &not_run(before.state))?;
        return Err(Failure::new(
            Status::NoMatch,
            format_args!("nothing was run: {}: {}", before.reason, before.message),
        ));
    }
    let argv = binding.fill_in(&args.command, &before);
    let (ending, exit) = match argv.and_then(|argv| Running::start(&argv)) {
        Ok(running) => running.finish(&here, &interrupts, args.timeout)?,
        Err(failure) => {
            write_summary(args, &not_run(before.state))?;
            return Err(failure);
        }
    };
    let window = checked.elapsed().as_millis();
    let summary = |after: Option<&Verdict>| Summary {
        ran: true,
        exit: exit.and_then(shell_status),
        after: after.map(|after| after.state),
        window_ms: u64::try_from(window).ok(),
        ..not_run(before.state)
    };
    // What was run is told, also where a signal leaves no time for the check.
    let unchecked = || {
        if let Err(failure) = write_summary(args, &summary(None)) {
            say!("{}", failure.message());
        }
    };
    let after = match ending {
        // Time is up.
        Ending::Interrupted(_) => None,
        Ending::ByItself | Ending::TimedOut => Some(check(&unchecked)?),
    };
    let summary = summary(after.as_ref());
    write_summary(args, &summary)?;
    if !matches!(ending, Ending::Interrupted(_)) {
        notice::release(interrupts);
    }
    conclude(ending, after.as_ref(), summary.exit)
}

/// What the caller is told in the end.
fn conclude(ending: Ending, after: Option<&Verdict>, exit: Option<u8>) -> Result<Status, Failure> {
    match ending {
        Ending::Interrupted(signal) => process::die_by(signal),
        Ending::TimedOut => Err(Failure::deadline("the command was not done, and was ended")),
        Ending::ByItself => match after.filter(|after| after.state != State::Match) {
            Some(after) => {
                let what = match after.state {
                    State::Unknown => "whether the pane changed hands meanwhile cannot be told",
                    _ => "the pane changed hands while the command ran",
                };
                let text = format_args!("{what}: {}: {}", after.reason, after.message);
                Err(Failure::new(Status::Changed, text))
            }
            None => exit
                .map(Status::Code)
                .ok_or_else(|| Failure::failed("it cannot be told how the command ended")),
        },
    }
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
    Ok(files::write_whole(path, &line)?)
}

/// The record of the binding.
struct Binding {
    claim: Claim,
    socket: Option<String>,
}

impl Binding {
    /// `None` where the record is no binding.
    fn read(path: &Path) -> Result<Option<Binding>, Failure> {
        let bytes = files::read_trusted(path, MAX_RECORD)?;
        let record = Record::parse(&bytes)
            .map_err(|why| Failure::failed(format_args!("{}: {why}", path.display())))?;
        let socket = record.str("server.socket");
        Ok(Claim::of(&record).map(|claim| Binding {
            claim,
            socket: socket.map(std::borrow::Cow::into_owned),
        }))
    }

    fn check(&self, args: &ExecArgs, deadline: Deadline) -> Verdict {
        let wishes = Wishes {
            same_argv: args.same_argv,
            ..Wishes::default()
        };
        let claims = [&self.claim];
        let here = Here::new().until(deadline.instant());
        let found = verdicts(&here, &claims, &wishes, &args.servers, deadline);
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

/// A command's status as a shell tells it: 128 and the signal's number where one ended it.
fn shell_status(status: ExitStatus) -> Option<u8> {
    let number = status.code().or_else(|| Some(128 + status.signal()?))?;
    u8::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::LiveProcess;
    use process::Pid;

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
