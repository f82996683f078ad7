//! One deadline bounds the whole call: input that does not come, output that nobody reads.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Job, command, fill};
use crate::support::{Killed, Sandbox};

/// How long after its deadline of 300 ms a tool may be there, on a machine on which all tests run
/// at once.
const SOON: Duration = Duration::from_secs(3);

/// How it ends, with a bound that makes a hang a failure and no endless test.
#[track_caller]
fn ends(child: Child, began: Instant, expected: i32, what: &str) {
    let mut child = Killed(child);
    let status = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < SOON, "{what}: still there");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(expected), "{what}: {status:?}");
    // Some of the time may be kept for the output.
    assert!(
        began.elapsed() >= Duration::from_millis(150),
        "{what}: too early"
    );
}

/// `resume-id` is not among them: what it reads comes from tools that take their time.
#[test]
fn input_that_does_not_come() {
    let sandbox = Sandbox::new();
    let jobs: [(Job, i32); 5] = [
        (("pane-ident", &["verify"]), 3),
        (
            ("pane-ident", &["capture", "--pid", "PID", "--merge", "-"]),
            124,
        ),
        (("holder-scan", &["--registry", "-"]), 3),
        (("holder-scan", &["--from", "-", "--arg", "x"]), 3),
        (("eventwait", &["--stdin"]), 124),
    ];
    for (job, expected) in jobs {
        let began = Instant::now();
        let mut child = command(&sandbox, job)
            .args(["--timeout", "300ms"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        ends(child, began, expected, &format!("{job:?}"));
        drop(stdin);
    }
}

#[test]
fn output_that_nobody_reads() {
    let sandbox = Sandbox::new();
    let line = format!("{{\"type\":\"session\",\"x\":\"{}\"}}\n", "y".repeat(1000));
    std::fs::write(sandbox.path("in"), line.repeat(500)).unwrap();
    let jobs: [(Job, i32); 9] = [
        (("pane-ident", &["verify"]), 3),
        (("pane-ident", &["capture", "--pid", "PID"]), 124),
        (("holder-scan", &["--dump"]), 3),
        (("holder-scan", &["--registry", "-"]), 3),
        (("holder-scan", &["--arg", "nobody has this"]), 3),
        (("resume-id", &["--list-agents"]), 3),
        (("resume-id", &["--agent", "claude", "--cwd", "/"]), 3),
        (("eventwait", &["--stdin", "--all"]), 124),
        (("eventwait", &["--path", "/"]), 124),
    ];
    for (job, expected) in jobs {
        let (reader, writer) = std::io::pipe().unwrap();
        fill(&writer);
        let began = Instant::now();
        let child = command(&sandbox, job)
            .args(["--timeout", "300ms"])
            .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
            .stdout(writer)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        ends(child, began, expected, &format!("{job:?}"));
        drop(reader);
    }
}
