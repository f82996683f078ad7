//! Signals to `reap` itself, and the pipeline that it stands in.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::{Run, Stage, command};
use crate::support::{Sandbox, until};

/// It notes that it was asked, and stays.
const DEAF: &str = "trap 'echo >asked' TERM; say ready; while :; do sleep 0.02; done";

#[test]
fn stopped_in_the_middle() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let sandbox = Sandbox::new();
        let stage = Stage::new(&sandbox, DEAF);
        let reaper = command(&["--grace", "60s", &stage.ident("root")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("it was asked", || sandbox.path("asked").exists());
        let began = Instant::now();
        kill(Pid::from_raw(reaper.id() as i32), signal).unwrap();
        let run = Run::of(reaper.wait_with_output().unwrap());
        assert_eq!(run.signal, Some(signal as i32), "{run:?}");
        assert_eq!(run.outcome(), "interrupted");
        assert_eq!(run.pids("survivors")[0], stage.pid("root"));
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        assert!(stage.lives("root"), "it was killed after the halt");
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, DEAF);
    // What a shell does for `nohup` and for commands in the background.
    let script = format!(
        "trap '' HUP; exec \"$0\" --grace 1s -o reap.outcome {}",
        stage.ident("root")
    );
    let reaper = std::process::Command::new("bash")
        .args(["-c", &script])
        .arg(crate::support::bin("reap"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("it was asked", || sandbox.path("asked").exists());
    kill(Pid::from_raw(reaper.id() as i32), Signal::SIGHUP).unwrap();
    let output = reaper.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"killed\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_signal_while_nobody_reads() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, "say ready; exec sleep 600");
    // More than a pipe holds, so that the write has to wait.
    let filler = format!("{{\"x\":\"{}\"}}\n", "y".repeat(100_000)).repeat(3);
    let input = sandbox.path("input");
    std::fs::write(&input, format!("{filler}{}\n", stage.record("root"))).unwrap();
    let mut reaper = command(&[])
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the target is dead", || !stage.lives("root"));
    let pid = reaper.id() as i32;
    until("it waits for the reader", || {
        let wait = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        let state = crate::support::state(pid);
        state == Some('S') && (wait.contains("pipe") || wait == "0")
    });
    let began = Instant::now();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    let status = reaper.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_reader_that_is_gone_stops_no_sequence() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(
        &sandbox,
        "trap '' TERM; say ready; while :; do sleep 1; done",
    );
    let mut reaper = command(&["--grace", "300ms", &stage.ident("root")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(reaper.stdout.take());
    let output = reaper.wait_with_output().unwrap();
    assert!(!stage.lives("root"), "the sequence was not finished");
    assert_eq!(
        output.status.signal(),
        Some(Signal::SIGPIPE as i32),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn its_own_pipeline_and_ancestors_are_spared() {
    let sandbox = Sandbox::new();
    let bash = |line: &str| {
        let output = sandbox.bash(line).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // An ancestor; a group that the ancestor is in; itself.
    assert_eq!(bash("reap -o reap.outcome $$; :"), "self\n");
    assert_eq!(bash("(reap -o reap.outcome $BASHPID; :)"), "self\n");
    assert_eq!(bash("exec reap -o reap.outcome $$"), "self\n");
    // What feeds it, and what it feeds.
    let upstream = r#"{
        echo "{\"pid\":$BASHPID}"
        until reaper=$(pgrep -P $$ -x reap) && grep -q '^State:.S' /proc/$reaper/status; do :; done
        exec sleep 1 >&-
    } | reap --allow-bare-pid -o reap.outcome"#;
    assert_eq!(bash(upstream), "self\n");
    let downstream = "coproc cat; exec 3>&${COPROC[1]}; reap -o reap.outcome $COPROC_PID >&3
        exec 3>&- {COPROC[1]}>&-; cat <&${COPROC[0]}";
    assert_eq!(bash(downstream), "self\n");
    // A job of the script that shares the script's output is none of that.
    assert_eq!(bash("sleep 600 & reap -o reap.outcome $!"), "terminated\n");
}

#[test]
fn a_group_of_the_callers() {
    let sandbox = Sandbox::new();
    // The target leads the group that the caller is in, and is no ancestor of it.
    let script = "python3 -c 'import os, time
os.setpgid(0, 0)
print(\"leader\", os.getpid(), file=open(os.environ[\"NAMES\"], \"a\"), flush=True)
time.sleep(600)' &
        until grep -q leader \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::in_our_session(&sandbox, script);
    let leader = stage.pid("leader");
    let line = "import os, sys
os.setpgid(0, int(sys.argv[2]))
os.execv(sys.argv[1], [sys.argv[1], '-o', 'reap.outcome', sys.argv[2]])";
    let output = std::process::Command::new("python3")
        .args(["-c", line])
        .arg(crate::support::bin("reap"))
        .arg(leader.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"self\n", "{output:?}");
    assert!(stage.lives("leader"));
}
