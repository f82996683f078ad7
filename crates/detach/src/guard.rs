//! The guard: the command's parent, in a session of its own, that announces its death and, if
//! asked, starts it again.

use std::io;
use std::time::{Duration, Instant};

use process::end::{EndOptions, Remains, Root, Scope, Target, Watch};
use process::{Blocked, Exit, Handle, Here, Interrupts, Named, Pid, Signal};
use records::{Deadline, Failure, exit, say};

use crate::args::Args;
use crate::breaker::{Breaker, Next};
use crate::death::{By, ExitRecord, GiveUpRecord, Left, milliseconds};
use crate::ending::{self, Patience};
use crate::foreground::CAUGHT;
use crate::keeper::Keeper;
use crate::lock::{Holder, Lock};
use crate::restarts::Restarts;
use crate::start::{Outcome, Printed, Starter, Up};
use crate::status::{Message, Report};

/// How long one try to announce, or to lock the lock file, may wait for another process.
const TRY: Duration = Duration::from_secs(2);

/// The first pause after an announcement that failed; it doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two tries to announce.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs as the guard: starts the command, says what came of that, and stays until the command's
/// last death is announced. Gives the status to leave with. Signals are held back until they are
/// caught.
pub fn run(
    args: &Args,
    lock: Option<Lock>,
    deadline: Deadline,
    mut report: Report,
    held_back: Blocked,
) -> u8 {
    match guard(args, lock, deadline, &mut report, held_back) {
        Ok(()) => 0,
        Err(failure) => {
            let status = failure.status().code();
            say!("{}", failure.message());
            report.tell(&Message::Failed(status));
            status
        }
    }
}

fn guard(
    args: &Args,
    lock: Option<Lock>,
    deadline: Deadline,
    report: &mut Report,
    held_back: Blocked,
) -> Result<(), Failure> {
    let here = Here::new();
    let own = here.open(Pid::own()).map_err(Failure::failed)?;
    let interrupts = Interrupts::catch(&CAUGHT)?;
    drop(held_back);
    process::survive_failing_writes();
    let keeper = Keeper::new(
        args,
        Some(Named {
            pid: own.pid(),
            ident: own.ident().clone(),
        }),
    )?;
    drop(own);
    // Orphans of the command are given to the guard then, where the kernel can do that, so that it
    // knows whom the command has left, also in sessions of their own.
    let _ = process::become_subreaper(true);
    // What can fail, fails before anything is executed.
    let mut guard = Guard {
        restarts: Restarts::prepare(args)?,
        null: std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?,
        args,
        here: &here,
        interrupts: &interrupts,
        keeper: &keeper,
        report,
        breaker: Breaker::new(args.policy()),
        timeout: Deadline::never(),
        deliberate: false,
        timed_out: false,
    };
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
    let outcome = starter.start();
    // With it goes the lock file's lock: the start is decided.
    drop(starter);
    let up = match outcome {
        Ok(Outcome::Up(up)) => up,
        Ok(Outcome::Unready(up, status)) => {
            let line = serde_json::to_vec(&up.record)?;
            guard.deliberate = up.record.status != Some(process::Status::Exited);
            guard.close_unready(Some(&up), Message::NotUp(line, status.code()));
            return Ok(());
        }
        Ok(Outcome::Not(printed, status)) => {
            let line = match printed {
                Printed::Made(record) => serde_json::to_vec(&record)?,
                Printed::Found(line) => line,
            };
            guard.report.tell(&Message::NotUp(line, status.code()));
            return Ok(());
        }
        Ok(Outcome::Interrupted(_, up)) => {
            guard.deliberate = true;
            let failed = Message::Failed(exit::Status::Failed.code());
            guard.close_unready(up.as_deref(), failed);
            return Ok(());
        }
        Ok(Outcome::Broken(up, failure)) => {
            say!("{}", failure.message());
            guard.deliberate = true;
            let failed = Message::Failed(failure.status().code());
            guard.close_unready(Some(&up), failed);
            return Ok(());
        }
        Err(failure) => {
            // Nothing was executed; or that has been forgotten.
            say!("{}", failure.message());
            guard.deliberate = true;
            let failed = Message::Failed(failure.status().code());
            guard.close_unready(None, failed);
            return Ok(());
        }
    };
    guard.let_go();
    guard.stay(*up)
}

struct Guard<'a> {
    args: &'a Args,
    restarts: Option<Restarts>,
    null: std::fs::File,
    here: &'a Here,
    interrupts: &'a Interrupts,
    keeper: &'a Keeper,
    report: &'a mut Report,
    breaker: Breaker,
    /// When the command is ended, however often it was started by then.
    timeout: Deadline,
    /// Whether an end from now on is wanted.
    deliberate: bool,
    /// Whether the command was ended at its timeout.
    timed_out: bool,
}

/// What came of a restart.
enum Restarted {
    Up(Box<Up>),
    /// It could not be started; this stands for its end.
    Failed(Exit),
    /// Nobody wants it any more.
    NotWanted,
}

impl Guard<'_> {
    /// Lets go of what is the caller's. Not earlier: the command inherits directory and streams as
    /// they are, without a path that might lead elsewhere, and the messages of a start that fails
    /// go to the caller's own stderr. The caller is waiting until this is done.
    fn let_go(&self) {
        let _ = rustix::stdio::dup2_stdin(&self.null);
        let _ = rustix::stdio::dup2_stdout(&self.null);
        let _ = rustix::stdio::dup2_stderr(&self.null);
        let _ = std::env::set_current_dir("/");
        if self.restarts.is_none() {
            let kept = self.args.keep_fd.iter().copied();
            process::close(&kept.filter(|&fd| fd > 2).collect::<Vec<_>>());
        }
    }

    /// Says that the command runs, and stays with it.
    fn stay(&mut self, mut up: Up) -> Result<(), Failure> {
        // In the foreground it would be the command's; here it was meant for the start.
        if !self.args.wait && self.is_asked_to_end(&[Signal::SIGHUP]) {
            ending::end(self.here, &mut up.child, Patience::Hasty);
            up.record.exit = up.child.exit();
            // The caller's stderr is let go of, so whoever waits has to say it.
            let ended = Message::Ended(exit::Status::Failed.code());
            self.close_unready(Some(&up), ended);
            return Ok(());
        }
        self.report
            .tell(&Message::Up(serde_json::to_vec(&up.record)?));
        self.timeout = Deadline::after_or_never(self.args.timeout);
        self.watch(up);
        Ok(())
    }

    /// Waits for the command's death, announces it, and starts the command again for as long as
    /// the breaker lets it. Then the marker goes, and whoever waits is told the last one's status.
    fn watch(&mut self, mut up: Up) {
        loop {
            let mut exit = self.until_dead(&mut up);
            let uptime = up.released.elapsed();
            self.deliberate |= self.keeper.is_being_stopped(self.here);
            let left = Left::by(up.child.pid(), self.here);
            let death = self.death(Some((&up, uptime)), exit, &left);
            let mut next = self.breaker_says(&exit, uptime);
            let mut left = Some(left.members);
            if next == Next::GiveUp {
                self.end_remains(&up, left.take().unwrap_or_default());
            }
            // Not before: as long as it is not collected, its number is nobody else's.
            up.child.exit();
            let mut last_word = match next {
                Next::Restart(_) => None,
                _ => Some(Message::Ended(self.status(exit).code())),
            };
            if let Some(death) = &death {
                self.persist(&mut last_word, |keeper, limit| {
                    keeper.announce(death, limit)
                });
            }
            let started = loop {
                match next {
                    Next::Rest => break None,
                    Next::GiveUp => {
                        self.end_remains(&up, left.take().unwrap_or_default());
                        if let Some(death) = &death {
                            let restarts = self.breaker.restarts();
                            let given_up = GiveUpRecord::after(death, restarts, exit);
                            self.persist(&mut last_word, |keeper, limit| {
                                keeper.note(&given_up, limit)
                            });
                        }
                        break None;
                    }
                    Next::Restart(delay) => match self.restart(delay) {
                        Restarted::Up(started) => break Some(started),
                        Restarted::NotWanted => break None,
                        Restarted::Failed(failed) => {
                            exit = failed;
                            next = self.breaker_says(&exit, Duration::ZERO);
                        }
                    },
                }
            };
            match started {
                Some(started) => up = *started,
                None => {
                    let ended = Message::Ended(self.status(exit).code());
                    return self.close(last_word.or(Some(ended)));
                }
            }
        }
    }

    fn breaker_says(&mut self, exit: &Exit, uptime: Duration) -> Next {
        self.breaker.ended(exit, uptime, self.deliberate)
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
        loop {
            // First, since one that has come to guard and command at once is what the end is by.
            for signal in self.interrupts.take() {
                // The others are the command's own business.
                self.deliberate |= asks_for_an_end(signal);
                if signal != Signal::SIGCHLD {
                    up.child.signal_group(signal);
                }
            }
            if let Some(exit) = up.child.ended() {
                return exit;
            }
            process::collect_adopted(up.child.pid());
            if self.timeout.passed() {
                self.deliberate = true;
                self.timed_out = true;
                ending::end(self.here, &mut up.child, Patience::Grace(self.args.grace));
                return up.child.exit().unwrap_or_default();
            }
            let handles: Vec<&Handle> = up.handle.iter().collect();
            self.rest(&handles, self.timeout.instant());
        }
    }

    /// Waits for one of `handles`, for a signal, or until `until`.
    fn rest(&self, handles: &[&Handle], until: Option<Instant>) {
        if process::wait(handles, Some(self.interrupts.wake()), until).is_err() {
            // Out of memory, at the worst: look again, but not at once.
            std::thread::sleep(FIRST_PAUSE);
        }
    }

    /// Takes the signals that have come, and says whether an end is wanted by now.
    fn is_asked_to_end(&mut self, besides: &[Signal]) -> bool {
        for signal in self.interrupts.take() {
            self.deliberate |= asks_for_an_end(signal) || besides.contains(&signal);
        }
        if self.timeout.passed() {
            self.deliberate = true;
            self.timed_out = true;
        }
        self.deliberate
    }

    /// The death of the present command, if there is one.
    fn death(&self, up: Option<(&Up, Duration)>, exit: Exit, left: &Left) -> Option<ExitRecord> {
        let uptime = up.map(|(_, uptime)| uptime);
        let mut death = self.keeper.death(By::Guard)?;
        death.exit = exit;
        death.deliberate = self.deliberate;
        death.unnatural = !self.deliberate && self.args.policy().is_unnatural(&exit, uptime);
        death.uptime_ms = uptime.map(milliseconds);
        death.stranded = left.named();
        death.restarts = self.breaker.restarts();
        if let Some(log) = &self.args.log {
            death.with_log(log, up.map_or(0, |(up, _)| up.log_start));
        }
        Some(death)
    }

    /// Does what has to be done, as often as it takes. Whoever waits for the end is told after the
    /// first failure: a full disk may take its time.
    fn persist(
        &mut self,
        last_word: &mut Option<Message>,
        act: impl Fn(&Keeper, Deadline) -> io::Result<()>,
    ) {
        let mut pause = FIRST_PAUSE;
        while act(self.keeper, Deadline::after(TRY)).is_err() {
            if let Some(word) = last_word.take() {
                self.report.tell(&word);
            }
            let until = Instant::now() + pause;
            while Instant::now() < until {
                self.rest(&[], Some(until));
                // First, so that who ends after the collecting wakes the next rest.
                self.is_asked_to_end(&[]);
                // The command's own end has been collected by now.
                process::collect_adopted(Pid::own());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Removes the marker, and says the last word.
    fn close(&mut self, last_word: Option<Message>) {
        // What cannot be removed now is removed by the next sweep: it is announced.
        let _ = self.keeper.close();
        if let Some(word) = last_word {
            self.report.tell(&word);
        }
    }

    /// Announces the end of a command that was never ready, if one was executed: how it ended says
    /// its record.
    fn close_unready(&mut self, up: Option<&Up>, last_word: Message) {
        let exit = up.and_then(|up| up.record.exit).unwrap_or_default();
        let up = up.map(|up| (up, up.released.elapsed()));
        let mut last_word = Some(last_word);
        if let Some(leader) = self.keeper.death(By::Guard).map(|death| death.pid)
            && let Some(mut death) = self.death(up, exit, &Left::by(leader, self.here))
        {
            // Whatever its code.
            death.unnatural = !self.deliberate;
            self.persist(&mut last_word, |keeper, limit| {
                keeper.announce(&death, limit)
            });
        }
        self.close(last_word);
    }

    /// Starts the command again after `delay`.
    fn restart(&mut self, delay: Duration) -> Restarted {
        let until = self.timeout.min(Deadline::after(delay));
        while !until.passed() {
            self.rest(&[], until.instant());
            if self.is_asked_to_end(&[]) {
                return Restarted::NotWanted;
            }
            process::collect_adopted(Pid::own());
        }
        if self.is_asked_to_end(&[]) || self.keeper.is_being_stopped(self.here) {
            return Restarted::NotWanted;
        }
        let lock = match self.lock_again() {
            Some(Ok(lock)) => lock,
            Some(Err(failure)) => return failed(&failure),
            None => return Restarted::NotWanted,
        };
        let Some(restarts) = &self.restarts else {
            return Restarted::NotWanted;
        };
        let starter = Starter {
            args: &restarts.args,
            here: self.here,
            interrupts: self.interrupts,
            deadline: Deadline::never(),
            lock,
            began: Instant::now(),
            keeper: Some(self.keeper),
            streams: Some(&restarts.streams),
        };
        match starter.restart() {
            Ok(up) => Restarted::Up(Box::new(up)),
            Err(_) if self.keeper.is_stopped() => Restarted::NotWanted,
            // Its marker is there before it is executed, and it was ended by that.
            Err(_) if self.keeper.is_being_stopped(self.here) => Restarted::NotWanted,
            Err(failure) => failed(&failure),
        }
    }

    /// The lock file's lock for a restart. `None` where another start has taken over meanwhile, or
    /// an end is wanted by now.
    fn lock_again(&mut self) -> Option<Result<Option<Lock>, Failure>> {
        let Some(path) = &self.args.lock else {
            return Some(Ok(None));
        };
        let lock = loop {
            match Lock::take(path, Deadline::after(TRY)) {
                Ok(lock) => break lock,
                Err(failure) if failure.status() != exit::Status::Deadline => {
                    return Some(Err(failure));
                }
                // Another start has it, and may be waiting until its command is ready.
                Err(_) if self.is_asked_to_end(&[]) => return None,
                Err(_) => {}
            }
        };
        match lock.holder(self.here) {
            Ok(Holder::Nobody) => Some(Ok(Some(lock))),
            Ok(_) => None,
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Ends what the command has left of its group and session.
    fn end_remains(&self, up: &Up, left: Vec<Handle>) {
        let Some(handle) = &up.handle else { return };
        let target = Target {
            root: Root::Ended(Remains::of(handle.ident(), self.here)),
            scope: Scope::Auto,
            extra: left,
        };
        let options = EndOptions {
            grace: Duration::from_secs(2),
            ..EndOptions::default()
        };
        // Those that survive even KILL cannot be helped.
        let _ = process::end::end(self.here, vec![target], &options, Watch::default());
    }
}

/// Whether a signal to the guard asks for the command's end.
fn asks_for_an_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGQUIT)
}

fn failed(failure: &Failure) -> Restarted {
    Restarted::Failed(Exit {
        code: Some(failure.status().code().into()),
        ..Exit::default()
    })
}
