//! The environment of the agent that is to be launched, which need not be the caller's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::table::{Agent, JsonLines, Transcripts};

/// A set of environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The variables of this process.
    pub fn own() -> Environment {
        std::env::vars_os().collect()
    }

    /// Sets a variable, or removes it.
    pub fn set(&mut self, name: impl Into<OsString>, value: Option<OsString>) {
        match value {
            Some(value) => self.variables.insert(name.into(), value),
            None => self.variables.remove(&name.into()),
        };
    }

    /// The value of a variable, if it is set at all.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// The value of a variable that is set and not empty, if it is text.
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// `path` with its variables filled in; `None` unless all of them are set, `HOME` for `~`.
    fn expand(&self, path: &str) -> Option<PathBuf> {
        let home = || self.text("HOME");
        let variable = |name: &str| self.text(name).map(Some).ok_or(());
        if path.starts_with('~') && home().is_none() {
            return None;
        }
        let path = shellexpand::full_with_context(path, home, variable).ok()?;
        Some(PathBuf::from(path.as_ref()))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Environment {
        Environment {
            variables: variables.into_iter().collect(),
        }
    }
}

impl Agent {
    /// The directory of this agent's files under `environment`: the first of the entry's own whose
    /// variables are all set. `None` if there is none, as without `HOME`.
    pub fn root(&self, environment: &Environment) -> Option<PathBuf> {
        let mut roots = self.root.iter();
        roots.find_map(|path| environment.expand(path))
    }

    /// This agent and the directory that its transcripts are below, where `environment` has a
    /// variable that puts them elsewhere.
    pub(crate) fn moved(&self, environment: &Environment) -> Option<(Agent, PathBuf)> {
        let Some(Transcripts::Jsonl(form)) = &self.transcripts else {
            return None;
        };
        let mut places = form.moved.iter();
        let place = places.find_map(|one| Some((one, environment.expand(&one.root)?)));
        let (moved, root) = place?;
        let form = JsonLines {
            path: moved.path.clone(),
            cwd_in_path: None,
            ..form.clone()
        };
        let agent = Agent {
            transcripts: Some(Transcripts::Jsonl(form)),
            ..self.clone()
        };
        Some((agent, root))
    }

    /// The variables among those that must not be inherited which `environment` has.
    pub fn to_unset(&self, environment: &Environment) -> Vec<String> {
        let names = self.unset.iter();
        names
            .filter(|name| environment.get(name).is_some())
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    fn environment(text: &str) -> Environment {
        let pairs = text
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn roots() {
        let table = Table::built_in().unwrap();
        let rows = [
            ("claude", "HOME=/h", Some("/h/.claude")),
            ("claude", "HOME=/h CLAUDE_CONFIG_DIR=/c", Some("/c")),
            ("claude", "HOME=/h CLAUDE_CONFIG_DIR=", Some("/h/.claude")),
            ("claude", "", None),
            ("opencode", "HOME=/h XDG_DATA_HOME=/d", Some("/d/opencode")),
            ("opencode", "HOME=/h", Some("/h/.local/share/opencode")),
            (
                "cursor-agent",
                "HOME=/h XDG_CONFIG_HOME=/x",
                Some("/x/cursor"),
            ),
        ];
        for (name, variables, want) in rows {
            let root = table.get(name).unwrap().root(&environment(variables));
            assert_eq!(root, want.map(PathBuf::from), "{name} {variables}");
        }
    }

    #[test]
    fn variables_that_must_go() {
        let table = Table::built_in().unwrap();
        let claude = table.get("claude").unwrap();
        assert!(claude.to_unset(&environment("HOME=/h")).is_empty());
        assert_eq!(
            claude.to_unset(&environment("CLAUDECODE=1 CLAUDE_CODE_CHILD_SESSION=1")),
            ["CLAUDE_CODE_CHILD_SESSION", "CLAUDECODE"]
        );
    }
}
