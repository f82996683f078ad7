//! `--wait` with a guard: status, signals and time go through it.

use process::Signal;
use serde_json::json;

use crate::guarded::*;
use crate::support::*;

#[test]
fn in_the_foreground_the_status_comes_through_it() {
    let scene = Scene::new();
    let line = "detach --wait --guard --marker m.marker --announce deaths -- sh -c 'cat; exit 7'";
    let output = scene
        .bash(&format!("echo hello | {line}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"hello\n");
    assert_eq!(scene.announced().len(), 1, "it is announced by then");
    assert!(!scene.marker().exists());

    let scene = Scene::new();
    let words = [
        "--wait",
        "--guard",
        "--marker",
        "m.marker",
        "--announce",
        "deaths",
    ];
    let mut command = scene.tool("detach");
    let waiting = command.args(words).args(["sleep", "600"]);
    // No pipe: the command has it too, and outlives this.
    let said = std::fs::File::create(scene.path("said")).unwrap();
    let mut waiting = waiting.stderr(said).spawn().unwrap();
    until("it has started", || scene.read_marker().is_some());
    let one = scene.adopt(scene.read_marker().unwrap());
    until("it is executed", || {
        std::fs::read(format!("/proc/{}/cmdline", one.pid))
            .is_ok_and(|line| line == b"sleep\x00600\x00")
    });
    kill(one.guard);
    assert_eq!(waiting.wait().unwrap().code(), Some(125));
    let said = std::fs::read_to_string(scene.path("said")).unwrap();
    assert!(said.contains("guard lost"), "{said}");
    assert!(lives(one.pid), "the command is untouched");
}

#[test]
fn in_the_foreground_signals_are_passed_on_through_it() {
    let scene = Scene::new();
    let script = "trap 'exit 4' TERM; echo >ready; while :; do sleep 0.02; done";
    let words = [
        "--wait",
        "--guard",
        "--marker",
        "m.marker",
        "--announce",
        "deaths",
    ];
    let mut command = scene.tool("detach");
    let mut waiting = command
        .args(words)
        .args(["bash", "-c", script])
        .spawn()
        .unwrap();
    until("it has its trap", || scene.path("ready").exists());
    signal(waiting.id() as i32, Signal::SIGTERM);
    assert_eq!(waiting.wait().unwrap().code(), Some(4));
    assert_eq!(scene.death()["deliberate"], true);
}

#[test]
fn a_timeout_is_an_end_on_purpose() {
    let scene = Scene::new();
    let output = scene.run(&["--wait", "--timeout", "300ms", "sleep", "600"]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("TERM"), &json!(true))
    );
}
