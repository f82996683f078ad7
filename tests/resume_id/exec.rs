//! Becoming the agent, or saying why not.

use serde_json::{Value, json};

use crate::home::{A1, Home, scan};
use crate::support::{said, until};

fn line(decision: &Value) -> String {
    format!("{decision}\n")
}

#[test]
fn it_becomes_the_agent() {
    let home = Home::new();
    let decision = home.decision(A1, &["--", "--model", "x"]);
    let mut command = home.tool(&["--exec", "--decision", "-"]);
    command
        .current_dir("/")
        .env("CLAUDE_CODE_CHILD_SESSION", "1");
    let child = {
        use std::io::Write as _;
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(line(&decision).as_bytes())
            .unwrap();
        child
    };
    let pid = child.id();
    assert!(child.wait_with_output().unwrap().status.success());
    let cwd = home.cwd();
    // The same process, in the directory, without the variable that came meanwhile.
    let call = format!("{pid} {cwd} unset --session-id {A1} --model x");
    assert_eq!(home.calls(), [call]);
}

#[test]
fn a_file_is_followed_too() {
    let home = Home::new();
    let file = home.write("decision", &line(&home.decision(A1, &[])));
    let exec = ["--exec", "--decision", file.to_str().unwrap()];
    assert!(home.tool(&exec).status().unwrap().success());
    assert_eq!(home.the_call(), format!("--session-id {A1}"));
    // But not one that others can write to.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!(home.tool(&exec).output().unwrap().status.code(), Some(125));
    assert_eq!(home.calls().len(), 1);
}

#[test]
fn what_is_not_followed() {
    let home = Home::new();
    let good = home.decision(A1, &[]);
    let changed = |key: &str, value: Value| {
        let mut other = good.clone();
        other[key] = value;
        line(&other)
    };
    let scan_alone = line(&scan(A1, "free"));
    let table = [
        ("none", String::new(), 3),
        ("another record", scan_alone, 3),
        ("two", line(&good).repeat(2), 3),
        ("cut off", line(&good)[..100].to_owned(), 65),
        ("noise before it", format!("oops\n{}", line(&good)), 65),
        ("too old", changed("at", json!("2020-01-01T00:00:00Z")), 3),
        ("it runs", changed("action", json!("already_running")), 1),
        ("not reaped", changed("stale", json!([{"pid": 7}])), 3),
        (
            "survived",
            changed(
                "stale",
                json!([{"pid": 7, "reap": {"outcome": "survived"}}]),
            ),
            1,
        ),
        (
            "an agent that is not known",
            changed("agent", json!("nobody")),
            3,
        ),
        (
            "a claim without a file",
            changed("claim", json!({"claimant": "x"})),
            3,
        ),
    ];
    for (name, input, status) in table {
        let output = home.exec(&input);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{name}: {}",
            said(&output)
        );
        assert!(said(&output).starts_with("resume-id: "), "{name}");
    }
    assert!(home.calls().is_empty());
}

#[test]
fn what_cannot_be_run() {
    let home = Home::new();
    let decision = home.decision(A1, &[]);
    let with = |key: &str, value: Value| {
        let mut other = decision.clone();
        other[key] = value;
        home.exec(&line(&other))
    };
    home.sandbox.script("bin/lost", "#!/no/such/interpreter\n");
    // A shell would take this one for a script of its own, and no shell is ever tried.
    let ran = home.path("ran");
    let plain = format!("echo >'{}'\n", ran.display());
    home.sandbox.script("bin/plain", &plain);
    let table = [
        ("argv", json!(["plain"]), 126),
        ("argv", json!(["env", "-u", "CLAUDECODE", "plain"]), 126),
        ("argv", json!(["no-such-agent"]), 127),
        ("argv", json!(["/no/such/agent"]), 127),
        ("argv", json!(["lost"]), 126),
        ("argv", json!(["/etc/passwd"]), 126),
        ("cwd", json!("/no/such/place"), 126),
    ];
    for (key, value, status) in table {
        let output = with(key, value.clone());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{value} {}",
            said(&output)
        );
    }
    assert!(!ran.exists());
}

/// As any program that becomes another one: what the caller has had ignored stays so.
#[test]
fn the_signals_of_the_agent() {
    let home = Home::new();
    let decision = home.path("decision");
    std::fs::write(&decision, line(&home.decision(A1, &[]))).unwrap();
    let script = "#!/bin/sh\ngrep -E '^Sig(Ign|Blk)' /proc/self/status\n";
    home.sandbox.script("bin/claude", script);
    let tool = home.tool(&["--exec", "--decision", decision.to_str().unwrap()]);
    let mut command = std::process::Command::new("env");
    command.args([
        "--block-signal=USR1",
        "--default-signal",
        "--ignore-signal=HUP",
    ]);
    command.arg(tool.get_program()).args(tool.get_args());
    for (name, value) in tool.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.output().unwrap();
    let masks = String::from_utf8_lossy(&output.stdout);
    // The two that the C library keeps for itself are nobody's to set.
    let own = |mask: &str| u64::from_str_radix(mask, 16).map_or(0, |mask| mask & 0x7fff_ffff);
    let masks: Vec<_> = masks.split_whitespace().map(own).collect();
    assert_eq!(masks, [0, 0, 0, 1], "{output:?}");
}

#[test]
fn the_transcript_is_looked_at_once_more() {
    // It came since: the agent would refuse to begin.
    let home = Home::new();
    let assign = home.decision(A1, &[]);
    home.conversation(A1);
    assert!(home.exec(&line(&assign)).status.success());
    assert_eq!(home.the_call(), format!("--resume {A1}"));

    // It went: the agent would refuse to continue.
    let home = Home::new();
    let path = home.conversation(A1);
    let resume = home.decision(A1, &[]);
    std::fs::write(&path, "").unwrap();
    assert!(home.exec(&line(&resume)).status.success());
    let new = resume["fallback"]["session_id"].as_str().unwrap();
    assert_eq!(home.the_call(), format!("--session-id {new}"));

    // It came, and is good for nothing; or whoever decided wants no new session.
    for words in [&[][..], &["--on-missing", "stop"]] {
        let home = Home::new();
        let decision = if words.is_empty() {
            let decision = home.decision(A1, words);
            std::fs::write(home.conversation(A1), "").unwrap();
            decision
        } else {
            let path = home.conversation(A1);
            let decision = home.decision(A1, words);
            std::fs::remove_file(path).unwrap();
            decision
        };
        assert_eq!(home.exec(&line(&decision)).status.code(), Some(3));
        assert!(home.calls().is_empty());
    }
}

#[test]
fn a_transcript_that_a_variable_has_moved() {
    let home = Home::new();
    let path = home.conversation(A1);
    let moved = home.path(".claude/projects/mine");
    std::fs::create_dir(&moved).unwrap();
    std::fs::rename(&path, moved.join(path.file_name().unwrap())).unwrap();
    let mut command = home.bash(
        "resume-id --agent claude --session-id $id --cwd $ws | resume-id --exec --decision -",
    );
    command
        .env("CLAUDE_CONFIG_DIR", home.path(".claude"))
        .env("CLAUDE_CODE_PROJECT_DIR_NAME", "mine");
    let output = command.output().unwrap();
    assert_eq!(said(&output), "");
    assert_eq!(home.the_call(), format!("--resume {A1}"));
}

#[test]
fn an_interactive_agent_gets_the_terminal() {
    let home = Home::new();
    home.sandbox.script(
        "bin/claude",
        "#!/bin/sh\n[ -t 0 ] && echo terminal >\"$HOME/called\"\n",
    );
    let decision = home.write("decision", &line(&home.decision(A1, &[])));
    let typed = format!(
        "cat '{}' | resume-id --exec --decision -",
        decision.display()
    );
    let mut command = home.bash("exec script -qec \"$typed\" /dev/null");
    let output = command.env("typed", typed).output().unwrap();
    until("the agent was called", || !home.calls().is_empty());
    assert_eq!(home.calls(), ["terminal"], "{output:?}");
}

#[test]
fn a_closed_stdout_is_no_reason_to_crash() {
    let home = Home::new();
    let status = home
        .bash("resume-id --agent claude --session-id $id --cwd $ws | true; exit ${PIPESTATUS[0]}")
        .status()
        .unwrap();
    assert!(matches!(status.code(), Some(0 | 141)), "{status:?}");
    let full = home.bash("resume-id --agent claude --session-id $id --cwd $ws >/dev/full");
    assert_eq!({ full }.output().unwrap().status.code(), Some(125));
}
