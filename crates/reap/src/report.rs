//! The key `reap` of a record, and the line for eyes.

use process::end::{Outcome, Report};
use process::{Identity, Named, Pid, ProcessRecord, State, signal_name};
use records::human::{Column, HumanView};
use serde::Serialize;

use crate::verdict::Verdict;

/// What became of a target, in the order of its keys.
#[derive(Debug, Serialize)]
pub struct Reaped<'a> {
    outcome: &'static str,
    signals: Vec<String>,
    members: Vec<Member<'a>>,
    survivors: Vec<Survivor<'a>>,
    zombies: &'a [Named],
    took_ms: u64,
}

#[derive(Debug, Serialize)]
struct Member<'a> {
    pid: Pid,
    ident: &'a Identity,
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
struct Survivor<'a> {
    pid: Pid,
    ident: &'a Identity,
    state: Option<State>,
}

impl<'a> Reaped<'a> {
    /// What came of a target that was worked on.
    pub fn of(report: &'a Report) -> Reaped<'a> {
        Reaped {
            outcome: report.outcome.word(),
            signals: report
                .signals
                .iter()
                .map(|s| signal_name(*s as i32))
                .collect(),
            members: report
                .members
                .iter()
                .map(|member| Member {
                    pid: member.pid,
                    ident: &member.ident,
                    outcome: member.outcome,
                })
                .collect(),
            survivors: report
                .survivors
                .iter()
                .map(|survivor| Survivor {
                    pid: survivor.pid,
                    ident: &survivor.ident,
                    state: survivor.state,
                })
                .collect(),
            zombies: &report.zombies,
            took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// That a target was refused.
    pub fn refused(verdict: Verdict) -> Reaped<'a> {
        Reaped {
            outcome: verdict.word(),
            signals: Vec::new(),
            members: Vec::new(),
            survivors: Vec::new(),
            zombies: &[],
            took_ms: 0,
        }
    }
}

/// The record of a bare operand.
#[derive(Debug, Serialize)]
pub struct OperandRecord<'a> {
    /// The process.
    #[serde(flatten)]
    pub process: &'a ProcessRecord,
    /// What became of it.
    pub reap: Reaped<'a>,
}

const COLUMNS: &[Column] = &[
    Column {
        key: "pid",
        width: 7,
    },
    Column {
        key: "reap.outcome",
        width: 12,
    },
    Column {
        key: "reap.signals",
        width: 9,
    },
    Column {
        key: "reap.took_ms",
        width: 6,
    },
    Column {
        key: "reap.members",
        width: 7,
    },
    Column {
        key: "argv",
        width: 0,
    },
];

/// Records for eyes.
pub const HUMAN: HumanView = &[
    ("process", COLUMNS),
    ("holder", COLUMNS),
    ("binding", COLUMNS),
    ("marker", COLUMNS),
];
