//! What a filter does not own, it gives back to the byte and in order.

use crate::stage::{FILTERS, idle, run};
use crate::support::Sandbox;

/// Records of nobody's, as other programs write them.
const STRANGE: &[&str] = &[
    r#"{"type":"x","n":1e400,"big":18446744073709551616,"f":1.0,"neg":-0,"e":1E+2}"#,
    r#"{"type":"x","long":0.1000000000000000055511151231257827021181583404541015625}"#,
    "  {\"type\":\"x\" ,\t\"b\" : [ 1 ,2,{ } ] }\t ",
    r#"{"type":"x","a":"\u00e9\ud800 \/ \u0000 \ud83d\ude00","\u0061":"b"}"#,
    "{\"type\":\"x\",\"raw\":\"é \u{2028} \u{7f} \u{9b} \u{202e}\"}",
    r#"{"type":"x","z":1,"a":2,"z":3,"type":"y"}"#,
    r#"{"type":"x","reap":"mine","verdict":[1],"holding":{"of":"others"}}"#,
    r#"{}"#,
    r#"{"":""}"#,
    "{\"type\":\"x\",\"crlf\":true}\r",
    r#"{"type":"scan","complete":true}"#,
    r#"{"type":"give_up","argv":["x"]}"#,
];

#[test]
fn to_the_byte_and_in_order() {
    let sandbox = Sandbox::new();
    let mut input = STRANGE.join("\n").into_bytes();
    input.push(b'\n');
    for job in FILTERS {
        let ran = run(&sandbox, job, &input);
        assert!(
            ran.stdout.starts_with(&input),
            "{job:?}: {}",
            String::from_utf8_lossy(&ran.stdout)
        );
        assert_eq!(ran.code, idle(job.0), "{job:?}: {ran:?}");
        assert_eq!(ran.err(), "", "{job:?}");
    }
}

/// The same through all of them, one after the other.
#[test]
fn through_all_of_them() {
    let sandbox = Sandbox::new();
    let input = format!("{}\n", STRANGE.join("\n"));
    std::fs::write(sandbox.path("in"), &input).unwrap();
    let line = "set -o pipefail; reap <in | { pane-ident verify || [ $? = 1 ]; } | \
        eventwait --stdin --all --timeout 1m | reap";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), input);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_last_line_without_its_end_is_a_line() {
    let sandbox = Sandbox::new();
    for job in FILTERS {
        let ran = run(&sandbox, job, b"{\"a\":1}\n{\"last\":2}");
        let lines = ran.lines();
        assert_eq!(lines[..2], ["{\"a\":1}", "{\"last\":2}"], "{job:?}");
        assert_eq!(ran.code, idle(job.0), "{job:?}");
    }
}

/// What a filter adds replaces a key of that name, and nothing else of the line moves.
#[test]
fn what_is_added_stands_where_its_key_stood() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let pid = ident.pid();
    for (job, key) in FILTERS.iter().zip(["reap", "verdict", "holding"]) {
        // What ends with `reap` is to be last, so it only says what it would do.
        let (tool, words) = *job;
        let words = if tool == "reap" {
            &["--dry-run"][..]
        } else {
            words
        };
        let before = format!("{{ \"z\":1.50,\"pid\":{pid} ,\"{key}\":");
        let after = format!(",\"ident\":\"{ident}\",\"a\":1e400, \"z\":2 }}");
        let ran = run(
            &sandbox,
            (tool, words),
            format!("{before}\"old\"{after}\n").as_bytes(),
        );
        let line = &ran.lines()[0];
        assert!(
            line.starts_with(&before) && line.ends_with(&after),
            "{tool}: {line}"
        );
        let added: serde_json::Value =
            serde_json::from_str(&line[before.len()..line.len() - after.len()]).unwrap();
        assert!(added.is_object(), "{tool}: {line}");

        // Without such a key it comes last.
        let line = format!("{{\"pid\":{pid},\"ident\":\"{ident}\",\"n\":1.0}}");
        let ran = run(&sandbox, (tool, words), line.as_bytes());
        let out = &ran.lines()[0];
        let start = format!("{},\"{key}\":{{", line.trim_end_matches('}'));
        assert!(out.starts_with(&start), "{tool}: {out}");
        assert!(serde_json::from_str::<serde_json::Value>(out).is_ok());
    }
}

/// The two whose output is one record of their own keep the user's keys in it, as written.
#[test]
fn the_users_own_keys_stay_as_they_were_written() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let mine = r#""task":"a","big":18446744073709551616,"f":1.0,"e":1e400,"s":"\u00e9\/""#;
    let pid = ident.pid().to_string();
    let words = ["capture", "--pid", &pid, "--merge", "-"];
    let ran = run(
        &sandbox,
        ("pane-ident", &words),
        format!("{{{mine}}}\n").as_bytes(),
    );
    assert!(ran.out().contains(mine), "{ran:?}");
    let row = format!("{{\"agent\":\"claude\",\"cwd\":\"/\",{mine}}}\n");
    let ran = run(&sandbox, ("resume-id", &["--row", "-"]), row.as_bytes());
    for key in mine.split(',') {
        assert!(ran.out().contains(key), "{key}: {ran:?}");
    }
}
