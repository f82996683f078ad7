//! The tools need no other program, no variable and nobody's service.

use serde_json::Value;

use crate::support::{Sandbox, lives, number, record, records, until_dead};

/// Nothing but the tools and what they are told to run: no `setsid`, `nohup`, `kill`, `ps`, `pgrep` or
/// `lsof`, whatever their versions and flags, no user bus, no home.
#[test]
fn nothing_else_is_on_path_and_no_variable_is_set() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    let run = |tool: &str, words: &[&str]| {
        let mut command = sandbox.tool(tool);
        command.args(words).env_clear();
        // Without PATH there is a default one, with those programs in it.
        let output = command.env("PATH", sandbox.path("empty")).output().unwrap();
        assert!(output.status.success(), "{tool} {words:?}: {output:?}");
        output
    };
    let words = [
        "--guard",
        "--marker",
        "m.marker",
        "--announce",
        "deaths",
        "--lock",
        "lock",
        "--log",
        "log",
        "--record",
        "record",
        "--",
        "/bin/sleep",
        "600",
    ];
    let started = record(&run("detach", &words));
    let ident = started["ident"].as_str().unwrap();
    sandbox.track(ident);
    sandbox.track(started["guard"]["ident"].as_str().unwrap());
    run("pane-ident", &["verify", "-q", ident]);
    let log = sandbox.path("log");
    let held = records(&run("holder-scan", &["--file", log.to_str().unwrap()]));
    assert_eq!(held[0]["pid"], started["pid"]);
    run(
        "detach",
        &["--fail-if-running", "--lock", "other", "--", "/bin/true"],
    );
    let decided = run("resume-id", &["--agent", "claude", "--cwd", "/"]);
    assert_eq!(record(&decided)["action"], "mint");
    run("reap", &["--pidfile", "record"]);
    run("eventwait", &["--exit", ident, "--timeout", "20"]);
    let death = run(
        "eventwait",
        &["--follow", "deaths", "--from", "start", "--timeout", "20"],
    );
    assert_eq!(record(&death)["deliberate"], true);
    until_dead(number(&started, "pid"));
}

/// A manager of the user's services is a subreaper: what has lost its parent gets that one, and not
/// the process 1.
#[test]
fn a_guard_whose_new_parent_is_not_process_1() {
    let sandbox = Sandbox::new();
    let manager = "import ctypes, subprocess, sys\n\
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n\
        subprocess.run(sys.argv[1:], check=True)\n\
        print(flush=True)\n\
        sys.stdin.read()";
    let mut command = std::process::Command::new("python3");
    command
        .args(["-c", manager])
        .arg(crate::support::bin("detach"))
        .args(["--guard", "--marker", "m.marker", "--announce", "deaths"])
        .args(["--record", "record", "-q", "sleep", "600"])
        .current_dir(sandbox.path(""))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut manager = crate::support::Killed(command.spawn().unwrap());
    let mut ready = [0];
    std::io::Read::read_exact(manager.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let record = std::fs::read(sandbox.path("record")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    sandbox.track(record["ident"].as_str().unwrap());
    let guard = number(&record["guard"], "pid");
    sandbox.track_pid(guard);
    let handle = crate::support::handle(guard);
    let ppid = handle.entry().unwrap().ppid;
    assert_eq!(ppid, i32::try_from(manager.0.id()).unwrap());
    assert!(lives(number(&record, "pid")));
    crate::support::handle(number(&record, "pid")).signal(process::Signal::SIGKILL);
    let words = ["--follow", "deaths", "--from", "start", "--timeout", "20"];
    let death = sandbox.tool("eventwait").args(words).output().unwrap();
    let death = crate::support::record(&death);
    assert_eq!(
        (&death["signal"], &death["by"]),
        (&"KILL".into(), &"guard".into())
    );
    until_dead(guard);
}
