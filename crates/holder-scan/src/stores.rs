//! What agents write down about their live sessions: their own tables, and the files of a session.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents::signs::{AGENTS, Registry, RowStart, Signs, id_in_path, matches_path};
use process::{Entry, FileId, FileLock, Here, Pid, Start, file_at, file_locks};
use serde_json::Value;

use crate::id::{Ids, SessionId};
use crate::snapshot::Registered;

/// The most that is read of one table.
const MAX_TABLE: u64 = 4 << 20;

/// Up to so many sessions are looked for by their names; for more it costs less to list a folder.
const FEW: usize = 16;

/// How far the clock that a row was written by may be off the one of process starts.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// The folders of agents, of which one machine may have several.
pub type Homes = HashSet<(&'static str, PathBuf)>;

/// The folders of all agents according to an environment.
pub fn homes(variable: impl Fn(&str) -> Option<PathBuf>) -> Homes {
    AGENTS
        .iter()
        .filter_map(|agent| home(agent, &variable))
        .collect()
}

/// The folder of `agent` according to an environment.
pub fn home(
    agent: &'static Signs,
    variable: &impl Fn(&str) -> Option<PathBuf>,
) -> Option<(&'static str, PathBuf)> {
    let named = agent.home.variables.iter().find_map(|name| variable(name));
    let default = || {
        let home = variable("HOME").filter(|_| !agent.home.default.is_empty())?;
        Some(home.join(agent.home.default))
    };
    let path = named.or_else(default).filter(|path| path.is_absolute())?;
    Some((agent.name, path))
}

/// What was found in the agents' folders.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    /// Rows of agents' tables, by the process that they name.
    pub rows: HashMap<Pid, Vec<RegistryRow>>,
    /// Whether a file of an asked session is there, so that some process may have it open.
    pub has_files: bool,
    /// Kernel locks on lock files of asked sessions, with their paths.
    pub locks: Vec<(FileLock, PathBuf)>,
}

/// One row of an agent's own table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryRow {
    /// The session and the table.
    pub registered: Registered,
    /// Who owns the file.
    owner: u32,
    start: WrittenStart,
    space: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WrittenStart {
    Ticks { boot: Option<String>, ticks: u64 },
    NotAfter(SystemTime),
    Unknown,
}

impl RegistryRow {
    /// Whether the row means the process of `entry` and `uid`, rather than an earlier one with its
    /// pid, and is written by somebody who is believed about it.
    pub fn means(&self, entry: &Entry, uid: Option<u32>, here: &Here) -> bool {
        if !is_believed(self.owner, uid) {
            return false;
        }
        let space = here.space();
        let own_space = space.as_deref().map(|space| {
            let pidns = space.split('+').next().unwrap_or(space);
            pidns.parse::<u64>().ok()
        });
        if self.space.is_some() && own_space.is_some_and(|own| own != self.space) {
            return false;
        }
        match &self.start {
            WrittenStart::Ticks { boot, ticks } => {
                let this_boot = || here.boot().map(|boot| boot.to_string());
                let boot_fits = boot
                    .as_ref()
                    .is_none_or(|boot| this_boot().as_ref() == Some(boot));
                boot_fits && entry.start == Start::Ticks(*ticks)
            }
            WrittenStart::NotAfter(written) => entry
                .start
                .wall_clock()
                .is_none_or(|started| started <= *written + CLOCK_SLACK),
            // A row without a start is written by nobody that is known.
            WrittenStart::Unknown => false,
        }
    }
}

/// Whether a table of the user `owner` is believed about a process of the user `uid`: everybody has
/// the word about his own, and root about all. An agent's folder is where its environment says, so
/// any user could have one that gives the processes of others another session.
fn is_believed(owner: u32, uid: Option<u32>) -> bool {
    owner == 0 || uid == Some(owner)
}

/// Looks into the folders `homes` for tables that name one of `pids`, and for files of `ids`.
pub fn look(homes: &Homes, pids: &HashSet<Pid>, ids: &Ids) -> Stores {
    let mut stores = Stores::default();
    let mut lock_files: Vec<(FileId, PathBuf)> = Vec::new();
    // An id becomes part of a path only where it is a name.
    let names = ids.iter().map(SessionId::as_str).take(FEW + 1);
    let names: Vec<&str> = names.filter(|id| records::id::parse(id).is_ok()).collect();
    for (name, home) in homes {
        let Some(agent) = AGENTS.iter().find(|agent| agent.name == *name) else {
            continue;
        };
        for registry in agent.registries {
            read_registry(registry, home, pids, &mut stores.rows);
        }
        for pattern in agent.locks {
            for path in files_of(home, pattern, ids, &names) {
                lock_files.extend(file_at(&path).ok().map(|(file, _)| (file, path)));
            }
        }
        let mut transcripts = agent.transcripts.iter();
        stores.has_files |=
            transcripts.any(|pattern| !files_of(home, pattern, ids, &names).is_empty());
    }
    if !lock_files.is_empty() {
        stores.has_files = true;
        let locks = file_locks().unwrap_or_default();
        stores.locks = locks
            .into_iter()
            .filter_map(|lock| {
                let (_, path) = lock_files.iter().find(|(file, _)| *file == lock.file)?;
                Some((lock, path.clone()))
            })
            .collect();
    }
    stores
}

/// The files of the sessions `ids`, which are `names` if they are few, below `home`. Folders are gone
/// through on one level at the most; agents that file by date are found by what they have open.
fn files_of(home: &Path, pattern: &str, ids: &Ids, names: &[&str]) -> Vec<PathBuf> {
    let has_any = |form: &str| form.contains('*') || form.contains("{pid}");
    if pattern.split('/').filter(|form| has_any(form)).count() > 1 {
        return Vec::new();
    }
    let mut paths = vec![home.to_owned()];
    for form in pattern.split('/') {
        let has_id = form.contains("{id}");
        paths = if has_any(form) || (has_id && ids.iter().len() > FEW) {
            let fits = |name: &[u8]| match has_id {
                true => id_in_path(form, name).is_some_and(|id| ids.has(id)),
                false => matches_path(form, name, b""),
            };
            let below = paths.iter().filter_map(|path| fs::read_dir(path).ok());
            let entries = below.flatten().flatten();
            entries
                .filter(|entry| fits(entry.file_name().as_bytes()))
                .map(|entry| entry.path())
                .collect()
        } else if has_id {
            let with = |path: &PathBuf, id: &&str| path.join(form.replace("{id}", id));
            let each = paths.iter();
            each.flat_map(|path| names.iter().map(move |id| with(path, id)))
                .collect()
        } else {
            paths.iter().map(|path| path.join(form)).collect()
        };
    }
    paths.retain(|path| path.symlink_metadata().is_ok());
    paths
}

fn read_registry(
    registry: &Registry,
    home: &Path,
    pids: &HashSet<Pid>,
    rows: &mut HashMap<Pid, Vec<RegistryRow>>,
) {
    let mut read = |path: &Path, pid: Option<Pid>| {
        let Some((table, owner)) = read_table(path) else {
            return;
        };
        let each = match &table {
            Value::Array(rows) => rows.as_slice(),
            row => std::slice::from_ref(row),
        };
        for row in each {
            let named = row.get("pid").and_then(Value::as_i64).and_then(Pid::new);
            let Some(pid) =
                named.filter(|named| pids.contains(named) && pid.is_none_or(|pid| pid == *named))
            else {
                continue;
            };
            rows.entry(pid)
                .or_default()
                .extend(parse_row(registry, row, path, owner));
        }
    };
    let Some((folder, file)) = registry
        .path
        .rsplit_once('/')
        .filter(|(_, file)| file.contains("{pid}"))
    else {
        read(&home.join(registry.path), None);
        return;
    };
    let folder = home.join(folder);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = file
            .split_once("{pid}")
            .and_then(|(before, after)| name.to_str()?.strip_prefix(before)?.strip_suffix(after));
        let pid = number.and_then(|number| number.parse::<Pid>().ok());
        if let Some(pid) = pid.filter(|pid| pids.contains(pid)) {
            read(&folder.join(name), Some(pid));
        }
    }
}

/// A table, and who owns it. What is no regular file, or not of a table's size, is none: in the
/// folder of a stranger anything may have that name. A FIFO keeps whoever opens it waiting, a device
/// may do something when it is opened, and a file of `/proc`, which has no size, may be root's and
/// hold what its process has written.
fn read_table(path: &Path) -> Option<(Value, u32)> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = agents::open_regular(path).ok()??;
    let about = file.metadata().ok()?;
    if !(1..=MAX_TABLE).contains(&about.len()) {
        return None;
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(MAX_TABLE).read_to_end(&mut bytes).ok()?;
    Some((serde_json::from_slice(&bytes).ok()?, about.uid()))
}

fn parse_row(registry: &Registry, row: &Value, path: &Path, owner: u32) -> Option<RegistryRow> {
    let id = row.get(registry.id_key)?.as_str()?;
    let start = match registry.start {
        RowStart::Ticks(key) => row.get(key).and_then(parse_ticks),
        RowStart::NotAfter(key) => row
            .get(key)
            .and_then(parse_time)
            .map(WrittenStart::NotAfter),
    };
    // `linux:MACHINE:pid:[INODE]`, or the number alone.
    let space = ["pidDomain", "pidNs"].iter().find_map(|key| {
        let text = match row.get(key)? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return None,
        };
        let digits = text
            .trim_end_matches(']')
            .rsplit(|c: char| !c.is_ascii_digit());
        digits.into_iter().next()?.parse().ok()
    });
    Some(RegistryRow {
        registered: Registered {
            id: id.as_bytes().to_vec(),
            path: path.as_os_str().as_bytes().to_vec(),
        },
        owner,
        start: start.unwrap_or(WrittenStart::Unknown),
        space,
    })
}

fn parse_ticks(value: &Value) -> Option<WrittenStart> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (boot, ticks) = match text.rsplit_once(':') {
        Some((boot, ticks)) => (Some(boot.to_ascii_lowercase()), ticks),
        None => (None, text.as_str()),
    };
    Some(WrittenStart::Ticks {
        boot,
        ticks: ticks.parse().ok()?,
    })
}

fn parse_time(value: &Value) -> Option<SystemTime> {
    match value {
        Value::String(text) => records::time::parse(text).ok(),
        Value::Number(number) => UNIX_EPOCH.checked_add(Duration::from_millis(number.as_u64()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_believed_about_its_owners_processes() {
        let table = [
            (0, Some(0), true),
            (0, Some(1000), true),
            (0, None, true),
            (1000, Some(1000), true),
            (1000, Some(0), false),
            (1000, Some(1001), false),
            (1000, None, false),
        ];
        for (owner, uid, believed) in table {
            assert_eq!(is_believed(owner, uid), believed, "{owner} {uid:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernels_is_no_table() {
        let path = Path::new("/proc/sys/kernel/pid_max");
        let number: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert!(number.is_number(), "its text is JSON");
        assert_eq!(read_table(path), None);
    }
}
