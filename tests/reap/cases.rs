//! Situations from stop and sweep scripts of other projects, as one table. Where such a script
//! expects something else than `reap` does, `reap` keeps to its manual: `tests/cases.md` says where,
//! and which situations have no test.

use serde_json::{Value, json};

use crate::stage::{Stage, lines, reap_input};
use crate::support::Sandbox;

struct Case {
    /// What it shows.
    shows: &'static str,
    /// Who is on the stage.
    script: &'static str,
    /// The options.
    words: &'static [&'static str],
    /// Keys of the holder record of the root that are different.
    keys: Value,
    outcome: &'static str,
    code: i32,
    dead: &'static [&'static str],
    alive: &'static [&'static str],
}

/// Ends when it is asked.
const POLITE: &str = "say ready; exec sleep 600";
/// Stays when it is asked.
const STUBBORN: &str = "trap '' TERM HUP; say ready; while :; do sleep 0.1; done";
/// A wrapper that ends when it is asked, and below it, in a session of its own, one that stays.
const ESCAPED: &str = "setsid bash -c 'trap \"\" TERM HUP; echo \"child $$\" >>\"$NAMES\"
        while :; do sleep 0.1; done' &
    until grep -q child \"$NAMES\"; do :; done; say ready; wait";
/// The same, and the wrapper is stopped.
const STOPPED: &str = "setsid bash -c 'trap \"\" TERM HUP; echo \"child $$\" >>\"$NAMES\"
        while :; do sleep 0.1; done' &
    until grep -q child \"$NAMES\"; do :; done; say ready; kill -STOP $$; wait";
/// A wrapper that is stopped, and a child that ends by HUP.
const STOPPED_POLITE: &str = "sleep 600 & say child $!; say ready; kill -STOP $$; wait";

fn cases() -> Vec<Case> {
    let case = |shows, script, words, outcome, code| Case {
        shows,
        script,
        words,
        keys: json!({}),
        outcome,
        code,
        dead: &["root"],
        alive: &[],
    };
    let refused = |shows, keys, outcome| Case {
        keys,
        dead: &[],
        alive: &["root"],
        ..case(shows, POLITE, &[], outcome, 1)
    };
    vec![
        case("one that is polite", POLITE, &[], "terminated", 0),
        case(
            "death by KILL is seen before the return",
            STUBBORN,
            &["--grace", "100ms"],
            "killed",
            0,
        ),
        case(
            "no grace is no wait, and not the default",
            STUBBORN,
            &["--grace", "0"],
            "killed",
            0,
        ),
        Case {
            dead: &[],
            alive: &["root"],
            ..case(
                "who stays without KILL is named, and the status tells",
                STUBBORN,
                &["--no-kill", "--grace", "100ms"],
                "survived",
                1,
            )
        },
        Case {
            dead: &["root", "child"],
            ..case(
                "the child below the wrapper is the real holder",
                ESCAPED,
                &["--grace", "100ms"],
                "killed",
                0,
            )
        },
        Case {
            dead: &["root", "child"],
            ..case(
                "a wrapper that is stopped cannot end its child itself",
                STOPPED,
                &["--grace", "100ms"],
                "killed",
                0,
            )
        },
        Case {
            dead: &["root", "child"],
            ..case(
                "a wrapper that is stopped acts once it runs again",
                STOPPED_POLITE,
                &[],
                "terminated",
                0,
            )
        },
        Case {
            dead: &["root", "child"],
            ..case(
                "HUP in place of TERM reaches the child as well",
                STOPPED_POLITE,
                &["--signal", "HUP"],
                "terminated",
                0,
            )
        },
        refused("a stranger's", json!({"class": "foreign"}), "foreign"),
        refused(
            "one that nobody has classed",
            json!({"class": null}),
            "foreign",
        ),
        refused(
            "a daemon that others share",
            json!({"shared": true}),
            "foreign",
        ),
        refused(
            "one that is still in use",
            json!({"active": true}),
            "active",
        ),
        refused("everybody in my group", json!({"root": 0}), "bad_pid"),
        refused("everybody", json!({"root": -1}), "bad_pid"),
        refused("a group", json!({"root": -5}), "bad_pid"),
        refused("init", json!({"root": 1}), "init"),
        refused("nobody", json!({"root": null}), "bad_pid"),
        refused(
            "a number that wraps round",
            json!({"root": 4_294_967_297_u64}),
            "bad_pid",
        ),
        refused(
            "one of whom only the number is known",
            json!({"root_ident": null}),
            "no_identity",
        ),
    ]
}

#[test]
fn what_becomes_of_whom() {
    std::thread::scope(|scope| {
        for case in cases() {
            scope.spawn(move || check(&case));
        }
    });
}

fn check(case: &Case) {
    let shows = case.shows;
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, case.script);
    let mut holder = json!({"type": "holder", "class": "own", "active": false, "shared": false,
        "root": stage.pid("root"), "root_ident": stage.ident("root")});
    for (key, value) in case.keys.as_object().unwrap() {
        holder[key] = value.clone();
    }
    let scan = json!({"type": "scan", "complete": true});
    let run = reap_input(case.words, &lines(&[holder, scan]));
    assert_eq!(run.code, Some(case.code), "{shows}: {run:#?}");
    let reap = &run.records[0]["reap"];
    assert_eq!(reap["outcome"], case.outcome, "{shows}: {run:#?}");
    for name in case.dead {
        assert!(!stage.lives(name), "{shows}: {name} lives");
    }
    for name in case.alive {
        assert!(stage.lives(name), "{shows}: {name} is dead");
    }
    if !matches!(case.outcome, "terminated" | "killed" | "survived") {
        assert_eq!(reap["signals"], json!([]), "{shows}");
    }
}

#[test]
fn the_one_that_stays_is_the_one_that_is_killed() {
    let sandbox = Sandbox::new();
    let (polite, stubborn) = (Stage::new(&sandbox, POLITE), Stage::new(&sandbox, STUBBORN));
    let targets = [polite.record("root"), stubborn.record("root")];
    let run = reap_input(&["--grace", "200ms"], &lines(&targets));
    assert_eq!(run.code, Some(0));
    assert_eq!(run.records[0]["reap"]["signals"], json!(["TERM"]));
    assert_eq!(run.records[1]["reap"]["signals"], json!(["TERM", "KILL"]));
}

#[test]
fn a_grace_that_is_too_short_is_said() {
    let sandbox = Sandbox::new();
    let drains = "trap 'sleep 3; exit 0' TERM; say ready; while :; do sleep 0.05; done";
    let stage = Stage::new(&sandbox, drains);
    let run = reap_input(&["--grace", "200ms"], &lines(&[stage.record("root")]));
    run.expect("killed", 0);
    assert!(run.reap()["took_ms"].as_u64().unwrap() >= 200);
    let stage = Stage::new(&sandbox, &drains.replace("sleep 3", "sleep 0.3"));
    let run = reap_input(&[], &lines(&[stage.record("root")]));
    run.expect("terminated", 0);
}

#[test]
fn a_stop_and_a_start_do_not_overlap() {
    let sandbox = Sandbox::new();
    let drains = "exec 9>lock; flock 9; trap 'sleep 0.3; exit' TERM
        say ready; while :; do sleep 0.05; done";
    let stage = Stage::new(&sandbox, drains);
    let line = "reap -q \"$1\" && flock -n lock true && echo free";
    let output = sandbox
        .bash(line)
        .args(["bash", &stage.ident("root")])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"free\n", "{output:?}");
}
