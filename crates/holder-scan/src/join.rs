//! `--registry`: the caller's own rows, compared with what lives.

use std::collections::{HashMap, HashSet};

use process::{Here, Identity, Pid, Sight, Standing};
use records::Record;
use serde::Serialize;

use crate::claimed::{self, Member};
use crate::claims::Claim;
use crate::id;
use crate::snapshot::Snapshot;
use crate::tree;

/// What a row says of a process or a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    session: Option<String>,
    process: Option<Process>,
    host: Option<String>,
}

/// How a row names a process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Process {
    Ident(Box<Identity>),
    Pid(Pid),
    /// Something stands there, and it names none.
    Malformed,
}

/// What a row is worth: its `holding`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holding {
    state: State,
    pids: Vec<Pid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Alive,
    Dead,
    Recycled,
    Unknown,
}

impl Named {
    /// What `record` names; `None` if it is no row.
    pub fn of(record: &Record<'_>) -> Option<Named> {
        let session = record.str("session_id").filter(|id| !id.is_empty());
        let process = if record.has("ident") {
            let word = record.str("ident");
            let ident = word.and_then(|word| word.parse::<Identity>().ok());
            Some(ident.map_or(Process::Malformed, |ident| Process::Ident(Box::new(ident))))
        } else if record.has("pid") {
            let text = record.get("pid").map(|pid| pid.get());
            let pid = text.and_then(|text| text.parse::<Pid>().ok());
            Some(pid.map_or(Process::Malformed, Process::Pid))
        } else {
            None
        };
        if session.is_none() && process.is_none() {
            return None;
        }
        Some(Named {
            session: session.map(|id| id.into_owned()),
            process,
            host: record.str("host").map(|host| host.into_owned()),
        })
    }
}

/// The live table by what rows may name.
pub struct Join<'a> {
    here: &'a Here,
    members: Vec<Member<'a>>,
    sessions: HashMap<Vec<u8>, Vec<Pid>>,
    complete: bool,
    known_pids: HashSet<Pid>,
    known_sessions: HashSet<Vec<u8>>,
}

/// A session id as a key: UUIDs are the same in either case.
fn key(session: &[u8]) -> Vec<u8> {
    if id::is_uuid(session) {
        session.to_ascii_lowercase()
    } else {
        session.to_vec()
    }
}

impl<'a> Join<'a> {
    /// Joins with `snapshot`, taken here in a look that was `complete` or not.
    pub fn new(here: &'a Here, snapshot: &'a Snapshot, complete: bool) -> Join<'a> {
        let mut sessions: HashMap<Vec<u8>, Vec<Pid>> = HashMap::new();
        let members = claimed::members(snapshot);
        for member in &members {
            let is_family = snapshot.family.contains(&member.row.pid);
            let is_above = snapshot.ancestors.contains(&member.row.pid);
            // An agent that the caller runs in holds its session; what only starts one may be the
            // caller's own command line.
            let counts =
                |claim: &&Claim| !is_family || (is_above && !claim.evidence.by.is_carried());
            for claim in member.current().filter(counts) {
                let pids = sessions.entry(key(&claim.id)).or_default();
                if pids.last() != Some(&member.row.pid) {
                    pids.push(member.row.pid);
                }
            }
        }
        Join {
            here,
            members,
            sessions,
            complete,
            known_pids: HashSet::new(),
            known_sessions: HashSet::new(),
        }
    }

    /// What became of what a row names.
    pub fn holding(&mut self, row: &Named) -> Holding {
        let session = row.session.as_ref().map(|session| key(session.as_bytes()));
        let holders = session
            .as_ref()
            .and_then(|session| self.sessions.get(session));
        let mut pids = holders.cloned().unwrap_or_default();
        let state = match &row.process {
            Some(process) => {
                let (state, pid) = self.state_of(process, row.host.as_deref());
                pids.extend(pid);
                self.known_pids.extend(pid);
                state
            }
            None => {
                self.known_sessions.extend(session);
                match (pids.is_empty(), self.complete) {
                    (false, _) => State::Alive,
                    (true, true) => State::Dead,
                    (true, false) => State::Unknown,
                }
            }
        };
        pids.sort_unstable();
        pids.dedup();
        Holding { state, pids }
    }

    fn state_of(&self, process: &Process, host: Option<&str>) -> (State, Option<Pid>) {
        match process {
            Process::Ident(ident) => match self.here.find(ident, host) {
                Standing::Same(_) => (State::Alive, Some(ident.pid())),
                Standing::Recycled(_) => (State::Recycled, None),
                Standing::Gone { .. } => (State::Dead, None),
                Standing::Unknown(_) => (State::Unknown, None),
            },
            Process::Pid(pid) => match self.here.look(*pid) {
                Sight::Alive(_) => (State::Alive, Some(*pid)),
                Sight::Zombie(_) | Sight::Absent => (State::Dead, None),
                Sight::Unknown(_) => (State::Unknown, None),
            },
            Process::Malformed => (State::Unknown, None),
        }
    }

    /// Whether some row knows the tree below `root`: one names a process of it, or one that names
    /// no process names a session that it holds.
    pub fn knows(&self, root: usize) -> bool {
        let members = &self.members;
        std::iter::once(root)
            .chain(tree::below(members, root))
            .any(|at| {
                let member = &members[at];
                let mut held = member.current().map(|claim| key(&claim.id));
                self.known_pids.contains(&member.row.pid)
                    || held.any(|session| self.known_sessions.contains(&session))
            })
    }
}
