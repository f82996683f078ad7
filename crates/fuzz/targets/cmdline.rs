//! The bytes of `/proc/PID/cmdline`: the sessions that they name, and what is shown of them.

#![no_main]

use holder_scan::fuzzing::{By, Program, of_argv};
use libfuzzer_sys::fuzz_target;
use process::split_strings;
use records::text::{Argv, MAX_ARGUMENT};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let argv = split_strings(bytes);
    for exe in [None, Some(&b"/bin/sh"[..])] {
        let program = Program::of(&argv, exe);
        for claim in of_argv(&argv, &program) {
            let index = claim.evidence.index.expect("it is in an argument");
            let argument = &argv[index];
            let plain = match claim.evidence.by {
                By::Argv => true,
                By::ArgvJson => !argument.contains(&b'\\') && !names_a_shell(argument),
                // Quotes and expansions stand inside of words.
                By::ArgvShell => !argument.iter().any(|byte| b"'\"\\$`".contains(byte)),
                other => panic!("{other:?} is no argument's"),
            };
            let whole = argv.join(&0);
            assert!(
                !plain || occurs(&claim.id, &whole),
                "{claim:?} is not there"
            );
        }
    }
    let shown = Argv::new(argv.iter().map(Vec::as_slice), false);
    assert_eq!(shown.argv.len(), argv.len());
    for (argument, shown) in argv.iter().zip(&shown.argv) {
        assert!(shown.len() <= MAX_ARGUMENT);
        if let Ok(Value::Object(_) | Value::Array(_)) = serde_json::from_slice::<Value>(argument)
            && let Ok(json) = serde_json::from_str::<Value>(shown)
        {
            hides(&json, false);
        }
    }
});

/// No value below a key `env` is shown, however deep, also in JSON that is a string.
fn hides(json: &Value, below: bool) {
    match json {
        Value::Object(members) => {
            for (key, value) in members {
                hides(value, below || key == "env");
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| hides(element, below)),
        scalar if below => assert_eq!(scalar, "…"),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => hides(&inner, false),
            _ => {}
        },
        _ => {}
    }
}

/// Whether a word of it may be shell text, from which quotes are taken.
fn names_a_shell(argument: &[u8]) -> bool {
    argument.iter().any(|byte| b"'$`".contains(byte))
}

fn occurs(word: &[u8], bytes: &[u8]) -> bool {
    word.is_empty() || bytes.windows(word.len()).any(|window| window == word)
}
