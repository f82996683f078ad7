//! What holds of every record that goes through a filter, tried on random ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::stage::{FILTERS, run};
use crate::support::Sandbox;

/// What each of the filters adds to a record of a process.
const ADDED: [&str; 3] = ["reap", "verdict", "holding"];

/// A process of another boot, so that it is dead for certain and nobody is looked for.
const DEAD: &str = "linux:0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e:4026531836:4242:981234:5531";

fn blank() -> impl Strategy<Value = String> {
    "[ \t\r]{0,2}"
}

/// JSON of a string, in all the ways that one can be written.
fn string() -> impl Strategy<Value = String> {
    let written = prop_oneof![
        4 => "[^\"\\\\\\x00-\\x1f]{0,4}",
        1 => "\\\\[\"\\\\/bfnrt]",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => Just("\\ud83d\\ude00".to_owned()),
    ];
    vec(written, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        2 => "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
        1 => select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        2 => string(),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let array = vec((blank(), inner.clone(), blank()), 0..4).prop_map(|elements| {
            let elements = elements.into_iter().map(|(a, value, b)| a + &value + &b);
            format!("[{}]", elements.collect::<Vec<_>>().join(","))
        });
        let object = vec(member(string(), inner), 0..4)
            .prop_map(|members| format!("{{{}}}", members.join(",")));
        prop_oneof![array, object]
    })
}

fn member(
    key: impl Strategy<Value = String>,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    let parts = (blank(), key, blank(), blank(), value, blank());
    parts.prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"))
}

/// Members whose keys mean nothing to anybody: each begins with a sign that no key of ours has.
fn strange() -> impl Strategy<Value = Vec<String>> {
    let key = string().prop_map(|key| key.replacen('"', "\"~", 1));
    vec(member(key, value()), 0..4)
}

/// A line, and where in it a filter puts what it adds; `None` if it is of no process.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    place: Option<Place>,
}

/// What is before and what is behind, and whether the key is there already.
#[derive(Clone, Debug)]
struct Place {
    before: String,
    after: String,
    is_there: bool,
}

/// A record that no filter owns, whatever is in it.
fn nobodys() -> impl Strategy<Value = Line> {
    (strange(), strange(), blank(), blank()).prop_map(|(some, more, before, after)| {
        let typed = [r#""type":"x""#.to_owned()];
        let members: Vec<String> = [some, typed.into(), more].concat();
        let text = format!("{before}{{{}}}{after}", members.join(","));
        Line { text, place: None }
    })
}

/// A record of a process, to which a filter adds `key`.
fn of_process(key: &'static str) -> impl Strategy<Value = Line> {
    let old = proptest::option::of((blank(), value(), blank()));
    let around = (blank(), blank(), blank());
    let parts = (strange(), strange(), old, strange(), around);
    parts.prop_map(move |(some, more, old, last, (first, inner, end))| {
        let own = [format!(r#""pid":4242 ,"ident": "{DEAD}""#)];
        let mut members: Vec<String> = [some, own.into(), more].concat();
        let last = last
            .iter()
            .map(|member| format!(",{member}"))
            .collect::<String>();
        let (before, old, after) = match &old {
            Some((a, value, b)) => {
                members.push(format!("\"{key}\":{a}"));
                (
                    members.join(","),
                    value.as_str(),
                    format!("{b}{last}{inner}}}{end}"),
                )
            }
            None => {
                // Behind the last value, whatever blanks are after that.
                let all = members.join(",") + &last;
                let value = all.trim_end_matches([' ', '\t', '\r']);
                let blanks = &all[value.len()..];
                (value.to_owned(), "", format!("{blanks}{inner}}}{end}"))
            }
        };
        let before = format!("{first}{{{before}");
        Line {
            text: format!("{before}{old}{after}"),
            place: Some(Place {
                before,
                after,
                is_there: !old.is_empty(),
            }),
        }
    })
}

fn went_through(line: &Line, out: &str, key: &str) -> Result<(), TestCaseError> {
    let Some(place) = &line.place else {
        prop_assert_eq!(out, &line.text);
        return Ok(());
    };
    let added = out
        .strip_prefix(place.before.as_str())
        .and_then(|rest| rest.strip_suffix(place.after.as_str()));
    let added = match place.is_there {
        true => added,
        false => added.and_then(|added| added.strip_prefix(&format!(",\"{key}\":"))),
    };
    let is_object = added.is_some_and(|added| {
        added.starts_with('{') && serde_json::from_str::<serde_json::Value>(added).is_ok()
    });
    prop_assert!(is_object, "{:?} became {out:?}", line.text);
    Ok(())
}

/// To the byte and in order, but for the one key that is the filter's own.
#[test]
fn whatever_a_record_has_goes_through() {
    let sandbox = Sandbox::new();
    for (job, key) in FILTERS.into_iter().zip(ADDED) {
        let mut runner = TestRunner::new(ProptestConfig {
            cases: 8,
            max_shrink_iters: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let lines = vec(prop_oneof![nobodys(), of_process(key)], 1..80);
        let held = runner.run(&lines, |lines| {
            let input: String = lines
                .iter()
                .map(|line| format!("{}\n", line.text))
                .collect();
            let ran = run(&sandbox, job, input.as_bytes());
            prop_assert_eq!(ran.err(), "");
            let out = ran.out();
            let mut out = out.split('\n');
            for line in &lines {
                went_through(line, out.next().unwrap_or_default(), key)?;
            }
            Ok(())
        });
        held.unwrap_or_else(|error| panic!("{job:?}: {error}"));
    }
}
