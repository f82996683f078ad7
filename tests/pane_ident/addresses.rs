//! By what a pane can be called, and by what not.

use crate::stage::{Tmux, verify};
use crate::support::{Sandbox, record, said};

#[test]
fn exact_names_only() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    tmux.run(&["new-session", "-d", "-s", "main2", "-n", "build.1", "cat"]);
    let split = [
        "split-window",
        "-d",
        "-t",
        "%0",
        "-P",
        "-F",
        "#{pane_id}",
        "cat",
    ];
    let split = tmux.run(&split);
    let window = tmux.run(&["list-panes", "-a", "-F", "#{window_id} #{pane_id}"]);
    let window = window
        .lines()
        .next()
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    let found = |address: &str| {
        let output = tmux.try_capture(address);
        match output.status.code() {
            Some(0) => record(&output)["pane"].as_str().unwrap().to_owned(),
            Some(1) => "none".to_owned(),
            _ => panic!("{address}: {output:?}"),
        }
    };
    for address in [
        "%0",
        "main:0",
        "main:first",
        "main:0.0",
        "main:first.0",
        &window,
    ] {
        assert_eq!(found(address), "%0", "{address}");
    }
    for address in ["main:0.1", "main:first.1", split.as_str()] {
        assert_eq!(found(address), split, "{address}");
    }
    assert_eq!(found("main2:build.1"), "%1");
    // What tmux itself would take by prefix, by pattern, or for what is in front.
    for address in [
        "%",
        "%99",
        "%00",
        "@99",
        "main",
        "mai:0",
        "main:fir",
        "main:f*",
        "ma*:0",
        "main:",
        ":0",
        "main:9",
        "main:0.9",
        "=main:0",
        "main2:build",
        "{last}",
        "",
        "!",
        "0",
        "main:first.0.0",
    ] {
        assert_eq!(found(address), "none", "{address}");
    }
    // The active pane is what a window means.
    tmux.run(&["select-pane", "-t", &split]);
    // Who is used to tmux's shorter names is told which ones there are.
    let forms = "a pane is named %N, @N or SESSION:WINDOW[.PANE]";
    assert!(said(&tmux.try_capture("main")).contains(forms));
    assert!(!said(&tmux.try_capture("%99")).contains(forms));
    assert_eq!(found("main:0"), split);
}

#[test]
fn a_name_that_two_have_means_none() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    tmux.window(&["cat"]);
    tmux.run(&["rename-window", "-t", "main:1", "first"]);
    let output = tmux.try_capture("main:first");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("several panes"), "{output:?}");
    let mut record = tmux.capture("%0");
    record["pane"] = "main:first".into();
    verify(&sandbox, &record, &[]).is("unknown", "ambiguous_pane");
    record["pane"] = "main:0".into();
    verify(&sandbox, &record, &[]).is("match", "same_process");
    // A window that two sessions share is one window.
    tmux.run(&["new-session", "-d", "-s", "other", "cat"]);
    tmux.run(&["link-window", "-s", "main:0", "-t", "other:7"]);
    assert_eq!(tmux.capture("other:7")["pane"], "%0");
    assert_eq!(tmux.capture("main:0")["pane"], "%0");
}

/// A program can name its window, with a newline and a line that looks like another pane's.
#[test]
fn a_windows_name_cannot_forge_a_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let forged = format!("x\n%66 {} 0 1 0 @0 0 $0 1 0 0 0 0 \n", std::process::id());
    let new = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-n"];
    let pane = tmux.run(&[&new[..], &[&forged, "cat"]].concat());
    assert_eq!(tmux.try_capture("%66").status.code(), Some(1));
    assert_eq!(tmux.capture(&pane)["label"], forged.as_str());
}

/// A record is good in every folder.
#[test]
fn a_socket_by_a_relative_path() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--tmux", "%0", "--tmux-socket", "./t"]);
    let binding = record(&command.output().unwrap());
    let socket = binding["server"]["socket"].as_str().unwrap();
    assert!(socket.starts_with('/'), "{socket}");
    let mut command = sandbox.tool("pane-ident");
    command.arg("verify").current_dir("/");
    let output = crate::stage::feed(&mut command, &format!("{binding}\n"));
    crate::stage::judged(&output).is("match", "same_process");
    assert_eq!(binding["pid"], tmux.pid("%0"));
}

#[test]
fn servers_by_name_and_by_environment() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("tmp");
    std::fs::create_dir(&folder).unwrap();
    let tmux = |words: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command
            .args(words)
            .env("TMUX_TMPDIR", &folder)
            .env_remove("TMUX");
        command.output().unwrap()
    };
    let names = ["mine", "default"];
    for name in names {
        let words = ["-L", name, "-f", "/dev/null", "new-session", "-d", "cat"];
        let started = tmux(&words);
        assert!(started.status.success(), "{started:?}");
    }
    let capture = |words: &[&str], tmux: Option<String>| {
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--tmux", "%0", "-o", "server.socket"]);
        command.args(words).env("TMUX_TMPDIR", &folder);
        match tmux {
            Some(tmux) => command.env("TMUX", tmux),
            None => command.env_remove("TMUX"),
        };
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let by_name = capture(&["--tmux-socket", "mine"], None);
    assert!(by_name.ends_with("/mine\n"), "{by_name}");
    let default = capture(&[], None);
    assert!(default.ends_with("/default\n"), "{default}");
    let inside = capture(&[], Some(format!("{},1,0", by_name.trim_end())));
    assert_eq!(inside, by_name);
    for name in names {
        tmux(&["-L", name, "kill-server"]);
    }
}

/// A record whose server cannot be made out says nothing of the pane, least of all that it is gone.
#[test]
fn a_socket_that_cannot_be_meant() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    for server in ["\"\"", "7", "{\"socket\":\"\"}", "{\"socket\":[\"t\"]}"] {
        let mut record = binding.clone();
        record["server"] = serde_json::from_str(server).unwrap();
        verify(&sandbox, &record, &[]).is("unknown", "no_multiplexer");
        record["ident"] = serde_json::Value::Null;
        verify(&sandbox, &record, &["--legacy", "cwd"]).is("unknown", "no_multiplexer");
    }
}

/// The record cannot carry such a path, and says so: its pane is not taken for lost.
#[test]
fn a_socket_whose_path_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"t\xff");
    let tmux = Tmux::start(&sandbox, name);
    let binding = tmux.capture("%0");
    assert_eq!(binding["lossy"], true);
    let socket = binding["server"]["socket"].as_str().unwrap();
    assert!(socket.ends_with("t\u{fffd}"), "{socket}");
    verify(&sandbox, &binding, &[]).is("unknown", "no_multiplexer");
    assert_eq!(tmux.capture("%0")["pid"], tmux.pid("%0"));
}
