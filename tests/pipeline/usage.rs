//! Help, version, and what is wrong usage whatever the tool.

use crate::stage::{Job, Ran, TOOLS, run};
use crate::support::Sandbox;

/// Words of clap's messages that are not ours.
#[track_caller]
fn assert_wrong_usage(job: (&str, &[&str]), ran: &Ran) {
    assert_eq!(ran.code, Some(2), "{job:?}: {ran:?}");
    assert!(ran.stdout.is_empty(), "{job:?}: {ran:?}");
    let err = ran.err();
    let message = err.strip_prefix(&format!("{}: ", job.0));
    let message = message.unwrap_or_else(|| panic!("{job:?}: {err}"));
    assert!(
        !message.starts_with("error:") && !message.trim().is_empty(),
        "{job:?}: {err}"
    );
    assert!(!err.contains('\u{1b}'), "{job:?}: {err}");
}

#[test]
fn help_is_output() {
    let sandbox = Sandbox::new();
    for tool in TOOLS {
        let short = run(&sandbox, (tool, &["-h"]), b"");
        let long = run(&sandbox, (tool, &["--help"]), b"");
        for (ran, option) in [(&short, "-h"), (&long, "--help")] {
            assert_eq!(
                (ran.code, ran.err().as_str()),
                (Some(0), ""),
                "{tool} {option}"
            );
            assert!(ran.out().contains(&format!("Usage: {tool}")) || ran.out().contains("NAME"));
        }
        let text = short.out();
        let (_, examples) = text.split_once("Examples:").expect("examples");
        let examples = examples.lines().filter(|line| line.contains(tool)).count();
        assert!(examples >= 2, "{tool}: {text}");
        assert!(long.out().len() >= text.len(), "{tool}");
    }
}

#[test]
fn the_version_names_the_tool() {
    let sandbox = Sandbox::new();
    for tool in TOOLS {
        for option in ["--version", "-V"] {
            let ran = run(&sandbox, (tool, &[option]), b"");
            let expected = format!("{tool} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!(
                (ran.code, ran.out()),
                (Some(0), expected),
                "{tool}: {ran:?}"
            );
        }
    }
}

/// An environment that asks for colours, or for none, or that is empty, changes nothing.
#[test]
fn nothing_is_coloured() {
    let sandbox = Sandbox::new();
    for tool in TOOLS {
        for words in [&["--help"][..], &["--no-such-option"]] {
            let plain = run(&sandbox, (tool, words), b"");
            let mut command = sandbox.tool(tool);
            command.args(words).env_clear().envs([
                ("CLICOLOR_FORCE", "1"),
                ("FORCE_COLOR", "1"),
                ("TERM", "xterm"),
            ]);
            let forced = Ran::of(command.output().unwrap());
            assert_eq!(forced.stdout, plain.stdout, "{tool}");
            assert_eq!(forced.stderr, plain.stderr, "{tool}");
        }
    }
}

#[test]
fn wrong_usage_is_said_with_status_2() {
    let sandbox = Sandbox::new();
    let table: &[(&str, &[&str])] = &[
        ("detach", &[]),
        ("detach", &["--no-such-option", "true"]),
        ("detach", &["--"]),
        ("eventwait", &[]),
        ("eventwait", &["--no-such-option"]),
        ("eventwait", &["--stdin"]),
        (
            "eventwait",
            &["--stdin", "--connect", "/x", "--timeout", "1"],
        ),
        ("holder-scan", &[]),
        ("holder-scan", &["--no-such-option"]),
        ("holder-scan", &["--arg", "x", "operand"]),
        ("holder-scan", &["--arg", "x", "--own-cwd", "/"]),
        ("pane-ident", &[]),
        ("pane-ident", &["--no-such-option"]),
        ("pane-ident", &["no-such-job"]),
        ("pane-ident", &["capture"]),
        ("pane-ident", &["verify", "--no-such-option"]),
        ("pane-ident", &["verify", "--only", "no-such-state"]),
        ("pane-ident", &["exec", "--", "true"]),
        ("reap", &["--no-such-option"]),
        ("reap", &["--scope", "no-such-scope"]),
        ("resume-id", &[]),
        ("resume-id", &["--no-such-option"]),
        (
            "resume-id",
            &[
                "--row",
                "-",
                "--holders",
                "-",
                "--cwd",
                "/",
                "--agent",
                "claude",
            ],
        ),
        ("resume-id", &["--exec"]),
    ];
    for job in table {
        assert_wrong_usage(*job, &run(&sandbox, *job, b""));
    }
    // Wrong usage is found before anything is done.
    let words = ["--grace", "x", "--", "touch", "done"];
    run(&sandbox, ("detach", &words), b"");
    assert!(!sandbox.path("done").exists());
}

/// Where each tool takes a duration; `D` stands for it.
const DURATIONS: &[Job] = &[
    (
        "detach",
        &["--ready-file", "f", "--ready-timeout", "D", "true"],
    ),
    ("detach", &["--wait", "--timeout", "D", "true"]),
    (
        "detach",
        &["--wait", "--timeout", "5", "--grace", "D", "true"],
    ),
    ("eventwait", &["--path", "/", "--timeout", "D"]),
    ("eventwait", &["--path", "/", "-t", "D"]),
    (
        "eventwait",
        &["--timeout", "5", "--every", "D", "--cmd", "true"],
    ),
    (
        "eventwait",
        &[
            "--path",
            "/",
            "--timeout",
            "5",
            "--beat",
            "b",
            "--beat-every",
            "D",
        ],
    ),
    (
        "holder-scan",
        &["--arg", "nobody has this", "--timeout", "D"],
    ),
    ("pane-ident", &["verify", "--timeout", "D"]),
    ("pane-ident", &["verify", "--settle", "D"]),
    (
        "pane-ident",
        &["capture", "--pid", "4194304", "--timeout", "D"],
    ),
    ("reap", &["--grace", "D"]),
    ("reap", &["--kill-grace", "D"]),
    (
        "resume-id",
        &["--agent", "claude", "--cwd", "/", "--timeout", "D"],
    ),
    (
        "resume-id",
        &["--agent", "claude", "--cwd", "/", "--max-age", "D"],
    ),
    (
        "resume-id",
        &["--agent", "claude", "--cwd", "/", "--min-uptime", "D"],
    ),
];

fn with_duration(job: &Job, duration: &str) -> Vec<String> {
    let word = |word: &&str| {
        if *word == "D" {
            duration.to_owned()
        } else {
            (*word).to_owned()
        }
    };
    job.1.iter().map(word).collect()
}

#[test]
fn durations() {
    let sandbox = Sandbox::new();
    let wrong = [
        "",
        " ",
        "-1",
        "-1s",
        "+1",
        "1 2",
        "12abc",
        "0x10",
        "1e3",
        "nan",
        "inf",
        "1.",
        "1,5",
        "4294967296",
        "99999999999999999999",
        "9999999999999999999999s",
        "1000years",
        "٣",
    ];
    let right = ["0", "0.5", "1500ms", "30s", "5m", "1h 30m", "4294967295"];
    for job in DURATIONS {
        for duration in wrong {
            let words = with_duration(job, duration);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_wrong_usage((job.0, &words), &run(&sandbox, (job.0, &words), b""));
        }
        for duration in right {
            let words = with_duration(job, duration);
            let ran = Ran::of(sandbox.tool(job.0).args(&words).output().unwrap());
            assert!(
                ran.code.is_some_and(|code| code != 2),
                "{} {words:?}: {ran:?}",
                job.0
            );
            if let Some(pid) = detached(&ran) {
                crate::support::until_dead(pid);
            }
        }
    }
}

/// Where the tools take a number; `N` stands for it.
const NUMBERS: &[Job] = &[
    ("detach", &["--keep-fd=N", "true"]),
    (
        "detach",
        &[
            "--announce=a",
            "--marker=m",
            "--restart=on-failure",
            "--max-restarts=N",
            "true",
        ],
    ),
    ("eventwait", &["--path", "/", "--timeout", "0", "--count=N"]),
    (
        "eventwait",
        &["--path", "/", "--timeout", "0", "--max-line=N"],
    ),
    (
        "eventwait",
        &["--path", "/", "--timeout", "0", "--exit-code=matched=N"],
    ),
    (
        "eventwait",
        &["--follow", "never", "--timeout", "0", "--from=N"],
    ),
    ("holder-scan", &["--arg", "nobody has this", "--uid=N"]),
    (
        "holder-scan",
        &["--arg", "nobody has this", "--own-arg=x", "--own-uid=N"],
    ),
    ("holder-scan", &["--port=N"]),
    (
        "resume-id",
        &["--agent", "claude", "--cwd", "/", "--max-failures=N"],
    ),
];

#[test]
fn numbers_are_read_strictly() {
    let sandbox = Sandbox::new();
    let wrong = [
        "",
        " ",
        "-1",
        "+3",
        "007",
        " 3",
        "3 ",
        "3\n",
        "3.0",
        "1e1",
        "0x3",
        "3,4",
        "abc",
        "٣",
        "18446744073709551616",
        "99999999999999999999",
    ];
    for (tool, words) in NUMBERS {
        for number in wrong {
            let words: Vec<String> = words.iter().map(|word| put(word, number)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_wrong_usage((tool, &words), &run(&sandbox, (tool, &words), b""));
        }
    }
}

/// A word with its number.
fn put(word: &str, number: &str) -> String {
    match word.strip_suffix("=N") {
        Some(option) => format!("{option}={number}"),
        None => word.to_owned(),
    }
}

/// The pid of what detach has started, if it did.
fn detached(ran: &Ran) -> Option<i32> {
    let record: serde_json::Value = serde_json::from_slice(&ran.stdout).ok()?;
    if record["type"] != "process" {
        return None;
    }
    i32::try_from(record["pid"].as_i64()?).ok()
}
