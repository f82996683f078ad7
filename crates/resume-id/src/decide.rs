//! The decision: a pure function of what was told and what is on disk.

mod disk;

use std::time::Duration;

use agents::Agent;

use crate::history::Deaths;
use crate::holders::{Class, Holder, Look};
use crate::told::{BREAKER, Session};
pub use disk::Disk;

/// Everything that the decision depends on, beside the transcripts.
#[derive(Debug)]
pub struct Told<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The session.
    pub session: &'a Session,
    /// Who holds it.
    pub look: &'a Look,
    /// Whether another launch has claimed it.
    pub claim: &'a Claim,
    /// How its agents have died.
    pub deaths: &'a Deaths,
    /// The numbers that the caller may change.
    pub limits: Limits,
}

/// The numbers and choices that the caller may change.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// An agent that has lived this long is no crash loop.
    pub min_uptime: Duration,
    /// So many deaths in a row before that time trip the breaker.
    pub max_failures: u64,
    /// What to do where the conversation is lost.
    pub on_missing: OnMissing,
}

/// What to do where the conversation is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnMissing {
    /// Begin a new one.
    #[default]
    Mint,
    /// Launch nothing.
    Stop,
}

/// What is known of claims on the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// None, or one of ours, or one whose claimant is gone.
    Free,
    /// Another launch has claimed it, and its claimant lives.
    Taken(String),
    /// Another launch has claimed it, and it cannot be told whether its claimant lives.
    Unclear(String),
}

/// A way of launching the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// Continue the session.
    Resume,
    /// Begin it under the id that it has.
    Assign,
    /// Begin one under a new id.
    Mint,
    /// Begin one without an id.
    Spawn,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Launch.
    Launch(Launch),
    /// End what is stale, then launch.
    Reclaim(Launch),
    /// Nothing: it runs already, or is being launched.
    AlreadyRunning,
    /// Nothing: it has failed too often, or the conversation is lost.
    GiveUp,
    /// It cannot be told.
    Unknown,
}

/// A decision, before it is written down.
#[derive(Debug)]
pub struct Choice<'a> {
    /// What is to be done.
    pub action: Action,
    /// Why, for people.
    pub reason: String,
    /// The holders that are in the way and ours.
    pub stale: Vec<&'a Holder>,
    /// The holder because of which nothing is launched.
    pub holder: Option<&'a Holder>,
    /// Whether the transcript is known to be one that can be resumed.
    pub verified: bool,
    /// Whether the breaker has tripped, and a new id is its doing.
    pub by_breaker: bool,
    /// Whether the resume may wait for an answer.
    pub may_block: bool,
}

impl Launch {
    /// As records write it.
    pub fn word(self) -> &'static str {
        match self {
            Launch::Resume => "resume",
            Launch::Assign => "assign",
            Launch::Mint => "mint",
            Launch::Spawn => "spawn",
        }
    }
}

impl Action {
    /// As records write it.
    pub fn word(self) -> &'static str {
        match self {
            Action::Launch(launch) => launch.word(),
            Action::Reclaim(_) => "reclaim",
            Action::AlreadyRunning => "already_running",
            Action::GiveUp => "give_up",
            Action::Unknown => "unknown",
        }
    }

    /// The launch in it, if there is one.
    pub fn launch(self) -> Option<Launch> {
        match self {
            Action::Launch(launch) | Action::Reclaim(launch) => Some(launch),
            _ => None,
        }
    }
}

/// A new beginning, in the way that this agent has.
pub fn anew(agent: &Agent) -> Launch {
    if agent.takes_ids() {
        Launch::Mint
    } else {
        Launch::Spawn
    }
}

/// Decides. The rows are tried in their order, and the first that applies decides; what is wrong
/// usage has been refused before.
pub fn decide<'a>(told: &Told<'a>, disk: &'a Disk) -> Choice<'a> {
    let rows = [
        no_good_look,
        held_by_a_stranger,
        claimed_by_another,
        already_running,
        crash_loop,
        unsettled,
    ];
    let held = rows.iter().find_map(|row| row(told, disk));
    held.unwrap_or_else(|| reclaim(told, disk))
}

impl<'a> Told<'a> {
    fn holders(&self) -> &'a [Holder] {
        match self.look {
            Look::Good { holders, .. } => holders,
            Look::NotConsulted | Look::Bad(_) => &[],
        }
    }

    fn foreign(&self) -> impl Iterator<Item = &'a Holder> {
        let all = self.holders().iter();
        all.filter(|holder| holder.class == Class::Foreign)
    }

    fn own(&self) -> impl Iterator<Item = &'a Holder> {
        let all = self.holders().iter();
        all.filter(|holder| holder.class == Class::Own)
    }

    /// What is left of ours, its agent dead.
    fn husks(&self) -> Vec<&'a Holder> {
        self.own().filter(|holder| !holder.active).collect()
    }

    /// Ours, and the caller itself, with an agent in it. (The caller's own script may name the id
    /// without being an agent, and is no obstacle then.)
    fn active(&self) -> impl Iterator<Item = &'a Holder> {
        let all = self.holders().iter();
        all.filter(|holder| holder.class != Class::Foreign && holder.active)
    }

    /// A daemon of this agent's that lets a further client continue the session.
    fn only_a_shared_daemon(&self) -> bool {
        let mut foreign = self.foreign().peekable();
        self.agent.daemon_shares && foreign.peek().is_some() && foreign.all(|one| one.shared)
    }

    fn is_settled(&self, holder: &Holder) -> bool {
        holder
            .settled_for
            .is_some_and(|age| age >= self.limits.min_uptime)
    }

    fn choice(&self, action: Action, reason: impl Into<String>) -> Choice<'a> {
        Choice {
            action,
            reason: reason.into(),
            stale: Vec::new(),
            holder: None,
            verified: self.session.verified,
            by_breaker: false,
            may_block: false,
        }
    }
}

/// Row 2. Without an id there is nothing that anybody could hold.
fn no_good_look<'a>(told: &Told<'a>, _: &'a Disk) -> Option<Choice<'a>> {
    match (told.look, &told.session.id) {
        (Look::Bad(why), Some(_)) => Some(told.choice(Action::Unknown, why)),
        _ => None,
    }
}

/// Row 3.
fn held_by_a_stranger<'a>(told: &Told<'a>, disk: &'a Disk) -> Option<Choice<'a>> {
    let stranger = told
        .foreign()
        .find(|holder| !holder.shared)
        .or(told.foreign().next())?;
    if told.only_a_shared_daemon() {
        return held_by_a_daemon(told, disk, stranger);
    }
    let who = format!(
        "process {} holds the session and is not ours, so it is left alone",
        stranger.pid
    );
    let mut choice = told.choice(
        Action::Launch(anew(told.agent)),
        format!("{who}; a new session is begun"),
    );
    choice.stale = told.husks();
    choice.verified = false;
    Some(choice)
}

/// The daemon holds the session for its clients, and a new one may continue it. Where an agent of
/// ours is such a client already, or another launch is about to be one, the rows below decide; so
/// they do where there is no conversation to continue.
fn held_by_a_daemon<'a>(told: &Told<'a>, disk: &'a Disk, daemon: &'a Holder) -> Option<Choice<'a>> {
    if told.active().next().is_some() || *told.claim != Claim::Free {
        return None;
    }
    let mut choice = disk::judge(told, disk);
    if choice.action != Action::Launch(Launch::Resume) {
        return None;
    }
    choice.reason = format!(
        "the shared daemon {} holds the session and takes further clients; {}",
        daemon.pid, choice.reason
    );
    choice.stale = told.husks();
    Some(choice)
}

/// Row 4.
fn claimed_by_another<'a>(told: &Told<'a>, _: &'a Disk) -> Option<Choice<'a>> {
    match told.claim {
        Claim::Free => None,
        Claim::Taken(who) => Some(told.choice(
            Action::AlreadyRunning,
            format!("{who} has claimed the session and lives: it runs, or is about to"),
        )),
        Claim::Unclear(why) => Some(told.choice(Action::Unknown, why)),
    }
}

/// Row 5.
fn already_running<'a>(told: &Told<'a>, _: &'a Disk) -> Option<Choice<'a>> {
    let holder = told.active().find(|holder| told.is_settled(holder))?;
    let who = match holder.class {
        Class::Itself => format!("the caller runs inside of it{}", if_a_script(holder)),
        _ => "it is ours".to_owned(),
    };
    let mut choice = told.choice(
        Action::AlreadyRunning,
        format!(
            "process {} holds the session and is well; {who}",
            holder.pid
        ),
    );
    choice.holder = Some(holder);
    Some(choice)
}

/// Row 6.
fn crash_loop<'a>(told: &Told<'a>, _: &'a Disk) -> Option<Choice<'a>> {
    let (deaths, limits) = (told.deaths, told.limits);
    if told.session.id.is_none() || deaths.failures < limits.max_failures {
        return None;
    }
    let mut what = format!(
        "the last {} launches of this session lived less than {} each",
        deaths.failures,
        seconds(limits.min_uptime)
    );
    if let Some(last) = &deaths.last {
        what.push_str(&format!(" (the newest: {})", last.describe()));
    }
    if told.session.minted_by.as_deref() == Some(BREAKER) {
        what.push_str("; a new id has been tried already, so somebody has to look");
        if let Some(tail) = deaths.last.as_ref().and_then(|last| last.log_tail()) {
            what.push_str(&format!("; its log ends: {}", tail.trim_end()));
        }
        let mut choice = told.choice(Action::GiveUp, what);
        choice.by_breaker = true;
        return Some(choice);
    }
    what.push_str("; it is begun anew, once");
    let mut choice = told.choice(Action::Launch(anew(told.agent)), what);
    choice.stale = told.own().collect();
    choice.verified = false;
    choice.by_breaker = true;
    Some(choice)
}

/// Row 7.
fn unsettled<'a>(told: &Told<'a>, _: &'a Disk) -> Option<Choice<'a>> {
    let holder = told.active().next()?;
    let mut why = "unsettled".to_owned();
    let script = if_a_script(holder);
    if !script.is_empty() {
        let pid = holder.pid;
        why.push_str(&format!(
            ": the caller runs inside of process {pid}{script}"
        ));
    }
    let mut choice = told.choice(Action::Unknown, why);
    choice.holder = Some(holder);
    Some(choice)
}

/// The script that asks looks like the agent where it was called like it, and would be in its own way
/// for ever. Whether it is one cannot be told, but what to do about it can.
fn if_a_script(holder: &Holder) -> String {
    match (holder.class, &holder.flag) {
        (Class::Itself, Some(flag)) => format!(
            ", which holds the session by its own arguments ({flag}); if that is no agent but your \
             script, call it with the id alone, without {flag}, or with the id in its environment"
        ),
        _ => String::new(),
    }
}

/// Row 8, and the rows below it.
fn reclaim<'a>(told: &Told<'a>, disk: &'a Disk) -> Choice<'a> {
    let mut choice = disk::judge(told, disk);
    let husks = told.husks();
    if let (Action::Launch(then), Some(husk)) = (choice.action, husks.first()) {
        choice.action = Action::Reclaim(then);
        choice.reason = format!(
            "process {} is a stale remnant of ours and must end first; then: {}",
            husk.root, choice.reason
        );
        choice.stale = husks;
    }
    choice
}

fn seconds(duration: Duration) -> String {
    let exact = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    format!("{} s", exact.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
