//! What is said to somebody who has slipped.

use crate::stage::{Job, Ran, run};
use crate::support::Sandbox;

/// A job, its exit status, and what is among the words on stderr.
const SLIPS: &[(Job, i32, &str)] = &[
    (
        ("eventwait", &["--cmd", "sh", "-c", "false", "-t", "1"]),
        2,
        "--timeout DURATION is missing: --cmd takes all words up to ';', so end the command with \\;",
    ),
    (
        ("eventwait", &["--cmd", "true"]),
        2,
        "--timeout DURATION is missing\n",
    ),
    (
        ("eventwait", &["--cmd", "test -e x", ";", "-t", "20"]),
        3,
        "no shell is run",
    ),
    (
        ("eventwait", &["--exit", "4194304", "-t", "20"]),
        0,
        "there is no process 4194304",
    ),
    (
        ("eventwait", &["--exit", "record.json", "-t", "20"]),
        2,
        "it is a file: its identity is told by 'pane-ident verify -o ident <record.json'",
    ),
    (
        (
            "eventwait",
            &["--path", "/", "--pid", "record.json", "-t", "20"],
        ),
        2,
        "it is a file",
    ),
    (
        ("pane-ident", &["verify", "record.json"]),
        2,
        "records are read from standard input, 'pane-ident verify <record.json'",
    ),
    (
        ("pane-ident", &["verify", "4242"]),
        2,
        "'pane-ident capture --pid 4242 -o ident'",
    ),
    (
        (
            "pane-ident",
            &["capture", "--pid", "PID", "--merge", "empty.json"],
        ),
        65,
        "is it the output as well?",
    ),
    (
        (
            "pane-ident",
            &["capture", "--tmux", "%0", "--tmux-socket", "./none"],
        ),
        1,
        "no tmux server is running at ./none, so there is no pane %0; --tmux-socket names another",
    ),
    (
        ("holder-scan", &["-q", "--file", "typo"]),
        1,
        "typo: nothing of that name is there",
    ),
    (
        ("holder-scan", &["-q", "--cwd-under", "typo"]),
        1,
        "typo: nothing of that name is there",
    ),
];

#[test]
fn slips_of_the_pen() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("record.json"), "{\"ident\":\"x\"}\n").unwrap();
    std::fs::write(sandbox.path("empty.json"), "").unwrap();
    for (job, code, words) in SLIPS {
        let ran = run(&sandbox, *job, b"");
        assert_eq!(ran.code, Some(*code), "{job:?}: {ran:?}");
        assert!(ran.err().contains(words), "{job:?}: {ran:?}");
    }
    // Who names what is there hears nothing.
    let ran = run(
        &sandbox,
        ("holder-scan", &["-q", "--file", "record.json"]),
        b"",
    );
    assert_eq!((ran.code, ran.err().as_str()), (Some(1), ""));
}

/// Somebody who has forgotten the input hears that it is waited for. 'script', whose own input is
/// at its end, types the end of input there.
#[test]
fn standard_input_is_a_terminal() {
    let sandbox = Sandbox::new();
    for line in [
        "eventwait --stdin --timeout 0.1",
        "pane-ident verify --timeout 0.1",
        "holder-scan --from - --arg x --timeout 0.1",
        "holder-scan --registry - --timeout 0.1",
        "pane-ident capture --pid $$ --merge - --timeout 0.1",
        "resume-id --row -",
    ] {
        let mut command = sandbox.bash("exec script -qec \"$LINE\" /dev/null");
        let ran = Ran::of(command.env("LINE", line).output().unwrap());
        assert!(
            ran.out()
                .contains("reading standard input, which is a terminal"),
            "{line}: {ran:?}"
        );
    }
}
