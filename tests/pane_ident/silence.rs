//! Servers that do not say: nothing may be concluded, and nothing is waited for beyond the limit.

use std::time::{Duration, Instant};

use crate::stage::{Tmux, judged, verify, verify_lines};
use crate::support::{Sandbox, handle, number, records, said, until, until_dead};
use process::Signal;

/// Runs `check` while the tmux server is stopped.
fn while_stopped(tmux: &Tmux<'_>, check: impl FnOnce()) {
    let server = handle(tmux.server_pid());
    server.signal(Signal::SIGSTOP);
    // Set on again even where the check fails, so that it can be ended.
    struct Resume(process::Handle);
    impl Drop for Resume {
        fn drop(&mut self) {
            self.0.signal(Signal::SIGCONT);
        }
    }
    let _resume = Resume(server);
    check();
}

#[test]
fn a_stopped_tmux_is_unknown_within_the_limit() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let pane = tmux.window(&["cat"]);
    let (living, dying) = (tmux.capture("%0"), tmux.capture(&pane));
    while_stopped(&tmux, || {
        let started = Instant::now();
        let judged = verify(&sandbox, &living, &["--timeout", "1s"]);
        assert!(started.elapsed() < Duration::from_secs(4));
        judged.is("unknown", "server_silent");
        // What can be told without it is told: one that has ended is gone.
        handle(number(&dying, "pid")).signal(Signal::SIGKILL);
        until_dead(number(&dying, "pid"));
        verify(&sandbox, &dying, &["--timeout", "500ms"]).is("gone", "process_ended");
        let mut command = sandbox.tool("pane-ident");
        command.args([
            "capture",
            "--timeout",
            "500ms",
            "--tmux",
            "%0",
            "--tmux-socket",
        ]);
        let output = command.arg(tmux.socket()).output().unwrap();
        assert_eq!(output.status.code(), Some(124), "{output:?}");
        assert!(said(&output).contains("no answer before the deadline"));
        assert!(output.stdout.is_empty());
    });
    verify(&sandbox, &living, &[]).is("match", "same_process");
}

#[test]
fn one_that_hangs_holds_up_no_other() {
    let sandbox = Sandbox::new();
    let (hangs, answers) = (Tmux::start(&sandbox, "h"), Tmux::start(&sandbox, "a"));
    let lines: String = (0..10)
        .flat_map(|_| [hangs.capture("%0"), answers.capture("%0")])
        .map(|binding| format!("{binding}\n"))
        .collect();
    while_stopped(&hangs, || {
        let started = Instant::now();
        let output = verify_lines(&sandbox, &lines, &["--timeout", "2s"]);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(output.status.code(), Some(3));
        let records = records(&output);
        let states: Vec<_> = records.iter().map(|r| &r["verdict"]["state"]).collect();
        assert_eq!(states, ["unknown", "match"].repeat(10));
    });
}

/// A cleaner of old files removed the socket: the panes live on, and are not to be reaped as if
/// they were orphans.
#[test]
fn a_tmux_whose_socket_was_removed_is_unknown() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let pane = tmux.window(&["cat"]);
    let (living, dying) = (tmux.capture("%0"), tmux.capture(&pane));
    let server = handle(tmux.server_pid());
    std::fs::remove_file(tmux.socket()).unwrap();
    verify(&sandbox, &living, &[]).is("unknown", "server_silent");
    handle(number(&dying, "pid")).signal(Signal::SIGKILL);
    until_dead(number(&dying, "pid"));
    verify(&sandbox, &dying, &[]).is("gone", "process_ended");
    // tmux makes it again.
    server.signal(Signal::SIGUSR1);
    until("the socket is there again", || {
        verify(&sandbox, &living, &[]).state == "match"
    });
}

/// A helper that hangs is ended, with what it has started.
#[test]
fn a_tmux_command_that_hangs_is_not_left_behind() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    let script = "#!/bin/sh\ntrap '' TERM HUP\nsleep 600 &\necho $$ $! > pids\nwait\n";
    let hangs = sandbox.script("hangs", script);
    let words = ["--timeout", "1s", "--tmux-bin", hangs.to_str().unwrap()];
    verify(&sandbox, &binding, &words).is("unknown", "server_silent");
    let pids = std::fs::read_to_string(sandbox.path("pids")).unwrap();
    for pid in pids.split_whitespace() {
        until_dead(pid.parse().unwrap());
    }
}

#[test]
fn a_tmux_command_that_talks_nonsense_is_not_believed() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    for script in [
        "#!/bin/sh\necho hello\n",
        "#!/bin/sh\necho oops >&2; exit 1\n",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\nkill -9 $$\n",
    ] {
        let program = sandbox.script("odd", script);
        let words = ["--tmux-bin", program.to_str().unwrap()];
        verify(&sandbox, &binding, &words).is("unknown", "server_failed");
    }
    verify(&sandbox, &binding, &["--tmux-bin", "/not/there"]).is("unknown", "server_failed");
    // Only absolute entries of PATH are searched.
    sandbox.script("tmux", "#!/bin/sh\ntouch was-run\n");
    let mut command = sandbox.tool("pane-ident");
    command.arg("verify").env("PATH", ".:");
    let output = crate::stage::feed(&mut command, &format!("{binding}\n"));
    judged(&output).is("unknown", "no_multiplexer");
    assert!(!sandbox.path("was-run").exists());
}

#[test]
fn standard_input_that_does_not_end() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let record = serde_json::json!({ "ident": ident.to_string() });
    let started = Instant::now();
    let mut command = sandbox.tool("pane-ident");
    command.args(["verify", "--timeout", "1s", "-o", "verdict.state"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    use std::io::Write;
    writeln!(stdin, "{record}").unwrap();
    let mut ended = None;
    until("it ends", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_eq!(ended.unwrap().code(), Some(3));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    // What had come is judged.
    assert_eq!(output.stdout, b"match\n");
    assert!(said(&output).contains("standard input did not end"));
}

/// A signal ends it at once, and no helper stays behind, nor what that has started.
#[test]
fn a_signal_while_a_server_is_asked() {
    use std::os::unix::process::ExitStatusExt;
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = sandbox.path("binding.json");
    std::fs::write(&binding, tmux.capture("%0").to_string()).unwrap();
    let script = "#!/bin/sh\ntrap '' TERM HUP INT\nsleep 600 &\n\
        echo $$ $! >pids.tmp; mv pids.tmp pids\nwait\n";
    let hangs = sandbox.script("hangs", script);
    let jobs: [&[&str]; 3] = [
        &["verify", "--timeout", "1m"],
        &["capture", "--tmux", "%0", "--timeout", "1m"],
        &["exec", "--binding", "binding.json"],
    ];
    for job in jobs {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            let mut command = sandbox.tool("pane-ident");
            command.args(job).arg("--tmux-bin").arg(&hangs);
            if job[0] == "exec" {
                command.args(["--", "true"]);
            }
            command.stdin(std::fs::File::open(&binding).unwrap());
            let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
            let pids = sandbox.path("pids");
            until("the server is asked", || pids.exists());
            handle(child.id() as i32).signal(signal);
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(signal as i32), "{job:?}: {status:?}");
            let text = std::fs::read_to_string(&pids).unwrap();
            std::fs::remove_file(&pids).unwrap();
            for pid in text.split_whitespace() {
                until_dead(pid.parse().unwrap());
            }
        }
    }
}
