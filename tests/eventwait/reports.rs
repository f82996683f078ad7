//! Reports of other programs that wait. Most of them are shown by the tests of the sources; the
//! rest are here. Those without a test are in `tests/cases.md`.
//!
//! | situation | where |
//! |---|---|
//! | a path appears between the test and the watch | `races` |
//! | a path that is there, or gone, already; of any type | `paths` |
//! | a folder that is not there yet; two levels, one after the other | `paths` |
//! | no inotify instance left; no notice of changes | `paths` |
//! | saved by rename, twice | `files` |
//! | lines longer than a buffer; characters cut in two | `lines`, `sockets` |
//! | a reader that goes away; a pipe that is full, or non-blocking | `bounds` |
//! | paths of sockets of 103 to 300 bytes, and never a prefix of them | `paths` |
//! | a socket file without a server | `paths` |
//! | the one who would signal dies first | `paths`, `sockets` (`--pid`) |
//! | writers of a FIFO that come and go | `files` |
//! | a second `--path` | `paths` |
//! | the wall clock is set | `clock`, with the tests of all six |

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::stage::{AFTER, command, ms, start, wait};
use crate::support::{Sandbox, bin_dir};

#[test]
fn a_line_and_then_silence() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("log");
    std::fs::write(&path, "").unwrap();
    let words = [
        "--follow",
        "log",
        "--line",
        "ready",
        "--ack-line",
        "armed",
        "--timeout",
        "20",
    ];
    let waiting = start(command(&sandbox, &words));
    waiting.until_printed("armed\n");
    let written = std::time::Instant::now();
    std::fs::write(&path, "ready\n").unwrap();
    let waited = waiting.finish();
    waited.ended(0, "matched");
    waited.gone_after(written, AFTER);
}

#[test]
fn a_background_job_of_a_terminal_that_stops_writers() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("p"), "").unwrap();
    // An interactive shell on a terminal of its own; what the job writes there stops it.
    let script = "stty tostop; set -m\n\
        eventwait --path p --timeout 0.5 --summary=sum &\n\
        sleep 1; jobs > jobs; fg > /dev/null; echo \"status=$?\"; stty -a | grep -o '[-]*tostop'";
    let output = Command::new("script")
        .args(["-qec"])
        .arg(format!("bash -c '{}'", script.replace('\'', "'\\''")))
        .arg("/dev/null")
        .env("PATH", format!("{}:/usr/bin:/bin", bin_dir().display()))
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let jobs = std::fs::read_to_string(sandbox.path("jobs")).unwrap();
    assert!(jobs.contains("Stopped"), "{jobs}\n{text}");
    assert!(
        text.contains("status=0") || text.contains("status=124"),
        "{text}"
    );
    assert!(
        text.contains("\ntostop"),
        "its modes are as they were: {text}"
    );
}

#[test]
fn a_background_job_says_nothing_and_is_not_stopped() {
    let sandbox = Sandbox::new();
    // It prints nothing to the terminal, and what would be shown of a long wait is not shown.
    let script = "stty tostop; set -m\n\
        eventwait --path never --timeout 2.5 & sleep 2.3; jobs > jobs; wait $!; echo \"status=$?\"";
    let output = Command::new("script")
        .args(["-qec"])
        .arg(format!("bash -c '{}'", script.replace('\'', "'\\''")))
        .arg("/dev/null")
        .env("PATH", format!("{}:/usr/bin:/bin", bin_dir().display()))
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let jobs = std::fs::read_to_string(sandbox.path("jobs")).unwrap();
    assert!(jobs.contains("Running"), "{jobs}\n{text}");
    assert!(text.contains("status=124"), "{text}");
    assert!(!text.contains("waiting for"), "{text}");
}

#[test]
fn listening_and_answering_are_two_conditions() {
    let sandbox = Sandbox::new();
    let listener = UnixListener::bind(sandbox.path("s")).unwrap();
    wait(&sandbox, &["--connect", "s", "--timeout", "20"]).ended(0, "matched");
    let words = [
        "--socket",
        "s",
        "--send",
        "ping",
        "--line",
        "^pong$",
        "--timeout",
        "20",
    ];
    let waiting = start(command(&sandbox, &words));
    let _probe = listener.accept().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    std::thread::sleep(ms(100));
    stream.write_all(b"pong\n").unwrap();
    waiting.finish().ended(0, "matched").not_before(ms(100));
}

#[test]
fn a_log_that_floods_while_it_is_waited_for() {
    let sandbox = Sandbox::new();
    let log = std::fs::File::create(sandbox.path("log")).unwrap();
    let mut log = std::io::BufWriter::new(log);
    for n in 0..500_000 {
        writeln!(log, "line {n} of many").unwrap();
    }
    writeln!(log, "ready").unwrap();
    for n in 0..500_000 {
        writeln!(log, "line {n} after that").unwrap();
    }
    log.flush().unwrap();
    let waited = wait(
        &sandbox,
        &[
            "--follow",
            "log",
            "--from",
            "start",
            "--line",
            "^ready$",
            "--timeout",
            "20",
        ],
    );
    assert_eq!(waited.ended(0, "matched").stdout, "ready\n");
    assert_eq!(waited.count("seen"), 500_001, "it stops at the match");
    // What a process has written before its end is read before that is said.
    let words = [
        "--follow",
        "log",
        "--from",
        "start",
        "--pid",
        "2147483",
        "--timeout",
        "20",
    ];
    let last = [&words[..], &["--line", "^line 499999 after"]].concat();
    wait(&sandbox, &last).ended(0, "matched");
    let never = [&words[..], &["--line", "^never$"]].concat();
    wait(&sandbox, &never).ended(1, "process_ended");
}
