//! The system calls that `reap` makes, seen from outside.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::stage::{Stage, lines};
use crate::support::{Sandbox, bin};

/// Every call by which a process can send a signal, and the one that opens a handle.
const CALLS: &str = "trace=kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,\
    pidfd_send_signal,pidfd_open,ptrace,process_madvise";

/// Runs `reap` with these words and this input, and gives the calls that were traced.
fn traced(sandbox: &Sandbox, words: &[&str], input: &str) -> Vec<String> {
    let trace = sandbox.path("trace");
    let mut child = Command::new("strace")
        .args(["-f", "-qq", "-e", CALLS, "-o"])
        .arg(&trace)
        .arg(bin("reap"))
        .args(["--grace", "300ms", "--kill-grace", "5s"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace is needed");
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait().unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    // PID CALL(...) = RESULT
    let calls = text.lines().filter_map(|line| line.split_once(' '));
    calls
        .map(|(_, call)| call.trim().to_owned())
        .filter(|call| call.contains('('))
        .collect()
}

/// Whether the call is a signal, and not only the question whether somebody is there.
fn is_signal(call: &str) -> bool {
    !call.starts_with("pidfd_open") && !call.contains(", 0, NULL")
}

#[track_caller]
fn assert_no_numbers(calls: &[String]) {
    for call in calls {
        assert!(
            call.starts_with("pidfd_open(") || call.starts_with("pidfd_send_signal("),
            "not through a handle: {call}"
        );
    }
}

#[test]
fn signals_go_through_handles_and_each_is_opened_once() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; sleep 600 & say one $!
        setsid bash -c 'echo \"two $$\" >>\"$NAMES\"; exec sleep 600' &
        until grep -q two \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let calls = traced(&sandbox, &[&stage.ident("root")], "");
    assert_no_numbers(&calls);
    let mut opened: HashMap<&str, u32> = HashMap::new();
    for call in calls.iter().filter(|call| call.starts_with("pidfd_open(")) {
        *opened
            .entry(call.split([',', ')']).next().unwrap())
            .or_default() += 1;
    }
    assert_eq!(opened.len(), 3, "{calls:#?}");
    assert!(opened.values().all(|&times| times == 1), "{opened:?}");
    let signals = calls.iter().filter(|call| is_signal(call)).count();
    assert_eq!(signals, 6, "TERM and KILL for each of three: {calls:#?}");
    assert!(
        calls
            .iter()
            .all(|call| !is_signal(call) || call.contains(", NULL, 0)")),
        "{calls:#?}"
    );
}

#[test]
fn nothing_at_all_for_what_is_refused() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, "say ready; exec sleep 600");
    let (pid, ident) = (stage.pid("root"), stage.ident("root"));
    let mut input = String::new();
    for number in [
        "0",
        "-1",
        "1",
        "null",
        "4294967295",
        "4294967296",
        "-4294967297",
        "1e1",
        "[]",
    ] {
        for kind in ["process", "holder", "binding", "marker"] {
            input += &format!(
                "{{\"type\":\"{kind}\",\"class\":\"own\",\"pid\":{number},\"root\":{number}}}\n"
            );
        }
    }
    let own = std::process::id();
    input += &format!("{{\"pid\":{own}}}\n{{\"pid\":2}}\n");
    input += &lines(&[
        serde_json::json!({"type": "holder", "class": "foreign", "root": pid, "root_ident": ident}),
        serde_json::json!({"type": "holder", "class": "own", "active": true, "root": pid,
            "root_ident": ident}),
        serde_json::json!({"pid": pid, "ident": ident, "verdict": {"state": "foreign"}}),
    ]);
    let calls = traced(&sandbox, &["--allow-bare-pid", "--leaderless"], &input);
    let signals: Vec<_> = calls.iter().filter(|call| is_signal(call)).collect();
    assert_eq!(signals, [] as [&String; 0]);
    assert!(stage.lives("root"));
}

#[test]
fn a_leaderless_group_is_signalled_member_by_member() {
    let sandbox = Sandbox::new();
    let mut stage = Stage::new(
        &sandbox,
        "sleep 600 & say one $!; sleep 600 & say two $!; say ready; wait",
    );
    let leader = stage.ident("root");
    stage.kill_root();
    let calls = traced(&sandbox, &["--leaderless", &leader], "");
    assert_no_numbers(&calls);
    assert_eq!(
        calls.iter().filter(|call| is_signal(call)).count(),
        2,
        "{calls:#?}"
    );
    assert!(!stage.lives("one") && !stage.lives("two"));
}
