//! Identities on the command line: the `kill -0` that cannot be fooled.

use std::process::Output;

use crate::stage::{Tmux, judged};
use crate::support::{Sandbox, number, records, said, until_dead};

fn ask(sandbox: &Sandbox, words: &[&str]) -> Output {
    let mut command = sandbox.tool("pane-ident");
    command.arg("verify").args(words).output().unwrap()
}

#[test]
fn a_process_while_it_lives_and_after() {
    let sandbox = Sandbox::new();
    let (mut child, ident) = sandbox.sleeper();
    let ident = ident.to_string();
    let output = ask(&sandbox, &[&ident]);
    let alive = judged(&output);
    alive.is("match", "same_process");
    assert_eq!(alive.record["type"], "process");
    assert_eq!(alive.record["ident"], ident.as_str());
    assert_eq!(ask(&sandbox, &["-q", &ident]).status.code(), Some(0));
    // Another start time is another process: the pid was handed out again.
    let fields: Vec<&str> = ident.split(':').collect();
    let earlier = format!("{}:1:{}", fields[..4].join(":"), u64::MAX);
    judged(&ask(&sandbox, &[&earlier])).is("foreign", "recycled");
    // Dead is dead, collected or not.
    child.0.kill().unwrap();
    until_dead(alive.record["pid"].as_i64().unwrap() as i32);
    judged(&ask(&sandbox, &[&ident])).is("gone", "process_ended");
    child.0.wait().unwrap();
    judged(&ask(&sandbox, &[&ident])).is("gone", "process_ended");
}

#[test]
fn several_at_once() {
    let sandbox = Sandbox::new();
    let (_one, one) = sandbox.sleeper();
    let (mut two, other) = sandbox.sleeper();
    let (one, other) = (one.to_string(), other.to_string());
    assert_eq!(ask(&sandbox, &[&one, &other]).status.code(), Some(0));
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    let output = ask(&sandbox, &[&one, &other]);
    let states: Vec<_> = records(&output)
        .iter()
        .map(|record| record["verdict"]["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["match", "gone"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn words_that_are_no_identities() {
    let sandbox = Sandbox::new();
    for wrong in ["", "1", "4242", "-1", "linux:a:b:c:d:e", "linux:x:1:2:3:4 "] {
        let output = ask(&sandbox, &["--", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty() && !said(&output).is_empty());
    }
    // A pane without an identity is nothing to be verified.
    assert_eq!(ask(&sandbox, &["--tmux", "%0"]).status.code(), Some(2));
    let (_child, ident) = sandbox.sleeper();
    for socket in ["--tmux-socket", "--herdr-socket", "--kitty-socket"] {
        let output = ask(&sandbox, &[socket, "", &ident.to_string()]);
        assert_eq!(output.status.code(), Some(2), "{socket}");
    }
    let two = ["--tmux", "%0", "--herdr", "w1:p1", &ident.to_string()];
    assert_eq!(ask(&sandbox, &two).status.code(), Some(2));
}

#[test]
fn with_a_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let other = tmux.window(&["cat"]);
    let ident = tmux.capture("%0")["ident"].as_str().unwrap().to_owned();
    let socket = tmux.socket().to_str().unwrap().to_owned();
    let at = |pane: &str| {
        judged(&ask(
            &sandbox,
            &["--tmux-socket", &socket, "--tmux", pane, &ident],
        ))
    };
    at("%0").is("match", "same_process");
    at("main:0").is("match", "same_process");
    at(&other).is("foreign", "pane_taken");
    let moved = at("%99");
    moved.is("moved", "other_pane");
    assert_eq!(moved.record["verdict"]["live"]["pane"], "%0");
    tmux.run(&["respawn-pane", "-k", "-t", "%0", "cat"]);
    until_dead(number(&moved.record, "pid"));
    at("%0").is("foreign", "other_process");
    at("%99").is("gone", "no_such_pane");
}

#[test]
fn with_an_ancestor() {
    let sandbox = Sandbox::new();
    let own = own_ident();
    judged(&ask(&sandbox, &["--ancestor", &own])).is("match", "same_process");
    // The number is an ancestor's, and what was recorded is another process: small numbers come
    // again soon in a container.
    let mut fields: Vec<&str> = own.split(':').collect();
    (fields[4], fields[5]) = ("1", "0");
    let earlier = fields.join(":");
    judged(&ask(&sandbox, &[&earlier])).is("foreign", "recycled");
    judged(&ask(&sandbox, &["--ancestor", &earlier])).is("foreign", "recycled");
    let (_child, ident) = sandbox.sleeper();
    let ident = ident.to_string();
    judged(&ask(&sandbox, &["--ancestor", &ident])).is("foreign", "not_ancestor");
    judged(&ask(&sandbox, &[&ident])).is("match", "same_process");
}

/// A thread's number opens below /proc, and is no process.
#[cfg(target_os = "linux")]
#[test]
fn the_number_of_a_thread() {
    let sandbox = Sandbox::new();
    let own = own_ident();
    let (send, receive) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let tid = std::fs::read_link("/proc/thread-self").unwrap();
        send.send(tid.file_name().unwrap().to_str().unwrap().to_owned())
            .unwrap();
        let _ = stopped.recv();
    });
    let tid = receive.recv().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{tid}/stat")).exists());
    let mut fields: Vec<&str> = own.split(':').collect();
    fields[3] = &tid;
    judged(&ask(&sandbox, &[&fields.join(":")])).is("gone", "process_ended");
    let output = sandbox
        .tool("pane-ident")
        .args(["capture", "--pid", &tid])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    drop(stop);
    thread.join().unwrap();
}

/// Names with blanks, brackets and newlines do not shift what is read.
#[cfg(target_os = "linux")]
#[test]
fn names_of_all_kinds() {
    let sandbox = Sandbox::new();
    for name in ["my (tb) xyz", ") S 1 2 3 (", "Plex Media Serv", "a\nb) R 1"] {
        let program = sandbox.copy_of("/bin/sleep", name);
        let mut child = std::process::Command::new(&program)
            .arg("600")
            .spawn()
            .unwrap();
        let output = sandbox
            .tool("pane-ident")
            .args(["capture", "--pid", &child.id().to_string()])
            .output()
            .unwrap();
        let binding = crate::support::record(&output);
        assert_eq!(
            binding["exe"],
            program.canonicalize().unwrap().to_str().unwrap()
        );
        crate::stage::verify(&sandbox, &binding, &["--same-argv"]).is("match", "same_process");
        child.kill().unwrap();
        child.wait().unwrap();
        crate::stage::verify(&sandbox, &binding, &[]).is("gone", "process_ended");
    }
}

#[test]
fn one_identity_however_often_it_is_read_and_in_whatever_zone() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let pid = ident.pid().to_string();
    for (zone, locale) in [
        ("UTC", "C"),
        ("Asia/Tokyo", "de_DE.UTF-8"),
        ("America/New_York", "C"),
    ] {
        for _ in 0..10 {
            let mut command = sandbox.tool("pane-ident");
            command.args(["capture", "-o", "ident", "--pid", &pid]);
            let output = command
                .env("TZ", zone)
                .env("LC_ALL", locale)
                .output()
                .unwrap();
            assert_eq!(
                String::from_utf8(output.stdout).unwrap(),
                format!("{ident}\n")
            );
        }
    }
}

/// Where all pidfds have one inode, as before Linux 6.9, none is part of an identity: the start
/// decides.
#[cfg(target_os = "linux")]
#[test]
fn a_kernel_whose_pidfds_have_no_inode_of_their_own() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let pid = ident.pid().to_string();
    let on_such_a_kernel = |words: &[&str]| {
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-qqq", "-o", "/dev/null"]);
        command.args(["-e", "inject=fstatfs:error=ENOSYS"]);
        command.arg(crate::support::bin("pane-ident")).args(words);
        command.current_dir(sandbox.path("")).output().unwrap()
    };
    let output = on_such_a_kernel(&["capture", "-o", "ident", "--pid", &pid]);
    let old = String::from_utf8(output.stdout).unwrap();
    let old = old.trim();
    assert!(old.ends_with(":0"), "{old}");
    judged(&ask(&sandbox, &[old])).is("match", "same_process");
    let new = ident.to_string();
    judged(&on_such_a_kernel(&["verify", &new])).is("match", "same_process");
    judged(&on_such_a_kernel(&["verify", old])).is("match", "same_process");
    let mut fields: Vec<&str> = old.split(':').collect();
    fields[4] = "1";
    let earlier = fields.join(":");
    judged(&on_such_a_kernel(&["verify", &earlier])).is("foreign", "recycled");
}

/// The identity of this test.
fn own_ident() -> String {
    let pid = i32::try_from(std::process::id()).unwrap();
    crate::support::handle(pid).ident().to_string()
}
