//! Against directories laid out as the agents lay theirs out.

use std::process::{Command, Stdio};

use super::*;
use crate::table::Table;

const A1: &str = "00000000-0000-4000-8000-0000000000a1";
const B2: &str = "00000000-0000-4000-8000-0000000000b2";

/// A home with a working directory in it.
struct Home {
    folder: tempfile::TempDir,
    agent: Agent,
}

impl Home {
    fn new(agent: &str) -> Home {
        let agent = Table::built_in().unwrap().get(agent).unwrap().clone();
        let folder = tempfile::tempdir().unwrap();
        let home = Home { folder, agent };
        std::fs::create_dir(home.path("w")).unwrap();
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn cwd(&self) -> String {
        self.path("w").to_str().unwrap().to_owned()
    }

    fn slug(&self, encoding: CwdEncoding) -> String {
        encoding.encode(&self.cwd())
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn store(&self) -> Store {
        self.store_for(&self.cwd())
    }

    fn store_for(&self, cwd: &str) -> Store {
        let home = ("HOME".into(), self.path("").into_os_string());
        let environment = Environment::from_iter([home]);
        let deadline = Deadline::after(Duration::from_secs(60));
        Store::new(&self.agent, &environment, cwd, deadline).unwrap()
    }

    /// What is found of `id`, in short: state, whether it is ours, turns.
    fn find(&self, id: &str) -> Vec<(State, Option<bool>, Option<u64>)> {
        short(self.store().find(id).unwrap())
    }
}

fn short(found: Vec<Transcript>) -> Vec<(State, Option<bool>, Option<u64>)> {
    let mut short: Vec<_> = found
        .into_iter()
        .map(|one| (one.state, one.cwd_matches, one.turns))
        .collect();
    short.sort_by_key(|(_, ours, turns)| (*ours, *turns));
    short
}

use State::{Conversational, Unusable};

fn user(cwd: &str) -> String {
    format!(r#"{{"type":"user","sessionId":"{A1}","cwd":"{cwd}","message":{{}}}}"#)
}

#[test]
fn the_three_states_of_a_claude_transcript() {
    let home = Home::new("claude");
    let cwd = home.cwd();
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    assert_eq!(home.find(A1), []);

    home.write(&path, "");
    assert_eq!(home.find(A1), [(Unusable, Some(true), Some(0))]);

    let meta = r#"{"type":"pr-link","sessionId":"x"}"#;
    home.write(&path, &format!("{meta}\n"));
    assert_eq!(home.find(A1), [(Unusable, Some(true), Some(0))]);

    let turn = user(&cwd);
    let answer = turn.replace("\"user\"", "\"assistant\"");
    home.write(&path, &format!("{meta}\n{turn}\n{answer}\n"));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(2))]);
    assert_eq!(home.store().find(A1).unwrap()[0].id, A1);
    assert_eq!(home.find(B2), []);

    // Cut off in the middle of a line: still a conversation, and said.
    home.write(&path, &format!("{turn}\n{}", &answer[..20]));
    let found = home.store().find(A1).unwrap();
    assert!(found[0].damaged);
    assert_eq!(short(found), [(Conversational, Some(true), Some(1))]);

    // A directory or a FIFO of that name.
    std::fs::remove_file(home.path(&path)).unwrap();
    std::fs::create_dir(home.path(&path)).unwrap();
    assert_eq!(home.find(A1), [(Unusable, Some(true), None)]);
    std::fs::remove_dir(home.path(&path)).unwrap();
    let made = Command::new("mkfifo").arg(home.path(&path)).status();
    assert!(made.unwrap().success());
    assert_eq!(home.find(A1), [(Unusable, Some(true), None)]);
}

#[test]
fn an_id_is_found_whatever_its_case_and_given_as_it_is_stored() {
    let home = Home::new("claude");
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    home.write(&path, &user(&home.cwd()));
    let found = home.store().find(&A1.to_ascii_uppercase()).unwrap();
    assert_eq!(found[0].id, A1);
}

#[test]
fn the_cwd_inside_decides_where_names_collide() {
    let home = Home::new("claude");
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    home.write(&path, &user("/another/w"));
    assert_eq!(home.find(A1), [(Conversational, Some(false), Some(1))]);
    // It went on in ours: one line says so.
    home.write(
        &path,
        &format!("{}\n{}\n", user("/another/w"), user(&home.cwd())),
    );
    let found = home.store().find(A1).unwrap();
    assert_eq!(found[0].cwd.as_deref(), Some(home.cwd().as_str()));
    assert_eq!(short(found), [(Conversational, Some(true), Some(2))]);
}

#[test]
fn links_are_resolved_on_both_sides() {
    let home = Home::new("claude");
    let link = home.path("link");
    std::os::unix::fs::symlink(home.path("w"), &link).unwrap();
    let link = link.to_str().unwrap();
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    home.write(&path, &user(link));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);
    let seen = home.store_for(link).find(A1).unwrap();
    assert_eq!(short(seen), [(Conversational, Some(true), Some(1))]);
    let slash = home
        .store_for(&format!("{}/", home.cwd()))
        .find(A1)
        .unwrap();
    assert_eq!(short(slash), [(Conversational, Some(true), Some(1))]);
}

#[test]
fn an_id_under_other_directories() {
    let home = Home::new("claude");
    home.write(&format!(".claude/projects/-x/{A1}.jsonl"), &user("/x"));
    assert_eq!(home.find(A1), [(Conversational, Some(false), Some(1))]);
    home.write(&format!(".claude/projects/-y/{A1}.jsonl"), &user("/y"));
    assert_eq!(home.find(A1).len(), 2);
    // Ours is all that counts, once it is there.
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    home.write(&path, &user(&home.cwd()));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);
}

#[test]
fn a_large_transcript_is_not_read_to_its_end() {
    let home = Home::new("claude");
    let path = format!(
        ".claude/projects/{}/{A1}.jsonl",
        home.slug(CwdEncoding::Claude)
    );
    let path = home.write(&path, &format!("{}\n", user(&home.cwd())));
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    assert_eq!(home.find(A1), [(Conversational, Some(true), None)]);
}

#[test]
fn what_cannot_be_read_is_not_absent() {
    let home = Home::new("claude");
    home.write(".claude", "a file where the root should be a directory");
    // A root that is no directory holds nothing.
    assert_eq!(home.find(A1), []);
    let deadline = Deadline::after(Duration::ZERO);
    let passed = Store::at(&home.agent, home.path(".claude"), &home.cwd(), deadline);
    assert!(
        passed
            .find(A1)
            .unwrap_err()
            .ends_with("reading it takes too long")
    );
    let nowhere = Store::new(&home.agent, &Environment::default(), "/", deadline);
    assert!(nowhere.unwrap_err().contains("not known"));
}

#[test]
fn codex_rollouts() {
    let home = Home::new("codex");
    let cwd = home.cwd();
    let meta = format!(r#"{{"type":"session_meta","payload":{{"id":"{A1}","cwd":"{cwd}"}}}}"#);
    let path = format!(".codex/sessions/2026/11/29/rollout-2026-11-29T10-00-00-{A1}.jsonl");
    home.write(&path, &meta);
    assert_eq!(home.find(A1), [(Unusable, Some(true), Some(0))]);
    let turn = r#"{"type":"event_msg","payload":{"type":"user_message","message":"hi"}}"#;
    home.write(&path, &format!("{meta}\n{turn}\n"));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);
    home.write(
        &path,
        &format!("{}\n{turn}\n", meta.replace(&cwd, "/elsewhere")),
    );
    assert_eq!(home.find(A1), [(Conversational, Some(false), Some(1))]);
    assert!(home.store().list().unwrap().is_empty());
}

#[test]
fn gemini_sessions_are_told_apart_inside() {
    let home = Home::new("gemini");
    let cwd = home.cwd();
    let hash = crate::sha256_hex(cwd.as_bytes());
    home.write(
        ".gemini/projects.json",
        &format!(r#"{{"projects":{{"{cwd}":"w-1"}}}}"#),
    );
    home.write(".gemini/tmp/w-1/.project_root", &cwd);
    let header = |id: &str| format!(r#"{{"sessionId":"{id}","projectHash":"{hash}"}}"#);
    let turn = r#"{"type":"user","content":"hi"}"#;
    let path = ".gemini/tmp/w-1/chats/session-2026-11-29T10-00-00000000.jsonl";
    home.write(path, &format!("{}\n{turn}\n", header(A1)));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);
    // Only eight characters of the id are in the name.
    assert_eq!(home.find(B2), []);
    home.write(path, &format!("{}\n", header(A1)));
    assert_eq!(home.find(A1), [(Unusable, Some(true), Some(0))]);
    let listed = home.store().list().unwrap();
    assert_eq!(listed[0].id, A1);
    assert_eq!(listed[0].cwd.as_deref(), Some(cwd.as_str()));
}

#[test]
fn qwen_pi_grok_and_copilot() {
    let home = Home::new("qwen");
    let path = format!(
        ".qwen/projects/{}/chats/{A1}.jsonl",
        home.slug(CwdEncoding::Qwen)
    );
    home.write(&path, &user(&home.cwd()));
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);

    let home = Home::new("pi");
    let slug = home.slug(CwdEncoding::Pi);
    let head = format!(
        r#"{{"type":"session","id":"my-id","cwd":"{}"}}"#,
        home.cwd()
    );
    let turn = r#"{"type":"message","message":{"role":"user"}}"#;
    let path = format!(".pi/agent/sessions/{slug}/2026-11-29T10-00-00_my-id.jsonl");
    home.write(&path, &format!("{head}\n{turn}\n"));
    assert_eq!(home.find("my-id"), [(Conversational, Some(true), Some(1))]);
    assert_eq!(home.find("id"), []);
    let other = path.replace("_my-id", "_a_my-id");
    home.write(&other, &head.replace("my-id", "a_my-id"));
    assert_eq!(home.find("my-id"), [(Conversational, Some(true), Some(1))]);

    let home = Home::new("grok");
    let slug = home.slug(CwdEncoding::Grok);
    let info = format!(r#"{{"info":{{"id":"{A1}","cwd":"{}"}}}}"#, home.cwd());
    home.write(&format!(".grok/sessions/{slug}/{A1}/summary.json"), &info);
    assert_eq!(home.find(A1), [(Conversational, Some(true), None)]);
    home.write(
        &format!(".grok/sessions/{slug}/{B2}/summary.json"),
        "{\"info\":",
    );
    assert_eq!(home.find(B2), [(Unusable, Some(true), None)]);

    let home = Home::new("copilot");
    let state = format!(".copilot/session-state/{A1}");
    let yaml = format!("id: {A1}\ncwd: \"{}\"\n", home.cwd());
    home.write(&format!("{state}/workspace.yaml"), &yaml);
    // Stopped at zero turns: nothing that a launch under this id would meet.
    assert_eq!(home.find(A1), []);
    home.write(
        &format!("{state}/events.jsonl"),
        r#"{"type":"user.message"}"#,
    );
    assert_eq!(home.find(A1), [(Conversational, Some(true), Some(1))]);
    home.write(
        &format!("{state}/workspace.yaml"),
        "cwd: /else/where # there\n",
    );
    assert_eq!(home.find(A1), [(Conversational, Some(false), Some(1))]);
}

#[test]
fn transcripts_that_a_variable_has_moved() {
    let home = Home::new("claude");
    let found = |home: &Home, variables: &[(&str, &str)], id: &str| {
        let variables = variables.iter().map(|(name, value)| {
            let value = value.replace("~", home.path("").to_str().unwrap());
            (name.into(), value.into())
        });
        let environment = Environment::from_iter(variables);
        let deadline = Deadline::after(Duration::from_secs(60));
        let store = Store::new(&home.agent, &environment, &home.cwd(), deadline).unwrap();
        short(store.find(id).unwrap())
    };
    let named = [("HOME", "~"), ("CLAUDE_CODE_PROJECT_DIR_NAME", "mine")];
    let all = [&named[..], &[("CLAUDE_CONFIG_DIR", "~/.claude")]].concat();
    let usual = home.slug(CwdEncoding::Claude);
    home.write(
        &format!(".claude/projects/mine/{A1}.jsonl"),
        &user(&home.cwd()),
    );
    home.write(
        &format!(".claude/projects/{usual}/{B2}.jsonl"),
        &user(&home.cwd()),
    );
    let ours = [(Conversational, Some(true), Some(1))];
    assert_eq!(found(&home, &all, A1), ours);
    assert_eq!(found(&home, &all, B2), []);
    // Without a directory of its own for all files, claude does not heed the name.
    let elsewhere = [(Conversational, Some(false), Some(1))];
    assert_eq!(found(&home, &named, A1), elsewhere);
    assert_eq!(found(&home, &named, B2), ours);
    // A relative path is the agent's own, who begins in the directory.
    home.write(&format!("w/c/projects/mine/{B2}.jsonl"), &user(&home.cwd()));
    let relative = [&named[..], &[("CLAUDE_CONFIG_DIR", "c")]].concat();
    assert_eq!(found(&home, &relative, B2), ours);
    home.write(
        &format!("w/c/projects/{usual}/{A1}.jsonl"),
        &user(&home.cwd()),
    );
    assert_eq!(found(&home, &relative[2..], A1), ours);
    // One directory has the sessions of several.
    home.write(
        &format!(".claude/projects/mine/{A1}.jsonl"),
        &user("/else/where"),
    );
    assert_eq!(found(&home, &all, A1), elsewhere);

    let home = Home::new("pi");
    let head = format!(r#"{{"type":"session","id":"{A1}","cwd":"{}"}}"#, home.cwd());
    let turn = r#"{"type":"message","message":{"role":"user"}}"#;
    home.write(
        &format!("s/2026-11-29T10-00-00_{A1}.jsonl"),
        &format!("{head}\n{turn}\n"),
    );
    let moved = [("HOME", "~"), ("PI_CODING_AGENT_SESSION_DIR", "~/s")];
    assert_eq!(found(&home, &moved, A1), ours);
    assert_eq!(found(&home, &moved[..1], A1), []);
}

#[test]
fn sessions_that_are_rows() {
    let home = Home::new("opencode");
    let id = "ses_0123456789abABCDEFGHIJKLMN";
    assert_eq!(home.find(id), []);
    let database = home.write(".local/share/opencode/opencode.db", "");
    let sql = format!(
        "create table session(id text primary key, project_id text, directory text, parent_id text, time_updated int);
         insert into session values('{id}', 'global', '{0}', null, 1795962381123);
         insert into session values('ses_0123456789abABCDEFGHIJKLMP', 'global', '{0}', '{id}', 1795962381125);
         insert into session values('ses_0123456789abABCDEFGHIJKLMO', 'global', '/x', null, 1795962381124);",
        home.cwd()
    );
    sqlite(&database, &sql);
    assert_eq!(home.find(id), [(Conversational, Some(true), None)]);
    let listed = home.store().list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0].modified,
        Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1795962381123))
    );

    let home = Home::new("hermes");
    let database = home.write(".hermes/state.db", "");
    let sql = format!(
        "create table sessions(id text primary key, cwd text, message_count int);
         insert into sessions values('20261129_142621_0a1b2c', '{0}', 4), ('20261129_142622_0a1b2c', '{0}', 0);",
        home.cwd()
    );
    sqlite(&database, &sql);
    assert_eq!(
        home.find("20261129_142621_0a1b2c"),
        [(Conversational, Some(true), Some(4))]
    );
    assert_eq!(
        home.find("20261129_142622_0a1b2c"),
        [(Unusable, Some(true), Some(0))]
    );
}

fn sqlite(database: &Path, sql: &str) {
    let mut command = Command::new("sqlite3");
    command.arg(database).arg(sql).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
}

#[test]
fn files_that_are_not_looked_into() {
    let home = Home::new("agy");
    home.write(".gemini/antigravity-cli/conversations/abc.db", "x");
    home.write(".gemini/antigravity-cli/conversations/empty.db", "");
    assert_eq!(home.find("abc"), [(Conversational, None, None)]);
    assert_eq!(home.find("empty"), [(Unusable, None, None)]);
    assert_eq!(home.find("none"), []);
    // Nothing says of which directory they are.
    assert!(home.store().list().unwrap().is_empty());

    let home = Home::new("cursor-agent");
    home.write(".cursor/chats/0123/abc/store.db", "x");
    assert_eq!(home.find("abc"), [(Conversational, None, None)]);
}

#[test]
fn sessions_of_a_directory_newest_first() {
    let home = Home::new("claude");
    let slug = home.slug(CwdEncoding::Claude);
    let old = home.write(
        &format!(".claude/projects/{slug}/{A1}.jsonl"),
        &user(&home.cwd()),
    );
    home.write(
        &format!(".claude/projects/{slug}/{B2}.jsonl"),
        &user(&home.cwd()),
    );
    home.write(
        &format!(".claude/projects/{slug}/notes.jsonl"),
        &user(&home.cwd()),
    );
    home.write(&format!(".claude/projects/-x/{B2}.jsonl"), &user("/x"));
    let past = SystemTime::now() - Duration::from_secs(60);
    let old = std::fs::File::options().write(true).open(old).unwrap();
    old.set_modified(past).unwrap();
    let ids: Vec<_> = home
        .store()
        .list()
        .unwrap()
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(ids, [B2, A1]);
}

#[test]
fn strings_of_yaml() {
    let text = "id: x\ncwd: /a b/c # note\n cwd: /no\nq: '/it''s'\nd: \"/a\\\"b\"\nempty:\n";
    let table = [
        ("cwd", Some("/a b/c")),
        ("q", Some("/it's")),
        ("d", Some("/a\"b")),
        ("empty", Some("")),
        ("cw", None),
        ("none", None),
    ];
    for (key, want) in table {
        assert_eq!(yaml_string(text, key).as_deref(), want, "{key}");
    }
}
