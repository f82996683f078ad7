//! Starting a command as the leader of a session of its own, with proof.
//!
//! The start has two halves. [`Launch::hold`] makes the process, which leaves the caller's session
//! and proves it, and then waits at a gate. [`Held::release`] opens the gate. In between the
//! caller writes down who it is, so that there is no moment at which an unrecorded command runs.
//! If the caller dies there, the gate closes and nothing is executed.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::exec::{self, Refusal};
use crate::exit::Exit;
use crate::pid::Pid;
use crate::sys::{self, Fork};

/// What is to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The command and its arguments, at least one word.
    pub argv: &'a [OsString],
    /// Variables that are set to the new process's own pid.
    pub pid_env: &'a [OsString],
    /// The working directory; `None` leaves the caller's.
    pub chdir: Option<&'a Path>,
    /// What becomes standard input, output and error; `None` leaves the caller's.
    pub stdio: [Option<BorrowedFd<'a>>; 3],
    /// The descriptors above 2 that stay open across exec. Every other one is closed.
    pub keep: &'a [i32],
}

/// Why a command was not started. Nothing was executed, and no process is left.
#[derive(Debug)]
pub enum LaunchError {
    /// There is no such command.
    NotFound(String),
    /// There is one, and it cannot be executed: no permission, no interpreter, no format.
    CannotRun(String),
    /// The new process is not the leader of a session and group of its own.
    NotIsolated(String),
    /// Anything else.
    Failed(String),
    /// The wait was woken, or its deadline passed, before the command was executed.
    GivenUp,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::NotFound(why)
            | LaunchError::CannotRun(why)
            | LaunchError::NotIsolated(why)
            | LaunchError::Failed(why) => f.write_str(why),
            LaunchError::GivenUp => f.write_str("the command was not executed in time"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// A process that leads its own session and has executed nothing yet. Dropped, it ends.
#[derive(Debug)]
pub struct Held {
    /// `None` once it was released.
    child: Option<Child>,
    pid: Pid,
    gate: OwnedFd,
    status: OwnedFd,
}

/// A child of ours, until it is collected.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    exit: Option<Exit>,
}

impl Launch<'_> {
    /// Makes the process and has it prove that it leads a session and a process group of its own
    /// (so that pid = pgid = sid) without a controlling terminal, setsid(2).
    ///
    /// # Errors
    ///
    /// [`LaunchError::NotIsolated`] where the proof fails; [`LaunchError::Failed`] where there is
    /// no process, or it said nothing.
    pub fn hold(&self) -> Result<Held, LaunchError> {
        let failed = |error: io::Error| LaunchError::Failed(format!("cannot fork: {error}"));
        // With SIGCHLD ignored, as some callers leave it, the kernel would collect the child
        // itself, and its status with it, wait(2).
        sys::default_signal(Signal::SIGCHLD);
        let (gate, gate_in) = pipe().map_err(failed)?;
        let (status, status_in) = pipe().map_err(failed)?;
        match sys::fork().map_err(failed)? {
            Fork::Child => {
                drop((gate_in, status));
                let report = Report(status_in);
                self.be_child(&gate, &report);
                sys::exit_now(125);
            }
            Fork::Parent(raw) => {
                drop((gate, status_in));
                let pid = Pid::new(raw.into())
                    .ok_or_else(|| LaunchError::Failed("fork gave no pid".to_owned()))?;
                let held = Held {
                    child: Some(Child { pid, exit: None }),
                    pid,
                    gate: gate_in,
                    status,
                };
                match next_message(&held.status, None, None)? {
                    Message::Proved(said) if said == pid.get() => Ok(held),
                    Message::Failed(error) => Err(error),
                    _ => Err(LaunchError::Failed(
                        "the new process ended without a word".to_owned(),
                    )),
                }
            }
        }
    }

    /// The child's half: everything between fork and exec. Returns only on failure, which it has
    /// then reported.
    fn be_child(&self, gate: &OwnedFd, report: &Report) {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        if let Err(why) = isolate(pid) {
            return report.failed(Kind::NotIsolated, &why);
        }
        report.proved(pid);
        let mut byte = [0];
        match rustix::io::retry_on_intr(|| rustix::io::read(gate, &mut byte)) {
            Ok(1) => {}
            // The caller is gone, or has thought better of it.
            _ => return,
        }
        if let Err(why) = self.settle(report) {
            return report.failed(Kind::Failed, &why);
        }
        let environment = exec::environment(self.pid_env, pid);
        sys::default_signals();
        report.executing();
        match exec::execute(self.argv, &environment) {
            Refusal::NotFound(why) => report.failed(Kind::NotFound, &why),
            Refusal::CannotRun(why) => report.failed(Kind::CannotRun, &why),
            Refusal::Failed(why) => report.failed(Kind::Failed, &why),
        }
    }

    /// Directory and descriptors.
    fn settle(&self, report: &Report) -> Result<(), String> {
        if let Some(dir) = self.chdir {
            std::env::set_current_dir(dir)
                .map_err(|error| format!("cannot change to {}: {error}", dir.display()))?;
        }
        let [stdin, stdout, stderr] = self.stdio;
        let standard = |error: Errno| format!("cannot set the standard streams: {error}");
        if let Some(fd) = stdin {
            rustix::stdio::dup2_stdin(fd).map_err(standard)?;
        }
        if let Some(fd) = stdout {
            rustix::stdio::dup2_stdout(fd).map_err(standard)?;
        }
        if let Some(fd) = stderr {
            rustix::stdio::dup2_stderr(fd).map_err(standard)?;
        }
        let mut keep = self.keep.to_vec();
        for fd in self.keep {
            sys::keep_across_exec(*fd).map_err(|error| format!("descriptor {fd}: {error}"))?;
        }
        keep.push(report.number());
        sys::close_all_but(&keep).map_err(|error| format!("cannot close descriptors: {error}"))
    }
}

/// Leaves the caller's session and process group, and checks by three calls that it is so.
fn isolate(pid: i32) -> Result<(), String> {
    let returned = rustix::process::setsid().map_err(|error| format!("setsid failed: {error}"))?;
    let sid = rustix::process::getsid(None).map_err(|error| format!("getsid failed: {error}"))?;
    let pgid = rustix::process::getpgrp();
    let [returned, sid, pgid] = [returned, sid, pgid].map(|id| id.as_raw_nonzero().get());
    if [returned, sid, pgid] == [pid; 3] {
        Ok(())
    } else {
        Err(format!(
            "process {pid} does not lead its own session (setsid said {returned}, the session is \
             {sid}, the process group {pgid})"
        ))
    }
}

impl Held {
    /// The process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the process execute its command. When this returns, it has.
    ///
    /// # Errors
    ///
    /// It could not, or did not before `wake` became readable or `deadline` came; the process has
    /// then been ended and collected.
    pub fn release(
        mut self,
        wake: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> Result<Child, LaunchError> {
        let opened = rustix::io::retry_on_intr(|| rustix::io::write(&self.gate, &[1]));
        opened.map_err(|_| LaunchError::Failed("the new process ended early".to_owned()))?;
        match next_message(&self.status, wake, deadline)? {
            Message::Executing => {}
            Message::Failed(error) => return Err(error),
            _ => {
                return Err(LaunchError::Failed(
                    "the new process ended before it could execute the command".to_owned(),
                ));
            }
        }
        let confused = || LaunchError::Failed("the new process is confused".to_owned());
        match next_message(&self.status, wake, deadline)? {
            // exec(2) has closed the pipe.
            Message::End => self.child.take().ok_or_else(confused),
            Message::Failed(error) => Err(error),
            _ => Err(confused()),
        }
    }
}

impl Drop for Held {
    /// A process that was not released is ended and collected: it has executed nothing, so KILL
    /// takes nothing from it.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = rustix::process::kill_process(child.pid.raw(), rustix::process::Signal::KILL);
            child.wait();
        }
    }
}

impl Child {
    /// The process. Until the child is collected by [`Child::exit`] or [`Child::wait`], its number
    /// cannot become another's.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends `signal` to the process group that the child leads. It has led one since before it
    /// was executed, and a session leader cannot leave its group, setpgid(2); so as long as it is
    /// not collected the number can be no other group's.
    pub fn signal_group(&self, signal: Signal) {
        if self.exit.is_none()
            && let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32)
        {
            let _ = rustix::process::kill_process_group(self.pid.raw(), signal);
        }
    }

    /// Sends `signal` to the child alone.
    pub fn signal(&self, signal: Signal) {
        if self.exit.is_none()
            && let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32)
        {
            let _ = rustix::process::kill_process(self.pid.raw(), signal);
        }
    }

    /// How the child ended, if it has. It is not collected: its number, and that of its group,
    /// stay its own.
    pub fn ended(&self) -> Option<Exit> {
        self.exit.or_else(|| Exit::peek(self.pid))
    }

    /// How the child ended, if it has. It is collected.
    pub fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            self.exit = Exit::collect(self.pid, false);
        }
        self.exit
    }

    /// Waits for the child's end, as long as it takes, and collects it.
    pub fn wait(&mut self) -> Exit {
        let exit = self.exit.or_else(|| Exit::collect(self.pid, true));
        let exit = exit.unwrap_or_default();
        self.exit = Some(exit);
        exit
    }
}

/// Starts a process of this very program, the leader of a session and process group of its own,
/// that runs `work` and leaves with the status it returns. It has every signal at its default, none
/// blocked, and whatever descriptors this process has open.
///
/// # Errors
///
/// There is no such process, or it does not lead a session of its own.
pub fn fork_apart(work: impl FnOnce() -> u8) -> Result<Child, LaunchError> {
    let failed = |error: io::Error| LaunchError::Failed(format!("cannot fork: {error}"));
    sys::default_signal(Signal::SIGCHLD);
    let (status, status_in) = pipe().map_err(failed)?;
    match sys::fork().map_err(failed)? {
        Fork::Child => {
            drop(status);
            let report = Report(status_in);
            if let Err(why) = isolate(rustix::process::getpid().as_raw_nonzero().get()) {
                report.failed(Kind::NotIsolated, &why);
                sys::exit_now(125);
            }
            drop(report);
            sys::default_signals();
            sys::exit_now(work().into());
        }
        Fork::Parent(raw) => {
            drop(status_in);
            let pid = Pid::new(raw.into())
                .ok_or_else(|| LaunchError::Failed("fork gave no pid".to_owned()))?;
            let mut child = Child { pid, exit: None };
            match next_message(&status, None, None)? {
                Message::End => Ok(child),
                Message::Failed(error) => {
                    child.wait();
                    Err(error)
                }
                _ => Err(LaunchError::Failed(
                    "the new process is confused".to_owned(),
                )),
            }
        }
    }
}

/// Signals that are held back as long as this value lives.
#[derive(Debug)]
pub struct Blocked(SigSet);

/// Holds every signal back, for the moment between a fork and the time when the signals are
/// caught: one that comes in between is then not lost, nor does it end this process in the middle.
///
/// # Errors
///
/// Those of pthread_sigmask(3).
pub fn block_signals() -> io::Result<Blocked> {
    Ok(Blocked(
        SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?,
    ))
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}

/// Closes these descriptors of this process.
pub fn close(fds: &[i32]) {
    for &fd in fds {
        let _ = nix::unistd::close(fd);
    }
}

/// Closes every descriptor of this process above 2 but those of `keep`. For a process that was
/// forked: whoever owned the others goes on in the other one.
///
/// # Errors
///
/// They cannot be listed.
pub fn close_descriptors(keep: &[i32]) -> io::Result<()> {
    sys::close_all_but(keep)
}

/// Reads the next message from the status pipe.
fn next_message(
    status: &OwnedFd,
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<Message, LaunchError> {
    let mut head = [0; 1];
    if !read(status, &mut head, wake, deadline)? {
        return Ok(Message::End);
    }
    let mut number = [0; 4];
    let cut_short = || LaunchError::Failed("the new process broke off".to_owned());
    if !read(status, &mut number, wake, deadline)? {
        return Err(cut_short());
    }
    let number = i32::from_ne_bytes(number);
    let [tag] = head;
    match tag {
        b'P' => Ok(Message::Proved(number)),
        b'E' => Ok(Message::Executing),
        _ => {
            let length = usize::try_from(number).unwrap_or(0).min(Report::LONGEST);
            let mut text = vec![0; length];
            if !read(status, &mut text, wake, deadline)? {
                return Err(cut_short());
            }
            let why = String::from_utf8_lossy(&text).into_owned();
            Ok(Message::Failed(Kind::of(tag).error(why)))
        }
    }
}

/// Fills `bytes`; `false` where the pipe ended first.
fn read(
    status: &OwnedFd,
    bytes: &mut [u8],
    wake: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<bool, LaunchError> {
    let failed = |errno: Errno| LaunchError::Failed(format!("cannot read a pipe: {errno}"));
    let mut filled = 0;
    while filled < bytes.len() {
        let mut fds: Vec<PollFd<'_>> = std::iter::once(status.as_fd())
            .chain(wake)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Err(LaunchError::GivenUp),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        match fds.first() {
            Some(own) if !own.revents().is_empty() => {}
            _ if fds.iter().any(|fd| !fd.revents().is_empty()) => {
                return Err(LaunchError::GivenUp);
            }
            _ => continue,
        }
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        match rustix::io::read(status, rest) {
            Ok(0) => return Ok(false),
            Ok(length) => filled += length,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(true)
}

/// What the new process says of itself on the status pipe.
enum Message {
    /// It leads its own session; this is its pid as it knows it.
    Proved(i32),
    /// All is set, exec(2) comes next.
    Executing,
    /// It gave up.
    Failed(LaunchError),
    /// The pipe is closed.
    End,
}

#[derive(Clone, Copy)]
enum Kind {
    NotFound,
    CannotRun,
    NotIsolated,
    Failed,
}

impl Kind {
    fn tag(self) -> u8 {
        match self {
            Kind::NotFound => b'N',
            Kind::CannotRun => b'C',
            Kind::NotIsolated => b'I',
            Kind::Failed => b'F',
        }
    }

    fn of(tag: u8) -> Kind {
        match tag {
            b'N' => Kind::NotFound,
            b'C' => Kind::CannotRun,
            b'I' => Kind::NotIsolated,
            _ => Kind::Failed,
        }
    }

    fn error(self, why: String) -> LaunchError {
        match self {
            Kind::NotFound => LaunchError::NotFound(why),
            Kind::CannotRun => LaunchError::CannotRun(why),
            Kind::NotIsolated => LaunchError::NotIsolated(why),
            Kind::Failed => LaunchError::Failed(why),
        }
    }
}

/// The child's end of the status pipe. A message is a tag, a number and, on failure, a text of
/// that many bytes; each is written whole, being shorter than PIPE_BUF.
struct Report(OwnedFd);

impl Report {
    const LONGEST: usize = 400;

    fn number(&self) -> i32 {
        use std::os::fd::AsRawFd;
        self.0.as_raw_fd()
    }

    fn proved(&self, pid: i32) {
        self.send(b'P', pid, &[]);
    }

    fn executing(&self) {
        self.send(b'E', 0, &[]);
    }

    fn failed(&self, kind: Kind, why: &str) {
        let text = why.as_bytes();
        let text = text.get(..Report::LONGEST).unwrap_or(text);
        self.send(kind.tag(), i32::try_from(text.len()).unwrap_or(0), text);
    }

    fn send(&self, tag: u8, number: i32, text: &[u8]) {
        let mut message = vec![tag];
        message.extend_from_slice(&number.to_ne_bytes());
        message.extend_from_slice(text);
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.0, &message));
    }
}

/// A pipe whose ends no program that is executed inherits.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

/// Whether the descriptor `fd` is open.
pub fn is_open(fd: i32) -> bool {
    sys::descriptor_flags(fd).is_ok()
}
