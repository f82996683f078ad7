//! `--follow`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::stage::{AFTER, Waiting, command, cpu_of, ms, start, wait};
use crate::support::{Sandbox, until};

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A wait that has armed its watch.
fn following(sandbox: &Sandbox, words: &[&str]) -> Waiting {
    let all = [
        &["--follow", "f", "--ack-line", "armed", "--timeout", "20"],
        words,
    ]
    .concat();
    let waiting = start(command(sandbox, &all));
    waiting.until_printed("armed\n");
    waiting
}

#[test]
fn where_to_begin() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    append(&path, "one\ntwo\nthr");
    let at = |from: &str| {
        let words = ["--follow", "f", "--from", from, "--all", "--timeout", "0"];
        let waited = wait(&sandbox, &words);
        (waited.stdout.clone(), waited.count("offset"))
    };
    assert_eq!(at("start"), ("one\ntwo\n".to_owned(), 8));
    assert_eq!(at("4"), ("two\n".to_owned(), 8));
    assert_eq!(at("8"), (String::new(), 8));
    // Shorter than it was: another file by now.
    assert_eq!(at("999"), ("one\ntwo\n".to_owned(), 8));
    // What has begun before counts once it is whole.
    let waiting = following(&sandbox, &[]);
    append(&path, "ee\n");
    let waited = waiting.finish();
    assert_eq!(waited.ended(0, "matched").stdout, "armed\nthree\n");
    assert_eq!(waited.count("offset"), 14);
}

#[test]
fn the_offset_is_where_to_go_on() {
    let sandbox = Sandbox::new();
    append(&sandbox.path("f"), "a\nb\nc\nd\n");
    let mut from = "start".to_owned();
    let mut seen = String::new();
    for _ in 0..4 {
        let waited = wait(
            &sandbox,
            &["--follow", "f", "--from", &from, "--timeout", "9"],
        );
        seen += &waited.ended(0, "matched").stdout;
        from = waited.count("offset").to_string();
    }
    assert_eq!(seen, "a\nb\nc\nd\n");
}

#[test]
fn a_file_may_appear_later() {
    let sandbox = Sandbox::new();
    let words = ["--follow", "d/f", "--line", "ok", "--timeout", "20"];
    let words = [&words[..], &["--ack-line", "armed"]].concat();
    let waiting = start(command(&sandbox, &words));
    waiting.until_printed("armed\n");
    let made = std::time::Instant::now();
    fs::create_dir(sandbox.path("d")).unwrap();
    append(&sandbox.path("d/f"), "first\nok\n");
    let waited = waiting.finish();
    waited.ended(0, "matched").gone_after(made, AFTER);
    assert_eq!(
        (waited.stdout.as_str(), waited.count("seen")),
        ("armed\nok\n", 2)
    );
}

#[test]
fn a_file_may_be_rotated_truncated_and_saved_by_rename() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    append(&path, "before\n");
    let waiting = following(&sandbox, &["--all", "--line", "^[a-z]+[0-9]$"]);
    let mut expected = String::from("armed\n");
    let mut expect = |line: &str| {
        expected += line;
        waiting.until_printed(line);
    };
    append(&path, "line1\n");
    expect("line1\n");
    // Rotated, with a last line in the old file after that.
    fs::rename(&path, sandbox.path("f.1")).unwrap();
    append(&sandbox.path("f.1"), "line2\n");
    expect("line2\n");
    append(&path, "line3\n");
    expect("line3\n");
    // Truncated in place.
    File::create(&path).unwrap();
    append(&path, "x4\n");
    expect("x4\n");
    // Saved twice as editors do.
    for line in ["line5\n", "line6\n"] {
        append(&sandbox.path("f.tmp"), line);
        fs::rename(sandbox.path("f.tmp"), &path).unwrap();
        expect(line);
    }
    // Deleted, and made anew.
    fs::remove_file(&path).unwrap();
    append(&path, "line7\n");
    expect("line7\n");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(waiting.pid()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    let waited = waiting.finish();
    waited.died(15, "interrupted");
    assert_eq!(waited.stdout, expected);
    assert_eq!(waited.count("offset"), 6);
}

#[test]
fn a_file_that_is_written_anew_is_read_anew_whatever_its_size() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    for (before, after, want) in [
        // Longer than before: from where the old one ended it would be another line.
        ("one\n", "not ready\n", "not ready"),
        ("one\ntwo\n", "a\nb\nready\n", "a"),
        // As long as before, and shorter.
        ("123456789\n", "ready----\n", "ready----"),
        ("123456789\n", "ready\n", "ready"),
        // The part of a line that was there has no other part.
        ("not yet", "ready\nset\n", "ready"),
    ] {
        fs::write(&path, before).unwrap();
        let waiting = following(&sandbox, &[]);
        // As a shell does it: truncated, and written to before anybody can look.
        fs::write(&path, after).unwrap();
        let waited = waiting.finish();
        let said = waited.ended(0, "matched").stdout.clone();
        assert_eq!(said, format!("armed\n{want}\n"), "{before:?}, {after:?}");
    }
    // Nothing has happened to what is only touched, or written to again as it was.
    fs::write(&path, "same\n").unwrap();
    let waiting = start(command(
        &sandbox,
        &["--follow", "f", "--timeout", "0.5", "--ack-line", "armed"],
    ));
    waiting.until_printed("armed\n");
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .write_all(b"same\n")
        .unwrap();
    waiting.finish().ended(124, "deadline");
}

#[test]
fn a_fifo_whose_writers_come_and_go() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let waiting = following(&sandbox, &["--line", "third"]);
    for line in ["first\n", "second\n"] {
        fs::write(&path, line).unwrap();
        std::thread::sleep(ms(150));
    }
    assert!(cpu_of(waiting.pid()) < ms(50), "it spins");
    fs::write(&path, "third\n").unwrap();
    waiting.finish().ended(0, "matched");
}

#[test]
fn a_fifo_that_nobody_opens_is_no_trap() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let waited = wait(&sandbox, &["--follow", "f", "--timeout", "0.3"]);
    waited.ended(124, "deadline").gone_at(ms(300));
}

#[test]
fn what_can_never_be_followed_is_said() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("f")).unwrap();
    let waited = wait(&sandbox, &["--follow", "f", "--timeout", "9"]);
    waited.ended(3, "source_error").gone_at(ms(0));
    assert!(waited.stderr.contains("cannot follow f"), "{waited:?}");
}

#[test]
fn growth_does_not_cost_more_than_reading() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("f");
    append(&path, "");
    let waiting = following(&sandbox, &["--all", "--line", "^last$"]);
    // Line by line, as logs are written; then a burst.
    for _ in 0..200 {
        append(&path, "a line of the log\n");
    }
    append(&path, &"x\n".repeat(1_000_000));
    append(&path, "last\n");
    waiting.until_printed("last\n");
    until("all is read", || waiting.printed().ends_with("last\n"));
    let cpu = cpu_of(waiting.pid());
    assert!(cpu < ms(5000), "{cpu:?}");
}
