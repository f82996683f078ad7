//! Who holds, and by what.

use super::*;

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
fn stronger_evidence_wins() {
    let table: &[(&str, Value, &str, &str)] = &[
        (
            "a registry that knows the id",
            json!({"pid": 100, "argv": ["claude"], "registry": [{"sessionId": A}]}),
            A,
            "Foreign 100 Foreign",
        ),
        (
            "a registry that knows no id yet",
            json!({"pid": 100, "argv": ["claude", "--session-id", A], "registry": [{"sessionId": ""}]}),
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
fn not_having_looked_is_not_free() {
    let (_, judgement) = ask(&[process(1, 0, json!(["node", "server.js"]))], &question(A));
    assert_eq!(judgement.verdict(true), Verdict::Free);
    assert_eq!(judgement.verdict(false), Verdict::Unknown);
    let (_, look) = Written::default().into_snapshot(&Targets::default(), &question(A));
    assert!(!look.is_complete(false), "a table without a process");
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
        let (snapshot, look) = table.into_snapshot(&targets, &Question::default());
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
