//! The loop of the README, as it is given there, in a pane of tmux.

use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::home::Home;
use crate::support::{Killed, lives, said, until, until_dead};

const README: &str = include_str!("../../README.md");

/// An agent that writes a message, says how it was called, and then waits for its end.
const AGENT: &str = r#"#!/bin/bash
[ -t 0 ] || exit 1
printf '{"type":"user","cwd":"%s"}\n' "$PWD" >>"$TRANSCRIPTS/$2.jsonl"
exec 3<>"$HOME/nothing"
echo "$$ $1 $2" >>"$HOME/called"
read -r -u 3
"#;

/// The same, of somebody else.
const STRANGER: &str = "#!/bin/bash\nexec 3<>\"$HOME/nothing\"\n>\"$HOME/up\"\nread -r -u 3\n";

/// A tmux server, and a row of which the loop in its pane takes care.
struct Kept {
    home: Home,
    id: String,
}

impl Kept {
    fn new() -> Kept {
        let home = Home::new();
        let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        let id = id.trim().to_owned();
        std::fs::create_dir_all(home.transcript(&id).parent().unwrap()).unwrap();
        home.sandbox.script("bin/claude", AGENT);
        std::fs::create_dir(home.path("live")).unwrap();
        home.sandbox.script("live/claude", STRANGER);
        let fifo = home.path("nothing");
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        let (_, rest) = README.split_once("\nkeep() (").expect("the loop");
        let (body, _) = rest.split_once("\n)\n").expect("its end");
        // As many systems have it: what a user makes, his group may write to.
        let text = format!("umask 002\nkeep() ({body}\n)\nkeep \"$HOME/row\"\n");
        home.sandbox.script("loop", &text);
        let (cwd, row) = (home.cwd(), &id);
        home.write(
            "row",
            &format!(r#"{{"agent":"claude","cwd":"{cwd}","session_id":"{row}"}}"#),
        );
        let kept = Kept { home, id };
        // A pane that stays keeps the server.
        kept.tmux(&["new-session", "-d", "-s", "main", "cat", "-"]);
        let server = kept.tmux(&["display-message", "-p", "#{pid}"]);
        kept.home.sandbox.track_pid(server.parse().unwrap());
        kept
    }

    #[track_caller]
    fn tmux(&self, words: &[&str]) -> String {
        let mut command = self
            .home
            .bash("exec tmux -u -f /dev/null -S \"$HOME/s\" \"$@\"");
        let transcripts = self.home.transcript(&self.id);
        let output = command
            .arg("tmux")
            .args(words)
            .env("TRANSCRIPTS", transcripts.parent().unwrap())
            .env_remove("TMUX")
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Starts the loop in a pane. Gives the pane's process.
    fn start(&self) -> i32 {
        let script = self.home.path("loop");
        let new = ["new-window", "-d", "-P", "-F", "#{pane_pid}", "-t", "main:"];
        let pid = self.tmux(&[&new[..], &["bash", script.to_str().unwrap()]].concat());
        let pid = pid.parse().unwrap();
        self.home.sandbox.track_pid(pid);
        pid
    }

    /// Waits for the agent's call number `n`. Gives its pid, and how and for whom it was called.
    #[track_caller]
    fn call(&self, n: usize) -> (i32, String, String) {
        until(&format!("call {n}"), || self.home.calls().len() >= n);
        let calls = self.home.calls();
        assert_eq!(calls.len(), n, "{calls:?}");
        let words: Vec<_> = calls[n - 1].split(' ').collect();
        let pid = words[0].parse().unwrap();
        self.home.sandbox.track_pid(pid);
        (pid, words[1].to_owned(), words[2].to_owned())
    }
}

fn slay(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

#[test]
fn the_loop_of_the_readme_in_a_pane() {
    let kept = Kept::new();
    let first = kept.id.clone();
    let pane = kept.start();
    let (agent, flag, id) = kept.call(1);
    assert_eq!((flag.as_str(), &id), ("--session-id", &first));

    slay(agent);
    let (agent, flag, id) = kept.call(2);
    assert_eq!((flag.as_str(), &id), ("--resume", &first), "it was killed");

    // With its shell the pane ends, and with the pane the agent.
    slay(pane);
    until_dead(agent);
    kept.start();
    let (agent, flag, id) = kept.call(3);
    assert_eq!((flag.as_str(), &id), ("--resume", &first), "all were");

    let mut stranger = kept
        .home
        .bash("exec bash \"$HOME/live/claude\" --resume \"$1\"");
    stranger.arg("bash").arg(&first).stdout(Stdio::null());
    let stranger = Killed(stranger.spawn().unwrap());
    until("the stranger is up", || kept.home.path("up").exists());
    slay(agent);
    let (agent, flag, second) = kept.call(4);
    assert_eq!(flag, "--session-id", "somebody else holds it");
    assert_ne!(second, first);
    assert!(lives(stranger.0.id() as i32));

    slay(agent);
    let (agent, flag, id) = kept.call(5);
    assert_eq!((flag.as_str(), &id), ("--resume", &second));

    std::fs::remove_file(kept.home.transcript(&second)).unwrap();
    slay(agent);
    let (_, flag, third) = kept.call(6);
    assert_eq!(flag, "--session-id", "its transcript has vanished");
    assert!(third != first && third != second);
    assert!(lives(stranger.0.id() as i32));
}
