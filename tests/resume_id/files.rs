//! Rows, histories, the user's own agents, and what is printed.

use serde_json::json;

use crate::home::{A1, Home, with_input, words};
use crate::support::{record, said};

#[test]
fn a_row_is_kept_and_a_decision_is_a_row() {
    let home = Home::new();
    home.conversation(A1);
    let row =
        json!({"name": "main", "session_id": A1, "agent": "claude", "cwd": home.cwd(), "n": 1});
    let row = home.write("row.json", &serde_json::to_string_pretty(&row).unwrap());
    let row = row.to_str().unwrap();
    let record_file = home.path("decision.json");
    let record_file = record_file.to_str().unwrap();
    let output = home
        .tool(&["--row", row, "--record", record_file])
        .output()
        .unwrap();
    let decision = record(&output);
    assert_eq!(decision["action"], "resume");
    assert_eq!(decision["row"], json!({"name": "main", "n": 1}));
    assert_eq!(decision["session_id_verified"], true);
    assert_eq!(std::fs::read(record_file).unwrap(), output.stdout);

    // The transcript goes: what was verified once is not assigned again.
    std::fs::remove_file(home.transcript(A1)).unwrap();
    let again = record(&home.tool(&["--row", record_file]).output().unwrap());
    assert_eq!(again["action"], "mint");
    assert_eq!(again["previous_session_id"], A1);
    assert_eq!(again["row"], json!({"name": "main", "n": 1}));
    // The new one is a first launch, and stays one until it has said something.
    let third = with_input(home.tool(&["--row", "-"]), &again.to_string());
    assert_eq!(record(&third)["action"], "assign");
    assert_eq!(record(&third)["session_id"], again["session_id"]);
}

#[test]
fn what_is_wrong_usage() {
    let home = Home::new();
    let cwd = home.cwd();
    let repeated = format!("{A1}\n{A1}");
    let glued = format!("-r{A1}");
    let table: [&[&str]; 12] = [
        &["--agent", "nobody", "--cwd", &cwd],
        &["--cwd", &cwd],
        &["--agent", "claude"],
        &["--agent", "claude", "--cwd", "/no/such/place"],
        &["--agent", "claude", "--cwd", &cwd, "--session-id", " "],
        &[
            "--agent",
            "claude",
            "--cwd",
            &cwd,
            "--session-id",
            &repeated,
        ],
        &["--agent", "opencode", "--cwd", &cwd, "--session-id", A1],
        &["--agent", "claude", "--row", "-", "--holders", "-"],
        &[
            "--agent",
            "claude",
            "--cwd",
            &cwd,
            "--row",
            "-",
            "--history",
            "-",
        ],
        &[
            "--agent",
            "claude",
            "--cwd",
            &cwd,
            "--holders",
            "-",
            "--history",
            "-",
        ],
        &["--agent", "claude", "--cwd", &cwd, "--", "--session-id", A1],
        &["--agent", "claude", "--cwd", &cwd, "--", &glued],
    ];
    for words in table {
        let output = home.tool(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?} {}", said(&output));
        assert!(output.stdout.is_empty());
        assert!(said(&output).starts_with("resume-id: "));
    }
}

/// The agent would refuse two choices, or follow the wrong one.
#[test]
fn arguments_that_choose_a_session_themselves() {
    let home = Home::new();
    let mine = r#"{"mine":{"ids":"assigned","shape":"id","assign":["--id={id}"],"resume":["--to","{id}"]}}"#;
    home.write(".config/muxutils/agents.json", mine);
    let status = |agent: &str, words: &[&str]| {
        let mut tool = home.tool(&["--agent", agent, "--cwd", "."]);
        tool.args(words).output().unwrap().status.code()
    };
    let refused: [(&str, &[&str]); 18] = [
        ("claude", &["--", "--model", "x", "--continue"]),
        ("claude", &["--", "-c"]),
        ("claude", &["--", "-cp", "go on"]),
        ("claude", &["--", "-rsome title"]),
        ("claude", &["--", "--resume=x"]),
        ("claude", &["--", "--fork-session"]),
        ("claude", &["--", "--from-pr=3"]),
        ("claude", &["--fresh-arg=--continue"]),
        ("claude", &["--fresh-arg", "x", "--fresh-arg", "-r"]),
        ("claude", &["--resume-arg", "--fork-session"]),
        ("codex", &["--", "resume", "--last"]),
        ("codex", &["--fresh-arg", "fork"]),
        ("opencode", &["--", "-s", "x"]),
        ("cursor-agent", &["--", "resume"]),
        ("cursor-agent", &["--", "--continue"]),
        ("mine", &["--", "--id=x"]),
        ("mine", &["--", "--id", "x"]),
        ("mine", &["--", "--to", "x"]),
    ];
    for (agent, words) in refused {
        assert_eq!(status(agent, words), Some(2), "{agent} {words:?}");
    }
    let taken: [(&str, &[&str]); 6] = [
        ("claude", &["--", "--model", "x", "-p"]),
        ("claude", &["--fresh-arg", "resume what was begun"]),
        ("claude", &["--", "-p", "--", "--continue"]),
        ("codex", &["--", "-c", "model=x", "exec"]),
        ("codex", &["--fresh-arg", "resume=yes"]),
        ("mine", &["--", "-t", "-i"]),
    ];
    for (agent, words) in taken {
        assert_eq!(status(agent, words), Some(0), "{agent} {words:?}");
    }
}

#[test]
fn a_row_that_is_none() {
    let home = Home::new();
    for (text, status) in [
        ("", 65),
        ("[]", 65),
        ("{\"a\":1}\n{\"a\":2}", 65),
        ("{\"session_id\":7}", 2),
    ] {
        let output = with_input(
            home.tool(&["--agent", "claude", "--cwd", ".", "--row", "-"]),
            text,
        );
        assert_eq!(output.status.code(), Some(status), "{text}");
    }
}

#[test]
fn the_breaker_reads_the_history() {
    let home = Home::new();
    let death =
        |code: u32| format!("{{\"session_id\":\"{A1}\",\"code\":{code},\"uptime_ms\":40}}\n");
    let history = home.write("history", &[death(0), death(1)].concat());
    let history = history.to_str().unwrap();
    assert_eq!(
        home.decision(A1, &["--history", history])["action"],
        "assign"
    );
    std::fs::write(history, [death(0), death(1), death(0)].concat()).unwrap();
    let decision = home.decision(A1, &["--history", history]);
    assert_eq!(
        (&decision["action"], &decision["minted_by"]),
        (&json!("mint"), &json!("breaker"))
    );
    // Before the first death there is no file, nor where its name is misspelt.
    let none = home.path("none");
    let none = home.decide(A1, &["--history", none.to_str().unwrap()]);
    assert!(said(&none).contains("none: there is no such file"));
    let none = record(&none);
    assert_eq!(
        none["breaker"],
        json!({"failures": 0, "limit": 3, "last_exit": null})
    );
    // A dash is standard input, as everywhere.
    let cwd = home.cwd();
    let dash = [
        "--agent",
        "claude",
        "--cwd",
        &cwd,
        "--session-id",
        A1,
        "--history",
        "-",
    ];
    let piped = with_input(home.tool(&dash), &death(0).repeat(3));
    assert_eq!(
        (said(&piped), &record(&piped)["minted_by"]),
        (String::new(), &json!("breaker"))
    );
    // A line that is none is said, and the rest counts.
    std::fs::write(history, [death(0), "{\"ses".to_owned()].join("")).unwrap();
    let output = home.decide(A1, &["--history", history, "--max-failures", "1"]);
    assert_eq!(output.status.code(), Some(65));
    assert_eq!(record(&output)["action"], "mint");
    assert!(said(&output).contains("line 2"));
}

#[test]
fn agents_of_ones_own() {
    let home = Home::new();
    let mine = r#"{"mine":{"ids":"assigned","shape":"id","assign":["new","{id}"],"resume":["go","{id}"],
        "root":["~/mine"],"transcripts":{"jsonl":{"path":"{id}.log","turns":[{"key":"who","is":["me"]}]}}}}"#;
    home.write(".config/muxutils/agents.json", mine);
    let decide = || {
        let output = home
            .tool(&["--agent", "mine", "--session-id", "x1", "--cwd", "."])
            .output();
        output.unwrap()
    };
    assert_eq!(words(&record(&decide())["argv"]), "mine new x1");
    home.write("mine/x1.log", "{\"who\":\"me\"}\n");
    assert_eq!(words(&record(&decide())["argv"]), "mine go x1");
    // Without a word of where its sessions are, the id is trusted, at the last moment too.
    let blind =
        r#"{"mine":{"command":"claude","ids":"discovered","shape":"id","resume":["go","{id}"]}}"#;
    home.write(".config/muxutils/agents.json", blind);
    let trusted = record(&decide());
    assert_eq!(trusted["action"], "resume");
    assert!(home.exec(&format!("{trusted}\n")).status.success());
    assert_eq!(home.the_call(), "go x1");
    // A mistake names file, entry and key, and nothing is decided.
    home.write(
        ".config/muxutils/agents.json",
        &mine.replace("\"root\"", "\"rooot\""),
    );
    let output = decide();
    assert_eq!(output.status.code(), Some(125));
    for part in ["agents.json", "entry 'mine'", "key 'rooot'"] {
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    // Nor is a file believed that others can write to.
    use std::os::unix::fs::PermissionsExt;
    let path = home.write(".config/muxutils/agents.json", mine);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(decide().status.code(), Some(125));
}

/// The lines of the manual page that show one.
#[test]
fn the_manuals_own_agent_works() {
    let home = Home::new();
    let text = include_str!("../../crates/resume-id/manual.txt");
    let shown = text
        .lines()
        .skip_while(|line| !line.starts_with("    {\"mine\""));
    let shown: Vec<&str> = shown.take_while(|line| !line.is_empty()).collect();
    home.write(".config/muxutils/agents.json", &shown.join("\n"));
    let decide = || {
        let words = ["--agent", "mine", "--session-id", A1, "--cwd", "."];
        let output = home.tool(&words).env_remove("MY_AGENT_HOME").output();
        record(&output.unwrap())
    };
    let first = decide();
    assert_eq!(first["action"], "assign", "{first}");
    let argv = words(&first["argv"]);
    assert_eq!(argv, format!("my-agent --session-id {A1}"));
    let chat = json!({"role": "user", "cwd": home.cwd()});
    home.write(&format!(".my-agent/chats/{A1}.jsonl"), &format!("{chat}\n"));
    let next = decide();
    assert_eq!(next["action"], "resume", "{next}");
    assert_eq!(words(&next["argv"]), format!("my-agent --resume {A1}"));
}

/// As the manual page says.
#[test]
fn to_begin_again_after_a_give_up() {
    let home = Home::new();
    let death = json!({"session_id": A1, "code": 1, "uptime_ms": 100, "at": 1});
    let deaths = format!("{death}\n").repeat(3);
    let row = json!({"agent": "claude", "cwd": home.cwd(), "session_id": A1,
        "minted_by": "breaker"});
    let row = home.write("row.json", &row.to_string());
    let history = home.write("row.json.exits", &deaths);
    let decide = || {
        let files = [row.to_str().unwrap(), history.to_str().unwrap()];
        let words = [
            "--row",
            files[0],
            "--history",
            files[1],
            "--record",
            files[0],
        ];
        record(&home.tool(&words).output().unwrap())
    };
    assert_eq!(decide()["action"], "give_up");
    let text = include_str!("../../crates/resume-id/manual.txt");
    let shown = text
        .lines()
        .skip_while(|line| !line.starts_with("    mv row.json.exits"));
    let shown: Vec<&str> = shown.take_while(|line| !line.is_empty()).collect();
    let script = format!("set -e; cd \"$HOME\"; {}", shown.join("\n"));
    let output = home.bash(&script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(record(&output)["action"], "assign");
    // The breaker trips again, and a new id is tried.
    std::fs::write(&history, &deaths).unwrap();
    let again = decide();
    assert_eq!(
        (&again["action"], &again["minted_by"]),
        (&json!("mint"), &json!("breaker"))
    );
}

#[test]
fn words_for_a_shell() {
    let home = Home::new();
    let script = r#"eval "set -- $(resume-id --agent claude --session-id "$id" --cwd "$ws" --fresh-arg "it's
\$HOME" --sh -o argv)"; printf '[%s]' "$@""#;
    let output = home.bash(script).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown, format!("[claude][--session-id][{A1}][it's\n$HOME]"));
    let columns = home.decide(A1, &["-o", "action,session_id"]);
    assert_eq!(
        String::from_utf8(columns.stdout).unwrap(),
        format!("assign\t{A1}\n")
    );
    let quiet = home.decide(A1, &["-q"]);
    assert_eq!((quiet.status.code(), quiet.stdout.len()), (Some(0), 0));
    let human = home.decide(A1, &["-H"]);
    assert!(
        String::from_utf8(human.stdout)
            .unwrap()
            .starts_with("assign ")
    );
}

#[test]
fn a_reader_that_does_not_read_is_not_waited_for() {
    let home = Home::new();
    // The pipe is full before anything is said, and whoever fills it goes on trying.
    let script = r#"exec 3> >(exec sleep 600); slow=$!
        yes >&3 & full=$!
        until grep -q ') S' /proc/$full/stat; do :; done
        resume-id --agent claude --session-id $id --cwd $ws --timeout 300ms >&3; echo $?
        kill $full $slow"#;
    let output = home.bash(script).output().unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(said, "3\n", "{output:?}");
}

/// None of the inputs is waited for any longer than the whole call may take.
#[test]
fn an_input_that_does_not_end() {
    let home = Home::new();
    // One FIFO that nobody writes to, and one that somebody might.
    let script = r#"mkfifo silent open; exec 3<>open
        about="--agent claude --cwd . --session-id $id"
        late() { timeout 60 resume-id "$@" --timeout 300ms; echo $?; }
        for from in silent open /dev/fd/3; do
          late $about --row $from
          late $about --history $from
          late --exec --decision $from
        done
        late $about --row - <&3
        late --exec --decision - <&3
        for from in silent open -; do late $about --holders $from -o action; done <&3"#;
    let output = home.bash(script).output().unwrap();
    let want = ["3\n".repeat(11), "unknown\n3\n".repeat(3)].concat();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown, want, "{output:?}");
    let late = "its end has not come in time";
    assert_eq!(said(&output).matches(late).count(), 11, "{output:?}");
    assert!(home.calls().is_empty());
}

#[test]
fn inputs_out_of_pipes() {
    let home = Home::new();
    home.conversation(A1);
    let script = r#"row() { echo '{"agent":"claude","session_id":"'$id'"}'; }
        resume-id --cwd . --row <(row) --history <(:) --timeout 60s -o action
        row | resume-id --cwd . --row - --timeout 60s -o action
        resume-id --exec --timeout 60s --decision <(resume-id --cwd . --row <(row) --timeout 60s)"#;
    let output = home.bash(script).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown, "resume\nresume\n", "{output:?}");
    assert_eq!(home.the_call(), format!("--resume {A1}"));
}
