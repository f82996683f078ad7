//! Whether a record still tells the truth: the decision alone, on plain data.
//!
//! What is judged has been found out before; nothing is looked at here.
//!
//! The reasons, by the states that they come with:
//!
//! | state | reasons |
//! |---|---|
//! | `unknown` | `server_silent`, `server_denied`, `server_failed`, `no_multiplexer`, `ambiguous_pane`, `other_host`, `other_namespace`, `foreign_proc`, `unreadable`, `bad_identity`, `role_unknown`, `not_settled` |
//! | `unbound` | `no_identity` |
//! | `foreign` | `other_process`, `pane_taken` (the bound process lives all the same), `recycled` (no pane is named), `role_changed`, `not_ancestor`, `legacy_differs`, and for records without identity those of `gone` |
//! | `self` | `own_pane` |
//! | `match` | `same_process`, `legacy_equal` |
//! | `moved` | `other_pane` |
//! | `orphaned` | `no_such_pane`, `dead_pane`, `no_server` |
//! | `gone` | `no_such_pane`, `dead_pane`, `no_server`, `process_ended` |

use serde::Serialize;

/// The answer, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It cannot be told: neither act nor start another one.
    Unknown,
    /// The record has no identity.
    Unbound,
    /// The address is somebody else's.
    Foreign,
    /// The pane is the caller's own.
    #[value(name = "self")]
    #[serde(rename = "self")]
    Own,
    /// The pane's process is the bound one.
    Match,
    /// The bound process lives, in another pane.
    Moved,
    /// The bound process lives, without a pane.
    Orphaned,
    /// Neither the pane nor the process is there any more.
    Gone,
}

/// All that is known of one record.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What the record calls the pane; `None` where it names none.
    pub pane: Option<String>,
    /// Whom it says it is bound to.
    pub bound: Bound,
    /// What is at the pane's address now.
    pub place: Place,
    /// Whether the bound process was found in another pane of the same server.
    pub elsewhere: Option<Elsewhere>,
}

/// Whom a record is bound to.
#[derive(Clone, Debug)]
pub enum Bound {
    /// Nobody. With the comparison that was asked for instead, of the record and the pane's live
    /// process: the keys in which they differ, or that one of them lacks.
    Nobody {
        /// `None` where no comparison was asked for.
        differing: Option<Vec<&'static str>>,
    },
    /// It cannot be made out; the text says why.
    Unreadable(String),
    /// A process of another boot on another host; the text names it.
    Elsewhere(String),
    /// A process.
    To {
        /// What became of it.
        process: Process,
        /// Whether its identity is exact; one from `ps` is not.
        exact: bool,
        /// Whether it still runs the same program, as far as that was asked.
        role: Role,
        /// Whether it is an ancestor of the caller; `None` where that was not asked.
        ancestor: Option<bool>,
    },
}

/// What became of a bound process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// It lives.
    Same,
    /// It has ended, and its pid is another process's.
    Recycled,
    /// It has ended.
    Gone,
    /// It cannot be told.
    Unknown(Doubt),
}

/// Why something cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The token for scripts.
    pub reason: &'static str,
    /// The text for people.
    pub why: String,
}

/// What is at a pane's address.
#[derive(Clone, Debug)]
pub enum Place {
    /// The record names no pane.
    Nowhere,
    /// It cannot be told: the server did not say, or the address is ambiguous.
    Unknown(Doubt),
    /// No server is running.
    NoServer,
    /// The server has no such pane.
    NoPane,
    /// The pane is there, and no live process in it.
    Empty,
    /// A live process.
    Live {
        /// Whether it is the bound one.
        likeness: Likeness,
        /// Whether the pane is the caller's own.
        own: bool,
    },
}

/// Whether a live process is the bound one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is.
    Same,
    /// It is another.
    Other,
    /// It cannot be told.
    Unknown(Doubt),
}

/// Whether a process still runs what it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// That was not asked.
    Unasked,
    /// It does.
    Same,
    /// It has become something else by exec.
    Changed,
    /// It cannot be told.
    Unknown(Doubt),
}

/// The bound process, in another pane than the record's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// That pane.
    pub pane: String,
    /// Whether it is the caller's own.
    pub own: bool,
}

/// The answer, with what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The answer.
    pub state: State,
    /// A token that says why.
    pub reason: &'static str,
    /// The same for people.
    pub message: String,
    /// Whether a `match` rests on less than an exact identity.
    pub weak: bool,
    /// Whose process is to be shown beside it.
    pub live: Live,
}

/// Which live process an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// None.
    None,
    /// The one in the record's pane.
    InPane,
    /// The bound one, wherever it is.
    Bound,
}

/// Judges one record. The states are tried in the order in which [`State`] lists them.
pub fn judge(facts: &Facts) -> Judgement {
    match &facts.bound {
        Bound::Unreadable(why) => unknown("bad_identity", why),
        Bound::Elsewhere(host) => {
            let why = format!("it was recorded on host {host}, in another boot than this one");
            unknown("other_host", &why)
        }
        Bound::Nobody { differing } => unbound(facts, differing.as_deref()),
        Bound::To {
            process,
            exact,
            role,
            ancestor,
        } => {
            let bond = Bond {
                facts,
                exact: *exact,
                role,
                ancestor: *ancestor,
            };
            bond.judge(process)
        }
    }
}

fn judgement(state: State, reason: &'static str, message: String, live: Live) -> Judgement {
    Judgement {
        state,
        reason,
        message,
        weak: false,
        live,
    }
}

fn unknown(reason: &'static str, why: &str) -> Judgement {
    judgement(State::Unknown, reason, why.to_owned(), Live::None)
}

/// A record without an identity, compared by what it says of the pane, if at all.
fn unbound(facts: &Facts, differing: Option<&[&str]>) -> Judgement {
    let pane = facts.pane.as_deref().unwrap_or("the pane");
    let Some(differing) = differing else {
        let message = format!("the record of {pane} has no identity");
        return judgement(State::Unbound, "no_identity", message, Live::None);
    };
    match &facts.place {
        Place::Unknown(doubt) => unknown(doubt.reason, &doubt.why),
        Place::NoServer | Place::NoPane | Place::Empty | Place::Nowhere => {
            let (reason, why) = absence(&facts.place, pane);
            judgement(State::Foreign, reason, why, Live::None)
        }
        Place::Live { .. } if !differing.is_empty() => {
            let keys = differing.join(" and ");
            let message = format!("{pane} differs from the record in {keys}, or one lacks it");
            judgement(State::Foreign, "legacy_differs", message, Live::InPane)
        }
        Place::Live { own: true, .. } => own(pane, Live::InPane),
        Place::Live { .. } => {
            let message = format!("{pane} has what the record says, which has no identity");
            Judgement {
                weak: true,
                ..judgement(State::Match, "legacy_equal", message, Live::InPane)
            }
        }
    }
}

fn own(pane: &str, live: Live) -> Judgement {
    let message = format!("{pane} is the pane that this runs in");
    judgement(State::Own, "own_pane", message, live)
}

/// Why there is no live process at an address.
fn absence(place: &Place, pane: &str) -> (&'static str, String) {
    match place {
        Place::NoServer => ("no_server", "no server is running there".to_owned()),
        Place::Empty => ("dead_pane", format!("{pane} has no live process")),
        _ => ("no_such_pane", format!("there is no pane {pane}")),
    }
}

/// A record that is bound to a process.
struct Bond<'a> {
    facts: &'a Facts,
    exact: bool,
    role: &'a Role,
    ancestor: Option<bool>,
}

impl Bond<'_> {
    fn judge(&self, process: &Process) -> Judgement {
        let has_ended = matches!(process, Process::Gone | Process::Recycled);
        let pane = self.facts.pane.as_deref().unwrap_or("the pane");
        match &self.facts.place {
            Place::Nowhere => self.process_alone(process),
            Place::Unknown(_) if has_ended => {
                let message = "the bound process has ended".to_owned();
                judgement(State::Gone, "process_ended", message, Live::None)
            }
            Place::Unknown(doubt) => unknown(doubt.reason, &doubt.why),
            Place::Live { likeness, own } => {
                let likeness = match likeness {
                    // Whoever it is, it is not one that has ended.
                    Likeness::Unknown(_) if has_ended => &Likeness::Other,
                    likeness => likeness,
                };
                match likeness {
                    Likeness::Unknown(doubt) => unknown(doubt.reason, &doubt.why),
                    Likeness::Other => self.another(process, pane),
                    Likeness::Same => self.same(pane, *own, Live::InPane),
                }
            }
            Place::NoServer | Place::NoPane | Place::Empty => self.no_live_pane(process, pane),
        }
    }

    /// The pane's process is another one.
    fn another(&self, process: &Process, pane: &str) -> Judgement {
        let (reason, rest) = match process {
            Process::Same => ("pane_taken", "; the bound one still lives"),
            _ => ("other_process", ""),
        };
        let message = format!("the process of {pane} is not the bound one{rest}");
        judgement(State::Foreign, reason, message, Live::InPane)
    }

    /// The bound process is where the record says.
    fn same(&self, pane: &str, own_pane: bool, live: Live) -> Judgement {
        if let Some(no) = self.not_as_asked(live) {
            return no;
        }
        // Whoever asks for an ancestor asks for his own pane on purpose.
        if own_pane && self.ancestor.is_none() {
            return own(pane, live);
        }
        Judgement {
            weak: !self.exact,
            ..judgement(
                State::Match,
                "same_process",
                "it is the bound process".to_owned(),
                live,
            )
        }
    }

    /// Why the bound process is not all that was asked for.
    fn not_as_asked(&self, live: Live) -> Option<Judgement> {
        if let Role::Unknown(doubt) = self.role {
            return Some(unknown(doubt.reason, &doubt.why));
        }
        if *self.role == Role::Changed {
            let message = "the bound process runs another program now".to_owned();
            return Some(judgement(State::Foreign, "role_changed", message, live));
        }
        if self.ancestor == Some(false) {
            let message = "the bound process is no ancestor of the caller".to_owned();
            return Some(judgement(State::Foreign, "not_ancestor", message, live));
        }
        None
    }

    fn process_alone(&self, process: &Process) -> Judgement {
        match process {
            Process::Unknown(doubt) => unknown(doubt.reason, &doubt.why),
            Process::Recycled => {
                let message = "the pid is another process's now".to_owned();
                judgement(State::Foreign, "recycled", message, Live::Bound)
            }
            Process::Gone => {
                let message = "the process has ended".to_owned();
                judgement(State::Gone, "process_ended", message, Live::None)
            }
            Process::Same => self.same("the process", false, Live::Bound),
        }
    }

    fn no_live_pane(&self, process: &Process, pane: &str) -> Judgement {
        let (reason, why) = absence(&self.facts.place, pane);
        match process {
            Process::Unknown(doubt) => unknown(doubt.reason, &doubt.why),
            Process::Gone | Process::Recycled => {
                let message = format!("{why}, and the bound process has ended");
                judgement(State::Gone, reason, message, Live::None)
            }
            Process::Same => {
                if let Some(no) = self.not_as_asked(Live::Bound) {
                    return no;
                }
                match &self.facts.elsewhere {
                    Some(Elsewhere { pane, own: true }) if self.ancestor.is_none() => {
                        own(pane, Live::Bound)
                    }
                    Some(Elsewhere { pane: other, .. }) => {
                        let message = format!("the bound process is in pane {other} now");
                        judgement(State::Moved, "other_pane", message, Live::Bound)
                    }
                    None => {
                        let message = format!("{why}, and the bound process lives on");
                        judgement(State::Orphaned, reason, message, Live::Bound)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
