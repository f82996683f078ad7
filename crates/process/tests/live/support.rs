//! Processes to look at.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use process::{Handle, Here, Identity, Pid, Reader, Sight};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A child that is killed and collected when this goes.
#[derive(Debug)]
pub struct Sub(Child);

impl Sub {
    pub fn start(command: &mut Command) -> Sub {
        Sub::from(command.spawn().expect("a command of the system"))
    }

    pub fn pid(&self) -> Pid {
        Pid::new(self.0.id().into()).unwrap()
    }

    pub fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// KILL, and collects it.
    pub fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// KILL, and leaves it a zombie.
    pub fn end_uncollected(&mut self) {
        self.0.kill().unwrap();
        until("a zombie", || {
            Reader::new().entry(self.pid()).unwrap().state.is_zombie()
        });
    }
}

impl From<Child> for Sub {
    /// A child may be given back from its start while execve(2) still goes on, without its new
    /// name and arguments.
    fn from(child: Child) -> Sub {
        let child = Sub(child);
        until("arguments", || {
            !Reader::new().argv(child.pid()).unwrap().is_empty()
        });
        child
    }
}

impl Deref for Sub {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Sub {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Sub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that does nothing until it is ended, or these tests are.
pub fn sleeper() -> Sub {
    Sub::start(Command::new("cat").stdin(Stdio::piped()))
}

/// The handle of a process that lives.
pub fn alive(here: &Here, pid: Pid) -> Handle {
    match here.look(pid) {
        Sight::Alive(handle) => handle,
        other => panic!("process {pid} lives, and was seen as {other:?}"),
    }
}

/// The identity of a process that lives.
pub fn ident(here: &Here, pid: Pid) -> Identity {
    alive(here, pid).ident().clone()
}

/// Waits for a condition.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
