//! What these tests share: a tmux server of their own, and a short way to ask.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, record, until_dead};

/// A tmux server on a socket of its own. It ends with the test.
pub struct Tmux<'a> {
    sandbox: &'a Sandbox,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    /// A server whose first pane, `%0`, runs `cat`, in a session `main`.
    pub fn start(sandbox: &'a Sandbox, name: impl AsRef<Path>) -> Tmux<'a> {
        let tmux = Tmux {
            sandbox,
            socket: sandbox.path("").join(name),
        };
        tmux.start_again();
        tmux
    }

    /// A new server on the same socket.
    pub fn start_again(&self) {
        self.run(&["new-session", "-d", "-s", "main", "-n", "first", "cat", "-"]);
    }

    /// Ends the server, and waits until it is gone: one that is still on its way out answers oddly.
    #[track_caller]
    pub fn kill(&self) {
        let server = self.server_pid();
        self.run(&["kill-server"]);
        until_dead(server);
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A tmux command to this server.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(words)
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .env("SHELL", "/bin/sh")
            .current_dir(self.sandbox.path(""))
            .stdin(Stdio::null());
        command
    }

    /// Runs a tmux command that must succeed; what it printed.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("tmux");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// A new window that runs `words`; its pane.
    #[track_caller]
    pub fn window(&self, words: &[&str]) -> String {
        let new = ["new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}"];
        self.run(&[&new[..], words].concat())
    }

    /// The process of a pane, straight from the list.
    #[track_caller]
    pub fn pid(&self, pane: &str) -> i32 {
        let list = self.run(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        let mut lines = list.lines().filter_map(|line| line.split_once(' '));
        let (_, pid) = lines.find(|(id, _)| *id == pane).expect("the pane");
        pid.parse().unwrap()
    }

    /// The server's process.
    pub fn server_pid(&self) -> i32 {
        self.run(&["display-message", "-p", "#{pid}"])
            .parse()
            .unwrap()
    }

    /// The binding of a pane.
    #[track_caller]
    pub fn capture(&self, pane: &str) -> Value {
        let output = self.try_capture(pane);
        assert!(output.status.success(), "{output:?}");
        record(&output)
    }

    pub fn try_capture(&self, pane: &str) -> Output {
        let mut command = self.sandbox.tool("pane-ident");
        command.args(["capture", "--tmux", pane, "--tmux-socket"]);
        command.arg(&self.socket).output().unwrap()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // A server that has ended already has nothing to be killed.
        let _ = self.command(&["kill-server"]).output();
    }
}

/// What `verify` made of one record: state and reason, status, and the record itself.
#[derive(Debug)]
pub struct Judged {
    pub state: String,
    pub reason: String,
    pub code: Option<i32>,
    pub record: Value,
}

impl Judged {
    #[track_caller]
    pub fn is(&self, state: &str, reason: &str) {
        let seen = (self.state.as_str(), self.reason.as_str());
        assert_eq!(seen, (state, reason), "{self:?}");
        let code = match state {
            "match" => 0,
            "unknown" => 3,
            _ => 1,
        };
        assert_eq!(self.code, Some(code), "{self:?}");
    }
}

/// Verifies one record.
#[track_caller]
pub fn verify(sandbox: &Sandbox, record: &Value, words: &[&str]) -> Judged {
    let output = verify_lines(sandbox, &format!("{record}\n"), words);
    judged(&output)
}

/// What `verify` says of these lines.
pub fn verify_lines(sandbox: &Sandbox, lines: &str, words: &[&str]) -> Output {
    let mut command = sandbox.tool("pane-ident");
    command.arg("verify").args(words);
    if !words.contains(&"--timeout") {
        // More than the usual, for a machine that is busy with other tests.
        command.args(["--timeout", "60s"]);
    }
    feed(&mut command, lines)
}

/// Runs a command with this input.
pub fn feed(command: &mut Command, input: &str) -> Output {
    use std::io::Write;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Beside the reading, so that no pipe can fill up and hold both.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

#[track_caller]
pub fn judged(output: &Output) -> Judged {
    let record = record(output);
    let word = |key: &str| {
        record["verdict"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Judged {
        state: word("state"),
        reason: word("reason"),
        code: output.status.code(),
        record,
    }
}
