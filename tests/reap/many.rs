//! Many targets at the same time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Stage, command, ident_of, lines, reap_input};
use crate::support::Sandbox;

#[test]
fn a_hundred_stubborn_ones_take_one_grace() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM
        for i in {1..100}; do setsid sleep 600 & say s$i $!; done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let targets: Vec<Value> = (1..=100).map(|i| stage.record(&format!("s{i}"))).collect();
    let began = Instant::now();
    let run = reap_input(&["--grace", "1s"], &lines(&targets));
    let took = began.elapsed();
    assert_eq!(run.code, Some(0), "{:?}", run.stderr());
    assert_eq!(run.records.len(), 100);
    for (record, target) in run.records.iter().zip(&targets) {
        assert_eq!(record["pid"], target["pid"], "the order is kept");
        assert_eq!(record["reap"]["outcome"], "killed");
    }
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}: not one grace");
}

#[test]
fn a_thousand() {
    let sandbox = Sandbox::new();
    let script = "for i in {1..1000}; do sleep 600 & done; say ready; wait";
    let stage = Stage::new(&sandbox, script);
    let members: Vec<i32> = {
        let table = process::Table::read(&mut process::Reader::new()).unwrap();
        let group = process::Pid::new(stage.pid("root").into()).unwrap();
        table.group(group).map(|entry| entry.pid.get()).collect()
    };
    assert_eq!(members.len(), 1001);
    let targets: Vec<Value> = members
        .iter()
        .map(|pid| json!({"pid": pid, "ident": ident_of(*pid)}))
        .collect();
    // With fewer descriptors than targets as well.
    let input = sandbox.path("input");
    std::fs::write(&input, lines(&targets)).unwrap();
    let few = format!(
        "ulimit -n 100 && exec \"$0\" --scope process <'{}'",
        input.display()
    );
    let half: Vec<Value> = targets[..500].to_vec();
    std::fs::write(&input, lines(&half)).unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", &few])
        .arg(crate::support::bin("reap"))
        .output()
        .unwrap();
    let few = crate::stage::Run::of(output);
    assert_eq!(few.code, Some(0), "{}", few.stderr());
    assert_eq!(few.records.len(), 500);

    std::fs::write(&input, lines(&targets[500..])).unwrap();
    let output = command(&[])
        .stdin(std::fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    let run = crate::stage::Run::of(output);
    assert_eq!(run.code, Some(0), "{}", run.stderr());
    assert_eq!(run.records.len(), 501);
    assert!(run.records.iter().chain(&few.records).all(|record| {
        matches!(
            record["reap"]["outcome"].as_str(),
            Some("terminated" | "gone")
        )
    }));
    for pid in members {
        assert!(!crate::support::lives(pid));
    }
}
