//! The tool `eventwait`: waits for one event, bounded on every side by one deadline.
//!
//! | room | what it knows |
//! |---|---|
//! | `args` | the command line |
//! | `wait` | the loop: one poll(2), one deadline |
//! | `source` | where events come from |
//! | `split`, `json`, `filter` | lines, and which of them are awaited |
//! | `intake` | the way of a line: judged, counted, printed |
//! | `sink` | printing, where perhaps nobody reads |
//! | `beat`, `summary`, `end` | what is said of the wait itself |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod beat;
mod end;
mod filter;
mod intake;
mod json;
mod sink;
mod source;
mod split;
mod summary;
mod wait;

/// What reads the texts of others, for the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::json::{Path, Wanted};
    pub use crate::source::control::{Data, Line, Listed, Reader};
    pub use crate::source::herdr_wire::{Event, Fields, event};
    pub use crate::split::{Piece, Splitter};
}

use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mux::Tmux;
use mux::herdr::default_socket;
use mux::tmux::Address;
use process::{ENDING, Here, Interrupts};
use records::{Failure, Status, files, say};
use rustix::event::{PollFd, PollFlags, poll};

use args::{Args, Kind};
use beat::Beat;
use end::{End, Leave};
use filter::Filter;
use intake::{Counts, Intake};
use sink::{Mark, Printed, Sink};
use source::Source;
use source::exit::{Exits, Watched};
use source::follow::From;
use source::herdr::Herdr;
use source::tmux::TmuxEvents;
use summary::Summary;
use wait::{Outcome, Wait};

/// The pause between two runs of a command.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the end waits for what is being printed: the deadline allows no more.
const LAST_LINES: Duration = Duration::from_millis(25);

/// How long after the deadline the process is ended that has not ended by itself: more than the limits
/// of an orderly end come to, a child's death and what is being printed.
const AT_LAST: Duration = Duration::from_millis(80);

/// How long a message waits for a stderr that is not read.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// The tool's `main`.
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    // Reading the command line is in the time that a wait may take: a regular expression can be
    // large.
    let started = Instant::now();
    records::tool::main::<Args>("eventwait", words, |args| run(args, started))
}

/// The command line of `eventwait`, for what is made of it: manual page, completions.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

fn run(args: Args, started: Instant) -> Result<Status, Failure> {
    args.check().map_err(Failure::usage)?;
    if let Some(keys) = args.keys() {
        args.output.check_keys(&[keys])?;
    }
    // 'check' has seen to it.
    let timeout = args.timeout.unwrap_or_default();
    // Files may be on a mount that hangs, too.
    let leaving = Arc::new(AtomicBool::new(false));
    let said = Arc::new(AtomicBool::new(false));
    end_at_last(&args, started, timeout, &leaving, &said);
    // Caught from the beginning: even a signal that comes at once ends with a summary.
    let interrupts = Interrupts::catch(&ENDING)?;
    let summary_file = args.summary.as_ref().and_then(Option::as_ref);
    if let Some(path) = summary_file {
        summary::check(path).map_err(|error| Failure::from(error).context("--summary"))?;
    }
    let beat = match &args.beat {
        Some(path) => {
            let beat = Beat::start(path.clone(), args.beat_every);
            Some(beat.map_err(|error| Failure::from(error).context("--beat"))?)
        }
        None => None,
    };
    if args.stdin {
        records::input::announce_terminal();
    }
    let source = source(&args)?;
    let (process, unknown) = match args.pid.as_ref().map(|pid| Watched::new(&Here::new(), pid)) {
        None => (None, None),
        Some(Ok(watched)) => (Some(watched), None),
        Some(Err(why)) => (None, Some(why)),
    };
    let filter = Filter::new(args.conditions.clone(), args.line.clone());
    let wanted = wanted(&args);
    let mut wait = Wait {
        source,
        intake: Intake::new(
            filter,
            &args.output,
            wanted,
            args.ack_line.clone(),
            Sink::new(said)?,
        ),
        interrupts,
        started,
        timeout,
        process,
        process_ended: None,
        beat,
        awaited: awaited(&args),
    };
    let Outcome { end, offset } = match unknown {
        None => wait.run(),
        Some(why) => {
            tell(&format!("--pid: {why}"));
            Outcome {
                end: End::Unavailable,
                offset: None,
            }
        }
    };
    let Wait { intake, source, .. } = wait;
    // What it has started was ended; what sleeps in the kernel is not waited for.
    let mut source = ManuallyDrop::new(source);
    let counts = intake.counts();
    let quiet = intake.is_quiet();
    let patience = match end {
        End::ReaderGone | End::NotPrinted => Duration::ZERO,
        _ => LAST_LINES,
    };
    let printed = intake.into_sink().finish(patience);
    let end = match end {
        // Found, but not said: to the one who waits for it nothing has happened.
        End::Matched | End::Closed | End::ProcessEnded if printed.dropped > 0 => End::Deadline,
        end => end,
    };
    let said = counts.matched > printed.dropped || quiet && counts.matched > 0;
    if let Some(file) = &args.summary {
        let summary = summarize(end, counts, printed, offset, started.elapsed());
        let line = serde_json::to_string(&summary)?;
        match file {
            Some(path) => {
                // To be finished, however long the disk takes.
                leaving.store(true, Ordering::SeqCst);
                write_summary(path, &line)?;
            }
            None => to_stderr(&line),
        }
    }
    source.leave();
    match end::leave(end, args.all, said, &args.exit_code) {
        Leave::With(status) => Ok(status),
        Leave::Quietly => Err(Failure::reader_gone()),
        Leave::By(signal) => process::die_by(signal),
    }
}

/// How many matches are enough: with `--all`, of what can happen only once, all; of what goes on,
/// no number.
fn wanted(args: &Args) -> Option<u64> {
    (!args.all).then_some(args.count)
}

fn source(args: &Args) -> Result<Box<dyn Source>, Failure> {
    let max_line = args.max_line;
    let once = args.timeout.is_some_and(|timeout| timeout.is_zero());
    Ok(if let Some(path) = &args.socket {
        let ack = args
            .ack
            .clone()
            .map(|ack| Filter::new(vec![ack], Vec::new()));
        Box::new(source::socket::Socket::new(
            path.clone(),
            &args.send,
            ack,
            max_line,
        ))
    } else if let Some(path) = &args.follow {
        Box::new(source::follow::Follow::new(
            path.clone(),
            args.from.unwrap_or(From::End),
            max_line,
            once,
        ))
    } else if !args.herdr.is_empty() {
        Box::new(herdr(args))
    } else if args.tmux {
        Box::new(TmuxEvents::new(tmux(args)?, args.pane.clone(), max_line))
    } else if args.stdin {
        Box::new(source::stdin::Stdin::new(max_line)?)
    } else if !args.exit.is_empty() {
        process::raise_descriptor_limit();
        Box::new(Exits::new(args.exit.clone()))
    } else if !args.path.is_empty() {
        Box::new(source::path::Paths::new(args.path.clone(), args.gone, once))
    } else if let Some(path) = &args.connect {
        Box::new(source::connect::Connect::new(path.clone()))
    } else {
        Box::new(source::cmd::Cmd::new(
            args.cmd.clone(),
            args.full_argv,
            args.every.unwrap_or(PAUSE),
        )?)
    })
}

fn herdr(args: &Args) -> Herdr {
    let socket = args.herdr_socket.clone();
    let socket = socket.unwrap_or_else(|| default_socket(|name| std::env::var_os(name)));
    let kinds = match &args.on[..] {
        [] => Kind::value_variants(),
        kinds => kinds,
    };
    let panes = args.herdr.clone();
    Herdr::new(
        socket,
        panes,
        kinds.to_vec(),
        !args.no_initial,
        args.max_line,
    )
}

fn tmux(args: &Args) -> Result<Tmux, Failure> {
    let server = args
        .tmux_socket
        .as_deref()
        .map_or(Address::Default, Address::of);
    Tmux::new(server, args.tmux_bin.as_deref()).map_err(Failure::unknown)
}

/// What is awaited, for a person at a terminal.
fn awaited(args: &Args) -> String {
    let shown = |path: &Path| path.display().to_string();
    let source = [&args.socket, &args.follow, &args.connect];
    if let Some(path) = source.into_iter().flatten().next() {
        return shown(path);
    }
    if args.stdin {
        return "standard input".to_owned();
    }
    let words: Vec<String> = if !args.exit.is_empty() {
        args.exit.iter().map(ToString::to_string).collect()
    } else if !args.path.is_empty() {
        args.path.iter().map(|path| shown(path)).collect()
    } else if !args.herdr.is_empty() {
        args.herdr.clone()
    } else if args.tmux {
        vec!["tmux".to_owned()]
    } else {
        args.cmd
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    };
    words.join(" ")
}

fn summarize(
    end: End,
    counts: Counts,
    printed: Printed,
    offset: Option<Mark>,
    took: Duration,
) -> Summary {
    // Lines that were not printed are to be read again, as far as they are in the present file.
    let offset = offset.map(|here| match printed.first_dropped {
        Some(first) if first.generation == here.generation => first.offset,
        Some(_) => 0,
        None => here.offset,
    });
    Summary {
        v: 1,
        r#type: "wait",
        end: end.word(),
        matched: counts.matched,
        seen: counts.seen,
        not_json: counts.not_json,
        dropped: printed.dropped,
        too_long: counts.too_long,
        cut: printed.cut,
        offset,
        took_ms: summary::millis(took),
    }
}

fn write_summary(path: &Path, line: &str) -> Result<(), Failure> {
    let line = format!("{line}\n");
    files::write_whole(path, line.as_bytes())
        .map_err(|error| Failure::from(error).context("--summary"))
}

/// Says a message for people, unless stderr takes nothing.
fn tell(message: &str) {
    if takes_more(Duration::ZERO) {
        say!("{message}");
    }
}

/// Writes a line to stderr, unless that takes nothing for a while: it may be the same pipe as
/// stdout, and full.
fn to_stderr(line: &str) {
    if takes_more(LAST_WORDS) {
        let _ = rustix::io::write(rustix::stdio::stderr(), format!("{line}\n").as_bytes());
    }
}

/// Whether stderr has room, now or within `limit`.
fn takes_more(limit: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(
        rustix::stdio::stderr(),
        PollFlags::OUT,
    )];
    let limit = rustix::time::Timespec::try_from(limit).ok();
    matches!(poll(&mut fds, limit.as_ref()), Ok(1..))
}

/// Ends the process shortly after its deadline if it has not ended by then, whatever it is stuck
/// in: room on stderr that another writer took first, a file server that does not answer.
fn end_at_last(
    args: &Args,
    started: Instant,
    timeout: Duration,
    leaving: &Arc<AtomicBool>,
    said: &Arc<AtomicBool>,
) {
    let (leaving, said) = (Arc::clone(leaving), Arc::clone(said));
    let (all, codes) = (args.all, args.exit_code.clone());
    // A thread, not an alarm: what sleeps in the kernel for a file server may hear of no signal but
    // that of the process's end.
    let watchdog = move || {
        let left = timeout.saturating_sub(started.elapsed());
        // From now on, where nothing is left: one look is always wanted.
        std::thread::sleep(left.saturating_add(AT_LAST));
        if leaving.load(Ordering::SeqCst) {
            return;
        }
        let said = said.load(Ordering::SeqCst);
        if let Leave::With(status) = end::leave(End::Deadline, all, said, &codes) {
            std::process::exit(status.code().into());
        }
    };
    // Without it the wait is as bounded as its own steps are.
    let _ = std::thread::Builder::new()
        .name("deadline".to_owned())
        .spawn(watchdog);
}
