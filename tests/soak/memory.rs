//! Memory of what reads very many records.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::house::{House, memory};
use crate::support::{Killed, record, rounds, state, until};

/// How many records in a normal run; `MUXUTILS_SOAK=10` makes 100,000 of them.
const RECORDS: u32 = 10_000;

/// A record of a type that is for nobody.
fn stranger() -> String {
    let padding = "x".repeat(200);
    format!("{{\"type\":\"session\",\"padding\":\"{padding}\"}}\n")
}

/// Feeds `command` with the record `line`, `count` times, and ends its input. The memory that it
/// has, in kB, after a tenth of them and after all; and what it says of them.
fn feed(house: &House, mut command: Command, line: &str, count: u32) -> ([u64; 2], String) {
    let output = std::fs::File::create(house.path("output")).unwrap();
    command.stdin(Stdio::piped()).stdout(output);
    let mut child = Killed(command.spawn().unwrap());
    let mut stdin = child.0.stdin.take().unwrap();
    let pid = child.0.id();
    let mut feed = |times: u32| {
        for _ in 0..times {
            stdin.write_all(line.as_bytes()).unwrap();
        }
        until("all of it is read", || {
            rustix::io::ioctl_fionread(&stdin).unwrap() == 0
                && state(pid.cast_signed()) == Some('S')
        });
        memory(&pid.to_string())
    };
    let cost = [feed(count / 10), feed(count - count / 10)];
    let tool = command.get_program().to_string_lossy().into_owned();
    println!("{tool}: {} kB, then {} kB", cost[0], cost[1]);
    drop(stdin);
    child.0.wait().unwrap();
    let said = std::fs::read_to_string(house.path("output")).unwrap();
    (cost, said)
}

/// What needs no record any more keeps none.
#[test]
fn a_stream_takes_no_memory() {
    let house = House::new();
    let count = rounds(RECORDS);
    let id = "6f1c1d2e-0000-4000-8000-000000000000";
    let streams: [(&str, &[&str]); 3] = [
        (
            "eventwait",
            &["--stdin", "--all", "--match", "type=x", "--timeout", "1h"],
        ),
        (
            "eventwait",
            &["--stdin", "--all", "--line", "y$", "--timeout", "1h"],
        ),
        (
            "resume-id",
            &[
                "--agent",
                "claude",
                "--cwd",
                "/",
                "--session-id",
                id,
                "--holders",
                "-",
                "--timeout",
                "1h",
            ],
        ),
    ];
    for (tool, words) in streams {
        let mut command = house.tool(tool);
        command.args(words);
        let ([early, late], _) = feed(&house, command, &stranger(), count);
        // Some pages come late, and only once.
        assert!(late <= early + 256, "{tool}: {early} kB, then {late} kB");
    }
    // What is passed on may wait for its reader, within bounds.
    let mut command = house.tool("eventwait");
    command.args(["--stdin", "--all", "--timeout", "1h"]);
    let ([_, late], said) = feed(&house, command, &stranger(), count);
    assert!(late < 8 << 10, "{late} kB");
    assert_eq!(said.lines().count(), count as usize);
    house.assert_empty();
}

/// What answers all records at once keeps them, and not much more than them.
#[test]
fn a_batch_takes_little_more_than_its_records() {
    let house = House::new();
    let count = rounds(RECORDS);
    let output = house.tool("detach").arg("true").output().unwrap();
    let dead = record(&output);
    until("it is dead", || {
        house.collect(&[]);
        crate::house::family().is_empty()
    });
    let dead = format!("{dead}\n");
    let batches: [(&str, &[&str], &str); 4] = [
        ("reap", &[], &dead),
        ("reap", &[], &stranger()),
        ("pane-ident", &["verify", "--timeout", "1h"], &dead),
        (
            "holder-scan",
            &["--registry", "-", "--timeout", "1h"],
            &stranger(),
        ),
    ];
    for (tool, words, line) in batches {
        let mut command = house.tool(tool);
        command.args(words);
        let ([early, late], said) = feed(&house, command, line, count);
        let size = line.len() as u64 * u64::from(count) / 1024;
        assert!(
            late <= 4 * size,
            "{tool}: {early} kB, then {late} kB of {size} kB"
        );
        // A scan has a last word.
        assert!(said.lines().count() >= count as usize, "{tool}");
    }
    house.assert_empty();
}
