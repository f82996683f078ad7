//! The guard: where it lives, what it outlives, and what it says.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;

use process::Signal;
use serde_json::{Value, json};

use crate::guarded::*;
use crate::support::*;

#[test]
fn it_is_the_parent_in_a_session_of_its_own() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    let entry = |pid| process::Reader::new().entry(process::Pid::new(i64::from(pid)).unwrap());
    let (command, guard) = (entry(one.pid).unwrap(), entry(one.guard).unwrap());
    assert_eq!((command.sid, command.pgid), (one.pid, one.pid));
    assert_eq!((guard.sid, guard.pgid), (one.guard, one.guard));
    assert_eq!(command.ppid, one.guard);
    let marker = scene.read_marker().unwrap();
    assert_eq!(marker["type"], "marker");
    for key in ["pid", "ident", "argv", "guard", "started_at"] {
        assert_eq!(marker[key], one.record[key], "{key}");
    }
    assert_eq!(one.record["marker"], json!(scene.marker()));
    let output = scene.sweep();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(scene.marker().exists(), "what is guarded is left");
    kill(one.pid);
    scene.death();
}

#[test]
fn what_ends_the_caller_or_the_command_does_not_end_it() {
    let scene = Scene::new();
    let line = "detach --guard --marker m.marker --announce deaths sleep 600 >r; sleep 600 & wait";
    let mut command = scene.bash(line);
    let caller = Killed(command.process_group(0).spawn().unwrap());
    let read = || std::fs::read(scene.path("r")).unwrap_or_default();
    until("it has started", || read().ends_with(b"\n"));
    let one = scene.adopt(serde_json::from_slice(&read()).unwrap());
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGKILL] {
        signal_group(caller.0.id() as i32, signal);
    }
    drop(caller);
    assert!(lives(one.pid) && lives(one.guard));
    signal_group(one.pid, Signal::SIGTERM);
    signal_group(one.pid, Signal::SIGKILL);
    let death = scene.death();
    assert_eq!(death["ident"], one.record["ident"]);
    assert_eq!(death["by"], "guard");
    until_dead(one.guard);
}

#[test]
fn it_goes_on_when_its_caller_is_killed_while_it_waits() {
    let scene = Scene::new();
    let words = ["--guard", "--marker", "m.marker", "--announce", "deaths"];
    let wait = [
        "--ready-file",
        "ready",
        "--ready-timeout",
        "60",
        "sleep",
        "600",
    ];
    let mut command = scene.tool("detach");
    command.args(words).args(["--record", "r"]).args(wait);
    let mut caller = Killed(command.stdout(Stdio::piped()).spawn().unwrap());
    until("the marker is there", || scene.read_marker().is_some());
    let kept: Value = serde_json::from_slice(&std::fs::read(scene.path("r")).unwrap()).unwrap();
    let one = scene.adopt(scene.read_marker().unwrap());
    assert_eq!(
        kept["ident"], one.record["ident"],
        "the record is there by then"
    );
    caller.0.kill().unwrap();
    caller.0.wait().unwrap();
    std::fs::write(scene.path("ready"), "").unwrap();
    let ready =
        || -> Option<Value> { serde_json::from_slice(&std::fs::read(scene.path("r")).ok()?).ok() };
    until("it is ready", || {
        ready().is_some_and(|record| record["status"] == "ready")
    });
    assert!(lives(one.pid) && lives(one.guard));
    kill(one.pid);
    assert_eq!(scene.death()["signal"], "KILL");
}

#[test]
fn it_says_how_the_command_has_ended() {
    let table = [
        ("exit 0", json!(0), Value::Null),
        ("exit 7", json!(7), Value::Null),
        ("kill -TERM $$", Value::Null, json!("TERM")),
        ("kill -KILL $$", Value::Null, json!("KILL")),
        ("kill -SEGV $$", Value::Null, json!("SEGV")),
    ];
    for (script, code, signal) in table {
        let scene = Scene::new();
        let script = format!("sleep 0.3; {script}");
        // Whether there is a core image is up to the machine.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(scene.path(""));
        let core = command.status().unwrap().core_dumped();
        scene.run(&[
            "--tag",
            "a \"tag\"",
            "--min-uptime",
            "100ms",
            "sh",
            "-c",
            &script,
        ]);
        let death = scene.death();
        assert_eq!(
            (&death["code"], &death["signal"], &death["core"]),
            (&code, &signal, &json!(core)),
            "{death}"
        );
        assert_eq!(death["unnatural"], script != "sleep 0.3; exit 0", "{death}");
        assert_eq!(death["deliberate"], false);
        assert_eq!(death["tag"], "a \"tag\"");
        let uptime = death["uptime_ms"].as_u64().unwrap();
        assert!((250..30_000).contains(&uptime), "{uptime}");
        let keys: Vec<&String> = death.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 20, "{keys:?}");
    }
}

#[test]
fn the_keys_of_a_death_have_their_order() {
    let scene = Scene::new();
    scene.run(&["false"]);
    scene.death();
    let text = std::fs::read_to_string(scene.path("deaths")).unwrap();
    let keys = [
        "v",
        "type",
        "pid",
        "ident",
        "argv",
        "code",
        "signal",
        "core",
        "unnatural",
        "deliberate",
        "uptime_ms",
        "stranded",
        "log_tail",
        "restarts",
        "death_id",
        "by",
        "tag",
        "lossy",
        "argv_cut",
        "at",
    ];
    let places: Vec<usize> = keys
        .iter()
        .map(|key| {
            text.find(&format!("\"{key}\":"))
                .unwrap_or_else(|| panic!("no {key}: {text}"))
        })
        .collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn it_names_who_has_outlived_the_command() {
    let scene = Scene::new();
    let script = "sleep 600 & echo $! >>pids; setsid sleep 600 & echo $! >>pids
        (set -m; sleep 600 & echo $! >>pids); kill -KILL $$";
    scene.run(&["bash", "-c", script]);
    let mut expected = pids(&scene, "pids", 3);
    for &pid in &expected {
        scene.track_pid(pid);
    }
    let death = scene.death();
    let stranded = death["stranded"].as_array().unwrap();
    let mut named: Vec<i32> = stranded.iter().map(|one| number(one, "pid")).collect();
    for one in stranded {
        let ident: process::Identity = one["ident"].as_str().unwrap().parse().unwrap();
        assert_eq!(ident.pid().get(), number(one, "pid"));
    }
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
    assert!(
        named.iter().all(|&pid| lives(pid)),
        "they are named, not ended"
    );
}

/// Elsewhere orphans are the first process's business.
#[cfg(target_os = "linux")]
#[test]
fn it_collects_the_orphans_it_is_given() {
    let scene = Scene::new();
    // With SIGCHLD ignored too, as some callers leave it.
    for prefix in ["", "trap '' CHLD; "] {
        let line = format!("{prefix}exec detach --guard --announce deaths -- sh -c \"$ORPHANS\"");
        let mut command = scene.bash(&line);
        let output = command.env("ORPHANS", ORPHANS).output().unwrap();
        let one = scene.adopt(record(&output));
        until_collected(&scene);
        assert!(lives(one.pid), "{prefix}");
        std::fs::remove_file(scene.path("orphans")).unwrap();
        kill(one.pid);
    }
}

#[test]
fn it_shows_the_end_of_the_log() {
    let scene = Scene::new();
    std::fs::write(scene.path("log"), "of an earlier run\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(scene.path("log"), mode).unwrap();
    let script = "printf 'a\\377b\\n'; exit 1";
    scene.run(&["--log", "log", "sh", "-c", script]);
    let death = scene.death();
    assert_eq!(death["log_tail"], "a\u{fffd}b\n");
    assert_eq!(death["lossy"], true);

    let scene = Scene::new();
    let script = "for i in $(seq 1000 1999); do echo line $i; done; exit 1";
    scene.run(&["--log", "log", "bash", "-c", script]);
    let death = scene.death();
    let tail = death["log_tail"].as_str().unwrap();
    assert!((4000..=4096).contains(&tail.len()), "{}", tail.len());
    assert!(
        tail.starts_with("line ") && tail.ends_with("line 1999\n"),
        "{tail}"
    );
}

#[test]
fn term_is_passed_on_waited_for_and_deliberate() {
    let scene = Scene::new();
    let script = "trap 'sleep 0.3; exit 5' TERM; echo >ready; while :; do sleep 0.02; done";
    let one = scene.start(&["--ready-file", "ready", "bash", "-c", script]);
    signal(one.guard, Signal::SIGTERM);
    let death = scene.death();
    assert_eq!(
        (&death["code"], &death["deliberate"]),
        (&json!(5), &json!(true))
    );
    assert_eq!(death["unnatural"], false);
    assert!(!lives(one.pid));
}

#[test]
fn other_signals_are_the_commands_business() {
    let scene = Scene::new();
    let script = "trap 'exit 9' USR1; echo >ready; while :; do sleep 0.02; done";
    let one = scene.start(&["--ready-file", "ready", "bash", "-c", script]);
    signal(one.guard, Signal::SIGUSR1);
    let death = scene.death();
    assert_eq!(
        (&death["code"], &death["deliberate"]),
        (&json!(9), &json!(false))
    );
}

#[test]
fn its_own_end_leaves_the_command_to_the_sweep() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    kill(one.guard);
    until_dead(one.guard);
    assert!(lives(one.pid));
    let output = scene.sweep();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(scene.marker().exists() && scene.announced().is_empty());
    kill(one.pid);
    until_dead(one.pid);
    let output = scene.sweep();
    assert_eq!(output.status.code(), Some(0));
    let (told, death) = (record(&output), scene.death());
    assert_eq!(told, death, "it prints what it announces");
    assert_eq!(death["by"], "sweep");
    assert_eq!(
        (&death["code"], &death["signal"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(death["unnatural"], true);
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let scene = Scene::new();
    std::fs::write(scene.path("r"), "{\"older\":1}\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(scene.path("r"), mode).unwrap();
    let output = scene.run(&["--record", "r", "no-such-command-anywhere"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(
        said(&output).contains("no-such-command-anywhere"),
        "{output:?}"
    );
    assert!(!scene.marker().exists() && scene.announced().is_empty());
    assert_eq!(std::fs::read(scene.path("r")).unwrap(), b"{\"older\":1}\n");
    let output = scene.run(&["--record", "new", "no-such-command-anywhere"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(!scene.path("new").exists());
}

#[test]
fn a_command_that_was_never_ready_is_announced_too() {
    let scene = Scene::new();
    let output = scene.run(&["--ready-file", "f", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(record(&output)["status"], "exited");
    let death = scene.death();
    assert_eq!(
        (&death["code"], &death["deliberate"]),
        (&json!(3), &json!(false))
    );

    let scene = Scene::new();
    let output = scene.run(&["--ready-file", "f", "sh", "-c", "touch f; exit 3"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(record(&output)["status"], "ready");
    let death = scene.death();
    assert_eq!(
        (&death["code"], &death["deliberate"]),
        (&json!(3), &json!(false))
    );

    let scene = Scene::new();
    let output = scene.run(&[
        "--ready-file",
        "f",
        "--ready-timeout",
        "200ms",
        "sleep",
        "600",
    ]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert!(!lives(number(&record(&output), "pid")));
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("TERM"), &json!(true))
    );
}

#[test]
fn a_signal_during_the_start_ends_what_was_started() {
    for round in 0..rounds(12) {
        let scene = Scene::new();
        let mut command = scene.tool("detach");
        command.args(["--guard", "--marker", "m.marker", "--announce", "deaths"]);
        command.args(["sleep", "600"]).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(u64::from(round) * 700));
        signal(child.id() as i32, Signal::SIGTERM);
        let output = child.wait_with_output().unwrap();
        if output.stdout.is_empty() {
            until("nothing is left", || !scene.marker().exists());
            let deaths = scene.announced();
            assert!(
                deaths.iter().all(|death| death["deliberate"] == true),
                "{deaths:?}"
            );
        } else {
            scene.adopt(record(&output));
        }
    }
}

#[test]
fn a_signal_while_it_is_not_ready_is_told_of() {
    let scene = Scene::new();
    let mut command = scene.tool("detach");
    command.args(["--guard", "--marker", "m.marker", "--announce", "deaths"]);
    command.args([
        "--ready-file",
        "f",
        "--ready-timeout",
        "60s",
        "sleep",
        "600",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("the marker is there", || scene.read_marker().is_some());
    signal(child.id() as i32, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        said(&output),
        "detach: interrupted by TERM: the command has been ended\n"
    );
    let death = scene.death();
    assert_eq!(death["deliberate"], true);
    // TERM, or KILL where there was no time for that.
    assert!(death["signal"].is_string(), "{death}");
    assert!(death["uptime_ms"].is_u64(), "{death}");
}

/// It is on its way to say that the command runs, which is made to last here, when its caller is
/// told to end; and nobody reads the record.
#[cfg(target_os = "linux")]
#[test]
fn a_report_that_comes_after_a_signal_is_not_printed() {
    let scene = Scene::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    std::io::Write::write_all(&mut writer, &vec![b'x'; room]).unwrap();
    // It stays in the background itself, so that the child is the tool.
    let slowly = "-D -f -qq -o /dev/null -e trace=write -e inject=write:delay_enter=50000";
    let mut command = std::process::Command::new("strace");
    command.args(slowly.split(' ')).arg(bin("detach"));
    command.args(["--guard", "--marker", "m.marker", "--announce", "deaths"]);
    command.args(["sh", "-c", ": >ran; exec sleep 600"]);
    command.current_dir(scene.path("")).stdin(Stdio::null());
    let mut child = Killed(command.stdout(writer).spawn().unwrap());
    until("the command runs", || scene.path("ran").exists());
    signal(child.0.id() as i32, Signal::SIGTERM);
    until("it has ended", || child.0.try_wait().unwrap().is_some());
    let status = child.0.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32), "{status:?}");
    assert_eq!(scene.death()["deliberate"], true);
    drop(reader);
}

#[test]
fn a_command_whose_record_cannot_be_written_is_told_of_too() {
    let scene = Scene::new();
    // The record's file is there and whole until the command has been executed.
    let script = "rm r; mkdir r; touch ready; exec sleep 600";
    let words = ["--record", "r", "--ready-file", "ready", "sh", "-c", script];
    let output = scene.run(&words);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("TERM"), &json!(true))
    );
    assert!(death["uptime_ms"].is_u64(), "{death}");
}

#[test]
fn a_command_whose_record_reaches_nobody_is_ended() {
    let scene = Scene::new();
    let line = "exec >/dev/full; detach --guard --marker m.marker --announce deaths \
        --ready-file ready bash -c 'trap \"\" TERM; echo >ready; while :; do sleep 0.02; done'";
    let output = scene.bash(line).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let death = scene.death();
    assert!(!lives(number(&death, "pid")));
    assert_eq!(
        (&death["signal"], &death["deliberate"]),
        (&json!("KILL"), &json!(true))
    );
}

#[test]
fn what_does_not_go_together_is_wrong_usage() {
    let table: [&[&str]; 10] = [
        &["--guard", "touch", "ran"],
        &["--marker", "m.marker", "touch", "ran"],
        &["--announce", "deaths", "touch", "ran"],
        &["--tag", "t", "touch", "ran"],
        &[
            "--guard",
            "--announce",
            "deaths",
            "--marker",
            "m",
            "touch",
            "ran",
        ],
        &[
            "--restart",
            "on-failure",
            "--announce",
            "deaths",
            "touch",
            "ran",
        ],
        &[
            "--restart",
            "always",
            "--announce",
            "deaths",
            "--marker",
            "m.marker",
            "touch",
            "ran",
        ],
        &["--sweep", "."],
        &["--sweep", ".", "--announce", "deaths", "touch", "ran"],
        &["--guard", "--announce", "deaths"],
    ];
    let scene = Scene::new();
    for words in table {
        let output = scene.tool("detach").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    }
    assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0);
}

#[test]
fn no_file_is_two_things() {
    let scene = Scene::new();
    let table: [&[&str]; 4] = [
        &["--announce", "q.marker", "--marker", "./q.marker"],
        &["--lock", "x", "--record", "x"],
        &["--log", "x", "--record", "x"],
        &["--guard", "--announce", "x", "--lock", "x"],
    ];
    for words in table {
        let mut command = scene.tool("detach");
        let output = command.args(words).args(["touch", "ran"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(said(&output).contains("the same file"), "{output:?}");
    }
    assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0);
}

/// A name that a record could not hold would lead whoever reads it elsewhere. Not every file system
/// takes such a name at all.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_a_record_cannot_hold_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let odd = |name: &'static [u8]| std::ffi::OsStr::from_bytes(name);
    for (option, name, others) in [
        (
            "--marker",
            odd(b"m\xff.marker"),
            vec!["--announce", "deaths"],
        ),
        ("--announce", odd(b"d\xff"), vec!["--marker", "m.marker"]),
        ("--announce", odd(b"d\xff"), vec!["--guard"]),
        (
            "--log",
            odd(b"l\xff"),
            vec!["--marker", "m.marker", "--announce", "deaths"],
        ),
    ] {
        let scene = Scene::new();
        let mut command = scene.tool("detach");
        command.arg(option).arg(name).args(&others);
        let output = command.args(["touch", "ran"]).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{option}: {output:?}");
        assert!(said(&output).contains("is not UTF-8"), "{output:?}");
        assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0);
    }
}

#[test]
fn many_cost_little() {
    let scene = Scene::new();
    // Five hundred in the long tests.
    let all: Vec<Guarded> = (0..rounds(25))
        .map(|number| {
            let marker = format!("{number}.marker");
            let words = [
                "--guard",
                "--announce",
                "deaths",
                "--marker",
                &marker,
                "sleep",
                "600",
            ];
            scene.adopt(scene.detach(&words))
        })
        .collect();
    let switches = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt"));
        line.unwrap().to_owned()
    };
    let count = || -> Vec<String> { all.iter().map(|one| switches(one.guard)).collect() };
    let mut before = count();
    until("they have settled", || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let earlier = std::mem::replace(&mut before, count());
        earlier == before
    });
    for one in &all {
        // What is mapped of the program is shared by all of them.
        let memory = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", one.guard)).unwrap();
        let line = memory.lines().find(|line| line.starts_with("Anonymous:"));
        let kilobytes: u64 = line
            .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
            .unwrap();
        assert!(kilobytes < 1024, "{kilobytes} kB");
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    let after: Vec<String> = all.iter().map(|one| switches(one.guard)).collect();
    assert_eq!(
        before, after,
        "a guard has woken although nothing has happened"
    );
    for one in &all {
        kill(one.pid);
    }
    until("all are announced", || scene.announced().len() == all.len());
    until("no marker is left", || {
        std::fs::read_dir(scene.path("")).unwrap().count() == 1
    });
}
