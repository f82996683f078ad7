//! Two records, one recycled pane: the true owner is found, and a stranger's pane is left alone.

use serde_json::{Value, json};

use crate::herdr::Herdr;
use crate::stage::verify_lines;
use crate::support::{Sandbox, number, record, until_dead};

/// A herdr pane whose id has changed hands: the stale record, and the true owner's.
fn recycled(sandbox: &Sandbox, herdr: &Herdr) -> (Value, Value) {
    let capture = |pane: &str, task: &str| {
        let path = sandbox.path("task.json");
        std::fs::write(
            &path,
            json!({"task": task, "worktree": format!("wt-{task}")}).to_string(),
        )
        .unwrap();
        let mut command = sandbox.tool("pane-ident");
        command
            .args(["capture", "--herdr", pane, "--merge"])
            .arg(&path);
        command.arg("--herdr-socket").arg(herdr.socket());
        record(&command.output().unwrap())
    };
    let stale = capture(&herdr.create("/", "a"), "a");
    herdr.start_over();
    let owner = capture(&herdr.create("/", "b"), "b");
    until_dead(number(&stale, "pid"));
    assert_eq!(stale["pane"], owner["pane"]);
    (stale, owner)
}

#[test]
fn the_true_owner_among_two_claimants() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let (stale, owner) = recycled(&sandbox, &herdr);
    // The stale one sorts first, and hides nothing.
    let lines = format!("{stale}\n{owner}\n");
    let output = verify_lines(&sandbox, &lines, &["--only", "match", "-o", "task,pane"]);
    let expected = format!("b\t{}\n", owner["pane"].as_str().unwrap());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(0));
    for (record, code) in [(&stale, 122), (&owner, 0)] {
        let (binding, acted) = (sandbox.path("binding"), sandbox.path("acted"));
        std::fs::write(&binding, record.to_string()).unwrap();
        let _ = std::fs::remove_file(&acted);
        let mut command = sandbox.tool("pane-ident");
        command.arg("exec").arg("--binding").arg(&binding);
        let output = command.args(["--", "touch", "acted"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(acted.exists(), code == 0);
    }
}

/// A record from before there were identities looks like the owner's, and is not what comes out.
#[test]
fn the_true_owner_beside_a_record_without_identity() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let (stale, owner) = recycled(&sandbox, &herdr);
    let mut old = owner.clone();
    old["ident"] = Value::Null;
    old["task"] = json!("old");
    let lines = format!("{old}\n{stale}\n{owner}\n");
    let tasks = |lines: &str, words: &[&str]| {
        let words = [words, &["--legacy", "cwd,label", "-o", "task"]].concat();
        let output = verify_lines(&sandbox, lines, &words);
        (
            String::from_utf8(output.stdout).unwrap(),
            output.status.code(),
        )
    };
    let only = ["--only", "match"];
    assert_eq!(tasks(&lines, &only), ("b\n".to_owned(), Some(0)));
    assert_eq!(tasks(&lines, &[]), ("old\na\nb\n".to_owned(), Some(1)));
    // Where nobody is bound to the pane, it is all that there is to go by.
    let alone = format!("{old}\n{stale}\n");
    assert_eq!(tasks(&alone, &only), ("old\n".to_owned(), Some(0)));
}

/// A worktree is removed where its task is gone for certain, and in no other case.
#[test]
fn a_worktree_is_not_removed_on_a_guess() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let (stale, owner) = recycled(&sandbox, &herdr);
    let line = r#"
        pane-ident verify --timeout 2s --only gone -o worktree <record | while read -r tree; do rm -r "$tree"; done
    "#;
    let removed = |record: &Value| {
        let tree = sandbox.path(record["worktree"].as_str().unwrap());
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::write(sandbox.path("record"), format!("{record}\n")).unwrap();
        let output = sandbox.bash(line).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        !tree.exists()
    };
    assert!(!removed(&stale), "foreign");
    assert!(!removed(&owner), "match");
    herdr.freeze();
    assert!(!removed(&owner), "unknown");
    herdr.thaw();
    herdr.close(owner["pane"].as_str().unwrap());
    until_dead(number(&owner, "pid"));
    assert!(removed(&owner), "gone");
}
