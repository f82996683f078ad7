//! The start: hold, write down, release, wait until ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process::{
    Child, Exit, Handle, Here, Interrupts, Launch, LaunchError, Named, Pid, ProcessRecord, Ready,
    Signal, Status,
};
use records::files::{self, Access};
use records::text::{Argv, lossy};
use records::waiting::Waiting;
use records::{Deadline, Failure, exit, say, time};

use crate::args::Args;
use crate::death::milliseconds;
use crate::ending::{self, Patience};
use crate::keeper::Keeper;
use crate::lock::{Holder, Lock};
use crate::ready::{Look, Readiness, last_lines};
use crate::running::stranger;

/// How often files and sockets are looked at, of which the kernel gives no notice.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// More than a record can be long.
const LONGEST_RECORD: usize = 16 << 20;

/// What came of a start.
pub enum Outcome {
    /// The command runs.
    Up(Box<Up>),
    /// It was executed, and has ended, or been ended, before it was ready: its record says how.
    Unready(Box<Up>, exit::Status),
    /// Nothing was executed: what is to be printed, and the exit status.
    Not(Printed, exit::Status),
    /// It was executed, and has been ended, since something else could not be done.
    Broken(Box<Up>, Failure),
    /// This signal came while it was starting. It has been ended, if it was executed here.
    Interrupted(Signal, Option<Box<Up>>),
}

/// A command that runs, and is this process's child.
pub struct Up {
    /// Its record.
    pub record: ProcessRecord,
    /// The child.
    pub child: Child,
    /// A handle on it; `None` where its identity could not be read.
    pub handle: Option<Handle>,
    /// When it was executed.
    pub released: Instant,
    /// How long its log was then.
    pub log_start: u64,
}

/// A record to print.
pub enum Printed {
    /// One that was made here.
    Made(Box<ProcessRecord>),
    /// One that was found, as it is to be printed.
    Found(Vec<u8>),
}

/// What a start needs to know besides the command line.
pub struct Starter<'a> {
    /// The command line.
    pub args: &'a Args,
    /// This machine.
    pub here: &'a Here,
    /// The signals that end a start, or that are passed on once it is done (`--wait`).
    pub interrupts: &'a Interrupts,
    /// When all that it waits for must have come.
    pub deadline: Deadline,
    /// The lock file, locked, where there is one.
    pub lock: Option<Lock>,
    /// When this call began.
    pub began: Instant,
    /// Who keeps the command's marker, where there is one.
    pub keeper: Option<&'a Keeper>,
    /// The caller's standard streams, where they are no longer this process's own.
    pub streams: Option<&'a [Option<OwnedFd>; 3]>,
}

impl Starter<'_> {
    /// Starts the command, unless it is there already.
    ///
    /// # Errors
    ///
    /// It could not be started; nothing of it is left.
    pub fn start(&self) -> Result<Outcome, Failure> {
        if let Some(lock) = &self.lock {
            match lock.holder(self.here)? {
                Holder::Nobody => {}
                Holder::Unknown(why) => return Err(Failure::unknown(why)),
                Holder::Running { line, handle } => return self.found(&line, &handle),
            }
        }
        if let Some(outcome) = self.already_answered()? {
            return Ok(outcome);
        }
        let readiness = Readiness::before_start(self.args);
        let mut up = Box::new(self.launch()?);
        if self.args.wants_ready() {
            match self.until_ready(&mut up, readiness) {
                Ok(Readied::Yes) => {}
                Ok(Readied::No(status)) => return Ok(Outcome::Unready(up, status)),
                Ok(Readied::Interrupted(signal)) => {
                    return Ok(Outcome::Interrupted(signal, Some(up)));
                }
                Err(failure) => return Ok(Outcome::Broken(up, failure)),
            }
        }
        match self.publish(&mut up) {
            Ok(()) => Ok(Outcome::Up(up)),
            Err(failure) => {
                self.end(&mut up, Patience::Usual);
                Ok(Outcome::Broken(up, failure))
            }
        }
    }

    /// Starts the command once more, for its guard. Nothing is looked at or waited for: its caller
    /// has long gone.
    ///
    /// # Errors
    ///
    /// It could not be started; nothing of it is left.
    pub fn restart(&self) -> Result<Up, Failure> {
        let mut up = self.launch()?;
        if let Err(failure) = self.publish(&mut up) {
            // It runs, and is guarded; a file that lags behind is no reason to end it.
            say!("{}", failure.message());
        }
        Ok(up)
    }

    /// Writes the record of a command that runs to where it is to be found.
    fn publish(&self, up: &mut Up) -> Result<(), Failure> {
        up.record.took_ms = Some(milliseconds(self.began.elapsed()));
        if let Some(lock) = &self.lock {
            lock.write(&up.record)?;
        }
        if let Some(path) = &self.args.record {
            write_record(path, &serde_json::to_vec(&up.record)?)?;
        }
        Ok(())
    }

    /// Makes the process, writes down who it is, and lets it execute the command.
    fn launch(&self) -> Result<Up, Failure> {
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        let log = match &self.args.log {
            Some(path) => Some(files::open_trusted(path, Access::Append)?),
            None => None,
        };
        let log_start = match &log {
            Some(log) => log.metadata()?.len(),
            None => 0,
        };
        if self.args.wants_ready() || self.args.timeout.is_some() {
            // Without it a descendant that forks twice would escape an ending; with it, it stays
            // one. Where the kernel cannot, the ending reaches what is left of the tree.
            let _ = process::become_subreaper(true);
        }
        let launch = Launch {
            argv: &self.args.command,
            pid_env: &self.args.pid_env,
            chdir: self.args.chdir.as_deref(),
            stdio: self.stdio(null.as_fd(), log.as_ref().map(AsFd::as_fd)),
            keep: &self.args.keep_fd,
        };
        let held = launch.hold().map_err(not_launched)?;
        let handle = self.here.open(held.pid());
        let handle = match handle {
            Ok(handle) => Some(handle),
            Err(why) => {
                say!("its identity cannot be read: {why}");
                None
            }
        };
        let record = self.record(held.pid(), handle.as_ref());
        let before = self.record_before();
        // With --wait a signal that comes now is passed on, to a command that must be there; and
        // with a guard some other child of it may end now.
        let is_waited_for = !self.args.wait && self.guard().is_none();
        let wake = is_waited_for.then(|| self.interrupts.wake());
        let released = self.write_down(&record).and_then(|()| {
            held.release(wake, None).map_err(|error| {
                // A restart may be tried again, and is found by its marker until then.
                if let Some(keeper) = self.keeper.filter(|_| self.streams.is_none()) {
                    keeper.forget();
                }
                not_launched(error)
            })
        });
        match released {
            Ok(child) => Ok(Up {
                record,
                child,
                handle,
                released: Instant::now(),
                log_start,
            }),
            Err(failure) => {
                if let Some(lock) = &self.lock {
                    lock.clear();
                }
                self.put_back(before);
                Err(failure)
            }
        }
    }

    /// Writes down who is about to be executed, wherever that has to be known even if this process
    /// is killed at once.
    fn write_down(&self, record: &ProcessRecord) -> Result<(), Failure> {
        if let Some(lock) = &self.lock {
            lock.write(record)?;
        }
        if let Some(path) = self.early_record() {
            write_record(path, &serde_json::to_vec(record)?)?;
        }
        match self.keeper {
            Some(keeper) => keeper.register(record, self.here),
            None => Ok(()),
        }
    }

    fn guard(&self) -> Option<&Named> {
        self.keeper.and_then(Keeper::guard)
    }

    /// The record's file, where it is written before the command is executed: its guard may be
    /// killed while it waits for the command to be ready.
    fn early_record(&self) -> Option<&Path> {
        self.guard().and(self.args.record.as_deref())
    }

    /// What is in that file before it is written.
    fn record_before(&self) -> Option<Vec<u8>> {
        files::read_trusted(self.early_record()?, LONGEST_RECORD).ok()
    }

    /// Undoes the writing of that file: nothing was executed.
    fn put_back(&self, before: Option<Vec<u8>>) {
        let Some(path) = self.early_record() else {
            return;
        };
        let _ = match before {
            Some(before) => files::write_whole(path, &before),
            None => match files::open_trusted(path, Access::Read) {
                Ok(_) => std::fs::remove_file(path),
                Err(error) => Err(error),
            },
        };
    }

    /// The standard streams: what is not kept is the log, or nothing. In the foreground they stay
    /// the caller's.
    fn stdio<'f>(
        &'f self,
        null: BorrowedFd<'f>,
        log: Option<BorrowedFd<'f>>,
    ) -> [Option<BorrowedFd<'f>>; 3] {
        let output = match log {
            Some(log) => Some(log),
            None => (!self.args.wait).then_some(null),
        };
        let input = (!self.args.wait).then_some(null);
        let mut streams = [input, output, output];
        for (number, stream) in (0..).zip(&mut streams) {
            if self.args.keep_fd.contains(&number) {
                *stream = None;
            }
        }
        if let Some(callers) = self.streams {
            for (stream, callers) in streams.iter_mut().zip(callers) {
                *stream = stream.or(callers.as_ref().map(AsFd::as_fd));
            }
        }
        streams
    }

    fn record(&self, pid: Pid, handle: Option<&Handle>) -> ProcessRecord {
        let words = self.args.command.iter().map(|word| word.as_bytes());
        let argv = Argv::new(words, self.args.full_argv);
        let mut record = ProcessRecord::on(self.here.host());
        record.status = Some(Status::Started);
        record.pid = Some(pid);
        record.pgid = Some(pid.get());
        record.sid = Some(pid.get());
        record.ident = handle.map(|handle| handle.ident().clone());
        record.argv = Some(argv.argv);
        record.argv_cut = argv.argv_cut;
        record.lossy = argv.lossy;
        record.started_at = Some(time::now());
        record.took_ms = Some(milliseconds(self.began.elapsed()));
        let folder = self.args.chdir.as_deref().unwrap_or(Path::new("."));
        let cwd = std::fs::canonicalize(folder).ok();
        record.cwd = shown(cwd, &mut record.lossy);
        let absolute =
            |path: &Option<PathBuf>| path.as_ref().and_then(|p| std::path::absolute(p).ok());
        record.log = shown(absolute(&self.args.log), &mut record.lossy);
        record.lock = shown(absolute(&self.args.lock), &mut record.lossy);
        if let Some(keeper) = self.keeper {
            record.guard = keeper.guard().cloned();
            record.marker = shown(keeper.path().map(Path::to_owned), &mut record.lossy);
        }
        record
    }

    /// Ends the command, and notes how that went. Gives what became of it, in words.
    fn end(&self, up: &mut Up, patience: Patience) -> &'static str {
        let ended = ending::end_on_purpose(self.here, &mut up.child, self.keeper, patience);
        up.record.exit = up.child.exit();
        ended
    }

    /// Waits until all conditions hold. If they do not, the command has ended, or been ended.
    fn until_ready(&self, up: &mut Up, readiness: Readiness) -> Result<Readied, Failure> {
        let (log_start, released) = (up.log_start, up.released);
        let end = match self.wait_for(Some(&mut up.child), up.handle.as_ref(), readiness) {
            Ok(Awaited::Ready(by)) => {
                up.record.status = Some(Status::Ready);
                up.record.ready = Some(Ready {
                    by,
                    after_ms: milliseconds(released.elapsed()),
                });
                // It may have ended already, which makes it no less ready.
                up.record.exit = up.child.ended();
                return Ok(Readied::Yes);
            }
            Ok(end) => end,
            Err(error) => {
                self.end(up, Patience::Usual);
                return Err(Failure::failed(error));
            }
        };
        up.record.took_ms = Some(milliseconds(self.began.elapsed()));
        let (status, code) = match end {
            Awaited::Exited(exit) => {
                up.record.exit = exit;
                self.show_last_lines(log_start);
                say!("the command ended before it was ready{}", how(exit));
                (Status::Exited, exit::Status::No)
            }
            Awaited::NotReady(what) => {
                let ended = self.end(up, Patience::Usual);
                say!("no {what} in time; {ended}");
                (Status::NotReady, exit::Status::Deadline)
            }
            Awaited::Occupied(why) => {
                let ended = self.end(up, Patience::Usual);
                say!("{why}; {ended}");
                (Status::Occupied, exit::Status::No)
            }
            Awaited::Interrupted(signal) => {
                let ended = self.end(up, Patience::Hasty);
                ending::say_interrupted(signal, ended);
                return Ok(Readied::Interrupted(signal));
            }
            Awaited::Ready(_) => return Ok(Readied::Yes),
        };
        up.record.status = Some(status);
        Ok(Readied::No(code))
    }

    fn show_last_lines(&self, from: u64) {
        if let Some(log) = &self.args.log
            && let Ok(lines) = last_lines(log, from)
        {
            say::say_lines(String::from_utf8_lossy(&lines).trim_end_matches('\n'));
        }
    }

    /// The wait itself, for a child of ours, or for a process that was found running.
    pub fn wait_for(
        &self,
        mut child: Option<&mut Child>,
        handle: Option<&Handle>,
        mut readiness: Readiness,
    ) -> io::Result<Awaited> {
        let mut shown = Waiting::new(readiness.awaited(), self.deadline);
        let leader = handle
            .map(Handle::pid)
            .or(child.as_ref().map(|child| child.pid()));
        loop {
            match &mut child {
                Some(child) => {
                    // It is not collected yet: who it has left is seen by that.
                    if let Some(exit) = child.ended() {
                        // What it was waited for may have come since the last look.
                        return Ok(match readiness.last_look(leader) {
                            Some(by) => Awaited::Ready(by),
                            None => Awaited::Exited(Some(exit)),
                        });
                    }
                    process::collect_adopted(child.pid());
                    // In the foreground signals are the command's, also while it starts.
                    for signal in self.interrupts.take() {
                        match signal {
                            Signal::SIGCHLD => {}
                            _ if self.args.wait => child.signal_group(signal),
                            _ => return Ok(Awaited::Interrupted(signal)),
                        }
                    }
                }
                None => {
                    if handle.is_some_and(Handle::has_ended) {
                        return Ok(Awaited::Exited(None));
                    }
                    let mut signals = self.interrupts.take().into_iter();
                    if let Some(signal) = signals.find(|&signal| signal != Signal::SIGCHLD) {
                        return Ok(Awaited::Interrupted(signal));
                    }
                }
            }
            match readiness.look()? {
                Look::Ready(by) => return Ok(Awaited::Ready(by)),
                Look::Answered(socket, peer) => match stranger(peer, leader) {
                    Some(who) => {
                        return Ok(Awaited::Occupied(format!("{socket} is answered by {who}")));
                    }
                    None => {
                        readiness.accept(&socket);
                        continue;
                    }
                },
                Look::NotYet => {}
            }
            if self.deadline.passed() {
                return Ok(Awaited::NotReady(readiness.awaited()));
            }
            shown.tick();
            let next = self.deadline.min(Deadline::after(LOOK_EVERY));
            let handles: Vec<&Handle> = handle.into_iter().collect();
            process::wait(&handles, Some(self.interrupts.wake()), next.instant())?;
        }
    }
}

/// What came of a wait until what was started is ready.
enum Readied {
    Yes,
    /// It has ended, or been ended; its record says how.
    No(exit::Status),
    Interrupted(Signal),
}

/// How a wait for readiness ended.
pub enum Awaited {
    /// All conditions hold; this was the last.
    Ready(&'static str),
    /// The process has ended.
    Exited(Option<Exit>),
    /// The deadline has passed; this was still awaited.
    NotReady(String),
    /// Somebody else answers.
    Occupied(String),
    /// This signal came.
    Interrupted(Signal),
}

fn not_launched(error: LaunchError) -> Failure {
    let status = match &error {
        LaunchError::NotFound(_) => exit::Status::NotFound,
        LaunchError::CannotRun(_) => exit::Status::CannotRun,
        LaunchError::NotIsolated(_) | LaunchError::Failed(_) | LaunchError::GivenUp => {
            exit::Status::Failed
        }
    };
    Failure::new(status, error)
}

fn how(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit {
            code: Some(code), ..
        }) => format!(", with status {code}"),
        Some(Exit {
            signal: Some(signal),
            ..
        }) => {
            format!(", by {}", process::signal_name(signal))
        }
        _ => String::new(),
    }
}

/// A path as it is shown in records.
pub fn shown(path: Option<PathBuf>, any_lossy: &mut bool) -> Option<String> {
    let (text, lossy) = lossy(path?.as_os_str().as_bytes());
    *any_lossy |= lossy;
    Some(text)
}

/// Writes `record`, a line, to the file `path`, whole.
///
/// # Errors
///
/// It cannot be written; what was there before is still there.
pub fn write_record(path: &Path, record: &[u8]) -> Result<(), Failure> {
    Ok(files::write_whole(path, &[record, b"\n"].concat())?)
}
