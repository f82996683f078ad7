//! The process table as plain data, from wherever it came: the live one, a dump, a test.

use std::collections::HashSet;
use std::time::Duration;

use process::{Identity, Pid};

use crate::evidence::Evidence;

/// A process table, and what else the judgement needs to know.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The processes that live, by pid. The dead and the kernel's own hold nothing.
    pub rows: Vec<Row>,
    /// Those of the rows that are the caller, its ancestors or its pipeline.
    pub family: HashSet<Pid>,
    /// The caller's ancestors alone.
    pub ancestors: HashSet<Pid>,
    /// The caller's user.
    pub caller_uid: Option<u32>,
}

/// One process. What is `None` could not be read, or, of a process that has nothing to do with the
/// question, was not.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The process.
    pub pid: Pid,
    /// Its parent, 0 where that is outside of the table.
    pub ppid: Option<i32>,
    /// Its process group.
    pub pgid: Option<i32>,
    /// Its session.
    pub sid: Option<i32>,
    /// Its effective user.
    pub uid: Option<u32>,
    /// Its short name.
    pub name: Option<Vec<u8>>,
    /// Its state's letter, ps(1).
    pub state: Option<char>,
    /// Whether it is in the foreground group of its terminal.
    pub foreground: Option<bool>,
    /// Its controlling terminal, as `pts/3`.
    pub tty: Option<String>,
    /// Its identity.
    pub ident: Option<Identity>,
    /// How long ago it started.
    pub age: Option<Duration>,
    /// Its arguments.
    pub argv: Option<Vec<Vec<u8>>>,
    /// Whether some of them had been cut before they came here.
    pub argv_cut: bool,
    /// Whether some of its bytes had been replaced before they came here.
    pub lossy: bool,
    /// Its executable.
    pub exe: Option<Vec<u8>>,
    /// Its working directory.
    pub cwd: Option<Vec<u8>>,
    /// Its environment.
    pub env: Option<Environment>,
    /// What it has open and may have to do with a session.
    pub open: Option<Vec<Open>>,
    /// What agents' own tables of live sessions say of this very process.
    pub registry: Vec<Registered>,
    /// What the question about other things than sessions has found on it.
    pub found: Vec<Evidence>,
}

/// Names and values; a dump has the names alone.
pub type Environment = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The descriptor's number; `None` where only the kernel's list of locks says it.
    pub fd: Option<String>,
    /// The path, as the kernel names it.
    pub path: Vec<u8>,
    /// Whether the process has a kernel lock on it.
    pub locked: bool,
}

/// A row of an agent's own table that means a process of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The session.
    pub id: Vec<u8>,
    /// The table.
    pub path: Vec<u8>,
}

impl Row {
    /// Puts rows in the order of their numbers.
    pub fn sort(rows: &mut [Row]) {
        rows.sort_by_key(|row| row.pid);
    }

    /// A process of which nothing is known but its number.
    pub fn new(pid: Pid) -> Row {
        Row {
            pid,
            ppid: None,
            pgid: None,
            sid: None,
            uid: None,
            name: None,
            state: None,
            foreground: None,
            tty: None,
            ident: None,
            age: None,
            argv: None,
            argv_cut: false,
            lossy: false,
            exe: None,
            cwd: None,
            env: None,
            open: None,
            registry: Vec::new(),
            found: Vec::new(),
        }
    }
}
