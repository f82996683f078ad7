//! Records in and out.

use serde_json::{Value, json};

use crate::stage::{Tmux, feed, verify, verify_lines};
use crate::support::{Sandbox, record, records, said};

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_byte_that_is_not_ours_stays() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let front = format!(
        r#"{{ "task" : "\u0061\/b", "n":1e400, "big":18446744073709551616,"x":1.0, "ident":"{ident}","#
    );
    let output = verify_lines(
        &sandbox,
        &format!("{front}\"verdict\":\"old\",\"z\":[ ]}}\n"),
        &[],
    );
    let text = stdout(&output);
    assert!(
        text.starts_with(&format!("{front}\"verdict\":{{\"state\":\"match\",")),
        "{text}"
    );
    assert!(text.ends_with("},\"z\":[ ]}\n"), "{text}");
    let record: Value = serde_json::from_str(&text.replace("1e400", "1")).unwrap();
    let verdict = &record["verdict"];
    let keys: Vec<&String> = verdict.as_object().unwrap().keys().collect();
    let expected = [
        "checked_at",
        "live",
        "message",
        "pane",
        "reason",
        "state",
        "weak",
    ];
    assert_eq!(keys, expected);
    let keys: Vec<&String> = verdict["live"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cwd", "ident", "label", "pane", "pid"]);
    let order = [
        "\"state\"",
        "\"reason\"",
        "\"message\"",
        "\"weak\"",
        "\"pane\"",
        "\"live\"",
    ];
    let at: Vec<_> = order.iter().map(|key| text.find(key).unwrap()).collect();
    assert!(at.is_sorted(), "{text}");
}

#[test]
fn lines_that_are_no_records() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let good = json!({"ident": ident.to_string()});
    let lines = format!("{good}\nnot json\n[1]\n{good}\n\n{good}");
    let output = verify_lines(&sandbox, &lines, &["-o", "verdict.state"]);
    assert_eq!(output.status.code(), Some(65));
    assert_eq!(stdout(&output), "match\nmatch\nmatch\n");
    let said = said(&output);
    for line in ["line 2:", "line 3:", "line 5:"] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(said.lines().count(), 3);
}

#[test]
fn records_that_claim_nothing_pass() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let lines = format!("{{\"task\":\"a\"}}\n{{\"ident\":\"{ident}\"}}\n{{\"pane\":null}}\n");
    let output = verify_lines(&sandbox, &lines, &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.starts_with("{\"task\":\"a\"}\n"), "{text}");
    assert!(text.ends_with("\n{\"pane\":null}\n"), "{text}");
    let output = verify_lines(&sandbox, &lines, &["--only", "match"]);
    assert_eq!(records(&output).len(), 1);
    // Nothing at all is no match either.
    assert_eq!(verify_lines(&sandbox, "", &[]).status.code(), Some(1));
    assert_eq!(
        verify_lines(&sandbox, "{\"task\":1}\n", &[]).status.code(),
        Some(1)
    );
}

#[test]
fn any_record_with_an_identity_will_do() {
    let sandbox = Sandbox::new();
    let started = sandbox.detach(&["--", "sleep", "600"]);
    let judged = verify(&sandbox, &started, &[]);
    judged.is("match", "same_process");
    assert_eq!(judged.record["type"], "process");
    assert_eq!(judged.record["verdict"]["live"]["pid"], started["pid"]);
    assert_eq!(judged.record["verdict"]["pane"], Value::Null);
}

#[test]
fn bad_identities_are_refused() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let (ident, pid) = (ident.to_string(), ident.pid().get());
    verify(&sandbox, &json!({"ident": ident, "pid": pid}), &[]).is("match", "same_process");
    for (bad_ident, bad_pid) in [
        (json!(ident), json!(0)),
        (json!(ident), json!(-1)),
        (json!(ident), json!(pid + 1)),
        (json!(ident), json!(4_294_967_295_u64)),
        (json!(ident), json!(pid.to_string())),
        (json!(format!("{ident} ")), json!(pid)),
        (json!(""), json!(pid)),
        (json!(17), Value::Null),
    ] {
        let record = json!({"pane": "%0", "ident": bad_ident, "pid": bad_pid});
        verify(&sandbox, &record, &["--legacy", "cwd"]).is("unknown", "bad_identity");
    }
}

#[test]
fn narrowed_to_one_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let pane = tmux.window(&["cat"]);
    let bindings = ["%0", &pane].map(|pane| tmux.capture(pane));
    let lines = format!("{}\n{{\"task\":1}}\n{}\n", bindings[0], bindings[1]);
    let output = verify_lines(&sandbox, &lines, &["--pane", &pane, "-o", "pane"]);
    assert_eq!(stdout(&output), format!("{pane}\n"));
    assert_eq!(output.status.code(), Some(0));
    let output = verify_lines(&sandbox, &lines, &["--pane", "%9"]);
    assert_eq!(
        (stdout(&output).as_str(), output.status.code()),
        ("", Some(1))
    );
}

#[test]
fn only_some_states() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let live = json!({"n": 1, "ident": ident.to_string()});
    let bare = json!({"n": 2, "pane": "%0", "mux": "tmux"});
    let far = json!({"n": 3, "pane": "x", "mux": "another", "ident": ident.to_string()});
    let lines = format!("{live}\n{bare}\n{far}\n");
    let numbers = |only: &str| {
        let output = verify_lines(&sandbox, &lines, &["--only", only, "-o", "n"]);
        (stdout(&output), output.status.code())
    };
    assert_eq!(numbers("match"), ("1\n".to_owned(), Some(0)));
    assert_eq!(numbers("unbound,unknown"), ("2\n3\n".to_owned(), Some(0)));
    assert_eq!(numbers("gone"), (String::new(), Some(3)));
    let output = verify_lines(&sandbox, &format!("{bare}\n"), &["--only", "match"]);
    assert_eq!(output.status.code(), Some(1));
    let output = verify_lines(&sandbox, &lines, &["-q"]);
    assert_eq!((output.stdout.len(), output.status.code()), (0, Some(3)));
    for wrong in ["maybe", "", "match,", "Match"] {
        let output = verify_lines(&sandbox, &lines, &["--only", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn merging_with_the_users_record() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let user = "{\"type\":\"task\",\"task\":\"a\",\"n\":1e400,\"pane\":\"old\"}\n";
    let merge = |merge: &str, input: &str| {
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--tmux", "%0", "--merge", merge, "--tmux-socket"]);
        feed(command.arg(tmux.socket()), input)
    };
    let path = sandbox.path("user.json");
    std::fs::write(&path, user).unwrap();
    for output in [merge("-", user), merge(path.to_str().unwrap(), "")] {
        let text = stdout(&output);
        let front = "{\"type\":\"task\",\"task\":\"a\",\"n\":1e400,\"pane\":\"%0\",";
        assert!(text.starts_with(front), "{text}");
        let merged: Value = serde_json::from_str(&text.replace("1e400", "1")).unwrap();
        assert_eq!(merged["mux"], "tmux");
        verify(&sandbox, &merged, &[]).is("match", "same_process");
    }
    assert_eq!(merge("-", "nonsense\n").status.code(), Some(65));
    assert_eq!(merge("-", "").status.code(), Some(65));
    assert_eq!(merge("/not/there", "").status.code(), Some(125));
    // A record is not taken from a file that others can write, nor through a link.
    use std::os::unix::fs::PermissionsExt;
    let link = sandbox.path("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(merge(link.to_str().unwrap(), "").status.code(), Some(125));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let refused = merge(path.to_str().unwrap(), "");
    assert_eq!(refused.status.code(), Some(125));
    assert!(said(&refused).contains("chmod go-w"), "{refused:?}");
}

#[test]
fn output_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let mut command = sandbox.tool("pane-ident");
    let pid = ident.pid().to_string();
    let output = command
        .args(["capture", "--pid", &pid])
        .stdout(full())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    let mut command = sandbox.tool("pane-ident");
    command.args(["verify", &ident.to_string()]).stdout(full());
    assert_eq!(command.output().unwrap().status.code(), Some(125));
}

#[test]
fn a_process_alone() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let capture = |pid: &str| {
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--pid", pid]).output().unwrap()
    };
    let binding = record(&capture(&ident.pid().to_string()));
    assert_eq!(binding["ident"], ident.to_string());
    assert_eq!(binding["argv"], json!(["sleep", "600"]));
    for key in ["mux", "server", "pane", "label"] {
        assert_eq!(binding[key], Value::Null, "{key}");
    }
    verify(&sandbox, &binding, &["--same-argv"]).is("match", "same_process");
    for wrong in [
        "0",
        "1",
        "-1",
        "4294967295",
        "1 2",
        "12abc",
        "",
        "99999999999999999999",
    ] {
        assert_eq!(capture(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
