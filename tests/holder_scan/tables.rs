//! Tables that are written, judged and joined.

use serde_json::json;

use super::*;
use crate::support::said;

#[test]
fn a_dump_is_judged_as_the_live_table_is() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let dump = scan(&sandbox, &["--dump"]);
    assert_eq!((dump.code(), &dump.scan()["verdict"]), (0, &json!(null)));
    let entry = dump
        .records
        .iter()
        .find(|record| record["pid"] == pid(&agent))
        .unwrap();
    assert_eq!(entry["type"], "process_entry");
    let names = entry["env"].as_array().unwrap();
    assert!(
        names
            .iter()
            .all(|name| !name.as_str().unwrap().contains('='))
    );

    let judged = scan_input(
        &sandbox,
        &["--session-id", &id, "--from", "-"],
        &dump.output.stdout,
    );
    assert_eq!(judged.classes(), [(pid(&agent), "foreign")]);
    assert_eq!(judged.scan()["at"], dump.scan()["at"], "the look was then");
    assert_eq!(judged.scan()["boot_id"], dump.scan()["boot_id"]);
    let live = scan(&sandbox, &["--session-id", &id]);
    for key in [
        "ident",
        "argv",
        "cwd",
        "exe",
        "root_ident",
        "evidence",
        "active",
    ] {
        assert_eq!(judged.holders()[0][key], live.holders()[0][key], "{key}");
    }
}

#[test]
fn a_table_that_is_no_table() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let judge = |table: &str| {
        let arguments = ["-e", "--session-id", &id, "--from", "-"];
        let judged = scan_input(&sandbox, &arguments, table.as_bytes());
        (judged.verdict().to_owned(), judged.code())
    };
    let is = |verdict: &str, code| (verdict.to_owned(), code);
    assert_eq!(judge(""), is("unknown", 3));
    assert_eq!(judge("{\"pid\":7,\"argv\":[\"x\"]}\n"), is("free", 1));
    assert_eq!(
        judge("{\"pid\":7}\n"),
        is("unknown", 3),
        "its arguments could not be read"
    );
    assert_eq!(
        judge("{\"pid\":7,\"argv\":[\"x\"]}\nnonsense\n"),
        is("unknown", 65)
    );
    assert_eq!(
        judge("{\"pid\":-1,\"argv\":[]}\n{\"pid\":7,\"argv\":[]}\n"),
        is("unknown", 65)
    );
    let incomplete = "{\"pid\":7,\"argv\":[]}\n{\"type\":\"scan\",\"complete\":false}\n";
    assert_eq!(judge(incomplete), is("unknown", 3));
    let missing = scan(&sandbox, &["--session-id", &id, "--from", "/nowhere/table"]);
    assert_eq!((missing.code(), missing.records.len()), (3, 0));
    assert!(said(&missing.output).contains("/nowhere/table"));
}

#[test]
fn rows_are_joined_in_both_directions() {
    let sandbox = Sandbox::new();
    let (held, other, unknown) = (new_id(), new_id(), new_id());
    let mark = format!("wrapper-{}.sh", &new_id()[..8]);
    let known = idle_script(&sandbox, &mark, &["--session-id", &held]);
    let stray = idle_script(&sandbox, &mark, &["--session-id", &other]);
    let ident = sandbox.track_pid(pid(&known)).to_string();
    let recycled = ident.replace(&format!(":{}:", ident.split(':').nth(4).unwrap()), ":1:");
    let recycled = format!("{}:0", recycled.rsplit_once(':').unwrap().0);
    let rows = [
        json!({"session_id": held, "ident": ident, "kept": 1.5}),
        json!({"session_id": unknown}),
        json!({"pid": pid(&known)}),
        json!({"ident": recycled}),
        json!({"pid": 4_194_304}),
        json!({"pid": "x"}),
        json!({"something": "else"}),
    ];
    let input: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let arguments = ["--registry", "-", "--own-arg", &mark];
    let joined = scan_input(&sandbox, &arguments, input.as_bytes());
    let states: Vec<&Value> = joined.records[..7]
        .iter()
        .map(|row| &row["holding"]["state"])
        .collect();
    assert_eq!(
        states,
        ["alive", "dead", "alive", "recycled", "dead", "unknown"]
            .map(|s| json!(s))
            .iter()
            .chain([&Value::Null])
            .collect::<Vec<_>>()
    );
    assert_eq!(joined.records[0]["holding"]["pids"], json!([pid(&known)]));
    assert_eq!(joined.records[0]["kept"], 1.5);
    assert_eq!(joined.records[6], rows[6], "no row is passed on as it is");
    let strays = joined.holders();
    assert_eq!(strays.len(), 1, "{:?}", joined.output);
    assert_eq!(strays[0]["pid"], pid(&stray));
    assert_eq!(
        (&strays[0]["registered"], &strays[0]["class"]),
        (&json!(false), &json!("own"))
    );
    assert_eq!(strays[0]["session_id"], other);
    assert_eq!(joined.code(), 0);

    let bad = scan_input(&sandbox, &arguments, b"{\"pid\":1}\nnonsense\n{\"x\":1}\n");
    assert_eq!(bad.code(), 65);
    assert_eq!(bad.records[1], json!({"x": 1}), "the rest is done");
}

#[test]
fn thousands_of_rows_are_one_scan() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    let mut input = String::new();
    // Ids that nobody else has either.
    let of_all = &new_id()[..24];
    for row in 0..10_000 {
        input.push_str(&format!("{{\"session_id\":\"{of_all}{row:012x}\"}}\n"));
    }
    input.push_str(&format!("{{\"session_id\":\"{}\"}}\n", id.to_uppercase()));
    let rows = sandbox.path("rows");
    std::fs::write(&rows, input).unwrap();
    let joined = scan(&sandbox, &["--registry", text(&rows)]);
    assert_eq!(joined.records.len(), 10_002);
    assert_eq!(
        joined.records[10_000]["holding"],
        json!({"state": "alive", "pids": [pid(&agent)]})
    );
    let dead = |row: &Value| row["holding"]["state"] == "dead";
    assert!(joined.records[..10_000].iter().all(dead));
}

#[test]
fn a_row_of_the_session_that_the_caller_runs_in_is_alive() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let line = "echo \"{\\\"session_id\\\":\\\"$ID\\\"}\" | holder-scan --registry -; :";
    let state = |name: &str, arguments: &[&str]| {
        let mut command = sandbox.bash(line);
        command.arg0(name).args(arguments).env("ID", &id);
        let joined = Scanned::of(command.output().unwrap());
        joined.records[0]["holding"]["state"].clone()
    };
    assert_eq!(state("claude", &["x", "--resume", &id]), "alive");
    let config = format!("{{\"args\":[\"--resume\",\"{id}\"]}}");
    assert_eq!(state("bash", &["x", &config]), "dead", "it would start one");
}

#[test]
fn what_a_table_does_not_say_is_null() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let row =
        json!({"pid": 7, "argv": ["claude", "--session-id", id], "argv_cut": true, "lossy": true});
    let line = format!("{row}\n");
    let judged = scan_input(
        &sandbox,
        &["--session-id", &id, "--from", "-"],
        line.as_bytes(),
    );
    let holder = judged.holder(7);
    for key in ["ident", "ppid", "pgid", "sid", "uid", "name", "state"] {
        assert_eq!(holder.get(key), Some(&Value::Null), "{key}");
    }
    for key in ["foreground", "exe", "cwd", "tty", "age_ms"] {
        assert_eq!(holder.get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(
        (&holder["argv_cut"], &holder["lossy"]),
        (&json!(true), &json!(true))
    );

    let wrong = format!("{line}\n{{\"pid\":8,\"argv\":\"claude\"}}\n");
    let judged = scan_input(
        &sandbox,
        &["--session-id", &id, "--from", "-"],
        wrong.as_bytes(),
    );
    assert_eq!((judged.verdict(), judged.code()), ("foreign", 65));
    assert!(said(&judged.output).contains("standard input: line 3: "));
}
