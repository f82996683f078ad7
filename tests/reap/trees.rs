//! Trees and groups, whole: what other tools leave behind of them.

use std::time::{Duration, Instant};

use crate::stage::{Stage, command, is_alive, reap};
use crate::support::{Sandbox, state, until};

/// A leader with two children, in one group.
const FAMILY: &str = "sleep 600 & say one $!; sleep 600 & say two $!; say ready; wait";

#[test]
fn a_tree_that_ends_when_it_is_asked() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, FAMILY);
    let run = reap(&[&stage.ident("root")]);
    run.expect("terminated", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["TERM"]));
    assert_eq!(run.reap()["survivors"], serde_json::json!([]));
    let order = run.pids("members");
    assert_eq!(order[0], stage.pid("root"), "the root is first");
    for name in ["root", "one", "two"] {
        assert!(!stage.lives(name), "{name} lives");
        assert_eq!(run.member(stage.pid(name)).unwrap(), "terminated");
    }
}

/// Before something is ended, eyes want to see whom else it would take along.
#[test]
fn a_line_for_eyes_names_the_whole_tree() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, FAMILY);
    let ident = stage.ident("root");
    let output = command(&["--dry-run", "-H", &ident]).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    for name in ["root", "one", "two"] {
        let pid = stage.pid(name).to_string();
        assert!(
            line.split_whitespace().skip(1).any(|word| word == pid),
            "{name}: {line}"
        );
    }
}

#[test]
fn a_tree_that_ignores_term() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, &format!("trap '' TERM; {FAMILY}"));
    let run = reap(&["--grace", "200ms", &stage.ident("root")]);
    run.expect("killed", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["TERM", "KILL"]));
    for name in ["root", "one", "two"] {
        assert!(!stage.lives(name), "{name} lives");
    }
}

#[test]
fn without_kill_it_survives() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, &format!("trap '' TERM; {FAMILY}"));
    let run = reap(&["--no-kill", "--grace", "50ms", &stage.ident("root")]);
    run.expect("survived", 1);
    assert_eq!(run.reap()["signals"], serde_json::json!(["TERM"]));
    assert_eq!(run.pids("survivors").len(), 3);
    assert!(run.reap()["survivors"][0]["state"].is_string());
    assert!(stage.lives("root"));
}

#[test]
fn only_who_stays_is_killed() {
    let sandbox = Sandbox::new();
    let script = "sleep 600 & say one $!; (trap '' TERM; exec sleep 600) & say two $!
        until grep -q 'SigIgn:.*4...$' /proc/$!/status; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--grace", "200ms", &stage.ident("root")]);
    run.expect("killed", 0);
    assert_eq!(run.member(stage.pid("one")).unwrap(), "terminated");
    assert_eq!(run.member(stage.pid("two")).unwrap(), "killed");
}

#[test]
fn a_child_in_a_session_of_its_own() {
    let sandbox = Sandbox::new();
    // The child starts its session before it is told of.
    let script = "sleep 600 & say one $!
        setsid bash -c 'echo \"two $$\" >>\"$NAMES\"; exec sleep 600' &
        until grep -q two \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    reap(&[&stage.ident("root")]).expect("terminated", 0);
    for name in ["root", "one", "two"] {
        assert!(!stage.lives(name), "{name} lives");
    }
}

#[test]
fn a_stopped_tree_acts_on_the_signal() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo asked >asked; exit' TERM
        sleep 600 & say one $!; kill -STOP $!; say ready; while :; do wait; done";
    let stage = Stage::new(&sandbox, script);
    let root = stage.pid("root");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(root),
        nix::sys::signal::Signal::SIGSTOP,
    )
    .unwrap();
    until("both are stopped", || {
        state(root) == Some('T') && state(stage.pid("one")) == Some('T')
    });
    let run = reap(&[&stage.ident("root")]);
    run.expect("terminated", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["TERM", "CONT"]));
    assert!(sandbox.path("asked").exists(), "its handler has not run");
}

#[test]
fn a_stopped_process_that_ignores_term_is_killed() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(
        &sandbox,
        "trap '' TERM; say ready; kill -STOP $$; sleep 600",
    );
    until("it is stopped", || state(stage.pid("root")) == Some('T'));
    let run = reap(&["--grace", "100ms", &stage.ident("root")]);
    run.expect("killed", 0);
}

#[test]
fn an_orphan_in_the_group() {
    let sandbox = Sandbox::new();
    // The grandchild's parent is gone: only the group tells whose it is.
    let script = "sleep 600 & say one $!
        bash -c 'sleep 600 & echo \"two $!\" >>\"$NAMES\"'; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    reap(&[&stage.ident("root")]).expect("terminated", 0);
    for name in ["root", "one", "two"] {
        assert!(!stage.lives(name), "{name} lives");
    }
}

#[test]
fn the_tree_alone_does_not_reach_an_orphan() {
    let sandbox = Sandbox::new();
    let script = "bash -c 'sleep 600 & echo \"two $!\" >>\"$NAMES\"'; say ready; sleep 600";
    let stage = Stage::new(&sandbox, script);
    reap(&["--scope", "tree", &stage.ident("root")]).expect("terminated", 0);
    assert!(stage.lives("two"));
}

#[test]
fn the_process_alone_and_the_group_alone() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, FAMILY);
    reap(&["--scope", "process", &stage.ident("one")]).expect("terminated", 0);
    assert!(stage.lives("root") && stage.lives("two"));

    let script = "sleep 600 & say one $!
        setsid bash -c 'echo \"two $$\" >>\"$NAMES\"; exec sleep 600' &
        until grep -q two \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    reap(&["--scope", "group", &stage.ident("root")]).expect("terminated", 0);
    assert!(!stage.lives("root") && !stage.lives("one"));
    assert!(stage.lives("two"), "it is in a group of its own");
}

#[test]
fn who_leads_no_group_is_ended_alone() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, &FAMILY.replace("wait", "sleep 600"));
    for scope in ["group", "auto"] {
        let name = if scope == "group" { "one" } else { "two" };
        let run = reap(&["--scope", scope, &stage.ident(name)]);
        run.expect("terminated", 0);
        assert_eq!(run.pids("members"), [stage.pid(name)]);
        assert!(stage.lives("root"), "its leader's group was taken");
    }
}

#[test]
fn a_parent_that_never_waits() {
    let sandbox = Sandbox::new();
    // The test is that parent: the root is its child, and is not collected.
    let stage = Stage::new(&sandbox, FAMILY);
    let began = Instant::now();
    let run = reap(&[&stage.ident("root")]);
    run.expect("terminated", 0);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "a zombie was waited for"
    );
    assert!(run.pids("zombies").contains(&stage.pid("root")), "{run:?}");
    assert_eq!(state(stage.pid("root")), Some('Z'));
    // Dead already, and its entry still there.
    let again = reap(&[&stage.ident("root")]);
    again.expect("gone", 0);
    assert_eq!(again.reap()["signals"], serde_json::json!([]));
    assert!(again.pids("zombies").contains(&stage.pid("root")));
}

#[test]
fn a_leader_that_is_a_zombie_still_names_its_group() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, FAMILY);
    kill_only(stage.pid("root"));
    until("the leader is a zombie", || {
        state(stage.pid("root")) == Some('Z')
    });
    assert!(stage.lives("one") && stage.lives("two"));
    let run = reap(&[&stage.ident("root")]);
    run.expect("terminated", 0);
    assert!(!stage.lives("one") && !stage.lives("two"));
    // The number is its own as well, while the zombie is there.
    let stage = Stage::new(&sandbox, FAMILY);
    kill_only(stage.pid("root"));
    until("the leader is a zombie", || {
        state(stage.pid("root")) == Some('Z')
    });
    reap(&[&stage.pid("root").to_string()]).expect("terminated", 0);
    assert!(!stage.lives("one") && !stage.lives("two"));
}

fn kill_only(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[test]
fn until_no_entry_is_left() {
    let sandbox = Sandbox::new();
    // A parent that collects its child half a second after its death.
    let script = "exec python3 -c '
import os, time
child = os.fork()
if child == 0:
    os.execlp(\"sleep\", \"sleep\", \"600\")
open(os.environ[\"NAMES\"], \"a\").write(f\"one {child}\\nready\\n\")
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
time.sleep(0.5)
os.wait()
time.sleep(600)'";
    let stage = Stage::new(&sandbox, script);
    let began = Instant::now();
    let run = reap(&["--until", "vanished", &stage.ident("one")]);
    run.expect("terminated", 0);
    assert!(run.pids("zombies").is_empty());
    assert_eq!(state(stage.pid("one")), None, "an entry is left");
    assert!(began.elapsed() >= Duration::from_millis(400));

    // A parent that never does: dead is dead, and it is said.
    let stage = Stage::new(&sandbox, FAMILY);
    let run = reap(&[
        "--until",
        "vanished",
        "--kill-grace",
        "300ms",
        &stage.ident("root"),
    ]);
    run.expect("terminated", 0);
    assert!(run.pids("zombies").contains(&stage.pid("root")));
}

#[test]
fn children_that_are_forked_while_dying() {
    let sandbox = Sandbox::new();
    // In the group, its parent gone; and in a session of its own below a parent that stays.
    let script = "trap 'trap \"\" TERM; (trap \"\" TERM; exec sleep 600) & say late $!; exit' TERM
        say ready; while :; do sleep 0.05; done";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--grace", "300ms", &stage.ident("root")]);
    run.expect("killed", 0);
    assert_eq!(run.pids("survivors"), [] as [i32; 0]);
    let late = said(&sandbox, "late");
    assert_eq!(run.member(late).unwrap(), "killed", "{run:?}");
}

#[test]
fn children_that_are_forked_between_the_stages() {
    let sandbox = Sandbox::new();
    let script =
        "trap 'setsid bash -c \"trap : TERM; echo late \\$\\$ >>\\$NAMES; exec sleep 600\" &' TERM
        say ready; while :; do sleep 0.05; done";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--grace", "1s", &stage.ident("root")]);
    run.expect("killed", 0);
    let late = said(&sandbox, "late");
    assert_eq!(run.member(late).unwrap(), "killed", "{run:?}");
    assert_ne!(state(late), Some('S'));
}

#[test]
fn an_orphan_that_a_member_with_its_own_group_leaves() {
    let sandbox = Sandbox::new();
    // Neither the parent nor the target's group tells whose the late child is: it is in the group
    // of a member that is gone by then.
    let script = "setsid bash -c '
            say() { echo \"$1 $2\" >>\"$NAMES\"; }
            trap \"(trap : TERM; exec sleep 600) & say late \\$!; exit\" TERM
            say one $$; while :; do sleep 0.05; done' &
        until grep -q one \"$NAMES\"; do :; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--grace", "500ms", &stage.ident("root")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let late = said(&sandbox, "late");
    assert_eq!(run.member(late).unwrap(), "killed", "{run:?}");
}

/// What a script has told after the beginning.
fn said(sandbox: &Sandbox, name: &str) -> i32 {
    let folder = sandbox.path("");
    let find = || {
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        let mut pids = files.filter_map(|file| {
            let text = std::fs::read_to_string(file.path()).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<i32>().ok()
        });
        pids.next()
    };
    until("it is told", || find().is_some());
    find().unwrap()
}

#[test]
fn a_subreaper_with_an_adopted_worker() {
    let sandbox = Sandbox::new();
    let script = "exec python3 -c '
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        while os.getppid() != int(os.environ[\"ROOT\"]): pass
        print(\"worker\", os.getpid(), file=open(os.environ[\"NAMES\"], \"a\"), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists(os.environ[\"NAMES\"]) or \"worker\" not in open(os.environ[\"NAMES\"]).read():
    time.sleep(0.01)
print(\"ready\", file=open(os.environ[\"NAMES\"], \"a\"), flush=True)
time.sleep(600)'";
    let stage = Stage::new(&sandbox, &format!("export ROOT=$$; {script}"));
    let worker = stage.ident("worker");
    reap(&[&stage.ident("root")]).expect("terminated", 0);
    assert!(
        !is_alive(&worker.parse().unwrap()),
        "the adopted worker lives"
    );
}

#[test]
fn a_process_that_may_not_be_signalled() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, "say ready; exec sleep 600");
    let output = std::process::Command::new("setpriv")
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--",
        ])
        .arg(readable_copy(&sandbox))
        .args([
            "--grace",
            "100ms",
            "--kill-grace",
            "100ms",
            &stage.ident("root"),
        ])
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let run = crate::stage::Run::of(output);
    run.expect("denied", 1);
    assert_eq!(run.pids("survivors"), [stage.pid("root")]);
    assert!(stage.lives("root"));
}

/// The tool where every user can execute it.
fn readable_copy(sandbox: &Sandbox) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path(""), all).unwrap();
    sandbox.copy_of(crate::support::bin("reap"), "reap")
}

#[test]
fn a_lock_wrapper_does_not_hide_what_it_wraps() {
    let sandbox = Sandbox::new();
    let script = "flock lock sleep 600 & say flock $!
        until [ -n \"$(cat /proc/$!/task/$!/children)\" ]; do :; done
        say sleep $(cat /proc/$!/task/$!/children); say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&[&stage.ident("flock")]);
    run.expect("terminated", 0);
    assert_eq!(
        run.pids("members"),
        [stage.pid("flock"), stage.pid("sleep")]
    );
    assert!(!stage.lives("sleep"));
}

#[test]
fn a_parent_of_one_is_no_reason() {
    let sandbox = Sandbox::new();
    // A service with init for its parent, beside the target.
    let script =
        "bash -c 'setsid sleep 600 & echo \"service $!\" >>\"$NAMES\"'; say ready; sleep 600";
    let stage = Stage::new(&sandbox, script);
    until("it is another session's", || {
        crate::support::handle(stage.pid("service"))
            .entry()
            .is_some_and(|entry| entry.sid == stage.pid("service"))
    });
    reap(&[&stage.ident("root")]).expect("terminated", 0);
    assert!(stage.lives("service"));
}

#[test]
fn a_dry_run_signals_nobody() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, FAMILY);
    let run = reap(&["--dry-run", &stage.ident("root")]);
    run.expect("dry_run", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["TERM"]));
    assert_eq!(run.pids("members").len(), 3);
    assert!(stage.lives("root") && stage.lives("one") && stage.lives("two"));
}

#[test]
fn the_first_signal_is_to_choose() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo hup >hup; exit' HUP; say ready; while :; do sleep 0.05; done";
    let stage = Stage::new(&sandbox, script);
    let run = reap(&["--signal", "SIGHUP", &stage.ident("root")]);
    run.expect("terminated", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["HUP"]));
    assert!(sandbox.path("hup").exists());
    let stage = Stage::new(&sandbox, FAMILY);
    let run = reap(&["-s", "9", &stage.ident("root")]);
    run.expect("killed", 0);
    assert_eq!(run.reap()["signals"], serde_json::json!(["KILL"]));
}
