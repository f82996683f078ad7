//! Records in, records out: what is passed on, what is refused, and the exit status.

use serde_json::{Value, json};

use crate::stage::{Stage, command, lines, reap, reap_input};
use crate::support::{Sandbox, bin, until};

const SLEEPER: &str = "say ready; exec sleep 600";

fn holder(stage: &Stage, class: &str, active: bool) -> Value {
    json!({"v": 1, "type": "holder", "pid": stage.pid("root"), "ident": stage.ident("root"),
        "class": class, "root": stage.pid("root"), "root_ident": stage.ident("root"),
        "shared": false, "active": active})
}

fn scan(complete: bool) -> Value {
    json!({"v": 1, "type": "scan", "complete": complete})
}

#[test]
fn what_is_not_for_us_is_passed_on_to_the_byte() {
    let input = concat!(
        "{\"type\":\"session\",\"n\":1e400,\"big\":18446744073709551616, \"x\" : 1.0}\n",
        "  {\"a\":\"\\u00e9\\ud800\"}\n",
        "{}\n",
        "{\"type\":\"process_entry\",\"pid\":4294967295}\n",
        "{\"pid\":-1,\"holding\":{\"state\":\"dead\"}}\n",
        "{\"type\":\"scan\",\"complete\":true}\n",
        "{\"last\":\"without a newline\"}",
    );
    let run = reap_raw(&[], input.as_bytes());
    assert_eq!(run.0, Some(0));
    assert_eq!(String::from_utf8(run.1).unwrap(), format!("{input}\n"));
    // Nothing to do is no failure.
    assert_eq!(reap_raw(&[], b"").0, Some(0));
}

fn reap_raw(words: &[&str], input: &[u8]) -> (Option<i32>, Vec<u8>) {
    use std::io::Write as _;
    let mut child = command(words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout)
}

#[test]
fn a_record_keeps_its_bytes_beside_what_is_added() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let (pid, ident) = (stage.pid("root"), stage.ident("root"));
    let line = format!(
        "{{\"z\":1.50,\"pid\":{pid} ,\"reap\":\"old\",\"ident\":\"{ident}\",\"a\":1e400}}\n"
    );
    let (code, output) = reap_raw(&[], line.as_bytes());
    assert_eq!(code, Some(0));
    let output = String::from_utf8(output).unwrap();
    let (before, after) = line.split_once("\"old\"").unwrap();
    assert!(output.starts_with(before), "{output}");
    assert!(output.ends_with(after), "{output}");
    assert!(output.contains(
        "\"reap\":{\"outcome\":\"terminated\",\"signals\":[\"TERM\"],\"members\":[{\"pid\":"
    ));
}

#[test]
fn a_line_that_is_no_record_spoils_no_other() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let input = format!("{{\"a\":1}}\nnot a record\n{}\n[1]\n", stage.record("root"));
    let run = reap_input(&[], &input);
    assert_eq!(run.code, Some(65));
    assert_eq!(run.records.len(), 2);
    assert_eq!(run.records[1]["reap"]["outcome"], "terminated");
    assert!(
        run.stderr().contains("line 2") && run.stderr().contains("line 4"),
        "{run:?}"
    );
}

#[test]
fn whose_holder() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let run = reap_input(&[], &lines(&[holder(&stage, "foreign", false), scan(true)]));
    assert_eq!(
        (run.code, &run.records[0]["reap"]["outcome"]),
        (Some(1), &json!("foreign"))
    );
    let all = ["--active", "--allow-bare-pid", "--leaderless"];
    let run = reap_input(&all, &lines(&[holder(&stage, "foreign", true), scan(true)]));
    assert_eq!(
        (run.code, &run.records[0]["reap"]["outcome"]),
        (Some(1), &json!("foreign"))
    );
    let run = reap_input(&[], &lines(&[holder(&stage, "own", true), scan(true)]));
    assert_eq!(
        (run.code, &run.records[0]["reap"]["outcome"]),
        (Some(1), &json!("active"))
    );
    assert!(run.stderr().contains("--active ends it too"), "{run:?}");
    assert!(stage.lives("root"));
    let run = reap_input(
        &["--active"],
        &lines(&[holder(&stage, "own", true), scan(true)]),
    );
    assert_eq!(
        (run.code, &run.records[0]["reap"]["outcome"]),
        (Some(0), &json!("terminated"))
    );
}

#[test]
fn a_look_that_was_not_whole() {
    let sandbox = Sandbox::new();
    for tail in [None, Some(scan(false)), Some(json!({"type": "scan"}))] {
        let stage = Stage::new(&sandbox, SLEEPER);
        let mut input = vec![holder(&stage, "own", false)];
        input.extend(tail);
        let run = reap_input(&[], &lines(&input));
        // It is done all the same.
        assert_eq!(run.records[0]["reap"]["outcome"], "terminated");
        assert_eq!(run.code, Some(3), "{input:?}");
        assert!(!stage.lives("root"));
    }
}

#[test]
fn several_records_of_one_tree_are_one_target() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, "sleep 600 & say one $!; say ready; wait");
    let mut child = holder(&stage, "own", false);
    child["pid"] = json!(stage.pid("one"));
    let run = reap_input(
        &[],
        &lines(&[holder(&stage, "own", false), child, scan(true)]),
    );
    assert_eq!(run.code, Some(0));
    assert_eq!(run.records[0]["reap"], run.records[1]["reap"]);
    assert_eq!(
        run.records[0]["reap"]["members"].as_array().unwrap().len(),
        2
    );
}

fn decision(action: &str, stale: &[Value]) -> Value {
    json!({"v": 1, "type": "decision", "action": action, "argv": ["true"], "stale": stale})
}

#[test]
fn a_decision_is_reaped_whole() {
    let sandbox = Sandbox::new();
    let (one, two) = (Stage::new(&sandbox, SLEEPER), Stage::new(&sandbox, SLEEPER));
    // The decision names it, so that it is active is no reason.
    let stale = [holder(&one, "own", true), holder(&two, "own", false)];
    let run = reap_input(&[], &lines(&[decision("reclaim", &stale)]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.records[0]["stale"][0]["reap"]["outcome"], "terminated");
    assert_eq!(run.records[0]["stale"][1]["reap"]["outcome"], "terminated");
    assert_eq!(run.records[0].get("reap"), None);
    assert!(!one.lives("root") && !two.lives("root"));
}

#[test]
fn a_decision_with_a_stranger_in_it_is_refused_whole() {
    let sandbox = Sandbox::new();
    let (one, two) = (Stage::new(&sandbox, SLEEPER), Stage::new(&sandbox, SLEEPER));
    let stale = [holder(&one, "own", false), holder(&two, "foreign", false)];
    let run = reap_input(&["--active"], &lines(&[decision("reclaim", &stale)]));
    assert_eq!(run.code, Some(1), "{run:?}");
    for at in 0..2 {
        assert_eq!(run.records[0]["stale"][at]["reap"]["outcome"], "foreign");
    }
    assert!(one.lives("root") && two.lives("root"));
    // What is no record of a process cannot be shown to be ours.
    let stale = [holder(&one, "own", false), json!("x")];
    let run = reap_input(&[], &lines(&[decision("reclaim", &stale)]));
    assert_eq!(run.code, Some(1));
    assert!(one.lives("root"));
}

#[test]
fn the_exit_status_of_a_decision() {
    let sandbox = Sandbox::new();
    for (action, code) in [
        ("resume", 0),
        ("assign", 0),
        ("spawn", 0),
        ("mint", 0),
        ("already_running", 1),
        ("give_up", 1),
        ("unknown", 3),
        ("something else", 3),
    ] {
        let run = reap_input(&[], &lines(&[decision(action, &[])]));
        assert_eq!(run.code, Some(code), "{action}");
        assert_eq!(run.records, [decision(action, &[])]);
    }
    let run = reap_input(&[], "{\"type\":\"decision\"}\n");
    assert_eq!(run.code, Some(3));
    // Nobody is ended for a decision that could not be made.
    let stage = Stage::new(&sandbox, SLEEPER);
    let stale = [holder(&stage, "own", false)];
    let run = reap_input(&[], &lines(&[decision("unknown", &stale)]));
    assert_eq!(run.code, Some(3));
    assert_eq!(run.records[0]["stale"][0]["reap"]["outcome"], "unknown");
    assert!(stage.lives("root"));
    // A survivor makes it worse.
    let stage = Stage::new(
        &sandbox,
        "trap '' TERM; say ready; while :; do sleep 1; done",
    );
    let stale = [holder(&stage, "own", false)];
    let words = ["--no-kill", "--grace", "50ms"];
    let run = reap_input(&words, &lines(&[decision("reclaim", &stale)]));
    assert_eq!(run.code, Some(1));
    assert_eq!(run.records[0]["stale"][0]["reap"]["outcome"], "survived");
}

#[test]
fn a_record_without_an_identity() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let bare = lines(&[json!({"type": "process", "pid": stage.pid("root")})]);
    reap_input(&[], &bare).expect("no_identity", 1);
    assert!(stage.lives("root"));
    reap_input(&["--allow-bare-pid"], &bare).expect("terminated", 0);
}

#[test]
fn identities_of_elsewhere() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let ident = stage.ident("root");
    let mut fields: Vec<&str> = ident.split(':').collect();
    let boot = "00000000-0000-4000-8000-000000000000";
    let put = |fields: &mut Vec<&str>, at: usize, value: &'static str| -> String {
        let old = std::mem::replace(&mut fields[at], value);
        let word = fields.join(":");
        fields[at] = old;
        word
    };
    let other_boot = put(&mut fields, 1, boot);
    let other_space = put(&mut fields, 2, "7");
    let other_inode = put(&mut fields, 5, "1");
    let record = |ident: &str, host: &str| {
        lines(&[json!({"type": "process", "pid": stage.pid("root"), "ident": ident, "host": host})])
    };
    let host = process::Here::new().host().to_owned();
    reap_input(&[], &record(&other_boot, &host)).expect("gone", 0);
    reap_input(&[], &record(&other_boot, "elsewhere")).expect("unknown", 3);
    let run = reap_input(&[], &record(&other_space, &host));
    run.expect("unknown", 3);
    assert!(run.stderr().contains("namespace"), "{run:?}");
    reap_input(&[], &record(&other_inode, &host)).expect("recycled", 1);
    assert!(stage.lives("root"));
}

#[test]
fn a_thread_is_no_process() {
    let sandbox = Sandbox::new();
    let script = "exec python3 -c '
import os, threading, time
def run():
    print(\"thread\", threading.get_native_id(), file=open(\"thread\", \"w\"), flush=True)
    time.sleep(600)
threading.Thread(target=run).start()
while not os.path.exists(\"thread\") or not open(\"thread\").read(): time.sleep(0.01)
print(\"ready\", file=open(os.environ[\"NAMES\"], \"a\"), flush=True)'";
    let stage = Stage::new(&sandbox, script);
    let said = std::fs::read_to_string(sandbox.path("thread")).unwrap();
    let thread = said.trim().rsplit(' ').next().unwrap();
    reap(&[thread]).expect("gone", 0);
    assert!(stage.lives("root"));
}

#[test]
fn what_was_meant_as_a_record_or_as_a_pid_is_told_how() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("s.json");
    std::fs::write(&file, "{}\n").unwrap();
    let file = file.to_str().unwrap();
    let run = reap(&[file]);
    assert_eq!(run.code, Some(2));
    let hint = format!("records are read from standard input: reap <{file}");
    assert!(run.stderr().contains(&hint), "{run:?}");
    let run = reap(&["no-such-file"]);
    assert_eq!(run.code, Some(2));
    assert!(!run.stderr().contains("records"), "{run:?}");

    let run = reap_input(&[], "4242\n");
    assert_eq!(run.code, Some(65));
    let hint = "line 1: not a JSON object: give pids as operands\n";
    assert!(run.stderr().ends_with(hint), "{run:?}");
    let run = reap_input(&[], "4242 sleep\n");
    assert_eq!(run.code, Some(65));
    assert!(!run.stderr().contains("operands"), "{run:?}");
}

#[test]
fn the_record_of_a_bare_operand() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let cmdline = format!("/proc/{}/cmdline", stage.pid("root"));
    until("it has become what it says", || {
        std::fs::read(&cmdline).is_ok_and(|words| words == b"sleep\x00600\x00")
    });
    let run = reap(&[&stage.pid("root").to_string()]);
    run.expect("terminated", 0);
    let record = &run.records[0];
    assert_eq!(record["type"], "process");
    assert_eq!(record["ident"], stage.ident("root"));
    assert_eq!(record["argv"], json!(["sleep", "600"]));
    assert_eq!(record["pgid"], stage.pid("root"));
    let text = String::from_utf8(run.output.stdout.clone()).unwrap();
    let keys = [
        "v",
        "type",
        "status",
        "pid",
        "pgid",
        "sid",
        "ident",
        "argv",
        "cwd",
        "log",
        "ready",
        "exit",
        "guard",
        "marker",
        "lock",
        "host",
        "lossy",
        "argv_cut",
        "started_at",
        "took_ms",
        "reap",
        "outcome",
        "signals",
        "members",
        "survivors",
        "zombies",
    ];
    let places: Vec<_> = keys
        .iter()
        .map(|key| {
            text.find(&format!("\"{key}\":"))
                .unwrap_or_else(|| panic!("no {key}: {text}"))
        })
        .collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_server_of_somebody_else_is_not_the_one_that_was_started() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let mut record = stage.record("root");
    record["status"] = json!("occupied");
    reap_input(&[], &lines(&[record])).expect("foreign", 1);
    assert!(stage.lives("root"));
}

#[test]
fn by_the_file_that_names_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("pid");
    let path = file.to_str().unwrap();
    let write = |text: &str| {
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, text).unwrap();
    };
    let stage = Stage::new(&sandbox, SLEEPER);
    write(&format!("{}\nmore\n", stage.pid("root")));
    reap(&["--pidfile", path]).expect("terminated", 0);

    // A process that started after the file was written is another one.
    let stage = Stage::new(&sandbox, SLEEPER);
    write(&format!("{}\n", stage.pid("root")));
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let opened = std::fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(hour_ago).unwrap();
    reap(&["--pidfile", path]).expect("recycled", 1);
    assert!(stage.lives("root"));

    // A record does not depend on the file's time.
    write(&lines(&[stage.record("root")]));
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    reap(&["--pidfile", path]).expect("terminated", 0);

    // Files that may not be trusted.
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new(&sandbox, SLEEPER);
    write(&format!("{}\n", stage.pid("root")));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(reap(&["--pidfile", path]).code, Some(125));
    let link = sandbox.path("link");
    write(&format!("{}\n", stage.pid("root")));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(reap(&["--pidfile", link.to_str().unwrap()]).code, Some(125));
    assert_eq!(reap(&["--pidfile", "/nonexistent/pid"]).code, Some(125));
    assert!(stage.lives("root"));
}

#[test]
fn output_as_columns_words_and_nothing() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let pid = stage.pid("root").to_string();
    let text = |words: &[&str]| {
        let output = command(words).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(
        text(&["-n", "-o", "pid,reap.outcome", &pid]),
        (Some(0), format!("{pid}\tdry_run\n"))
    );
    assert_eq!(text(&["-n", "-q", &pid]), (Some(0), String::new()));
    assert_eq!(
        text(&["-n", "--sh", "-o", "argv", &pid]),
        (Some(0), "'sleep' '600'\n".to_owned())
    );
    assert!(text(&["-n", "-H", &pid]).1.contains("dry_run"));
}

#[test]
fn wrong_usage() {
    for words in [
        &["--scope", "world", "5"][..],
        &["--grace", "-1", "5"],
        &["--grace", "", "5"],
        &["--until", "never", "5"],
        &["--no-such-option"],
        &["abc"],
        &["linux:x:1:2:3:4"],
    ] {
        let output = command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty());
        assert!(output.stderr.starts_with(b"reap: "), "{output:?}");
    }
    // A terminal for input, and nobody named.
    let output = std::process::Command::new("script")
        .args(["-qec"])
        .arg(bin("reap"))
        .arg("/dev/null")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure_and_nothing_is_left_undone() {
    let sandbox = Sandbox::new();
    let stage = Stage::new(&sandbox, SLEEPER);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = command(&[&stage.ident("root")])
        .stdout(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(125));
    assert!(!stage.lives("root"));
}
