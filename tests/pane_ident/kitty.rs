//! kitty, by a stand-in for its command: it prints what `kitten @ ls` prints.

use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::stage::{feed, judged, verify};
use crate::support::{Sandbox, record, until_dead};

/// A kitten that prints `windows`, and the listening socket that it is asked at.
fn kitty(sandbox: &Sandbox, windows: &Value) -> UnixListener {
    let list = json!([{"id": 1, "is_focused": true, "tabs": [{"id": 1, "title": "t", "windows": windows}]}]);
    std::fs::write(sandbox.path("list"), list.to_string()).unwrap();
    let (list, asked) = (sandbox.path("list"), sandbox.path("asked"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}\nexec cat {}\n",
        asked.display(),
        list.display()
    );
    sandbox.script("kitten", &script);
    let socket = sandbox.path("kitty");
    let _ = std::fs::remove_file(&socket);
    UnixListener::bind(socket).unwrap()
}

/// Listens no more. Another test's command, on its way from fork to exec, may hold a copy.
fn hang_up(listener: UnixListener) {
    rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
}

#[test]
fn windows_have_their_process() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let (_other, other) = sandbox.sleeper();
    let pid = ident.pid().get();
    let window = json!({"id": 7, "pid": pid, "title": "work", "cwd": "/", "cmdline": ["sleep"],
        "env": {"SECRET": "x"}, "foreground_processes": []});
    let listener = kitty(&sandbox, &json!([window]));
    let kitten = sandbox.path("kitten");
    let mut command = sandbox.tool("pane-ident");
    command
        .args(["capture", "--kitty", "7", "--kitten-bin"])
        .arg(&kitten);
    let socket = format!("unix:{}", sandbox.path("kitty").display());
    let output = command.env("KITTY_LISTEN_ON", &socket).output().unwrap();
    let binding = record(&output);
    assert_eq!(
        (&binding["mux"], &binding["pane"]),
        (&json!("kitty"), &json!("7"))
    );
    assert_eq!(binding["ident"], ident.to_string());
    assert_eq!(binding["label"], "work");
    assert_eq!(binding["server"]["socket"], socket.as_str());
    let asked = std::fs::read_to_string(sandbox.path("asked")).unwrap();
    assert_eq!(asked.lines().next().unwrap(), format!("@ --to {socket} ls"));

    let words = ["--kitten-bin", kitten.to_str().unwrap()];
    verify(&sandbox, &binding, &words).is("match", "same_process");
    hang_up(listener);
    let stranger = json!({"id": 7, "pid": other.pid().get(), "title": "work"});
    let listener = kitty(&sandbox, &json!([stranger]));
    verify(&sandbox, &binding, &words).is("foreign", "pane_taken");
    hang_up(listener);
    let elsewhere = json!({"id": 9, "pid": pid});
    let listener = kitty(&sandbox, &json!([elsewhere]));
    let moved = verify(&sandbox, &binding, &words);
    moved.is("moved", "other_pane");
    assert_eq!(moved.record["verdict"]["live"]["pane"], "9");
    sandbox.script(
        "kitten",
        "#!/bin/sh\necho 'Error: remote control is disabled' >&2; exit 1\n",
    );
    verify(&sandbox, &binding, &words).is("unknown", "server_failed");
    hang_up(listener);
    // A socket that nobody listens on has no windows, and no command is run to find that out.
    verify(&sandbox, &binding, &words).is("orphaned", "no_server");
}

/// A window whose process kitty does not know shows nothing, neither that it is another's.
#[test]
fn a_window_without_a_process() {
    let sandbox = Sandbox::new();
    let (mut child, ident) = sandbox.sleeper();
    let listener = kitty(&sandbox, &json!([{"id": 7, "pid": null, "title": "work"}]));
    let kitten = sandbox.path("kitten");
    let words = ["--kitten-bin", kitten.to_str().unwrap()];
    let socket = format!("unix:{}", sandbox.path("kitty").display());
    let mut record = json!({"mux": "kitty", "pane": 7, "label": "work",
        "server": {"socket": socket}, "ident": ident.to_string()});
    verify(&sandbox, &record, &words).is("unknown", "unreadable");
    child.0.kill().unwrap();
    until_dead(ident.pid().get());
    verify(&sandbox, &record, &words).is("gone", "process_ended");
    record["ident"] = Value::Null;
    let legacy = [&words[..], &["--legacy", "label"]].concat();
    verify(&sandbox, &record, &legacy).is("unknown", "unreadable");
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--kitty", "7", "--kitty-socket", &socket]);
    let output = command.args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    hang_up(listener);
}

#[test]
fn without_an_address_nothing_is_asked() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tool("pane-ident");
    command.args(["verify", "--kitten-bin", "/bin/true"]);
    command.env_remove("KITTY_LISTEN_ON");
    let (_child, ident) = sandbox.sleeper();
    let record = json!({"mux": "kitty", "pane": 7, "ident": ident.to_string()});
    judged(&feed(&mut command, &format!("{record}\n"))).is("unknown", "no_multiplexer");
}
