//! A session that several processes have to do with: a wrapper of ours, a stranger, and somebody
//! who only names it.

use std::process::Command;

use crate::stage::{Ran, feed};
use crate::support::{Sandbox, lives, number, until};

/// What scripts begin with. Every scene has a session of its own: `holder-scan` sees the whole
/// machine, with all other tests.
const PRELUDE: &str = r#"
set -o pipefail
scan() { holder-scan --session-id "$id" --own-arg wrapper.sh --own-cwd "$PWD" "$@"; }
"#;

/// The wrapper has its id only in the JSON of its argument, and what it has started has left its
/// session. With `deaf` in its environment it notes that it was asked to end, and stays.
const WRAPPER: &str = r#"
[ -z "${deaf-}" ] || trap 'echo >>asked' TERM
setsid sleep 600 &
echo $! >child
touch ready
while :; do wait; sleep 0.02; done
"#;

pub struct Scene {
    pub sandbox: Sandbox,
    pub id: String,
    /// The wrapper, and what it has started.
    pub own: i32,
    pub child: i32,
    pub foreign: i32,
    pub mention: i32,
}

impl Scene {
    /// A scene whose wrapper ends when it is asked to.
    pub fn new() -> Scene {
        Scene::with(&[])
    }

    /// A scene whose wrapper does not end when it is asked to, and notes that in the file `asked`.
    pub fn deaf() -> Scene {
        Scene::with(&[("deaf", "yes")])
    }

    fn with(env: &[(&str, &str)]) -> Scene {
        let sandbox = Sandbox::new();
        let id = new_id();
        std::fs::write(sandbox.path("wrapper.sh"), WRAPPER).unwrap();
        sandbox.script("claude", "#!/bin/sh\nsleep 600\n");
        let transcript = format!("{id}.jsonl");
        std::fs::write(sandbox.path(&transcript), "").unwrap();
        // The padding makes a record longer than what is written to a pipe at once.
        let json = serde_json::json!({
            "command": "claude", "args": ["--session-id", id], "padding": "-".repeat(2500),
        });
        let json = json.to_string();
        let start = |words: &[&str]| {
            let mut command = sandbox.tool("detach");
            command.args(words).envs(env.iter().copied());
            let record = crate::support::record(&command.output().unwrap());
            sandbox.track(record["ident"].as_str().unwrap());
            number(&record, "pid")
        };
        let own = start(&["--ready-file", "ready", "--", "bash", "wrapper.sh", &json]);
        let foreign = start(&["--", "./claude", "--resume", &id]);
        let mention = start(&["--", "tail", "-f", &transcript]);
        let child = std::fs::read_to_string(sandbox.path("child")).unwrap();
        let child = child.trim().parse().unwrap();
        sandbox.track_pid(child);
        Scene {
            sandbox,
            id,
            own,
            child,
            foreign,
            mention,
        }
    }

    /// A line of bash about this session.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.sandbox.bash(&format!("{PRELUDE}{line}"));
        command.env("id", &self.id);
        command
    }

    /// Runs a line of bash about this session.
    #[track_caller]
    pub fn run(&self, line: &str) -> Ran {
        let ran = feed(self.command(line), b"");
        self.assert_others_live(line);
        ran
    }

    /// Whoever is not ours lives, whatever was done.
    #[track_caller]
    pub fn assert_others_live(&self, what: &str) {
        assert!(lives(self.foreign), "the stranger is dead: {what}");
        assert!(lives(self.mention), "who only names it is dead: {what}");
    }

    /// Whether our wrapper and what it has started live: both or neither.
    #[track_caller]
    pub fn own_lives(&self) -> bool {
        let own = lives(self.own);
        assert_eq!(own, lives(self.child), "half of the tree is dead");
        own
    }

    pub fn exists(&self, name: &str) -> bool {
        self.sandbox.path(name).exists()
    }

    /// Waits until the wrapper was asked to end.
    #[track_caller]
    pub fn until_asked(&self) {
        until("the wrapper was asked to end", || self.exists("asked"));
    }
}

/// An id that no other test has.
pub fn new_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    id.trim().to_owned()
}

/// What a command is put behind so that it gets `signal` as it makes the system call `call` for
/// the `nth` time; by KILL, the call is not made any more.
pub fn struck(signal: &str, call: &str, nth: u32) -> String {
    format!(
        "strace -f -qq -o /dev/null -e trace={call} -e inject={call}:signal={signal}:when={nth}"
    )
}
