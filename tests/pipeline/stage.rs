//! The six tools as tables, and what one of them said and did.

use std::io::{PipeWriter, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use crate::support::{Sandbox, bin_dir};

/// The six.
pub const TOOLS: [&str; 6] = [
    "detach",
    "eventwait",
    "holder-scan",
    "pane-ident",
    "reap",
    "resume-id",
];

/// A tool, and the words that make it do one of its jobs. The word `PID` stands for a pid that lives.
pub type Job = (&'static str, &'static [&'static str]);

/// The filters: they read records, and pass on what is not for them.
///
/// `verify` says "all of them match", and 1 where there was nothing to match.
pub const FILTERS: [Job; 3] = [
    ("reap", &[]),
    ("pane-ident", &["verify"]),
    (
        "holder-scan",
        &["--registry", "-", "--timeout", "5m", "--uid", "4000000001"],
    ),
];

/// The exit status of a filter that had nothing to do.
pub fn idle(tool: &str) -> Option<i32> {
    Some(i32::from(tool == "pane-ident"))
}

/// Every job that waits for its standard input, and would wait for a long time.
pub const READERS: [Job; 9] = [
    ("reap", &[]),
    ("pane-ident", &["verify", "--timeout", "5m"]),
    (
        "pane-ident",
        &["capture", "--pid", "PID", "--merge", "-", "--timeout", "5m"],
    ),
    ("holder-scan", &["--registry", "-", "--timeout", "5m"]),
    (
        "holder-scan",
        &["--from", "-", "--arg", "x", "--timeout", "5m"],
    ),
    (
        "resume-id",
        &[
            "--agent",
            "claude",
            "--cwd",
            "/",
            "--session-id",
            crate::home::A1,
            "--holders",
            "-",
            "--timeout",
            "5m",
        ],
    ),
    ("resume-id", &["--row", "-", "--timeout", "5m"]),
    (
        "resume-id",
        &["--exec", "--decision", "-", "--timeout", "5m"],
    ),
    (
        "eventwait",
        &["--stdin", "--line", "never", "--timeout", "5m"],
    ),
];

/// What a tool said and did.
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy;
        let (code, signal) = (self.code, self.signal);
        let (out, err) = (text(&self.stdout), text(&self.stderr));
        write!(
            f,
            "code {code:?}, signal {signal:?}\nstdout: {out}\nstderr: {err}"
        )
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }

    /// stdout as text.
    pub fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// stderr as text.
    pub fn err(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    /// The lines of stdout.
    pub fn lines(&self) -> Vec<String> {
        self.out().lines().map(str::to_owned).collect()
    }
}

/// Runs a command with this input, however much it is and whether it is read or not.
pub fn feed(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        Ran::of(child.wait_with_output().unwrap())
    })
}

/// A tool with these words.
pub fn command(sandbox: &Sandbox, (tool, words): (&str, &[&str])) -> Command {
    let own = std::process::id().to_string();
    let mut command = sandbox.tool(tool);
    command.args(
        words
            .iter()
            .map(|&word| if word == "PID" { &own } else { word }),
    );
    command
}

/// Runs a tool with these words and this input.
pub fn run(sandbox: &Sandbox, job: (&str, &[&str]), input: &[u8]) -> Ran {
    feed(command(sandbox, job), input)
}

/// What scripts in a namespace begin with: `next PID` makes PID the next number to be handed out,
/// `lives PID` tells whether a process that is no zombie has that number.
const PRELUDE: &str = r#"
set -u
next() { echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; }
lives() { [ -d "/proc/$1" ] && ! grep -q '^State:.[ZX]' "/proc/$1/status"; }
"#;

/// Runs a bash script as init of a pid namespace, in a session of its own, with the tools on its PATH.
/// Without `with_proc`, /proc there is that of the outer namespace.
pub fn in_namespace(sandbox: &Sandbox, with_proc: bool, script: &str) -> Ran {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("setsid");
    command.args(["--wait", "unshare", "-Urpf"]);
    if with_proc {
        command.arg("--mount-proc");
    }
    command
        .args(["bash", "-c"])
        .arg(format!("{PRELUDE}{script}"))
        .env("PATH", format!("{}:{path}", bin_dir().display()))
        .current_dir(sandbox.path(""));
    feed(command, b"")
}

/// The pids of those that have this variable in their environment; a zombie has none.
pub fn marked(variable: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_it = |entry: &std::fs::DirEntry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environ
            .split(|&byte| byte == 0)
            .any(|one| one == variable.as_bytes())
    };
    processes
        .filter(has_it)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Fills a pipe to its last byte.
pub fn fill(pipe: &PipeWriter) {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    for portion in [4096, 1] {
        while rustix::io::write(pipe, &vec![b'x'; portion]).is_ok() {}
    }
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
}
