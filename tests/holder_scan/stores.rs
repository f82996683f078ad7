//! What agents have open, lock, and write down.

use std::fs::{self, File};

use serde_json::json;

use super::*;

#[test]
fn a_lock_on_the_agents_own_file() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let folder = sandbox.path(".codex/thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{id}.lock"));
    File::create(&path).unwrap();
    assert_eq!(
        scan(&sandbox, &["--session-id", &id]).verdict(),
        "free",
        "it is only there"
    );

    let file = File::open(&path).unwrap();
    // A process that has forgotten its name and its environment.
    let holder = idle_with(&sandbox, "forgotten", &[], |command| {
        command.env_clear().stderr(file.try_clone().unwrap());
    });
    let open = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(open.holder(pid(&holder))["evidence"][0]["by"], "fd");
    // Taken by this test, and left to its child.
    file.lock().unwrap();
    drop(file);
    let locked = scan(&sandbox, &["--session-id", &id]);
    let holder = locked.holder(pid(&holder));
    assert_eq!(holder["evidence"][0]["by"], "lock");
    assert_eq!(holder["carrier"], false);
    assert_eq!((locked.verdict(), locked.holders().len()), ("foreign", 1));
}

#[test]
fn an_open_transcript_and_a_pager_in_it() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let folder = sandbox.path(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{id}.jsonl"));
    let open = || {
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap()
    };
    let _pager = idle_with(&sandbox, "less", &[], |command| {
        command.stderr(open());
    });
    assert_eq!(scan(&sandbox, &["--session-id", &id]).verdict(), "free");
    let agent = idle_with(&sandbox, "renamed", &[], |command| {
        command.stderr(open());
    });
    let held = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(held.classes(), [(pid(&agent), "foreign")]);
    let evidence = &held.holders()[0]["evidence"][0];
    assert_eq!(
        (&evidence["by"], &evidence["fd"]),
        (&json!("fd"), &json!("2"))
    );
}

#[test]
fn a_registry_knows_the_present_id() {
    let sandbox = Sandbox::new();
    let (old, new) = (new_id(), new_id());
    let agent = idle(&sandbox, "claude", &["--session-id", &old]);
    let ident = sandbox.track_pid(pid(&agent)).to_string();
    let ticks = ident.split(':').nth(4).unwrap().to_owned();
    let folder = sandbox.path(".claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let write = |start: &str| {
        let row = json!({"pid": pid(&agent), "sessionId": new, "procStart": start});
        fs::write(
            folder.join(format!("{}.json", pid(&agent))),
            row.to_string(),
        )
        .unwrap();
    };
    let verdicts = || {
        let one = scan(&sandbox, &["--session-id", &old]).verdict().to_owned();
        (
            one,
            scan(&sandbox, &["--session-id", &new]).verdict().to_owned(),
        )
    };
    let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(verdicts(), both("foreign", "free"), "by its arguments");
    write("17");
    assert_eq!(
        verdicts(),
        both("foreign", "free"),
        "a row of an earlier process"
    );
    write(&ticks);
    assert_eq!(verdicts(), both("free", "foreign"), "it has gone on");
    let held = scan(&sandbox, &["--session-id", &new]);
    assert_eq!(held.holder(pid(&agent))["evidence"][0]["by"], "registry");
    let stale = scan(&sandbox, &["--session-id", &old, "--mentions"]);
    let stale = stale.holder(pid(&agent));
    assert_eq!(
        (&stale["class"], &stale["evidence"][0]["superseded"]),
        (&json!("mention"), &json!(true))
    );
}

#[test]
fn a_registry_knows_a_process_without_a_name() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle_with(&sandbox, "pi", &[], |command| {
        command.env_clear();
    });
    let folder = sandbox.path(".grok");
    fs::create_dir_all(&folder).unwrap();
    let write = |opened: &str| {
        let rows = json!([{"session_id": id, "pid": pid(&agent), "opened_at": opened}]);
        fs::write(folder.join("active_sessions.json"), rows.to_string()).unwrap();
        scan(&sandbox, &["--session-id", &id]).verdict().to_owned()
    };
    assert_eq!(
        write("2001-01-01T00:00:00Z"),
        "free",
        "opened before it started"
    );
    assert_eq!(write("2101-01-01T00:00:00Z"), "foreign");
}

#[test]
fn the_folder_of_a_running_agent_is_its_own() {
    let sandbox = Sandbox::new();
    let (id, elsewhere) = (new_id(), sandbox.path("elsewhere"));
    let agent = idle_with(&sandbox, "claude", &[], |command| {
        command.env("CLAUDE_CONFIG_DIR", &elsewhere);
    });
    let ident = sandbox.track_pid(pid(&agent)).to_string();
    let ticks = ident.split(':').nth(4).unwrap();
    fs::create_dir_all(elsewhere.join("sessions")).unwrap();
    let row = json!({"pid": pid(&agent), "sessionId": id, "procStart": ticks});
    let file = elsewhere.join(format!("sessions/{}.json", pid(&agent)));
    fs::write(file, row.to_string()).unwrap();
    assert_eq!(
        scan(&sandbox, &["--session-id", &id]).classes(),
        [(pid(&agent), "foreign")]
    );
}

/// Opening a FIFO waits for a writer, and there is none.
#[test]
fn a_registry_that_is_a_fifo_says_nothing_and_holds_nobody_up() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let folder = sandbox.path(".claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let fifo = folder.join(format!("{}.json", pid(&agent)));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let held = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(held.classes(), [(pid(&agent), "foreign")]);
    let free = scan(&sandbox, &["-e", "--session-id", &new_id()]);
    assert_eq!(
        (free.verdict(), free.code()),
        ("free", 1),
        "{:?}",
        free.output
    );
}

/// Only root can give a file to somebody else, so only root's tests see this.
#[test]
fn a_registry_of_another_user_says_nothing_of_our_processes() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let ident = sandbox.track_pid(pid(&agent)).to_string();
    let evil = sandbox.path("evil");
    // The folder is that of another agent.
    let _other = idle_with(&sandbox, "claude", &[], |command| {
        command.env("CLAUDE_CONFIG_DIR", &evil);
    });
    fs::create_dir_all(evil.join("sessions")).unwrap();
    let row = json!({"pid": pid(&agent), "sessionId": new_id(),
                     "procStart": ident.split(':').nth(4).unwrap()});
    let file = evil.join(format!("sessions/{}.json", pid(&agent)));
    fs::write(&file, row.to_string()).unwrap();
    let verdict = || scan(&sandbox, &["--session-id", &id]).verdict().to_owned();
    assert_eq!(verdict(), "free", "root is believed");
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    assert_eq!(verdict(), "foreign");
}
