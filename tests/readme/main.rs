//! The README is run: its scripts, its Makefile, its steps. What it says that they print, they do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/herdr/mod.rs"]
mod herdr;
#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod lines;
mod stage;

use std::process::{Command, Output};

use serde_json::Value;

use crate::blocks::Block;
use crate::stage::Stage;

/// The README.
fn readme() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_block_holds() {
    let text = readme();
    let mut printed = Vec::new();
    for block in blocks::blocks(&text) {
        match block.kind {
            "sh" => printed = script(&block),
            "json" => is_among(&block, &printed),
            "makefile" => makefile(&block),
            "yaml" => steps(&block),
            "console" => targets(&block),
            "text" => is_shell(&block),
            other => panic!("{block}: what is {other:?}?"),
        }
    }
}

#[track_caller]
fn succeeds(block: &Block, output: &Output) {
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    let status = output.status;
    assert!(status.success(), "{block}: {status}\n{out}\n{err}");
}

/// Runs a script in a place of its own, and what is to be true then. Gives the records that it
/// has printed and written. A second time it has to say something else: nothing of the first run is
/// taken for the second's.
fn script(block: &Block) -> Vec<Value> {
    let stage = Stage::new(block.text);
    let then = block.then.unwrap_or(":");
    let line = format!("set -euo pipefail\n{}\n{then}\n", block.text);
    let output = stage.run(&line);
    succeeds(block, &output);
    let records = stage.records(&output);
    if block.twice {
        let again = stage.run(&line);
        succeeds(block, &again);
        let (once, again) = (support::records(&output), support::records(&again));
        let is_new = again.iter().all(|record| !once.contains(record));
        assert!(is_new && !again.is_empty(), "{block}: again {again:#?}");
    }
    records
}

/// One of the records has the keys that are shown, and the same words for what came out.
fn is_among(block: &Block, records: &[Value]) {
    let shown: Value =
        serde_json::from_str(block.text).unwrap_or_else(|why| panic!("{block}: {why}"));
    let kind = &shown["type"];
    let same_type: Vec<_> = records
        .iter()
        .filter(|record| record["type"] == *kind)
        .collect();
    let matching = same_type.iter().any(|record| {
        same_keys(record, &shown) && words(record).all(|(at, word)| shown.pointer(at) == word)
    });
    assert!(matching, "{block}: shown, but not among {same_type:#?}");
}

/// Objects have the same keys, and so have the objects in them; lists may be shortened.
fn same_keys(left: &Value, right: &Value) -> bool {
    match (left.as_object(), right.as_object()) {
        (Some(left), Some(right)) => {
            left.keys().eq(right.keys())
                && left
                    .iter()
                    .all(|(key, value)| same_keys(value, &right[key]))
        }
        _ => true,
    }
}

/// What a record says came out.
fn words(record: &Value) -> impl Iterator<Item = (&'static str, Option<&Value>)> {
    let places = [
        "/status",
        "/action",
        "/then",
        "/holders",
        "/verdict",
        "/verdict/state",
        "/verdict/reason",
        "/signal",
        "/unnatural",
        "/deliberate",
        "/by",
        "/tag",
        "/event",
        "/initial",
        "/data/agent_status",
        "/artifact/state",
    ];
    let word = |at| (at, record.pointer(at));
    places
        .into_iter()
        .map(word)
        .filter(|(_, word)| !word.is_some_and(Value::is_object))
}

/// Makes every target of a Makefile, in their order.
fn makefile(block: &Block) {
    let stage = Stage::new(block.text);
    std::fs::write(stage.path("Makefile"), block.text).unwrap();
    let targets = block.text.lines().filter_map(|line| line.strip_suffix(':'));
    for target in targets {
        let output = stage.run(&format!("make --no-print-directory {target}"));
        succeeds(block, &output);
    }
}

/// Runs each step, as a CI does: in a shell of its own.
fn steps(block: &Block) {
    let stage = Stage::new(block.text);
    for line in block.text.lines() {
        let step = line.strip_prefix("- run: ").expect("a step");
        succeeds(block, &stage.run(&format!("set -e; {step}")));
    }
}

/// What is to be typed in the repository are targets of its Makefile.
fn targets(block: &Block) {
    for line in block.text.lines() {
        let words = line.strip_prefix("$ make ").expect("a call of make");
        let output = Command::new("bash")
            .args(["-c", &format!("make -n {words}")])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        succeeds(block, &output);
    }
}

/// Old lines are shown, and not run; but they are lines of a shell.
fn is_shell(block: &Block) {
    let output = Command::new("bash").args(["-n", "-c", block.text]).output();
    succeeds(block, &output.unwrap());
}
