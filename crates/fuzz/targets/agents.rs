//! A user's own `agents.json`.

#![no_main]

use std::sync::LazyLock;

use agents::{Agent, Environment, Table};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

static BUILT_IN: LazyLock<Table> = LazyLock::new(|| Table::built_in().expect("it is well formed"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = BUILT_IN.clone().with_entries("fuzz", bytes) else {
        return;
    };
    assert!(table.agents().len() >= BUILT_IN.agents().len());
    let environment: Environment = [("HOME", "/h"), ("A", "/a")]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let mut written = Map::new();
    let is_new = |agent: &&Agent| BUILT_IN.get(&agent.name) != Some(agent);
    for agent in table.agents().iter().filter(is_new) {
        assert_eq!(
            table.get(&agent.name),
            Some(agent),
            "{} is there twice",
            agent.name
        );
        // An id is in every command line that is to have one, and in no other place.
        let id = "00000000-0000-4000-8000-0000000000a1";
        if agent.takes_ids() {
            assert!(
                agent
                    .assign_argv(id)
                    .iter()
                    .any(|argument| argument.contains(id))
            );
        }
        for argv in [
            agent.assign_argv(id),
            agent.resume_argv(id),
            agent.spawn_argv(),
        ] {
            assert_eq!(argv.first().map(String::as_str), Some(agent.program()));
        }
        if agent.shape.fits(id) {
            assert!(agent.shape.same(id, id));
        }
        assert!(!agent.shape.fits("../x") && !agent.shape.fits(""));
        let _ = (agent.root(&environment), agent.to_unset(&environment));
        let mut entry = serde_json::to_value(agent).expect("it can be written");
        entry.as_object_mut().and_then(|entry| entry.remove("name"));
        written.insert(agent.name.clone(), entry);
    }
    // What was read, written down, is read as the same.
    let written = Value::Object(written).to_string();
    let again = BUILT_IN.clone().with_entries("fuzz", written.as_bytes());
    let again = again.expect("it was read before");
    assert_eq!(again.agents().len(), table.agents().len());
    assert!(
        table
            .agents()
            .iter()
            .all(|agent| again.get(&agent.name) == Some(agent))
    );
});
