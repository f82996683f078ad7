//! Where an agent keeps its sessions: looking for one, and listing those of a directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use records::Deadline;

use crate::cwd::Cwds;
use crate::encode::CwdEncoding;
use crate::env::Environment;
use crate::glob::{self, Hit, Wanted};
use crate::jsonl::{self, Told};
use crate::open;
use crate::sqlite::{self, Column, Value};
use crate::table::{Agent, CwdFile, JsonDocument, JsonLines, OpaqueFile, SqliteTable, Transcripts};

/// The largest of the small files that are read whole, in bytes.
const MAX_SMALL: u64 = 4 << 20;

/// What a transcript is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At least one line is of a user or of the agent: it can be resumed.
    Conversational,
    /// It is there, but empty or metadata only: the agent then refuses both to begin under its id
    /// and to resume it.
    Unusable,
}

/// One session, as its agent has it on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The file, or the database with the row.
    pub path: PathBuf,
    /// The id, as it is stored.
    pub id: String,
    /// The working directory, where the transcript has it.
    pub cwd: Option<String>,
    /// Whether that is the directory in question; `None` where nothing says so or contradicts.
    pub cwd_matches: Option<bool>,
    /// What it is good for.
    pub state: State,
    /// The lines of a user or of the agent; `None` where they were not counted.
    pub turns: Option<u64>,
    /// Whether a line was no JSON object, as after a crash in the middle of writing one.
    pub damaged: bool,
    /// When it was last written to, where that is known.
    pub modified: Option<SystemTime>,
}

/// The sessions of one agent, seen from one working directory.
#[derive(Clone, Debug)]
pub struct Store {
    agent: Agent,
    root: PathBuf,
    /// The database that a variable names, in place of the one below the root.
    database: Option<PathBuf>,
    cwds: Cwds,
    deadline: Deadline,
}

impl Store {
    /// The sessions of `agent` as the environment of the agent to be launched has them, seen from
    /// `cwd`. A variable with a relative path is relative to that, where the agent begins.
    ///
    /// # Errors
    ///
    /// The agent's root directory is not known, as without `HOME`.
    pub fn new(
        agent: &Agent,
        environment: &Environment,
        cwd: &str,
        deadline: Deadline,
    ) -> Result<Store, String> {
        if let Some((agent, root)) = agent.moved(environment) {
            return Ok(Store::at(&agent, Path::new(cwd).join(root), cwd, deadline));
        }
        let root = agent.root(environment);
        if root.is_none() && agent.transcripts.is_some() {
            return Err(format!(
                "where {} keeps its sessions is not known",
                agent.name
            ));
        }
        let root = root.map(|root| Path::new(cwd).join(root));
        let mut store = Store::at(agent, root.unwrap_or_default(), cwd, deadline);
        if let Some(Transcripts::Sqlite(table)) = &agent.transcripts {
            let name = table.path_variable.as_deref();
            let path = name.and_then(|name| environment.get(name));
            let path = path.filter(|path| !path.is_empty());
            store.database = path.map(|path| store.root.join(path));
        }
        Ok(store)
    }

    /// The sessions of `agent` below the directory `root`, seen from `cwd`.
    pub fn at(agent: &Agent, root: PathBuf, cwd: &str, deadline: Deadline) -> Store {
        Store {
            agent: agent.clone(),
            root,
            database: None,
            cwds: Cwds::new(cwd),
            deadline,
        }
    }

    /// The same with the database `path` in place of the one below the root. It is for agents whose
    /// sessions are rows; others have none.
    #[must_use]
    pub fn with_database(mut self, path: Option<PathBuf>) -> Store {
        self.database = path;
        self
    }

    /// The agent's root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The transcripts of the session `id`: those that may be of this directory, or else all.
    ///
    /// # Errors
    ///
    /// In words: something that may be one cannot be read, or not before the deadline.
    pub fn find(&self, id: &str) -> Result<Vec<Transcript>, String> {
        let mut found = self.search(Some(id), true)?;
        if !found.iter().any(|one| one.cwd_matches != Some(false)) {
            found = self.search(Some(id), false)?;
        }
        Ok(found)
    }

    /// The transcripts that are of this directory for certain, newest first.
    ///
    /// # Errors
    ///
    /// As [`Store::find`].
    pub fn list(&self) -> Result<Vec<Transcript>, String> {
        let mut found = self.search(None, true)?;
        found.retain(|one| one.cwd_matches == Some(true));
        found.sort_by(|a, b| (&b.modified, &b.id).cmp(&(&a.modified, &a.id)));
        Ok(found)
    }

    /// With `near`, only where the agent itself would look from this directory, as far as that can
    /// be known.
    fn search(&self, id: Option<&str>, near: bool) -> Result<Vec<Transcript>, String> {
        let outcome = match &self.agent.transcripts {
            None => return Ok(Vec::new()),
            Some(Transcripts::Sqlite(table)) => return self.rows(table, id),
            Some(Transcripts::Jsonl(form)) => {
                self.files(&form.path, form.cwd_in_path, id, near, &|hit, file| {
                    self.lines(form, hit, file, id)
                })
            }
            Some(Transcripts::Json(form)) => {
                self.files(&form.path, form.cwd_in_path, id, near, &|hit, file| {
                    self.document(form, hit, file)
                })
            }
            Some(Transcripts::File(OpaqueFile { path })) => {
                self.files(path, None, id, near, &|_, file| self.opaque(&file))
            }
        };
        outcome.map_err(|error| error.to_string())
    }

    fn files(
        &self,
        pattern: &str,
        encoding: Option<CwdEncoding>,
        id: Option<&str>,
        near: bool,
        read: &dyn Fn(&Hit, File) -> io::Result<Option<Told>>,
    ) -> io::Result<Vec<Transcript>> {
        let names = encoding
            .map(|encoding| self.cwd_names(encoding))
            .transpose()?;
        let complete = encoding.is_some_and(|encoding| self.is_complete(encoding));
        let wanted = Wanted {
            id,
            shape: &self.agent.shape,
            cwds: names.as_deref().filter(|_| near && complete),
            deadline: self.deadline,
        };
        let mut found = Vec::new();
        for hit in glob::walk(&self.root, pattern, &wanted)? {
            let in_place = match (&names, &hit.cwd) {
                (Some(names), Some(name)) => Some(names.contains(name)),
                _ => None,
            };
            let placed = |inside: Option<bool>| match (in_place, inside) {
                // Where the name is known for certain, the agent looks nowhere else.
                (Some(false), _) if complete => Some(false),
                (Some(true), None) => Some(true),
                (_, inside) => inside,
            };
            found.extend(self.transcript(&hit, id, &placed, read)?);
        }
        Ok(found)
    }

    fn transcript(
        &self,
        hit: &Hit,
        id: Option<&str>,
        placed: &dyn Fn(Option<bool>) -> Option<bool>,
        read: &dyn Fn(&Hit, File) -> io::Result<Option<Told>>,
    ) -> io::Result<Option<Transcript>> {
        let named = |error: io::Error| glob::at(&hit.path, &error);
        let (told, modified) = match open::regular(&hit.path) {
            Ok(None) => return Ok(None),
            Ok(Some(file)) => {
                let modified = file.metadata().and_then(|file| file.modified()).ok();
                match read(hit, file).map_err(named)? {
                    Some(told) => (told, modified),
                    None => return Ok(None),
                }
            }
            // A directory, a FIFO: the agent finds the name taken, and nothing to resume.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => (Told::default(), None),
            Err(error) => return Err(named(error)),
        };
        let known = told.id.or_else(|| hit.id.clone()).or(id.map(str::to_owned));
        Ok(known.map(|id| Transcript {
            path: hit.path.clone(),
            id,
            cwd_matches: placed(told.cwd_matches),
            cwd: told.cwd,
            state: state(told.conversational),
            turns: told.turns,
            damaged: told.damaged,
            modified,
        }))
    }

    /// A transcript of JSON lines; `None` if it turns out to be of another session.
    fn lines(
        &self,
        form: &JsonLines,
        hit: &Hit,
        file: File,
        id: Option<&str>,
    ) -> io::Result<Option<Told>> {
        let size = file.metadata()?.len();
        let mut told = jsonl::read(file, size, form, &self.cwds, self.deadline)?;
        if let (Some(wanted), Some(inside)) = (id, &told.id)
            && !self.agent.shape.same(wanted, inside)
        {
            return Ok(None);
        }
        if let Some(cwd_file) = &form.cwd_file
            && told.cwd.is_none()
            && let Some(cwd) = cwd_beside(&hit.path, cwd_file)
        {
            told.cwd_matches.get_or_insert_with(|| self.cwds.has(&cwd));
            told.cwd = Some(cwd);
        }
        Ok(Some(told))
    }

    fn document(&self, form: &JsonDocument, hit: &Hit, file: File) -> io::Result<Option<Told>> {
        let text = small(file)?;
        let Ok(record) = records::Record::parse(text.as_bytes()) else {
            return Ok(Some(Told {
                damaged: !text.is_empty(),
                ..Told::default()
            }));
        };
        let cwd = record.str(&form.cwd).map(|cwd| cwd.into_owned());
        let id = record.str(&form.id).map(|id| id.into_owned());
        let of_another = match (&hit.id, &id) {
            (Some(named), Some(inside)) => !self.agent.shape.same(named, inside),
            _ => false,
        };
        Ok((!of_another).then(|| Told {
            conversational: id.is_some(),
            id,
            cwd_matches: cwd.as_deref().map(|cwd| self.cwds.has(cwd)),
            cwd,
            turns: None,
            damaged: false,
        }))
    }

    fn opaque(&self, file: &File) -> io::Result<Option<Told>> {
        Ok(Some(Told {
            conversational: file.metadata()?.len() > 0,
            ..Told::default()
        }))
    }

    fn rows(&self, table: &SqliteTable, id: Option<&str>) -> Result<Vec<Transcript>, String> {
        let path = self.database.clone().unwrap_or(self.root.join(&table.path));
        let columns = [
            Some(Column::Needed(table.id.clone())),
            Some(Column::Needed(table.cwd.clone())),
            table.turns.clone().map(Column::Needed),
            table.modified_ms.clone().map(Column::Wanted),
            table.parent.clone().map(Column::Wanted),
        ];
        let wanted = |row: &[Value]| match (row, id) {
            ([one, ..], Some(id)) => one.text().is_some_and(|one| self.agent.shape.same(one, id)),
            ([.., parent], None) => parent.text().is_none(),
            ([], None) | ([], Some(_)) => false,
        };
        let rows = sqlite::rows(&path, &table.table, &columns, self.deadline, &wanted)?;
        let transcript = |row: Vec<Value>| {
            let [id, cwd, turns, modified, _] = &row[..] else {
                return None;
            };
            let cwd = cwd.text().map(str::to_owned);
            let modified = modified.count().map(Duration::from_millis);
            Some(Transcript {
                path: path.clone(),
                id: id.text()?.to_owned(),
                cwd_matches: cwd.as_deref().map(|cwd| self.cwds.has(cwd)),
                cwd,
                state: state(table.turns.is_none() || turns.count().is_some_and(|n| n > 0)),
                turns: turns.count(),
                damaged: false,
                modified: modified.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)),
            })
        };
        Ok(rows.into_iter().filter_map(transcript).collect())
    }

    /// The names that the agent may have made of this directory.
    fn cwd_names(&self, encoding: CwdEncoding) -> io::Result<Vec<String>> {
        let names = self.cwds.names();
        let mut encoded: Vec<String> = names.iter().map(|name| encoding.encode(name)).collect();
        if encoding == CwdEncoding::Gemini {
            encoded.extend(self.gemini_projects(names)?);
        }
        encoded.dedup();
        Ok(encoded)
    }

    /// The names that gemini's `projects.json` has for `cwds`.
    fn gemini_projects(&self, cwds: &[String]) -> io::Result<Vec<String>> {
        let path = self.root.join("projects.json");
        let Some(file) = open::regular(&path).map_err(|error| glob::at(&path, &error))? else {
            return Ok(Vec::new());
        };
        let text = small(file).map_err(|error| glob::at(&path, &error))?;
        let Ok(record) = records::Record::parse(text.as_bytes()) else {
            return Ok(Vec::new());
        };
        let projects: std::collections::HashMap<String, String> = record
            .decode_at("projects")
            .ok()
            .flatten()
            .unwrap_or_default();
        let known = cwds.iter().filter_map(|cwd| projects.get(cwd).cloned());
        Ok(known.collect())
    }

    /// Whether the encoding alone says where the agent looks.
    fn is_complete(&self, encoding: CwdEncoding) -> bool {
        match encoding {
            CwdEncoding::Claude | CwdEncoding::Qwen | CwdEncoding::Pi => true,
            CwdEncoding::Grok => {
                let mut names = self.cwds.names().iter();
                names.all(|name| encoding.encode(name).len() <= 255)
            }
            CwdEncoding::Gemini => false,
        }
    }
}

fn state(conversational: bool) -> State {
    if conversational {
        State::Conversational
    } else {
        State::Unusable
    }
}

fn small(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_SMALL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The working directory that a file beside the transcript names.
fn cwd_beside(transcript: &Path, form: &CwdFile) -> Option<String> {
    let file = open::regular(&transcript.parent()?.join(&form.path)).ok()??;
    let text = small(file).ok()?;
    match &form.yaml_key {
        Some(key) => yaml_string(&text, key),
        None => Some(text.trim_end_matches(['\n', '\r']).to_owned()),
    }
    .filter(|cwd| !cwd.is_empty())
}

/// The string at `key` on the outermost level of a YAML document, written in one line.
pub fn yaml_string(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.strip_prefix(':')?;
        (value.is_empty() || value.starts_with([' ', '\t'])).then_some(value.trim())
    })?;
    if line.starts_with('"') {
        return serde_json::from_str(line).ok();
    }
    match line.strip_prefix('\'') {
        Some(rest) => Some(rest.strip_suffix('\'')?.replace("''", "'")),
        None => Some(
            line.split(" #")
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
