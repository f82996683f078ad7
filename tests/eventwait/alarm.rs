//! The last bound of all: the wait's own end a moment after its deadline, whatever it is stuck in.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use rustix::pipe::PIPE_BUF;

use crate::bounds::{full_pipe, left_in};
use crate::stage::{Waiting, command, ms, start};
use crate::support::{Sandbox, until};

/// The same command as env(1) starts it with this option.
fn with(option: &str, command: &Command) -> Command {
    let mut env = Command::new("env");
    env.arg(option).arg(command.get_program());
    env.args(command.get_args());
    for (name, value) in command.get_envs() {
        env.env(name, value.unwrap());
    }
    env.current_dir(command.get_current_dir().unwrap());
    env.stdin(Stdio::null()).stdout(Stdio::piped());
    env.stderr(Stdio::piped());
    env
}

/// Waits until it watches for its path, which is after everything else that it does at the start.
fn until_it_watches(waiting: &Waiting) {
    until("a watch", || {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", waiting.pid()));
        fds.into_iter()
            .flatten()
            .flatten()
            .filter_map(|fd| fd.path().read_link().ok())
            .any(|to| to.to_string_lossy() == "anon_inode:inotify")
    });
}

fn alarm(waiting: &Waiting) {
    kill(Pid::from_raw(waiting.pid()), Signal::SIGALRM).unwrap();
}

#[test]
fn it_is_no_thread() {
    let sandbox = Sandbox::new();
    let waiting = start(command(&sandbox, &["--path", "f", "--timeout", "20"]));
    until_it_watches(&waiting);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", waiting.pid())).unwrap();
    assert_eq!(tasks.count(), 1);
    std::fs::write(sandbox.path("f"), "").unwrap();
    waiting.finish().ended(0, "matched");
}

#[test]
fn it_comes_to_one_that_is_stuck_and_blocks_alarms() {
    let sandbox = Sandbox::new();
    // Its complaint does not fit into what room there is, so that writing it never ends.
    let name = "x".repeat(2 * PIPE_BUF);
    for option in ["--block-signal=ALRM", "--ignore-signal=ALRM"] {
        let (mut reader, writer) = full_pipe();
        reader.read_exact(&mut [0; PIPE_BUF]).unwrap();
        let wait = command(&sandbox, &["--follow", &name, "--timeout", "0.5"]);
        let mut wait = with(option, &wait);
        wait.stderr(writer);
        let waited = start(wait).finish();
        assert_eq!(waited.status.code(), Some(124), "{option}");
        waited.not_before(ms(500)).gone_at(ms(500));
        assert!(left_in(reader).starts_with("eventwait: cannot follow xx"));
    }
}

#[test]
fn an_alarm_of_somebody_else_does_what_it_would_do() {
    let sandbox = Sandbox::new();
    let words = ["--path", "f", "--timeout", "20"];
    let waiting = start(command(&sandbox, &words));
    until_it_watches(&waiting);
    alarm(&waiting);
    let waited = waiting.finish();
    assert_eq!(
        (waited.status.signal(), waited.stderr.as_str()),
        (Some(14), "")
    );
    let waiting = start(with("--ignore-signal=ALRM", &command(&sandbox, &words)));
    until_it_watches(&waiting);
    alarm(&waiting);
    std::fs::write(sandbox.path("f"), "").unwrap();
    waiting.finish().ended(0, "matched");
}

#[test]
fn one_that_has_had_no_processor_is_not_stuck() {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    let waiting = start(command(&sandbox, &["--path", "f", "--timeout", "1"]));
    until_it_watches(&waiting);
    let pid = Pid::from_raw(waiting.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    // Well behind the deadline and all that comes after it.
    until("a late hour", || begun.elapsed() > ms(1500));
    kill(pid, Signal::SIGCONT).unwrap();
    let waited = waiting.finish();
    waited.not_before(ms(1500)).ended(124, "deadline");
}
