//! What the tests share: a folder of their own, the tools, and the certainty that nothing which a
//! test has started outlives it.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use process::{Handle, Here, Identity, Pid, Reader, Signal, Standing, Table};
use serde_json::Value;

/// How long a condition may take to come true on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The path of one of the tools.
pub fn bin(tool: &str) -> &'static Path {
    Path::new(match tool {
        "detach" => env!("CARGO_BIN_EXE_detach"),
        "eventwait" => env!("CARGO_BIN_EXE_eventwait"),
        "holder-scan" => env!("CARGO_BIN_EXE_holder-scan"),
        "pane-ident" => env!("CARGO_BIN_EXE_pane-ident"),
        "reap" => env!("CARGO_BIN_EXE_reap"),
        "resume-id" => env!("CARGO_BIN_EXE_resume-id"),
        _ => panic!("no such tool: {tool}"),
    })
}

/// Has whatever the tests start begin with the default signals. A shell that runs the tests with
/// `&` has them ignore INT and QUIT, and what is ignored is inherited; what is caught, as from now
/// on, is not.
fn heed_signals() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        for signal in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
        ] {
            if ignored.unwrap_or(0) & (1 << (signal as i32 - 1)) != 0 {
                let flag = std::sync::Arc::default();
                signal_hook::flag::register(signal as i32, flag).unwrap();
            }
        }
    });
}

/// The folder of the tools, for a script's PATH.
pub fn bin_dir() -> &'static Path {
    bin("detach").parent().unwrap()
}

/// A test's own place. When it is dropped, every process that it was told of is ended, by
/// identity, with the session that it leads, and the folder is removed.
pub struct Sandbox {
    dir: tempfile::TempDir,
    here: Here,
    started: Mutex<Vec<Identity>>,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        heed_signals();
        Sandbox {
            dir: tempfile::Builder::new().prefix("mux").tempdir().unwrap(),
            here: Here::new(),
            started: Mutex::default(),
        }
    }

    /// A path below the test's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes an executable script of that name and gives its path.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        make_executable(&path, "printf %s \"$2\"", OsStr::new(text));
        path
    }

    /// Copies a program to that name, executable for all, and gives its path.
    pub fn copy_of(&self, program: impl AsRef<OsStr>, name: &str) -> PathBuf {
        let path = self.path(name);
        make_executable(&path, "cat -- \"$2\"", program.as_ref());
        path
    }

    /// A tool, in the test's folder, with no input.
    pub fn tool(&self, tool: &str) -> Command {
        let mut command = Command::new(bin(tool));
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// A tool as a user who is not root: one of its own where the tests themselves run as root.
    pub fn tool_as_user(&self, tool: &str) -> Command {
        use std::os::unix::fs::PermissionsExt;
        if !nix::unistd::geteuid().is_root() {
            return self.tool(tool);
        }
        std::fs::set_permissions(self.dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = as_user(unused_user());
        command
            .arg(bin(tool))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// A line of bash, in the test's folder, with the tools first on PATH.
    pub fn bash(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-c", line])
            .env("PATH", format!("{}:{path}", bin_dir().display()))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Ends the process of this identity when the test is over.
    pub fn track(&self, ident: &str) -> Pid {
        let ident: Identity = ident.parse().unwrap();
        let pid = ident.pid();
        self.started.lock().unwrap().push(ident);
        pid
    }

    /// Ends the process `pid`, which lives now, when the test is over. Gives its identity.
    pub fn track_pid(&self, pid: i32) -> Identity {
        let pid = Pid::new(pid.into()).unwrap();
        let ident = self.here.open(pid).unwrap().ident().clone();
        self.started.lock().unwrap().push(ident.clone());
        ident
    }

    /// Starts `sleep` and gives its identity; it is the test's own child.
    pub fn sleeper(&self) -> (Killed, Identity) {
        let child = Killed(Command::new("sleep").arg("600").spawn().unwrap());
        let ident = self.track_pid(child.0.id() as i32);
        (child, ident)
    }

    /// Runs `detach` with these words, expects it to start something, and gives its record.
    pub fn detach(&self, words: &[&str]) -> Value {
        let output = self.tool("detach").args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let record = record(&output);
        self.track(record["ident"].as_str().unwrap());
        record
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for ident in self.started.get_mut().unwrap().drain(..) {
            if let Standing::Same(handle) = self.here.find(&ident, None) {
                let led = led_by(&self.here, ident.pid());
                for handle in std::iter::once(&handle).chain(&led) {
                    handle.signal(Signal::SIGKILL);
                }
            }
        }
    }
}

/// Handles on the others in the session that `leader` leads, if it leads one.
fn led_by(here: &Here, leader: Pid) -> Vec<Handle> {
    let sid = leader.get();
    let others = session(sid).into_iter().filter(|&pid| pid != sid);
    let handles = others.filter_map(|pid| here.open(Pid::new(pid.into())?).ok());
    // The number may be another's since it was listed.
    let is_of_it = |handle: &Handle| handle.current().is_some_and(|entry| entry.sid == sid);
    handles.filter(is_of_it).collect()
}

/// A child that is killed and collected when it is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The one record on stdout.
pub fn record(output: &Output) -> Value {
    let mut records = records(output);
    assert_eq!(records.len(), 1, "{output:?}");
    records.remove(0)
}

/// The records on stdout.
pub fn records(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?}: {e}")))
        .collect()
}

/// What was said on stderr.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A user whom no other test runs anything as, not even one of another run of these tests at the
/// same time. What such a process may not read of others counts, and it is others' for a moment
/// when it becomes this user's.
pub fn unused_user() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    10_000 + std::process::id() % 3_000 * 16 + count % 16
}

/// What runs the command that is to follow as `user`, which only root can.
pub fn as_user(user: u32) -> Command {
    let mut command = Command::new("/usr/bin/setpriv");
    command
        .args([format!("--reuid={user}"), format!("--regid={user}")])
        .args(["--clear-groups", "--"]);
    command
}

/// Makes an executable file of what a line of shell prints about `$2`, which is `word`. Another
/// process writes it: were it open for writing here, a child that another test starts just then
/// would have it open for a moment too, and what somebody writes to cannot be executed.
fn make_executable(path: &Path, print: &str, word: &OsStr) {
    let line = format!("{print} >\"$1\" && chmod 755 -- \"$1\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, "sh"]).arg(path).arg(word);
    assert!(shell.status().unwrap().success());
}

/// Waits until `condition` holds, looking again and again.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    while !condition() {
        assert!(Instant::now() < deadline, "still not: {what}");
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// The state of `pid` by its letter; `None` where there is no such process.
pub fn state(pid: i32) -> Option<char> {
    let entry = Reader::new().entry(Pid::new(pid.into())?).ok()?;
    Some(entry.state.0)
}

/// Whether `pid` lives. A zombie is dead: here orphans are collected late.
pub fn lives(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Waits until `pid` is dead.
#[track_caller]
pub fn until_dead(pid: i32) {
    until(&format!("{pid} is dead"), || !lives(pid));
}

/// A number of a record.
pub fn number(record: &Value, key: &str) -> i32 {
    let number = record[key]
        .as_i64()
        .unwrap_or_else(|| panic!("no {key} in {record}"));
    i32::try_from(number).unwrap()
}

/// The live processes in the session `sid`.
pub fn session(sid: i32) -> Vec<i32> {
    let table = Table::read(&mut Reader::new()).unwrap();
    let members = table.entries().iter();
    members
        .filter(|entry| entry.sid == sid && !entry.state.is_zombie())
        .map(|entry| entry.pid.get())
        .collect()
}

/// A handle on a live process.
pub fn handle(pid: i32) -> Handle {
    Here::new().open(Pid::new(pid.into()).unwrap()).unwrap()
}

/// How often a race is run: `usual` times, and `MUXUTILS_SOAK` times that in the long tests.
pub fn rounds(usual: u32) -> u32 {
    let factor = std::env::var("MUXUTILS_SOAK")
        .ok()
        .and_then(|word| word.parse().ok());
    usual * factor.unwrap_or(1)
}
