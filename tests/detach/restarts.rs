//! Restarts, and when they are given up.

use std::process::Stdio;

use process::Signal;
use serde_json::{Value, json};

use crate::guarded::*;
use crate::support::*;

/// `detach --restart on-failure` with marker and announcements, and these words.
fn start(scene: &Scene, words: &[&str]) -> Guarded {
    let own = [
        "--restart",
        "on-failure",
        "--marker",
        "m.marker",
        "--announce",
        "deaths",
    ];
    let output = scene.tool("detach").args(own).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    scene.adopt(record(&output))
}

/// The announcements, once the guard has ended.
fn story(scene: &Scene, one: &Guarded) -> Vec<Value> {
    until_dead(one.guard);
    assert!(!scene.marker().exists(), "the marker is left");
    scene.announced()
}

/// The command that the guard has started after `before`, by its marker.
fn next(scene: &Scene, before: &Value) -> Value {
    let mut now = Value::Null;
    until("it runs again", || {
        now = scene.read_marker().unwrap_or_default();
        !now["ident"].is_null() && now["ident"] != before["ident"]
    });
    scene.track(now["ident"].as_str().unwrap());
    now
}

#[test]
fn the_breaker_trips_after_one_launch_more_than_restarts() {
    for (code, script) in [(1, "exit 1"), (0, "exit 0")] {
        let scene = Scene::new();
        let script = format!("echo $$ >>runs; {script}");
        let one = start(
            &scene,
            &["--max-restarts", "1", "--tag", "t", "sh", "-c", &script],
        );
        let story = story(&scene, &one);
        assert_eq!(story.len(), 3, "{story:?}");
        for (restarts, death) in story[..2].iter().enumerate() {
            assert_eq!(death["type"], "exit");
            assert_eq!(death["code"], code);
            assert_eq!(death["unnatural"], true, "{death}");
            assert_eq!(death["restarts"], restarts);
        }
        assert_ne!(story[0]["death_id"], story[1]["death_id"]);
        assert_ne!(story[0]["ident"], story[1]["ident"]);
        let given_up = &story[2];
        assert_eq!(given_up["type"], "give_up");
        assert_eq!(
            (&given_up["restarts"], &given_up["tag"]),
            (&json!(1), &json!("t"))
        );
        let last = json!({"code": code, "signal": null, "core": false});
        assert_eq!(given_up["last_exit"], last);
        assert_eq!(given_up["argv"], one.record["argv"]);
        assert_eq!(pids(&scene, "runs", 2).len(), 2);
    }
}

#[test]
fn what_is_given_up_leaves_nobody() {
    let scene = Scene::new();
    let script = "trap '' TERM; sleep 600 & echo $! >>pids; (set -m; sleep 600 & echo $! >>pids)
        exit 1";
    let one = start(&scene, &["--max-restarts", "0", "bash", "-c", script]);
    let left = pids(&scene, "pids", 2);
    let story = story(&scene, &one);
    assert_eq!(
        story[0]["stranded"].as_array().unwrap().len(),
        2,
        "{story:?}"
    );
    assert_eq!(story[1]["type"], "give_up");
    for pid in left {
        assert!(!lives(pid), "{pid} is left");
    }
}

#[test]
fn a_natural_end_is_the_end() {
    let scene = Scene::new();
    let one = start(&scene, &["--min-uptime", "0", "sh", "-c", "echo $$ >>runs"]);
    let story = story(&scene, &one);
    assert_eq!(story.len(), 1, "{story:?}");
    assert_eq!(
        (&story[0]["code"], &story[0]["unnatural"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(pids(&scene, "runs", 1).len(), 1);
}

#[test]
fn a_healthy_run_makes_up_for_bad_ones() {
    let scene = Scene::new();
    // Each run is healthy, so one restart in a row is never exceeded.
    let script = "echo $$ >>runs; [ $(wc -l <runs) -lt 4 ] || exit 0; exit 1";
    let words = ["--max-restarts", "1", "--healthy", "0", "--min-uptime", "0"];
    let one = start(&scene, &[&words[..], &["sh", "-c", script]].concat());
    let story = story(&scene, &one);
    let codes: Vec<&Value> = story.iter().map(|death| &death["code"]).collect();
    assert_eq!(codes, [1, 1, 1, 0]);
}

#[test]
fn its_files_are_those_of_the_one_that_runs() {
    let scene = Scene::new();
    let words = ["--lock", "lock", "--record", "r", "--log", "log"];
    let script = "[ -e second ] && exec sleep 600; touch second; exit 1";
    let first = start(&scene, &[&words[..], &["sh", "-c", script]].concat());
    let marker = next(&scene, &first.record);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(scene.path(name)).unwrap()).unwrap_or_default()
    };
    until("all is written", || {
        read("r")["ident"] == marker["ident"] && read("lock")["ident"] == marker["ident"]
    });
    let death = scene.announced().remove(0);
    assert_ne!(death["death_id"], marker["death_id"]);
    for key in ["argv", "cwd", "guard", "marker", "lock", "log"] {
        assert_eq!(read("r")[key], first.record[key], "{key}");
    }
    let again = scene
        .tool("detach")
        .args(["--lock", "lock", "touch", "ran"])
        .output()
        .unwrap();
    assert_eq!(record(&again)["ident"], marker["ident"]);
    assert_eq!(record(&again)["status"], "running");
    let marker = scene.adopt(marker);
    kill(marker.guard);
    kill(marker.pid);
}

#[test]
fn reap_ends_what_runs_by_now_and_nothing_comes_back() {
    let scene = Scene::new();
    let script = "echo $$ >>runs; [ $(wc -l <runs) = 2 ] && exec sleep 600; exit 1";
    let first = start(&scene, &["sh", "-c", script]);
    let second = next(&scene, &first.record);
    until("it is executed", || {
        scene.path("runs").exists() && pids(&scene, "runs", 2).len() == 2
    });
    // The record is that of the first run.
    let output = scene.reap(&first.record, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(record(&output)["reap"]["outcome"], "terminated");
    assert!(!lives(number(&second, "pid")) && !lives(first.guard));
    let story = story(&scene, &first);
    assert_eq!(story.len(), 2, "{story:?}");
    assert_eq!(story[1]["ident"], second["ident"]);
    assert_eq!(story[1]["deliberate"], true);
    assert!(!scene.path("m.marker.stopping").exists());
    assert_eq!(pids(&scene, "runs", 2).len(), 2);
}

#[test]
fn an_end_in_the_pause_is_the_end() {
    for by_reap in [true, false] {
        let scene = Scene::new();
        let one = start(&scene, &["sh", "-c", "echo $$ >>runs; exit 1"]);
        until("it has ended", || scene.announced().len() == 1);
        if by_reap {
            let output = scene.reap(&one.record, &[]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert!(!lives(one.guard));
        } else {
            signal(one.guard, Signal::SIGTERM);
        }
        let story = story(&scene, &one);
        assert!(!scene.path("m.marker.stopping").exists());
        assert_eq!(story.len(), pids(&scene, "runs", 1).len(), "{story:?}");
    }
}

#[test]
fn reap_meets_the_guard_anywhere() {
    for round in 0..rounds(8) {
        let scene = Scene::new();
        let one = start(&scene, &["sh", "-c", "sleep 0.1; exit 1"]);
        // Around the first restart, a second after the first end.
        let wait = 950 + 25 * u64::from(round);
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let output = scene.reap(&one.record, &[]);
        assert_eq!(output.status.code(), Some(0), "round {round}: {output:?}");
        assert!(!lives(one.guard), "round {round}");
        assert!(!scene.marker().exists(), "round {round}");
        assert!(!scene.path("m.marker.stopping").exists(), "round {round}");
        for death in scene.announced() {
            assert!(!lives(number(&death, "pid")), "round {round}");
        }
    }
}

/// Between the marker and the execution, which is made to last here: the process dies before it has
/// executed anything. That is no start that failed, to be tried again after a pause.
#[cfg(target_os = "linux")]
#[test]
fn reap_meets_a_command_that_is_not_executed_yet() {
    let scene = Scene::new();
    let slowly = "-e trace=write -e inject=write:delay_enter=250000";
    let line = format!(
        "exec strace -f -o /dev/null {slowly} detach --restart on-failure --max-restarts 2 \
         --marker m.marker --announce deaths -- sh -c 'echo $$ >>runs; exit 1'"
    );
    let mut command = scene.bash(&line);
    let _strace = Killed(command.stdout(Stdio::null()).spawn().unwrap());
    until("it has a marker", || scene.read_marker().is_some());
    let one = scene.adopt(scene.read_marker().unwrap());
    next(&scene, &one.record);
    // Less than the pause before a second restart.
    let output = scene.reap(&one.record, &["--kill-grace", "1900ms"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!lives(one.guard) && !scene.marker().exists());
    assert_eq!(pids(&scene, "runs", 1).len(), 1, "it was started again");
}

#[test]
fn streams_and_descriptors_are_the_callers_again() {
    let scene = Scene::new();
    let line = "exec 5>five; detach --wait --restart on-failure --max-restarts 1 --keep-fd 5 \
        --marker m.marker --announce deaths -- sh -c 'echo out; echo five >&5; pwd; exit 3'";
    let output = scene.bash(line).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let folder = std::fs::canonicalize(scene.path("")).unwrap();
    let once = format!("out\n{}\n", folder.display());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        [&once[..]; 2].concat()
    );
    assert_eq!(std::fs::read(scene.path("five")).unwrap(), b"five\nfive\n");
    assert_eq!(scene.announced().len(), 3);
}

#[test]
fn another_start_may_take_over_in_the_pause() {
    let scene = Scene::new();
    let one = start(&scene, &["--lock", "lock", "sh", "-c", "exit 1"]);
    until("it has ended", || scene.announced().len() == 1);
    let other = scene.detach(&["--lock", "lock", "sleep", "600"]);
    let story = story(&scene, &one);
    let kept: Value = serde_json::from_slice(&std::fs::read(scene.path("lock")).unwrap()).unwrap();
    // Unless the restart came first.
    if story.len() == 1 {
        assert_eq!(kept["ident"], other["ident"]);
        assert!(lives(number(&other, "pid")));
    }
}

#[test]
fn the_same_start_in_the_pause_waits_for_the_restart() {
    let scene = Scene::new();
    let script = "echo $$ >>runs; [ -e once ] && exec sleep 600; touch once; exit 1";
    let words = [
        "--restart",
        "on-failure",
        "--lock",
        "lock",
        "sh",
        "-c",
        script,
    ];
    let first = scene.start(&words);
    until("it has ended", || scene.announced().len() == 1);

    // Not for longer than it may.
    let again = scene.run(&[&["--ready-timeout", "0"], &words[..]].concat());
    if again.status.code() == Some(124) {
        let text = format!("process {} has ended, and its guard", first.pid);
        assert!(said(&again).contains(&text), "{again:?}");
        assert!(said(&again).contains("/lock: "), "{again:?}");
        assert!(again.stdout.is_empty());
    } else {
        // The restart came first.
        assert_eq!(record(&again)["status"], "running", "{again:?}");
    }

    let again = scene.run(&words);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let running = record(&again);
    assert_eq!(running["status"], "running");
    assert_eq!(running["guard"], first.record["guard"]);
    let pid = number(&running, "pid");
    scene.track(running["ident"].as_str().unwrap());
    assert!(lives(pid) && pid != first.pid);
    assert_eq!(pids(&scene, "runs", 2), [first.pid, pid]);
    assert_eq!(scene.announced().len(), 1);
}

#[test]
fn without_a_lock_a_start_in_the_pause_is_told_the_truth() {
    let scene = Scene::new();
    let one = start(&scene, &["sh", "-c", "exit 1"]);
    until("it has ended", || scene.announced().len() == 1);
    // A pause that lasts.
    signal(one.guard, Signal::SIGSTOP);
    until("nothing runs under the marker", || {
        scene
            .read_marker()
            .is_some_and(|marker| !lives(number(&marker, "pid")))
    });
    let output = scene.run(&["touch", "ran"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let said = said(&output);
    assert!(said.contains("m.marker: process "), "{said}");
    assert!(!said.contains("runs under it"), "{said}");
    assert!(!scene.path("ran").exists());
    signal(one.guard, Signal::SIGTERM);
    signal(one.guard, Signal::SIGCONT);
    until_dead(one.guard);
}

#[test]
fn a_command_that_has_gone_is_given_up() {
    let scene = Scene::new();
    let script = scene.script("here", "#!/bin/sh\nrm here; exit 1\n");
    let words = ["--max-restarts", "1", script.to_str().unwrap()];
    let one = start(&scene, &words);
    let story = story(&scene, &one);
    assert_eq!(story.len(), 2, "{story:?}");
    assert_eq!(story[1]["type"], "give_up");
    assert_eq!(story[1]["last_exit"]["code"], 127);
    assert_eq!(story[1]["restarts"], 1);
}
