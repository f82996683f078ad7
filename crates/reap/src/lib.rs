//! The job of `reap`: to end processes by identity, and to come back only when they are dead.
//!
//! | room | what it knows |
//! |---|---|
//! | `args` | the command line |
//! | `judge` | whether a record names a target, and what forbids it |
//! | `batch` | what all input asks for |
//! | `guarded` | that a stop is on purpose, and who has to end besides |
//! | `pidfile` | what a pid file asks for |
//! | `resolve` | which processes are meant |
//! | `verdict`, `report` | what is said of each, and the exit status |
//!
//! The sequence of signals itself is `process::end`, which `detach` shares.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod batch;
mod guarded;
mod judge;
mod pidfile;
mod report;
mod resolve;
mod verdict;

use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use process::end::{Ended, Outcome, Pending, Survivor, Watch, end};
use process::{ENDING, Here, Interrupts, die_by, raise_descriptor_limit};
use records::input::{Input, StdinLines};
use records::waiting::Waiting;
use records::{Deadline, Failure, Output, Record, Status, say};

use args::Args;
use batch::{Batch, Job, Line, Place};
use guarded::{Guarded, wait_for_guards};
use judge::Rules;
use report::{OperandRecord, Reaped};
use resolve::{Family, Found, Search};
use verdict::Verdict;

/// How long a caller who has sent a signal waits for the records of what was under way.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The `reap` command.
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    records::tool::main::<Args>("reap", words, run)
}

/// The command line of `reap`, for what is made of it: manual page, completions.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

fn run(args: Args) -> Result<Status, Failure> {
    process::unblock(&ENDING);
    // A limit on the size of files must not end this process in the middle of a sequence.
    process::survive_failing_writes();
    if args.has_operands() {
        args.output
            .check_keys(&[process::ProcessRecord::KEYS, &["reap"]])?;
    }
    let family = Family::now();
    let batch = read(&args)?;
    if batch.jobs.contains(&Job::Refuse(Verdict::Active)) {
        say!("an agent is active in a holder, which is left alone; --active ends it too");
    }
    // From here on a signal stops the sequence, which still says how far it came. Before, there
    // is nothing to be told, and a signal ends the tool as it ends any other.
    let interrupts = Interrupts::catch(&ENDING)?;
    raise_descriptor_limit();
    let here = Here::new();
    let search = Search {
        here: &here,
        scope: args.scope.into(),
        leaderless: args.leaderless,
        dry_run: args.dry_run,
        full_argv: args.full_argv,
        family: &family,
        evidence: &batch.evidence,
    };
    let mut found = search.run(&batch.jobs);
    let targets = std::mem::take(&mut found.targets);
    let mut shown = Progress::default();
    let mut show = |pending| shown.show(pending);
    let watch = Watch {
        interrupts: Some(&interrupts),
        progress: std::io::stderr().is_terminal().then_some(&mut show as _),
    };
    let mut ended = end(&here, targets, &args.end_options(), watch)?;
    drop(shown);
    if !args.dry_run {
        close_notes(&mut found, &mut ended, args.kill_grace, &interrupts)?;
    }

    // A reader that does not read must not make this deaf to signals.
    let late = interrupts.release();
    let mut out = Output::new(&args.output, report::HUMAN);
    let signal = ended.interrupted.or(late);
    if signal.is_some() {
        out.set_deadline(Deadline::after(LAST_WORDS));
    }
    let printed = print(&mut out, &batch, &found, &ended);
    if let Some(signal) = signal {
        // It says more than a reader that is gone.
        die_by(signal);
    }
    printed
}

/// Closes the notes beside markers, and waits for the guards of those that are dead. A guard that
/// has not ended in time is a survivor: what it guarded is not done with.
fn close_notes(
    found: &mut Found,
    ended: &mut Ended,
    patience: Duration,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let mut dead = Vec::new();
    for (guarded, report) in found.guarded.iter_mut().zip(&mut ended.reports) {
        let is_dead = report.outcome.is_dead();
        resolve::close(guarded, is_dead);
        if is_dead {
            dead.push((&*guarded, report));
        }
    }
    let guards: Vec<&Guarded> = dead.iter().map(|(guarded, _)| *guarded).collect();
    let now = Instant::now();
    let limit = now.checked_add(patience).unwrap_or(now);
    if ended.interrupted.is_none() {
        wait_for_guards(&guards, limit, interrupts)?;
    }
    let outcome = match ended.interrupted.is_some() || interrupts.has_come() {
        true => Outcome::Interrupted,
        false => Outcome::Survived,
    };
    for (guarded, report) in dead {
        if let Some(guard) = guarded.guard() {
            report.outcome = outcome;
            report.survivors.push(Survivor {
                pid: guard.pid(),
                ident: guard.ident().clone(),
                state: guard.current().map(|now| now.state),
            });
        }
    }
    Ok(())
}

/// Reads all that is asked for.
fn read(args: &Args) -> Result<Batch, Failure> {
    let mut batch = Batch::default();
    let rules = Rules {
        bare_pid: args.allow_bare_pid,
        active: args.active,
    };
    for operand in &args.operands {
        batch.take_operand(operand);
    }
    for path in &args.pidfile {
        pidfile::take(path, &mut batch, rules)?;
    }
    if args.has_operands() {
        return Ok(batch);
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "no process is named, and standard input is a terminal",
        ));
    }
    let mut lines = StdinLines::stdin();
    while let Some(line) = lines.next_record()? {
        match line {
            Input::Record(record) => batch.take(&record, rules),
            Input::Bad(bad) if bad.is_number => {
                say!("{bad}: give pids as operands");
                batch.worsen(Status::BadInput);
            }
            Input::Bad(bad) => {
                say!("{bad}");
                batch.worsen(Status::BadInput);
            }
        }
    }
    Ok(batch)
}

/// Prints every record with what became of it, and gives the exit status.
fn print(out: &mut Output, batch: &Batch, found: &Found, ended: &Ended) -> Result<Status, Failure> {
    let mut status = batch.status();
    if let Some(trouble) = &ended.trouble {
        say!("not all could be looked at: {trouble}");
    }
    if found.failed || ended.trouble.is_some() {
        status = status.worse(Status::Failed);
    }
    let mut reaped = |job: usize| {
        let (verdict, reaped) = match found.jobs.get(job) {
            Some(Ok(target)) => match ended.reports.get(*target) {
                Some(report) => (Verdict::Of(report.outcome), Some(Reaped::of(report))),
                None => (Verdict::UNKNOWN, None),
            },
            Some(Err(verdict)) => (*verdict, None),
            None => (Verdict::UNKNOWN, None),
        };
        status = status.worse(verdict.status());
        reaped.unwrap_or_else(|| Reaped::refused(verdict))
    };
    for line in &batch.lines {
        match line {
            Line::Record(bytes, jobs) if jobs.is_empty() => out.pass(bytes)?,
            Line::Record(bytes, jobs) => {
                let mut text = bytes.clone();
                for (place, job) in jobs {
                    text = with(&text, *place, &reaped(*job))?;
                }
                out.pass(&text)?;
            }
            Line::Operand(job) => {
                let reap = reaped(*job);
                if let Some(Some(process)) = found.records.get(*job) {
                    out.emit(&OperandRecord { process, reap })?;
                }
            }
        }
    }
    out.flush()?;
    Ok(status)
}

/// The record with `reaped` in its place.
fn with(text: &[u8], place: Place, reaped: &Reaped<'_>) -> Result<Vec<u8>, Failure> {
    let record = Record::parse(text).map_err(Failure::failed)?;
    match place {
        Place::Whole => Ok(record.with("reap", reaped)?),
        // An element that is no object has no place for it, and is refused anyhow.
        Place::Stale(index) => Ok(record
            .with_at(&["stale", &index.to_string(), "reap"], reaped)
            .unwrap_or_else(|_| text.to_vec())),
    }
}

/// The line at a terminal that says what is waited for.
#[derive(Default)]
struct Progress {
    stage: Option<(bool, Waiting)>,
}

impl Progress {
    fn show(&mut self, pending: Pending) {
        let stage = self
            .stage
            .take()
            .filter(|(killed, _)| *killed == pending.killed);
        let (killed, mut line) = stage.unwrap_or_else(|| {
            let what = match pending.alive {
                1 => "a process to end".to_owned(),
                count => format!("{count} processes to end"),
            };
            let line = Waiting::new(what, Deadline::after(pending.left));
            (pending.killed, line)
        });
        line.tick();
        self.stage = Some((killed, line));
    }
}
