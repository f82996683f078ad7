//! The table of lines: each line of ours is one that the tools take.

use std::process::Command;

use crate::readme;

/// The tools as functions that note how they are called, one line a call.
const NOTE: &str = r#"
    note() { local line; printf -v line '%s\x1f' "$@"; printf '%s\n' "$line" >&3; }
    for tool in detach reap holder-scan pane-ident eventwait resume-id; do
      eval "$tool() { note $tool \"\$@\"; }"
    done
    ident=linux:5fa3e3b6-7c3f-4bc5-a2a7-2f1a55b6ee60:4026531836:4242:1088123:0
    id=6f1c1d2e-3b4a-4c5d-8e6f-7a8b9c0d1e2f ws=/ pane=%0 pid=4242
"#;

fn command(tool: &str) -> clap::Command {
    match tool {
        "detach" => detach::command(),
        "eventwait" => eventwait::command(),
        "holder-scan" => holder_scan::command(),
        "pane-ident" => pane_ident::command(),
        "reap" => reap::command(),
        "resume-id" => resume_id::command(),
        other => panic!("no such tool: {other}"),
    }
}

#[test]
fn every_line_of_the_table_is_taken() {
    let text = readme();
    let (_, table) = text.split_once("| the line with muxutils |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut tools = Vec::new();
    for row in rows {
        let (old, new) = row.trim_matches(['|', ' ']).split_once("` | `").unwrap();
        let old = old.trim_matches('`').replace("\\|", "|");
        let new = new.trim_matches('`').replace("\\|", "|");
        let shell = |words: &[&str]| Command::new("bash").args(words).output().unwrap();
        assert!(shell(&["-n", "-c", &old]).status.success(), "{old}");
        let output = shell(&["-c", &format!("exec 3>&1 >/dev/null\n{NOTE}\n{new}")]);
        let calls = String::from_utf8(output.stdout).unwrap();
        assert!(!calls.is_empty(), "{new} calls nothing");
        for call in calls.lines() {
            let words: Vec<&str> = call.trim_end_matches('\x1f').split('\x1f').collect();
            let taken = command(words[0]).try_get_matches_from(&words);
            assert!(taken.is_ok(), "{new}: {}", taken.unwrap_err());
            tools.push(words[0].to_owned());
        }
    }
    tools.sort();
    tools.dedup();
    assert_eq!(tools.len(), 6, "a tool has no line: only {tools:?}");
}
