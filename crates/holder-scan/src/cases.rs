//! Judgements on tables, each written as one would see it with ps(1).
//!
//! Many of these situations were first written down for another program. Where that program, or
//! a first draft of what was wanted, saw one differently from what `holder-scan` promises now, the
//! promise decides:
//!
//! | situation | seen elsewhere as | here |
//! |---|---|---|
//! | an own wrapper with its living agent | own | `own_active`, since ending it ends a conversation |
//! | the same, where only the agent names the id | own | `own_active`, root the wrapper |
//! | a table that could not be read | nobody holds it | `unknown` |
//! | "all of the caller's own, whatever they hold" | a question of its own | `--arg` with the criteria |
//! | wrappers by the folder of their socket | a question of its own | `--own-arg`, which a decoy is not |
//! | a wrapper with any child is no husk | no husk | `active` is about agents; `youngest_child_ms` is not null |
//! | a registry row by start time within 2 s | the same process | an identity: exact, 1 s only for `ps` |
//! | an orphaned agent of an own wrapper | foreign, marked | foreign; that its parent is 1 is data |

use records::Record;
use serde_json::{Value, json};

use crate::criteria::{Criteria, Place};
use crate::id::SessionId;
use crate::judge::{Class, Judgement, Question, Verdict, judge};
use crate::snapshot::Snapshot;
use crate::table::Written;
use crate::targets::Targets;

const A: &str = "00000000-0000-4000-8000-0000000000a1";
const B: &str = "00000000-0000-4000-8000-0000000000b2";
const C: &str = "00000000-0000-4000-8000-0000000000c3";

/// The JSON argument of a wrapper that starts `claude` with `args` in `/w/app` as `main`.
fn config(args: &[&str]) -> Value {
    json!({"command": "claude", "args": args, "cwd": "/w/app",
           "env": {"PATH": "/usr/bin", "NAME": "main"}, "socket": "/run/w.sock"})
}

/// The argument list of such a wrapper.
fn wrapper(config: &Value) -> Value {
    json!(["/usr/bin/node", "/opt/x/wrapper.js", config.to_string()])
}

fn own_wrapper() -> Value {
    wrapper(&config(&["--session-id", A]))
}

/// The criteria of the wrapper's owner.
fn criteria() -> Criteria {
    Criteria {
        args: vec![b"wrapper.js".to_vec()],
        cwds: vec![Place {
            given: b"/w/app".to_vec(),
            resolved: None,
        }],
        envs: vec![(b"NAME".to_vec(), b"main".to_vec())],
        ..Criteria::default()
    }
}

fn snapshot(rows: &[Value]) -> Snapshot {
    let mut table = Written::default();
    for row in rows {
        let line = row.to_string();
        table
            .take(&Record::parse(line.as_bytes()).unwrap())
            .unwrap();
    }
    let (mut snapshot, _) = table.into_snapshot(&Targets::default(), false);
    snapshot.caller_uid = Some(1000);
    snapshot
}

fn question(id: &str) -> Question {
    Question {
        ids: vec![SessionId::new(id).unwrap()],
        criteria: criteria(),
        mentions: true,
        ..Question::default()
    }
}

fn ask(rows: &[Value], question: &Question) -> (Snapshot, Judgement) {
    let snapshot = snapshot(rows);
    let judgement = judge(&snapshot, question, &|_| None);
    (snapshot, judgement)
}

/// The judgement in one line: the pids of each class, and the verdict of a complete look.
fn told(rows: &[Value], question: &Question) -> String {
    let (snapshot, judgement) = ask(rows, question);
    tell(&snapshot, &judgement)
}

fn tell(snapshot: &Snapshot, judgement: &Judgement) -> String {
    let mut text = String::new();
    for class in [
        Class::Own,
        Class::Foreign,
        Class::Family,
        Class::Mention,
        Class::Descendant,
    ] {
        let of_class = judgement
            .findings
            .iter()
            .filter(|finding| finding.class == class);
        let pids: Vec<String> = of_class
            .map(|finding| snapshot.rows[finding.row].pid.to_string())
            .collect();
        if !pids.is_empty() {
            text.push_str(&format!("{class:?} {} ", pids.join(" ")));
        }
    }
    format!("{text}{:?}", judgement.verdict(true))
}

fn process(pid: i32, ppid: i32, argv: Value) -> Value {
    json!({"pid": pid, "ppid": ppid, "argv": argv})
}

#[test]
fn who_holds_by_which_argument() {
    let longer = format!("{A}9");
    let upper = A.to_uppercase();
    let equals = format!("--session-id={A}");
    let table: &[(Value, &str)] = &[
        (json!(["claude", "--session-id", A]), "Foreign 100 Foreign"),
        (json!(["claude", equals]), "Foreign 100 Foreign"),
        (json!(["claude", "--resume", A]), "Foreign 100 Foreign"),
        (json!(["claude", "-r", A]), "Foreign 100 Foreign"),
        (json!(["claude", "--resume", upper]), "Foreign 100 Foreign"),
        (json!(["claude", "--RESUME", A]), "Mention 100 Free"),
        (json!(["claude", "--resume", longer]), "Free"),
        (json!(["claude", "--resume", B]), "Free"),
        (
            json!(["claude", "--resume", B, "--fork-session", "--session-id", A]),
            "Foreign 100 Foreign",
        ),
        (
            json!(["claude", "--resume", A, "--fork-session", "--session-id", B]),
            "Mention 100 Free",
        ),
        (
            json!(["grep", "--", format!("--resume {A}"), "log.txt"]),
            "Mention 100 Free",
        ),
        (json!(["vim", format!("/h/{A}.jsonl")]), "Mention 100 Free"),
        (
            json!(["tail", "-f", format!("/h/{A}.jsonl")]),
            "Mention 100 Free",
        ),
        (
            json!(["ssh", "host", "claude", "--resume", A]),
            "Mention 100 Free",
        ),
        (
            json!(["tmux: server", "new", "-d", format!("claude --resume {A}")]),
            "Mention 100 Free",
        ),
        (
            json!(["sh", "-c", format!("holder-scan --session-id {A}; :")]),
            "Mention 100 Free",
        ),
        (
            json!(["sh", "-c", format!("claude --resume {A}")]),
            "Foreign 100 Foreign",
        ),
        (json!(["sh", "-c", format!("echo {A}")]), "Mention 100 Free"),
        (json!(["node", "server.js"]), "Free"),
        (Value::Null, "Free"),
    ];
    for (argv, want) in table {
        let row = process(100, 1, argv.clone());
        assert_eq!(told(&[row], &question(A)), *want, "{argv}");
    }
}

#[test]
fn own_is_what_every_criterion_confirms() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = config(&["--session-id", A]);
        change(&mut config);
        wrapper(&config)
    };
    let bak = json!([
        "/usr/bin/node",
        "/opt/x/wrapper.js.bak",
        config(&["--session-id", A]).to_string()
    ]);
    let editor = json!([
        "vim",
        config(&["--session-id", A]).to_string(),
        "/opt/x/wrapper.js"
    ]);
    let cut: String = config(&["--session-id", A])
        .to_string()
        .chars()
        .take(90)
        .collect();
    let cut = json!(["/usr/bin/node", "/opt/x/wrapper.js", cut]);
    let table: &[(&str, Value, &str)] = &[
        ("all fit", own_wrapper(), "Own 100 Own"),
        (
            "another directory, the right one escaped in a value",
            with(&|c| {
                c["cwd"] = json!("/w/other");
                c["env"]["X"] = json!("\"cwd\":\"/w/app\"");
            }),
            "Foreign 100 Foreign",
        ),
        (
            "a directory below",
            with(&|c| c["cwd"] = json!("/w/app/sub")),
            "Foreign 100 Foreign",
        ),
        (
            "a longer name",
            with(&|c| c["env"]["NAME"] = json!("main2")),
            "Foreign 100 Foreign",
        ),
        (
            "another name",
            with(&|c| c["env"]["NAME"] = json!("reviewer")),
            "Foreign 100 Foreign",
        ),
        (
            "no name",
            with(&|c| c["env"] = json!({"PATH": "/usr/bin"})),
            "Foreign 100 Foreign",
        ),
        (
            "no directory",
            with(&|c| {
                c.as_object_mut().unwrap().remove("cwd");
            }),
            "Foreign 100 Foreign",
        ),
        (
            "a slash at the end",
            with(&|c| c["cwd"] = json!("/w/app/")),
            "Own 100 Own",
        ),
        ("a script with a longer name", bak, "Foreign 100 Foreign"),
        ("an editor with that file", editor, "Mention 100 Free"),
        (
            "cut off: the criteria cannot be read",
            cut,
            "Foreign 100 Foreign",
        ),
    ];
    for (name, argv, want) in table {
        let rows = [process(100, 1, argv.clone())];
        assert_eq!(told(&rows, &question(A)), *want, "{name}");
    }
}

#[test]
fn own_by_environment_and_directory_of_the_process_itself() {
    let row = |env: Value, cwd: Value| {
        json!({"pid": 100, "ppid": 1, "argv": ["node", "/x/wrapper.js", "--resume", A],
               "env": env, "cwd": cwd})
    };
    let main = json!({"NAME": "main"});
    let table = [
        (row(main.clone(), json!("/w/app")), "Own 100 Own"),
        (row(json!(["NAME"]), json!("/w/app")), "Foreign 100 Foreign"),
        (row(Value::Null, json!("/w/app")), "Foreign 100 Foreign"),
        (row(main.clone(), Value::Null), "Foreign 100 Foreign"),
        (row(main, json!("/w/apple")), "Foreign 100 Foreign"),
    ];
    for (row, want) in table {
        assert_eq!(
            told(std::slice::from_ref(&row), &question(A)),
            want,
            "{row}"
        );
    }
}

#[test]
fn own_across_links_and_scripts_of_any_language() {
    let mut asked = question(A);
    asked.criteria.cwds[0].resolved = Some(b"/private/w/app".to_vec());
    let mut there = config(&["--session-id", A]);
    there["cwd"] = json!("/private/w/app");
    let rows = [process(100, 1, wrapper(&there))];
    assert_eq!(
        told(&rows, &asked),
        "Own 100 Own",
        "the criterion is a link"
    );

    let mut asked = question(A);
    asked.criteria.cwds[0].given = b"/private/w/app".to_vec();
    let snapshot = snapshot(&[process(100, 1, own_wrapper())]);
    let links = |path: &[u8]| (path == b"/w/app").then(|| b"/private/w/app".to_vec());
    let judgement = judge(&snapshot, &asked, &links);
    assert_eq!(
        tell(&snapshot, &judgement),
        "Own 100 Own",
        "the argument is a link"
    );

    let mut asked = question(A);
    asked.criteria.cwds[0].given = "/w/wörk".into();
    let mut there = config(&["--session-id", A]);
    there["cwd"] = json!("/w/wörk");
    assert_eq!(
        told(&[process(100, 1, wrapper(&there))], &asked),
        "Own 100 Own"
    );
}

#[test]
fn users_and_no_criteria() {
    let row = |uid: u32| json!({"pid": 100, "ppid": 1, "argv": own_wrapper(), "uid": uid});
    assert_eq!(told(&[row(1000)], &question(A)), "Own 100 Own");
    assert_eq!(told(&[row(1001)], &question(A)), "Foreign 100 Foreign");
    let mut asked = question(A);
    asked.criteria.uid = Some(1001);
    assert_eq!(told(&[row(1001)], &asked), "Own 100 Own");
    assert_eq!(told(&[row(1000)], &asked), "Foreign 100 Foreign");
    asked.criteria = Criteria::default();
    assert_eq!(told(&[row(1000)], &asked), "Foreign 100 Foreign");
    asked.uid = Some(1001);
    assert_eq!(told(&[row(1000)], &asked), "Free");
}

#[test]
fn wrappers_and_what_lives_below_are_one_holding() {
    let agent = |pid, ppid, id: &str| process(pid, ppid, json!(["claude", "--session-id", id]));
    let start = || process(100, 1, wrapper(&config(&["/w/start.sh"])));
    let table: &[(&str, Vec<Value>, &str, &str)] = &[
        (
            "a wrapper and its agent",
            vec![process(100, 1, own_wrapper()), agent(101, 100, A)],
            A,
            "Own 100 101 OwnActive",
        ),
        (
            "a wrapper, a script, an agent that alone names the id",
            vec![
                start(),
                process(101, 100, json!(["bash", "/w/start.sh"])),
                process(102, 101, json!(["claude", "--resume", A])),
            ],
            A,
            "Own 102 OwnActive",
        ),
        (
            "a wrapper whose agent has gone on: the old id",
            vec![process(100, 1, own_wrapper()), agent(101, 100, C)],
            A,
            "Mention 100 Free",
        ),
        (
            "a wrapper whose agent has gone on: the new id",
            vec![process(100, 1, own_wrapper()), agent(101, 100, C)],
            C,
            "Own 101 OwnActive",
        ),
        (
            "two wrappers",
            vec![
                process(100, 1, own_wrapper()),
                process(101, 1, own_wrapper()),
            ],
            A,
            "Own 100 101 Own",
        ),
        (
            "an agent whose wrapper is gone",
            vec![agent(101, 1, A)],
            A,
            "Foreign 101 Foreign",
        ),
        (
            "own and foreign",
            vec![process(100, 1, own_wrapper()), agent(200, 1, A)],
            A,
            "Own 100 Foreign 200 Foreign",
        ),
        (
            "a dead agent",
            vec![
                process(100, 1, own_wrapper()),
                json!({"pid": 101, "ppid": 100, "state": "Z", "argv": []}),
            ],
            A,
            "Own 100 Own",
        ),
        (
            "an agent that an agent's tool has started",
            vec![
                process(100, 1, wrapper(&config(&["--session-id", B]))),
                agent(101, 100, B),
                process(102, 101, json!(["bash", "-c", "x"])),
                agent(103, 102, A),
            ],
            A,
            "Foreign 103 Foreign",
        ),
        (
            "an agent in a terminal below a multiplexer that an own wrapper has started",
            vec![
                start(),
                process(101, 100, json!(["tmux: server"])),
                agent(102, 101, A),
            ],
            A,
            "Foreign 102 Foreign",
        ),
    ];
    for (name, rows, id, want) in table {
        assert_eq!(told(rows, &question(id)), *want, "{name}");
    }
}

#[test]
fn trees_say_who_works_in_them() {
    let rows = [
        json!({"pid": 100, "ppid": 1, "argv": own_wrapper(), "age_ms": 7_200_000}),
        json!({"pid": 101, "ppid": 100, "argv": ["bash", "/w/start.sh"], "age_ms": 60_000}),
        json!({"pid": 102, "ppid": 101, "argv": ["node", "/x/gemini", "--session-id", A], "age_ms": 3000}),
        json!({"pid": 103, "ppid": 102, "argv": ["node", "/x/gemini", "--session-id", A], "age_ms": 2900}),
        json!({"pid": 104, "ppid": 103, "argv": ["sh", "-c", "make"], "age_ms": 10}),
    ];
    let (snapshot, judgement) = ask(&rows, &question(A));
    let pids: Vec<i32> = judgement
        .findings
        .iter()
        .map(|f| snapshot.rows[f.row].pid.get())
        .collect();
    assert_eq!(pids, [100, 102, 103]);
    for finding in &judgement.findings {
        let tree = &finding.tree;
        assert_eq!(snapshot.rows[tree.root].pid.get(), 100);
        assert_eq!(
            snapshot.rows[tree.primary].pid.get(),
            103,
            "the deepest agent"
        );
        assert!(tree.active);
        assert_eq!(
            tree.youngest_child.unwrap().as_millis(),
            3000,
            "not a tool of the agent"
        );
        assert_eq!(finding.carrier, finding.row == 0);
    }
    let (snapshot, judgement) = ask(&rows[..1], &question(A));
    let husk = &judgement.findings[0];
    assert!(!husk.tree.active && husk.carrier);
    assert_eq!((husk.tree.youngest_child, husk.tree.primary), (None, 0));
    assert_eq!(snapshot.rows[husk.tree.root].age.unwrap().as_secs(), 7200);
}

#[test]
fn husks() {
    let hour = 3_600_000;
    let old = |pid: i32| json!({"pid": pid, "ppid": 1, "argv": own_wrapper(), "age_ms": 2 * hour});
    let table: &[(&str, Vec<Value>, &[i32])] = &[
        ("old and childless", vec![old(100)], &[100]),
        (
            "as old as the grace",
            vec![json!({"pid": 100, "argv": own_wrapper(), "age_ms": hour})],
            &[100],
        ),
        (
            "young",
            vec![json!({"pid": 100, "argv": own_wrapper(), "age_ms": 10_000})],
            &[],
        ),
        (
            "of unknown age",
            vec![json!({"pid": 100, "argv": own_wrapper()})],
            &[],
        ),
        (
            "with a child",
            vec![old(100), process(200, 100, json!(["bash"]))],
            &[],
        ),
        (
            "no wrapper",
            vec![
                json!({"pid": 100, "argv": ["claude", "--resume", A, "/run/decoy"], "age_ms": 2 * hour}),
            ],
            &[],
        ),
        ("several", vec![old(100), old(101)], &[100, 101]),
    ];
    for (name, rows, want) in table {
        let mut rows = rows.clone();
        for row in &mut rows {
            if row.get("age_ms").is_none() && row["pid"] == 200 {
                row["age_ms"] = json!(1);
            }
        }
        let (snapshot, judgement) = ask(&rows, &question(A));
        let is_husk = |finding: &&crate::judge::Finding| {
            let age = snapshot.rows[finding.tree.root].age;
            finding.class == Class::Own
                && !finding.tree.active
                && finding.tree.youngest_child.is_none()
                && age.is_some_and(|age| age.as_millis() >= hour)
        };
        let husks = judgement.findings.iter().filter(is_husk);
        let pids: Vec<i32> = husks
            .map(|finding| snapshot.rows[finding.row].pid.get())
            .collect();
        assert_eq!(pids, *want, "{name}");
    }
}

#[test]
fn a_command_that_is_no_known_agent_is_one_below_its_wrapper() {
    let config = json!({"command": "/opt/mine", "args": ["--session-id", A], "cwd": "/w/app",
                        "env": {"NAME": "main"}});
    let rows = [
        process(100, 1, wrapper(&config)),
        process(101, 100, json!(["/opt/mine", "x"])),
    ];
    assert_eq!(told(&rows, &question(A)), "Own 100 OwnActive");
}

#[test]
fn the_callers_own_family() {
    let rows = [
        process(
            40,
            1,
            json!(["bash", "-c", format!("holder-scan; claude --resume {A}")]),
        ),
        process(42, 40, json!(["holder-scan", "--session-id", A])),
    ];
    let inside = |rows: &[Value], family: &[i32], asked: &Question| {
        let mut snapshot = snapshot(rows);
        let pid = |&pid: &i32| process::Pid::new(pid.into()).unwrap();
        snapshot.family = family.iter().map(pid).collect();
        snapshot.ancestors = family[1..].iter().map(pid).collect();
        let judgement = judge(&snapshot, asked, &|_| None);
        tell(&snapshot, &judgement)
    };
    let mut asked = question(A);
    asked.mentions = false;
    assert_eq!(inside(&rows, &[42, 40], &asked), "Free", "a shell's text");
    asked.include_self = true;
    assert_eq!(inside(&rows, &[42, 40], &asked), "Family 40 Free");
    asked.include_self = false;

    // Called by a tool of the agent itself.
    let agent = process(50, 1, json!(["claude", "--resume", A]));
    let rows = [
        agent,
        process(51, 50, json!(["bash"])),
        process(52, 51, json!(["holder-scan"])),
    ];
    assert_eq!(inside(&rows, &[52, 51, 50], &asked), "Family 50 Foreign");
    let rows = [
        process(49, 1, own_wrapper()),
        process(50, 49, json!(["claude", "--resume", A])),
        process(52, 50, json!(["holder-scan"])),
    ];
    assert_eq!(inside(&rows, &[52, 50, 49], &asked), "Family 50 OwnActive");

    // An agent that the calling script has started in the background is nobody's family.
    let rows = [
        process(60, 1, json!(["bash", "script"])),
        process(61, 60, json!(["claude", "--resume", A])),
        process(62, 60, json!(["holder-scan"])),
    ];
    assert_eq!(inside(&rows, &[62, 60], &asked), "Foreign 61 Foreign");
}

#[test]
fn stronger_evidence_wins() {
    let table: &[(&str, Value, &str, &str)] = &[
        (
            "a registry that knows the id",
            json!({"pid": 100, "argv": ["claude"], "registry": [{"sessionId": A}]}),
            A,
            "Foreign 100 Foreign",
        ),
        (
            "a registry that knows a newer id",
            json!({"pid": 100, "argv": ["claude", "--session-id", A], "registry": [C]}),
            A,
            "Mention 100 Free",
        ),
        (
            "and that id",
            json!({"pid": 100, "argv": ["claude", "--session-id", A], "registry": [C]}),
            C,
            "Foreign 100 Foreign",
        ),
        (
            "a title, and the lock",
            json!({"pid": 100, "argv": ["codex"], "locks": [format!("/h/.codex/thread-writer-locks/{A}.lock")]}),
            A,
            "Foreign 100 Foreign",
        ),
        (
            "another lock than the argument's",
            json!({"pid": 100, "argv": ["codex", "resume", A], "locks": [format!("/h/.codex/thread-writer-locks/{B}.lock")]}),
            A,
            "Mention 100 Free",
        ),
        (
            "an open transcript",
            json!({"pid": 100, "argv": ["pi"], "fds": [format!("/h/.pi/agent/sessions/--w--/2026_{A}.jsonl")]}),
            A,
            "Foreign 100 Foreign",
        ),
        (
            "an open transcript of another id says nothing",
            json!({"pid": 100, "argv": ["claude", "-r", A], "fds": [format!("/h/.claude/projects/w/{B}.jsonl")]}),
            A,
            "Foreign 100 Foreign",
        ),
        (
            "a pager with the transcript",
            json!({"pid": 100, "argv": ["less", format!("{A}.jsonl")], "fds": [format!("/h/.claude/projects/w/{A}.jsonl")]}),
            A,
            "Mention 100 Free",
        ),
        (
            "a tool's child",
            json!({"pid": 100, "argv": ["sleep", "9"], "env": {"CLAUDE_CODE_SESSION_ID": A}}),
            A,
            "Descendant 100 Free",
        ),
        (
            "its arguments win over its environment",
            json!({"pid": 100, "argv": ["claude", "-r", A], "env": {"CLAUDE_CODE_SESSION_ID": A}}),
            A,
            "Foreign 100 Foreign",
        ),
    ];
    for (name, row, id, want) in table {
        assert_eq!(
            told(std::slice::from_ref(row), &question(id)),
            *want,
            "{name}"
        );
    }
}

#[test]
fn launchers_leave_an_id_with_their_agent() {
    // Three processes with one argument list, of which the innermost is registered.
    let argv = json!(["node", "/usr/bin/qwen", "--session-id", A]);
    let rows = [
        process(100, 1, argv.clone()),
        process(101, 100, argv.clone()),
        json!({"pid": 102, "ppid": 101, "argv": argv, "registry": [C]}),
    ];
    assert_eq!(told(&rows, &question(A)), "Mention 100 101 102 Free");
    let (snapshot, judgement) = ask(&rows, &question(C));
    let found = &judgement.findings[0];
    assert_eq!(snapshot.rows[found.tree.primary].pid.get(), 102);
    assert_eq!(tell(&snapshot, &judgement), "Foreign 102 Foreign");
}

#[test]
fn who_waits_for_a_lock_does_not_hold() {
    let lock = format!("/h/.codex/thread-writer-locks/{A}.lock");
    let rows = [
        json!({"pid": 100, "ppid": 1, "argv": own_wrapper()}),
        json!({"pid": 101, "ppid": 100, "argv": ["codex", "resume", A], "locks": [lock]}),
        json!({"pid": 200, "ppid": 1, "argv": ["codex", "resume", A], "fds": []}),
    ];
    assert_eq!(
        told(&rows, &question(A)),
        "Own 100 101 Mention 200 OwnActive"
    );
}

#[test]
fn a_shared_daemon_is_never_own() {
    let lock = |id: &str| format!("/h/.codex/thread-writer-locks/{id}.lock");
    let mut asked = question(A);
    asked.criteria = Criteria {
        args: vec![b"codex".to_vec()],
        ..Criteria::default()
    };
    let table = [
        (
            json!({"pid": 100, "argv": ["codex"], "locks": [lock(A)]}),
            "Own 100 OwnActive",
            false,
        ),
        (
            json!({"pid": 100, "argv": ["codex", "app-server"], "locks": [lock(A)]}),
            "Foreign 100 Foreign",
            true,
        ),
        (
            json!({"pid": 100, "argv": ["codex"], "locks": [lock(A), lock(B)]}),
            "Foreign 100 Foreign",
            true,
        ),
    ];
    for (row, want, shared) in table {
        let (snapshot, judgement) = ask(std::slice::from_ref(&row), &asked);
        assert_eq!(tell(&snapshot, &judgement), want, "{row}");
        assert_eq!(judgement.findings[0].shared, shared);
    }
}

#[test]
fn a_supervisor_of_several_sessions_is_never_own() {
    let agent = |pid, id: &str| process(pid, 100, json!(["claude", "--session-id", id]));
    let start = process(100, 1, wrapper(&config(&["/w/start.sh"])));
    let rows = [start, agent(101, A), agent(102, B)];
    assert_eq!(told(&rows[..2], &question(A)), "Own 101 OwnActive");
    assert_eq!(told(&rows, &question(A)), "Foreign 101 Foreign");
    let (_, judgement) = ask(&rows, &question(A));
    assert!(judgement.findings[0].shared);
}

#[test]
fn not_having_looked_is_not_free() {
    let (_, judgement) = ask(&[process(1, 0, json!(["node", "server.js"]))], &question(A));
    assert_eq!(judgement.verdict(true), Verdict::Free);
    assert_eq!(judgement.verdict(false), Verdict::Unknown);
    let (_, look) = Written::default().into_snapshot(&Targets::default(), true);
    assert!(!look.is_complete(false), "a table without a process");
}

#[test]
fn own_by_record_is_own_by_tree() {
    let ident =
        |pid: i32| format!("linux:f7473ef0-6a4b-4a8f-abe8-72c5ed7385cf:4026531836:{pid}:77:0");
    let rows = [
        json!({"pid": 90, "ppid": 1, "argv": ["supervisor"], "ident": ident(90)}),
        json!({"pid": 100, "ppid": 90, "argv": ["launcher"], "ident": ident(100)}),
        json!({"pid": 101, "ppid": 100, "argv": ["claude", "-r", A], "ident": ident(101)}),
    ];
    let asked = |pid: i32| Question {
        criteria: Criteria {
            records: Some(vec![ident(pid).parse().unwrap()]),
            ..Criteria::default()
        },
        ..question(A)
    };
    for (pid, root) in [(100, 100), (101, 101)] {
        let (snapshot, judgement) = ask(&rows, &asked(pid));
        assert_eq!(tell(&snapshot, &judgement), "Own 101 OwnActive", "{pid}");
        assert_eq!(
            snapshot.rows[judgement.findings[0].tree.root].pid.get(),
            root
        );
    }
    assert_eq!(told(&rows, &asked(77)), "Foreign 101 Foreign");
    let snapshot = snapshot(&rows);
    let own = crate::judge::own(&snapshot, &asked(100), &|_| None);
    let roots: Vec<i32> = own
        .iter()
        .map(|own| snapshot.rows[own.row].pid.get())
        .collect();
    assert_eq!(roots, [100], "and nothing above it");
}

#[test]
fn what_is_found_beside_sessions() {
    let place = |path: &str| Place {
        given: path.as_bytes().to_vec(),
        resolved: None,
    };
    let at = |dir: &str| {
        let mut config = config(&["--session-id", A]);
        config["cwd"] = json!(dir);
        wrapper(&config)
    };
    let rows = [
        json!({"pid": 100, "argv": at("/w/.builders/fix-42"), "cwd": "/"}),
        json!({"pid": 101, "argv": at("/w/.builders/fix-42-continued"), "cwd": "/"}),
        json!({"pid": 102, "argv": at("/w/.builders/fix-99"), "cwd": "/"}),
        json!({"pid": 103, "argv": ["vim", at("/w/.builders/fix-42")[2]], "cwd": "/"}),
        json!({"pid": 104, "argv": ["x"], "cwd": "/w/.builders/fix-42/deep", "tty": "pts/3"}),
        json!({"pid": 105, "argv": ["node", "/x/server.js"], "cwd": "/", "env": {"MARK": "1"}, "fds": [{"fd": 7, "path": "/d/db"}]}),
    ];
    let targets = Targets::default;
    let table = [
        (
            Targets {
                cwds: vec![place("/w/.builders/fix-42/")],
                ..targets()
            },
            vec![100],
        ),
        (
            Targets {
                cwds_under: vec![place("/w/.builders/fix-42")],
                ..targets()
            },
            vec![100, 104],
        ),
        (
            Targets {
                args: vec![b"server.js".to_vec()],
                ..targets()
            },
            vec![105],
        ),
        (
            Targets {
                args: vec![b"server".to_vec()],
                ..targets()
            },
            vec![],
        ),
        (
            Targets {
                envs: vec![(b"MARK".to_vec(), b"1".to_vec())],
                ..targets()
            },
            vec![105],
        ),
        (
            Targets {
                envs: vec![(b"MARK".to_vec(), b"".to_vec())],
                ..targets()
            },
            vec![],
        ),
        (
            Targets {
                ttys: vec!["pts/3".to_owned()],
                ..targets()
            },
            vec![104],
        ),
        (
            Targets {
                files: vec![crate::targets::FileTarget {
                    path: b"/d/db".to_vec(),
                    kernel_path: b"/d/db".to_vec(),
                    file: None,
                }],
                ..targets()
            },
            vec![105],
        ),
    ];
    for (targets, want) in table {
        let mut table = Written::default();
        for row in &rows {
            let line = row.to_string();
            table
                .take(&Record::parse(line.as_bytes()).unwrap())
                .unwrap();
        }
        let (snapshot, look) = table.into_snapshot(&targets, false);
        let judgement = judge(&snapshot, &Question::default(), &|_| None);
        let found = judgement.findings.iter();
        let pids: Vec<i32> = found
            .map(|finding| snapshot.rows[finding.row].pid.get())
            .collect();
        assert_eq!(pids, want, "{targets:?}");
        assert_eq!(
            look.is_complete(false),
            !targets.needs_env() && targets.files.is_empty()
        );
    }
}

#[test]
fn all_of_the_callers_own_whatever_they_hold() {
    let named = |name: &str, id: &str| {
        let mut config = config(&["--session-id", id]);
        config["env"]["NAME"] = json!(name);
        wrapper(&config)
    };
    let rows = [
        process(100, 1, named("main", A)),
        process(101, 1, named("other", B)),
        process(102, 1, json!(["claude", "--resume", A])),
        process(103, 1, wrapper(&config(&[]))),
        process(104, 103, json!(["claude"])),
    ];
    let snapshot = snapshot(&rows);
    let asked = Question {
        ids: Vec::new(),
        ..question(A)
    };
    let own = crate::judge::own(&snapshot, &asked, &|_| None);
    let told: Vec<_> = own
        .iter()
        .map(|finding| {
            let pid = snapshot.rows[finding.row].pid.get();
            (pid, finding.session.as_deref(), finding.tree.active)
        })
        .collect();
    assert_eq!(told, [(100, Some(A), false), (103, None, true)]);
}
