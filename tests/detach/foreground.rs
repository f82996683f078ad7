//! `--wait`: the command's signals, status and time, and its own session all the same.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid as RawPid;

#[cfg(target_os = "linux")]
use crate::guarded::{ORPHANS, Scene, until_collected};
use crate::support::*;

#[test]
fn its_status_is_the_commands() {
    let sandbox = Sandbox::new();
    for (script, status) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -INT $$", 130),
    ] {
        let output = sandbox
            .tool("detach")
            .args(["--wait", "sh", "-c", script])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert!(
            output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

#[test]
fn its_streams_are_the_callers_and_its_session_is_its_own() {
    let sandbox = Sandbox::new();
    // As a service manager starts each job: as the leader of a group, where setsid(2) fails.
    let line = "echo hello | detach --wait --record r -- sh -c \
        'cat; echo oops >&2; echo $$ $(ps -o pgid=,sid= -p $$) >ids'";
    let output = sandbox.bash(line).process_group(0).output().unwrap();
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"hello\n"[..], &b"oops\n"[..])
    );
    let ids = std::fs::read_to_string(sandbox.path("ids")).unwrap();
    let ids: Vec<&str> = ids.split_whitespace().collect();
    assert_eq!(ids, [ids[0]; 3]);
    let kept = std::fs::read(sandbox.path("r")).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["pid"].to_string(), ids[0]);

    let line = "detach --wait --log l -- sh -c 'echo out; echo err >&2'";
    let output = sandbox.bash(line).output().unwrap();
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert_eq!(std::fs::read(sandbox.path("l")).unwrap(), b"out\nerr\n");
}

#[test]
fn six_signals_are_passed_on_to_its_group() {
    for name in ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"] {
        let sandbox = Sandbox::new();
        // The child in the group gets it too.
        let script = format!(
            "trap 'echo child >>got; exit' {name}; (trap 'echo grandchild >>got; exit' {name}
             touch ready1; while :; do sleep 0.01; done) & touch ready2; wait; wait; exit 9"
        );
        let mut command = sandbox.tool("detach");
        let mut child = command
            .args(["--wait", "bash", "-c", &script])
            .spawn()
            .unwrap();
        until("both have their traps", || {
            sandbox.path("ready1").exists() && sandbox.path("ready2").exists()
        });
        let signal: Signal = format!("SIG{name}").parse().unwrap();
        kill(RawPid::from_raw(child.id() as i32), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
        until("both got it", || {
            std::fs::read_to_string(sandbox.path("got")).is_ok_and(|got| got.lines().count() == 2)
        });
    }
}

#[test]
fn a_signal_during_the_start_is_not_lost() {
    // The signal comes at once; whether detach or already the command meets it, neither is left.
    for round in 0..rounds(20) {
        let sandbox = Sandbox::new();
        let mut command = sandbox.tool("detach");
        let mut child = command
            .args(["--wait", "--record", "r", "sleep", "600"])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(u64::from(round) * 150));
        kill(RawPid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let status = child.wait().unwrap();
        let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert!(
            status.code() == Some(143) || by_signal == Some(15),
            "{status:?}"
        );
        if let Ok(kept) = std::fs::read(sandbox.path("r")) {
            let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
            assert!(!lives(number(&kept, "pid")));
        }
    }
}

#[test]
fn a_timeout_reaches_everything() {
    let sandbox = Sandbox::new();
    let script = "#!/bin/bash
        trap '' TERM
        echo $$ >>pids
        setsid bash -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 600; done' &
        (setsid bash -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 600; done' &)
        while :; do sleep 600 & wait; done";
    let script = sandbox.script("tree", script);
    let output = sandbox
        .tool("detach")
        .args(["--wait", "--timeout", "1500ms", "--grace", "200ms"])
        .arg(script)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let pids = std::fs::read_to_string(sandbox.path("pids")).unwrap();
    assert_eq!(pids.lines().count(), 3);
    for pid in pids.lines() {
        assert!(!lives(pid.parse().unwrap()), "{pid} outlived the timeout");
    }
}

#[test]
fn a_command_that_ends_in_time_has_no_timeout() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tool("detach");
    let output = command
        .args(["--wait", "--timeout", "60", "sh", "-c", "exit 5"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn the_launcher_status_is_the_commands_only_with_wait() {
    let sandbox = Sandbox::new();
    let line = "set -m
        detach -q -- sh -c 'exit 7' & wait $!; echo $?
        detach --wait -- sh -c 'exit 7' & wait $!; echo $?";
    let output = sandbox.bash(line).stderr(Stdio::null()).output().unwrap();
    assert_eq!(output.stdout, b"0\n7\n");
}

/// Elsewhere orphans are the first process's business.
#[cfg(target_os = "linux")]
#[test]
fn orphans_are_collected_while_the_command_lives() {
    let scene = Scene::new();
    // With SIGCHLD ignored too, as some callers leave it.
    for prefix in ["", "trap '' CHLD; "] {
        let words = "--wait --timeout 600 --record r";
        let line = format!("{prefix}exec detach {words} -- sh -c \"$ORPHANS\"");
        let mut command = scene.bash(&line);
        let mut child = command.env("ORPHANS", ORPHANS).spawn().unwrap();
        until("it has a record", || scene.path("r").exists());
        let kept = std::fs::read(scene.path("r")).unwrap();
        let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
        scene.track(kept["ident"].as_str().unwrap());
        until_collected(&scene);
        assert!(child.try_wait().unwrap().is_none(), "{prefix}");
        for name in ["r", "orphans"] {
            std::fs::remove_file(scene.path(name)).unwrap();
        }
        kill(RawPid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{prefix}");
    }
}

/// In a pid namespace whose /proc is another one's.
#[cfg(target_os = "linux")]
#[test]
fn a_command_whose_identity_cannot_be_read_is_waited_for() {
    let sandbox = Sandbox::new();
    let line = "setsid --wait unshare -Urpf bash -c \
        'timeout -k 1 20 detach --wait -- sh -c \"exit 3\"; echo $?'";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(output.stdout, b"3\n", "{output:?}");
    assert!(said(&output).contains("cannot be read"), "{output:?}");
}
