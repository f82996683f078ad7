//! Judgements on tables, each written as one would see it with ps(1).
//!
//! Many of these situations were first written down for another program. Where that program, or
//! a first draft of what was wanted, saw one differently from what `holder-scan` promises now, the
//! promise decides: `tests/cases.md` has those.

mod arguments;
mod own;
mod trees;

use std::sync::Arc;

use records::Record;
use serde_json::{Value, json};

use crate::criteria::{Criteria, Place};
use crate::id::{Ids, SessionId};
use crate::judge::{Class, Judgement, Question, Verdict, judge};
use crate::snapshot::Snapshot;
use crate::table::Written;
use crate::targets::Targets;

const A: &str = "00000000-0000-4000-8000-0000000000a1";
const B: &str = "00000000-0000-4000-8000-0000000000b2";
const C: &str = "00000000-0000-4000-8000-0000000000c3";

/// The JSON argument of a wrapper that starts `claude` with `args` in `/w/app` as `main`.
fn config(args: &[&str]) -> Value {
    json!({"command": "claude", "args": args, "cwd": "/w/app",
           "env": {"PATH": "/usr/bin", "NAME": "main"}, "socket": "/run/w.sock"})
}

/// The argument list of such a wrapper.
fn wrapper(config: &Value) -> Value {
    json!(["/usr/bin/node", "/opt/x/wrapper.js", config.to_string()])
}

fn own_wrapper() -> Value {
    wrapper(&config(&["--session-id", A]))
}

/// The criteria of the wrapper's owner.
fn criteria() -> Criteria {
    Criteria {
        args: vec![b"wrapper.js".to_vec()],
        cwds: vec![Place {
            given: b"/w/app".to_vec(),
            resolved: None,
        }],
        envs: vec![(b"NAME".to_vec(), b"main".to_vec())],
        ..Criteria::default()
    }
}

fn snapshot(rows: &[Value]) -> Snapshot {
    let mut table = Written::default();
    for row in rows {
        let line = row.to_string();
        table
            .take(&Record::parse(line.as_bytes()).unwrap())
            .unwrap();
    }
    let (mut snapshot, _) = table.into_snapshot(&Targets::default(), &Question::default());
    snapshot.caller_uid = Some(1000);
    snapshot
}

fn question(id: &str) -> Question {
    Question {
        ids: Arc::new(Ids::new(vec![SessionId::new(id).unwrap()])),
        criteria: criteria(),
        mentions: true,
        ..Question::default()
    }
}

fn ask(rows: &[Value], question: &Question) -> (Snapshot, Judgement) {
    let snapshot = snapshot(rows);
    let judgement = judge(&snapshot, question, &|_| None);
    (snapshot, judgement)
}

/// The judgement in one line: the pids of each class, and the verdict of a complete look.
fn told(rows: &[Value], question: &Question) -> String {
    let (snapshot, judgement) = ask(rows, question);
    tell(&snapshot, &judgement)
}

fn tell(snapshot: &Snapshot, judgement: &Judgement) -> String {
    let mut text = String::new();
    for class in [
        Class::Own,
        Class::Foreign,
        Class::Family,
        Class::Mention,
        Class::Descendant,
    ] {
        let of_class = judgement
            .findings
            .iter()
            .filter(|finding| finding.class == class);
        let pids: Vec<String> = of_class
            .map(|finding| snapshot.rows[finding.row].pid.to_string())
            .collect();
        if !pids.is_empty() {
            text.push_str(&format!("{class:?} {} ", pids.join(" ")));
        }
    }
    format!("{text}{:?}", judgement.verdict(true))
}

fn process(pid: i32, ppid: i32, argv: Value) -> Value {
    json!({"pid": pid, "ppid": ppid, "argv": argv})
}
