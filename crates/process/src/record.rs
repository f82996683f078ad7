//! What the tools say of one process: the `process` record.

use serde::Serialize;

use crate::exit::Exit;
use crate::ident::Identity;
use crate::pid::Pid;

/// The record of one process, `type: process`, in the order of its keys. `detach` makes it of
/// what it starts; the other tools of a process that is given to them as a bare operand, and then
/// most of it is not known and `null`.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRecord {
    v: u8,
    r#type: &'static str,
    /// What became of the start; `None` where nothing was started.
    pub status: Option<Status>,
    /// The process.
    pub pid: Option<Pid>,
    /// Its process group.
    pub pgid: Option<i32>,
    /// Its session.
    pub sid: Option<i32>,
    /// Who it is.
    pub ident: Option<Identity>,
    /// Its arguments, as records show them.
    pub argv: Option<Vec<String>>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// The file that takes its output.
    pub log: Option<String>,
    /// By what it showed itself ready.
    pub ready: Option<Ready>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The process that announces its death.
    pub guard: Option<Named>,
    /// The file that stands for it while it runs.
    pub marker: Option<String>,
    /// The file by which it is the only one.
    pub lock: Option<String>,
    /// The host it runs on.
    pub host: String,
    /// Whether bytes of `argv` or a path could not be shown.
    pub lossy: bool,
    /// Whether an argument was too long to be shown whole.
    pub argv_cut: bool,
    /// When it was started, RFC 3339.
    pub started_at: Option<String>,
    /// How long the start took, in milliseconds.
    pub took_ms: Option<u64>,
}

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The command was executed.
    Started,
    /// It was executed, and has shown itself ready.
    Ready,
    /// It was there already.
    Running,
    /// It ended before it was ready.
    Exited,
    /// It was not ready at the deadline.
    NotReady,
    /// Somebody else answers where it should.
    Occupied,
}

/// By what a command showed itself ready, and how long after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// `socket`, `file` or `line`: what was awaited last.
    pub by: &'static str,
    /// Milliseconds from the start.
    pub after_ms: u64,
}

/// A process by its number and identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The number.
    pub pid: Pid,
    /// The identity.
    pub ident: Identity,
}

impl ProcessRecord {
    /// Its keys.
    #[rustfmt::skip]
    pub const KEYS: &[&str] = &[
        "v", "type", "status", "pid", "pgid", "sid", "ident", "argv", "cwd", "log", "ready", "exit",
        "guard", "marker", "lock", "host", "lossy", "argv_cut", "started_at", "took_ms",
    ];

    /// A record that knows only its host.
    pub fn on(host: &str) -> ProcessRecord {
        ProcessRecord {
            v: 1,
            r#type: "process",
            status: None,
            pid: None,
            pgid: None,
            sid: None,
            ident: None,
            argv: None,
            cwd: None,
            log: None,
            ready: None,
            exit: None,
            guard: None,
            marker: None,
            lock: None,
            host: host.to_owned(),
            lossy: false,
            argv_cut: false,
            started_at: None,
            took_ms: None,
        }
    }
}
