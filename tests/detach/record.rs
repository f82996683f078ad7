//! The record, and that it reaches somebody.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::*;

const KEYS: [&str; 20] = [
    "v",
    "type",
    "status",
    "pid",
    "pgid",
    "sid",
    "ident",
    "argv",
    "cwd",
    "log",
    "ready",
    "exit",
    "guard",
    "marker",
    "lock",
    "host",
    "lossy",
    "argv_cut",
    "started_at",
    "took_ms",
];

#[test]
fn all_keys_are_there_in_their_order() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .tool("detach")
        .args(["--log", "l", "sleep", "600"])
        .output()
        .unwrap();
    let value = record(&output);
    sandbox.track(value["ident"].as_str().unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    let places: Vec<usize> = KEYS
        .iter()
        .map(|key| {
            text.find(&format!("\"{key}\":"))
                .unwrap_or_else(|| panic!("no {key}"))
        })
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(value.as_object().unwrap().len(), KEYS.len(), "{text}");
    assert_eq!(value["argv"], serde_json::json!(["sleep", "600"]));
    let folder = sandbox.path("").canonicalize().unwrap();
    assert_eq!(value["cwd"], folder.to_str().unwrap());
    assert!(value["log"].as_str().unwrap().ends_with("/l"));
    let log = std::fs::metadata(sandbox.path("l")).unwrap();
    assert_eq!(log.permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_file_has_the_whole_record_before_detach_returns() {
    let sandbox = Sandbox::new();
    for _ in 0..rounds(25) {
        let output = sandbox
            .tool("detach")
            .args(["--record", "r", "sleep", "600"])
            .output()
            .unwrap();
        let printed = record(&output);
        sandbox.track(printed["ident"].as_str().unwrap());
        let bytes = std::fs::read(sandbox.path("r")).unwrap();
        assert_eq!(bytes, output.stdout);
        let mode = std::fs::metadata(sandbox.path("r"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // No temporary file is left beside it.
    assert_eq!(std::fs::read_dir(sandbox.path("")).unwrap().count(), 1);
}

#[test]
fn a_line_of_bash_needs_no_jq() {
    let sandbox = Sandbox::new();
    let line = "pid=$(detach -o pid -- sleep 600) && echo $pid && detach -o pid,log,status -- true";
    let output = sandbox.bash(line).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    let pid: i32 = first.parse().unwrap();
    sandbox.track_pid(pid);
    let columns: Vec<&str> = second.trim_end_matches('\n').split('\t').collect();
    assert_eq!(columns[1..], ["", "started"], "null is an empty column");
}

#[test]
fn arguments_are_shown_without_the_values_of_variables() {
    let sandbox = Sandbox::new();
    let json = r#"{"args":["--resume","x"],"env":{"TOKEN":"secret"}}"#;
    let show = |words: &[&str]| {
        let output = sandbox
            .tool("detach")
            .args(words)
            .args(["sh", "-c", "exec sleep 600", json, &"y".repeat(5000)])
            .output()
            .unwrap();
        let value = record(&output);
        sandbox.track(value["ident"].as_str().unwrap());
        (String::from_utf8(output.stdout).unwrap(), value)
    };
    let (text, value) = show(&[]);
    assert!(!text.contains("secret") && text.contains("TOKEN"), "{text}");
    assert_eq!(value["argv_cut"], true);
    let (text, value) = show(&["--full-argv"]);
    assert!(text.contains("secret"), "{text}");
    assert_eq!(value["argv_cut"], false);
    assert_eq!(value["argv"][4].as_str().unwrap().len(), 5000);
}

#[test]
fn a_command_whose_record_reaches_nobody_is_ended() {
    let sandbox = Sandbox::new();
    let script = "echo $$ >pid; exec sleep 600";
    let ended = || {
        let read = || std::fs::read_to_string(sandbox.path("pid")).unwrap_or_default();
        // It was ended before or after it could write its pid; in either case it is not there.
        if let Ok(pid) = read().trim().parse::<i32>() {
            until_dead(pid);
        }
    };
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = sandbox.tool("detach");
    let output = command
        .args(["sh", "-c", script])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(said(&output).contains("standard output"), "{output:?}");
    let outcome = "; the command has been ended\n";
    assert!(said(&output).ends_with(outcome), "{output:?}");
    ended();

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = sandbox
        .tool("detach")
        .args(["sh", "-c", script])
        .stdout(Stdio::from(writer))
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(13), "{output:?}");
    assert_eq!(said(&output), "");
    ended();

    // The kernel would end the writer of a file that grows past the limit. The command keeps the
    // pipe open for as long as it lives.
    for words in [
        "--record r",
        "--lock l",
        "--guard --announce a --marker m.marker",
    ] {
        let line = format!("ulimit -f 0; exec detach {words} --keep-fd 1 -- sleep 60");
        let began = std::time::Instant::now();
        let output = sandbox.bash(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{words}: {output:?}");
        assert!(said(&output).contains("too large"), "{words}: {output:?}");
        assert!(began.elapsed() < PATIENCE, "{words}: it lives on");
    }
}

#[test]
fn a_command_whose_record_is_in_a_file_runs_on() {
    for words in ["--record r", "--lock r", "--guard --announce a --record r"] {
        let sandbox = Sandbox::new();
        let line = format!("detach {words} -- sleep 600 >/dev/full");
        let output = sandbox.bash(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{words}: {output:?}");
        let file = sandbox.path("r");
        let record = std::fs::read_to_string(&file).unwrap();
        let record: serde_json::Value = serde_json::from_str(record.trim()).unwrap();
        if let Some(guard) = record["guard"]["ident"].as_str() {
            sandbox.track(guard);
        }
        sandbox.track(record["ident"].as_str().unwrap());
        assert!(lives(number(&record, "pid")), "{words}");
        let outcome = format!("; the command runs; its record is in {}\n", file.display());
        assert!(said(&output).ends_with(&outcome), "{words}: {output:?}");
    }
}

#[test]
fn wrong_usage_is_two_and_starts_nothing() {
    let sandbox = Sandbox::new();
    let wrong: [&[&str]; 10] = [
        &[],
        &["--"],
        &["--no-such-option", "touch", "ran"],
        &["--ready-line", "x", "touch", "ran"],
        &["--ready-line", "", "--log", "l", "touch", "ran"],
        &["--ready-timeout", "-1", "touch", "ran"],
        &["--timeout", "5", "touch", "ran"],
        &["--wait", "--timeout", "1e99", "touch", "ran"],
        &["--keep-fd", "-1", "touch", "ran"],
        &["--fail-if-running", "touch", "ran"],
    ];
    for words in wrong {
        let output = sandbox.tool("detach").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(
            said(&output).starts_with("detach: "),
            "{words:?}: {output:?}"
        );
        assert!(output.stdout.is_empty());
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn help_is_a_screenful_with_examples() {
    let sandbox = Sandbox::new();
    let output = sandbox.tool("detach").arg("-h").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains("Examples:"),
        "{text}"
    );
    let output = sandbox.tool("detach").arg("--version").output().unwrap();
    assert_eq!(
        output.stdout,
        format!("detach {}\n", env!("CARGO_PKG_VERSION")).into_bytes()
    );
}
