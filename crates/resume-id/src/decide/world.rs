//! Worlds to decide in, for tests.

use std::path::PathBuf;
use std::time::Duration;

use agents::{Agent, State, Table, Transcript};
use serde_json::value::RawValue;

use super::*;
use crate::decision::{Making, Words};
use crate::history::{Deaths, History};
use crate::told::Source;

pub(super) const A1: &str = "00000000-0000-4000-8000-0000000000a1";
pub(super) const NEW: &str = "11111111-1111-4111-8111-111111111111";

/// All that a decision depends on. It begins with an id of ours that has never been seen on disk.
pub(super) struct World {
    agent: Agent,
    session: Session,
    look: Look,
    claim: Claim,
    deaths: Deaths,
    on_missing: OnMissing,
    disk: Disk,
}

/// A holder, in short.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Husk,
    /// With an agent whose youngest child has lived this long.
    Own(u64),
    Foreign,
    Daemon,
    /// The caller, with an agent in it or not.
    Itself(bool),
    /// The caller, which has the id in its arguments and has lived this long.
    Script(u64),
    /// Ours, of which nobody knows how long it has lived.
    OwnOfUnknownAge,
}

impl World {
    pub(super) fn of(agent: &str) -> World {
        let agent = Table::built_in().unwrap().get(agent).unwrap().clone();
        let source = match agent.takes_ids() {
            true => Source::Assigned,
            false => Source::Discovered,
        };
        let id = match agent.name.as_str() {
            "opencode" => "ses_0123456789abABCDEFGHIJKLMN",
            "hermes" => "20261129_142621_0a1b2c",
            _ => A1,
        };
        World {
            agent,
            session: Session {
                id: Some(id.to_owned()),
                source,
                verified: false,
                minted_by: None,
                cwd: "/w".to_owned(),
            },
            look: Look::NotConsulted,
            claim: Claim::Free,
            deaths: Deaths::default(),
            on_missing: OnMissing::Mint,
            disk: Disk::Seen(Vec::new()),
        }
    }

    pub(super) fn claude() -> World {
        World::of("claude")
    }

    pub(super) fn without_id(mut self) -> World {
        self.session.id = None;
        self
    }

    pub(super) fn source(mut self, source: Source) -> World {
        self.session.source = source;
        self
    }

    pub(super) fn verified(mut self) -> World {
        self.session.verified = true;
        self
    }

    pub(super) fn minted_by(mut self, who: &str) -> World {
        self.session.minted_by = Some(who.to_owned());
        self
    }

    pub(super) fn stop_if_missing(mut self) -> World {
        self.on_missing = OnMissing::Stop;
        self
    }

    pub(super) fn claim(mut self, claim: Claim) -> World {
        self.claim = claim;
        self
    }

    pub(super) fn claimed(self) -> World {
        self.claim(Claim::Taken("process 9".to_owned()))
    }

    pub(super) fn held_by(mut self, holders: &[Who]) -> World {
        let holders: Vec<_> = (100..)
            .zip(holders)
            .map(|(pid, who)| who.holder(pid))
            .collect();
        let verdict = "as tested".to_owned();
        self.look = Look::Good { verdict, holders };
        self
    }

    pub(super) fn nobody_looked(mut self) -> World {
        self.look = Look::Bad("nobody looked".to_owned());
        self
    }

    /// Exits in their order: code, milliseconds of life, on purpose or not.
    pub(super) fn exits(mut self, exits: &[(i32, u64, bool)]) -> World {
        let id = self.session.id.clone().unwrap_or_default();
        let mut history = History::default();
        for (code, uptime, deliberate) in exits {
            let line = format!(
                r#"{{"session_id":"{id}","code":{code},"uptime_ms":{uptime},"deliberate":{deliberate},"log_tail":"boom"}}"#
            );
            let record = records::Record::parse(line.as_bytes()).unwrap();
            history.hear(&record, &id, &self.agent.shape);
        }
        self.deaths = history.judge(Duration::from_secs(8));
        self
    }

    /// `n` deaths within a second.
    pub(super) fn crashes(self, n: usize) -> World {
        self.exits(&vec![(1, 900, false); n])
    }

    pub(super) fn transcript(mut self, state: State, ours: Option<bool>) -> World {
        let one = Transcript {
            path: PathBuf::from("/store/it"),
            id: self.session.id.clone().unwrap_or_default(),
            cwd: Some("/elsewhere".to_owned()),
            cwd_matches: ours,
            state,
            turns: Some(if state == State::Conversational {
                12
            } else {
                0
            }),
            damaged: false,
            modified: None,
        };
        if let Disk::Seen(found) = &mut self.disk {
            found.push(one);
        }
        self
    }

    pub(super) fn conversation(self) -> World {
        self.transcript(State::Conversational, Some(true))
    }

    pub(super) fn damaged(mut self) -> World {
        if let Disk::Seen(found) = &mut self.disk {
            found.iter_mut().for_each(|one| one.damaged = true);
        }
        self
    }

    pub(super) fn unreadable(mut self) -> World {
        self.disk = Disk::Unreadable("no".to_owned());
        self
    }

    /// Nobody knows where the agent keeps its sessions.
    pub(super) fn untold(mut self) -> World {
        self.agent.transcripts = None;
        self.disk = Disk::Untold;
        self
    }

    /// The decision, as the record says it.
    pub(super) fn decide(&self) -> Said {
        let told = Told {
            agent: &self.agent,
            session: &self.session,
            look: &self.look,
            claim: &self.claim,
            deaths: &self.deaths,
            limits: Limits {
                min_uptime: Duration::from_secs(8),
                max_failures: 3,
                on_missing: self.on_missing,
            },
        };
        let choice = decide(&told, &self.disk);
        let words = Words {
            fresh: vec!["PROMPT".to_owned()],
            resume: vec!["NUDGE".to_owned()],
            both: Vec::new(),
        };
        let making = Making {
            told: &told,
            disk: &self.disk,
            root: std::path::Path::new("/store"),
            new_id: NEW,
            words: &words,
            unset: &[],
            row: None,
        };
        let decision = making.decision(&choice, None, records::time::now());
        Said(serde_json::to_value(&decision).unwrap())
    }

    /// The decision in short: its action, what follows, how many are stale.
    pub(super) fn says(&self) -> String {
        self.decide().short()
    }
}

impl Who {
    fn holder(self, pid: u64) -> Holder {
        let (class, active, age) = match self {
            Who::Husk => (Class::Own, false, Some(60_000)),
            Who::Own(age) => (Class::Own, true, Some(age)),
            Who::OwnOfUnknownAge => (Class::Own, true, None),
            Who::Foreign | Who::Daemon => (Class::Foreign, true, Some(60_000)),
            Who::Itself(active) => (Class::Itself, active, Some(60_000)),
            Who::Script(age) => (Class::Itself, true, Some(age)),
        };
        Holder {
            pid,
            root: pid,
            class,
            shared: matches!(self, Who::Daemon),
            active,
            settled_for: age.map(Duration::from_millis),
            flag: matches!(self, Who::Script(_)).then(|| "--session-id".to_owned()),
            record: RawValue::from_string(format!(r#"{{"pid":{pid}}}"#)).unwrap(),
        }
    }
}

/// A decision's record.
pub(super) struct Said(serde_json::Value);

impl Said {
    pub(super) fn key(&self, key: &str) -> &serde_json::Value {
        &self.0[key]
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or("null")
    }

    pub(super) fn argv(&self) -> String {
        words(&self.0["argv"])
    }

    pub(super) fn fallback(&self) -> String {
        words(&self.0["fallback"]["argv"])
    }

    pub(super) fn short(&self) -> String {
        let mut short = self.text("action").to_owned();
        if let Some(then) = self.0["then"].as_str() {
            short.push_str(" then ");
            short.push_str(then);
        }
        let stale = self.0["stale"].as_array().unwrap().len();
        if stale > 0 {
            short.push_str(&format!(", {stale} stale"));
        }
        short
    }
}

fn words(argv: &serde_json::Value) -> String {
    let words = argv.as_array().into_iter().flatten();
    let words: Vec<_> = words.filter_map(|word| word.as_str()).collect();
    words.join(" ")
}

impl Said {
    pub(super) fn keys(&self) -> Vec<String> {
        let keys = self.0.as_object().into_iter().flatten();
        keys.map(|(key, _)| key.clone()).collect()
    }
}
