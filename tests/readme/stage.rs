//! What the README takes for granted: a server, an agent, a pane, a session that somebody holds.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::herdr::Herdr;
use crate::support::{Killed, Sandbox, bin_dir, until};

/// A server for ssh(1) on this machine, one a connection, without a port. The folder that it wants
/// to find when it is root is there only for it.
const SSHD: &str = r#"#!/bin/sh
sshd=$(PATH=$PATH:/usr/sbin command -v sshd)
set -- "$sshd" -i -f "$HOME/sshd_config"
[ "$(id -u)" -ne 0 ] || set -- unshare -m \
  sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"' sh "$@"
exec "$@"
"#;

const SERVER: &str = "#!/usr/bin/env python3
import socket
server = socket.socket(socket.AF_UNIX)
server.bind('srv.sock')
server.listen()
print('ready', flush=True)
while True:
    server.accept()[0].close()
";

/// A wrapper as supervisors write them: its session's id is in its JSON argument, and its agent
/// is dead.
const WRAPPER: &str = "exec 3<>nothing\ntouch up\nread -r -u 3\n";

/// A place of its own for a script of the README.
pub struct Stage {
    sandbox: Sandbox,
    session: String,
    pane: Option<String>,
    herdr: Option<Herdr>,
    _wrapper: Option<Killed>,
}

impl Stage {
    /// The place, with what the script mentions.
    pub fn new(script: &str) -> Stage {
        let mentions = |word: &str| script.contains(word);
        let mut stage = Stage {
            sandbox: Sandbox::new(),
            session: std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap(),
            pane: None,
            herdr: None,
            _wrapper: None,
        };
        stage.session.truncate(36);
        for folder in ["ws", "work", "bin"] {
            std::fs::create_dir(stage.path(folder)).unwrap();
        }
        stage.sandbox.script("server", SERVER);
        stage
            .sandbox
            .script("runner", "#!/bin/sh\nexec sleep 600\n");
        stage.sandbox.script("run-tests", "#!/bin/sh\nexit 0\n");
        let agent = "#!/bin/sh\necho \"the agent: $*\"\n";
        stage.sandbox.script("bin/claude", agent);
        let task = json!({"task": "a", "worktree": "work"});
        std::fs::write(stage.path("task.json"), format!("{task}\n")).unwrap();
        let row = json!({"agent": "claude", "cwd": stage.ws(), "session_id": stage.session});
        std::fs::write(stage.path("row.json"), format!("{row}\n")).unwrap();
        if mentions("$pane") {
            stage.pane = Some(stage.open_pane());
        }
        if mentions("w1:p1") {
            stage.herdr = Some(blocked_agent());
        }
        if mentions("ssh ") {
            stage.serve_ssh();
        }
        if mentions("wrapper.sh") {
            stage._wrapper = Some(stage.start_wrapper());
        }
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    /// The folder itself.
    fn root(&self) -> PathBuf {
        self.path("x").parent().unwrap().to_owned()
    }

    fn ws(&self) -> String {
        let ws = self.path("ws").canonicalize().unwrap();
        ws.to_str().unwrap().to_owned()
    }

    /// A pane of a tmux server of this place.
    fn open_pane(&self) -> String {
        let output = self.run("tmux -f /dev/null new-session -d -P -F '#{pane_id}' cat -");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Any name of a host is this machine, with the tools on its PATH.
    fn serve_ssh(&self) {
        let keys = "for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done";
        assert!(self.run(keys).status.success());
        let proxy = self.sandbox.script("sshd", SSHD);
        let root = self.root();
        let (root, proxy) = (root.display(), proxy.display());
        let server = format!(
            "HostKey {root}/host\nAuthorizedKeysFile {root}/user.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nSetEnv PATH={}:/usr/bin:/bin\n",
            bin_dir().display()
        );
        std::fs::write(self.path("sshd_config"), server).unwrap();
        let client = format!(
            "ProxyCommand {proxy}\nIdentityFile {root}/user\nIdentitiesOnly yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        );
        std::fs::write(self.path("ssh_config"), client).unwrap();
        let ssh = "#!/bin/sh\nPATH=${PATH#*:} exec ssh -F \"$HOME/ssh_config\" \"$@\"\n";
        self.sandbox.script("bin/ssh", ssh);
    }

    /// A wrapper that holds the session, whose conversation is there.
    fn start_wrapper(&self) -> Killed {
        let slug = self.ws().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let folder = self.path(&format!(".claude/projects/{slug}"));
        std::fs::create_dir_all(&folder).unwrap();
        let line = json!({"type": "user", "sessionId": self.session, "cwd": self.ws()});
        let transcript = folder.join(format!("{}.jsonl", self.session));
        std::fs::write(transcript, format!("{line}\n")).unwrap();

        let wrapper = self.sandbox.script("wrapper.sh", WRAPPER);
        let nothing = self.path("ws/nothing");
        assert!(
            Command::new("mkfifo")
                .arg(nothing)
                .status()
                .unwrap()
                .success()
        );
        let argument = json!({"command": "claude", "args": ["--session-id", self.session]});
        let child = Command::new("bash")
            .arg(wrapper)
            .arg(argument.to_string())
            .current_dir(self.ws())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let child = Killed(child.unwrap());
        until("the wrapper is up", || self.path("ws/up").exists());
        child
    }

    /// Runs a script of bash here.
    pub fn run(&self, script: &str) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.path("bin");
        let mut command = Command::new("timeout");
        command
            .args(["-k", "5", "120", "bash", "-c", script])
            .current_dir(self.root())
            .env(
                "PATH",
                format!("{}:{}:{path}", bin.display(), bin_dir().display()),
            )
            .env("HOME", self.root())
            .env("TMUX_TMPDIR", self.root())
            .env("id", &self.session)
            .env("ws", self.ws())
            .env("pane", self.pane.as_deref().unwrap_or_default())
            .stdin(Stdio::null());
        for name in [
            "TMUX",
            "TMUX_PANE",
            "CLAUDE_CONFIG_DIR",
            "CLAUDECODE",
            "MAKEFLAGS",
        ] {
            command.env_remove(name);
        }
        if let Some(herdr) = &self.herdr {
            command.env("HERDR_SOCKET_PATH", herdr.socket());
        }
        command.output().unwrap()
    }

    /// The records that were printed, and those in files here.
    pub fn records(&self, output: &Output) -> Vec<Value> {
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        for entry in std::fs::read_dir(self.root()).unwrap() {
            let path = entry.unwrap().path();
            let of_records = path
                .extension()
                .is_some_and(|e| e == "json" || e == "jsonl");
            if of_records {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
        let records = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        records.filter(Value::is_object).collect()
    }
}

impl Drop for Stage {
    /// Whatever was started here is ended, by identity.
    fn drop(&mut self) {
        let found = self
            .sandbox
            .tool("holder-scan")
            .args(["-o", "ident", "--cwd-under"])
            .arg(self.root())
            .output()
            .unwrap();
        for ident in String::from_utf8_lossy(&found.stdout).lines() {
            self.sandbox.track(ident);
        }
    }
}

/// A herdr with a pane, `w1:p1`, whose agent is blocked.
fn blocked_agent() -> Herdr {
    let herdr = Herdr::start();
    let pane = herdr.create("/tmp", "a");
    assert_eq!(pane, "w1:p1");
    herdr.report(&pane, "claude", "blocked");
    herdr
}
