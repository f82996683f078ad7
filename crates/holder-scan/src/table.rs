//! A process table that was written down: `--from`, and what `--dump` writes.

use std::collections::HashSet;
use std::time::Duration;

use process::{Comparison, Identity, Pid};
use records::Record;
use records::text::MAX_ARGUMENT;
use serde::Deserialize;
use serde_json::Value;

use crate::evidence::{By, Evidence};
use crate::json::Argument;
use crate::judge::Question;
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
    /// Those that say nothing of what they have open.
    without_descriptors: HashSet<Pid>,
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
    argv_cut: Option<bool>,
    cwd: Option<String>,
    tty: Option<String>,
    age_ms: Option<u64>,
    env: Option<Value>,
    fds: Option<Vec<Value>>,
    locks: Option<Vec<Value>>,
    registry: Option<Vec<Value>>,
    lossy: Option<bool>,
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
        // The reader counts lines and columns of each value.
        let plain = |why: String| why.split(" at line ").next().unwrap_or_default().to_owned();
        let entry: Entry = record.decode().map_err(plain)?;
        // A zombie with arguments has a thread that runs: the dead have none.
        let shows_none = entry.argv.as_ref().is_none_or(Vec::is_empty);
        if !(matches!(entry.state, Some('Z' | 'X')) && shows_none) {
            if entry.fds.is_none() {
                self.without_descriptors.insert(pid);
            }
            self.rows.push(entry.into_row(pid));
        }
        Ok(())
    }

    /// The table as a snapshot, with what it says about `targets`, and what the look was worth.
    pub fn into_snapshot(mut self, targets: &Targets, question: &Question) -> (Snapshot, Look) {
        let caller_uid = nix::unistd::geteuid().as_raw();
        Row::sort(&mut self.rows);
        let count = self.rows.len();
        self.rows.dedup_by_key(|row| row.pid);
        let mut look = Look::at(self.rows.len());
        if self.rows.len() < count {
            look.fail("the table has a process more than once");
        }
        let needs_argv = !question.ids.is_empty() || !targets.args.is_empty();
        if self.origin.as_ref().is_some_and(|origin| !origin.complete) {
            look.fail("the table was written after a look that was not complete");
        }
        if self.rows.is_empty() {
            look.fail("the table is empty");
        }
        if targets.asks_for_sockets {
            look.fail("a table that was written down says nothing of sockets and ports");
        }
        for row in &mut self.rows {
            row.found = found(row, targets);
            let no_descriptors = self.without_descriptors.contains(&row.pid);
            let unread = (needs_argv && !has_arguments(row))
                || (targets.needs_descriptors() && no_descriptors)
                || (targets.needs_cwd() && row.cwd.is_none())
                || (targets.needs_env() && !has_values(row));
            if !unread {
                continue;
            }
            if is_asked_about(row, question.uid, caller_uid) {
                look.unreadable += 1;
            } else {
                look.others_unseen += 1;
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

/// Whether what could not be read of a row leaves the question open: it is of the asked user, or
/// else of the caller's or of one that is not known; all are to root. Init is nobody's own.
fn is_asked_about(row: &Row, asked: Option<u32>, caller: u32) -> bool {
    match (asked, row.uid) {
        (_, None) => true,
        (Some(asked), Some(uid)) => uid == asked,
        (None, Some(uid)) => !row.pid.is_init() && (caller == 0 || uid == caller),
    }
}

/// Whether a row has all that its arguments say of sessions. A word that is too long to be shown
/// whole is no id, but JSON and shell text may have lost one.
fn has_arguments(row: &Row) -> bool {
    let Some(argv) = &row.argv else {
        return false;
    };
    // Nothing is cut inside of a character, which has four bytes at the most.
    let is_cut = |argument: &Vec<u8>| row.argv_cut && argument.len() + 4 > MAX_ARGUMENT;
    let text = program::shell_text(argv).map(|(index, _)| index);
    let told = |(index, argument): (usize, &Vec<u8>)| {
        text == Some(index) || Argument::parse(argument).is_some()
    };
    let mut cut = argv
        .iter()
        .enumerate()
        .filter(|(_, argument)| is_cut(argument));
    !cut.any(told)
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
    let cwd = row.cwd.as_deref().map(path::trimmed);
    if let Some(cwd) = cwd.filter(|cwd| targets.has_cwd(cwd)) {
        found.push(Evidence::open(By::Cwd, cwd, Some("cwd".to_owned())));
    }
    if targets.needs_cwd() && !Program::of(argv, row.exe.as_deref()).only_names() {
        for (index, argument) in arguments.skip(1) {
            let cwd = Argument::parse(argument).and_then(|json| json.cwd);
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
            found.push(Evidence::variable(name));
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
            ppid: self.ppid,
            pgid: self.pgid,
            sid: self.sid,
            uid: self.uid,
            name: self.name.map(String::into_bytes),
            state: self.state,
            foreground: self.foreground,
            tty: self.tty,
            ident,
            age: self.age_ms.map(Duration::from_millis),
            argv: self
                .argv
                .map(|argv| argv.into_iter().map(String::into_bytes).collect()),
            argv_cut: self.argv_cut.unwrap_or_default(),
            lossy: self.lossy.unwrap_or_default(),
            exe: self.exe.map(String::into_bytes),
            cwd: self.cwd.map(String::into_bytes),
            env: self.env.and_then(environment),
            open,
            registry,
            ..Row::new(pid)
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

/// Whether a row of an agent's table means this process, as far as it says which one it means, and
/// as far as it is known which one this is.
fn means(row: &Value, pid: Pid, ident: Option<&Identity>) -> bool {
    let named = row.get("pid").and_then(Value::as_i64);
    if named.is_some_and(|named| named != i64::from(pid.get())) {
        return false;
    }
    let Some(ident) = ident else {
        return true;
    };
    let word = row.get("ident").and_then(Value::as_str);
    let written = word.and_then(|word| word.parse::<Identity>().ok());
    written.is_none_or(|written| written.compare(ident) == Comparison::Same)
        && row
            .get("procStart")
            .is_none_or(|start| has_started(ident, start))
}

/// Whether the process started when a row says: `TICKS` or `BOOT_ID:TICKS`.
fn has_started(ident: &Identity, start: &Value) -> bool {
    let Identity::Linux(ident) = ident else {
        return true;
    };
    let text = match start {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (boot, ticks) = match text.rsplit_once(':') {
        Some((boot, ticks)) => (Some(boot), ticks),
        None => (None, text.as_str()),
    };
    let this_boot = ident.boot.to_string();
    boot.is_none_or(|boot| boot.eq_ignore_ascii_case(&this_boot))
        && ticks.parse() == Ok(ident.ticks)
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

#[cfg(test)]
mod tests;
