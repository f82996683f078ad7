//! What becomes of a binding when things happen to tmux's panes.

use crate::stage::{Tmux, verify};
use crate::support::{Sandbox, number, said, until, until_dead};

#[test]
fn a_binding_has_all_its_keys_in_order() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let output = tmux.try_capture("%0");
    let line = String::from_utf8(output.stdout).unwrap();
    let keys: Vec<usize> = [
        r#"{"v":1,"type":"binding","mux":"tmux","server":{"socket":"#,
        r#","ident":""#,
        r#""},"pane":"%0","pid":"#,
        r#","ident":""#,
        r#","exe":"#,
        r#","argv":["cat","-"],"cwd":"#,
        r#","label":"first","tty":"/dev/"#,
        r#","age_ms":"#,
        r#","host":"#,
        r#","lossy":false,"argv_cut":false,"at":"2"#,
    ]
    .iter()
    .scan(0, |from, part| {
        let at = *from
            + line[*from..]
                .find(part)
                .unwrap_or_else(|| panic!("{part} in {line}"));
        *from = at + part.len();
        Some(at)
    })
    .collect();
    assert_eq!(keys[0], 0);
    let binding: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(number(&binding, "pid"), tmux.pid("%0"));
    assert_eq!(binding["server"]["socket"], tmux.socket().to_str().unwrap());
    let server = format!(":{}:", tmux.server_pid());
    assert!(
        binding["server"]["ident"]
            .as_str()
            .unwrap()
            .contains(&server)
    );
    let cwd = sandbox.path("").canonicalize().unwrap();
    assert_eq!(binding["cwd"], cwd.to_str().unwrap());
    assert!(binding["age_ms"].as_u64().unwrap() < 600_000);
    verify(&sandbox, &binding, &[]).is("match", "same_process");
}

#[test]
fn a_new_server_gives_the_same_ids_to_strangers() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let second = tmux.window(&["sleep", "600"]);
    let (first, second) = (tmux.capture("%0"), tmux.capture(&second));
    let pids = [number(&first, "pid"), number(&second, "pid")];
    tmux.kill();
    pids.into_iter().for_each(until_dead);
    verify(&sandbox, &first, &[]).is("gone", "no_server");
    tmux.start_again();
    let judged = verify(&sandbox, &first, &[]);
    judged.is("foreign", "other_process");
    let live = &judged.record["verdict"]["live"];
    assert_eq!(live["pid"], tmux.pid("%0"));
    assert_eq!(live["pane"], "%0");
    verify(&sandbox, &second, &[]).is("gone", "no_such_pane");
}

#[test]
fn a_pane_that_is_respawned_is_foreign() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    tmux.run(&["respawn-pane", "-k", "-t", "%0", "cat"]);
    assert_ne!(tmux.pid("%0"), number(&binding, "pid"));
    until_dead(number(&binding, "pid"));
    verify(&sandbox, &binding, &[]).is("foreign", "other_process");
    // Until the record is renewed on purpose.
    verify(&sandbox, &tmux.capture("%0"), &[]).is("match", "same_process");
}

#[test]
fn a_pane_that_is_killed_is_gone_and_its_survivor_orphaned() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let mortal = tmux.window(&["cat"]);
    let script = "trap '' HUP TERM; echo ready > ready; exec sleep 600";
    let stubborn = tmux.window(&["sh", "-c", script]);
    until("it ignores HUP", || sandbox.path("ready").exists());
    let (mortal, stubborn) = (tmux.capture(&mortal), tmux.capture(&stubborn));
    sandbox.track(stubborn["ident"].as_str().unwrap());
    for binding in [&mortal, &stubborn] {
        tmux.run(&["kill-pane", "-t", binding["pane"].as_str().unwrap()]);
    }
    until_dead(number(&mortal, "pid"));
    verify(&sandbox, &mortal, &[]).is("gone", "no_such_pane");
    let judged = verify(&sandbox, &stubborn, &[]);
    judged.is("orphaned", "no_such_pane");
    assert_eq!(judged.record["verdict"]["live"]["pid"], stubborn["pid"]);
    assert_eq!(
        judged.record["verdict"]["live"]["pane"],
        serde_json::Value::Null
    );
    tmux.kill();
    verify(&sandbox, &stubborn, &[]).is("orphaned", "no_server");
}

#[test]
fn panes_that_are_swapped_and_moved_still_match() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let other = tmux.window(&["cat"]);
    let split = tmux.run(&[
        "split-window",
        "-d",
        "-t",
        "%0",
        "-P",
        "-F",
        "#{pane_id}",
        "cat",
    ]);
    let bindings: Vec<_> = ["%0", &other, &split].map(|pane| tmux.capture(pane)).into();
    let check = |after: &str| {
        for binding in &bindings {
            let judged = verify(&sandbox, binding, &[]);
            assert_eq!(judged.state, "match", "after {after}: {judged:?}");
        }
    };
    tmux.run(&["swap-pane", "-s", "%0", "-t", &other]);
    check("swap-pane");
    tmux.run(&["break-pane", "-d", "-s", &split]);
    check("break-pane");
    tmux.run(&["join-pane", "-d", "-s", "%0", "-t", &split]);
    check("join-pane");
    tmux.run(&["rename-window", "-t", "%0", "another"]);
    check("rename-window");
}

#[test]
fn a_shell_that_becomes_something_else_is_the_same_process() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let pane = tmux.window(&["sh", "-c", "read line; exec sleep 600"]);
    let binding = tmux.capture(&pane);
    verify(&sandbox, &binding, &["--same-argv"]).is("match", "same_process");
    tmux.run(&["send-keys", "-t", &pane, "Enter"]);
    until("it is sleep", || tmux.capture(&pane)["argv"][0] == "sleep");
    verify(&sandbox, &binding, &[]).is("match", "same_process");
    verify(&sandbox, &binding, &["--same-argv"]).is("foreign", "role_changed");
    verify(&sandbox, &tmux.capture(&pane), &["--same-argv"]).is("match", "same_process");
}

#[test]
fn arguments_are_compared_as_they_are_shown() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let secret = r#"{"env":{"TOKEN":"hunter2"},"x":1}"#;
    let long = "x".repeat(6000);
    let pane = tmux.window(&["sh", "-c", "cat", secret, &long]);
    let binding = tmux.capture(&pane);
    assert!(!binding.to_string().contains("hunter2"));
    assert_eq!(binding["argv_cut"], true);
    verify(&sandbox, &binding, &["--same-argv"]).is("match", "same_process");
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--full-argv", "--tmux", &pane, "--tmux-socket"]);
    let full = crate::support::record(&command.arg(tmux.socket()).output().unwrap());
    assert_eq!(full["argv"][3], secret);
    assert_eq!(full["argv"][4], long.as_str());
    assert_eq!(full["argv_cut"], false);
    verify(&sandbox, &full, &["--same-argv"]).is("match", "same_process");
}

#[test]
fn a_dead_pane_that_is_kept_has_no_process() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let pane = tmux.window(&["cat"]);
    let binding = tmux.capture(&pane);
    tmux.run(&["send-keys", "-t", &pane, "C-d"]);
    until("the pane is dead", || {
        let format = ["list-panes", "-a", "-F", "#{pane_id} #{pane_dead}"];
        tmux.run(&format).contains(&format!("{pane} 1"))
    });
    verify(&sandbox, &binding, &[]).is("gone", "dead_pane");
    let output = tmux.try_capture(&pane);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).contains("no live process"));
    // It comes back to life with another process.
    tmux.run(&["respawn-pane", "-t", &pane, "cat"]);
    verify(&sandbox, &binding, &[]).is("foreign", "other_process");
}

#[test]
fn gone_is_believed_when_it_has_settled() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let pane = tmux.window(&["cat"]);
    let binding = tmux.capture(&pane);
    tmux.run(&["kill-pane", "-t", &pane]);
    until_dead(number(&binding, "pid"));
    verify(&sandbox, &binding, &["--settle", "200ms"]).is("gone", "no_such_pane");
    verify(&sandbox, &binding, &["--settle", "1h"]).is("unknown", "not_settled");
    // A stranger that comes meanwhile is seen by the second look.
    let dead = tmux.capture("%0");
    tmux.kill();
    until_dead(number(&dead, "pid"));
    let mut command = sandbox.tool("pane-ident");
    let binding = format!("{dead}\n");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            command.args(["verify", "--settle", "4s", "--timeout", "60s"]);
            crate::stage::feed(&mut command, &binding)
        });
        tmux.start_again();
        crate::stage::judged(&asking.join().unwrap()).is("foreign", "other_process");
    });
}

#[test]
fn several_servers_in_one_call() {
    let sandbox = Sandbox::new();
    let (one, two) = (Tmux::start(&sandbox, "one"), Tmux::start(&sandbox, "two"));
    let bindings = [one.capture("%0"), two.capture("%0")];
    assert_ne!(bindings[0]["pid"], bindings[1]["pid"]);
    let lines = format!("{}\n{}\n", bindings[0], bindings[1]);
    let output = crate::stage::verify_lines(&sandbox, &lines, &["-o", "verdict.state,pid"]);
    let expected = format!(
        "match\t{}\nmatch\t{}\n",
        bindings[0]["pid"], bindings[1]["pid"]
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    one.kill();
    until_dead(number(&bindings[0], "pid"));
    let output = crate::stage::verify_lines(&sandbox, &lines, &["--only", "match", "-o", "pid"]);
    let expected = format!("{}\n", bindings[1]["pid"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_thousand_records_and_one_look() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let panes = ["%0".to_owned(), tmux.window(&["cat"])];
    let bindings = panes.map(|pane| format!("{}\n", tmux.capture(&pane)));
    let counting = "#!/bin/sh\necho look >>looks\nexec tmux \"$@\"\n";
    let counting = sandbox.script("counting", counting);
    let words = [
        "--tmux-bin",
        counting.to_str().unwrap(),
        "-o",
        "verdict.state",
    ];
    let output = crate::stage::verify_lines(&sandbox, &bindings.concat().repeat(500), &words);
    assert_eq!(output.stdout, "match\n".repeat(1000).as_bytes());
    let looks = std::fs::read_to_string(sandbox.path("looks")).unwrap();
    assert_eq!(looks, "look\n");
}

/// A pane whose process is replaced between two looks is looked at again, and never bound to a
/// mix of two.
#[test]
fn a_pane_that_changes_hands_while_it_is_read() {
    let sandbox = Sandbox::new();
    let (_one, one) = sandbox.sleeper();
    let (_two, two) = sandbox.sleeper();
    let (one, two) = (one.pid(), two.pid());
    // A tmux that names one process at the first look, and from then on another.
    let fake = |rest: &str| {
        let script = format!(
            "#!/bin/sh\necho look >>looks\npid={two}\n{rest}\n\
             printf '%%0 %s 0 1 0 @0 0 $0 1 0 1 1 2 sw/x\\n' $pid\n"
        );
        let _ = std::fs::remove_file(sandbox.path("looks"));
        let fake = sandbox.script("fake", &script);
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--tmux", "%0", "--tmux-bin"]);
        command.arg(fake).output().unwrap()
    };
    let output = fake(&format!("[ $(wc -l <looks) -gt 1 ] || pid={one}"));
    let binding = crate::support::record(&output);
    assert_eq!(number(&binding, "pid"), two.get());
    let looks = std::fs::read_to_string(sandbox.path("looks")).unwrap();
    assert_eq!(looks.lines().count(), 4);
    // One that never keeps still is not bound at all.
    let output = fake(&format!("[ $(($(wc -l <looks) % 2)) = 0 ] || pid={one}"));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(output.stdout.is_empty());
    // One that is named, and is not there.
    let output = fake("pid=4194303");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Records made before there were identities: tmux tells the window's name, the kernel where the
/// pane's process is.
#[test]
fn a_record_without_an_identity() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let record = |cwd: &std::path::Path, label: &str| {
        serde_json::json!({"mux": "tmux", "server": {"socket": tmux.socket()}, "pane": "%0",
            "cwd": cwd, "label": label})
    };
    let folder = sandbox.path("");
    let both = ["--legacy", "cwd,label"];
    verify(&sandbox, &record(&folder, "first"), &[]).is("unbound", "no_identity");
    let judged = verify(&sandbox, &record(&folder, "first"), &both);
    judged.is("match", "legacy_equal");
    assert_eq!(judged.record["verdict"]["weak"], true);
    assert_eq!(judged.record["verdict"]["live"]["pid"], tmux.pid("%0"));
    verify(&sandbox, &record(&folder, "firs"), &both).is("foreign", "legacy_differs");
    let other = std::path::Path::new("/");
    verify(&sandbox, &record(other, "first"), &both).is("foreign", "legacy_differs");
    verify(&sandbox, &record(other, "first"), &["--legacy", "label"]).is("match", "legacy_equal");
    tmux.kill();
    verify(&sandbox, &record(&folder, "first"), &both).is("foreign", "no_server");
}

#[test]
fn one_look_is_not_no_look() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0").to_string();
    std::fs::write(sandbox.path("binding"), binding).unwrap();
    let once = |words: &[&str], input: &str| {
        let mut command = sandbox.tool("pane-ident");
        command.args(words).args(["--timeout", "0"]);
        let input = std::fs::File::open(input).unwrap();
        command.stdin(input).output().unwrap().status.success()
    };
    let socket = tmux.socket().to_str().unwrap();
    let capture = ["capture", "--tmux", "%0", "--tmux-socket", socket];
    let binding = sandbox.path("binding");
    // Each time it may be too short on a busy machine.
    until("it is captured", || once(&capture, "/dev/null"));
    until("it is verified", || {
        once(&["verify"], binding.to_str().unwrap())
    });
}
