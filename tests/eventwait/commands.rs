//! `--cmd`.

use crate::stage::{command, ms, start, wait};
use crate::support::{Sandbox, until};

#[test]
fn a_command_is_run_until_it_succeeds() {
    let sandbox = Sandbox::new();
    let script = "echo >> runs; test -e flag";
    let cmd = ["--cmd", "sh", "-c", script];
    let words = [&["--every", "20ms", "--timeout", "20"], &cmd[..]].concat();
    let waiting = start(command(&sandbox, &words));
    let runs = || {
        let text = std::fs::read_to_string(sandbox.path("runs")).unwrap_or_default();
        text.lines().count()
    };
    until("it has failed once", || runs() > 1);
    std::fs::write(sandbox.path("flag"), "").unwrap();
    let waited = waiting.finish();
    let record = &waited.ended(0, "matched").records()[0];
    assert_eq!(record["source"], "cmd");
    assert_eq!(record["argv"], serde_json::json!(["sh", "-c", script]));
    assert_eq!(record["runs"], runs());
}

#[test]
fn arguments_are_shown_without_secrets_and_cut_unless_all_is_wanted() {
    let sandbox = Sandbox::new();
    let secret = r#"{"env":{"TOKEN":"secret"}}"#;
    let long = "x".repeat(5000);
    let cmd = ["--cmd", "true", secret, &long];
    let shown = |words: &[&str]| {
        let waited = wait(&sandbox, &[words, &["--timeout", "20"], &cmd].concat());
        waited.ended(0, "matched").records().remove(0)
    };
    let record = shown(&[]);
    assert_eq!(record["argv"][1], r#"{"env":{"TOKEN":"…"}}"#);
    assert!(record["argv"][2].as_str().unwrap().len() < 5000);
    assert_eq!(record["argv_cut"], true);
    let record = shown(&["--full-argv"]);
    assert_eq!(record["argv"], serde_json::json!(["true", secret, long]));
    assert_eq!(record["argv_cut"], false);
}

#[test]
fn the_words_end_at_a_semicolon() {
    let sandbox = Sandbox::new();
    let words = [
        "--cmd",
        "sh",
        "-c",
        "echo out; exit 0",
        ";",
        "--timeout",
        "20",
    ];
    let waited = wait(&sandbox, &words);
    waited.ended(0, "matched");
    assert!(
        waited.stderr.contains("out\n"),
        "its output goes to stderr: {waited:?}"
    );
    assert_eq!(waited.records().len(), 1);
}

#[test]
fn one_that_cannot_be_run_is_said_at_once() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("plain"), "").unwrap();
    // One that only a shell would take for a script, and no shell is asked.
    sandbox.script("script", "exit 0\n");
    for program in ["no-such-program", "./plain", "./script"] {
        let waited = wait(&sandbox, &["--timeout", "20", "--cmd", program]);
        waited.ended(3, "source_error").gone_at(ms(0));
        assert!(waited.stderr.contains(program), "{waited:?}");
    }
}

#[test]
fn one_that_hangs_is_ended_with_its_group() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; sleep 300 & sleep 301; true";
    let waited = wait(
        &sandbox,
        &["--timeout", "0.4", "--cmd", "bash", "-c", script],
    );
    waited
        .ended(124, "deadline")
        .not_before(ms(400))
        .gone_at(ms(400));
}

#[test]
fn it_dies_with_the_wait() {
    let sandbox = Sandbox::new();
    let words = [
        "--timeout",
        "60",
        "--cmd",
        "bash",
        "-c",
        "echo $$ > pid; exec sleep 302",
    ];
    let mut waiting = start(command(&sandbox, &words));
    let path = sandbox.path("pid");
    let read = || {
        std::fs::read_to_string(&path)
            .ok()?
            .trim()
            .parse::<i32>()
            .ok()
    };
    until("it runs", || read().is_some());
    waiting.child.kill().unwrap();
    crate::support::until_dead(read().unwrap());
}

/// How a caller can have left the notice of a child's end.
#[test]
fn a_caller_that_hears_of_no_child_does_not_delay_success() {
    let sandbox = Sandbox::new();
    // Without that notice the end is seen when there is something else to do.
    let words = ["--timeout", "20", "--every", "15s", "--cmd", "true"];
    for signals in ["--ignore-signal=CHLD", "--block-signal"] {
        let wait = command(&sandbox, &words);
        let mut left = std::process::Command::new("env");
        left.arg(signals)
            .arg(wait.get_program())
            .args(wait.get_args())
            .current_dir(sandbox.path(""));
        let began = std::time::Instant::now();
        let output = left.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signals}: {output:?}");
        let took = began.elapsed();
        assert!(took < ms(9_000), "{signals}: {took:?}");
    }
}
