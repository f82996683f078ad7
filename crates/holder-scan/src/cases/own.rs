//! Whose it is.

use std::sync::Arc;

use super::*;

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
        (row(main.clone(), json!("/w/app/")), "Own 100 Own"),
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
fn a_relative_directory_is_the_wrappers() {
    let at = |told: &str, cwd: Value| {
        let mut config = config(&["--session-id", A]);
        config["cwd"] = json!(told);
        json!({"pid": 100, "ppid": 1, "argv": wrapper(&config), "cwd": cwd})
    };
    // The caller is elsewhere, in the directory that is asked for.
    let resolve = |path: &[u8]| match path {
        b"." | b"sub/.." => Some(b"/w/app".to_vec()),
        b"/w/app/../other" => Some(b"/w/other".to_vec()),
        b"/w/x/../app" => Some(b"/w/app".to_vec()),
        _ => None,
    };
    let mut below = question(A);
    below.criteria.cwds_under = std::mem::take(&mut below.criteria.cwds);
    let table = [
        (at(".", json!("/w/other")), "Foreign 100 Foreign"),
        (at(".", Value::Null), "Foreign 100 Foreign"),
        (at("app", json!("/w")), "Own 100 Own"),
        (at("/w/./app/", json!("/")), "Own 100 Own"),
        (at("/w/app/../other", json!("/")), "Foreign 100 Foreign"),
        (at("../other", json!("/w/app")), "Own 100 Own"),
        (at("/w/x/../app", json!("/")), "Own 100 Own"),
    ];
    for (row, want) in table {
        for asked in [&question(A), &below] {
            let snapshot = snapshot(std::slice::from_ref(&row));
            let judgement = judge(&snapshot, asked, &resolve);
            assert_eq!(tell(&snapshot, &judgement), want, "{row}");
        }
    }
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
            json!({"pid": 100, "argv": ["codex", "-m", "x", "-v", "app-server"], "locks": [lock(A)]}),
            "Foreign 100 Foreign",
            true,
        ),
        (
            json!({"pid": 100, "argv": ["codex", "exec", "app-server"], "locks": [lock(A)]}),
            "Own 100 OwnActive",
            false,
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
fn a_supervisor_waits_for_one_of_its_sessions() {
    let agent = |id: &str| process(101, 100, json!(["claude", "--session-id", id]));
    let several = json!({"sessions": [{"args": ["--resume", A]}, {"args": ["--resume", B]}],
                         "cwd": "/w/app", "env": {"NAME": "main"}});
    let rows = [process(100, 1, wrapper(&several)), agent(B)];
    assert_eq!(told(&rows, &question(A)), "Foreign 100 Foreign");
    let rows = [process(100, 1, wrapper(&several)), agent(C)];
    assert_eq!(told(&rows, &question(A)), "Mention 100 Free");
    let text = format!("claude --resume {A} || claude --session-id {B}");
    let rows = [process(100, 1, json!(["sh", "-c", text])), agent(B)];
    assert_eq!(
        told(&rows, &question(A)),
        "Mention 100 Free",
        "one after the other"
    );
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
        ids: Arc::default(),
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
