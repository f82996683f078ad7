//! TERM, INT and HUP end a tool at once, by that signal; one that was ignored stays ignored.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::{Job, READERS, command, fill, idle, marked};
use crate::support::{Killed, Sandbox, until, until_dead};

const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// 100 ms are the contract. The rest is for a machine on which all tests run at once.
const AT_ONCE: Duration = Duration::from_millis(900);

/// What waits for something else than standard input.
const WAITERS: [Job; 6] = [
    ("eventwait", &["--path", "never", "--timeout", "5m"]),
    ("eventwait", &["--exit", "PID", "--timeout", "5m"]),
    ("eventwait", &["--follow", "never", "--timeout", "5m"]),
    ("eventwait", &["--connect", "never", "--timeout", "5m"]),
    ("eventwait", &["--timeout", "5m", "--cmd", "sleep", "600"]),
    (
        "eventwait",
        &["--timeout", "5m", "--every", "5m", "--cmd", "false"],
    ),
];

/// Whether the tool has been executed and sleeps.
fn sleeps(child: &Child, tool: &str) -> bool {
    let pid = i32::try_from(child.id()).unwrap();
    let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
    exe.is_ok_and(|exe| exe.ends_with(tool)) && crate::support::state(pid) == Some('S')
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Sends the signal and waits for the end, which must come at once and by it.
#[track_caller]
fn ends_by(mut child: Child, signal: Signal, what: &str) {
    // Waiting closes it, and its end would be something else to act on.
    let stdin = child.stdin.take();
    let began = Instant::now();
    send(&child, signal);
    let status = child.wait().unwrap();
    drop(stdin);
    assert_eq!(status.signal(), Some(signal as i32), "{what}: {status:?}");
    assert!(
        began.elapsed() < AT_ONCE,
        "{what} {signal}: {:?}",
        began.elapsed()
    );
}

#[test]
fn they_end_it_at_once_and_by_that_signal() {
    let sandbox = Sandbox::new();
    for job in READERS.into_iter().chain(WAITERS) {
        for signal in ENDING {
            let child = command(&sandbox, job)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            until("it waits", || sleeps(&child, job.0));
            ends_by(child, signal, &format!("{job:?}"));
        }
    }
}

/// A write that waits for a reader does not hold up the end.
#[test]
fn they_end_it_while_nobody_reads_what_it_says() {
    let sandbox = Sandbox::new();
    let line = format!("{{\"type\":\"session\",\"x\":\"{}\"}}\n", "y".repeat(1000));
    std::fs::write(sandbox.path("in"), line.repeat(500)).unwrap();
    let speakers: [Job; 10] = [
        ("detach", &["--", "sleep", "600"]),
        (
            "detach",
            &["--announce", "deaths", "--guard", "--", "sleep", "600"],
        ),
        ("reap", &[]),
        ("pane-ident", &["verify", "--timeout", "5m"]),
        (
            "pane-ident",
            &["capture", "--pid", "PID", "--timeout", "5m"],
        ),
        ("holder-scan", &["--dump", "--timeout", "5m"]),
        ("holder-scan", &["--registry", "-", "--timeout", "5m"]),
        (
            "resume-id",
            &["--agent", "claude", "--cwd", "/", "--timeout", "5m"],
        ),
        ("resume-id", &["--list-agents", "--timeout", "5m"]),
        ("eventwait", &["--stdin", "--all", "--timeout", "5m"]),
    ];
    for job in speakers {
        for signal in ENDING {
            let (reader, writer) = std::io::pipe().unwrap();
            fill(&writer);
            let mark = format!("MARK={}", crate::scene::new_id());
            let (name, value) = mark.split_once('=').unwrap();
            let child = command(&sandbox, job)
                .env(name, value)
                .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
                .stdout(writer)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            until("it waits for a reader", || waits_in_a_pipe(pid));
            ends_by(child, signal, &format!("{job:?}"));
            // Neither is a command of which nobody was told, nor its guard.
            until("nobody is left", || marked(&mark).is_empty());
            drop(reader);
        }
    }
}

/// Whether a thread of the process waits for room in a pipe, by writing or by asking for it. Where
/// the kernel does not say for what it waits, whether it sleeps.
fn waits_in_a_pipe(pid: i32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut waits = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("wchan")).unwrap_or_default());
    let is_it =
        |wait: String| ["pipe_write", "poll"].iter().any(|at| wait.contains(at)) || wait == "0";
    crate::support::state(pid) == Some('S') && waits.any(is_it)
}

/// A command that was started and not yet reported is ended with the tool.
#[test]
fn a_start_that_is_under_way_is_undone() {
    for signal in ENDING {
        let sandbox = Sandbox::new();
        let child = sandbox
            .tool("detach")
            .args(["--ready-file", "never", "--ready-timeout", "5m", "--"])
            .args([
                "bash",
                "-c",
                "echo $$ >pid.new; mv pid.new pid; exec sleep 600",
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the command runs", || sandbox.path("pid").exists());
        let pid = std::fs::read_to_string(sandbox.path("pid")).unwrap();
        let pid: i32 = pid.trim().parse().unwrap();
        let ident = sandbox.track_pid(pid);
        ends_by(child, signal, "detach");
        assert_eq!(ident.pid().get(), pid);
        until_dead(pid);
    }
}

/// As `nohup` and a shell's background jobs start it.
#[test]
fn one_that_was_ignored_stays_ignored() {
    let sandbox = Sandbox::new();
    let readers = [
        ("reap", &[][..], "{\"a\":1}\n"),
        ("pane-ident", &["verify", "--timeout", "5m"], "{\"a\":1}\n"),
        (
            "holder-scan",
            &["--registry", "-", "--timeout", "5m"],
            "{\"a\":1}\n",
        ),
        ("eventwait", &["--stdin", "--timeout", "5m"], "{\"a\":1}\n"),
        (
            "resume-id",
            &["--row", "-", "--timeout", "5m"],
            "{\"agent\":\"claude\",\"cwd\":\"/\"}\n",
        ),
    ];
    for (tool, words, input) in readers {
        for signal in ENDING {
            let name = signal.as_str().trim_start_matches("SIG");
            let line = format!("trap '' {name}; exec {tool} \"$@\"");
            let mut child = sandbox
                .bash(&line)
                .arg(tool)
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            until("it waits", || sleeps(&child, tool));
            send(&child, signal);
            // It is still there to do its work.
            let mut stdin = child.stdin.take().unwrap();
            std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
            drop(stdin);
            let status = child.wait().unwrap();
            assert_eq!(status.code(), idle(tool), "{tool} {signal}: {status:?}");
        }
    }
}

/// A caller that had its signals blocked for a moment, and started the tool in that moment.
#[test]
fn one_that_was_blocked_is_heard_all_the_same() {
    let sandbox = Sandbox::new();
    let commands: [Job; 1] = [("detach", &["--wait", "--", "sleep", "600"])];
    for job in READERS.into_iter().chain(WAITERS).chain(commands) {
        for signal in ENDING {
            let tool = command(&sandbox, job);
            let mut child = std::process::Command::new("env")
                .arg("--block-signal")
                .arg(tool.get_program())
                .args(tool.get_args())
                .current_dir(sandbox.path(""))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            until("it waits", || sleeps(&child, job.0));
            if job.0 != "detach" {
                ends_by(child, signal, &format!("{job:?}"));
                continue;
            }
            // That one passes it on, and its command is ended by it.
            send(&child, signal);
            let status = child.wait().unwrap();
            assert_eq!(status.code(), Some(128 + signal as i32), "{job:?}");
        }
    }
}

/// As what a container is started for: the kernel lets no default action end that process.
#[test]
fn the_first_process_of_a_namespace_ends_with_the_status_of_a_shell() {
    let sandbox = Sandbox::new();
    let commands: [Job; 5] = [
        ("eventwait", &["--path", "never", "--timeout", "5m"]),
        ("eventwait", &["--timeout", "5m", "--cmd", "sleep", "600"]),
        (
            "detach",
            &[
                "--ready-file",
                "never",
                "--ready-timeout",
                "5m",
                "--",
                "sleep",
                "600",
            ],
        ),
        ("detach", &["--wait", "--", "sleep", "600"]),
        ("pane-ident", &["verify", "--timeout", "5m"]),
    ];
    for job in commands {
        let tool = command(&sandbox, job);
        let mut namespace = std::process::Command::new("unshare")
            .args(["-Urpf", "--mount-proc", "--kill-child"])
            .arg(tool.get_program())
            .args(tool.get_args())
            .current_dir(sandbox.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", namespace.id());
        let first = || -> Option<i32> {
            let children = std::fs::read_to_string(&children).ok()?;
            children.trim().parse().ok()
        };
        let waits = |pid: i32| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe.ends_with(job.0)) && crate::support::state(pid) == Some('S')
        };
        until("it waits", || first().is_some_and(waits));
        kill(Pid::from_raw(first().unwrap()), Signal::SIGTERM).unwrap();
        let stdin = namespace.stdin.take();
        let status = namespace.wait().unwrap();
        drop(stdin);
        assert_eq!(status.code(), Some(128 + 15), "{job:?}");
    }
    let line = "unshare -Urpf --mount-proc eventwait --path / --path /tmp --count 2 --timeout 9 |
        true; echo ${PIPESTATUS[0]}";
    for _ in 0..crate::support::rounds(5) {
        let output = sandbox.bash(line).output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        // Its reader may have gone too late to be missed.
        assert!(["141", "0"].contains(&status.trim()), "{status}");
    }
}

/// The signal of the terminal reaches a whole pipeline, and nobody of it stays.
#[test]
fn a_whole_pipeline() {
    for signal in ENDING {
        let sandbox = Sandbox::new();
        let line = "set -m; (cat fifo | reap | pane-ident verify --timeout 5m |
            eventwait --stdin --all --timeout 5m | resume-id --row - --timeout 5m) &
            echo $! >pid; wait $!; echo $? >status";
        nix::unistd::mkfifo(&sandbox.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _bash = Killed(
            sandbox
                .bash(line)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        // Opened for both, so that cat goes on and no end comes.
        let _fifo = std::fs::File::options()
            .read(true)
            .write(true)
            .open(sandbox.path("fifo"))
            .unwrap();
        let pid = || std::fs::read_to_string(sandbox.path("pid")).unwrap_or_default();
        until("it was started", || pid().ends_with('\n'));
        let group: i32 = pid().trim().parse().unwrap();
        let waits = |tool: &str| {
            members(group)
                .iter()
                .any(|(name, s)| name == tool && *s == 'S')
        };
        until("all of them wait", || {
            ["reap", "pane-ident", "eventwait", "resume-id"]
                .iter()
                .all(|tool| waits(tool))
        });
        // The terminal's own way: to the group of the job.
        nix::sys::signal::killpg(Pid::from_raw(group), signal).unwrap();
        until("nobody is left", || {
            members(group).iter().all(|(_, state)| *state == 'Z')
        });
        until("the shell has seen it", || sandbox.path("status").exists());
    }
}

/// Name and state of whoever is in the group `group`.
fn members(group: i32) -> Vec<(String, char)> {
    let table = process::Table::read(&mut process::Reader::new()).unwrap();
    let members = table.entries().iter().filter(|entry| entry.pgid == group);
    members
        .map(|entry| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", entry.pid));
            (comm.unwrap_or_default().trim().to_owned(), entry.state.0)
        })
        .collect()
}
