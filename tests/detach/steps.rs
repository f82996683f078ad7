//! KILL at each step of a start, of an announcement and of a sweep: at every system call that the
//! guard, or the sweep, makes there.

use std::process::Stdio;

use crate::guarded::*;
use crate::support::*;

/// A tool that was killed on its way, or came through.
struct Stepped {
    killed: bool,
    /// How many steps it made.
    steps: u32,
    /// What the guard has forked.
    child: Option<i32>,
}

const GUARDED: [&str; 5] = ["--guard", "--marker", "m.marker", "--announce", "deaths"];

/// Runs `detach`, and kills it, or its guard, at the step `last`.
fn step(scene: &Scene, mode: &str, last: u32, words: &[&str]) -> Stepped {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/detach/steps.py");
    let output = std::process::Command::new("python3")
        .args([script, mode, &last.to_string()])
        .arg(bin("detach"))
        .args(words)
        .current_dir(scene.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let line = text.lines().last().unwrap_or_else(|| panic!("{output:?}"));
    let words: Vec<&str> = line.split(' ').collect();
    let child = words[2].parse().unwrap();
    Stepped {
        killed: words[0] == "killed",
        steps: words[1].parse().unwrap(),
        child: (child != 0).then_some(child),
    }
}

/// The steps to be killed at, of so many: each of them in the long tests.
fn points(total: u32) -> impl Iterator<Item = u32> {
    let count = rounds(10).min(total);
    (0..count).map(move |point| 1 + point * total / count)
}

/// What the guard has forked is dead, or has executed the command, which is then kept from
/// outliving the test.
fn settled(scene: &Scene, child: i32) -> bool {
    let name = |pid: i32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = std::fs::canonicalize(bin("detach")).unwrap();
    let mut executed = false;
    until("it is decided", || {
        executed = lives(child) && name(child).is_some_and(|name| name != own);
        executed || !lives(child)
    });
    if executed {
        scene.track_pid(child);
    }
    executed
}

#[test]
fn no_step_of_a_start_leaves_a_command_without_a_marker() {
    let words = [
        &GUARDED[..],
        &["--record", "r", "--lock", "lock", "sleep", "600"],
    ]
    .concat();
    let scene = Scene::new();
    let whole = step(&scene, "guard", u32::MAX, &words);
    let one = scene.adopt(scene.read_marker().unwrap());
    assert!(!whole.killed && whole.steps > 100, "{}", whole.steps);
    signal(one.guard, process::Signal::SIGTERM);
    let mut executed = 0;
    for point in points(whole.steps) {
        let scene = Scene::new();
        let stepped = step(&scene, "guard", point, &words);
        let alive = stepped.child.is_some_and(|child| settled(&scene, child));
        let marker = scene.read_marker();
        if alive {
            executed += 1;
            let marker = marker.unwrap_or_else(|| panic!("no marker, killed at {point}"));
            let child = stepped.child.unwrap();
            assert_eq!(number(&marker, "pid"), child, "killed at {point}");
            if !stepped.killed {
                kill(number(&marker["guard"], "pid"));
            }
            kill(child);
            until_dead(child);
            scene.sweep();
            assert_eq!(scene.death()["pid"], child, "killed at {point}");
        } else {
            scene.sweep();
            assert!(!scene.marker().exists(), "killed at {point}");
            // The next start goes ahead.
            let next = scene.start(&["--lock", "lock", "sleep", "600"]);
            assert_eq!(next.record["status"], "started", "killed at {point}");
        }
    }
    assert!(executed > 0, "no point was late enough");
}

#[test]
fn no_step_of_a_guard_tells_twice_or_not_at_all() {
    let script = "until [ -e go ]; do sleep 0.01; done; exit 3";
    let words = [&GUARDED[..], &["sh", "-c", script]].concat();
    let whole = step(&Scene::new(), "death", u32::MAX, &words);
    assert!(whole.steps > 50, "{}", whole.steps);
    for point in points(whole.steps) {
        let scene = Scene::new();
        let stepped = step(&scene, "death", point, &words);
        if let Some(child) = stepped.child {
            until_dead(child);
        }
        for _ in 0..2 {
            let output = scene.sweep();
            assert_eq!(
                output.status.code(),
                Some(0),
                "killed at {point}: {output:?}"
            );
        }
        let told = scene.announced();
        assert_eq!(told.len(), 1, "killed at {point}: {told:?}");
        assert!(!scene.marker().exists(), "killed at {point}");
    }
}

#[test]
fn no_step_of_a_sweep_tells_twice_or_not_at_all() {
    let words = ["--sweep", ".", "--announce", "deaths"];
    let mut total = None;
    for round in 0..=rounds(10) {
        let scene = Scene::new();
        let one = scene.start(&["sleep", "600"]);
        kill(one.guard);
        kill(one.pid);
        until_dead(one.guard);
        until_dead(one.pid);
        let point = total.map_or(u32::MAX, |total| 1 + (round - 1) * total / rounds(10));
        let stepped = step(&scene, "self", point, &words);
        total.get_or_insert(stepped.steps);
        for _ in 0..2 {
            let output = scene.sweep();
            assert_eq!(
                output.status.code(),
                Some(0),
                "killed at {point}: {output:?}"
            );
        }
        let told = scene.announced();
        assert_eq!(told.len(), 1, "killed at {point}: {told:?}");
        assert!(!scene.marker().exists(), "killed at {point}");
    }
}
