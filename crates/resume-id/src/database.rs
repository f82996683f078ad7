//! Sessions that are rows of a database, and whether it has them where they are looked for.

use std::io;
use std::path::{Path, PathBuf};

use agents::sqlite::{self, Column};
use agents::{Agent, Environment, Transcripts};
use records::Deadline;

/// The table with an agent's sessions.
#[derive(Debug)]
pub struct Rows {
    database: PathBuf,
    table: String,
}

impl Rows {
    /// The table of `agent`, whose files are below `root`, in the database that a variable names or
    /// in its usual one; `None` where sessions are files.
    pub fn of(agent: &Agent, root: &Path, environment: &Environment) -> Option<Rows> {
        let Some(Transcripts::Sqlite(form)) = &agent.transcripts else {
            return None;
        };
        let name = form.path_variable.as_deref();
        let path = name.and_then(|name| environment.get(name));
        let path = path.filter(|path| !path.is_empty());
        Some(Rows {
            database: match path {
                Some(path) => root.join(path),
                None => root.join(&form.path),
            },
            table: form.table.clone(),
        })
    }

    /// The same in the database that was looked at before, where one was.
    pub fn in_database(self, path: Option<PathBuf>) -> Rows {
        Rows {
            database: path.unwrap_or(self.database),
            ..self
        }
    }

    /// Refuses a database without the table. What is in it may be conversations under another name,
    /// as after an update of the agent, so no session may be taken for one that never was.
    ///
    /// No database at all is another matter, and so is one of no bytes, which SQLite makes before it
    /// is first written to: no conversation is in it under any name.
    ///
    /// # Errors
    ///
    /// There is no such table, in words.
    pub fn check(&self, deadline: Deadline) -> Result<(), String> {
        // Of a table that is not there no column is missed. No table has one without a name.
        let nameless = [Some(Column::Needed(String::new()))];
        let looked = sqlite::rows(&self.database, &self.table, &nameless, deadline, &|_| false);
        if looked.is_err() || self.is_empty() {
            // Whatever else is wrong with it is found out when it is read.
            return Ok(());
        }
        Err(format!(
            "{}: there is no table {} in it",
            self.database.display(),
            self.table
        ))
    }

    fn is_empty(&self) -> bool {
        match std::fs::metadata(&self.database) {
            Ok(file) => file.len() == 0,
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_database_without_the_table() {
        let root = tempfile::tempdir().unwrap();
        let table = agents::Table::built_in().unwrap();
        let mut environment = Environment::default();
        let check = |environment: &Environment| {
            let rows = Rows::of(table.get("opencode").unwrap(), root.path(), environment);
            rows.unwrap()
                .check(Deadline::after(Duration::from_secs(20)))
        };
        let make = |name: &str, sql: &str| {
            let mut command = Command::new("sqlite3");
            command.arg(root.path().join(name)).arg(sql);
            assert!(command.status().unwrap().success());
        };
        assert_eq!(check(&environment), Ok(()));
        std::fs::write(root.path().join("opencode.db"), "").unwrap();
        assert_eq!(check(&environment), Ok(()));
        make("opencode.db", "create table sessions(id text, dir text);");
        let why = check(&environment).unwrap_err();
        assert!(
            why.ends_with("opencode.db: there is no table session in it"),
            "{why}"
        );
        // A table of another make is there, and what it lacks is said by whoever reads it.
        make("opencode.db", "create table session(id text);");
        assert_eq!(check(&environment), Ok(()));

        environment.set("OPENCODE_DB", Some("mine.db".into()));
        assert_eq!(check(&environment), Ok(()));
        make("mine.db", "create table other(id text);");
        assert!(check(&environment).unwrap_err().contains("mine.db"));
        assert!(Rows::of(table.get("claude").unwrap(), root.path(), &environment).is_none());
    }
}
