//! A writer races the start of the wait: whatever comes first, nothing is lost.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::stage::{command, ms};
use crate::support::{Sandbox, rounds};

/// How many rounds in a normal run; `MUXUTILS_SOAK=250` makes 10,000 of them.
const ROUNDS: u32 = 40;

/// A lost wake-up shows as a wait that goes on; what is noticed by looking now and then counts as
/// lost.
const NOTICED: Duration = Duration::from_millis(600);

/// Runs a wait again and again while another thread does something at a moment that moves across
/// the start of the wait, and asserts that each wait sees it.
fn race(words: &[&str], clear: impl Fn(&Sandbox), act: impl Fn(&Sandbox) + Send + Sync) {
    let sandbox = Sandbox::new();
    let mut slow = 0;
    let count = rounds(ROUNDS);
    for round in 0..count {
        clear(&sandbox);
        let (go, gone) = channel::<()>();
        let (sandbox, act) = (&sandbox, &act);
        std::thread::scope(|scope| {
            let actor = scope.spawn(move || {
                gone.recv().unwrap();
                // From before the watch is armed to well after.
                std::thread::sleep(Duration::from_micros(u64::from(round % 40) * 150));
                act(sandbox);
                Instant::now()
            });
            let mut child = command(sandbox, words);
            child
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null());
            go.send(()).unwrap();
            let status = child.status().unwrap();
            let ended = Instant::now();
            assert_eq!(status.code(), Some(0), "round {round}");
            let acted = actor.join().unwrap();
            if ended.saturating_duration_since(acted) > NOTICED {
                slow += 1;
            }
        });
    }
    // A machine that is busy with other things may be late once, and a race lost is lost often.
    assert!(slow <= count / 20, "{slow} of {count} were noticed late");
}

#[test]
fn a_path_that_appears() {
    let remove = |sandbox: &Sandbox| {
        let _ = std::fs::remove_dir_all(sandbox.path("d"));
    };
    let make = |sandbox: &Sandbox| {
        std::fs::create_dir(sandbox.path("d")).unwrap();
        std::fs::write(sandbox.path("d/p"), "").unwrap();
    };
    race(&["--path", "d/p", "--timeout", "20"], remove, make);
}

#[test]
fn a_path_that_goes() {
    let make = |sandbox: &Sandbox| std::fs::write(sandbox.path("p"), "").unwrap();
    let remove = |sandbox: &Sandbox| std::fs::remove_file(sandbox.path("p")).unwrap();
    race(&["--path", "p", "--gone", "--timeout", "20"], make, remove);
}

#[test]
fn a_file_that_appears_with_its_line() {
    let remove = |sandbox: &Sandbox| {
        let _ = std::fs::remove_file(sandbox.path("f"));
    };
    let write = |sandbox: &Sandbox| std::fs::write(sandbox.path("f"), "line\n").unwrap();
    race(
        &["--follow", "f", "--from", "start", "--timeout", "20"],
        remove,
        write,
    );
}

#[test]
fn a_line_that_is_appended_and_one_in_a_replaced_file() {
    let begin = |sandbox: &Sandbox| std::fs::write(sandbox.path("f"), "old\n").unwrap();
    let append = |sandbox: &Sandbox| {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(sandbox.path("f"))
            .unwrap();
        file.write_all(b"line\n").unwrap();
    };
    let words = [
        "--follow",
        "f",
        "--from",
        "start",
        "--line",
        "line",
        "--timeout",
        "20",
    ];
    race(&words, begin, append);
    let replace = |sandbox: &Sandbox| {
        std::fs::write(sandbox.path("f.tmp"), "line\n").unwrap();
        std::fs::rename(sandbox.path("f.tmp"), sandbox.path("f")).unwrap();
    };
    race(&words, begin, replace);
}

#[test]
fn a_socket_that_begins_to_listen() {
    let listener = std::sync::Mutex::new(None);
    let close = |sandbox: &Sandbox| {
        *listener.lock().unwrap() = None;
        let _ = std::fs::remove_file(sandbox.path("s"));
    };
    let listen = |sandbox: &Sandbox| {
        *listener.lock().unwrap() = Some(UnixListener::bind(sandbox.path("s")).unwrap());
    };
    race(&["--connect", "s", "--timeout", "20"], close, listen);
}

#[test]
fn a_process_that_ends() {
    let sandbox = Sandbox::new();
    for round in 0..rounds(ROUNDS) {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id().to_string();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(u64::from(round % 40) * 150));
            child.kill().unwrap();
            // Collected at once in every other round.
            if round % 2 == 0 {
                std::thread::sleep(ms(5));
            }
            child.wait().unwrap();
        });
        let output = command(&sandbox, &["--exit", &pid, "--timeout", "20"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "round {round}: {output:?}");
        killer.join().unwrap();
    }
}
