//! One at a time, decided by the identity in the lock file.

use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::*;

fn start(sandbox: &Sandbox, words: &[&str]) -> Output {
    let mut all = vec!["--lock", "lock"];
    all.extend_from_slice(words);
    sandbox.tool("detach").args(all).output().unwrap()
}

fn started(sandbox: &Sandbox, output: &Output) -> Value {
    let value = record(output);
    assert_eq!(value["status"], "started", "{output:?}");
    sandbox.track(value["ident"].as_str().unwrap());
    value
}

#[test]
fn starts_at_the_same_moment_are_one_process() {
    for round in 0..rounds(50) {
        let sandbox = Sandbox::new();
        // Every tenth round twenty at once.
        let count = if round % 10 == 0 { 20 } else { 2 };
        let children: Vec<_> = (0..count)
            .map(|_| {
                let mut command = sandbox.tool("detach");
                command
                    .args(["--lock", "lock", "sleep", "600"])
                    .stdout(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        let outputs: Vec<Output> = children
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        let records: Vec<Value> = outputs.iter().map(record).collect();
        for value in &records {
            sandbox.track(value["ident"].as_str().unwrap());
        }
        let starts = records
            .iter()
            .filter(|value| value["status"] == "started")
            .count();
        assert_eq!(starts, 1, "{records:?}");
        for value in &records {
            assert_eq!(value["ident"], records[0]["ident"], "{records:?}");
            assert!(matches!(
                value["status"].as_str(),
                Some("started" | "running")
            ));
        }
        assert!(outputs.iter().all(|output| output.status.success()));
    }
}

#[test]
fn a_killed_holder_frees_it_whatever_its_children_keep_open() {
    let sandbox = Sandbox::new();
    // The grandchild has every descriptor that its parents had, and outlives them.
    let script = "setsid sleep 600 & echo $! >child; wait";
    let first = started(&sandbox, &start(&sandbox, &["sh", "-c", script]));
    until("the grandchild runs", || {
        std::fs::read_to_string(sandbox.path("child")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let child = std::fs::read_to_string(sandbox.path("child")).unwrap();
    sandbox.track_pid(child.trim().parse().unwrap());
    let again = record(&start(&sandbox, &["sleep", "600"]));
    assert_eq!(
        (&again["status"], &again["pid"]),
        (&"running".into(), &first["pid"])
    );
    handle(number(&first, "pid")).signal(process::Signal::SIGKILL);
    until_dead(number(&first, "pid"));
    let next = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    assert_ne!(next["ident"], first["ident"]);
}

#[test]
fn the_record_in_the_file_is_the_running_ones() {
    let sandbox = Sandbox::new();
    let first = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    let kept: Value =
        serde_json::from_slice(&std::fs::read(sandbox.path("lock")).unwrap()).unwrap();
    assert_eq!(kept, first);
    assert!(first["lock"].as_str().unwrap().ends_with("/lock"));
    let failing = start(&sandbox, &["--fail-if-running", "touch", "ran"]);
    assert_eq!(failing.status.code(), Some(1), "{failing:?}");
    let waiting = start(&sandbox, &["--wait", "touch", "ran"]);
    assert_eq!(waiting.status.code(), Some(0), "{waiting:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_recycled_pid_does_not_keep_it() {
    let sandbox = Sandbox::new();
    let first = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    // The same pid, and in the record a process that had it before.
    let ident = first["ident"].as_str().unwrap();
    let mut fields: Vec<String> = ident.split(':').map(str::to_owned).collect();
    fields[4] = "1".to_owned();
    fields[5] = "1".to_owned();
    let text = std::fs::read_to_string(sandbox.path("lock")).unwrap();
    std::fs::write(sandbox.path("lock"), text.replace(ident, &fields.join(":"))).unwrap();
    started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    assert!(lives(number(&first, "pid")), "the stranger is not touched");
}

#[test]
fn what_cannot_be_judged_is_neither_free_nor_held() {
    let sandbox = Sandbox::new();
    let first = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    let ident = first["ident"].as_str().unwrap();
    let mut fields: Vec<String> = ident.split(':').map(str::to_owned).collect();
    fields[2] = "1".to_owned();
    let text = std::fs::read_to_string(sandbox.path("lock")).unwrap();
    std::fs::write(sandbox.path("lock"), text.replace(ident, &fields.join(":"))).unwrap();
    let output = start(&sandbox, &["touch", "ran"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said(&output).contains("namespace"), "{output:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn what_has_no_readable_identity_is_neither_free_nor_held() {
    let sandbox = Sandbox::new();
    let first = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    let pid = number(&first, "pid");
    let text = std::fs::read_to_string(sandbox.path("lock")).unwrap();
    let ident = first["ident"].to_string();
    for other in ["null", "\"\"", "17", &format!("\"freebsd:xx:0:{pid}:9:0\"")] {
        let kept = text.replace(&ident, other);
        std::fs::write(sandbox.path("lock"), &kept).unwrap();
        let output = start(&sandbox, &["touch", "ran"]);
        assert_eq!(output.status.code(), Some(3), "{other}: {output:?}");
        assert!(
            said(&output).contains(&format!("process {pid}")),
            "{output:?}"
        );
        assert!(said(&output).contains("/lock"), "{output:?}");
        assert_eq!(std::fs::read_to_string(sandbox.path("lock")).unwrap(), kept);
    }
    assert!(!sandbox.path("ran").exists());
}

/// In a pid namespace whose /proc is another one's, where detach has no identity to write down.
#[cfg(target_os = "linux")]
#[test]
fn there_is_one_start_where_identities_cannot_be_read() {
    let sandbox = Sandbox::new();
    let line = "setsid --wait unshare -Urpf bash -c \
        'for i in 1 2; do detach --lock lock -o status -- sleep 600; echo $?; done'";
    let output = sandbox.bash(line).output().unwrap();
    assert_eq!(output.stdout, b"started\n0\n3\n", "{output:?}");
}

#[test]
fn half_written_is_free() {
    for content in [
        "",
        "\n",
        "{\"v\":1,\"type\":\"process\",\"pid\":12",
        "{}\n",
        "\0\0\0\0",
    ] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("lock"), content).unwrap();
        started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    }
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("target"), "precious\n").unwrap();
    let link = || symlink(sandbox.path("target"), sandbox.path("lock")).unwrap();
    let folder = || std::fs::create_dir(sandbox.path("lock")).unwrap();
    let other = || std::fs::write(sandbox.path("lock"), "precious\n").unwrap();
    let object = || std::fs::write(sandbox.path("lock"), "{\"name\":\"x\"}\n").unwrap();
    let objects = || std::fs::write(sandbox.path("lock"), "{\n  \"name\": \"x\"\n}\n").unwrap();
    let strangers = || {
        std::fs::write(sandbox.path("lock"), "").unwrap();
        std::os::unix::fs::chown(sandbox.path("lock"), Some(65534), None).unwrap();
    };
    let pipe = || {
        nix::unistd::mkfifo(&sandbox.path("lock"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    };
    let open = || {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(sandbox.path("lock"), "").unwrap();
        let mode = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(sandbox.path("lock"), mode).unwrap();
    };
    let mut table: Vec<(&str, &dyn Fn())> = vec![
        ("a link", &link),
        ("a directory", &folder),
        ("another file", &other),
        ("another JSON object", &object),
        ("another JSON object, in lines", &objects),
        ("a FIFO", &pipe),
        ("one that others may write", &open),
    ];
    if nix::unistd::geteuid().is_root() {
        table.push(("a stranger's", &strangers));
    }
    for (what, make) in table {
        make();
        let output = start(&sandbox, &["touch", "ran"]);
        assert_eq!(output.status.code(), Some(125), "{what}: {output:?}");
        assert!(said(&output).contains("lock"), "{what}: {output:?}");
        assert!(!sandbox.path("ran").exists(), "{what}");
        let lock = sandbox.path("lock");
        if std::fs::remove_file(&lock).is_err() {
            std::fs::remove_dir(&lock).unwrap();
        }
    }
    assert_eq!(
        std::fs::read(sandbox.path("target")).unwrap(),
        b"precious\n"
    );
}

#[test]
fn a_command_that_cannot_be_executed_does_not_hold_it() {
    let sandbox = Sandbox::new();
    assert_eq!(
        start(&sandbox, &["no-such-command-anywhere"]).status.code(),
        Some(127)
    );
    assert_eq!(std::fs::read(sandbox.path("lock")).unwrap(), b"");
    started(&sandbox, &start(&sandbox, &["sleep", "600"]));
}

#[test]
fn the_same_is_awaited_of_the_running_one() {
    let sandbox = Sandbox::new();
    let first = started(&sandbox, &start(&sandbox, &["sleep", "600"]));
    let late = start(
        &sandbox,
        &["--ready-file", "f", "--ready-timeout", "200ms", "true"],
    );
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    assert_eq!(record(&late)["status"], "not_ready");
    assert!(lives(number(&first, "pid")), "the running one is not ended");
    std::fs::write(sandbox.path("f"), "").unwrap();
    let ready = start(&sandbox, &["--ready-file", "f", "true"]);
    assert_eq!(record(&ready)["status"], "running", "{ready:?}");
    assert_eq!(ready.status.code(), Some(0));
}
