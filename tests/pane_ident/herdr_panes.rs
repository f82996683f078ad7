//! What becomes of a binding when things happen to herdr's panes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::herdr::{Habits, Herdr};
use crate::stage::{verify, verify_lines};
use crate::support::{Sandbox, number, record, records, until_dead};

fn capture(sandbox: &Sandbox, herdr: &Herdr, pane: &str) -> Value {
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--herdr", pane, "--herdr-socket"]);
    let output = command.arg(herdr.socket()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    record(&output)
}

#[test]
fn a_binding_and_its_labels() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/tmp", "a label");
    let binding = capture(&sandbox, &herdr, &pane);
    assert_eq!(binding["mux"], "herdr");
    assert_eq!(
        binding["server"]["socket"],
        herdr.socket().to_str().unwrap()
    );
    assert_eq!(binding["pane"], pane.as_str());
    assert_eq!(binding["pid"], herdr.pid(&pane));
    assert_eq!(
        (&binding["cwd"], &binding["label"]),
        (&json!("/tmp"), &json!("a label"))
    );
    let judged = verify(&sandbox, &binding, &[]);
    judged.is("match", "same_process");
    assert_eq!(judged.record["verdict"]["live"]["label"], "a label");
    // Without a label of its own, a pane has its tab's.
    let other = herdr.split(&pane);
    let tab = herdr.request("pane.get", json!({"pane_id": other}))["pane"]["tab_id"].clone();
    herdr.request("tab.rename", json!({"tab_id": tab, "label": "the tab"}));
    assert_eq!(capture(&sandbox, &herdr, &other)["label"], "the tab");
    // By the environment, as for a client that is told nothing.
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--herdr", &pane, "-o", "pid"]);
    let output = command
        .env("HERDR_SOCKET_PATH", herdr.socket())
        .output()
        .unwrap();
    let pid = format!("{}\n", herdr.pid(&pane));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), pid);
}

#[test]
fn a_restart_gives_the_same_ids_to_new_shells() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/", "one");
    let binding = capture(&sandbox, &herdr, &pane);
    herdr.stop();
    until_dead(number(&binding, "pid"));
    verify(&sandbox, &binding, &[]).is("gone", "no_server");
    herdr.restart();
    verify(&sandbox, &binding, &[]).is("foreign", "other_process");
    let renewed = capture(&sandbox, &herdr, &pane);
    assert_eq!(renewed["pane"], binding["pane"]);
    verify(&sandbox, &renewed, &[]).is("match", "same_process");
}

#[test]
fn a_session_that_is_made_again() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let first = herdr.create("/", "one");
    let second = herdr.create("/", "two");
    let bindings = [&first, &second].map(|pane| capture(&sandbox, &herdr, pane));
    herdr.start_over();
    let stranger = herdr.create("/", "stranger");
    assert_eq!(stranger, first);
    bindings
        .iter()
        .for_each(|binding| until_dead(number(binding, "pid")));
    verify(&sandbox, &bindings[0], &[]).is("foreign", "other_process");
    verify(&sandbox, &bindings[1], &[]).is("gone", "no_such_pane");
}

/// The counter of workspaces is not saved, so a plain restart is enough for a stranger to get the
/// id of a pane that was closed.
#[test]
fn an_id_that_is_issued_again() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    herdr.create("/", "stays");
    let closed = herdr.create("/", "closed");
    let binding = capture(&sandbox, &herdr, &closed);
    herdr.close(&closed);
    until_dead(number(&binding, "pid"));
    verify(&sandbox, &binding, &[]).is("gone", "no_such_pane");
    herdr.restart();
    assert_eq!(herdr.create("/", "stranger"), closed);
    verify(&sandbox, &binding, &[]).is("foreign", "other_process");
}

#[test]
fn a_handoff_keeps_the_shells() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/", "one");
    let terminal = |herdr: &Herdr| {
        let info = herdr.request("pane.get", json!({ "pane_id": pane }));
        info["pane"]["terminal_id"].clone()
    };
    let before = terminal(&herdr);
    let binding = capture(&sandbox, &herdr, &pane);
    herdr.handoff();
    assert_ne!(terminal(&herdr), before);
    verify(&sandbox, &binding, &[]).is("match", "same_process");
}

#[test]
fn a_pane_that_moved() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/", "one");
    herdr.split(&pane);
    let binding = capture(&sandbox, &herdr, &pane);
    let to = json!({"pane_id": pane, "destination": {"type": "new_workspace"}});
    herdr.request("pane.move", to);
    let judged = verify(&sandbox, &binding, &[]);
    judged.is("moved", "other_pane");
    let verdict = &judged.record["verdict"];
    assert_eq!(verdict["pane"], pane.as_str());
    assert_eq!(verdict["live"]["pid"], binding["pid"]);
    let now = verdict["live"]["pane"].as_str().unwrap();
    assert_ne!(now, pane);
    // The old id goes on to mean the pane; it is recorded by its present one.
    assert_eq!(capture(&sandbox, &herdr, &pane)["pane"], now);
    verify(&sandbox, &capture(&sandbox, &herdr, now), &[]).is("match", "same_process");
}

#[test]
fn a_frozen_server_is_unknown_within_the_limit() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/", "one");
    let binding = capture(&sandbox, &herdr, &pane);
    herdr.freeze();
    let started = Instant::now();
    verify(&sandbox, &binding, &["--timeout", "1s"]).is("unknown", "server_silent");
    assert!(started.elapsed() < Duration::from_secs(4));
    let mut command = sandbox.tool("pane-ident");
    command.args([
        "capture",
        "--timeout",
        "500ms",
        "--herdr",
        &pane,
        "--herdr-socket",
    ]);
    let output = command.arg(herdr.socket()).output().unwrap();
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    herdr.thaw();
    verify(&sandbox, &binding, &[]).is("match", "same_process");
}

#[test]
fn a_server_that_hangs_up() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    if herdr.is_real() {
        return;
    }
    let pane = herdr.create("/", "one");
    let binding = capture(&sandbox, &herdr, &pane);
    herdr.set_habits(Habits {
        hang_up: true,
        ..Habits::default()
    });
    verify(&sandbox, &binding, &[]).is("unknown", "server_silent");
    herdr.set_habits(Habits::default());
    verify(&sandbox, &binding, &[]).is("match", "same_process");
}

#[test]
fn no_such_pane_and_no_server() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let capture = |pane: &str| {
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--herdr", pane, "--herdr-socket"]);
        let output = command.arg(herdr.socket()).output().unwrap();
        assert!(output.stdout.is_empty());
        output.status.code()
    };
    assert_eq!(capture("w9:p9"), Some(1));
    assert_eq!(capture(""), Some(1));
    herdr.stop();
    assert_eq!(capture("w1:p1"), Some(1));
}

#[test]
fn a_thousand_records_and_one_query() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let panes: Vec<String> = (0..5)
        .map(|i| herdr.create("/", &format!("p{i}")))
        .collect();
    let bindings: Vec<Value> = panes
        .iter()
        .map(|pane| capture(&sandbox, &herdr, pane))
        .collect();
    let mut stale = bindings[0].clone();
    stale["ident"] = json!(
        stale["ident"]
            .as_str()
            .unwrap()
            .rsplit_once(':')
            .unwrap()
            .0
            .to_owned()
            + ":1"
    );
    let lines: String = (0..1000)
        .map(|i| match i % 10 {
            9 => format!("{stale}\n"),
            _ => format!("{}\n", bindings[i % 5]),
        })
        .collect();
    let asked = match herdr.is_real() {
        true => 0,
        false => herdr.asked().len(),
    };
    let output = verify_lines(&sandbox, &lines, &[]);
    assert_eq!(output.status.code(), Some(1));
    let records = records(&output);
    assert_eq!(records.len(), 1000);
    for (i, record) in records.iter().enumerate() {
        let state = if i % 10 == 9 { "foreign" } else { "match" };
        assert_eq!(record["verdict"]["state"], state, "{i}: {record}");
    }
    if !herdr.is_real() {
        let asked = herdr.asked().split_off(asked);
        let count = |method: &str| asked.iter().filter(|&asked| asked == method).count();
        assert_eq!((count("pane.list"), count("tab.list")), (1, 1), "{asked:?}");
        assert_eq!(count("pane.process_info"), 5, "{asked:?}");
    }
}

/// Records made before there were identities.
#[test]
fn records_without_an_identity() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let folder = sandbox.path("real");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let link = sandbox.path("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    let (folder, link) = (folder.to_str().unwrap(), link.to_str().unwrap());
    let pane = herdr.create(folder, "task-a");
    let socket = json!({"socket": herdr.socket()});
    let old = |cwd: Value, label: Value| json!({"task": "a", "mux": "herdr", "server": socket, "pane": pane, "cwd": cwd, "label": label});
    let same = old(json!(folder), json!("task-a"));
    verify(&sandbox, &same, &[]).is("unbound", "no_identity");
    let both = ["--legacy", "cwd,label"];
    let judged = verify(&sandbox, &same, &both);
    judged.is("match", "legacy_equal");
    assert_eq!(judged.record["verdict"]["weak"], true);
    verify(&sandbox, &old(json!(link), json!("task-a")), &both).is("match", "legacy_equal");
    verify(&sandbox, &old(json!("/"), json!("task-a")), &both).is("foreign", "legacy_differs");
    verify(&sandbox, &old(json!(folder), json!("task-b")), &both).is("foreign", "legacy_differs");
    // What is named must be there.
    verify(&sandbox, &old(json!(folder), Value::Null), &both).is("foreign", "legacy_differs");
    verify(
        &sandbox,
        &old(json!(folder), Value::Null),
        &["--legacy", "cwd"],
    )
    .is("match", "legacy_equal");
    let mut gone = same.clone();
    gone["pane"] = json!("w9:p9");
    verify(&sandbox, &gone, &both).is("foreign", "no_such_pane");
    // By the id's form and the options, for a record that is no more than an address.
    let bare = json!({"pane": pane, "cwd": folder});
    let output = {
        let mut command = sandbox.tool("pane-ident");
        command.args(["verify", "--legacy", "cwd", "--herdr-socket"]);
        crate::stage::feed(command.arg(herdr.socket()), &format!("{bare}\n"))
    };
    crate::stage::judged(&output).is("match", "legacy_equal");
}
