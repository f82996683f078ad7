//! `--exit`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::stage::{Waited, command, ms, start, wait};
use crate::support::{Killed, Sandbox, until};

/// The records behind the line that says that the wait is armed.
fn records(waited: &Waited) -> Vec<Value> {
    let lines = waited.stdout.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn sh(script: &str) -> Killed {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::piped());
    Killed(command.spawn().unwrap())
}

#[test]
fn a_process_ends_and_so_does_the_wait() {
    let sandbox = Sandbox::new();
    for (script, code, signal) in [
        ("read x; exit 7", Value::from(7), Value::Null),
        ("read x; exit 0", Value::from(0), Value::Null),
        ("read x; kill -KILL $$", Value::Null, Value::from("KILL")),
    ] {
        let mut child = sh(script);
        let pid = child.0.id().to_string();
        let waiting = start(command(&sandbox, &["--exit", &pid, "--timeout", "20"]));
        std::thread::sleep(ms(50));
        // Nobody collects it: a zombie has ended.
        drop(child.0.stdin.take());
        let waited = waiting.finish();
        waited.ended(0, "matched").gone_at(ms(50));
        let record = &waited.records()[0];
        assert_eq!(record["pid"].to_string(), pid);
        assert!(
            record["ident"]
                .as_str()
                .unwrap()
                .contains(&format!(":{pid}:")),
            "{record}"
        );
        assert_eq!(
            (&record["code"], &record["signal"]),
            (&code, &signal),
            "{script}"
        );
        let keys: Vec<&str> = waited.stdout.split('"').collect();
        let order = [
            "v", "type", "source", "pid", "ident", "code", "signal", "at",
        ];
        let places: Vec<_> = order
            .iter()
            .map(|key| keys.iter().position(|k| k == key))
            .collect();
        assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    }
}

#[test]
fn what_has_ended_already_is_an_answer() {
    let sandbox = Sandbox::new();
    let (mut sleeper, ident) = sandbox.sleeper();
    let (pid, ident) = (sleeper.0.id().to_string(), ident.to_string());
    wait(&sandbox, &["--exit", &pid, "--timeout", "0"]).ended(124, "deadline");
    wait(&sandbox, &["--exit", &ident, "--timeout", "0"]).ended(124, "deadline");
    sleeper.0.kill().unwrap();
    for operand in [&pid, &ident] {
        let zombie = wait(&sandbox, &["--exit", operand, "--timeout", "9"]);
        assert_eq!(zombie.ended(0, "matched").records()[0]["ident"], *ident);
    }
    sleeper.0.wait().unwrap();
    let gone = wait(&sandbox, &["--exit", &ident, "--timeout", "0"]);
    assert_eq!(gone.ended(0, "matched").records()[0]["ident"], *ident);
    // A pid that another process has now.
    let own = crate::support::handle(i32::try_from(std::process::id()).unwrap());
    let fields: Vec<String> = own
        .ident()
        .to_string()
        .split(':')
        .map(str::to_owned)
        .collect();
    let other = [&fields[..4], &["1".to_owned(), "1".to_owned()]]
        .concat()
        .join(":");
    wait(&sandbox, &["--exit", &other, "--timeout", "0"]).ended(0, "matched");
    // One that cannot be judged from here.
    let mut elsewhere = fields.clone();
    elsewhere[2] = "1".to_owned();
    elsewhere[5] = "0".to_owned();
    let unknown = wait(
        &sandbox,
        &["--exit", &elsewhere.join(":"), "--timeout", "9"],
    );
    unknown.ended(3, "unavailable").gone_at(ms(0));
    assert!(
        unknown.stderr.contains("eventwait: linux:"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn of_several_any_is_enough_or_all() {
    let sandbox = Sandbox::new();
    let mut children: Vec<Killed> = (0..3).map(|n| sh(&format!("read x; exit {n}"))).collect();
    let pids: Vec<String> = children
        .iter()
        .map(|child| child.0.id().to_string())
        .collect();
    let words: Vec<&str> = pids.iter().flat_map(|pid| ["--exit", pid]).collect();
    let armed = ["--ack-line", "armed", "--timeout", "20"];
    let all = start(command(
        &sandbox,
        &[&words[..], &armed, &["--all"]].concat(),
    ));
    let any = start(command(&sandbox, &[&words[..], &armed].concat()));
    all.until_printed("armed\n");
    any.until_printed("armed\n");
    for (seen, at) in [1, 0, 2].into_iter().enumerate() {
        drop(children[at].0.stdin.take());
        until("the end is reported", || {
            all.printed().lines().count() == 1 + seen + 1
        });
        // Of two that have ended by the time it looks it could name either.
        until("the first end is reported here, too", || {
            any.printed().lines().count() == 2
        });
    }
    let any = any.finish();
    assert_eq!(records(any.ended(0, "matched"))[0]["code"], 1);
    let all = all.finish();
    let codes: Vec<Value> = records(&all)
        .iter()
        .map(|record| record["code"].clone())
        .collect();
    assert_eq!(codes, [1, 0, 2]);
    all.ended(0, "matched");
    // By its number and by its identity it is one process, which ends once.
    let (mut sleeper, ident) = sandbox.sleeper();
    let (pid, ident) = (sleeper.0.id().to_string(), ident.to_string());
    let twice = ["--exit", &pid, "--exit", &ident, "--all"];
    let waiting = start(command(&sandbox, &[&twice[..], &armed].concat()));
    waiting.until_printed("armed\n");
    sleeper.0.kill().unwrap();
    assert_eq!(waiting.finish().ended(0, "matched").count("matched"), 1);
}

#[test]
fn numbers_that_are_no_pids_are_wrong_usage() {
    let sandbox = Sandbox::new();
    for wrong in [
        "0",
        "1",
        "-1",
        "4294967295",
        "1 2",
        "12abc",
        "99999999999999999999",
        "",
    ] {
        for option in ["--exit", "--pid"] {
            let mut words = vec!["--timeout", "1"];
            if option == "--pid" {
                words.push("--stdin");
            }
            let arg = format!("{option}={wrong}");
            words.push(&arg);
            let waited = wait(&sandbox, &words);
            assert_eq!(waited.status.code(), Some(2), "{arg}: {waited:?}");
            assert!(waited.stderr.starts_with("eventwait: "), "{waited:?}");
        }
    }
}
