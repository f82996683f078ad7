//! Standard output that nobody reads any more, or that cannot be written.

use std::process::Stdio;

use crate::stage::{FILTERS, Job, Ran, TOOLS, command};
use crate::support::Sandbox;

/// Every tool with a job that says something, whatever its input.
const SPEAKERS: [Job; 9] = [
    ("reap", &["--dry-run"]),
    ("pane-ident", &["verify"]),
    ("pane-ident", &["capture", "--pid", "PID"]),
    ("holder-scan", &["--dump"]),
    ("holder-scan", &["--arg", "nobody has this argument"]),
    ("resume-id", &["--list-agents"]),
    ("resume-id", &["--agent", "claude", "--cwd", "/"]),
    ("eventwait", &["--path", "/", "--timeout", "1m"]),
    ("eventwait", &["--stdin", "--timeout", "1m"]),
];

/// A record that is passed on by whoever reads records.
const LINE: &str = "{\"type\":\"x\",\"type\":\"session\"}\n";

fn full() -> Stdio {
    std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), LINE).unwrap();
    let forms: [&[&str]; 4] = [&[], &["-o", "type,v"], &["-o", "type,v", "--sh"], &["-H"]];
    for job in SPEAKERS {
        for form in forms {
            let ran = command(&sandbox, job)
                .args(form)
                .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
                .stdout(full())
                .output()
                .unwrap();
            let ran = Ran::of(ran);
            assert_eq!(ran.code, Some(125), "{job:?} {form:?}: {ran:?}");
            let err = ran.err();
            assert!(
                err.starts_with(&format!("{}: ", job.0)) && err.lines().count() == 1,
                "{job:?} {form:?}: {err}"
            );
        }
        // Who says nothing cannot fail to say it.
        let ran = command(&sandbox, job)
            .arg("-q")
            .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
            .stdout(full())
            .output()
            .unwrap();
        assert_ne!(ran.status.code(), Some(125), "{job:?}: {ran:?}");
    }
}

#[test]
fn a_closed_output_cannot_be_written_either() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), LINE).unwrap();
    for job in SPEAKERS {
        let inner = command(&sandbox, job);
        let ran = sandbox
            .bash(r#"exec "$0" "$@" <in >&-"#)
            .arg(inner.get_program())
            .args(inner.get_args())
            .output()
            .unwrap();
        let ran = Ran::of(ran);
        assert_eq!(ran.code, Some(125), "{job:?}: {ran:?}");
        assert!(
            ran.err().contains("cannot write to standard output"),
            "{ran:?}"
        );
    }
    // A daemon is started by whoever has no output at all.
    let started = sandbox
        .bash("detach -- touch started <&- >&- 2>&-")
        .output();
    assert_eq!(started.unwrap().status.code(), Some(0));
    crate::support::until("it has run", || sandbox.path("started").exists());
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    for tool in TOOLS {
        for option in ["-h", "--help", "--version"] {
            let output = sandbox
                .tool(tool)
                .arg(option)
                .stdout(full())
                .output()
                .unwrap();
            let ran = Ran::of(output);
            assert_eq!(ran.code, Some(125), "{tool} {option}: {ran:?}");
            assert!(ran.err().starts_with(&format!("{tool}: ")), "{ran:?}");
        }
    }
}

/// A command whose start could not be reported is not left behind.
#[test]
fn a_start_that_cannot_be_reported_is_undone() {
    let sandbox = Sandbox::new();
    let script = "echo $$ >pid; exec sleep 600";
    for reader_is_gone in [false, true] {
        let mut command = sandbox.tool("detach");
        command.args(["--ready-file", "pid", "--", "bash", "-c", script]);
        let ran = if reader_is_gone {
            command.stdout(gone())
        } else {
            command.stdout(full())
        };
        let ran = Ran::of(ran.output().unwrap());
        if reader_is_gone {
            assert_eq!((ran.signal, ran.err().as_str()), (Some(13), ""), "{ran:?}");
        } else {
            assert_eq!(ran.code, Some(125), "{ran:?}");
        }
        let pid = std::fs::read_to_string(sandbox.path("pid")).unwrap();
        let pid: i32 = pid.trim().parse().unwrap();
        if crate::support::lives(pid) {
            sandbox.track_pid(pid);
            panic!("{pid} was left behind");
        }
        std::fs::remove_file(sandbox.path("pid")).unwrap();
    }
}

/// A pipe whose reader has gone.
fn gone() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

#[test]
fn a_reader_that_is_gone_ends_it_quietly() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), LINE).unwrap();
    for job in SPEAKERS {
        let output = command(&sandbox, job)
            .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
            .stdout(gone())
            .output()
            .unwrap();
        let ran = Ran::of(output);
        assert_eq!(
            (ran.signal, ran.err().as_str()),
            (Some(13), ""),
            "{job:?}: {ran:?}"
        );
    }
    for tool in TOOLS {
        let output = sandbox
            .tool(tool)
            .arg("--help")
            .stdout(gone())
            .output()
            .unwrap();
        let ran = Ran::of(output);
        assert_eq!(
            (ran.signal, ran.err().as_str()),
            (Some(13), ""),
            "{tool}: {ran:?}"
        );
    }
}

/// `| head -1` sees a line, and the shell what it sees of any other filter.
#[test]
fn before_head() {
    let sandbox = Sandbox::new();
    let line = format!("{{\"type\":\"session\",\"x\":\"{}\"}}\n", "y".repeat(1000));
    std::fs::write(sandbox.path("in"), line.repeat(2000)).unwrap();
    let filters = FILTERS
        .iter()
        .map(|(tool, words)| format!("{tool} {}", words.join(" ")));
    let all = filters.chain(["eventwait --stdin --all --timeout 1m".to_owned()]);
    for tool in all {
        let script = format!("{tool} <in | head -1; echo \"${{PIPESTATUS[*]}}\"");
        let ran = Ran::of(sandbox.bash(&script).output().unwrap());
        let status = if tool.starts_with("eventwait") {
            // It may have met a match before the reader went.
            ran.lines()[1].clone()
        } else {
            "141 0".to_owned()
        };
        assert_eq!(ran.out(), format!("{line}{status}\n"), "{tool}");
        assert_eq!(ran.err(), "", "{tool}");
    }
}

/// Whoever reads slowly gets all of it, whole.
#[test]
fn a_slow_reader_gets_every_byte() {
    let sandbox = Sandbox::new();
    let line = format!("{{\"type\":\"session\",\"x\":\"{}\"}}\n", "y".repeat(9000));
    std::fs::write(sandbox.path("in"), line.repeat(100)).unwrap();
    let script = "set -o pipefail; reap <in | \
        python3 -c 'import os, time
while part := os.read(0, 7000): time.sleep(.001); os.write(1, part)' | \
        { pane-ident verify || [ $? = 1 ]; } | cmp - in";
    let ran = Ran::of(sandbox.bash(script).output().unwrap());
    assert_eq!((ran.code, ran.out().as_str()), (Some(0), ""), "{ran:?}");
}

/// What others share with us stays as it is, also while we wait for room.
#[cfg(target_os = "linux")]
#[test]
fn the_flags_of_a_shared_pipe_stay_as_they_are() {
    use crate::support::until;

    let sandbox = Sandbox::new();
    let line = format!("{{\"type\":\"session\",\"x\":\"{}\"}}\n", "y".repeat(1000));
    std::fs::write(sandbox.path("in"), line.repeat(200)).unwrap();
    let jobs = [
        ("reap", &[][..]),
        ("pane-ident", &["verify", "--timeout", "1m"]),
        ("eventwait", &["--stdin", "--all", "--timeout", "1m"]),
    ];
    for (tool, words) in jobs {
        let (reader, writer) = std::io::pipe().unwrap();
        let shared = writer.try_clone().unwrap();
        let flags = || nix::fcntl::fcntl(&shared, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        let before = flags();
        let mut child = sandbox
            .tool(tool)
            .args(words)
            .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
            .stdout(writer)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        until("it waits for room", || {
            let wait = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            let blocked = ["pipe", "poll", "sys"]
                .iter()
                .any(|what| wait.contains(what));
            crate::support::state(pid) == Some('S') && (blocked || wait == "0")
        });
        assert_eq!(flags(), before, "{tool}");
        drop(reader);
        child.wait().unwrap();
        assert_eq!(flags(), before, "{tool}");
    }
}
