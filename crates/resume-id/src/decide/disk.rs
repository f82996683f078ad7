//! The rows that are about transcripts alone.

use agents::{Ids, State, Transcript};

use super::{Action, Choice, Launch, OnMissing, Told, anew};
use crate::holders::Look;
use crate::told::Source;

/// The transcripts of the session.
#[derive(Clone, Debug)]
pub enum Disk {
    /// What there is; nothing, where there is no id to look for.
    Seen(Vec<Transcript>),
    /// They could not be looked at; the text says why.
    Unreadable(String),
    /// The agent's entry does not say where they are.
    Untold,
}

/// Rows 9 to 14, whoever holds the session.
pub(super) fn judge<'a>(told: &Told<'a>, disk: &'a Disk) -> Choice<'a> {
    if told.session.id.is_none() {
        return without_id(told);
    }
    let found = match disk {
        Disk::Seen(found) => found,
        Disk::Unreadable(why) => {
            let reason = format!("the agent's sessions cannot be read: {why}");
            return told.choice(Action::Unknown, reason);
        }
        Disk::Untold => return on_trust(told),
    };
    match (ours(found), &found[..]) {
        (Some(one), _) => of_this_directory(told, one),
        (None, []) => absent(told),
        (None, [one]) => of_another(told, one),
        (None, several) => of_several(told, several),
    }
}

/// The transcript of this directory. Of several under one id, which only a copy can have made, one
/// that can be resumed.
fn ours(found: &[Transcript]) -> Option<&Transcript> {
    let ours = found.iter().filter(|one| one.cwd_matches != Some(false));
    ours.max_by_key(|one| one.state == State::Conversational)
}

impl Disk {
    /// The transcript that the decision is about, where there is one.
    pub fn decisive(&self) -> Option<&Transcript> {
        match self {
            Disk::Seen(found) => ours(found).or(found.first()),
            Disk::Unreadable(_) | Disk::Untold => None,
        }
    }
}

/// Rows 11 and 12.
fn without_id<'a>(told: &Told<'a>) -> Choice<'a> {
    let name = &told.agent.name;
    let why = match anew(told.agent) {
        Launch::Spawn => format!("there is no id yet, and {name} makes its own: a clean start"),
        _ => format!("there is no id yet, and {name} takes one: a new one is made"),
    };
    let mut choice = told.choice(Action::Launch(anew(told.agent)), why);
    choice.verified = false;
    choice
}

/// Row 9, and of row 13 what is unusable.
fn of_this_directory<'a>(told: &Told<'a>, one: &Transcript) -> Choice<'a> {
    if one.state == State::Unusable {
        // Where one flag opens or creates, metadata is in nobody's way.
        if told.agent.ids == Ids::OpenOrCreate && one.turns == Some(0) {
            return absent(told);
        }
        let why = "its transcript is empty or has no message in it, so the agent would refuse it";
        return lost(told, why);
    }
    if told.agent.resume.is_empty() {
        return lost(told, "this agent cannot continue a session");
    }
    let turns = match one.turns {
        Some(1) => " of 1 message".to_owned(),
        Some(turns) => format!(" of {turns} messages"),
        None => String::new(),
    };
    let damaged = match one.damaged {
        true => " (a line of its transcript is damaged)",
        false => "",
    };
    let reason = format!("the conversation{turns} is there{damaged}");
    let mut choice = told.choice(Action::Launch(Launch::Resume), reason);
    choice.verified = true;
    let blocks = &told.agent.blocks;
    let unseen = matches!(told.look, Look::NotConsulted);
    if let Some(what) = blocks.held.as_deref().filter(|_| unseen) {
        choice.may_block = true;
        let note = format!("; nobody looked for holders, so it may show {what}");
        choice.reason.push_str(&note);
    }
    let unsaid = one.cwd_matches.is_none();
    if let Some(what) = blocks.other_cwd.as_deref().filter(|_| unsaid) {
        choice.may_block = true;
        let note = format!("; it does not say of which directory it is, so it may show {what}");
        choice.reason.push_str(&note);
    }
    choice
}

/// The same for an agent of which nobody can look for transcripts: an id that it has been given, or
/// has made, counts for a conversation. If it is none, the breaker finds out.
fn on_trust<'a>(told: &Told<'a>) -> Choice<'a> {
    let never_taken = told.agent.takes_ids() && told.session.source == Source::Pending;
    if told.agent.resume.is_empty() || never_taken {
        return absent(told);
    }
    let name = &told.agent.name;
    let why = format!("where {name} keeps its sessions is not told, so the id is trusted");
    told.choice(Action::Launch(Launch::Resume), why)
}

/// Row 10, and of row 13 what is absent.
fn absent<'a>(told: &Told<'a>) -> Choice<'a> {
    let session = told.session;
    let given = session.source != Source::Discovered || told.agent.ids == Ids::OpenOrCreate;
    if told.agent.takes_ids() && given && !session.verified {
        let why = "it was stopped before its first message, so it begins under the same id";
        return told.choice(Action::Launch(Launch::Assign), why);
    }
    let why = match session.verified {
        true => "its transcript was there once and is gone",
        false => "the agent has no transcript of it",
    };
    lost(told, why)
}

/// Row 13: under another directory.
fn of_another<'a>(told: &Told<'a>, one: &Transcript) -> Choice<'a> {
    let place = one
        .cwd
        .clone()
        .unwrap_or_else(|| one.path.display().to_string());
    lost(
        told,
        &format!("its transcript is one of another directory ({place})"),
    )
}

/// Row 14.
fn of_several<'a>(told: &Told<'a>, several: &[Transcript]) -> Choice<'a> {
    let paths: Vec<_> = several
        .iter()
        .map(|one| one.path.display().to_string())
        .collect();
    let reason = format!(
        "its id lies under {} other directories, and which is meant cannot be told: {}",
        several.len(),
        paths.join(", ")
    );
    told.choice(Action::Unknown, reason)
}

/// The end of row 13.
fn lost<'a>(told: &Told<'a>, why: &str) -> Choice<'a> {
    match told.limits.on_missing {
        OnMissing::Stop => told.choice(Action::GiveUp, format!("{why}; nothing is launched")),
        OnMissing::Mint => {
            let mut choice = told.choice(
                Action::Launch(anew(told.agent)),
                format!("{why}; a new session is begun"),
            );
            choice.verified = false;
            choice
        }
    }
}
