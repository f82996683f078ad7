//! An agent's transcript, by the rules of the agents that keep theirs in lines of JSON.

#![no_main]

use std::sync::LazyLock;

use agents::fuzzing::{read, yaml_string};
use agents::{Cwds, JsonLines, Table, Transcripts};
use libfuzzer_sys::fuzz_target;
use records::Deadline;
use records::input::{Input, Lines};

/// The rules of those that keep their transcripts so.
static FORMS: LazyLock<Vec<JsonLines>> = LazyLock::new(|| {
    let table = Table::built_in().expect("it is well formed");
    let forms = table
        .agents()
        .iter()
        .filter_map(|agent| match &agent.transcripts {
            Some(Transcripts::Jsonl(form)) => Some(form.clone()),
            _ => None,
        });
    forms.collect()
});

fuzz_target!(|bytes: &[u8]| {
    let mut lines = Lines::new("fuzz", bytes);
    let (mut records, mut bad) = (0, 0);
    while let Some(line) = lines.next_record().expect("bytes can be read") {
        match line {
            Input::Record(_) => records += 1,
            Input::Bad(_) => bad += 1,
        }
    }
    // By the length, so that every one has its turn and each input always the same.
    let form = &FORMS[bytes.len() % FORMS.len()];
    let cwds = Cwds::new("/w");
    let size = bytes.len() as u64;
    let told = read(bytes, size, form, &cwds, Deadline::never()).expect("bytes can be read");
    let turns = told.turns.expect("a small file is read to its end");
    assert!(turns <= records);
    assert_eq!(told.conversational, turns > 0);
    assert_eq!(told.damaged, bad > 0);
    assert!(told.cwd.is_none() || told.cwd_matches.is_some());
    // Of a larger one as much is read as it takes, and that says the same as far as it goes.
    let large = read(bytes, u64::MAX, form, &cwds, Deadline::never()).expect("as before");
    assert!(large.turns.is_none_or(|count| count == turns));
    if large.turns.is_none() {
        assert!(large.conversational && told.conversational);
        assert!(told.id == large.id || large.id.is_none());
    }
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = yaml_string(text, "cwd");
    }
});
