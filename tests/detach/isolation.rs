//! Nothing that reaches the caller reaches the command, and nothing of the caller's is in it.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid as RawPid;

use crate::support::*;

/// Reads the record that a script has written to `name`, once it is whole.
fn record_in(sandbox: &Sandbox, name: &str) -> serde_json::Value {
    let path = sandbox.path(name);
    until("the record is written", || path.exists());
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    sandbox.track(record["ident"].as_str().unwrap());
    record
}

fn status_field(pid: i32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

#[test]
fn it_leads_a_session_and_a_group_without_a_terminal() {
    let sandbox = Sandbox::new();
    let record = sandbox.detach(&["sleep", "600"]);
    let pid = number(&record, "pid");
    let handle = handle(pid);
    let entry = handle.entry().unwrap();
    assert_eq!((entry.pgid, entry.sid, entry.tty), (pid, pid, 0));
    assert_eq!(
        (number(&record, "pgid"), number(&record, "sid")),
        (pid, pid)
    );
    assert_eq!(record["ident"], handle.ident().to_string());
    assert_eq!(record["status"], "started");
}

#[test]
fn signals_to_the_callers_group_do_not_reach_it() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGKILL,
    ] {
        let sandbox = Sandbox::new();
        let mut caller = sandbox
            .bash("detach --record r -- sleep 600 >/dev/null; : >returned; sleep 601")
            .process_group(0)
            .spawn()
            .unwrap();
        // The record is there earlier: a signal to detach itself would be another matter.
        until("detach has returned", || sandbox.path("returned").exists());
        let pid = number(&record_in(&sandbox, "r"), "pid");
        killpg(RawPid::from_raw(caller.id() as i32), signal).unwrap();
        assert_eq!(caller.wait().unwrap().signal(), Some(signal as i32));
        assert!(
            lives(pid),
            "{signal} to the caller's group ended the command"
        );
    }
}

#[test]
fn a_hangup_of_the_callers_terminal_does_not_reach_it() {
    // Each round the terminal goes away the moment that the launcher has returned.
    for _ in 0..rounds(10) {
        let sandbox = Sandbox::new();
        let line = "detach --record r -- sleep 600 >/dev/null; echo done >d; sleep 602";
        let mut terminal = Killed(
            sandbox
                .bash("exec script -qec \"$LINE\" /dev/null")
                .env("LINE", line)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        until("the launcher has returned", || sandbox.path("d").exists());
        let pid = number(&record_in(&sandbox, "r"), "pid");
        // KILL to the terminal's holder closes the pty, and the kernel hangs its session up.
        terminal.0.kill().unwrap();
        terminal.0.wait().unwrap();
        assert!(lives(pid), "the hangup ended the command");
    }
}

#[test]
fn a_bound_on_the_caller_does_not_reach_it() {
    let sandbox = Sandbox::new();
    let status = sandbox
        .bash("timeout -k 0.2 0.5 bash -c 'detach --record r -- sleep 600 >/dev/null; sleep 603'")
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(124));
    assert!(lives(number(&record_in(&sandbox, "r"), "pid")));
}

#[test]
fn a_command_substitution_returns_at_once() {
    let sandbox = Sandbox::new();
    // Were any pipe of the substitution left open in the command, this would take 600 s.
    let line = "x=$(sh -c 'y=$(detach --record r -- sleep 600); echo started'); echo \"$x\"";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(output.stdout, b"started\n");
    assert!(lives(number(&record_in(&sandbox, "r"), "pid")));
}

#[test]
fn descriptors_locks_and_pipes_are_not_passed_on() {
    let sandbox = Sandbox::new();
    let line = "for fd in 3 4 5 6 7 8 9; do eval \"exec $fd>lock$fd\"; flock -n $fd; done
        detach --record r --keep-fd 5 -- sh -c 'echo kept >&5; exec sleep 600' >/dev/null
        for fd in 3 4 6 7 8 9; do eval \"exec $fd>&-\"; flock -n lock$fd true || echo $fd is held; done
        flock -n lock5 true && echo 5 is free";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let pid = number(&record_in(&sandbox, "r"), "pid");
    until("it has written to the descriptor it was given", || {
        std::fs::read(sandbox.path("lock5")).unwrap() == b"kept\n"
    });
    let mut open: Vec<i32> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    open.sort_unstable();
    assert_eq!(open, [0, 1, 2, 5]);
    for fd in 0..3 {
        let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
    }
}

/// As of a server of web pages, whose reader waits for the connection to be closed.
#[test]
fn a_socket_of_the_caller_is_closed_when_the_caller_ends() {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let sandbox = Sandbox::new();
    let (mut client, server) = UnixStream::pair().unwrap();
    let status = sandbox
        .bash("exec 5>&1 6<&1; detach --record r -- sleep 600; echo page")
        .stdout(OwnedFd::from(server))
        .status()
        .unwrap();
    assert!(status.success());
    let mut page = String::new();
    client.read_to_string(&mut page).unwrap();
    assert!(page.ends_with("}\npage\n"), "{page}");
    assert!(lives(number(&record_in(&sandbox, "r"), "pid")));
}

#[test]
fn standard_streams_are_kept_only_when_asked_for() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .tool("detach")
        .args([
            "--keep-fd",
            "0",
            "--keep-fd",
            "1",
            "--record",
            "r",
            "-q",
            "cat",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"hello\n");
    // What a shell has put in place of its background job's input is the job's input.
    let line = "echo hello | sh -c 'detach --keep-fd 0 --keep-fd 1 -q --record s cat & wait'";
    let output = sandbox.bash(line).output().unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
}

/// Marks by which others find it, and numbers that were its caller's, are left as they are.
#[test]
fn variables_are_the_callers() {
    let sandbox = Sandbox::new();
    let variables = [
        ("RUNNER_TRACKING_ID", "github_1"),
        ("EMPTY", ""),
        ("ODD", "a=b\n\u{e9}"),
    ];
    let mut command = sandbox.tool("detach");
    command.args(["--keep-fd", "1", "-q", "--", "/usr/bin/env", "-0"]);
    let output = command.env_clear().envs(variables).output().unwrap();
    let mut there: Vec<_> = output.stdout.split(|&byte| byte == 0).collect();
    there.sort_unstable();
    let mut wanted = variables
        .map(|(name, value)| format!("{name}={value}"))
        .to_vec();
    wanted.push(String::new());
    wanted.sort_unstable();
    let wanted: Vec<_> = wanted.iter().map(String::as_bytes).collect();
    assert_eq!(there, wanted);
}

#[test]
fn a_descriptor_that_is_not_open_cannot_be_kept() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .tool("detach")
        .args(["--keep-fd", "19", "touch", "ran"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("19"), "{output:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn signals_start_at_their_defaults() {
    let sandbox = Sandbox::new();
    // INT, QUIT (as a shell does for `&`), PIPE, and the first and last real-time signals.
    let line = "trap '' INT QUIT PIPE TERM HUP 34 64
        exec env --block-signal=USR1,TERM,INT detach --record r -- sleep 600 >/dev/null";
    assert!(sandbox.bash(line).status().unwrap().success());
    let pid = number(&record_in(&sandbox, "r"), "pid");
    for field in ["SigIgn", "SigBlk", "SigCgt"] {
        assert_eq!(status_field(pid, field), "0000000000000000", "{field}");
    }
    // What a shell has started with `&` ignores INT; this does not.
    handle(pid).signal(Signal::SIGINT);
    until_dead(pid);
}

#[test]
fn a_reader_that_leaves_ends_a_writer_in_it() {
    let sandbox = Sandbox::new();
    let line = "trap '' PIPE; detach --record r -- sh -c 'yes | head -1 >out; echo $? >done'";
    assert!(sandbox.bash(line).status().unwrap().success());
    until("`yes` has ended of its broken pipe", || {
        sandbox.path("done").exists()
    });
}

#[test]
fn umask_and_directory_are_the_callers() {
    let sandbox = Sandbox::new();
    let line = "umask 027; detach -q -- sh -c 'umask >mask; pwd >dir; touch made'";
    assert!(sandbox.bash(line).status().unwrap().success());
    until("it has run", || sandbox.path("made").exists());
    assert_eq!(std::fs::read(sandbox.path("mask")).unwrap(), b"0027\n");
    let dir = std::fs::read_to_string(sandbox.path("dir")).unwrap();
    assert_eq!(
        dir.trim_end(),
        sandbox.path("").canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn whoever_calls_it_is_the_same() {
    let callers = [
        (
            "as the leader of its group",
            "exec detach --record r -- sleep 600 >/dev/null",
        ),
        (
            "with job control",
            "set -m; detach --record r -- sleep 600 >/dev/null & wait $!",
        ),
        (
            "in the background",
            "detach --record r -- sleep 600 >/dev/null & wait $!",
        ),
        (
            "without standard streams",
            "exec detach --record r -- sleep 600 <&- >&- 2>&-",
        ),
        (
            "without an environment",
            "exec env -i \"$(command -v detach)\" --record r -- /bin/sleep 600 >/dev/null",
        ),
        (
            "at the end of a pipe",
            "echo | detach --record r -- sleep 600 | cat >/dev/null",
        ),
    ];
    for (who, line) in callers {
        let sandbox = Sandbox::new();
        let status = sandbox.bash(line).process_group(0).status().unwrap();
        assert!(status.success(), "{who}");
        let record = record_in(&sandbox, "r");
        let pid = number(&record, "pid");
        let handle = handle(pid);
        let entry = handle.entry().unwrap();
        assert_eq!((entry.pgid, entry.sid, entry.tty), (pid, pid, 0), "{who}");
        assert_eq!(record["status"], "started", "{who}");
        for fd in 0..3 {
            let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
            assert_eq!(target.to_str(), Some("/dev/null"), "{who}");
        }
    }
}

#[test]
fn without_proof_nothing_is_executed() {
    // The kernel is made to refuse, or to answer with another session.
    for fault in [
        "setsid:error=EPERM",
        "setsid:retval=77",
        "getsid:retval=78",
        "getpgrp:retval=79",
        "getpgid:retval=79",
    ] {
        let sandbox = Sandbox::new();
        let output = Command::new("strace")
            .args([
                "-f",
                "-qqq",
                "-o",
                "/dev/null",
                "-e",
                &format!("inject={fault}"),
            ])
            .arg(bin("detach"))
            .args(["touch", "ran"])
            .current_dir(sandbox.path(""))
            .output()
            .unwrap();
        let injected = output.status.code() == Some(125);
        // A kernel call that this system's library does not use cannot fail.
        if fault.starts_with("getpg") && output.status.success() {
            continue;
        }
        assert!(injected, "{fault}: {output:?}");
        assert!(output.stdout.is_empty(), "{fault}: {output:?}");
        assert!(said(&output).contains("detach: "), "{fault}: {output:?}");
        assert!(!sandbox.path("ran").exists(), "{fault}");
    }
}

#[test]
fn the_command_finds_its_own_pid_in_its_environment() {
    let sandbox = Sandbox::new();
    let script = "test \"$OWN\" = $$ && test \"$TOO\" = $$ && ps -o pgid=,sid= -p $$ >ids";
    let record = record(
        &sandbox
            .tool("detach")
            .args(["--pid-env", "OWN", "--pid-env", "TOO", "sh", "-c", script])
            .env("OWN", "stale")
            .output()
            .unwrap(),
    );
    until("it has checked itself", || {
        std::fs::read_to_string(sandbox.path("ids")).is_ok_and(|ids| ids.ends_with('\n'))
    });
    let ids = std::fs::read_to_string(sandbox.path("ids")).unwrap();
    let pid = number(&record, "pid").to_string();
    assert_eq!(ids.split_whitespace().collect::<Vec<_>>(), [&pid, &pid]);
    let wrong = sandbox
        .tool("detach")
        .args(["--pid-env", "A=B", "true"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
