//! A process that was started here, and can be collected.

use nix::sys::signal::Signal;

use crate::exit::Exit;
use crate::pid::Pid;

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
}
