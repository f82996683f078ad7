//! Stops on purpose, with `reap`: no false alarm, and no silence either.

use std::process::Stdio;

use serde_json::json;

use crate::guarded::*;
use crate::support::*;

const DEAF: &str = "trap 'echo >asked' TERM; echo >ready; while :; do sleep 0.02; done";

fn deaf(scene: &Scene) -> Guarded {
    scene.start(&["--ready-file", "ready", "bash", "-c", DEAF])
}

#[test]
fn a_stop_by_reap_is_deliberate() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    let output = scene.reap(&one.record, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(said(&output), "");
    assert!(
        !lives(one.pid) && !lives(one.guard),
        "it waits for the guard"
    );
    assert!(!scene.path("m.marker.stopping").exists());
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("TERM"), &json!(true))
    );
    assert_eq!(death["unnatural"], false);
}

#[test]
fn a_stop_by_pid_is_an_accident_and_reap_says_so() {
    for by in ["pid", "ident"] {
        let scene = Scene::new();
        let one = scene.start(&["sleep", "600"]);
        let operand = one.record[by].to_string();
        let output = scene.tool("reap").arg(operand.trim_matches('"')).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let hint = format!("process {}: its guard will announce this", one.pid);
        assert!(said(&output).contains(&hint), "{output:?}");
        assert!(said(&output).contains("reap <MARKER"), "{output:?}");
        assert_eq!(scene.death()["deliberate"], false);
    }
}

#[test]
fn a_stop_by_the_marker_is_for_good() {
    for line in ["reap <m.marker", "reap --pidfile m.marker"] {
        let scene = Scene::new();
        let one = scene.start(&["--restart", "on-failure", "sleep", "600"]);
        let output = scene.bash(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        assert_eq!(said(&output), "");
        assert!(!lives(one.pid) && !lives(one.guard), "{line}");
        assert!(!scene.marker().exists(), "{line}");
        assert_eq!(scene.death()["deliberate"], true);
    }
}

#[test]
fn those_in_sessions_of_their_own_are_named_as_stranded_and_ended_by_that() {
    let scene = Scene::new();
    let script = "setsid -f sh -c 'echo $$ >left; exec sleep 600'; exec sleep 600";
    scene.start(&["sh", "-c", script]);
    let left = pids(&scene, "left", 1)[0];
    scene.track_pid(left);
    let line = "reap <m.marker && jq -c 'select(.type == \"exit\") | .stranded[]' deaths | reap";
    let output = scene.bash(line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let ended = records(&output);
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[1]["pid"], left);
    assert_eq!(ended[1]["reap"]["outcome"], "terminated");
    assert!(!lives(left));
}

#[test]
fn a_stop_by_reap_without_a_guard_is_deliberate_too() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    kill(one.guard);
    until_dead(one.guard);
    let output = scene.reap(&one.record, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(record(&scene.sweep())["deliberate"], true);
    assert!(!scene.path("m.marker.stopping").exists());
    assert_eq!(scene.death()["by"], "sweep");
}

#[test]
fn a_stop_that_fails_leaves_a_later_death_an_accident() {
    let scene = Scene::new();
    let one = deaf(&scene);
    let output = scene.reap(&one.record, &["--no-kill", "--grace", "100ms"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!scene.path("m.marker.stopping").exists());
    kill(one.pid);
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("KILL"), &json!(false))
    );
}

#[test]
fn a_stop_whose_author_was_killed_counts_no_more() {
    for by_sweep in [false, true] {
        let scene = Scene::new();
        let one = deaf(&scene);
        std::fs::write(scene.path("input"), format!("{}\n", one.record)).unwrap();
        let mut command = scene.tool("reap");
        command.args(["--grace", "60s"]).stdout(Stdio::null());
        command.stdin(std::fs::File::open(scene.path("input")).unwrap());
        let mut reaper = Killed(command.spawn().unwrap());
        until("it was asked", || scene.path("asked").exists());
        reaper.0.kill().unwrap();
        reaper.0.wait().unwrap();
        assert!(scene.path("m.marker.stopping").exists());
        if by_sweep {
            kill(one.guard);
            until_dead(one.guard);
        }
        kill(one.pid);
        until_dead(one.pid);
        if by_sweep {
            scene.sweep();
        }
        let death = scene.death();
        assert_eq!(death["deliberate"], false, "{death}");
        let is_gone = || !scene.path("m.marker.stopping").exists();
        if !by_sweep {
            // A guard announces the death first, and removes what is left of it after that.
            until("the guard removes it", is_gone);
        }
        assert!(is_gone(), "it goes with the marker");
    }
}
