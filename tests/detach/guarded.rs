//! What the tests of guards share.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::*;

/// A folder with the files of a guarded command in it.
pub struct Scene(pub Sandbox);

impl Deref for Scene {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.0
    }
}

/// A command with its guard.
pub struct Guarded {
    pub record: Value,
    pub pid: i32,
    pub guard: i32,
}

impl Scene {
    pub fn new() -> Scene {
        Scene(Sandbox::new())
    }

    /// `detach --guard` with marker and announcements, and these words.
    pub fn run(&self, words: &[&str]) -> Output {
        let own = ["--guard", "--marker", "m.marker", "--announce", "deaths"];
        let mut command = self.tool("detach");
        command.args(own).args(words).output().unwrap()
    }

    /// The same, for a command that starts.
    pub fn start(&self, words: &[&str]) -> Guarded {
        let output = self.run(words);
        assert!(output.status.success(), "{output:?}");
        self.adopt(record(&output))
    }

    /// Keeps command and guard of `record` from outliving the test.
    pub fn adopt(&self, record: Value) -> Guarded {
        let guard = &record["guard"];
        self.track(guard["ident"].as_str().unwrap());
        self.track(record["ident"].as_str().unwrap());
        Guarded {
            pid: number(&record, "pid"),
            guard: number(guard, "pid"),
            record,
        }
    }

    pub fn marker(&self) -> PathBuf {
        self.path("m.marker")
    }

    pub fn read_marker(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.marker()).ok()?).ok()
    }

    /// What stands in the announcement file and in what it was rotated to, each whole line.
    pub fn announced(&self) -> Vec<Value> {
        ["deaths.1", "deaths"]
            .iter()
            .filter_map(|name| std::fs::read(self.path(name)).ok())
            .flat_map(|bytes| {
                let text = String::from_utf8(bytes).unwrap();
                let lines = text
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok());
                lines.collect::<Vec<Value>>()
            })
            .collect()
    }

    /// The one death that is announced, once it is, and the marker is gone.
    #[track_caller]
    pub fn death(&self) -> Value {
        until("its death is announced", || !self.announced().is_empty());
        until("its marker is gone", || !self.marker().exists());
        let mut announced = self.announced();
        assert_eq!(announced.len(), 1, "{announced:?}");
        announced.remove(0)
    }

    pub fn sweep(&self) -> Output {
        let words = ["--sweep", ".", "--announce", "deaths"];
        self.tool("detach").args(words).output().unwrap()
    }

    /// `reap` with this record as its input.
    pub fn reap(&self, record: &Value, words: &[&str]) -> Output {
        std::fs::write(self.path("input"), format!("{record}\n")).unwrap();
        let mut command = self.tool("reap");
        command
            .args(words)
            .stdin(std::fs::File::open(self.path("input")).unwrap());
        command.output().unwrap()
    }
}

/// The lines of a file of numbers, once there are so many.
pub fn pids(scene: &Scene, name: &str, count: usize) -> Vec<i32> {
    let path = scene.path(name);
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    until(&format!("{count} lines in {name}"), || {
        read().matches('\n').count() >= count
    });
    read()
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect()
}

/// A command that leaves three orphans, which end at once, and lives on. They are in the file
/// `orphans`.
#[cfg(target_os = "linux")]
pub const ORPHANS: &str =
    "for i in 1 2 3; do (setsid sh -c 'echo $$ >>orphans' &); done; exec sleep 600";

/// Waits until [`ORPHANS`] have ended and been collected, which they are before the command ends.
#[cfg(target_os = "linux")]
#[track_caller]
pub fn until_collected(scene: &Scene) {
    for orphan in pids(scene, "orphans", 3) {
        until(&format!("{orphan} is collected"), || {
            state(orphan).is_none()
        });
    }
}

pub fn kill(pid: i32) {
    signal(pid, process::Signal::SIGKILL);
}

pub fn signal(pid: i32, signal: process::Signal) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

pub fn signal_group(pid: i32, signal: process::Signal) {
    let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), signal);
}
