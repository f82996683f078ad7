//! Processes to look at, and other surroundings to look from.

use std::ops::{Deref, DerefMut};
use std::path::Path;
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

/// Copies a program so that all may execute it. Another process does it: were the copy open for
/// writing here, a child that another test starts just then would hold it open for a moment too,
/// and a program that is being written cannot be executed.
#[cfg(target_os = "linux")]
pub fn copy_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let status = install.args(["-m", "755", "--"]).args([from, to]).status();
    assert!(status.unwrap().success());
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

/// A pid namespace of one's own with its `/proc`, and the right to say which pid comes next.
pub const PRIVATE: [&str; 5] = ["unshare", "-Urpf", "--kill-child", "--mount-proc", "--"];

/// Set to the name of the test that runs inside.
const INSIDE: &str = "PROCESS_TEST_INSIDE";

/// What the first run told.
const TOLD: &str = "PROCESS_TEST_TOLD";

/// What the first run of this test told the second.
pub fn told() -> String {
    std::env::var(TOLD).unwrap()
}

/// Whether this is the second run of the test `name`, inside what `launcher` sets up. In the first
/// run it makes that second one, and has it pass.
pub fn within(name: &str, launcher: &[&str]) -> bool {
    within_told(name, launcher, "")
}

/// Like [`within`], and the first run tells the second something.
pub fn within_told(name: &str, launcher: &[&str], tell: &str) -> bool {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        return true;
    }
    if !works(launcher) {
        return false;
    }
    let exe = std::env::current_exe().unwrap();
    let mut words = launcher.iter().map(AsRef::as_ref).chain([exe.as_os_str()]);
    let output = Command::new(words.next().unwrap())
        .args(words)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .env(TOLD, tell)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "inside {launcher:?}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Whether this system lets this user set up what `launcher` does. Root and CI have to be able to.
pub fn works(launcher: &[&str]) -> bool {
    let Some((program, args)) = launcher.split_first() else {
        return true;
    };
    let tried = Command::new(program).args(args).arg("true").output();
    match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => eprint!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("{program}: {error}"),
    }
    let must = is_root() || std::env::var_os("CI").is_some();
    assert!(!must, "{launcher:?} does not work here");
    eprintln!("not tested: {launcher:?} does not work for this user");
    false
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
