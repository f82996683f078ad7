//! Processes for `reap` to end, and `reap` itself.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use process::{Here, Identity, Pid, Reader, Signal, Table};
use serde_json::{Value, json};

use crate::support::{Killed, Sandbox, bin, lives, records, until};

/// What every script begins with: `say NAME PID` tells the test who is who.
const PRELUDE: &str = "say() { echo \"$1 $2\" >>\"$NAMES\"; }\n";

/// A bash in a session of its own, and those it has told of.
pub struct Stage {
    child: Option<Killed>,
    idents: HashMap<String, Identity>,
}

impl Stage {
    /// Starts a bash with `script` and waits until it has said `ready`.
    pub fn new(sandbox: &Sandbox, script: &str) -> Stage {
        Stage::of(sandbox, script, &["setsid"])
    }

    /// The same in the session and group of the test.
    pub fn in_our_session(sandbox: &Sandbox, script: &str) -> Stage {
        Stage::of(sandbox, script, &["env"])
    }

    fn of(sandbox: &Sandbox, script: &str, by: &[&str]) -> Stage {
        let names = sandbox.path(&format!("names-{}", next_number()));
        let mut command = Command::new(by[0]);
        command
            .args(&by[1..])
            .args(["bash", "-c"])
            .arg(format!("{PRELUDE}{script}"))
            .env("NAMES", &names)
            .current_dir(names.parent().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Killed(command.spawn().unwrap());
        let root = child.0.id() as i32;
        let said = || std::fs::read_to_string(&names).unwrap_or_default();
        until("the stage is ready", || said().contains("ready"));
        let mut idents = HashMap::new();
        let lines = said();
        let told = lines.lines().filter_map(|line| line.split_once(' '));
        for (name, pid) in told {
            if let Ok(pid) = pid.parse() {
                idents.insert(name.to_owned(), sandbox.track_pid(pid));
            }
        }
        if lives(root) {
            idents.insert("root".to_owned(), sandbox.track_pid(root));
        }
        Stage {
            child: Some(child),
            idents,
        }
    }

    pub fn ident(&self, name: &str) -> String {
        self.idents[name].to_string()
    }

    pub fn pid(&self, name: &str) -> i32 {
        self.idents[name].pid().get()
    }

    pub fn lives(&self, name: &str) -> bool {
        is_alive(&self.idents[name])
    }

    /// Ends the root with KILL and collects it, so that no entry of it is left.
    pub fn kill_root(&mut self) {
        self.child = None;
    }

    /// The process record of one of them.
    pub fn record(&self, name: &str) -> Value {
        json!({"type": "process", "pid": self.pid(name), "ident": self.ident(name)})
    }
}

/// Whoever is in the root's session or group and was not told of is ended as well. Until the root is
/// collected, the number is its own.
impl Drop for Stage {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        let root = child.0.id() as i32;
        let table = Table::read(&mut Reader::new()).unwrap();
        let members = table.entries().iter();
        for entry in members.filter(|entry| entry.sid == root || entry.pgid == root) {
            if let Ok(handle) = Here::new().open(entry.pid) {
                handle.signal(Signal::SIGKILL);
            }
        }
    }
}

fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether that very process lives.
pub fn is_alive(ident: &Identity) -> bool {
    matches!(Here::new().find(ident, None), process::Standing::Same(_))
}

/// The identity of a live process.
pub fn ident_of(pid: i32) -> Identity {
    let pid = Pid::new(pid.into()).unwrap();
    Here::new().open(pid).unwrap().ident().clone()
}

/// What `reap` said and did.
#[derive(Debug)]
pub struct Run {
    pub output: Output,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub records: Vec<Value>,
}

impl Run {
    pub fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            signal: output.status.signal(),
            records: records(&output),
            output,
        }
    }

    /// What is said of the one target.
    pub fn reap(&self) -> &Value {
        assert_eq!(self.records.len(), 1, "{self:?}");
        &self.records[0]["reap"]
    }

    pub fn outcome(&self) -> &str {
        self.reap()["outcome"].as_str().unwrap()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The pids in a list of the one target.
    pub fn pids(&self, list: &str) -> Vec<i32> {
        let list = self.reap()[list].as_array().unwrap();
        list.iter()
            .map(|item| item["pid"].as_i64().unwrap() as i32)
            .collect()
    }

    /// The outcome of one member of the one target.
    pub fn member(&self, pid: i32) -> Option<String> {
        let members = self.reap()["members"].as_array().unwrap();
        let member = members.iter().find(|member| member["pid"] == pid)?;
        Some(member["outcome"].as_str().unwrap().to_owned())
    }

    #[track_caller]
    pub fn expect(&self, outcome: &str, code: i32) -> &Run {
        assert_eq!(
            (self.outcome(), self.code),
            (outcome, Some(code)),
            "{self:#?}"
        );
        self
    }
}

/// `reap` with these words. Graces are short unless the words say otherwise.
pub fn reap(words: &[&str]) -> Run {
    Run::of(command(words).output().unwrap())
}

/// `reap` with these words and this input.
pub fn reap_input(words: &[&str], input: &str) -> Run {
    let mut child = command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end without having read all of it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Run::of(child.wait_with_output().unwrap())
}

pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(bin("reap"));
    let says = |option: &str| words.iter().any(|word| word.starts_with(option));
    if !says("--grace") {
        command.args(["--grace", "10s"]);
    }
    if !says("--kill-grace") {
        command.args(["--kill-grace", "10s"]);
    }
    command.args(words).stdin(Stdio::null());
    command
}

/// Records as lines.
pub fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}
