//! The guard: the command's parent, in a session of its own, that announces its death and, if
//! asked, starts it again.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use process::end::{EndOptions, Remains, Root, Scope, Target, Watch};
use process::{Exit, Handle, Here, Interrupts, Named, Pid, Signal};
use records::{Deadline, Failure, exit, say};

use crate::args::Args;
use crate::breaker::{Breaker, Next};
use crate::death::{By, ExitRecord, GiveUpRecord, milliseconds, stranded};
use crate::ending::{self, Patience};
use crate::foreground::CAUGHT;
use crate::keeper::Keeper;
use crate::lock::{Holder, Lock};
use crate::start::{Outcome, Printed, Starter, Up};
use crate::status::Report;

/// How long one try to announce may wait for the announcement file's lock.
const TRY: Duration = Duration::from_secs(2);

/// The first pause after an announcement that failed; it doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two tries to announce.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs as the guard: starts the command, says what came of that, and stays until the command's
/// last death is announced. Gives the status to leave with.
pub fn run(args: &Args, lock: Option<Lock>, deadline: Deadline, mut report: Report) -> u8 {
    match guard(args, lock, deadline, &mut report) {
        Ok(()) => 0,
        Err(failure) => {
            say!("{}", failure.message());
            report.failed(failure.status());
            failure.status().code()
        }
    }
}

fn guard(
    args: &Args,
    lock: Option<Lock>,
    deadline: Deadline,
    report: &mut Report,
) -> Result<(), Failure> {
    let here = Here::new();
    let own = here.open(Pid::own()).map_err(Failure::failed)?;
    let interrupts = Interrupts::catch(&CAUGHT)?;
    let keeper = Keeper::new(
        args,
        Some(Named {
            pid: own.pid(),
            ident: own.ident().clone(),
        }),
    )?;
    drop(own);
    let starter = Starter {
        args,
        here: &here,
        interrupts: &interrupts,
        deadline,
        lock,
        began: Instant::now(),
        keeper: Some(&keeper),
        streams: None,
    };
    let outcome = starter.start()?;
    // With it goes the lock file's lock: the start is decided.
    drop(starter);
    let mut guard = Guard {
        streams: Streams::for_restarts(args)?,
        again: again(args)?,
        args,
        here: &here,
        interrupts: &interrupts,
        keeper: &keeper,
        breaker: Breaker::new(args.policy()),
        deliberate: false,
        timed_out: false,
    };
    guard.settle()?;
    match outcome {
        Outcome::Up(up) => {
            report.up(&serde_json::to_vec(&up.record)?);
            let status = guard.watch(*up);
            report.ended(status);
        }
        Outcome::Not(printed, status) => {
            let (line, record) = match printed {
                Printed::Made(record) => (serde_json::to_vec(&record)?, Some(record)),
                Printed::Found(line) => (line, None),
            };
            report.not_up(status, &line);
            // What was executed has ended before it was ready: by itself, or by us. Its caller has
            // just been told; the announcement is for everybody else.
            if let Some(record) = record {
                guard.deliberate = record.status != Some(process::Status::Exited);
                guard.close_unready(record.exit.unwrap_or_default());
            }
        }
        Outcome::Interrupted(_) => {
            guard.deliberate = true;
            guard.close_unready(Exit::default());
        }
    }
    Ok(())
}

/// The command line of a restart: nothing is relative to a directory any more, and nobody waits
/// for readiness.
fn again(args: &Args) -> Result<Args, Failure> {
    let mut again = args.clone();
    again.ready_socket.clear();
    again.ready_file.clear();
    again.ready_line.clear();
    if again.chdir.is_none() {
        again.chdir = Some(std::env::current_dir()?);
    }
    Ok(again)
}

/// The caller's standard streams, where a restart has to hand them on.
struct Streams([Option<OwnedFd>; 3]);

impl Streams {
    fn for_restarts(args: &Args) -> Result<Streams, Failure> {
        let mut streams = [None, None, None];
        if args.policy().restart {
            let own = [
                rustix::stdio::stdin(),
                rustix::stdio::stdout(),
                rustix::stdio::stderr(),
            ];
            for ((number, own), stream) in (0..).zip(own).zip(&mut streams) {
                if args.wait || args.keep_fd.contains(&number) {
                    *stream = Some(own.try_clone_to_owned()?);
                }
            }
        }
        Ok(Streams(streams))
    }
}

struct Guard<'a> {
    args: &'a Args,
    again: Args,
    streams: Streams,
    here: &'a Here,
    interrupts: &'a Interrupts,
    keeper: &'a Keeper,
    breaker: Breaker,
    /// Whether an end from now on is wanted.
    deliberate: bool,
    /// Whether the command was ended at its timeout.
    timed_out: bool,
}

impl Guard<'_> {
    /// Lets go of what is the caller's: streams, directory, and what only the command needs.
    fn settle(&self) -> Result<(), Failure> {
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)
            .and_then(|()| rustix::stdio::dup2_stdout(&null))
            .and_then(|()| rustix::stdio::dup2_stderr(&null))
            .map_err(std::io::Error::from)?;
        std::env::set_current_dir("/")?;
        if !self.args.policy().restart {
            process::close(&self.args.keep_fd);
        }
        if self.args.timeout.is_none() {
            let _ = process::become_subreaper(false);
        }
        Ok(())
    }

    /// Waits for the command's death, announces it, and starts the command again for as long as
    /// the breaker lets it. Gives the last one's status.
    fn watch(&mut self, mut up: Up) -> exit::Status {
        loop {
            let exit = self.until_dead(&mut up);
            let uptime = up.released.elapsed();
            self.deliberate |= self.keeper.is_being_stopped(self.here);
            let death = self.death(&up, exit, uptime);
            if let Some(death) = &death {
                self.announce(death);
            }
            let mut next = self.breaker.ended(&exit, uptime, self.deliberate);
            if next == Next::GiveUp {
                self.end_remains(&up);
            }
            // Not before: as long as it is not collected, its number is nobody else's.
            up.child.exit();
            loop {
                match next {
                    Next::Rest => {}
                    Next::GiveUp => {
                        if let Some(death) = &death {
                            self.note(&GiveUpRecord::after(death));
                        }
                    }
                    Next::Restart(delay) => match self.restart(delay) {
                        Some(Ok(started)) => {
                            up = started;
                            break;
                        }
                        Some(Err(exit)) => {
                            next = self.breaker.ended(&exit, Duration::ZERO, self.deliberate);
                            continue;
                        }
                        None => {}
                    },
                }
                // What cannot be removed now is removed by the next sweep: it is announced.
                let _ = self.keeper.close();
                return self.status(exit);
            }
        }
    }

    fn status(&self, exit: Exit) -> exit::Status {
        match exit.shell_status() {
            _ if self.timed_out => exit::Status::Deadline,
            Some(status) => exit::Status::Code(status),
            None => exit::Status::Failed,
        }
    }

    /// Waits until the command has ended, and passes signals on to it. It is not collected.
    fn until_dead(&mut self, up: &mut Up) -> Exit {
        let deadline = Deadline::after_or_never(self.args.timeout);
        loop {
            if let Some(exit) = up.child.ended() {
                return exit;
            }
            process::collect_adopted(up.child.pid());
            for signal in self.interrupts.take() {
                // These ask for an end; the others are the command's own business.
                self.deliberate |=
                    matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGQUIT);
                if signal != Signal::SIGCHLD {
                    up.child.signal_group(signal);
                }
            }
            if deadline.passed() {
                self.deliberate = true;
                self.timed_out = true;
                ending::end(self.here, &mut up.child, Patience::Grace(self.args.grace));
                return up.child.exit().unwrap_or_default();
            }
            let handles: Vec<&Handle> = up.handle.iter().collect();
            let wake = Some(self.interrupts.wake());
            if process::wait(&handles, wake, deadline.instant()).is_err() {
                // Out of memory, at the worst: look again, but not at once.
                std::thread::sleep(FIRST_PAUSE);
            }
        }
    }

    fn death(&self, up: &Up, exit: Exit, uptime: Duration) -> Option<ExitRecord> {
        let policy = self.args.policy();
        let mut death = self.keeper.death(By::Guard)?;
        death.exit = exit;
        death.deliberate = self.deliberate;
        death.unnatural = !self.deliberate && policy.is_unnatural(&exit, Some(uptime));
        death.uptime_ms = Some(milliseconds(uptime));
        death.stranded = stranded(self.here, up.child.pid());
        death.restarts = self.breaker.restarts();
        if let Some(log) = &self.args.log {
            death.with_log(log, up.log_start);
        }
        Some(death)
    }

    /// Announces `death`, as often as it takes. The marker stays until it has landed.
    fn announce(&self, death: &ExitRecord) {
        let mut pause = FIRST_PAUSE;
        while self.keeper.announce(death, Deadline::after(TRY)).is_err() {
            self.pause(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn note(&self, record: &GiveUpRecord) {
        let mut pause = FIRST_PAUSE;
        while self.keeper.note(record, Deadline::after(TRY)).is_err() {
            self.pause(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if process::wait(&[], Some(self.interrupts.wake()), Some(until)).is_err() {
                std::thread::sleep(FIRST_PAUSE);
            }
            self.interrupts.take();
        }
    }

    /// Starts the command again after `delay`. `None` where that is no longer wanted; the exit
    /// that stands for a start which failed.
    fn restart(&mut self, delay: Duration) -> Option<Result<Up, Exit>> {
        let until = Instant::now() + delay;
        while Instant::now() < until {
            let _ = process::wait(&[], Some(self.interrupts.wake()), Some(until));
            let asked = self.interrupts.take();
            self.deliberate |= asked
                .iter()
                .any(|signal| matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGQUIT));
            if self.deliberate {
                return None;
            }
        }
        if self.keeper.is_being_stopped(self.here) {
            return None;
        }
        let started = self.lock_again()?.and_then(|lock| {
            let starter = Starter {
                args: &self.again,
                here: self.here,
                interrupts: self.interrupts,
                deadline: Deadline::never(),
                lock,
                began: Instant::now(),
                keeper: Some(self.keeper),
                streams: Some(&self.streams.0),
            };
            starter.restart()
        });
        Some(started.map_err(|failure| Exit {
            code: Some(failure.status().code().into()),
            ..Exit::default()
        }))
    }

    /// The lock file's lock for a restart. `None` where another start has taken over meanwhile.
    fn lock_again(&self) -> Option<Result<Option<Lock>, Failure>> {
        let Some(path) = &self.args.lock else {
            return Some(Ok(None));
        };
        let lock = match Lock::take(path, Deadline::after(TRY)) {
            Ok(lock) => lock,
            Err(failure) => return Some(Err(failure)),
        };
        match lock.holder(self.here) {
            Ok(Holder::Nobody) => Some(Ok(Some(lock))),
            Ok(_) => None,
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Ends what the command has left of its group and session.
    fn end_remains(&self, up: &Up) {
        let Some(handle) = &up.handle else { return };
        let left = stranded(self.here, up.child.pid());
        let target = Target {
            root: Root::Ended(Remains::of(handle.ident())),
            scope: Scope::Auto,
            extra: left
                .iter()
                .filter_map(|named| self.here.open(named.pid).ok())
                .collect(),
        };
        let options = EndOptions {
            grace: Duration::from_secs(2),
            ..EndOptions::default()
        };
        // Whatever comes of it is said by the stranded of the next look, not here.
        let _ = process::end::end(self.here, vec![target], &options, Watch::default());
    }

    /// The death of a command that was never ready.
    fn close_unready(&self, exit: Exit) {
        let Some(mut death) = self.keeper.death(By::Guard) else {
            return;
        };
        death.exit = exit;
        death.deliberate = self.deliberate;
        death.unnatural = !self.deliberate;
        death.stranded = stranded(self.here, death.pid);
        if let Some(log) = &self.args.log {
            death.with_log(log, 0);
        }
        self.announce(&death);
        let _ = self.keeper.close();
    }
}
