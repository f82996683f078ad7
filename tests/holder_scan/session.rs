//! Session ids in arguments, and whose a holding is.

use serde_json::json;

use super::*;
use crate::support::{number, until};

#[test]
fn nobody_is_free_and_somebody_is_not() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let free = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(
        (free.verdict(), free.code()),
        ("free", 0),
        "{:?}",
        free.output
    );
    assert_eq!(free.scan()["what"], json!({"session_id": [id]}));
    assert_eq!(
        scan(&sandbox, &["-q", "--session-id", &id])
            .output
            .status
            .code(),
        Some(1)
    );
    assert_eq!(scan(&sandbox, &["-e", "--session-id", &id]).code(), 1);

    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let held = scan(&sandbox, &["--session-id", &id]);
    assert_eq!((held.verdict(), held.code()), ("foreign", 0));
    let holder = held.holder(pid(&agent));
    assert_eq!(holder["evidence"][0]["by"], "argv");
    assert_eq!(holder["evidence"][0]["index"], FIRST);
    assert_eq!(holder["evidence"][0]["flag"], "--session-id");
    assert_eq!(holder["root"], pid(&agent));
    assert_eq!(holder["root_ident"], holder["ident"]);
    assert_eq!(holder["session_id"], id);
    assert_eq!(holder["active"], true);
    assert_eq!(scan(&sandbox, &["-e", "--session-id", &id]).code(), 0);
    let quiet = scan(&sandbox, &["-q", "--session-id", &id]);
    assert_eq!((quiet.code(), quiet.records.len()), (0, 0));
}

#[test]
fn the_keys_of_a_holder_are_all_there_and_in_order() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let _agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let output = scan(&sandbox, &["--session-id", &id]).output;
    let line = String::from_utf8(output.stdout).unwrap();
    let keys = "v type pid ident ppid pgid sid uid name state foreground exe argv argv_cut cwd tty \
                class session_id root root_ident primary registered carrier shared active age_ms \
                youngest_child_ms evidence lossy";
    let mut rest = line.lines().next().unwrap();
    for key in keys.split_whitespace() {
        let name = format!("\"{key}\":");
        let at = rest
            .find(&name)
            .unwrap_or_else(|| panic!("{key} is not in its place: {line}"));
        rest = &rest[at + name.len()..];
    }
}

#[test]
fn an_id_behind_many_arguments() {
    let sandbox = Sandbox::new();
    // One argument is at most 128 KiB; the whole list is found, however long.
    let filler = "x".repeat(100_000);
    for count in [0, 1, 2, 11] {
        let id = new_id();
        let mut arguments = vec![filler.as_str(); count];
        arguments.extend(["--session-id", &id]);
        let agent = idle(&sandbox, "anything", &arguments);
        let held = scan(&sandbox, &["--session-id", &id]);
        let holder = held.holder(pid(&agent));
        assert_eq!(holder["evidence"][0]["index"], FIRST + count as u64);
        assert_eq!(holder["argv_cut"], count > 0);
    }
}

#[test]
fn json_arguments_of_a_wrapper() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let escaped: String = id.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let folder = text(&sandbox.path("")).trim_end_matches('/').to_owned();
    let table = [
        (
            format!(r#"{{"args":["--session-id","{id}"],"cwd":"{folder}"}}"#),
            "own",
        ),
        (
            format!("{{ \"cwd\" : \"{folder}\",\n\t\"args\" : [ \"--resume\" , \"{id}\" ] }}"),
            "own",
        ),
        (
            format!(r#"{{"args":["--session-id","{escaped}"],"cwd":"{folder}"}}"#),
            "own",
        ),
        (
            format!(r#"{{"args":["--session-id={id}"],"cwd":"/"}}"#),
            "own",
        ),
        (
            format!(r#"{{"cwd":"{folder}","args":["--session-id","{id}","#),
            "own",
        ),
        (format!(r#"{{"session":"{id}"}}"#), "none"),
        (
            format!(r#"{{"args":["--resume","{id}","--fork-session"]}}"#),
            "none",
        ),
    ];
    for (json, class) in table {
        let wrapper = idle_script(&sandbox, "wrapper.sh", &[&json]);
        let held = scan(
            &sandbox,
            &[
                "--session-id",
                &id,
                "--own-arg",
                "wrapper.sh",
                "--own-cwd",
                &folder,
            ],
        );
        if class == "none" {
            assert_eq!(held.verdict(), "free", "{json}");
            continue;
        }
        let holder = held.holder(pid(&wrapper));
        assert_eq!(holder["class"], class, "{json}");
        assert_eq!(holder["evidence"][0]["by"], "argv-json");
        assert_eq!(
            (&holder["carrier"], &holder["active"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(held.verdict(), "own");
    }
}

#[test]
fn values_of_an_environment_are_not_shown() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let json = format!(r#"{{"args":["--session-id","{id}"],"env":{{"TOKEN":"s3cret"}}}}"#);
    let wrapper = idle_script(&sandbox, "wrapper.sh", &[&json]);
    let owned = [
        "--session-id",
        &id,
        "--own-arg",
        "wrapper.sh",
        "--own-env",
        "TOKEN=s3cret",
    ];
    let held = scan(&sandbox, &owned);
    assert_eq!(held.holder(pid(&wrapper))["class"], "own");
    let printed = String::from_utf8_lossy(&held.output.stdout).into_owned();
    assert!(!printed.contains("s3cret"), "{printed}");
    let full = scan(&sandbox, &[&owned[..], &["--full-argv"]].concat());
    assert!(String::from_utf8_lossy(&full.output.stdout).contains("s3cret"));
}

#[test]
fn who_only_names_an_id_does_not_hold_it() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let transcript = format!("/nowhere/{id}.jsonl");
    let command = format!("claude --resume {id}");
    let scanning = format!("holder-scan --session-id {id}; :");
    let _named = [
        idle(&sandbox, "screen", &["-r", &id]),
        idle(&sandbox, "grep", &["-r", &id, "."]),
        idle(&sandbox, "rg", &["-s", &id]),
        idle(&sandbox, "vim", &[&transcript]),
        idle(&sandbox, "tail", &["-f", &transcript]),
        idle(&sandbox, "tmux: server", &["new-session", "-d", &command]),
        idle(
            &sandbox,
            "tmux",
            &["new-session", "claude", "--resume", &id],
        ),
        idle(&sandbox, "ssh", &["host", "claude", "--session-id", &id]),
        idle(
            &sandbox,
            "docker",
            &["exec", "box", "claude", "--resume", &id],
        ),
        idle(&sandbox, "reap", &["--session-id", &id]),
        idle(&sandbox, "resume-id", &["--session-id", &id]),
        idle(&sandbox, "claude", &["--resume", &id, "--fork-session"]),
        idle(&sandbox, "codex", &["fork", &id]),
        idle(&sandbox, "opencode", &["-s", &id, "--fork"]),
        idle(&sandbox, "anything", &["-r", &id]),
        idle(&sandbox, "anything", &[&id]),
        idle(&sandbox, "claude", &["--resume", &format!("{id}9")]),
    ];
    let _shell = Killed(
        Command::new("sh")
            .args(["-c", &format!("read never; {scanning} echo {id}")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let free = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(
        (free.verdict(), free.holders().len()),
        ("free", 0),
        "{:?}",
        free.output
    );
    let named = scan(&sandbox, &["--session-id", &id, "--mentions"]);
    assert_eq!(named.verdict(), "free");
    assert_eq!(
        named.holders().len(),
        17,
        "all but the longer word: {:?}",
        named.classes()
    );
    assert!(named.classes().iter().all(|(_, class)| *class == "mention"));
}

#[test]
fn an_id_in_an_environment_is_a_descendants() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let child = idle_with(&sandbox, "make", &[], |command| {
        command.env("CLAUDE_CODE_SESSION_ID", &id);
    });
    assert_eq!(scan(&sandbox, &["--session-id", &id]).verdict(), "free");
    let named = scan(&sandbox, &["--session-id", &id, "--mentions"]);
    let holder = named.holder(pid(&child));
    assert_eq!(holder["class"], "descendant");
    assert_eq!(holder["evidence"][0]["name"], "CLAUDE_CODE_SESSION_ID");
    assert_eq!(named.verdict(), "free");
}

#[test]
fn ids_are_literal() {
    let sandbox = Sandbox::new();
    let unique = new_id();
    let held = format!("a|b.*[x] {unique}'\"");
    let agent = idle(&sandbox, "claude", &["--session-id", &held]);
    let twice = ["--session-id", &held, "--session-id", &held];
    for question in [&twice[..2], &twice] {
        let scanned = scan(&sandbox, question);
        assert_eq!(scanned.holders().len(), 1, "{question:?}");
        assert_eq!(scanned.scan()["holders"], 1);
    }
    for other in [format!("a|c {unique}"), ".*".to_owned(), unique.clone()] {
        let free = scan(&sandbox, &["--session-id", &other]);
        assert_eq!(free.verdict(), "free", "{other}: {:?}", free.output);
    }
    drop(agent);
    for usage in [
        &["--session-id", ""][..],
        &["--session-id", "a\nb"],
        &[],
        &["--own-arg", "x"],
    ] {
        let wrong = scan(&sandbox, usage);
        assert_eq!((wrong.code(), wrong.records.len()), (2, 0), "{usage:?}");
    }
}

#[test]
fn criteria_that_fit_a_persons_own_agent_are_not_enough() {
    let sandbox = Sandbox::new();
    let id = new_id();
    for weak in [
        &["--own-cwd", "/"][..],
        &["--own-cwd-under", "/"],
        &["--own-uid", "0"],
    ] {
        let wrong = scan(&sandbox, &[&["--session-id", &id][..], weak].concat());
        assert_eq!(wrong.code(), 2, "{weak:?}");
    }
}

#[test]
fn a_wrapper_and_its_agent_are_one_tree() {
    let sandbox = Sandbox::new();
    let id = new_id();
    // The agent is a child of the wrapper, and both wait for the same input.
    let script = sandbox.script(
        "wrapper.sh",
        "#!/bin/bash\n(exec -a claude bash -c 'read never' x --session-id \"$1\") <&0 &\nread never\n",
    );
    let mut command = Command::new(script);
    command
        .arg(&id)
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped());
    let wrapper = Killed(command.spawn().unwrap());
    let arguments = ["--session-id", &id, "--own-arg", "wrapper.sh"];
    until("the agent is there", || {
        scan(&sandbox, &arguments).verdict() == "own_active"
    });
    let held = scan(&sandbox, &arguments);
    let agent = held.holders()[0];
    assert_eq!(held.holders().len(), 1);
    assert_eq!(agent["root"], pid(&wrapper));
    assert_eq!(agent["primary"], agent["pid"]);
    assert_ne!(agent["ident"], agent["root_ident"]);
    assert!(agent["youngest_child_ms"].is_u64());
    sandbox.track_pid(number(agent, "pid"));

    let without = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(
        without.verdict(),
        "foreign",
        "nothing is own without a criterion"
    );
}

#[test]
fn a_caller_inside_of_the_holding_agent_hears_of_it() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let inside = |line: &str| {
        let mut command = sandbox.bash(line);
        command
            .arg0("claude")
            .args(["x", "--resume", &id])
            .env("ID", &id);
        Scanned::of(command.output().unwrap())
    };
    // Two commands, so that the shell does not become the last one.
    let held = inside("holder-scan --session-id \"$ID\"; :");
    assert_eq!(held.verdict(), "foreign");
    assert_eq!(held.classes()[0].1, "self");
    let own = inside("holder-scan --session-id \"$ID\" --own-arg claude; :");
    assert_eq!(own.verdict(), "own_active");
}

#[test]
fn a_wrapper_that_asks_while_its_agent_lives_hears_of_its_own() {
    let sandbox = Sandbox::new();
    let id = new_id();
    sandbox.script(
        "wrapper.sh",
        "#!/bin/bash\n(exec -a claude sh -c 'read never' x --resume \"$ID\") <&3 &\n\
         until holder-scan -q --session-id \"$ID\"; do :; done\n\
         sh -c 'holder-scan --session-id \"$ID\" --own-arg wrapper.sh; :'\nkill $!\n",
    );
    let json = format!("{{\"args\":[\"--session-id\",\"{id}\"]}}");
    let (input, _keep) = std::io::pipe().unwrap();
    let mut command = sandbox.bash("exec 3<&0; ./wrapper.sh \"$JSON\"; :");
    command.env("ID", &id).env("JSON", &json).stdin(input);
    let held = Scanned::of(command.output().unwrap());
    assert_eq!(held.verdict(), "own_active", "{:?}", held.output);
    let agent = held.holders()[0];
    assert_eq!((held.holders().len(), &agent["class"]), (1, &json!("own")));
    assert_eq!(agent["root"], agent["pid"]);
}

#[test]
fn a_shell_line_that_names_the_id_does_not_find_itself() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let lines = [
        format!("holder-scan --session-id {id}; : claude --resume {id}"),
        format!("sh -c 'holder-scan --session-id {id}; claude --resume {id} 2>&-; :' | cat"),
        format!("timeout 20 holder-scan --session-id {id}; :"),
        format!("nohup env A=b timeout -k 1 20s holder-scan --session-id {id} | cat"),
        format!("echo {{}} | cat | holder-scan --session-id {id} | tee /dev/null; : --resume {id}"),
    ];
    for line in lines {
        let free = Scanned::of(sandbox.bash(&line).output().unwrap());
        assert_eq!(free.verdict(), "free", "{line}: {:?}", free.output);
    }
    // Below every other shell, in a recipe of make, and whatever else can come between.
    let scanning = format!("holder-scan --session-id {id}; : claude --resume {id}");
    std::fs::write(sandbox.path("Makefile"), format!("all:\n\t@{scanning}\n")).unwrap();
    for between in [
        r#"sh -c "$LINE""#,
        r#"dash -c "$LINE""#,
        r#"zsh -fc "$LINE""#,
        r#"fish --no-config -c "$LINE""#,
        r#"script -qec "$LINE" /dev/null"#,
        r#"flock lock sh -c "$LINE""#,
        r#"setsid -w nice -n 1 stdbuf -oL sh -c "$LINE""#,
        r#"printf '%s\0' "$LINE" | xargs -0 sh -c"#,
        r#"find . -maxdepth 0 -exec sh -c "$LINE" ';'"#,
        r#"python3 -c 'import os; os.system(os.environ["LINE"])'"#,
        r#"cat <(sh -c "$LINE")"#,
        r#"eval "x=\$($LINE)"; echo "$x""#,
        "make -s",
    ] {
        let mut command = sandbox.bash(between);
        command.env("LINE", &scanning).env("HOME", sandbox.path(""));
        let free = Scanned::of(command.output().unwrap());
        assert_eq!(free.verdict(), "free", "{between}: {:?}", free.output);
    }
    let line =
        format!("holder-scan --include-self --session-id {id}; : ; claude --resume {id} 2>&-");
    let shown = Scanned::of(sandbox.bash(&line).output().unwrap());
    assert_eq!((shown.verdict(), shown.classes()[0].1), ("free", "self"));
}

#[test]
fn an_agent_in_the_background_of_the_calling_script_is_not_hidden() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let line = "(exec -a claude sh -c 'read never' x --resume \"$ID\") <&3 & \
                until holder-scan -q --session-id \"$ID\"; do :; done; \
                holder-scan --session-id \"$ID\"; kill $!";
    let (input, _keep) = std::io::pipe().unwrap();
    let mut command = sandbox.bash(&format!("exec 3<&0; {line}"));
    command.env("ID", &id).stdin(input);
    let held = Scanned::of(command.output().unwrap());
    assert_eq!((held.verdict(), held.holders().len()), ("foreign", 1));
}

#[test]
fn a_command_of_the_callers_pipeline_is_its_own_family() {
    let sandbox = Sandbox::new();
    let id = new_id();
    // What feeds it, and what reads from it; each may not yet be what it will be. None starts another,
    // which would be no command of the pipeline.
    for line in [
        "(exec -a claude sh -c 'while echo; do :; done' x --resume \"$ID\") | \
         holder-scan --include-self --session-id \"$ID\"",
        "(exec -a claude sh -c 'while echo; do :; done' x --resume \"$ID\") | cat | cat | \
         holder-scan --include-self --session-id \"$ID\" | cat",
        "holder-scan --include-self --session-id \"$ID\" | \
         (exec -a claude sh -c 'while read -r line; do echo \"$line\"; done >out' x --resume \"$ID\"); \
         cat out",
    ] {
        until("the agent is seen", || {
            let mut command = sandbox.bash(line);
            let held = Scanned::of(command.env("ID", &id).output().unwrap());
            let is_self = |(_, class): &(i32, &str)| *class == "self";
            assert_eq!(held.verdict(), "free", "{line}");
            held.classes().first().is_some_and(is_self)
        });
    }
}

/// `timeout` and its like start a command in their own place, and stay above it.
#[test]
fn a_pipeline_is_seen_through_what_starts_its_commands() {
    let sandbox = Sandbox::new();
    let id = new_id();
    sandbox.script(
        "next",
        "#!/bin/sh\nwhile read -r line; do echo \"$line\"; done >out\n",
    );
    sandbox.script("feed", "#!/bin/sh\nwhile echo; do :; done\n");
    for (line, count) in [
        ("timeout 20 holder-scan SELF | ./next ID; cat out", 1),
        ("holder-scan SELF | timeout 20 ./next ID; cat out", 2),
        (
            "flock lk timeout 20 holder-scan SELF | flock lk2 timeout 20 ./next ID; cat out",
            3,
        ),
        (
            "timeout 20 ./feed ID | cat | timeout 20 holder-scan SELF",
            2,
        ),
    ] {
        let line = line.replace("SELF", "--include-self ID");
        let line = line.replace("ID", "--session-id \"$ID\"");
        until("the command is seen", || {
            let mut command = sandbox.bash(&line);
            let held = Scanned::of(command.env("ID", &id).output().unwrap());
            assert_eq!(held.verdict(), "free", "{line}: {:?}", held.output);
            let classes = held.classes();
            classes.len() == count && classes.iter().all(|(_, class)| *class == "self")
        });
    }
}

#[test]
fn a_fork_that_is_about_to_become_a_command_does_not_name_what_its_parent_names() {
    let sandbox = Sandbox::new();
    let id = new_id();
    // The parent names it as a wrapper does; its fork takes its time, as on a busy machine.
    let line = "import os, subprocess, time
begun, begin = os.pipe()
os.set_blocking(begun, False)
child = os.fork()
if child == 0:
    asked = None
    while asked is None or time.monotonic() < asked + 0.05:
        try:
            asked = asked or (os.read(begun, 1) and time.monotonic())
        except BlockingIOError:
            pass
    os.execvp('true', ['true'])
scan = subprocess.Popen(['holder-scan', '--session-id', os.environ['ID']])
os.write(begin, b'x')
scan.wait()
os.waitpid(child, 0)";
    let mut command =
        sandbox.bash("python3 -c \"$LINE\" \"{\\\"args\\\":[\\\"--session-id\\\",\\\"$ID\\\"]}\"");
    command.env("LINE", line).env("ID", &id);
    let free = Scanned::of(command.output().unwrap());
    assert_eq!(free.verdict(), "free", "{:?}", free.output);
}

/// Of a pipeline whose shell is outside of its pid namespace the parents are all 0.
#[cfg(target_os = "linux")]
#[test]
fn a_pipeline_in_a_namespace_that_its_shell_is_not_in() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let line = "unshare -Urpf --kill-child --mount-proc sleep 600 & outer=$!
        until init=$(cat /proc/$outer/task/$outer/children) &&
            [ \"$(cat /proc/${init% }/comm)\" = sleep ]; do kill -0 $outer || exit 9; done 2>/dev/null
        enter() { nsenter -t ${init% } -U -p -m --preserve-credentials \"$@\"; }
        enter bash -c \"exec -a claude sh -c 'while echo; do :; done' x --resume $ID\" |
            enter holder-scan --include-self --session-id $ID
        kill -KILL $outer";
    until("the agent is seen", || {
        let mut command = sandbox.bash(line);
        let held = Scanned::of(command.env("ID", &id).output().unwrap());
        assert_eq!(held.verdict(), "free", "{:?}", held.output);
        let holders = held.holders();
        holders.first().is_some_and(|of| of["ppid"] == 0)
    });
}

#[test]
fn own_by_record() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--resume", &id]);
    let ident = sandbox.track_pid(pid(&agent));
    let record = sandbox.path("record.json");
    let write = |text: String| {
        std::fs::write(&record, text).unwrap();
        scan(
            &sandbox,
            &["--session-id", &id, "--own-record", super::text(&record)],
        )
    };
    assert_eq!(
        write(format!("{{\"ident\":\"{ident}\"}}\n")).verdict(),
        "own_active"
    );
    let (_sleeper, other) = sandbox.sleeper();
    assert_eq!(
        write(format!("{{\"ident\":\"{other}\"}}\n")).verdict(),
        "foreign"
    );
    assert_eq!(write("{}\n".to_owned()).code(), 125);
}

#[test]
fn own_by_executable_and_user() {
    let sandbox = Sandbox::new();
    let id = new_id();
    // A name longer than the 15 characters that the kernel keeps of one.
    let name = "claude-with-a-long-name";
    let agent = idle(&sandbox, name, &["--resume", &id]);
    let class = |own: &[&str]| {
        let held = scan(&sandbox, &[&["--session-id", &id][..], own].concat());
        held.holder(pid(&agent))["class"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // A link to the shell that it is on this system.
    assert_eq!(class(&["--own-exe", "/bin/sh"]), "own");
    assert_eq!(class(&["--own-exe", "/bin/true"]), "foreign");
    assert_eq!(class(&["--own-arg", name]), "own");
    assert_eq!(class(&["--own-arg", &name[..15]]), "foreign");
    let uid = nix::unistd::geteuid().to_string();
    assert_eq!(class(&["--own-exe", "/bin/sh", "--own-uid", &uid]), "own");
    assert_eq!(
        class(&["--own-exe", "/bin/sh", "--own-uid", "12345"]),
        "foreign"
    );
    let other = scan(&sandbox, &["--session-id", &id, "--uid", "12345"]);
    assert_eq!(other.verdict(), "free");
    let ours = scan(&sandbox, &["--session-id", &id, "--uid", &uid]);
    assert_eq!(ours.verdict(), "foreign");
}

#[test]
fn bytes_that_are_no_text_are_matched_as_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let unique = new_id();
    let argument = [unique.as_bytes(), b"\xff"].concat();
    let argument = std::ffi::OsStr::from_bytes(&argument);
    let odd = idle_with(&sandbox, "x", &[], |command| {
        command.arg(argument);
    });
    let mut command = sandbox.tool("holder-scan");
    let held = Scanned::of(command.arg("--arg").arg(argument).output().unwrap());
    let holder = held.holder(pid(&odd));
    assert_eq!(holder["lossy"], true);
    assert_eq!(holder["argv"][FIRST as usize], format!("{unique}\u{fffd}"));
    assert_eq!(scan(&sandbox, &["--arg", &unique]).verdict(), "free");
}

/// A process that has written a title over its arguments, and over its environment behind them.
#[test]
fn a_title_in_place_of_the_arguments() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let retitle = "import ctypes, sys\n\
        stat = open('/proc/self/stat').read().rsplit(')', 1)[1].split()\n\
        begin, end = int(stat[45]), int(stat[48])\n\
        title = f'claude -r {sys.argv[1]} (working)'.encode()\n\
        ctypes.memmove(begin, title + bytes(end - begin - len(title)), end - begin)\n\
        print(flush=True)\n\
        sys.stdin.read()";
    let mut command = Command::new("python3");
    command
        .args(["-c", retitle, &id])
        .env("MARK", &id)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut agent = Killed(command.spawn().unwrap());
    let mut ready = [0];
    std::io::Read::read_exact(agent.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let held = scan(&sandbox, &["--session-id", &id]);
    assert_eq!(held.classes(), [(pid(&agent), "foreign")]);
    let evidence = &held.holders()[0]["evidence"][0];
    assert_eq!(
        (&evidence["by"], &evidence["flag"]),
        (&json!("argv"), &json!("-r"))
    );
}

/// The folder of a process in `/proc` is that of its main thread: with that one gone it has neither
/// arguments nor files.
#[cfg(target_os = "linux")]
#[test]
fn a_process_whose_main_thread_has_ended_still_holds() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let path = sandbox.path("held");
    let file = std::fs::File::create(&path).unwrap();
    let line = "import ctypes, os, sys, threading\n\
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()\n\
        ctypes.CDLL(None).pthread_exit(None)";
    let mut command = Command::new("python3");
    command
        .arg0("claude")
        .args(["-c", line, "--resume", &id])
        .env("MARK", &id)
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped())
        .stderr(file);
    let agent = Killed(command.spawn().unwrap());
    drop(command);
    until("the main thread has ended", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid(&agent))).unwrap();
        stat.contains(") Z ")
    });
    let mark = format!("MARK={id}");
    for (question, by) in [
        (["--session-id", &id], "argv"),
        (["--file", text(&path)], "file"),
        (["--env", &mark], "env"),
    ] {
        let held = scan(&sandbox, &question);
        assert_eq!(held.classes(), [(pid(&agent), "foreign")], "{question:?}");
        let holder = held.holder(pid(&agent));
        assert_eq!(holder["evidence"][0]["by"], by);
        assert_eq!(held.scan()["complete"], true);
    }
    let file = scan(&sandbox, &["--file", text(&sandbox.path(""))]);
    assert_eq!(file.holder(pid(&agent))["evidence"][0]["fd"], "cwd");
}
