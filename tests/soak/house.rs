//! A house with everything in it counted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use process::{Here, Pid, Reader, Signal, Table};

use crate::support::{Sandbox, bin, until};

/// Held by the one test that runs.
static ALONE: Mutex<()> = Mutex::new(());

/// A test's folder, with the folders in it that the tools may take for their own files.
pub struct House {
    pub sandbox: Sandbox,
    descriptors: usize,
    _alone: MutexGuard<'static, ()>,
}

/// The folders, and the variables that name them.
const ROOMS: [(&str, &str); 3] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("XDG_RUNTIME_DIR", "run"),
];

impl House {
    pub fn new() -> House {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        process::become_subreaper(true).unwrap();
        let sandbox = Sandbox::new();
        for (_, room) in ROOMS {
            std::fs::create_dir(sandbox.path(room)).unwrap();
        }
        House {
            sandbox,
            descriptors: descriptors("self"),
            _alone: alone,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    /// One of the tools, in this house.
    pub fn tool(&self, tool: &str) -> Command {
        self.command(bin(tool))
    }

    /// A command that takes this house for the whole world.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .envs(ROOMS.map(|(variable, room)| (variable, self.path(room))))
            .env_remove("TMUX")
            .stdin(Stdio::null());
        command
    }

    /// Every file, socket and folder below the house.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
                found.insert(entry.path());
            }
        }
        found
    }

    /// Collects the adopted who have ended, but not `own`, whom somebody waits for.
    pub fn collect(&self, own: &[u32]) {
        for entry in Table::read(&mut Reader::new()).unwrap().entries() {
            let is_ours = entry.ppid == std::process::id().cast_signed();
            let pid = entry.pid.get();
            if is_ours && entry.state.is_zombie() && !own.contains(&pid.cast_unsigned()) {
                let pid = nix::unistd::Pid::from_raw(pid);
                waitid(Id::Pid(pid), WaitPidFlag::WEXITED).unwrap();
            }
        }
    }

    /// All that was started is dead and collected, and no descriptor more is open than before.
    #[track_caller]
    pub fn assert_empty(&self) {
        self.collect(&[]);
        let left = waitid(
            Id::All,
            WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT,
        );
        assert_eq!(left, Err(Errno::ECHILD), "left: {:?}", family());
        assert_eq!(descriptors("self"), self.descriptors);
    }
}

impl Drop for House {
    /// A test that has failed leaves nobody either.
    fn drop(&mut self) {
        let here = Here::new();
        until("everybody is dead", || {
            self.collect(&[]);
            let left = family();
            for &pid in &left {
                if let Ok(handle) = here.open(pid) {
                    handle.signal(Signal::SIGKILL);
                }
            }
            left.is_empty()
        });
    }
}

/// All descendants of this process. Whoever loses its parent is given to this process, so that
/// everybody who was ever started is among them.
pub fn family() -> Vec<Pid> {
    let table = Table::read(&mut Reader::new()).unwrap();
    table.descendants(&[Pid::new(std::process::id().into()).unwrap()])
}

/// The children of a process with one thread.
pub fn children(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap()
}

/// How many descriptors a process has open.
pub fn descriptors(pid: &str) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

/// The memory that a process has made its own, in kB. Not `Private_Dirty`: that counts the pages of
/// a program that has just been linked, as long as they are not on the disk yet.
pub fn memory(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Anonymous:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap()
}
