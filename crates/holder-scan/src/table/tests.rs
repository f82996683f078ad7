//! Tables as they are written.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::id::{Ids, SessionId};

const ID: &str = "00000000-0000-4000-8000-0000000000a1";

fn taken(lines: &[String], targets: &Targets) -> (Snapshot, Look) {
    let mut table = Written::default();
    for line in lines {
        table
            .take(&Record::parse(line.as_bytes()).unwrap())
            .unwrap();
    }
    let question = Question {
        ids: Arc::new(Ids::new(vec![SessionId::new(ID).unwrap()])),
        ..Question::default()
    };
    table.into_snapshot(targets, &question)
}

fn is_complete(line: &str) -> bool {
    taken(&[line.to_owned()], &Targets::default())
        .1
        .is_complete(false)
}

#[test]
fn what_is_not_written_is_not_known() {
    let (snapshot, _) = taken(&["{\"pid\":7}".to_owned()], &Targets::default());
    let row = &snapshot.rows[0];
    assert_eq!((row.ppid, row.pgid, row.sid), (None, None, None));
    assert_eq!((row.state, row.foreground, &row.name), (None, None, &None));
    assert_eq!(*row, Row::new(row.pid));
}

#[test]
fn what_had_been_cut_may_have_lost_an_id() {
    let cut = |argv: &[&str]| {
        let argv = serde_json::to_string(argv).unwrap();
        format!("{{\"pid\":7,\"argv_cut\":true,\"argv\":{argv}}}")
    };
    let prompt = "x".repeat(MAX_ARGUMENT);
    let json = format!("{{\"env\":\"{}", "x".repeat(MAX_ARGUMENT - 8));
    assert_eq!(json.len(), MAX_ARGUMENT);
    let near = &json[..MAX_ARGUMENT - 3];
    assert!(
        is_complete(&cut(&["claude", "-p", &prompt])),
        "no id is so long"
    );
    assert!(
        is_complete(&cut(&["w", "{\"a\":1}", &prompt])),
        "that one is whole"
    );
    assert!(!is_complete(&cut(&["w", &json])));
    assert!(!is_complete(&cut(&["w", near])), "cut before a character");
    assert!(!is_complete(&cut(&["sh", "-c", &prompt])));
    let whole = cut(&["w", &json]).replace("true", "false");
    assert!(is_complete(&whole));
}

#[test]
fn locks_are_not_all_that_is_open() {
    let targets = Targets {
        files: vec![crate::targets::FileTarget {
            path: b"/d/db".to_vec(),
            kernel_path: b"/d/db".to_vec(),
            file: None,
        }],
        ..Targets::default()
    };
    let complete = |line: &str| taken(&[line.to_owned()], &targets).1.is_complete(false);
    assert!(complete(r#"{"pid":7,"argv":[],"fds":[],"locks":["/d/l"]}"#));
    assert!(!complete(r#"{"pid":7,"argv":[],"locks":["/d/l"]}"#));
}

#[test]
fn a_process_that_is_there_twice_is_not_known() {
    let lines = ["x", "claude"].map(|name| format!("{{\"pid\":7,\"argv\":[\"{name}\"]}}"));
    let (snapshot, look) = taken(&lines, &Targets::default());
    assert_eq!((snapshot.rows.len(), look.processes), (1, 1));
    assert!(!look.is_complete(false));
}

#[test]
fn rows_of_an_agents_table_mean_one_process() {
    let boot = "f7473ef0-6a4b-4a8f-abe8-72c5ed7385cf";
    let ident: Identity = format!("linux:{boot}:4026531836:7:55:0").parse().unwrap();
    let pid = Pid::new(7).unwrap();
    let table = [
        (json!(ID), true),
        (json!({"pid": 7}), true),
        (json!({"pid": 8}), false),
        (json!({"procStart": "55"}), true),
        (json!({"procStart": 55}), true),
        (json!({"procStart": "54"}), false),
        (json!({"procStart": ""}), false),
        (
            json!({"procStart": format!("{}:55", boot.to_uppercase())}),
            true,
        ),
        (
            json!({"procStart": "00000000-0000-0000-0000-000000000000:55"}),
            false,
        ),
        (json!({"ident": ident.to_string()}), true),
        (
            json!({"ident": ident.to_string().replace(":55:", ":54:")}),
            false,
        ),
    ];
    for (row, want) in table {
        assert_eq!(means(&row, pid, Some(&ident)), want, "{row}");
        assert_eq!(means(&row, pid, None), row["pid"] != 8, "{row}");
    }
}

#[test]
fn whose_rows_leave_the_question_open() {
    let row = |pid: i64, uid: Option<u32>| Row {
        uid,
        ..Row::new(Pid::new(pid).unwrap())
    };
    let table = [
        (7, Some(1000), None, 1000, true),
        (7, Some(1001), None, 1000, false),
        (7, Some(1001), None, 0, true),
        (7, None, None, 1000, true),
        (7, Some(1001), Some(1001), 1000, true),
        (7, Some(1000), Some(1001), 1000, false),
        (1, Some(0), None, 0, false),
        (1, Some(0), Some(0), 1000, true),
    ];
    for (pid, uid, asked, caller, want) in table {
        let asked_about = is_asked_about(&row(pid, uid), asked, caller);
        assert_eq!(asked_about, want, "{pid} {uid:?} {asked:?} {caller}");
    }
}
