//! Groups whose leader is gone.

use serde_json::json;

use crate::stage::{Stage, lines, reap, reap_input};
use crate::support::{Sandbox, lives};

/// A leader that can be collected, and whom it leaves: one in its group, one in its session in a
/// group of its own.
const LEAVES: &str = "sleep 600 & say one $!
    python3 -c 'import os; os.setpgid(0, 0)
os.execlp(\"sleep\", \"sleep\", \"600\")' & say apart $!
    until [ \"$(cut -d' ' -f5 /proc/$!/stat)\" = $! ]; do :; done
    say ready; wait";

/// The stage with its leader dead and collected, and the leader's identity.
fn leaderless(sandbox: &Sandbox) -> (Stage, String, i32) {
    let mut stage = Stage::new(sandbox, LEAVES);
    let (leader, pid) = (stage.ident("root"), stage.pid("root"));
    // A member is proved by its birth only where the leader has lived for longer than a tick after.
    std::thread::sleep(std::time::Duration::from_millis(50));
    stage.kill_root();
    assert!(!lives(pid));
    (stage, leader, pid)
}

#[test]
fn without_proof_nobody_is_signalled() {
    let sandbox = Sandbox::new();
    let (stage, leader, pid) = leaderless(&sandbox);
    let run = reap(&[&leader]);
    run.expect("unknown", 3);
    assert_eq!(run.reap()["signals"], json!([]));
    assert_eq!(run.member(stage.pid("one")).unwrap(), "unknown");
    // The number alone says no more.
    reap(&[&pid.to_string()]).expect("unknown", 3);
    assert!(stage.lives("one") && stage.lives("apart"));
}

#[test]
fn at_the_callers_risk() {
    let sandbox = Sandbox::new();
    let (stage, leader, _) = leaderless(&sandbox);
    let run = reap(&["--leaderless", &leader]);
    run.expect("terminated", 0);
    assert!(!stage.lives("one"));
    assert!(stage.lives("apart"), "it is of another group");

    let (stage, _, pid) = leaderless(&sandbox);
    reap(&["--leaderless", &pid.to_string()]).expect("terminated", 0);
    assert!(!stage.lives("one"));
}

#[test]
fn proved_by_the_death_that_was_announced() {
    let sandbox = Sandbox::new();
    let (stage, leader, pid) = leaderless(&sandbox);
    let target = json!({"type": "process", "pid": pid, "ident": leader});
    let exit = json!({"type": "exit", "pid": pid, "ident": leader, "uptime_ms": 60_000});
    // The proof may come after the target, and is passed on.
    let input = lines(&[target.clone(), exit.clone()]);
    let run = reap_input(&[], &input);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.records[0]["reap"]["outcome"], "terminated");
    assert_eq!(run.records[1], exit);
    assert!(!stage.lives("one"));
    assert!(stage.lives("apart"));

    // A death before the member was born proves nothing.
    let (stage, leader, pid) = leaderless(&sandbox);
    let target = json!({"type": "process", "pid": pid, "ident": leader});
    let exit = json!({"type": "exit", "pid": pid, "ident": leader, "uptime_ms": 0});
    let run = reap_input(&[], &lines(&[exit, target]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.records[1]["reap"]["outcome"], "unknown");
    assert!(stage.lives("one"));
}

#[test]
fn proved_by_being_named_as_stranded() {
    let sandbox = Sandbox::new();
    let (stage, leader, pid) = leaderless(&sandbox);
    let target = json!({"type": "process", "pid": pid, "ident": leader});
    let named = |name: &str| json!({"pid": stage.pid(name), "ident": stage.ident(name)});
    let exit = json!({"type": "exit", "pid": pid, "ident": leader, "uptime_ms": null,
        "stranded": [named("apart")]});
    // One is named, the other is not.
    let run = reap_input(&[], &lines(&[exit, target.clone()]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.records[1]["reap"]["outcome"], "unknown");
    assert!(!stage.lives("apart"));
    assert!(stage.lives("one"));

    let exit = json!({"type": "exit", "pid": pid, "ident": leader, "uptime_ms": null,
        "stranded": [named("one"), named("apart")]});
    let run = reap_input(&[], &lines(&[target, exit]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.records[0]["reap"]["outcome"], "terminated");
    assert!(!stage.lives("one"));
}

#[test]
fn anothers_announcement_proves_nothing() {
    let sandbox = Sandbox::new();
    let (stage, leader, pid) = leaderless(&sandbox);
    let other = crate::stage::ident_of(std::process::id() as i32);
    let target = json!({"type": "process", "pid": pid, "ident": leader});
    let exit = json!({"type": "exit", "pid": other.pid(), "ident": other, "uptime_ms": 60_000,
        "stranded": [{"pid": stage.pid("one"), "ident": stage.ident("one")}]});
    let run = reap_input(&[], &lines(&[target, exit]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(stage.lives("one"));
}

/// Numbers and start times are alike after every boot: who is in a group of an earlier one's number
/// is a stranger, whatever is said of that process.
#[test]
fn a_process_of_an_earlier_boot_has_left_nobody() {
    let sandbox = Sandbox::new();
    let (stage, leader, pid) = leaderless(&sandbox);
    let mut fields: Vec<&str> = leader.split(':').collect();
    fields[1] = "00000000-0000-4000-8000-000000000000";
    let leader = fields.join(":");
    let target = json!({"type": "process", "pid": pid, "ident": leader});
    let exit = json!({"type": "exit", "pid": pid, "ident": leader, "uptime_ms": 60_000});
    for words in [&[][..], &["--leaderless"]] {
        let run = reap_input(words, &lines(&[target.clone(), exit.clone()]));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.records[0]["reap"]["outcome"], "gone");
        assert_eq!(run.records[0]["reap"]["members"], json!([]));
        assert!(stage.lives("one") && stage.lives("apart"));
    }
}

#[test]
fn the_leader_dies_first_and_its_group_is_still_held() {
    let sandbox = Sandbox::new();
    // The leader ends at once; who ignores TERM is left without it, and is killed all the same.
    let script = "(trap '' TERM; exec sleep 600) & say one $!
        until grep -q 'SigIgn:.*4...$' /proc/$!/status; do :; done
        bash -c '(trap \"\" TERM; exec sleep 600) & echo \"two $!\" >>\"$NAMES\"'
        until grep -q two \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--grace", "200ms", &stage.ident("root")]);
    run.expect("killed", 0);
    assert_eq!(run.member(stage.pid("root")).unwrap(), "terminated");
    assert_eq!(run.member(stage.pid("one")).unwrap(), "killed");
    assert!(!stage.lives("one") && !stage.lives("two"));
}

#[test]
fn nothing_is_left_of_it() {
    let sandbox = Sandbox::new();
    let mut stage = Stage::new(&sandbox, "say ready; exec sleep 600");
    let (leader, pid) = (stage.ident("root"), stage.pid("root"));
    stage.kill_root();
    let run = reap(&[&leader]);
    run.expect("gone", 0);
    assert_eq!(run.records[0]["pid"], pid);
    assert_eq!(run.records[0]["ident"], leader);
    assert_eq!(run.records[0]["argv"], json!(null));
    reap(&[&pid.to_string()]).expect("gone", 0);
}
