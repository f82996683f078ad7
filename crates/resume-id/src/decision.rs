//! The decision as a record, and the command lines in it.

use agents::{Agent, Mint, State, Transcript};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::decide::{Choice, Disk, Launch, OnMissing, Told, anew};
use crate::history::Exit;
use crate::holders::Look;
use crate::told::{BREAKER, Source};

/// A `decision` record.
#[derive(Debug, Serialize)]
pub struct Decision<'a> {
    v: u8,
    r#type: &'static str,
    action: &'static str,
    then: Option<&'static str>,
    session_id: Option<String>,
    previous_session_id: Option<String>,
    minted_by: Option<String>,
    agent: &'a str,
    cwd: &'a str,
    session_id_source: &'static str,
    session_id_verified: bool,
    argv: Option<Vec<String>>,
    env_unset: &'a [String],
    may_block: bool,
    artifact: Option<Artifact>,
    holders: &'a str,
    holder: Option<&'a RawValue>,
    stale: Vec<&'a RawValue>,
    fallback: Option<Fallback>,
    breaker: Breaker<'a>,
    claim: Option<ClaimNote>,
    reason: &'a str,
    row: Option<Others<'a>>,
    lossy: bool,
    argv_cut: bool,
    at: String,
}

/// The keys of a decision.
#[rustfmt::skip]
pub const KEYS: &[&str] = &[
    "v", "type", "action", "then", "session_id", "previous_session_id", "minted_by", "agent", "cwd",
    "session_id_source", "session_id_verified", "argv", "env_unset", "may_block", "artifact",
    "holders", "holder", "stale", "fallback", "breaker", "claim", "reason", "row", "lossy",
    "argv_cut", "at",
];

/// The transcript that the decision is about.
#[derive(Debug, Serialize)]
struct Artifact {
    path: Option<String>,
    state: &'static str,
    cwd_matches: Option<bool>,
    turns: Option<u64>,
    damaged: bool,
    root: String,
}

/// What is launched instead where the last look shows that `argv` can no longer work.
#[derive(Debug, Serialize)]
struct Fallback {
    action: &'static str,
    session_id: Option<String>,
    argv: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Breaker<'a> {
    failures: u64,
    limit: u64,
    last_exit: Option<&'a Exit>,
}

/// The claim that goes with a launch.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimNote {
    /// The claim's file.
    pub file: String,
    /// The identity of its claimant.
    pub claimant: String,
}

#[derive(Debug)]
struct Others<'a>(&'a [(String, Box<RawValue>)]);

impl Serialize for Others<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// What a decision is made of beside the choice itself.
#[derive(Debug)]
pub struct Making<'a> {
    /// What was told.
    pub told: &'a Told<'a>,
    /// What is on disk.
    pub disk: &'a Disk,
    /// The root directory of the agent's files.
    pub root: &'a std::path::Path,
    /// The id that is new if one is needed.
    pub new_id: &'a str,
    /// The words that the caller has for the command lines.
    pub words: &'a Words,
    /// Variables that must go.
    pub unset: &'a [String],
    /// The user's own keys; `None` without a row.
    pub row: Option<&'a [(String, Box<RawValue>)]>,
}

/// The words that the caller has for the command lines.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// For a beginning: the full prompt.
    pub fresh: Vec<String>,
    /// For a continuation: the nudge.
    pub resume: Vec<String>,
    /// For both.
    pub both: Vec<String>,
}

/// A new id for this agent.
pub fn new_id(agent: &Agent) -> String {
    match agent.mint {
        Mint::V4 => Uuid::new_v4(),
        Mint::V7 => Uuid::now_v7(),
    }
    .to_string()
}

impl<'a> Making<'a> {
    /// The record of `choice`, of the time `at`.
    pub fn decision(
        &'a self,
        choice: &'a Choice<'a>,
        claim: Option<ClaimNote>,
        at: String,
    ) -> Decision<'a> {
        let told = self.told;
        let launch = choice.action.launch();
        let is_new = matches!(launch, Some(Launch::Mint | Launch::Spawn));
        let old_id = told.session.id.clone();
        let (path, lossy) = self.artifact_path();
        Decision {
            v: 1,
            r#type: "decision",
            action: choice.action.word(),
            then: match choice.action {
                crate::decide::Action::Reclaim(then) => Some(then.word()),
                _ => None,
            },
            session_id: match launch {
                Some(launch) => self.session_id(launch),
                None => old_id.clone(),
            },
            previous_session_id: old_id.filter(|_| is_new),
            minted_by: self.minted_by(choice, is_new),
            agent: &told.agent.name,
            cwd: &told.session.cwd,
            session_id_source: match launch {
                Some(Launch::Mint) => Source::Assigned.word(),
                Some(Launch::Spawn) => Source::Pending.word(),
                _ => told.session.source.word(),
            },
            session_id_verified: choice.verified && !is_new,
            argv: launch.map(|launch| self.argv(launch)),
            env_unset: self.unset,
            may_block: choice.may_block,
            artifact: told.session.id.as_ref().map(|_| self.artifact(path)),
            holders: match (told.look, &told.session.id) {
                (Look::Good { verdict, .. }, Some(_)) => verdict,
                (Look::Bad(_), Some(_)) => "unknown",
                _ => "not_consulted",
            },
            holder: choice.holder.map(|holder| holder.record.as_ref()),
            stale: choice.stale.iter().map(|one| one.record.as_ref()).collect(),
            fallback: launch.and_then(|launch| self.fallback(launch)),
            breaker: Breaker {
                failures: told.deaths.failures,
                limit: told.limits.max_failures,
                last_exit: told.deaths.last.as_ref(),
            },
            claim,
            reason: &choice.reason,
            row: self.row.map(Others),
            lossy,
            argv_cut: false,
            at,
        }
    }

    /// Who made the session's id. What the breaker has begun without an id stays its doing until
    /// there is one.
    fn minted_by(&self, choice: &Choice<'_>, is_new: bool) -> Option<String> {
        if choice.by_breaker && is_new {
            return Some(BREAKER.to_owned());
        }
        let session = &self.told.session;
        let is_left = is_new && session.id.is_some();
        session.minted_by.clone().filter(|_| !is_left)
    }

    /// The id of the session that is launched. A transcript's own spelling is the one that its
    /// agent finds it by.
    pub fn session_id(&self, launch: Launch) -> Option<String> {
        match launch {
            Launch::Resume => {
                let stored = self.disk.decisive().map(|one| one.id.clone());
                stored.or_else(|| self.told.session.id.clone())
            }
            Launch::Assign => self.told.session.id.clone(),
            Launch::Mint => Some(self.new_id.to_owned()),
            Launch::Spawn => None,
        }
    }

    fn argv(&self, launch: Launch) -> Vec<String> {
        let agent = self.told.agent;
        let id = self.session_id(launch).unwrap_or_default();
        let (command, words) = match launch {
            Launch::Resume => (agent.resume_argv(&id), &self.words.resume),
            Launch::Assign | Launch::Mint => (agent.assign_argv(&id), &self.words.fresh),
            Launch::Spawn => (agent.spawn_argv(), &self.words.fresh),
        };
        let mut argv = Vec::new();
        if !self.unset.is_empty() {
            argv.push("env".to_owned());
            argv.extend(
                self.unset
                    .iter()
                    .flat_map(|name| ["-u".to_owned(), name.clone()]),
            );
        }
        argv.extend(command);
        argv.extend(words.iter().cloned());
        argv.extend(self.words.both.iter().cloned());
        argv
    }

    /// A transcript can go between the decision and the launch, and one can come.
    fn fallback(&self, launch: Launch) -> Option<Fallback> {
        let stop = self.told.limits.on_missing == OnMissing::Stop;
        let instead = match launch {
            Launch::Resume if !stop => anew(self.told.agent),
            Launch::Assign => Launch::Resume,
            _ => return None,
        };
        Some(Fallback {
            action: instead.word(),
            session_id: self.session_id(instead),
            argv: self.argv(instead),
        })
    }

    fn artifact_path(&self) -> (Option<String>, bool) {
        let path = self.disk.decisive().map(|one| one.path.as_os_str());
        match path {
            Some(path) => {
                let (text, lossy) = records::text::lossy(path.as_encoded_bytes());
                (Some(text), lossy)
            }
            None => (None, false),
        }
    }

    fn artifact(&self, path: Option<String>) -> Artifact {
        let one = self.disk.decisive();
        Artifact {
            path,
            state: match (self.disk, one) {
                (Disk::Unreadable(_) | Disk::Untold, _) => "unknown",
                (_, None) => "absent",
                (_, Some(one)) => state_word(one),
            },
            cwd_matches: one.and_then(|one| one.cwd_matches),
            turns: one.and_then(|one| one.turns),
            damaged: one.is_some_and(|one| one.damaged),
            root: self.root.display().to_string(),
        }
    }
}

/// A transcript's state, as records write it.
pub fn state_word(one: &Transcript) -> &'static str {
    match one.state {
        State::Conversational => "conversational",
        State::Unusable => "unusable",
    }
}
