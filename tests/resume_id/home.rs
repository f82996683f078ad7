//! A user's home with an agent in it: a script of that name which says how it was called.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Sandbox, bin_dir, record};

pub const A1: &str = "00000000-0000-4000-8000-0000000000a1";
pub const B2: &str = "00000000-0000-4000-8000-0000000000b2";

pub struct Home {
    pub sandbox: Sandbox,
}

impl Home {
    pub fn new() -> Home {
        let home = Home {
            sandbox: Sandbox::new(),
        };
        std::fs::create_dir(home.path("w")).unwrap();
        std::fs::create_dir(home.path("bin")).unwrap();
        let agent = "#!/bin/sh\n\
            exec >>\"$HOME/called\"\n\
            echo \"$$ $PWD ${CLAUDE_CODE_CHILD_SESSION-unset} $*\"\n";
        home.sandbox.script("bin/claude", agent);
        home.sandbox.script("bin/codex", agent);
        home
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name).to_owned()
    }

    /// The working directory, with its links resolved.
    pub fn cwd(&self) -> String {
        let cwd = self.path("w").canonicalize().unwrap();
        cwd.to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The file of claude's transcript of `id` in the working directory.
    pub fn transcript(&self, id: &str) -> PathBuf {
        let slug: String = self
            .cwd()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        self.path(&format!(".claude/projects/{slug}/{id}.jsonl"))
    }

    /// Writes a transcript with one message.
    pub fn conversation(&self, id: &str) -> PathBuf {
        let path = self.transcript(id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = json!({"type": "user", "sessionId": id, "cwd": self.cwd()});
        std::fs::write(&path, format!("{line}\n")).unwrap();
        path
    }

    /// A command with this home, and the agents and the tools on its PATH.
    fn settle(&self, mut command: Command) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let agents = self.path("bin");
        command
            .env(
                "PATH",
                format!("{}:{}:{path}", agents.display(), bin_dir().display()),
            )
            .env("HOME", self.path(""))
            .current_dir(self.path("w"));
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "CLAUDECODE",
            "CLAUDE_CODE_CHILD_SESSION",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub fn tool(&self, words: &[&str]) -> Command {
        let mut command = self.settle(self.sandbox.tool("resume-id"));
        command.args(words);
        command
    }

    pub fn bash(&self, line: &str) -> Command {
        let mut command = self.settle(self.sandbox.bash(line));
        command.env("id", A1).env("ws", self.cwd());
        command
    }

    /// Decides about claude's session `id`.
    pub fn decide(&self, id: &str, words: &[&str]) -> Output {
        let cwd = self.cwd();
        let about = ["--agent", "claude", "--session-id", id, "--cwd", &cwd];
        self.tool(&[&about, words].concat()).output().unwrap()
    }

    /// What is decided.
    pub fn decision(&self, id: &str, words: &[&str]) -> Value {
        record(&self.decide(id, words))
    }

    /// How the agents were called, a line each: pid, directory, variable, arguments.
    pub fn calls(&self) -> Vec<String> {
        let called = std::fs::read_to_string(self.path("called")).unwrap_or_default();
        called.lines().map(str::to_owned).collect()
    }

    /// The arguments of the one call of an agent that there was.
    #[track_caller]
    pub fn the_call(&self) -> String {
        let calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls[0]
            .splitn(4, ' ')
            .nth(3)
            .unwrap_or_default()
            .to_owned()
    }

    /// Follows a decision that comes on stdin.
    pub fn exec(&self, input: &str) -> Output {
        with_input(self.tool(&["--exec", "--decision", "-"]), input)
    }
}

/// Runs a command with this input.
pub fn with_input(mut command: Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses early does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// A scan of here and now about `id`.
pub fn scan(id: &str, verdict: &str) -> Value {
    let here = process::Here::new();
    json!({
        "v": 1, "type": "scan", "what": {"session_id": [id]}, "verdict": verdict,
        "holders": 0, "complete": true, "host": here.host(),
        "boot_id": here.boot().map(|boot| boot.to_string()), "pidns": here.space(),
        "at": now(),
    })
}

/// The present time, as records write it.
pub fn now() -> String {
    let output = Command::new("date")
        .args(["-u", "+%FT%T.%3NZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The words of a list in a record.
pub fn words(list: &Value) -> String {
    let words: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    words.join(" ")
}

/// Makes a file that looks old.
pub fn in_the_past(path: &Path) {
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(past).unwrap();
}
