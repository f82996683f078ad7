//! Other boots, other hosts, other namespaces, and numbers that are handed out again.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Tmux, feed, judged, verify, verify_lines};
use crate::support::{Sandbox, bin, handle, said, until, until_dead};

const OTHER_BOOT: &str = "ffffffff-1f6b-4f0f-9d55-0b1b5a6c7d8e";

/// `ident` with one of its fields replaced.
fn with(ident: &Value, field: usize, value: &str) -> Value {
    let mut fields: Vec<&str> = ident.as_str().unwrap().split(':').collect();
    fields[field] = value;
    json!(fields.join(":"))
}

#[test]
fn a_record_of_another_boot() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let mut binding = tmux.capture("%0");
    binding["ident"] = with(&binding["ident"], 1, OTHER_BOOT);
    // The pane's id is somebody else's by now, or nobody's.
    verify(&sandbox, &binding, &[]).is("foreign", "other_process");
    binding["pane"] = json!("%77");
    verify(&sandbox, &binding, &[]).is("gone", "no_such_pane");
    // Without a host it counts as one of here.
    binding.as_object_mut().unwrap().remove("host");
    verify(&sandbox, &binding, &[]).is("gone", "no_such_pane");
}

#[test]
fn a_record_of_another_host() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let mut binding = tmux.capture("%0");
    binding["host"] = json!("elsewhere.example");
    // The same boot is the same machine, whatever a container calls it.
    verify(&sandbox, &binding, &[]).is("match", "same_process");
    binding["ident"] = with(&binding["ident"], 1, OTHER_BOOT);
    for pane in [json!("%0"), json!("%77"), Value::Null] {
        binding["pane"] = pane;
        verify(&sandbox, &binding, &[]).is("unknown", "other_host");
    }
    let lstart = "lstart:elsewhere.example:0:4242:1764426381:0";
    verify(&sandbox, &json!({ "ident": lstart }), &[]).is("unknown", "other_host");
}

#[test]
fn a_record_of_another_namespace() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    let mut other = binding.clone();
    other["ident"] = with(&binding["ident"], 2, "4026539999");
    let inode = binding["ident"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    if inode != "0" {
        // A live process beside the record is told apart by its inode.
        verify(&sandbox, &other, &[]).is("match", "same_process");
        let mut stranger = other.clone();
        stranger["ident"] = with(&other["ident"], 5, "1");
        verify(&sandbox, &stranger, &[]).is("foreign", "other_process");
    }
    // Whether that pid still lives cannot be told from here.
    other["pane"] = json!("%77");
    verify(&sandbox, &other, &[]).is("unknown", "other_namespace");
    other["pane"] = Value::Null;
    verify(&sandbox, &other, &[]).is("unknown", "other_namespace");
}

#[test]
fn an_identity_of_ps_is_good_enough_to_refuse() {
    let sandbox = Sandbox::new();
    let (mut child, ident) = sandbox.sleeper();
    let pid = ident.pid().get();
    let start = handle(pid).entry().unwrap().start.wall_clock().unwrap();
    let start = start
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let host = process::Here::new().host().to_owned();
    let at = |seconds: u64| json!({"ident": format!("lstart:{host}:0:{pid}:{seconds}:0")});
    // On a busy machine ps can take longer than it may. The zone of the caller plays no part.
    let asked = |seconds: u64| {
        let ask = || {
            let mut command = sandbox.tool("pane-ident");
            command.args(["verify", "--timeout", "60s"]);
            command.env("TZ", "Asia/Tokyo").env("LC_ALL", "de_DE.UTF-8");
            judged(&feed(&mut command, &format!("{}\n", at(seconds))))
        };
        let mut answer = ask();
        until("ps answers", || {
            answer = ask();
            answer.state != "unknown"
        });
        answer
    };
    let near = asked(start);
    near.is("match", "same_process");
    assert_eq!(near.record["verdict"]["weak"], true);
    asked(start - 60).is("foreign", "recycled");
    child.0.kill().unwrap();
    until_dead(pid);
    asked(start).is("gone", "process_ended");
}

/// `ps` is called for each such record, and no longer than there is time.
#[test]
fn identities_of_ps_have_the_deadline_of_the_call() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let host = process::Here::new().host().to_owned();
    let record = json!({"ident": format!("lstart:{host}:0:{}:1764426381:0", ident.pid())});
    let lines = format!("{record}\n").repeat(3000);
    let started = Instant::now();
    let output = verify_lines(&sandbox, &lines, &["--timeout", "1s"]);
    assert!(started.elapsed() < Duration::from_secs(4), "{started:?}");
    assert_eq!(output.status.code(), Some(3));
}

/// A script as init of a pid namespace, in a session of its own. `next PID` makes PID the next
/// number to be handed out.
fn namespace(sandbox: &Sandbox, script: &str) -> Command {
    let prelude = r#"
set -u
next() { echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; }
mux() { tmux -u -f /dev/null -S "$PWD/mux" "$@"; }
gone() { server=$(mux display-message -p '#{pid}'); mux kill-server; while [ -d "/proc/$server" ]; do sleep 0.02; done; }
capture() { "$PANE_IDENT" capture --tmux-socket "$PWD/mux" "$@"; }
verdict() { "$PANE_IDENT" verify -o verdict.state,verdict.reason; }
"#;
    let mut command = Command::new("setsid");
    command
        .args(["--wait", "unshare", "-Urpf", "--mount-proc", "bash", "-c"])
        .arg(format!("{prelude}{script}\n:"))
        .env("PANE_IDENT", bin("pane-ident"))
        .env("SHELL", "/bin/sh")
        .env_remove("TMUX")
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null());
    command
}

/// What a script in a pid namespace printed.
#[track_caller]
fn in_namespace(sandbox: &Sandbox, script: &str) -> Vec<String> {
    let output = namespace(sandbox, script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_number_that_is_handed_out_again() {
    let sandbox = Sandbox::new();
    let lines = in_namespace(
        &sandbox,
        r#"
        mux new-session -d -s main cat -
        # The next number is that of the client, and the one after it that of the pane.
        respawn() {
            for _ in $(seq 50); do
                next 299; mux respawn-pane -k -t %0 cat -
                [ "$(mux list-panes -F '#{pane_pid}')" != 300 ] || return
            done
            exit 9
        }
        respawn
        capture --tmux %0 >old.json; "$PANE_IDENT" capture --pid 300 >pid.json
        verdict <old.json
        # The pane's process ends, and the same number goes to the pane's next one.
        mux set-option -g remain-on-exit on
        kill -KILL 300
        until [ "$(mux list-panes -F '#{pane_dead}')" = 1 ]; do sleep 0.02; done
        verdict <old.json; verdict <pid.json
        respawn
        verdict <old.json; verdict <pid.json
        capture --tmux %0 | verdict
        gone
        "#,
    );
    let expected = [
        "match\tsame_process",
        "gone\tdead_pane",
        "gone\tprocess_ended",
        "foreign\tother_process",
        "foreign\trecycled",
        "match\tsame_process",
    ];
    assert_eq!(lines, expected);
}

/// The same boot and the same pane, in a container that was built anew. The old one is still there,
/// so that its namespace's number is not given to the new one.
#[test]
fn a_container_that_is_rebuilt() {
    let sandbox = Sandbox::new();
    let start = "next 300; mux new-session -d -s main cat -; capture --tmux %0 >now.json;";
    let old = format!("{start} gone; mv now.json old.json; until [ -e done ]; do sleep 0.02; done");
    let mut old = namespace(&sandbox, &old).spawn().unwrap();
    until("the old one is written", || {
        sandbox.path("old.json").exists()
    });
    let lines = in_namespace(
        &sandbox,
        &format!(
            "{start} verdict <old.json; verdict <now.json
             sed s/%0/%7/ old.json >none.json; verdict <none.json
             gone; verdict <old.json"
        ),
    );
    std::fs::write(sandbox.path("done"), "").unwrap();
    assert!(old.wait().unwrap().success());
    let expected = [
        "foreign\tother_process",
        "match\tsame_process",
        // From here it cannot be told whether a process of the old one still lives.
        "unknown\tother_namespace",
        "unknown\tother_namespace",
    ];
    assert_eq!(lines, expected);
}

/// Where /proc is another namespace's, nothing is believed.
#[test]
fn a_foreign_proc() {
    let sandbox = Sandbox::new();
    let (_child, ident) = sandbox.sleeper();
    let output = Command::new("setsid")
        .args([
            "--wait",
            "unshare",
            "-Urpf",
            "sh",
            "-c",
            "\"$0\" verify -o verdict.state,verdict.reason \"$1\"; :",
        ])
        .arg(bin("pane-ident"))
        .arg(ident.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "unknown\tforeign_proc\n");
}

/// Where there is no /proc at all, nobody is bound, nothing matches, and nothing is run.
#[cfg(target_os = "linux")]
#[test]
fn no_proc() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let binding = tmux.capture("%0");
    std::fs::write(sandbox.path("binding"), format!("{binding}\n")).unwrap();
    let script = r#"
        mount -t tmpfs none /proc || exit 9
        "$0" verify -o verdict.state <binding; echo $?
        "$0" verify -o verdict.state "$1"; echo $?
        "$0" capture --pid "$2"; echo $?
        "$0" capture --tmux %0 --tmux-socket "$PWD/t"; echo $?
        "$0" exec --binding binding -- echo acted; echo $?
    "#;
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script])
        .arg(bin("pane-ident"))
        .arg(binding["ident"].as_str().unwrap())
        .arg(binding["pid"].to_string())
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let expected = ["unknown", "3", "unknown", "3", "3", "3", "122"];
    assert_eq!(lines, expected, "{output:?}");
}

/// The pids that a server in a container names are other processes' numbers out here.
#[test]
fn a_server_in_another_namespace() {
    let sandbox = Sandbox::new();
    let script = "tmux -u -f /dev/null -S mux new-session -d cat || exit 9; touch ready; \
        while [ ! -e stop ]; do sleep 0.05; done; tmux -S mux kill-server";
    let mut container = Command::new("setsid")
        .args([
            "--wait",
            "unshare",
            "-Urpf",
            "--mount-proc",
            "sh",
            "-c",
            script,
        ])
        .env_remove("TMUX")
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("it is up", || sandbox.path("ready").exists());
    let socket = sandbox.path("mux");
    let mut command = sandbox.tool("pane-ident");
    command.args(["capture", "--tmux", "%0", "--tmux-socket"]);
    let output = command.arg(&socket).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said(&output).contains("other_namespace"));
    let (_child, ident) = sandbox.sleeper();
    let record = json!({"mux": "tmux", "pane": "%0", "ident": ident.to_string(),
        "server": {"socket": socket}});
    verify(&sandbox, &record, &[]).is("unknown", "other_namespace");
    std::fs::write(sandbox.path("stop"), "").unwrap();
    assert!(container.wait().unwrap().success());
}
