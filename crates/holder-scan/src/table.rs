//! A process table that was written down: `--from`, and what `--dump` writes.

use std::time::Duration;

use process::{Identity, Pid};
use records::Record;
use serde::Deserialize;
use serde_json::Value;

use crate::evidence::{By, Evidence};
use crate::json;
use crate::look::Look;
use crate::path;
use crate::program::{self, Program};
use crate::snapshot::{Environment, Open, Registered, Row, Snapshot};
use crate::targets::Targets;

/// A table as it is read, line by line.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The rows.
    pub rows: Vec<Row>,
    /// What the writer said of its own look.
    pub origin: Option<Origin>,
}

/// Where a table is from: its `scan` record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Whether the look was complete.
    pub complete: bool,
    /// The machine.
    pub host: Option<String>,
    /// Its boot.
    pub boot_id: Option<String>,
    /// The pid namespace.
    pub pidns: Option<String>,
    /// When it was taken.
    pub at: Option<String>,
}

/// A row as it is written. A key that is missing could not be read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    ppid: Option<i32>,
    pgid: Option<i32>,
    sid: Option<i32>,
    uid: Option<u32>,
    name: Option<String>,
    state: Option<char>,
    foreground: Option<bool>,
    ident: Option<String>,
    exe: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    tty: Option<String>,
    age_ms: Option<u64>,
    env: Option<Value>,
    fds: Option<Vec<Value>>,
    locks: Option<Vec<Value>>,
    registry: Option<Vec<Value>>,
}

impl Written {
    /// Takes one record of the table.
    ///
    /// # Errors
    ///
    /// It is a process entry, and not of the form of one. Said for people.
    pub fn take(&mut self, record: &Record<'_>) -> Result<(), String> {
        match record.kind().as_deref() {
            Some("process_entry") | None => {}
            Some("scan") => {
                self.origin = Some(record.decode()?);
                return Ok(());
            }
            Some(_) => return Ok(()),
        }
        let pid = record
            .get("pid")
            .and_then(|pid| records::number::parse(pid.get()).ok())
            .and_then(|pid| Pid::new(i64::try_from(pid).ok()?))
            .ok_or("a process entry without a valid pid")?;
        let entry: Entry = record.decode()?;
        if !matches!(entry.state, Some('Z' | 'X')) {
            self.rows.push(entry.into_row(pid));
        }
        Ok(())
    }

    /// The table as a snapshot, with what it says about `targets`, and what the look was worth.
    pub fn into_snapshot(mut self, targets: &Targets, needs_argv: bool) -> (Snapshot, Look) {
        let caller_uid = nix::unistd::geteuid().as_raw();
        let mut look = Look::at(self.rows.len());
        if self.origin.as_ref().is_some_and(|origin| !origin.complete) {
            look.fail("the table was written after a look that was not complete");
        }
        if self.rows.is_empty() {
            look.fail("the table is empty");
        }
        if targets.asks_for_sockets {
            look.fail("a table that was written down says nothing of sockets and ports");
        }
        self.rows.sort_by_key(|row| row.pid);
        self.rows.dedup_by_key(|row| row.pid);
        for row in &mut self.rows {
            row.found = found(row, targets);
            let unread = (needs_argv && row.argv.is_none())
                || (targets.needs_descriptors() && row.open.is_none())
                || (targets.needs_cwd() && row.cwd.is_none())
                || (targets.needs_env() && !has_values(row));
            match row.uid {
                Some(uid) if unread && uid != caller_uid => look.others_unseen += 1,
                _ if unread => look.unreadable += 1,
                _ => {}
            }
        }
        let snapshot = Snapshot {
            rows: self.rows,
            caller_uid: Some(caller_uid),
            ..Snapshot::default()
        };
        (snapshot, look)
    }
}

/// Whether the environment of a row has values, which a dump leaves out.
fn has_values(row: &Row) -> bool {
    row.env
        .as_ref()
        .is_some_and(|env| env.iter().all(|(_, value)| value.is_some()))
}

/// What a row says about what is asked for beside sessions.
fn found(row: &Row, targets: &Targets) -> Vec<Evidence> {
    let mut found = Vec::new();
    let argv = row.argv.as_deref().unwrap_or_default();
    let asked = |argument: &[u8]| {
        let mut texts = targets.args.iter();
        texts.any(|text| text == argument || text == program::base(argument))
    };
    let arguments = argv.iter().enumerate();
    let named = arguments.clone().filter(|(_, argument)| asked(argument));
    found.extend(named.map(|(index, _)| Evidence::at(By::Arg, index)));
    if let Some(cwd) = row.cwd.as_deref().filter(|cwd| targets.has_cwd(cwd)) {
        found.push(Evidence::open(By::Cwd, cwd, Some("cwd".to_owned())));
    }
    if targets.needs_cwd() && !Program::of(argv, row.exe.as_deref()).only_names() {
        for (index, argument) in arguments.skip(1) {
            let cwd = json::Argument::parse(argument).and_then(|json| json.cwd);
            if let Some(cwd) = cwd.filter(|cwd| targets.has_cwd(path::trimmed(cwd))) {
                found.push(Evidence {
                    index: Some(index),
                    ..Evidence::open(By::Cwd, &cwd, None)
                });
            }
        }
    }
    for (name, value) in row.env.iter().flatten() {
        let is = |(key, wanted): &(Vec<u8>, Vec<u8>)| key == name && Some(wanted) == value.as_ref();
        if targets.envs.iter().any(is) {
            found.push(Evidence {
                name: Some(String::from_utf8_lossy(name).into_owned()),
                ..Evidence::by(By::Env)
            });
        }
    }
    for open in row.open.iter().flatten() {
        let is = |path: &[u8]| path == open.path;
        if targets
            .files
            .iter()
            .any(|file| is(&file.path) || is(&file.kernel_path))
        {
            found.push(Evidence::open(By::File, &open.path, open.fd.clone()));
        }
    }
    if row
        .tty
        .as_ref()
        .is_some_and(|tty| targets.ttys.contains(tty))
    {
        found.push(Evidence::by(By::Tty));
    }
    found
}

impl Entry {
    fn into_row(self, pid: Pid) -> Row {
        let open = match (self.fds, self.locks) {
            (None, None) => None,
            (fds, locks) => {
                let files = fds
                    .unwrap_or_default()
                    .into_iter()
                    .map(|file| (file, false));
                let locks = locks
                    .unwrap_or_default()
                    .into_iter()
                    .map(|file| (file, true));
                Some(
                    files
                        .chain(locks)
                        .filter_map(|(file, locked)| open(&file, locked))
                        .collect(),
                )
            }
        };
        let ident = self.ident.and_then(|word| word.parse::<Identity>().ok());
        let rows = self.registry.unwrap_or_default();
        let rows = rows.iter().filter(|row| means(row, pid, ident.as_ref()));
        let registry = rows.filter_map(registered).collect();
        Row {
            pgid: self.pgid.unwrap_or_default(),
            sid: self.sid.unwrap_or_default(),
            uid: self.uid,
            name: self.name.unwrap_or_default().into_bytes(),
            state: self.state.unwrap_or('S'),
            foreground: self.foreground.unwrap_or_default(),
            tty: self.tty,
            ident,
            age: self.age_ms.map(Duration::from_millis),
            argv: self
                .argv
                .map(|argv| argv.into_iter().map(String::into_bytes).collect()),
            exe: self.exe.map(String::into_bytes),
            cwd: self.cwd.map(String::into_bytes),
            env: self.env.and_then(environment),
            open,
            registry,
            ..Row::new(pid, self.ppid.unwrap_or_default())
        }
    }
}

/// An environment: the names, or an object with the values.
fn environment(value: Value) -> Option<Environment> {
    match value {
        Value::Object(pairs) => Some(
            pairs
                .into_iter()
                .map(|(name, value)| {
                    let value = value.as_str().map(|value| value.as_bytes().to_vec());
                    (name.into_bytes(), value)
                })
                .collect(),
        ),
        Value::Array(names) => Some(
            names
                .iter()
                .filter_map(|name| Some((name.as_str()?.as_bytes().to_vec(), None)))
                .collect(),
        ),
        _ => None,
    }
}

/// An open file: its path, or an object with `path` and `fd`.
fn open(value: &Value, locked: bool) -> Option<Open> {
    let path = value.as_str().or_else(|| value.get("path")?.as_str())?;
    let fd = value.get("fd").map(|fd| match fd {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    Some(Open {
        fd,
        path: path.as_bytes().to_vec(),
        locked: locked || value.get("locked").and_then(Value::as_bool) == Some(true),
    })
}

/// Whether a row of an agent's table means this process, as far as it says which one it means.
fn means(row: &Value, pid: Pid, ident: Option<&Identity>) -> bool {
    let named = row.get("pid").and_then(Value::as_i64);
    let written = row.get("procStart").and_then(|start| match start {
        Value::String(text) => text.rsplit(':').next()?.parse().ok(),
        other => other.as_u64(),
    });
    let ticks = match ident {
        Some(Identity::Linux(ident)) => Some(ident.ticks),
        _ => None,
    };
    named.is_none_or(|named| named == i64::from(pid.get()))
        && written
            .zip(ticks)
            .is_none_or(|(written, ticks): (u64, u64)| written == ticks)
}

/// A row of an agent's table: the session, or an object with it and the table's `path`.
fn registered(value: &Value) -> Option<Registered> {
    let id = value.as_str().or_else(|| {
        let mut keys = ["session_id", "sessionId", "id"].iter();
        keys.find_map(|key| value.get(key)?.as_str())
    })?;
    let path = value
        .get("path")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(Registered {
        id: id.as_bytes().to_vec(),
        path: path.as_bytes().to_vec(),
    })
}
