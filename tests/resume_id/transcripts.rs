//! What is on disk decides.

use std::process::Command;

use serde_json::json;

use crate::home::{A1, B2, Home, words};
use crate::support::{record, said};

#[test]
fn an_agent_that_was_stopped_before_its_first_message() {
    let home = Home::new();
    let decision = home.decision(A1, &["--fresh-arg", "the prompt"]);
    assert_eq!(decision["action"], "assign");
    let argv = format!("claude --session-id {A1} the prompt");
    assert_eq!(words(&decision["argv"]), argv);

    let output = home
        .tool(&["--agent", "codex", "--cwd", "."])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(record(&output)["action"], "spawn");
    assert_eq!(record(&output)["session_id"], json!(null));
}

#[test]
fn each_state_of_a_transcript_has_an_answer() {
    let home = Home::new();
    let path = home.conversation(A1);
    let says = || {
        home.decision(A1, &[])["action"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(says(), "resume");
    std::fs::write(&path, "").unwrap();
    assert_eq!(says(), "mint");
    std::fs::write(&path, "{\"type\":\"summary\"}\n").unwrap();
    assert_eq!(says(), "mint");
    std::fs::write(&path, "{\"type\":\"us").unwrap();
    assert_eq!(says(), "mint");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(says(), "mint");
    std::fs::remove_dir(&path).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(says(), "mint");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(says(), "assign");
}

#[test]
fn two_gigabytes_are_not_read() {
    let home = Home::new();
    let path = home.conversation(A1);
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    let decision = home.decision(A1, &["--timeout", "2s"]);
    assert_eq!(decision["action"], "resume");
    assert_eq!(decision["artifact"]["turns"], json!(null));
}

#[test]
fn what_cannot_be_read_is_unknown() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let path = home.conversation(A1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let cwd = home.cwd();
    let mut command = home.sandbox.tool_as_user("resume-id");
    command
        .args(["--agent", "claude", "--session-id", A1, "--cwd", &cwd])
        .env("HOME", home.path(""));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let decision = record(&output);
    assert_eq!(decision["action"], "unknown");
    assert_eq!(decision["argv"], json!(null));
    assert!(
        decision["reason"]
            .as_str()
            .unwrap()
            .contains("ermission denied")
    );
}

#[test]
fn the_root_is_that_of_the_agent_to_be_launched() {
    let home = Home::new();
    home.conversation(A1);
    std::fs::rename(home.path(".claude"), home.path("other")).unwrap();
    assert_eq!(home.decision(A1, &[])["action"], "assign");
    let other = format!("CLAUDE_CONFIG_DIR={}", home.path("other").display());
    assert_eq!(
        home.decision(A1, &["--agent-env", &other])["action"],
        "resume"
    );
    // A variable that the target does not have.
    let cwd = home.cwd();
    let mut command = home.tool(&["--agent", "claude", "--session-id", A1, "--cwd", &cwd]);
    command
        .args(["--agent-env", "CLAUDE_CONFIG_DIR"])
        .env("CLAUDE_CONFIG_DIR", home.path("other"));
    assert_eq!(record(&command.output().unwrap())["action"], "assign");
}

#[test]
fn a_variable_that_makes_the_agent_save_nothing_goes() {
    let home = Home::new();
    let cwd = home.cwd();
    let mut command = home.tool(&["--agent", "claude", "--session-id", A1, "--cwd", &cwd]);
    command.env("CLAUDE_CODE_CHILD_SESSION", "1");
    let decision = record(&command.output().unwrap());
    assert_eq!(decision["env_unset"], json!(["CLAUDE_CODE_CHILD_SESSION"]));
    let argv = format!("env -u CLAUDE_CODE_CHILD_SESSION claude --session-id {A1}");
    assert_eq!(words(&decision["argv"]), argv);
}

#[test]
fn an_own_recorded_id_wins_over_a_newer_session() {
    let home = Home::new();
    crate::home::in_the_past(&home.conversation(A1));
    home.conversation(B2);
    let decision = home.decision(A1, &[]);
    assert_eq!(
        (&decision["action"], &decision["session_id"]),
        (&json!("resume"), &json!(A1))
    );
    // Without an id nothing there is ours.
    assert_eq!(home.decision("", &[])["action"], "mint");
    let stored = home.decision(&A1.to_uppercase(), &[]);
    assert_eq!(stored["session_id"], A1);
}

#[test]
fn a_database_that_is_written_to() {
    let home = Home::new();
    let id = "ses_0123456789abABCDEFGHIJKLMN";
    let database = home.write(".local/share/opencode/opencode.db", "");
    let sql = format!(
        "pragma journal_mode=wal; create table session(id text primary key, directory text, time_updated int);
         insert into session values('{id}', '{}', 1);",
        home.cwd()
    );
    let made = Command::new("sqlite3")
        .arg(&database)
        .arg(sql)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let cwd = home.cwd();
    let decide = |id: &str| {
        let mut command = home.tool(&["--agent", "opencode", "--session-id", id, "--cwd", &cwd]);
        command.env_remove("XDG_DATA_HOME");
        record(&command.output().unwrap())
    };
    let decision = decide(id);
    assert_eq!(words(&decision["argv"]), format!("opencode -s {id}"));
    assert_eq!(decide("ses_0123456789abABCDEFGHIJKLMO")["action"], "spawn");
}

/// After an update of the agent, say: whatever is in it now, nobody can say that it is no
/// conversation.
#[test]
fn a_database_without_its_table() {
    let home = Home::new();
    let id = "ses_0123456789abABCDEFGHIJKLMN";
    let sqlite = |sql: &str| {
        let mut command = Command::new("sqlite3");
        command.arg(home.path(".local/share/opencode/opencode.db"));
        assert!(command.arg(sql).status().unwrap().success());
    };
    let tool = |words: &[&str]| {
        let mut tool = home.tool(&["--agent", "opencode", "--cwd", "."]);
        tool.args(words).env_remove("XDG_DATA_HOME");
        tool.env_remove("OPENCODE_DB").output().unwrap()
    };
    let decide = || tool(&["--session-id", id]);
    // None, or one that was only just made, has no conversation in it.
    assert_eq!(record(&decide())["action"], "spawn");
    home.write(".local/share/opencode/opencode.db", "");
    assert_eq!(record(&decide())["action"], "spawn");
    assert_eq!(tool(&["--discover"]).status.code(), Some(1));

    let cwd = home.cwd();
    sqlite(&format!(
        "create table session(id text, directory text); insert into session values('{id}', '{cwd}');"
    ));
    let resume = record(&decide());
    assert_eq!(resume["action"], "resume");
    sqlite("alter table session rename to sessions;");
    let output = decide();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let unknown = record(&output);
    assert_eq!(unknown["action"], "unknown");
    let reason = unknown["reason"].as_str().unwrap();
    assert!(reason.contains("there is no table session"), "{reason}");
    // Nor does it count as gone where a decision is followed, or sessions are listed.
    let followed = home.exec(&format!("{resume}\n"));
    assert_eq!(followed.status.code(), Some(3), "{}", said(&followed));
    assert!(said(&followed).contains("there is no table session"));
    assert_eq!(tool(&["--discover"]).status.code(), Some(3));
}
