//! Processes with a marker: a stop on purpose is noted, and counts only as long as it should.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use process::{Here, Identity};
use serde_json::{Value, json};

use crate::stage::{Run, Stage, command, is_alive, lines, reap_input};
use crate::support::{Sandbox, until};

const DEAF: &str = "trap 'echo >asked' TERM; say ready; while :; do sleep 0.02; done";
const POLITE: &str = "say ready; exec sleep 600";

/// Writes a marker file for this process, and gives its path.
fn marker(sandbox: &Sandbox, ident: &str, guard: Value) -> PathBuf {
    let path = sandbox.path("m.marker");
    let pid: Identity = ident.parse().unwrap();
    let marker = json!({"v": 1, "type": "marker", "pid": pid.pid(), "ident": ident, "guard": guard,
        "marker": path, "host": Here::new().host(), "death_id": "d", "announce": "/nowhere",
        "announce_size": 0, "announce_inode": 0});
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, format!("{marker}\n")).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn with_marker(stage: &Stage, path: &Path) -> Value {
    let mut record = stage.record("root");
    record["marker"] = json!(path);
    record["host"] = json!(Here::new().host());
    record
}

fn note(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("m.marker.stopping")
}

/// Whether the note says that the root is being ended, or was: its author lives, or has seen it
/// dead.
fn counts(sandbox: &Sandbox, stage: &Stage) -> bool {
    let text = std::fs::read_to_string(note(sandbox)).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["target"], stage.ident("root"));
    let author = lines[0]["ident"].as_str().unwrap().parse().unwrap();
    is_alive(&author) || lines.iter().any(|line| line["dead"] == true)
}

#[test]
fn a_stop_that_succeeds_stays_noted() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, POLITE);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let run = reap_input(&[], &lines(&[with_marker(&stage, &path)]));
    run.expect("terminated", 0);
    // The one who ended it is gone by now, and has seen it dead.
    assert!(counts(&sandbox, &stage));
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(
        std::fs::metadata(note(&sandbox)).unwrap().mode() & 0o777,
        0o600
    );
    assert!(path.exists(), "the marker is not ours to remove");
}

#[test]
fn a_stop_that_fails_leaves_no_note() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, DEAF);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let words = ["--no-kill", "--grace", "100ms"];
    let run = reap_input(&words, &lines(&[with_marker(&stage, &path)]));
    run.expect("survived", 1);
    assert!(!note(&sandbox).exists());
    // A dry run and a refusal make none.
    let run = reap_input(&["--dry-run"], &lines(&[with_marker(&stage, &path)]));
    run.expect("dry_run", 0);
    assert!(!note(&sandbox).exists());
}

#[test]
fn a_note_counts_while_its_author_lives() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, DEAF);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let input = sandbox.path("input");
    std::fs::write(&input, lines(&[with_marker(&stage, &path)])).unwrap();
    let mut reaper = command(&["--grace", "60s"])
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("it was asked", || sandbox.path("asked").exists());
    assert!(counts(&sandbox, &stage));
    reaper.kill().unwrap();
    reaper.wait().unwrap();
    assert!(note(&sandbox).exists());
    assert!(!counts(&sandbox, &stage), "nobody is ending it any more");
    // The next one takes the note over.
    let run = reap_input(&["--grace", "100ms"], &lines(&[with_marker(&stage, &path)]));
    run.expect("killed", 0);
    assert!(counts(&sandbox, &stage));
}

#[test]
fn an_interrupted_stop_leaves_no_note() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, DEAF);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let input = sandbox.path("input");
    std::fs::write(&input, lines(&[with_marker(&stage, &path)])).unwrap();
    let reaper = command(&["--grace", "60s"])
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("it was asked", || sandbox.path("asked").exists());
    let pid = nix::unistd::Pid::from_raw(reaper.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let run = Run::of(reaper.wait_with_output().unwrap());
    assert_eq!(run.outcome(), "interrupted");
    assert!(!note(&sandbox).exists());
}

#[test]
fn a_marker_of_another_process_or_none_of_ours_is_left_alone() {
    let sandbox = Sandbox::new();
    let (stage, other) = (Stage::new(&sandbox, POLITE), Stage::new(&sandbox, POLITE));
    let path = marker(&sandbox, &other.ident("root"), Value::Null);
    let run = reap_input(&[], &lines(&[with_marker(&stage, &path)]));
    run.expect("terminated", 0);
    assert!(!note(&sandbox).exists());

    let stage = Stage::new(&sandbox, POLITE);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let link = sandbox.path("link.marker");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let run = reap_input(&[], &lines(&[with_marker(&stage, &link)]));
    run.expect("terminated", 0);
    assert!(!sandbox.path("link.marker.stopping").exists());
}

#[test]
fn a_note_that_cannot_be_made_ends_nobody() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, POLITE);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    // A directory has its name.
    std::fs::create_dir(note(&sandbox)).unwrap();
    let run = reap_input(&[], &lines(&[with_marker(&stage, &path)]));
    run.expect("unknown", 125);
    assert!(stage.lives("root"));
}

/// A guard of the form of `detach`'s: it runs the command, again if that was not ended on purpose,
/// and leaves some time after it.
const GUARD: &str = "
    setsid sleep 600 & say first $!; first=$!
    say ready; until [ -e marked ]; do sleep 0.01; done
    wait $first; [ -e m.marker.stopping ] || { setsid sleep 600 & say second $!; wait $!; }
    sleep 0.3; echo >announced";

#[test]
fn it_is_done_when_the_guard_has_ended_as_well() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, GUARD);
    let guard = json!({"pid": stage.pid("root"), "ident": stage.ident("root")});
    let path = marker(&sandbox, &stage.ident("first"), guard.clone());
    std::fs::write(sandbox.path("marked"), "").unwrap();
    let mut record = stage.record("first");
    record["marker"] = json!(path);
    record["guard"] = guard;
    let run = reap_input(&[], &lines(&[record]));
    run.expect("terminated", 0);
    assert!(
        sandbox.path("announced").exists(),
        "the guard was not waited for"
    );
    assert!(!stage.lives("root"));
    assert_eq!(
        run.member(stage.pid("root")),
        None,
        "the guard is not ended by force"
    );
}

#[test]
fn a_guard_that_does_not_end_is_a_survivor() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, &GUARD.replace("sleep 0.3", "sleep 600"));
    let guard = json!({"pid": stage.pid("root"), "ident": stage.ident("root")});
    let path = marker(&sandbox, &stage.ident("first"), guard.clone());
    std::fs::write(sandbox.path("marked"), "").unwrap();
    let mut record = stage.record("first");
    record["marker"] = json!(path);
    record["guard"] = guard;
    let run = reap_input(&["--kill-grace", "200ms"], &lines(&[record]));
    run.expect("survived", 1);
    assert_eq!(run.pids("survivors"), [stage.pid("root")]);
    assert_eq!(run.member(stage.pid("first")).unwrap(), "terminated");
}

#[test]
fn a_wait_for_the_guard_that_is_interrupted() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, &GUARD.replace("sleep 0.3", "sleep 600"));
    let guard = json!({"pid": stage.pid("root"), "ident": stage.ident("root")});
    let path = marker(&sandbox, &stage.ident("first"), guard.clone());
    std::fs::write(sandbox.path("marked"), "").unwrap();
    let mut record = stage.record("first");
    record["marker"] = json!(path);
    record["guard"] = guard;
    let input = sandbox.path("input");
    std::fs::write(&input, lines(&[record])).unwrap();
    let reaper = command(&["--kill-grace", "60s"])
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Then all that is waited for is the guard.
    until("its death is noted", || {
        std::fs::read_to_string(note(&sandbox)).is_ok_and(|text| text.contains("dead"))
    });
    let pid = nix::unistd::Pid::from_raw(reaper.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let run = Run::of(reaper.wait_with_output().unwrap());
    assert_eq!(run.signal, Some(2), "{run:?}");
    assert_eq!(run.outcome(), "interrupted");
    assert_eq!(run.pids("survivors"), [stage.pid("root")]);
}

#[test]
fn a_guard_of_whom_nothing_can_be_told() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, POLITE);
    let mut record = stage.record("root");
    let elsewhere = "lstart:elsewhere:0:4242:1764426381:0";
    record["guard"] = json!({"pid": 4242, "ident": elsewhere});
    let run = reap_input(&[], &lines(&[record]));
    run.expect("unknown", 3);
    assert!(run.stderr().contains("its guard"), "{run:?}");
    assert!(stage.lives("root"));
}

#[test]
fn of_two_records_the_second_has_the_marker() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, POLITE);
    let path = marker(&sandbox, &stage.ident("root"), Value::Null);
    let mut without = with_marker(&stage, &path);
    without["marker"] = Value::Null;
    let run = reap_input(&[], &lines(&[without, with_marker(&stage, &path)]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(counts(&sandbox, &stage), "the stop was not noted");
}

#[test]
fn what_the_guard_has_started_since_is_what_is_meant() {
    let sandbox = Sandbox::new();
    // The record is of another boot, and so of a process that is gone.
    let script = "setsid sleep 600 & say second $!; say ready; wait $!; sleep 0.1";
    let stage = Stage::new(&sandbox, script);
    let guard = json!({"pid": stage.pid("root"), "ident": stage.ident("root")});
    let path = marker(&sandbox, &stage.ident("second"), guard.clone());
    let second = stage.ident("second");
    let boot = "00000000-0000-4000-8000-000000000000";
    let mut fields: Vec<&str> = second.split(':').collect();
    fields[1] = boot;
    let record = json!({"type": "process", "pid": stage.pid("second"), "ident": fields.join(":"),
        "host": Here::new().host(), "marker": path, "guard": guard});
    let run = reap_input(&[], &lines(&[record]));
    run.expect("terminated", 0);
    assert!(!stage.lives("second") && !stage.lives("root"));
}
