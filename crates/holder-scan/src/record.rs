//! The records that are printed, with all their keys in order.

use std::borrow::Cow;
use std::time::Duration;

use process::{Identity, Pid};
use records::human::{Column, HumanView};
use records::text::{Argv, lossy};
use serde::Serialize;

use crate::evidence::Evidence;
use crate::id::Ids;
use crate::judge::{Class, Finding, Verdict};
use crate::snapshot::{Row, Snapshot};

/// How the records are shown to eyes.
pub const HUMAN: HumanView = &[
    (
        "holder",
        &[
            Column {
                key: "pid",
                width: 7,
            },
            Column {
                key: "class",
                width: 10,
            },
            Column {
                key: "active",
                width: 10,
            },
            Column {
                key: "name",
                width: 15,
            },
            Column {
                key: "evidence.0.by",
                width: 10,
            },
            Column {
                key: "session_id",
                width: 36,
            },
            Column {
                key: "argv",
                width: 0,
            },
        ],
    ),
    (
        "process_entry",
        &[
            Column {
                key: "pid",
                width: 7,
            },
            Column {
                key: "ppid",
                width: 7,
            },
            Column {
                key: "uid",
                width: 5,
            },
            Column {
                key: "state",
                width: 1,
            },
            Column {
                key: "name",
                width: 15,
            },
            Column {
                key: "argv",
                width: 0,
            },
        ],
    ),
];

/// What is printed of any process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessKeys {
    pid: Pid,
    ident: Option<Identity>,
    ppid: Option<i32>,
    pgid: Option<i32>,
    sid: Option<i32>,
    uid: Option<u32>,
    name: Option<String>,
    state: Option<char>,
    foreground: Option<bool>,
    exe: Option<String>,
    argv: Option<Vec<String>>,
    argv_cut: bool,
    cwd: Option<String>,
    tty: Option<String>,
}

impl ProcessKeys {
    /// The keys of `row`, and whether any of its bytes had to be replaced.
    fn new(row: &Row, full_argv: bool) -> (ProcessKeys, bool) {
        let mut is_lossy = row.lossy;
        let mut text = |bytes: &[u8]| {
            let (text, lost) = lossy(bytes);
            is_lossy |= lost;
            text
        };
        let name = row.name.as_deref().map(&mut text);
        let exe = row.exe.as_deref().map(&mut text);
        let cwd = row.cwd.as_deref().map(&mut text);
        let arguments = row
            .argv
            .as_ref()
            .map(|argv| Argv::new(argv.iter().map(Vec::as_slice), full_argv));
        let (cut, lost) = arguments
            .as_ref()
            .map_or((false, false), |argv| (argv.argv_cut, argv.lossy));
        let keys = ProcessKeys {
            pid: row.pid,
            ident: row.ident.clone(),
            ppid: row.ppid,
            pgid: row.pgid,
            sid: row.sid,
            uid: row.uid,
            name,
            state: row.state,
            foreground: row.foreground,
            exe,
            argv: arguments.map(|argv| argv.argv),
            argv_cut: cut || row.argv_cut,
            cwd,
            tty: row.tty.clone(),
        };
        (keys, is_lossy || lost)
    }
}

/// A `holder` record.
#[derive(Clone, Debug, Serialize)]
pub struct Holder {
    v: u8,
    r#type: &'static str,
    #[serde(flatten)]
    process: ProcessKeys,
    class: Class,
    session_id: Option<String>,
    root: Pid,
    root_ident: Option<Identity>,
    primary: Pid,
    registered: Option<bool>,
    carrier: bool,
    shared: bool,
    active: bool,
    age_ms: Option<u64>,
    youngest_child_ms: Option<u64>,
    evidence: Vec<Evidence>,
    lossy: bool,
}

impl Holder {
    /// The record of `finding`.
    pub fn new(
        snapshot: &Snapshot,
        finding: &Finding,
        registered: Option<bool>,
        full_argv: bool,
    ) -> Holder {
        let row = &snapshot.rows[finding.row];
        let root = &snapshot.rows[finding.tree.root];
        let (process, lossy) = ProcessKeys::new(row, full_argv);
        Holder {
            v: 1,
            r#type: "holder",
            process,
            class: finding.class,
            session_id: finding.session.clone(),
            root: root.pid,
            root_ident: root.ident.clone(),
            primary: snapshot.rows[finding.tree.primary].pid,
            registered,
            carrier: finding.carrier,
            shared: finding.shared,
            active: finding.tree.active,
            age_ms: root.age.map(millis),
            youngest_child_ms: finding.tree.youngest_child.map(millis),
            lossy: lossy || finding.evidence.iter().any(|piece| piece.lossy),
            evidence: finding.evidence.clone(),
        }
    }
}

/// A `process_entry` record: one line of `--dump`.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessEntry {
    v: u8,
    r#type: &'static str,
    #[serde(flatten)]
    process: ProcessKeys,
    age_ms: Option<u64>,
    env: Option<Vec<String>>,
    lossy: bool,
}

impl ProcessEntry {
    /// The record of `row`. Of its environment only the names are shown.
    pub fn new(row: &Row, full_argv: bool) -> ProcessEntry {
        let (process, mut is_lossy) = ProcessKeys::new(row, full_argv);
        let env = row.env.as_ref().map(|env| {
            env.iter()
                .map(|(name, _)| {
                    let (name, lost) = lossy(name);
                    is_lossy |= lost;
                    name
                })
                .collect()
        });
        ProcessEntry {
            v: 1,
            r#type: "process_entry",
            process,
            age_ms: row.age.map(millis),
            env,
            lossy: is_lossy,
        }
    }
}

/// What was asked, as the scan record says it. Only what was asked for is there, and of variables
/// only the names.
#[derive(Clone, Debug, Serialize)]
pub struct What<'a> {
    /// Arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arg: Words<'a>,
    /// Working directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cwd: Words<'a>,
    /// Directories with working directories below them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cwd_under: Words<'a>,
    /// Names of variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Words<'a>,
    /// Files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file: Words<'a>,
    /// TCP ports.
    #[serde(skip_serializing_if = "<[u16]>::is_empty")]
    pub port: &'a [u16],
    /// Sessions.
    #[serde(skip_serializing_if = "Ids::is_empty")]
    pub session_id: &'a Ids,
    /// Unix sockets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub socket: Words<'a>,
    /// Terminals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tty: Words<'a>,
    /// A user, whose processes alone were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
}

/// Words, any of which was asked for.
pub type Words<'a> = Vec<Cow<'a, str>>;

/// The `scan` record: what the look was worth.
#[derive(Clone, Debug, Serialize)]
pub struct Scan<'a> {
    /// Always 1.
    pub v: u8,
    /// Always `scan`.
    pub r#type: &'static str,
    /// What was asked.
    pub what: What<'a>,
    /// What it came to; `null` where nothing was asked.
    pub verdict: Option<Verdict>,
    /// How many processes hold it.
    pub holders: usize,
    /// How many processes were looked at.
    pub processes: usize,
    /// How many of the caller's own could not be read.
    pub unreadable: usize,
    /// How many of other users could not be read.
    pub others_unseen: usize,
    /// Whether everything that the question needs was read.
    pub complete: bool,
    /// The machine.
    pub host: Option<String>,
    /// Its boot.
    pub boot_id: Option<String>,
    /// The pid namespace that the look was taken in.
    pub pidns: Option<String>,
    /// How long it took.
    pub took_ms: u64,
    /// When it ended.
    pub at: String,
}

/// The keys of the records that are made here.
#[rustfmt::skip]
pub const KEYS: &[&str] = &[
    "v", "type",
    // Of a process.
    "pid", "ident", "ppid", "pgid", "sid", "uid", "name", "state", "foreground", "exe", "argv",
    "argv_cut", "cwd", "tty", "age_ms", "lossy",
    // Of a holder.
    "class", "session_id", "root", "root_ident", "primary", "registered", "carrier", "shared",
    "active", "youngest_child_ms", "evidence",
    // Of --dump.
    "env",
    // Of a scan.
    "what", "verdict", "holders", "processes", "unreadable", "others_unseen", "complete", "host",
    "boot_id", "pidns", "took_ms", "at",
];

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
