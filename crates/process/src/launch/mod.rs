//! Starting a command as the leader of a session of its own, with proof.
//!
//! The start has two halves. [`Launch::hold`] makes the process, which leaves the caller's session
//! and proves it, and then waits at a gate. [`Held::release`] opens the gate. In between the
//! caller writes down who it is, so that there is no moment at which an unrecorded command runs.
//! If the caller dies there, the gate closes and nothing is executed.

mod apart;
mod child;
mod pipe;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use rustix::io::Errno;

use crate::exec::{self, Refusal};
use crate::helper::expect_children;
use crate::pid::Pid;
use crate::sys::{self, Fork};

pub use apart::{
    Blocked, block_signals, close, close_descriptors, fork_apart, is_open, survive_failing_writes,
};
pub use child::{Child, Remnant};

use pipe::{Kind, Message, Report, next_message, pipe};

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
        // Only where it is ignored: whoever catches it is woken by it.
        expect_children();
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
                    child: Some(Child::new(pid)),
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
            let _ = rustix::process::kill_process(child.pid().raw(), rustix::process::Signal::KILL);
            child.wait();
        }
    }
}
