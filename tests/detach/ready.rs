//! Readiness: by socket, file and line; and what happens when it does not come.

use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid as RawPid;

use crate::support::*;

/// A server that listens on the socket `s` once `go` exists, and accepts for ever.
const SERVER: &str = "
import os, socket, sys, time
while not os.path.exists('go'): time.sleep(0.01)
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen(8)
while True: server.accept()
";

fn run(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.tool("detach").args(words).output().unwrap()
}

/// The pids that the tree of [`stubborn`] has written down.
fn pids(sandbox: &Sandbox) -> Vec<i32> {
    let read = || std::fs::read_to_string(sandbox.path("pids")).unwrap_or_default();
    until("the tree has written its pids", || {
        read().lines().count() >= 3
    });
    read().lines().map(|line| line.parse().unwrap()).collect()
}

/// A tree that ignores TERM, with a child in a session of its own and a grandchild that has
/// forked twice, so that nobody is its parent.
fn stubborn(sandbox: &Sandbox) -> String {
    let script = "#!/bin/bash
        trap '' TERM HUP
        echo $$ >>pids
        setsid bash -c 'trap \"\" TERM; echo $$ >>pids; sleep 600 & wait; wait' &
        (setsid bash -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 600; done' &)
        while :; do sleep 600 & wait; done";
    sandbox
        .script("stubborn", script)
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_socket_that_answers_is_ready() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("go"), "").unwrap();
    // A file left by a server that was killed answers nobody.
    drop(UnixListener::bind(sandbox.path("stale")).unwrap());
    std::fs::rename(sandbox.path("stale"), sandbox.path("s")).unwrap();
    let server = SERVER.replace("server.bind", "os.unlink('s'); server.bind");
    let output = run(&sandbox, &["--ready-socket", "s", "python3", "-c", &server]);
    let value = record(&output);
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["status"], "ready", "{output:?}");
    assert_eq!(value["ready"]["by"], "socket");
    assert!(lives(number(&value, "pid")));
}

#[test]
fn a_server_below_the_command_is_its_own() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("go"), "").unwrap();
    let script = sandbox.script("server.py", SERVER);
    let line = format!("(setsid python3 {} &); exec sleep 600", script.display());
    let output = run(&sandbox, &["--ready-socket", "s", "sh", "-c", &line]);
    let value = record(&output);
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["status"], "ready", "{output:?}");
    let stream = std::os::unix::net::UnixStream::connect(sandbox.path("s")).unwrap();
    sandbox.track_pid(process::peer(&stream).unwrap().pid.unwrap().get());
}

#[test]
fn a_socket_that_answers_before_is_already_up() {
    let sandbox = Sandbox::new();
    let _server = UnixListener::bind(sandbox.path("s")).unwrap();
    let output = run(&sandbox, &["--ready-socket", "s", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let value = record(&output);
    assert_eq!(value["status"], "running");
    let own = handle(std::process::id() as i32);
    assert_eq!(value["ident"], own.ident().to_string());
    assert_eq!(number(&value, "sid"), own.entry().unwrap().sid);
    assert!(!value["argv"].as_array().unwrap().is_empty());
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn another_users_server_occupies_the_socket() {
    if !nix::unistd::geteuid().is_root() {
        // Only root can play another user.
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("go"), "").unwrap();
    let script = sandbox.script("server.py", SERVER);
    drop(sandbox.tool_as_user("detach"));
    let mut server = Command::new("setpriv");
    server.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/python3",
    ]);
    let server = server
        .arg(script)
        .current_dir(sandbox.path(""))
        .spawn()
        .unwrap();
    let _server = Killed(server);
    let socket = process::SocketPath::new(sandbox.path("s").as_os_str()).unwrap();
    until("it listens", || {
        matches!(process::probe_socket(&socket), Ok(Some(_)))
    });
    let output = run(&sandbox, &["--ready-socket", "s", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(record(&output)["status"], "occupied");
    assert!(said(&output).contains("65534"), "{output:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_strangers_server_that_comes_after_the_start_is_not_readiness() {
    let sandbox = Sandbox::new();
    let script = "touch started; exec sleep 600";
    let mut child = sandbox.tool("detach");
    let child = child
        .args(["--ready-socket", "s", "sh", "-c", script])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("the command runs", || sandbox.path("started").exists());
    let _server = UnixListener::bind(sandbox.path("s")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let value = record(&output);
    assert_eq!(value["status"], "occupied");
    assert!(!lives(number(&value, "pid")), "what was started is ended");
}

#[test]
fn a_full_backlog_is_no_answer() {
    let sandbox = Sandbox::new();
    let server = "
import os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen(0)
clients = []
while True:
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    try: client.connect('s')
    except BlockingIOError: break
    clients.append(client)
open('full', 'w')
while not os.path.exists('go'): time.sleep(0.01)
while True: server.accept()
";
    // The file `full` is made before the name `s` is, so that detach never sees room.
    let server = server
        .replace("server.bind('s')", "server.bind('s2')")
        .replace(
            "open('full', 'w')",
            "os.rename('s2', 's'); open('full', 'w')",
        );
    let server = server.replace("client.connect('s')", "client.connect('s2')");
    let child = sandbox
        .tool("detach")
        .args(["--ready-socket", "s", "python3", "-c", &server])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("the backlog is full", || sandbox.path("full").exists());
    std::thread::sleep(Duration::from_millis(120)); // two probes, to give a wrong answer its chance
    std::fs::write(sandbox.path("go"), "").unwrap();
    let value = record(&child.wait_with_output().unwrap());
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["status"], "ready");
    assert!(
        value["ready"]["after_ms"].as_u64().unwrap() >= 120,
        "{value}"
    );
}

#[test]
fn a_socket_that_may_not_be_connected_to_yet_is_tried_again() {
    // Root may connect to any; so another user it is.
    let server = "
import os, socket, time
os.umask(0o777)
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen(8)
while not os.path.exists('go'): time.sleep(0.01)
os.chmod('s', 0o600)
while True: server.accept()
";
    let sandbox = Sandbox::new();
    let mut command = sandbox.tool_as_user("detach");
    command.args(["--ready-socket", "s", "/usr/bin/python3", "-c", server]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("it listens", || sandbox.path("s").exists());
    std::thread::sleep(Duration::from_millis(120)); // two probes, to give a wrong answer its chance
    std::fs::write(sandbox.path("go"), "").unwrap();
    let value = record(&child.wait_with_output().unwrap());
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["status"], "ready", "{value}");

    let sandbox = Sandbox::new();
    let mut command = sandbox.tool_as_user("detach");
    command.args(["--ready-socket", "s", "--ready-timeout", "3s", "--"]);
    let output = command
        .args(["/usr/bin/python3", "-c", server])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let text = "no answer of the socket s (Permission denied";
    assert!(said(&output).contains(text), "{output:?}");
}

#[test]
fn a_path_that_fits_no_socket_is_wrong_usage() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(120);
    let output = run(&sandbox, &["--ready-socket", &long, "touch", "ran"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains(&process::SocketPath::MAX.to_string()),
        "{output:?}"
    );
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn an_old_file_neither_counts_nor_prevents() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("f"), "old").unwrap();
    let output = run(
        &sandbox,
        &[
            "--ready-file",
            "f",
            "--ready-timeout",
            "300ms",
            "sleep",
            "600",
        ],
    );
    assert_eq!(
        output.status.code(),
        Some(124),
        "an old file is not readiness: {output:?}"
    );
    for change in [
        "touch f",
        "rm f; touch f",
        "echo new >g; mv g f",
        "echo more >>f",
    ] {
        let script = format!("sleep 0.02; {change}; exec sleep 600");
        let output = run(&sandbox, &["--ready-file", "f", "sh", "-c", &script]);
        let value = record(&output);
        sandbox.track(value["ident"].as_str().unwrap());
        assert_eq!(value["status"], "ready", "{change}: {output:?}");
        assert_eq!(value["ready"]["by"], "file");
    }
}

#[test]
fn a_line_counts_only_after_the_start() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("log"), "ready\n").unwrap();
    let words = ["--log", "log", "--ready-line", "ready", "--ready-timeout"];
    let output = run(&sandbox, &[&words[..], &["300ms", "sleep", "600"]].concat());
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let script = "printf rea; sleep 0.03; printf 'dy now\\n'; exec sleep 600";
    let output = run(
        &sandbox,
        &[&words[..], &["20s", "sh", "-c", script]].concat(),
    );
    let value = record(&output);
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["ready"]["by"], "line", "{output:?}");
}

#[test]
fn all_conditions_must_hold() {
    let sandbox = Sandbox::new();
    let script = "touch a; echo up; until [ -e go ]; do sleep 0.01; done; touch b; exec sleep 600";
    let words = [
        "--log",
        "log",
        "--ready-line",
        "up",
        "--ready-file",
        "a",
        "--ready-file",
        "b",
    ];
    let child = sandbox
        .tool("detach")
        .args(words)
        .args(["sh", "-c", script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("two of them hold", || sandbox.path("a").exists());
    std::fs::write(sandbox.path("go"), "").unwrap();
    let value = record(&child.wait_with_output().unwrap());
    sandbox.track(value["ident"].as_str().unwrap());
    assert_eq!(value["status"], "ready");
    assert!(
        sandbox.path("b").exists(),
        "it was ready before all conditions held"
    );
}

#[test]
fn a_command_that_ends_first_is_known_at_once() {
    let sandbox = Sandbox::new();
    let script = "echo starting; echo 'cannot bind' >&2; exit 3";
    let began = Instant::now();
    let output = run(
        &sandbox,
        &[
            "--log",
            "log",
            "--ready-socket",
            "s",
            "--ready-timeout",
            "60s",
            "sh",
            "-c",
            script,
        ],
    );
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "it waited for the deadline"
    );
    assert_eq!(output.status.code(), Some(1));
    let value = record(&output);
    assert_eq!(value["status"], "exited");
    assert_eq!(
        value["exit"],
        serde_json::json!({"code": 3, "signal": null, "core": false})
    );
    assert!(said(&output).contains("cannot bind"), "{output:?}");
    assert!(said(&output).contains("status 3"), "{output:?}");

    let output = run(
        &sandbox,
        &["--ready-file", "f", "sh", "-c", "kill -SEGV $$"],
    );
    assert_eq!(record(&output)["exit"]["signal"], "SEGV", "{output:?}");
}

#[test]
fn a_command_that_was_ready_and_ends_at_once_was_ready() {
    // It ends before the next look, or even before the first one. The server of the last is a
    // child, and goes on.
    let server = SERVER.replace("while True", "if os.fork(): sys.exit(6)\nwhile True");
    let file = ["--ready-file", "f", "sh", "-c", "touch f; exit 6"];
    let line = [
        "--log",
        "l",
        "--ready-line",
        "up",
        "sh",
        "-c",
        "echo up; exit 6",
    ];
    let socket = ["--ready-socket", "s", "python3", "-c", &server];
    let table: [(&str, &[&str]); 3] = [("file", &file), ("line", &line), ("socket", &socket)];
    for (by, words) in table {
        for _ in 0..rounds(3) {
            let sandbox = Sandbox::new();
            std::fs::write(sandbox.path("go"), "").unwrap();
            let output = run(&sandbox, words);
            let value = record(&output);
            let leader = number(&value, "pid");
            for server in session(leader).into_iter().filter(|&pid| pid != leader) {
                sandbox.track_pid(server);
            }
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(
                (&value["status"], &value["ready"]["by"]),
                (&"ready".into(), &by.into())
            );
            let exit = &value["exit"]["code"];
            assert!(exit.is_null() || exit == 6, "{value}");
        }
    }
    for words in [&file[..], &line[..]] {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, &[&["--wait"], words].concat());
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        assert_eq!(said(&output), "");
    }
}

#[test]
fn at_the_deadline_nothing_is_left() {
    let sandbox = Sandbox::new();
    let tree = stubborn(&sandbox);
    let output = run(
        &sandbox,
        &["--ready-file", "f", "--ready-timeout", "1500ms", &tree],
    );
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let value = record(&output);
    assert_eq!(value["status"], "not_ready");
    assert_eq!(value["exit"]["signal"], "KILL");
    for pid in pids(&sandbox) {
        assert!(!lives(pid), "{pid} outlived the deadline");
    }
    assert!(session(number(&value, "pid")).is_empty());
}

#[test]
fn a_command_that_is_still_starting_is_ended_with_detach() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let sandbox = Sandbox::new();
        let tree = stubborn(&sandbox);
        let mut child = sandbox.tool("detach");
        let child = child
            .args(["--ready-file", "f", "--ready-timeout", "60s", &tree])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pids = pids(&sandbox);
        kill(RawPid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal as i32), "{output:?}");
        let name = signal.as_str().trim_start_matches("SIG");
        assert_eq!(
            said(&output),
            format!("detach: interrupted by {name}: the command has been ended\n")
        );
        for pid in pids {
            until_dead(pid);
        }
    }
}

/// In a pid namespace whose /proc is another one's, where nobody can be held by a handle: whatever
/// the reason, what is said to have been ended has been.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_identified_is_ended_too() {
    // Some of it is deaf to TERM; an orphan of the group needs a moment after it.
    let deaf =
        r#"trap '' TERM; (trap '' TERM; echo x >inner; sleep 600) & echo $$ >fp; exec sleep 600"#;
    let mild = r#"(trap 'sleep 0.1; echo >mild; exit' TERM; echo x >inner; while :; do sleep 0.02; done) &
        until [ -e inner ]; do sleep 0.01; done; echo $$ >fp; exec sleep 600"#;
    let table = [
        (
            deaf,
            "--ready-file zz --ready-timeout 1500ms -q",
            "",
            124,
            "no file",
        ),
        (
            mild,
            "--ready-file zz --ready-timeout 1500ms -q",
            "",
            124,
            "no file",
        ),
        (deaf, "--wait --timeout 1500ms --grace 300ms", "", 124, ""),
        (
            mild,
            "--log l --ready-file fp --keep-fd 5",
            ">/dev/full",
            125,
            "standard output",
        ),
    ];
    for (script, words, redirected, status, expected) in table {
        let sandbox = Sandbox::new();
        // The first process of the namespace outlives all others of it, and sees all of them.
        let line = format!(
            "exec 5<.; detach {words} -- bash -c \"$SCRIPT\" {redirected}; echo $?
             kill -KILL -- -$(<fp) 2>/dev/null; echo $?"
        );
        let mut command = sandbox.bash("exec setsid --wait unshare -Urpf bash -c \"$LINE\"");
        let output = command
            .env("LINE", line)
            .env("SCRIPT", script)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(text, format!("{status}\n1\n"), "{words}: {output:?}");
        assert!(sandbox.path("inner").exists(), "{words}: {output:?}");
        assert_eq!(
            sandbox.path("mild").exists(),
            script == mild,
            "{words}: {output:?}"
        );
        let said = said(&output);
        assert!(said.contains(expected), "{words}: {said}");
        assert!(
            !said.contains("lives on") && !said.contains("not all"),
            "{words}: {said}"
        );
    }
}
