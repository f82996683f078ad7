//! The table itself: one entry is data, and the user's own file adds or replaces entries.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::encode::CwdEncoding;
use crate::shape::{Mint, Shape};

/// The entries that every user has.
const BUILT_IN: &str = include_str!("agents.json");

/// The most that is read of a user's own file, in bytes.
const MAX_FILE: usize = 4 << 20;

/// One agent: how it is launched, and where it keeps its sessions.
///
/// In arguments and paths `{id}` stands for the session's id, in paths `{id8}` for its first eight
/// characters, `{cwd}` for the working directory in the agent's own encoding, and `*` for any text
/// within one name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The agent's name, which is the entry's key.
    #[serde(skip_deserializing, default)]
    pub name: String,
    /// The program, looked up on PATH; the name where it is missing.
    #[serde(default)]
    pub command: Option<String>,
    /// Who makes the session's id.
    pub ids: Ids,
    /// The form of an id.
    pub shape: Shape,
    /// Which UUIDs are made for it.
    #[serde(default)]
    pub mint: Mint,
    /// The arguments of a first launch under a given id; empty if the agent takes none.
    #[serde(default)]
    pub assign: Vec<String>,
    /// The arguments that continue a session; empty if the agent cannot.
    #[serde(default)]
    pub resume: Vec<String>,
    /// The arguments of a launch without an id.
    #[serde(default)]
    pub spawn: Vec<String>,
    /// Arguments that choose a session, and so contradict the ones above.
    #[serde(default)]
    pub session_flags: Vec<String>,
    /// Variables that must not be inherited: with them the agent takes itself for another's child,
    /// or saves nothing.
    #[serde(default)]
    pub unset: Vec<String>,
    /// Where a resume waits for an answer instead of beginning.
    #[serde(default)]
    pub blocks: Blocks,
    /// Whether the agent's shared daemon lets a further client continue a session that it holds.
    #[serde(default)]
    pub daemon_shares: bool,
    /// Where its files are: the first of these whose variables are all set (`$NAME`, `~`).
    #[serde(default)]
    pub root: Vec<String>,
    /// Where its transcripts are below that; missing if it keeps none.
    #[serde(default)]
    pub transcripts: Option<Transcripts>,
}

/// Who makes the ids of an agent's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ids {
    /// The caller gives one at the first launch; the agent refuses one that has a transcript.
    Assigned,
    /// The agent makes one, which is to be found out later.
    Discovered,
    /// The caller gives one, and the agent opens that session or creates it.
    OpenOrCreate,
}

/// In which cases a resume shows a menu, a lock screen or a question, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// While another process has the session open.
    #[serde(default)]
    pub held: Option<String>,
    /// From another directory than the session's own.
    #[serde(default)]
    pub other_cwd: Option<String>,
}

/// Where and how an agent keeps the record of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transcripts {
    /// A file of JSON lines for each session.
    Jsonl(JsonLines),
    /// A JSON document for each session.
    Json(JsonDocument),
    /// A row for each session, in a table of an SQLite database.
    Sqlite(SqliteTable),
    /// A file for each session whose content is the agent's own business.
    File(OpaqueFile),
}

/// Transcripts of JSON lines. Keys are dotted paths.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JsonLines {
    /// The file's path below the root.
    pub path: String,
    /// How `{cwd}` in the path is made.
    #[serde(default)]
    pub cwd_in_path: Option<CwdEncoding>,
    /// Where a variable has put them instead: the first of these whose variables are all set.
    #[serde(default)]
    pub moved: Vec<Moved>,
    /// Where the first line that has the id has it, where the path does not say it for certain.
    #[serde(default)]
    pub id: Option<String>,
    /// Where a line has the working directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Where a line has the SHA-256 of the working directory.
    #[serde(default)]
    pub cwd_sha256: Option<String>,
    /// A file beside the transcript that has the working directory.
    #[serde(default)]
    pub cwd_file: Option<CwdFile>,
    /// Which lines are of a user or of the agent: any of these.
    pub turns: Vec<TurnRule>,
}

/// One directory that a user has for transcripts of whatever working directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// The directory, with variables (`$NAME`, `~`).
    pub root: String,
    /// The file's path below that.
    pub path: String,
}

/// A line is a turn if the string at `key` is one of `is`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRule {
    /// A dotted path.
    pub key: String,
    /// The values that count.
    pub is: Vec<String>,
}

/// A small file that names a working directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CwdFile {
    /// Its path, relative to the transcript's own directory.
    pub path: String,
    /// The key on the outermost level of a YAML file; missing if the whole file is the path.
    #[serde(default)]
    pub yaml_key: Option<String>,
}

/// Transcripts of which one JSON document says enough. Keys are dotted paths.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JsonDocument {
    /// The file's path below the root.
    pub path: String,
    /// How `{cwd}` in the path is made.
    #[serde(default)]
    pub cwd_in_path: Option<CwdEncoding>,
    /// Where the document has the id.
    pub id: String,
    /// Where the document has the working directory.
    pub cwd: String,
}

/// Sessions that are rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteTable {
    /// The database's path below the root.
    pub path: String,
    /// A variable that names another database, absolute or below the root.
    #[serde(default)]
    pub path_variable: Option<String>,
    /// The table.
    pub table: String,
    /// The column of the id.
    pub id: String,
    /// The column of the working directory.
    pub cwd: String,
    /// The column with the number of messages; where it is missing, a row is a conversation.
    #[serde(default)]
    pub turns: Option<String>,
    /// The column that names the session which this one is a helper's of; such a session is nobody's
    /// to continue, and is not listed.
    #[serde(default)]
    pub parent: Option<String>,
    /// The column with the time of the last change, in milliseconds since 1970.
    #[serde(default)]
    pub modified_ms: Option<String>,
}

/// Transcripts that are not looked into.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpaqueFile {
    /// The file's path below the root.
    pub path: String,
}

impl Agent {
    /// Whether the agent is given its ids.
    pub fn takes_ids(&self) -> bool {
        self.ids != Ids::Discovered
    }

    /// The program to run.
    pub fn program(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.name)
    }

    /// The command line of a first launch under `id`.
    pub fn assign_argv(&self, id: &str) -> Vec<String> {
        self.argv(&self.assign, id)
    }

    /// The command line that continues the session `id`.
    pub fn resume_argv(&self, id: &str) -> Vec<String> {
        self.argv(&self.resume, id)
    }

    /// The command line of a launch without an id.
    pub fn spawn_argv(&self) -> Vec<String> {
        self.argv(&self.spawn, "")
    }

    /// The flags that choose a session: those that the entry names as such, and those that it gives
    /// an id with itself.
    pub fn choosing_flags(&self) -> impl Iterator<Item = &str> {
        let given = |arguments: &'_ [String]| -> Option<usize> {
            arguments.iter().position(|word| word.contains("{id}"))
        };
        let own = [&self.assign, &self.resume]
            .into_iter()
            .filter_map(move |arguments| {
                let at = given(arguments)?;
                match arguments[at].split_once('=') {
                    Some((flag, _)) => Some(flag),
                    None => arguments[..at].last().map(String::as_str),
                }
            })
            .filter(|flag| flag.starts_with('-'));
        self.session_flags.iter().map(String::as_str).chain(own)
    }

    fn argv(&self, arguments: &[String], id: &str) -> Vec<String> {
        let filled = arguments
            .iter()
            .map(|argument| argument.replace("{id}", id));
        std::iter::once(self.program().to_owned())
            .chain(filled)
            .collect()
    }

    /// What is wrong with an entry whose keys are all well formed; `None` if nothing is.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let has_id = |arguments: &[String]| arguments.iter().any(|part| part.contains("{id}"));
        if self.takes_ids() && !has_id(&self.assign) {
            return Some(("assign", "an agent that takes ids needs '{id}' in it"));
        }
        if !self.resume.is_empty() && !has_id(&self.resume) {
            return Some(("resume", "'{id}' is missing in it"));
        }
        let paths = match &self.transcripts {
            None | Some(Transcripts::Sqlite(_)) => Vec::new(),
            Some(Transcripts::Jsonl(lines)) => {
                let moved = lines.moved.iter().map(|moved| (&moved.path, None));
                let usual = (&lines.path, lines.cwd_in_path);
                std::iter::once(usual).chain(moved).collect()
            }
            Some(Transcripts::Json(document)) => vec![(&document.path, document.cwd_in_path)],
            Some(Transcripts::File(file)) => vec![(&file.path, None)],
        };
        for (path, encoding) in paths {
            if !path.contains("{id") {
                return Some(("transcripts", "its path has neither '{id}' nor '{id8}'"));
            }
            if path.contains("{cwd}") != encoding.is_some() {
                return Some((
                    "transcripts",
                    "'{cwd}' in its path and cwd_in_path go together",
                ));
            }
        }
        (self.transcripts.is_some() && self.root.is_empty())
            .then_some(("root", "transcripts need one"))
    }
}

/// All agents that are known, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    agents: Vec<Agent>,
}

impl Table {
    /// The built-in entries.
    ///
    /// # Errors
    ///
    /// None of them is malformed; a test reads them all.
    pub fn built_in() -> Result<Table, String> {
        let agents = entries("the built-in table", BUILT_IN.as_bytes())?;
        Ok(Table { agents })
    }

    /// The built-in entries, with those of the user's own `file` added, or put in their place.
    ///
    /// # Errors
    ///
    /// The file cannot be read or not be trusted, or an entry is malformed: the message names the
    /// file, the entry and the key.
    pub fn with_file(file: &Path) -> Result<Table, String> {
        let bytes =
            records::files::read_trusted(file, MAX_FILE).map_err(|error| error.to_string())?;
        Table::built_in()?.with_entries(&file.display().to_string(), &bytes)
    }

    /// This table with the entries in `bytes`, the content of `file`, added or put in their place.
    ///
    /// # Errors
    ///
    /// As [`Table::with_file`].
    pub fn with_entries(mut self, file: &str, bytes: &[u8]) -> Result<Table, String> {
        for agent in entries(file, bytes)? {
            self.agents.retain(|known| known.name != agent.name);
            self.agents.push(agent);
        }
        Ok(self)
    }

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// All of them, the built-in ones first.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }
}

fn entries(file: &str, bytes: &[u8]) -> Result<Vec<Agent>, String> {
    let line = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let record = records::Record::parse(line).map_err(|why| format!("{file}: {why}"))?;
    let members = record.members().iter();
    members
        .map(|member| entry(&member.key, member.value.get()))
        .collect::<Result<_, _>>()
        .map_err(|why| format!("{file}: {why}"))
}

fn entry(name: &str, text: &str) -> Result<Agent, String> {
    if records::id::parse(name).is_err() {
        return Err(format!("entry '{name}': that is no name for an agent"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut agent: Agent = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // The reader's line and column count from the beginning of the entry.
        let why = error.inner().to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        match error.path().to_string().as_str() {
            "." => format!("entry '{name}': {why}"),
            key => format!("entry '{name}': key '{key}': {why}"),
        }
    })?;
    name.clone_into(&mut agent.name);
    match agent.fault() {
        Some((key, why)) => Err(format!("entry '{name}': key '{key}': {why}")),
        None => Ok(agent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_well_formed() {
        let table = Table::built_in().unwrap();
        let names: Vec<_> = table.agents().iter().map(|a| a.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "claude",
                "codex",
                "opencode",
                "gemini",
                "qwen",
                "pi",
                "grok",
                "hermes",
                "copilot",
                "agy",
                "cursor-agent"
            ]
        );
    }

    #[test]
    fn command_lines() {
        let table = Table::built_in().unwrap();
        let id = "X";
        let show = |argv: Vec<String>| argv.join(" ");
        let rows = [
            (
                "claude",
                "claude --session-id X",
                "claude --resume X",
                "claude",
            ),
            ("codex", "codex", "codex resume X", "codex"),
            ("opencode", "opencode", "opencode -s X", "opencode"),
            (
                "gemini",
                "gemini --session-id X",
                "gemini --resume X",
                "gemini",
            ),
            ("qwen", "qwen --session-id X", "qwen --resume X", "qwen"),
            ("pi", "pi --session-id X", "pi --session-id X", "pi"),
            ("grok", "grok --session-id X", "grok -r X", "grok"),
            ("hermes", "hermes", "hermes --resume X", "hermes"),
            (
                "copilot",
                "copilot --session-id X",
                "copilot --session-id X",
                "copilot",
            ),
            ("agy", "agy", "agy --conversation X", "agy"),
            (
                "cursor-agent",
                "cursor-agent",
                "cursor-agent --resume X",
                "cursor-agent",
            ),
        ];
        for (name, assign, resume, spawn) in rows {
            let agent = table.get(name).unwrap();
            assert_eq!(show(agent.assign_argv(id)), assign);
            assert_eq!(show(agent.resume_argv(id)), resume);
            assert_eq!(show(agent.spawn_argv()), spawn);
        }
    }

    #[test]
    fn a_mistake_names_file_entry_and_key() {
        let good = r#""ids":"discovered","shape":"id""#;
        let table = [
            ("[]", "not a JSON object"),
            (r#"{"x":{}}"#, "entry 'x': missing field `ids`"),
            (
                r#"{"x":{"ids":"maybe","shape":"id"}}"#,
                "entry 'x': key 'ids': unknown variant",
            ),
            (
                r#"{"x":{"ids":"discovered","shape":"{"}}"#,
                "entry 'x': key 'shape': ",
            ),
            (
                &format!(r#"{{"x":{{{good},"resum":[]}}}}"#),
                "entry 'x': key 'resum': unknown field",
            ),
            (
                &format!(r#"{{"x":{{{good},"resume":["a",7]}}}}"#),
                "entry 'x': key 'resume[1]': invalid type",
            ),
            (
                &format!(r#"{{"x":{{{good},"resume":["-r"]}}}}"#),
                "entry 'x': key 'resume': '{id}'",
            ),
            (
                &format!(
                    r#"{{"x":{{{good},"transcripts":{{"jsonl":{{"path":"a/{{id}}","turns":1}}}}}}}}"#
                ),
                "entry 'x': key 'transcripts.jsonl.turns': invalid type",
            ),
            (
                &format!(r#"{{"x":{{{good},"transcripts":{{"file":{{"path":"a"}}}}}}}}"#),
                "entry 'x': key 'transcripts': its path",
            ),
            (
                &format!(r#"{{"x":{{{good},"transcripts":{{"file":{{"path":"{{id}}"}}}}}}}}"#),
                "entry 'x': key 'root': transcripts",
            ),
            (
                &format!(
                    r#"{{"x":{{{good},"transcripts":{{"jsonl":{{"path":"{{id}}","turns":[],"moved":[{{"root":"$X","path":"{{cwd}}/{{id}}"}}]}}}}}}}}"#
                ),
                "entry 'x': key 'transcripts': '{cwd}'",
            ),
            (r#"{"a/b":{}}"#, "entry 'a/b': that is no name"),
        ];
        for (text, want) in table {
            let message = entries("my.json", text.as_bytes()).unwrap_err();
            assert!(
                message.starts_with(&format!("my.json: {want}")),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn a_users_file_adds_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents.json");
        let text = r#"{"mine":{"ids":"discovered","shape":"id","command":"my-agent"},
                       "claude":{"ids":"discovered","shape":"uuid"}}"#;
        std::fs::write(&file, text).unwrap();
        let table = Table::with_file(&file).unwrap();
        assert_eq!(table.get("mine").unwrap().spawn_argv(), ["my-agent"]);
        assert_eq!(table.get("claude").unwrap().ids, Ids::Discovered);
        assert_eq!(
            table.agents().len(),
            Table::built_in().unwrap().agents().len() + 1
        );
        assert!(table.get("codex").is_some());
    }
}
