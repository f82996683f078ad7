//! `holder-scan | reap` with one of them killed in the middle, or a record cut in two.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::scene::{Scene, struck};
use crate::stage::{Ran, run};
use crate::support::{lives, rounds, until};

/// The status of the first and of the last stage, which a script printed last.
fn statuses(ran: &Ran) -> (i32, i32) {
    let lines = ran.lines();
    let last = lines.last().unwrap_or_else(|| panic!("{ran:?}"));
    let mut words = last.split(' ').map(|word| word.parse().unwrap());
    (words.next().unwrap(), words.next_back().unwrap())
}

/// Killed while it reads the table: nothing was said, nobody is ended.
#[test]
fn a_scan_that_is_killed_while_it_looks() {
    let scene = Scene::new();
    std::fs::write(
        scene.sandbox.path("scan.sh"),
        "exec holder-scan --session-id \"$id\" --own-arg wrapper.sh --own-cwd \"$PWD\"",
    )
    .unwrap();
    for (signal, code) in [("KILL", 137), ("TERM", 143)] {
        for (call, nth) in [("getdents64", 1), ("getdents64", 3), ("write", 1)] {
            // What TERM meets in a call is still written.
            if (signal, call) == ("TERM", "write") {
                continue;
            }
            let by = struck(signal, call, nth);
            let line = format!("{by} sh scan.sh | tee said | reap; echo \"${{PIPESTATUS[*]}}\"");
            let ran = scene.run(&line);
            assert_eq!(statuses(&ran), (code, 0), "{line}: {ran:?}");
            let said = std::fs::read_to_string(scene.sandbox.path("said")).unwrap();
            assert_eq!(said, "", "{line}");
            assert!(scene.own_lives(), "{line}");
        }
    }
}

/// Killed after a holder and before its last word: that holder is done all the same, and the status
/// says that somebody looked only half.
#[test]
fn a_scan_that_is_killed_before_its_last_word() {
    let scene = Scene::new();
    std::fs::write(
        scene.sandbox.path("scan.sh"),
        "exec holder-scan --session-id \"$id\" --own-arg wrapper.sh --own-cwd \"$PWD\"",
    )
    .unwrap();
    let by = struck("KILL", "write", 2);
    let line = format!("{by} sh scan.sh | tee said | reap; echo \"${{PIPESTATUS[*]}}\"");
    let ran = scene.run(&line);
    let said = std::fs::read_to_string(scene.sandbox.path("said")).unwrap();
    assert!(!said.contains("\"type\":\"scan\""), "{said}");
    assert!(said.ends_with('\n'), "half a record: {said}");
    // A refused stranger would be 1; that nobody has looked to the end is worse.
    assert_eq!(statuses(&ran), (137, 3), "{ran:?}");
    assert_eq!(scene.own_lives(), !said.contains("\"class\":\"own\""));
}

/// Killed at any moment: whatever comes through, others live, and a status of 0 is no lie.
#[test]
fn a_scan_that_is_killed_at_any_moment() {
    let mut scene = Scene::new();
    for round in 0..rounds(10) {
        for signal in ["KILL", "TERM"] {
            let delay = f64::from(round % 10) * 0.006;
            // The reaper is there before the scan, which is what the number is of.
            let line = format!(
                "exec 4> >(reap >reaped; echo $? >status)
                 holder-scan --session-id \"$id\" --own-arg wrapper.sh --own-cwd \"$PWD\" >&4 &
                 exec 4>&-; sleep {delay}; kill -{signal} $!; wait $!
                 until [ -s status ]; do sleep 0.005; done"
            );
            let _ = std::fs::remove_file(scene.sandbox.path("status"));
            scene.run(&line);
            let read = |name: &str| std::fs::read_to_string(scene.sandbox.path(name)).unwrap();
            let reaped = read("reaped");
            let whole = reaped.contains("\"type\":\"scan\"");
            let named = reaped.contains("\"type\":\"holder\"");
            let expected = match (named, whole) {
                // The stranger is refused; half a look is worse.
                (true, true) => "1",
                (true, false) => "3",
                (false, _) => "0",
            };
            assert_eq!(read("status").trim(), expected, "{line}: {reaped}");
            assert_eq!(
                scene.own_lives(),
                !reaped.contains("\"class\":\"own\""),
                "{line}"
            );
            if !scene.own_lives() {
                scene = Scene::new();
            }
        }
    }
}

/// Wherever the stream is cut: a whole record counts, half of one is none, and says so.
#[test]
fn a_stream_that_is_cut_anywhere() {
    let scene = Scene::new();
    let seen = scene.run("scan").stdout;
    let ends: Vec<usize> = (0..seen.len()).filter(|&at| seen[at] == b'\n').collect();
    let around = |end: &usize| [end.saturating_sub(1), *end, end + 1, end + 2];
    let cuts = (0..seen.len())
        .step_by(211)
        .chain(ends.iter().flat_map(around));
    for cut in cuts.filter(|&cut| cut <= seen.len()) {
        let part = &seen[..cut];
        let ran = run(&scene.sandbox, ("reap", &["--dry-run"]), part);
        // The newline itself is no part of the record.
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        let is_half = cut > 0 && !ends.contains(&cut) && part.last() != Some(&b'\n');
        let expected = match (is_half, whole) {
            (true, _) => 65,
            (false, 0) => 0,
            (false, whole) if whole < ends.len() => 3,
            // The stranger.
            (false, _) => 1,
        };
        assert_eq!(ran.code, Some(expected), "{cut} of {}: {ran:?}", seen.len());
        assert_eq!(ran.lines().len(), whole, "{cut}: {ran:?}");
    }
    assert!(scene.own_lives());

    // And once in earnest, in the middle of our own record.
    let own = String::from_utf8(seen).unwrap();
    let own = own
        .lines()
        .find(|line| line.contains("\"class\":\"own\""))
        .unwrap();
    for cut in [1, own.len() / 2, own.len() - 1] {
        let ran = run(&scene.sandbox, ("reap", &[]), &own.as_bytes()[..cut]);
        assert_eq!(ran.code, Some(65), "{ran:?}");
        assert!(
            ran.err().contains("line 1") && ran.stdout.is_empty(),
            "{ran:?}"
        );
        assert!(scene.own_lives());
    }
}

#[test]
fn an_empty_input_is_nothing_to_do() {
    let scene = Scene::new();
    for line in [
        "reap </dev/null",
        "true | reap",
        "false | reap; exit ${PIPESTATUS[1]}",
    ] {
        let ran = scene.run(line);
        assert_eq!(
            (ran.code, ran.out().as_str(), ran.err().as_str()),
            (Some(0), "", ""),
            "{line}"
        );
    }
    assert!(scene.own_lives());
}

/// Killed before its first signal, it has ended nobody; killed after it, what was deaf lives.
#[test]
fn a_reaper_that_is_killed() {
    for (call, nth) in [
        ("pidfd_open", 1),
        ("pidfd_send_signal", 1),
        ("pidfd_send_signal", 2),
    ] {
        let scene = Scene::deaf();
        let by = struck("KILL", call, nth);
        let line = format!("scan | {by} reap --grace 60s | cat; echo \"${{PIPESTATUS[*]}}\"");
        let ran = scene.run(&line);
        // Nothing was said of what was done.
        assert_eq!(ran.lines(), ["0 137 0"], "{line}: {ran:?}");
        assert!(lives(scene.own), "{line}");
    }
}

/// Ended while it waits: what it has found out so far is said, and nothing more is sent.
#[test]
fn a_reaper_that_is_ended_while_it_waits() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGKILL,
    ] {
        let scene = Scene::deaf();
        let seen = scene.run("scan").stdout;
        let mut reaper = scene
            .sandbox
            .tool("reap")
            .args(["--grace", "60s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        reaper.stdin.take().unwrap().write_all(&seen).unwrap();
        scene.until_asked();
        kill(Pid::from_raw(reaper.id() as i32), signal).unwrap();
        let output = reaper.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal as i32), "{output:?}");
        assert!(
            lives(scene.own),
            "it was killed after the end of the one who would have"
        );
        scene.assert_others_live("reap was ended");
        let records: Vec<Value> = crate::support::records(&output);
        let ours = records.iter().find(|record| record["class"] == "own");
        if signal == Signal::SIGKILL {
            assert_eq!(ours, None);
        } else {
            assert_eq!(ours.unwrap()["reap"]["outcome"], "interrupted");
        }
    }
}

/// The look ends and the ending goes on: who feeds `reap` may be gone long before it is done.
#[test]
fn who_feeds_it_may_be_killed_meanwhile() {
    let scene = Scene::deaf();
    let line = "{ scan; echo $BASHPID >feeder; exec sleep 600; } > >(reap --grace 300ms >reaped; echo $? >status) &
        until [ -s feeder ]; do sleep 0.01; done; kill -KILL \"$(cat feeder)\"
        until [ -s status ]; do sleep 0.01; done; cat status";
    let ran = scene.run(line);
    assert_eq!(ran.lines(), ["1"], "{ran:?}");
    until("our own is dead", || !lives(scene.own));
}
