//! Columns, shell words, lines for eyes, silence; and what reaches a terminal.

use std::collections::BTreeSet;

use crate::home::{A1, Home};
use crate::stage::{FILTERS, Ran, TOOLS, idle, run};
use crate::support::{Sandbox, handle, records, until_dead};

/// A record of nobody's with one value of each kind, and what could break a column.
const KINDS: &str = "{\"type\":\"session\",\"s\":\"two\\twords\\nand\\u001b[31m\\u007f\\u0085\",\
    \"n\":1.50,\"big\":18446744073709551616,\"t\":true,\"nul\":null,\"l\":[1,\"x y\",null],\
    \"o\":{\"k\":{\"d\":\"deep\"}},\"a.b\":\"dotted\",\"e\":\"\",\"q\":\"it's $HOME `x` \\\\ \\\"\"}\n";

/// Appends words to those of a job.
fn with(words: &'static [&'static str], more: &[&'static str]) -> Vec<&'static str> {
    [words, more].concat()
}

#[test]
fn columns() {
    let sandbox = Sandbox::new();
    // What has none of the keys is skipped.
    let input = format!("{{\"type\":\"session\"}}\n{KINDS}{{\"other\":1}}\n");
    let table = [
        ("s", "two words and [31m  \n"),
        ("n,big,t", "1.50\t18446744073709551616\ttrue\n"),
        ("nul,e,n", "\t\t1.50\n"),
        ("l", "[1,\"x y\",null]\n"),
        ("l.1,l.2,l.7", "x y\t\t\n"),
        ("o.k.d", "deep\n"),
        ("o.k", "{\"d\":\"deep\"}\n"),
        ("a.b", "dotted\n"),
        ("absent,n", "\t1.50\n"),
        ("absent", ""),
    ];
    for (tool, words) in FILTERS {
        for (keys, expected) in table {
            let ran = run(
                &sandbox,
                (tool, &with(words, &["-o", keys])),
                input.as_bytes(),
            );
            assert_eq!(ran.out(), expected, "{tool} -o {keys}");
            assert_eq!(ran.code, idle(tool), "{tool} -o {keys}: {ran:?}");
            let option = format!("--output={keys}");
            let long = [words, &[option.as_str()]].concat();
            assert_eq!(
                run(&sandbox, (tool, &long), input.as_bytes()).out(),
                expected
            );
        }
    }
}

/// Where only a tool's own records are printed, a key that none of them has is wrong usage, and what
/// is named instead is what the records have.
#[test]
fn keys_that_no_record_has() {
    let sandbox = Sandbox::new();
    let home = Home::new();
    home.conversation(A1);
    let (_child, ident) = sandbox.sleeper();
    let (ident, pid) = (ident.to_string(), ident.pid().to_string());
    let marked = sandbox.detach(&[
        "--marker",
        "a.marker",
        "--announce",
        "deaths",
        "--",
        "sleep",
        "600",
    ]);
    let marked = marked["pid"].as_i64().unwrap() as i32;
    handle(marked).signal(process::Signal::SIGKILL);
    until_dead(marked);
    let cwd = home.cwd();
    let agent = ["--agent", "claude", "--cwd", &cwd];
    // Each with the other jobs of which the same keys are named.
    let jobs: [(&str, &[&[&str]]); 11] = [
        ("reap", &[&["--dry-run", &pid]]),
        ("detach", &[&["--", "true"]]),
        ("detach", &[&["--sweep", ".", "--announce", "deaths"]]),
        ("eventwait", &[&["--path", "/", "--timeout", "5"]]),
        ("eventwait", &[&["--exit", "4194304", "--timeout", "5"]]),
        ("eventwait", &[&["--timeout", "5", "--cmd", "true"]]),
        ("holder-scan", &[&["--dump"], &["--file", "/"]]),
        ("pane-ident", &[&["capture", "--pid", &pid]]),
        ("pane-ident", &[&["verify", &ident]]),
        ("resume-id", &[&agent]),
        ("resume-id", &[&["--list-agents"]]),
    ];
    let discover = [&["--discover"], &agent[..]].concat();
    let discover: &[&[&str]] = &[&discover];
    for (tool, jobs) in jobs.into_iter().chain([("resume-id", discover)]) {
        let run = |words: &[&str]| match tool {
            "resume-id" => home.tool(words).output().unwrap(),
            _ => sandbox.tool(tool).args(words).output().unwrap(),
        };
        let refused = run(&[&["-o", "pdi"], jobs[0]].concat());
        let refused = match tool {
            "pane-ident" => run(&[jobs[0], &["-o", "pdi"]].concat()),
            _ => refused,
        };
        let refused = Ran::of(refused);
        assert_eq!(refused.code, Some(2), "{tool} {jobs:?}: {refused:?}");
        let message = refused.err();
        let (_, known) = message.trim_end().split_once("; there are ").unwrap();
        let known: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
        let mut printed = BTreeSet::new();
        for words in jobs {
            for record in records(&run(words)) {
                printed.extend(record.as_object().unwrap().keys().cloned());
            }
        }
        assert_eq!(printed, known, "{tool} {jobs:?}");
    }
    // Before anything is started; and a blank is no part of a key.
    let ran = run(
        &sandbox,
        ("detach", &["-o", "pid,idnet", "--", "touch", "started"]),
        b"",
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!sandbox.path("started").exists());
    let ran = run(
        &sandbox,
        ("detach", &["-o", "pid, status", "--", "true"]),
        b"",
    );
    assert!(ran.out().ends_with("\tstarted\n"), "{ran:?}");
    // Other people's lines have what keys they like.
    let words = ["--stdin", "--timeout", "20", "-o", "pdi"];
    let ran = run(&sandbox, ("eventwait", &words), b"{\"pdi\":1}\n");
    assert_eq!(ran.out(), "1\n");
}

/// What `--sh` prints is, after eval, what the record said, to the byte.
#[test]
fn words_for_the_shell() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), KINDS).unwrap();
    let expected = "<two\twords\nand\u{1b}[31m\u{7f}\u{85}>\n<it's $HOME `x` \\ \">\n<>\n<>\n<1>\n<x y>\n<>\n<1.50>\n";
    for (tool, words) in FILTERS {
        let words = words.join(" ");
        let script = format!(
            "eval \"set -- $({tool} {words} --sh -o s,q,nul,e,l,n <in)\"; printf '<%s>\\n' \"$@\""
        );
        for shell in ["bash", "sh"] {
            let script = format!("{shell} -c '{}'", script.replace('\'', "'\\''"));
            let ran = Ran::of(sandbox.bash(&script).output().unwrap());
            assert_eq!(ran.out(), expected, "{tool} in {shell}: {ran:?}");
        }
    }
}

#[test]
fn silence_and_eyes() {
    let sandbox = Sandbox::new();
    for (tool, words) in FILTERS {
        let ran = run(&sandbox, (tool, &with(words, &["-q"])), KINDS.as_bytes());
        assert_eq!(ran.out(), "", "{tool}");
        // For holder-scan -q is a question as well, and nobody holds anything.
        let expected = if tool == "holder-scan" {
            Some(1)
        } else {
            idle(tool)
        };
        assert_eq!(ran.code, expected, "{tool}: {ran:?}");
        let ran = run(&sandbox, (tool, &with(words, &["-H"])), KINDS.as_bytes());
        assert_eq!(ran.code, idle(tool), "{tool}: {ran:?}");
        assert!(!ran.stdout.is_empty(), "{tool}");
        assert_tame(&format!("{tool} -H"), &ran.stdout);
    }
}

#[test]
fn forms_that_exclude_each_other() {
    let sandbox = Sandbox::new();
    let wrong: [&[&str]; 5] = [
        &["--sh"],
        &["-o", "pid", "-H"],
        &["-o", ""],
        &["-o", "a,,b"],
        &["-o", "a", "--sh", "-H"],
    ];
    let jobs: [(&str, &[&str]); 6] = [
        ("detach", &["true"]),
        ("eventwait", &["--path", "/", "--timeout", "0"]),
        ("holder-scan", &["--dump"]),
        ("pane-ident", &["verify"]),
        ("reap", &[]),
        ("resume-id", &["--list-agents"]),
    ];
    for (tool, words) in jobs {
        for form in wrong {
            // The options come first: detach's end at its command, pane-ident's follow its job.
            let words = match tool {
                "detach" => [form, words].concat(),
                _ => [words, form].concat(),
            };
            let ran = run(&sandbox, (tool, &words), b"");
            assert_eq!(ran.code, Some(2), "{tool} {words:?}: {ran:?}");
            assert!(ran.stdout.is_empty());
        }
    }
}

/// Nothing in `bytes` could act on a terminal, and a line is a line.
#[track_caller]
fn assert_tame(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let wild = text.chars().find(|&c| {
        c != '\n'
            && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    });
    assert_eq!(wild, None, "{what}: {text:?}");
}

/// Whatever a message has to name: a terminal sees its control characters, and does not obey them.
#[test]
fn control_characters_never_reach_a_terminal_raw() {
    let sandbox = Sandbox::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}\n";
    let path = &format!("/nowhere/{evil}");
    let option = &format!("--{evil}");
    let equals = &format!("--timeout={evil}");
    let common: [&[&str]; 3] = [&[evil], &[option], &[equals]];
    for tool in TOOLS {
        for words in common {
            let ran = run(&sandbox, (tool, words), b"");
            assert_ne!(ran.code, Some(0), "{tool} {words:?}");
            assert_tame(&format!("{tool} {words:?}"), &ran.stderr);
        }
    }
    let table: [(&str, &[&str]); 22] = [
        ("detach", &["--", path]),
        ("detach", &["--chdir", path, "true"]),
        ("detach", &["--log", path, "true"]),
        ("detach", &["--lock", path, "true"]),
        ("detach", &["--record", path, "true"]),
        (
            "detach",
            &["--ready-socket", path, "--ready-timeout", "0", "true"],
        ),
        ("detach", &["--pid-env", &["a=", evil].concat(), "true"]),
        (
            "eventwait",
            &["--follow", path, "--from", evil, "--timeout", "0"],
        ),
        ("eventwait", &["--connect", path, "--timeout", "0"]),
        ("eventwait", &["--socket", path, "--timeout", "0"]),
        ("eventwait", &["--timeout", "1", "--cmd", path]),
        (
            "eventwait",
            &["--stdin", "--line", &["(", evil].concat(), "--timeout", "0"],
        ),
        (
            "eventwait",
            &["--stdin", "--timeout", "0", "--exit-code", evil],
        ),
        ("holder-scan", &["--from", path, "--arg", "x"]),
        ("holder-scan", &["--registry", path]),
        ("holder-scan", &["--arg", "x", "--own-record", path]),
        ("holder-scan", &["--session-id", evil]),
        (
            "pane-ident",
            &["capture", "--tmux", evil, "--tmux-socket", path],
        ),
        ("pane-ident", &["exec", "--binding", path, "--", "true"]),
        ("reap", &["--pidfile", path]),
        ("resume-id", &["--agent", evil, "--cwd", path]),
        ("resume-id", &["--exec", "--decision", path]),
    ];
    for (tool, words) in table {
        let ran = run(&sandbox, (tool, words), b"");
        assert_ne!(ran.code, Some(0), "{tool} {words:?}: {ran:?}");
        assert_tame(&format!("{tool} {words:?}"), &ran.stderr);
        if !ran.stderr.is_empty() {
            assert!(ran.err().starts_with(&format!("{tool}: ")), "{ran:?}");
        }
    }
}
