//! Wrappers, agents and what lives below them.

use super::*;

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
            "a wrapper that a manager of the user's services has adopted",
            vec![
                process(70, 1, json!(["/lib/systemd/systemd", "--user"])),
                process(100, 70, own_wrapper()),
                agent(101, 100, A),
            ],
            A,
            "Own 100 101 OwnActive",
        ),
        (
            "a wrapper whose parent nobody has seen",
            vec![process(100, 77, own_wrapper())],
            A,
            "Own 100 Own",
        ),
        (
            "an own wrapper below a launcher that stays: judged by its root",
            vec![
                process(
                    90,
                    1,
                    json!([
                        "timeout",
                        "9",
                        "node",
                        "/opt/x/wrapper.js",
                        config(&["--session-id", A]).to_string()
                    ]),
                ),
                process(100, 90, own_wrapper()),
            ],
            A,
            "Foreign 90 100 Foreign",
        ),
        (
            "a process whose wrapper is dead and not yet collected",
            vec![
                json!({"pid": 100, "ppid": 1, "state": "Z", "argv": []}),
                agent(101, 100, A),
            ],
            A,
            "Foreign 101 Foreign",
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
            "an agent whose main thread has ended",
            vec![json!({"pid": 100, "ppid": 1, "state": "Z", "argv": ["claude", "-r", A]})],
            A,
            "Foreign 100 Foreign",
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

    // Called by the wrapper, while its agent lives.
    let below = |above: Value, wrapper: Value| {
        let rows = [
            process(48, 1, above),
            process(49, 48, wrapper),
            process(50, 49, json!(["claude", "--resume", A])),
            process(51, 49, json!(["sh", "-c", "holder-scan; :"])),
            process(52, 51, json!(["holder-scan"])),
        ];
        inside(&rows, &[52, 51, 49, 48], &asked)
    };
    let shell = || json!(["bash"]);
    assert_eq!(below(shell(), own_wrapper()), "Own 50 OwnActive");
    let manager = json!(["node", "/x/other.js", config(&["--resume", A]).to_string()]);
    let told = below(manager, own_wrapper());
    assert_eq!(told, "Foreign 50 Foreign", "its wrapper is somebody else's");
    let other = json!(["node", "/x/other.js", config(&["--resume", A]).to_string()]);
    assert_eq!(below(shell(), other), "Foreign 50 Foreign");
    let two = wrapper(&config(&["--session-id", A, "--session-id", B]));
    let told = below(shell(), two);
    assert_eq!(told, "Foreign 50 Foreign", "it has several");
    let told = below(shell(), wrapper(&config(&["--help"])));
    assert_eq!(told, "Foreign 50 Foreign", "it wraps no session");

    // An agent that the calling script has started in the background is nobody's family.
    let rows = [
        process(60, 1, json!(["bash", "script"])),
        process(61, 60, json!(["claude", "--resume", A])),
        process(62, 60, json!(["holder-scan"])),
    ];
    assert_eq!(inside(&rows, &[62, 60], &asked), "Foreign 61 Foreign");
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

/// A stranger's tree may be as large as the kernel lets it be: what is said of it takes no longer
/// than the tree is large.
#[test]
fn large_trees_and_long_arguments_take_no_time() {
    let id = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
    let many: Vec<String> = (0..20_000)
        .flat_map(|n| ["resume".to_owned(), id(n)])
        .collect();
    let many = json!([vec!["codex".to_owned()], many].concat());
    let claude = json!(["claude", "--resume", id(7)]);
    let mut wide = vec![process(99, 1, json!(["sh"]))];
    wide.extend((100..1600).map(|pid| process(pid, 99, claude.clone())));
    let deep = (100..700).map(|pid| process(pid, pid - 1, claude.clone()));
    let started = std::time::Instant::now();
    for (rows, holders) in [
        (
            vec![process(100, 1, many.clone()), process(101, 100, many)],
            2,
        ),
        (wide, 1500),
        (deep.collect(), 600),
    ] {
        let (_, judgement) = ask(&rows, &question(&id(7)));
        assert_eq!(judgement.findings.len(), holders);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}
