//! A command between two checks.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::Tmux;
use crate::support::{Sandbox, handle, said, until, until_dead};

/// `exec` with this binding, these options and this command.
fn command(sandbox: &Sandbox, binding: &Value, options: &[&str], words: &[&str]) -> Command {
    let path = sandbox.path("binding.json");
    std::fs::write(&path, binding.to_string()).unwrap();
    let mut command = sandbox.tool("pane-ident");
    command.arg("exec").arg("--binding").arg(path);
    command.arg("--summary").arg(sandbox.path("summary"));
    command.args(options).arg("--").args(words);
    command
}

fn exec(sandbox: &Sandbox, binding: &Value, options: &[&str], words: &[&str]) -> Output {
    command(sandbox, binding, options, words).output().unwrap()
}

fn summary(sandbox: &Sandbox) -> Value {
    let text = std::fs::read_to_string(sandbox.path("summary")).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_commands_own_output_and_status() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    let script = "echo out \"$@\"; echo err >&2; exit 7";
    let words = [
        "sh", "-c", script, "sh", "{pane}", "{pid}", "{socket}", "x{pane}", "{}",
    ];
    let output = exec(&sandbox, &binding, &[], &words);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let socket = tmux.socket().display();
    let expected = format!("out %0 {} {socket} x{{pane}} {{}}\n", binding["pid"]);
    assert_eq!(String::from_utf8(output.stdout.clone()).unwrap(), expected);
    assert_eq!(said(&output), "err\n");
    let summary = summary(&sandbox);
    let expected = json!({"v": 1, "type": "exec", "ran": true, "exit": 7, "before": "match",
        "after": "match", "window_ms": summary["window_ms"]});
    assert_eq!(summary, expected);
    assert!(summary["window_ms"].as_u64().is_some());
    let text = std::fs::read_to_string(sandbox.path("summary")).unwrap();
    assert!(
        text.starts_with(r#"{"v":1,"type":"exec","ran":true,"exit":7,"before":"match","after":"#)
    );
    // What was refused has left no other's summary behind.
    let nowhere = json!({"v": 1, "pid": binding["pid"], "ident": binding["ident"]});
    for (record, words, code, before) in [
        (json!({"task": 1}), &["true"][..], 122, "unbound"),
        (nowhere, &["true", "{socket}"], 2, "match"),
    ] {
        let output = exec(&sandbox, &record, &[], words);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let expected = json!({"v": 1, "type": "exec", "ran": false, "exit": null,
            "before": before, "after": null, "window_ms": null});
        assert_eq!(self::summary(&sandbox), expected, "{record}");
    }
    // By a signal, as a shell tells it.
    let output = exec(&sandbox, &binding, &[], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137));
}

#[test]
fn what_is_typed_reaches_the_right_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    let words = [
        "tmux",
        "-S",
        "{socket}",
        "send-keys",
        "-t",
        "{pane}",
        "hello",
        "Enter",
    ];
    let output = exec(&sandbox, &binding, &[], &words);
    assert!(output.status.success(), "{output:?}");
    until("it was typed", || {
        tmux.run(&["capture-pane", "-p", "-t", "%0"])
            .contains("hello")
    });
}

#[test]
fn nothing_is_run_without_a_match() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let mut binding = tmux.capture("%0");
    tmux.run(&["respawn-pane", "-k", "-t", "%0", "cat"]);
    let refused = |binding: &Value, state: &str| {
        let output = exec(&sandbox, binding, &[], &["touch", "acted"]);
        assert_eq!(output.status.code(), Some(122), "{output:?}");
        assert!(said(&output).contains("nothing was run"));
        let expected = json!({"v": 1, "type": "exec", "ran": false, "exit": null,
            "before": state, "after": null, "window_ms": null});
        assert_eq!(summary(&sandbox), expected);
    };
    refused(&binding, "foreign");
    binding["ident"] = Value::Null;
    refused(&binding, "unbound");
    let server = handle(tmux.server_pid());
    binding = tmux.capture("%0");
    server.signal(process::Signal::SIGSTOP);
    let started = Instant::now();
    refused(&binding, "unknown");
    assert!(started.elapsed() < Duration::from_secs(10));
    server.signal(process::Signal::SIGCONT);
    let output = exec(&sandbox, &json!({"task": "a"}), &[], &["touch", "acted"]);
    assert_eq!(output.status.code(), Some(122), "{output:?}");
    assert!(!sandbox.path("acted").exists());
}

#[test]
fn a_pane_that_changes_hands_meanwhile() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    let words = [
        "tmux",
        "-S",
        "{socket}",
        "respawn-pane",
        "-k",
        "-t",
        "{pane}",
        "cat",
    ];
    let output = exec(&sandbox, &binding, &[], &words);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    let summary = summary(&sandbox);
    assert_eq!(
        (&summary["before"], &summary["after"]),
        (&json!("match"), &json!("foreign"))
    );
    assert_eq!(summary["exit"], 0);
    // What it was asked to run before is run in the pane's new process by `exec` alone.
    let pane = tmux.window(&["sh", "-c", "read line; exec sleep 600"]);
    let binding = tmux.capture(&pane);
    let script = "tmux -S \"$0\" send-keys -t \"$1\" Enter; \
        until tmux -S \"$0\" list-panes -a -F '#{pane_current_command}' | grep -q sleep; do sleep 0.02; done";
    let words = ["sh", "-c", script, "{socket}", "{pane}"];
    let output = exec(&sandbox, &binding, &["--same-argv"], &words);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
}

#[test]
fn a_caller_that_ignores_dead_children_gets_the_status() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let binding = json!({"ident": ident.to_string()}).to_string();
    std::fs::write(sandbox.path("binding"), binding).unwrap();
    let line = "trap '' CHLD; exec pane-ident exec --binding binding -- sh -c 'exit 7'";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn commands_that_cannot_be_run() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let binding = json!({"ident": ident.to_string()});
    let status = |words: &[&str]| exec(&sandbox, &binding, &[], words).status.code();
    assert_eq!(status(&["no-such-command"]), Some(127));
    assert_eq!(status(&["/not/there"]), Some(127));
    std::fs::write(sandbox.path("plain"), "").unwrap();
    assert_eq!(status(&["./plain"]), Some(126));
    assert_eq!(summary(&sandbox)["ran"], false);
    sandbox.script("lost", "#!/no/such/interpreter\n");
    assert_eq!(status(&["./lost"]), Some(126));
    sandbox.script("plain", "touch acted\n");
    assert_eq!(status(&["./plain"]), Some(126));
    assert!(!sandbox.path("acted").exists(), "no shell is tried");
    // A process alone has no pane and no socket.
    assert_eq!(status(&["true", "{pid}"]), Some(0));
    assert_eq!(status(&["true", "{pane}"]), Some(2));
    // A summary that cannot be written is found out before.
    for summary in ["/dev/null", "/not/there/summary", "."] {
        let path = sandbox.path("binding.json");
        let mut command = sandbox.tool("pane-ident");
        command.arg("exec").arg("--binding").arg(path);
        command.args(["--summary", summary, "--", "touch", "acted"]);
        assert_eq!(
            command.output().unwrap().status.code(),
            Some(125),
            "{summary}"
        );
        assert!(!sandbox.path("acted").exists());
    }
    let mut command = sandbox.tool("pane-ident");
    command.args(["exec", "--binding", "/not/there", "--", "true"]);
    assert_eq!(command.output().unwrap().status.code(), Some(125));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let binding = json!({"ident": ident.to_string()});
    let script = "trap '' TERM; sleep 600 & echo $$ $! >pids; wait; wait";
    let started = Instant::now();
    let output = exec(
        &sandbox,
        &binding,
        &["--timeout", "500ms"],
        &["sh", "-c", script],
    );
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let pids = std::fs::read_to_string(sandbox.path("pids")).unwrap();
    for pid in pids.split_whitespace() {
        until_dead(pid.parse().unwrap());
    }
    assert_eq!(summary(&sandbox)["after"], "match");
    let output = exec(&sandbox, &binding, &["--timeout", "60"], &["true"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_signal_ends_it_and_its_command() {
    use std::os::unix::process::ExitStatusExt;
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let binding = json!({"ident": ident.to_string()});
    for (signal, number) in [(process::Signal::SIGTERM, 15), (process::Signal::SIGINT, 2)] {
        let script =
            "trap '' TERM INT; echo $$ >pid.tmp; mv pid.tmp pid; while :; do sleep 600; done";
        let mut child = command(&sandbox, &binding, &[], &["sh", "-c", script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("it runs", || sandbox.path("pid").exists());
        let pid: i32 = std::fs::read_to_string(sandbox.path("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        std::fs::remove_file(sandbox.path("pid")).unwrap();
        let sent = Instant::now();
        handle(child.id() as i32).signal(signal);
        let status = child.wait().unwrap();
        assert!(sent.elapsed() < Duration::from_secs(10));
        assert_eq!(status.signal(), Some(number), "{status:?}");
        until_dead(pid);
        assert_eq!(summary(&sandbox)["after"], Value::Null);
    }
}

/// A tmux that answers until the command has run, and hangs from then on.
fn silent_afterwards(sandbox: &Sandbox) -> String {
    let script = "#!/bin/sh\n[ -e ran ] || exec tmux \"$@\"\n\
        echo $$ >asked.tmp; mv asked.tmp asked; exec sleep 600\n";
    let program = sandbox.script("fades", script);
    program.to_str().unwrap().to_owned()
}

/// What was run is told, also where the second check is never done.
#[test]
fn a_signal_during_the_second_check() {
    use std::os::unix::process::ExitStatusExt;
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let options = ["--tmux-bin", &silent_afterwards(&sandbox)];
    let words = ["sh", "-c", "touch ran; exit 7"];
    let mut child = command(&sandbox, &tmux.capture("%0"), &options, &words)
        .spawn()
        .unwrap();
    until("it checks again", || sandbox.path("asked").exists());
    handle(child.id() as i32).signal(process::Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    let asked = std::fs::read_to_string(sandbox.path("asked")).unwrap();
    until_dead(asked.trim().parse().unwrap());
    let summary = summary(&sandbox);
    let expected = json!({"v": 1, "type": "exec", "ran": true, "exit": 7, "before": "match",
        "after": null, "window_ms": summary["window_ms"]});
    assert_eq!(summary, expected);
}

/// A server that says nothing afterwards: it may have been another pane, and no more is claimed.
#[test]
fn a_server_that_is_silent_afterwards() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let options = ["--tmux-bin", &silent_afterwards(&sandbox)];
    let output = exec(&sandbox, &tmux.capture("%0"), &options, &["touch", "ran"]);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert!(said(&output).contains("cannot be told"), "{output:?}");
    assert_eq!(summary(&sandbox)["after"], "unknown");
}
