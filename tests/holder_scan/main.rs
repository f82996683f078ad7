//! `holder-scan` on real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod looks;
mod session;
mod stores;
mod tables;
mod things;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Killed, Sandbox, records};

/// A session id of the test's own, so that tests do not see each other's processes.
fn new_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    id.trim().to_owned()
}

/// A process that does nothing and is called `name`, with these arguments behind a few of a
/// shell's own (`-c`, its text, a name).
fn idle(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Killed {
    idle_with(sandbox, name, arguments, |_| {})
}

fn idle_with(
    sandbox: &Sandbox,
    name: &str,
    arguments: &[&str],
    change: impl FnOnce(&mut Command),
) -> Killed {
    let mut command = Command::new("/bin/sh");
    command
        .arg0(name)
        .args(["-c", "read never", "x"])
        .args(arguments)
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped());
    change(&mut command);
    Killed(command.spawn().unwrap())
}

/// The index of the first argument of an [`idle`] process that the test has given.
const FIRST: u64 = 4;

/// A script `name` that does nothing, run by `sh` with these arguments.
fn idle_script(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Killed {
    // Not written again below a shell that has yet to read it.
    let script = match sandbox.path(name) {
        script if script.exists() => script,
        _ => sandbox.script(name, "#!/bin/sh\nread never\n"),
    };
    let mut command = Command::new(script);
    command
        .args(arguments)
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped());
    Killed(command.spawn().unwrap())
}

fn pid(child: &Killed) -> i32 {
    child.0.id() as i32
}

/// Runs `holder-scan`, with the sandbox as home.
fn scan(sandbox: &Sandbox, arguments: &[&str]) -> Scanned {
    let mut command = sandbox.tool("holder-scan");
    command.args(arguments).env("HOME", sandbox.path(""));
    Scanned::of(command.output().unwrap())
}

/// The same with something on its stdin.
fn scan_input(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Scanned {
    let mut command = sandbox.tool("holder-scan");
    command
        .args(arguments)
        .env("HOME", sandbox.path(""))
        .stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Scanned::of(child.wait_with_output().unwrap())
}

/// What `holder-scan` has printed.
struct Scanned {
    output: Output,
    records: Vec<Value>,
}

impl Scanned {
    fn of(output: Output) -> Scanned {
        let records = records(&output);
        Scanned { output, records }
    }

    fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    /// The last record, which says what the look was worth.
    fn scan(&self) -> &Value {
        let last = self
            .records
            .last()
            .unwrap_or_else(|| panic!("{:?}", self.output));
        assert_eq!(last["type"], "scan");
        last
    }

    fn verdict(&self) -> &str {
        self.scan()["verdict"].as_str().unwrap()
    }

    fn holders(&self) -> Vec<&Value> {
        self.records
            .iter()
            .filter(|record| record["type"] == "holder")
            .collect()
    }

    /// The record of one process.
    #[track_caller]
    fn holder(&self, pid: i32) -> &Value {
        let mut holders = self.holders().into_iter();
        holders
            .find(|record| record["pid"] == pid)
            .unwrap_or_else(|| panic!("{pid} is not among {:?}", self.output))
    }

    /// The pids of all holders, each with its class.
    fn classes(&self) -> Vec<(i32, &str)> {
        let holders = self.holders().into_iter();
        holders
            .map(|record| {
                (
                    record["pid"].as_i64().unwrap() as i32,
                    record["class"].as_str().unwrap(),
                )
            })
            .collect()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
