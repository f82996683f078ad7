//! Very many waits for one process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::house::House;
use crate::support::{Killed, rounds};

/// All of them are told of the one end, and none is there afterwards.
#[test]
fn many_waits_for_one_process() {
    let house = House::new();
    // A thousand in the long tests.
    let count = rounds(50) as usize;
    let mut victim = Killed(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = victim.0.id().to_string();
    // One pipe for all, so that their number is not bounded by our descriptors. What is written is
    // shorter than what a pipe takes at once, so that lines stay whole.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut waits: Vec<Child> = (0..count)
        .map(|_| {
            let mut command = house.tool("eventwait");
            command
                .args(["--exit", &pid, "--timeout", "5m", "--ack-line", "armed"])
                .stdout(writer.try_clone().unwrap());
            command.spawn().unwrap()
        })
        .collect();
    drop(writer);
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    for _ in 0..count {
        assert_eq!(lines.next().as_deref(), Some("armed"));
    }
    victim.0.kill().unwrap();
    let ended = Instant::now();
    victim.0.wait().unwrap();
    let mut told = 0;
    for line in lines {
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["pid"].to_string(), pid, "{event}");
        told += 1;
    }
    let took = ended.elapsed();
    println!("{count} waits were told within {took:.1?}");
    assert_eq!(told, count);
    for wait in &mut waits {
        assert_eq!(wait.wait().unwrap().code(), Some(0));
    }
    drop(victim);
    house.assert_empty();
}

/// None is there long after its deadline, however many have the same.
#[test]
fn many_waits_with_one_deadline() {
    let house = House::new();
    let count = rounds(50) as usize;
    let mut victim = Killed(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = victim.0.id().to_string();
    // It comes to its end when the last of them is gone.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut waits: Vec<Child> = (0..count)
        .map(|_| {
            let mut command = house.tool("eventwait");
            command
                .args(["--exit", &pid, "--timeout", "1"])
                .stdout(writer.try_clone().unwrap());
            command.spawn().unwrap()
        })
        .collect();
    drop(writer);
    let started = Instant::now();
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    drop(reader);
    let took = started.elapsed();
    println!("{count} deadlines of 1s, the last wait gone {took:.1?} after the last start");
    assert_eq!(said, b"");
    // A machine that is busy with other things gets to all of them late.
    assert!(took < Duration::from_secs(3), "{took:?}");
    for wait in &mut waits {
        assert_eq!(wait.wait().unwrap().code(), Some(124));
    }
    victim.0.kill().unwrap();
    victim.0.wait().unwrap();
    drop(victim);
    house.assert_empty();
}
