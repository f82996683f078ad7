//! Lines that are shown and not run, in the README's table and in the manuals: each is one that
//! the tools take.

use std::collections::BTreeSet;
use std::process::Command;

use crate::readme;
use crate::support::Sandbox;

/// The tools as functions that note how they are called, one line a call. Nothing else is found.
const NOTE: &str = r#"
    exec 3>&1 >/dev/null 2>&1
    note() { local line; printf -v line '%s\x1f' "$@"; printf '%s\n' "$line" >&3; }
    for tool in detach reap holder-scan pane-ident eventwait resume-id; do
      eval "$tool() { note $tool \"\$@\"; }"
    done
    ident=linux:5fa3e3b6-7c3f-4bc5-a2a7-2f1a55b6ee60:4026531836:4242:1088123:0
    id=6f1c1d2e-3b4a-4c5d-8e6f-7a8b9c0d1e2f
    ws=/ pane=%0 pid=4242 a=$ident b=$pid row=row.json
    PATH=/nowhere
"#;

const TOOLS: [&str; 6] = [
    "detach",
    "eventwait",
    "holder-scan",
    "pane-ident",
    "reap",
    "resume-id",
];

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

/// The tools that a piece of script calls. Each call must be one that the tool takes.
#[track_caller]
fn taken(script: &str) -> BTreeSet<String> {
    let sandbox = Sandbox::new();
    for file in ["srv.json", "srv.marker", "task.json", "task.bound.json"] {
        std::fs::write(sandbox.path(file), "").unwrap();
    }
    let output = sandbox.bash(&format!("{NOTE}\n{script}")).output().unwrap();
    let calls = String::from_utf8(output.stdout).unwrap();
    let mut tools = BTreeSet::new();
    for call in calls.lines() {
        let words: Vec<&str> = call.trim_end_matches('\x1f').split('\x1f').collect();
        let taken = command(words[0]).try_get_matches_from(&words);
        assert!(taken.is_ok(), "{script}: {}", taken.unwrap_err());
        tools.insert(words[0].to_owned());
    }
    assert!(!tools.is_empty(), "nothing is called: {script}");
    tools
}

#[test]
fn every_line_of_the_table_is_taken() {
    let text = readme();
    let (_, table) = text.split_once("| the line with muxutils |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut tools = BTreeSet::new();
    for row in rows {
        let (old, new) = row.trim_matches(['|', ' ']).split_once("` | `").unwrap();
        let old = old.trim_matches('`').replace("\\|", "|");
        let new = new.trim_matches('`').replace("\\|", "|");
        let parsed = Command::new("bash").args(["-n", "-c", &old]).status();
        assert!(parsed.unwrap().success(), "{old}");
        tools.extend(taken(&new));
    }
    assert!(tools.iter().eq(TOOLS), "a tool has no line: only {tools:?}");
}

#[test]
fn every_example_of_the_manuals_is_taken() {
    for tool in TOOLS {
        let text = command(tool).get_after_long_help().unwrap().to_string();
        let (_, text) = text.split_once("\nEXAMPLES\n").unwrap();
        let section = text.lines().take_while(|line| {
            let is_title = line.starts_with(|c: char| c.is_ascii_uppercase());
            !is_title
        });
        let section: Vec<&str> = section.collect();
        let blocks = section.split(|line| line.is_empty());
        let scripts = blocks.filter(|block| block.first().is_some_and(|l| l.starts_with("    ")));
        let calls = scripts.map(|script| taken(&script.join("\n")));
        let of_the_tool = calls.filter(|tools| tools.contains(tool));
        assert!(of_the_tool.count() >= 2, "{tool} has no two examples");
    }
}

#[test]
fn every_example_of_the_short_help_is_taken() {
    for tool in TOOLS {
        let text = command(tool).get_after_help().unwrap().to_string();
        let (_, examples) = text.split_once("Examples:\n").unwrap();
        assert!(taken(examples).contains(tool), "{examples}");
    }
}
