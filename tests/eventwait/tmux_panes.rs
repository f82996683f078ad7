//! `--tmux`, against real servers.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::stage::{Waited, Waiting, command, ms, start, wait};
use crate::support::{Sandbox, until};

/// A tmux server of the test's own.
struct Tmux {
    sandbox: Sandbox,
    socket: PathBuf,
}

impl Tmux {
    /// With a session `main`, whose pane `%0` runs `cat`; dead panes are kept.
    fn start() -> Tmux {
        let sandbox = Sandbox::new();
        let socket = sandbox.path("t");
        let tmux = Tmux { sandbox, socket };
        tmux.run(&["new-session", "-d", "-s", "main", "cat"]);
        tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
        // A window's name follows what runs in it, half a second later, and that is an event.
        tmux.run(&["set-option", "-wg", "automatic-rename", "off"]);
        tmux
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(words);
        command
            .env_remove("TMUX")
            .current_dir(self.sandbox.path(""));
        command
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A new pane in the session; its id.
    fn split(&self, session: &str, script: &str) -> String {
        self.run(&[
            "split-window",
            "-t",
            session,
            "-P",
            "-F",
            "#{pane_id}",
            script,
        ])
    }

    fn words<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.words_for("20", more)
    }

    fn words_for<'a>(&'a self, timeout: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let socket = self.socket.to_str().unwrap();
        [
            &["--tmux", "--tmux-socket", socket, "--timeout", timeout],
            more,
        ]
        .concat()
    }

    fn wait(&self, more: &[&str]) -> Waited {
        wait(&self.sandbox, &self.words(more))
    }

    fn wait_for(&self, timeout: &str, more: &[&str]) -> Waited {
        wait(&self.sandbox, &self.words_for(timeout, more))
    }

    /// A wait that is armed.
    fn waiting(&self, more: &[&str]) -> Waiting {
        let words = [more, &["--ack-line", "armed"]].concat();
        let waiting = start(command(&self.sandbox, &self.words(&words)));
        waiting.until_printed("armed\n");
        waiting
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

fn event(waited: &Waited) -> Value {
    let line = waited
        .stdout
        .lines()
        .rfind(|line| *line != "armed")
        .unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_pane_that_is_kept_dies() {
    let tmux = Tmux::start();
    for (script, code, signal) in [
        ("read x; exit 3", Value::from(3), Value::Null),
        ("read x; kill -KILL $$", Value::Null, Value::from("KILL")),
    ] {
        let pane = tmux.split("main", script);
        let waiting = tmux.waiting(&["--pane", &pane, "--match", "event=pane.exited"]);
        tmux.run(&["send-keys", "-t", &pane, "Enter"]);
        let waited = waiting.finish();
        waited.ended(0, "matched");
        let line = waited.stdout.lines().nth(1).unwrap();
        let head = format!(
            "{{\"v\":1,\"type\":\"event\",\"source\":\"tmux\",\"event\":\"pane.exited\",\"data\":{{\"pane\":\"{pane}\",\"pid\":"
        );
        assert!(line.starts_with(&head), "{line}");
        let event = event(&waited);
        assert_eq!(
            (&event["data"]["code"], &event["data"]["signal"]),
            (&code, &signal)
        );
        assert_eq!(event["initial"], false);
        // Afterwards it is the state at the start.
        let waited = tmux.wait(&["--pane", &pane]);
        assert_eq!(self::event(waited.ended(0, "matched"))["initial"], true);
    }
}

#[test]
fn a_pane_that_vanishes_dies_too_whatever_session_it_is_in() {
    let tmux = Tmux::start();
    tmux.run(&["new-session", "-d", "-s", "other", "cat"]);
    tmux.run(&["set-option", "-g", "remain-on-exit", "off"]);
    let here = tmux.split("main", "read x; exit 5");
    let there = tmux.split("other", "read x; exit 6");
    let words = [
        "--pane",
        &here,
        "--pane",
        &there,
        "--count",
        "2",
        "--match",
        "event=pane.exited",
    ];
    let waiting = tmux.waiting(&words);
    for pane in [&there, &here] {
        tmux.run(&["send-keys", "-t", pane, "Enter"]);
        waiting.until_printed(&format!("\"pane\":\"{pane}\""));
    }
    waiting.finish().ended(0, "matched");
    // Killed from outside, while it lives.
    let killed = tmux.split("other", "cat");
    let waiting = tmux.waiting(&["--pane", &killed, "--match", "event=pane.exited"]);
    tmux.run(&["kill-pane", "-t", &killed]);
    let waited = waiting.finish();
    assert_eq!(event(waited.ended(0, "matched"))["data"]["pane"], killed);
    // One that is not there at all.
    let waited = tmux.wait(&["--pane", "%99"]);
    let event = event(waited.ended(0, "matched"));
    assert_eq!(
        (&event["data"]["pane"], &event["initial"]),
        (&"%99".into(), &true.into())
    );
}

/// tmux lets a pane go once its terminal is closed, and collects the process later.
#[cfg(target_os = "linux")]
#[test]
fn how_the_process_of_a_pane_ended_that_vanished_before_it() {
    let tmux = Tmux::start();
    tmux.run(&["set-option", "-g", "remain-on-exit", "off"]);
    let script = "trap '' HUP; read x; exec </dev/null >/dev/null 2>&1; sleep .1; exit 4";
    let pane = tmux.split("main", script);
    let words = ["--pane", &pane, "--match", "event=pane.exited"];
    let waiting = tmux.waiting(&words);
    tmux.run(&["send-keys", "-t", &pane, "Enter"]);
    let waited = waiting.finish();
    let event = event(waited.ended(0, "matched"));
    // Kernels before 6.15 tell only as long as it is a zombie.
    let code = &event["data"]["code"];
    assert!(
        *code == 4 || code.is_null() && !tells_of_the_collected(),
        "{event}"
    );
    // One that lives on does not hold up the answer.
    let script = "trap '' HUP; read x; exec sleep 600 </dev/null >/dev/null 2>&1";
    let pane = tmux.split("main", script);
    let pid = tmux.run(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    tmux.sandbox.track_pid(pid.parse().unwrap());
    let waiting = tmux.waiting(&["--pane", &pane, "--match", "event=pane.exited"]);
    tmux.run(&["send-keys", "-t", &pane, "Enter"]);
    let waited = waiting.finish();
    let event = self::event(waited.ended(0, "matched"));
    assert!(event["data"]["code"].is_null(), "{event}");
}

/// Whether the kernel tells how a process ended that its parent has collected.
fn tells_of_the_collected() -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split('.')
        .map_while(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

#[test]
fn what_a_pane_prints_and_what_windows_do() {
    let tmux = Tmux::start();
    let words = [
        "--pane",
        "%0",
        "--match",
        "event=output",
        "--match",
        "data.text~h\u{e9}llo",
    ];
    let waiting = tmux.waiting(&words);
    tmux.run(&["send-keys", "-t", "%0", "h\u{e9}llo", "Enter"]);
    let waited = waiting.finish();
    assert_eq!(event(waited.ended(0, "matched"))["data"]["pane"], "%0");
    let waiting = tmux.waiting(&["--match", "event=window-add"]);
    tmux.run(&["new-window", "-t", "main", "cat"]);
    let waited = waiting.finish();
    let event = event(waited.ended(0, "matched"));
    assert!(
        event["data"]["window"].as_str().unwrap().starts_with('@'),
        "{event}"
    );
    // Attaching is not an event, and the client leaves no trace.
    tmux.wait_for("0.5", &[]).ended(124, "deadline");
    until("no client is left", || {
        tmux.run(&["list-clients"]).is_empty()
    });
}

#[test]
fn a_session_that_goes_is_not_the_server() {
    let tmux = Tmux::start();
    tmux.run(&["new-session", "-d", "-s", "last", "cat"]);
    // One that stays keeps the server, which would be gone with its last pane before it said so.
    tmux.split("main", "cat");
    let waiting = tmux.waiting(&["--match", "data.pane=%0", "--match", "event=pane.exited"]);
    tmux.run(&["kill-session", "-t", "last"]);
    std::thread::sleep(ms(200));
    tmux.run(&["kill-pane", "-t", "%0"]);
    waiting.finish().ended(0, "matched");
}

#[test]
fn a_process_that_is_replaced_has_ended() {
    let tmux = Tmux::start();
    let pid: u64 = tmux
        .run(&["display-message", "-p", "-t", "%0", "#{pane_pid}"])
        .parse()
        .unwrap();
    let waiting = tmux.waiting(&["--pane", "%0", "--match", "event=pane.exited"]);
    tmux.run(&["respawn-pane", "-k", "-t", "%0", "cat"]);
    let waited = waiting.finish();
    let event = event(waited.ended(0, "matched"));
    assert_eq!(
        (&event["data"]["pane"], &event["data"]["pid"]),
        (&"%0".into(), &pid.into())
    );
    // The new one has not.
    let waited = tmux.wait_for("0.3", &["--pane", "%0", "--match", "event=pane.exited"]);
    waited.ended(124, "deadline");
}

#[test]
fn a_pane_in_two_sessions_dies_once() {
    let tmux = Tmux::start();
    let pane = tmux.run(&[
        "new-window",
        "-t",
        "main",
        "-P",
        "-F",
        "#{pane_id}",
        "read x",
    ]);
    tmux.run(&["new-session", "-d", "-s", "other", "cat"]);
    tmux.run(&["link-window", "-s", &pane, "-t", "other:9"]);
    let words = [
        "--all",
        "--pane",
        &pane,
        "--match",
        "event=pane.exited",
        "--ack-line",
        "armed",
    ];
    let waiting = start(command(&tmux.sandbox, &tmux.words_for("3", &words)));
    waiting.until_printed("armed\n");
    tmux.run(&["send-keys", "-t", &pane, "Enter"]);
    let waited = waiting.finish();
    assert_eq!(waited.ended(0, "deadline").count("matched"), 1);
    // Dead from the beginning, too.
    let waited = tmux.wait_for("2", &words);
    assert_eq!(waited.ended(0, "deadline").count("matched"), 1);
}

#[test]
fn a_server_that_goes_has_said_nothing_of_its_panes() {
    let tmux = Tmux::start();
    let waiting = tmux.waiting(&["--match", "event=never"]);
    tmux.run(&["kill-server"]);
    waiting.finish().ended(1, "closed");
    // One that is not there is not started: the user's configuration could do anything.
    let started = tmux.sandbox.path("started");
    let config = format!("run-shell 'touch {}'", started.display());
    std::fs::write(tmux.sandbox.path(".tmux.conf"), config).unwrap();
    let mut alone = command(&tmux.sandbox, &tmux.words(&["--pane", "%0"]));
    alone.env("HOME", tmux.sandbox.path(""));
    let waited = start(alone).finish();
    waited.ended(3, "unavailable").gone_at(ms(0));
    assert!(waited.stderr.contains("eventwait: tmux"), "{waited:?}");
    assert!(!started.exists());
}

#[test]
fn a_server_that_is_stopped() {
    let tmux = Tmux::start();
    let pid: i32 = tmux
        .run(&["display-message", "-p", "#{pid}"])
        .parse()
        .unwrap();
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let socket = tmux.socket.to_str().unwrap();
    let words = [
        "--tmux",
        "--tmux-socket",
        socket,
        "--pane",
        "%0",
        "--timeout",
        "0.5",
    ];
    let waited = wait(&tmux.sandbox, &words);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    waited
        .ended(3, "no_ack")
        .not_before(ms(500))
        .gone_at(ms(500));
}

#[test]
fn the_last_pane_takes_the_server_along_and_has_died_all_the_same() {
    let tmux = Tmux::start();
    tmux.run(&["set-option", "-g", "remain-on-exit", "off"]);
    let last = tmux.split("main", "read x; exit 7");
    tmux.run(&["kill-pane", "-t", "%0"]);
    let words = ["--pane", &last, "--match", "event=pane.exited"];
    let waiting = tmux.waiting(&words);
    tmux.run(&["send-keys", "-t", &last, "Enter"]);
    let event = event(waiting.finish().ended(0, "matched"));
    assert_eq!(event["data"]["pane"], last.as_str());
    if tells_of_the_collected() {
        assert_eq!(event["data"]["code"], 7, "{event}");
    }
}

#[test]
fn panes_die_with_a_server_that_is_killed() {
    let tmux = Tmux::start();
    // What has no terminal to lose outlives it.
    let deaf = tmux.split("main", "trap '' HUP; echo deaf; exec sleep 304");
    until("it is deaf", || {
        tmux.run(&["capture-pane", "-p", "-t", &deaf])
            .contains("deaf")
    });
    let of = |format: &str, pane: &str| -> i32 {
        let pid = tmux.run(&["display-message", "-p", "-t", pane, format]);
        pid.parse().unwrap()
    };
    let server = of("#{pid}", "%0");
    tmux.sandbox.track_pid(of("#{pane_pid}", &deaf));
    let waiting = tmux.waiting(&["--all", "--match", "event=pane.exited"]);
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(server),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    let waited = waiting.finish();
    assert_eq!(waited.ended(0, "closed").count("matched"), 1);
    assert_eq!(event(&waited)["data"]["pane"], "%0");
}

#[test]
fn a_server_without_any_session_has_no_pane() {
    let tmux = Tmux::start();
    tmux.run(&["set-option", "-s", "exit-empty", "off"]);
    tmux.run(&["kill-session", "-t", "main"]);
    let words = ["--pane", "%0", "--match", "event=pane.exited"];
    let waited = tmux.wait(&words);
    let event = event(waited.ended(0, "matched"));
    assert_eq!(
        (&event["data"]["pane"], &event["initial"]),
        (&"%0".into(), &true.into())
    );
}

#[test]
fn the_session_keeps_its_environment_and_the_server_its_life() {
    let tmux = Tmux::start();
    tmux.run(&["new-session", "-d", "-s", "loud", "yes"]);
    tmux.run(&["set-environment", "-t", "loud", "SSH_AUTH_SOCK", "kept"]);
    let pane = tmux.run(&["display-message", "-p", "-t", "loud", "#{pane_id}"]);
    // A client that does not come to its end while its session goes: nobody reads what it prints.
    let (reader, writer) = std::io::pipe().unwrap();
    let words = ["--pane", &pane, "--all"];
    let mut stuck = command(&tmux.sandbox, &tmux.words_for("5", &words));
    stuck.env("SSH_AUTH_SOCK", "another").stdout(writer);
    let stuck = start(stuck);
    let io = format!("/proc/{}/io", stuck.pid());
    until("no more is taken from the server", || {
        let before = std::fs::read_to_string(&io).unwrap();
        std::thread::sleep(ms(200));
        let printed = rustix::io::ioctl_fionread(&reader).unwrap();
        printed > 0 && std::fs::read_to_string(&io).unwrap() == before
    });
    let kept = tmux.run(&["show-environment", "-t", "loud", "SSH_AUTH_SOCK"]);
    assert_eq!(kept, "SSH_AUTH_SOCK=kept");
    tmux.run(&["kill-session", "-t", "loud"]);
    // Longer than tmux takes to look at what clients have subscribed to.
    stuck.finish();
    drop(reader);
    assert_eq!(
        tmux.run(&["list-sessions", "-F", "#{session_name}"]),
        "main"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn numbers_of_another_place_are_not_told() {
    let tmux = Tmux::start();
    let socket = tmux.sandbox.path("elsewhere");
    let socket = socket.to_str().unwrap();
    let script = format!(
        "tmux -f /dev/null -S {socket} new-session -d 'read x; exit 7' ';' split-window cat
         exec sleep 305"
    );
    let mut elsewhere = Command::new("unshare")
        .args(["-Urpf", "--mount-proc", "--kill-child", "sh", "-c", &script])
        .spawn()
        .unwrap();
    let ask = |words: &[&str]| {
        let mut tmux = Command::new("tmux");
        let output = tmux.args(["-S", socket]).args(words).output().unwrap();
        output.status.success()
    };
    until("it is there", || ask(&["has-session", "-t", "0:0.1"]));
    let words = ["--tmux", "--tmux-socket", socket, "--timeout", "20"];
    let more = ["--match", "event=pane.exited", "--ack-line", "armed"];
    let waiting = start(command(&tmux.sandbox, &[&words[..], &more].concat()));
    waiting.until_printed("armed\n");
    assert!(ask(&["send-keys", "-t", "0:0.0", "Enter"]));
    let waited = waiting.finish();
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    assert_eq!(
        event(waited.ended(0, "matched"))["data"]["pid"],
        Value::Null
    );
}
