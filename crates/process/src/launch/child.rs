//! A process that was started here, and can be collected.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::exit::Exit;
use crate::pid::Pid;
use crate::sys;

/// How often one looks whether a group is dead.
const STEP: Duration = Duration::from_millis(5);

/// A child of ours, until it is collected.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    exit: Option<Exit>,
}

impl Child {
    pub(super) fn new(pid: Pid) -> Child {
        Child { pid, exit: None }
    }

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

    /// Ends the child and its group by their number alone, where the process table cannot be
    /// believed and nobody can be held by a handle: TERM, after `grace` KILL, and `kill_grace` to
    /// be dead by that. The child is collected. Gives what is left of all that it has started, as
    /// far as it has been given to this process, the subreaper.
    ///
    /// The number is the child's own until that is collected, and the group's for as long as an
    /// orphan in it is a child of this process that has not been collected either.
    pub fn end_group(&mut self, grace: Duration, kill_grace: Duration) -> Remnant {
        let grace = Instant::now() + grace;
        self.signal_group(Signal::SIGTERM);
        wait_until(grace, || self.ended().is_some());
        if self.ended().is_none() {
            self.signal_group(Signal::SIGKILL);
            wait_until(Instant::now() + kill_grace, || self.ended().is_some());
            if self.exit().is_none() {
                return Remnant::Child;
            }
        }
        self.exit();
        wait_until(grace, || !has_orphans(self.pid));
        if has_orphans(self.pid) {
            let kill = rustix::process::Signal::KILL;
            let _ = rustix::process::kill_process_group(self.pid.raw(), kill);
            wait_until(Instant::now() + kill_grace, || !has_orphans(self.pid));
        }
        sys::collect_adopted(self.pid);
        match collect(WaitId::All, WaitIdOptions::NOWAIT) {
            Ok(None) => Remnant::Others,
            _ => Remnant::Nothing,
        }
    }
}

/// What an end has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remnant {
    /// Nothing that is known of.
    Nothing,
    /// The child has ended, and something that it has started has not.
    Others,
    /// The child itself: not even KILL has ended it.
    Child,
}

/// Whether a child of this process lives in the group `group`, whose leader has been collected.
/// Those of it that have ended are collected.
fn has_orphans(group: Pid) -> bool {
    loop {
        match collect(WaitId::Pgid(Some(group.raw())), WaitIdOptions::empty()) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// What of `whom` has ended; `None` where nobody has yet.
fn collect(
    whom: WaitId<'_>,
    how: WaitIdOptions,
) -> Result<Option<rustix::process::WaitIdStatus>, Errno> {
    let how = how | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    rustix::io::retry_on_intr(|| waitid(whom.clone(), how))
}

/// Looks for `condition` until it holds, or `deadline` has come.
fn wait_until(deadline: Instant, mut condition: impl FnMut() -> bool) {
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(STEP.min(deadline.saturating_duration_since(Instant::now())));
    }
}
