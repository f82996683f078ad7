//! What the caller says: the row, and which of its own words count.

use std::path::Path;

use records::{Failure, Record};
use serde_json::value::RawValue;

use agents::Agent;

/// The keys of a row that are read. All others are the user's own.
const KNOWN: [&str; 6] = [
    "session_id",
    "session_id_source",
    "session_id_verified",
    "minted_by",
    "agent",
    "cwd",
];

/// What `minted_by` says of an id that the breaker made.
pub const BREAKER: &str = "breaker";

/// How a session came by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was given to the agent at its first launch.
    Assigned,
    /// The agent made it, and it was found out.
    Discovered,
    /// There is none yet, or it is not known whether the agent took it.
    Pending,
}

impl Source {
    /// As records write it.
    pub fn word(self) -> &'static str {
        match self {
            Source::Assigned => "assigned",
            Source::Discovered => "discovered",
            Source::Pending => "pending",
        }
    }

    fn parse(word: &str) -> Option<Source> {
        let all = [Source::Assigned, Source::Discovered, Source::Pending];
        all.into_iter().find(|source| source.word() == word)
    }
}

/// The user's own record of a session.
#[derive(Debug, Default)]
pub struct Row {
    session_id: Option<String>,
    source: Option<Source>,
    verified: Option<bool>,
    minted_by: Option<String>,
    agent: Option<String>,
    cwd: Option<String>,
    others: Vec<(String, Box<RawValue>)>,
}

impl Row {
    /// Reads a row. A decision is one, too: its own keys are not kept a second time, those that it
    /// has kept of an earlier row are.
    ///
    /// # Errors
    ///
    /// Says which key does not fit.
    pub fn read(record: &Record<'_>) -> Result<Row, String> {
        let is_decision = record.kind().as_deref() == Some("decision");
        let word = record
            .decode_at::<Option<String>>("session_id_source")?
            .flatten();
        let source = match word.as_deref() {
            None => None,
            Some(word) => Some(Source::parse(word).ok_or(
                "session_id_source: it is neither 'assigned', 'discovered' nor 'pending'",
            )?),
        };
        let others = if is_decision {
            record
                .decode_at::<Option<Others>>("row")?
                .flatten()
                .map_or(Vec::new(), |row| row.0)
        } else {
            others(record)
        };
        Ok(Row {
            session_id: record.decode_at::<Option<String>>("session_id")?.flatten(),
            source,
            verified: record
                .decode_at::<Option<bool>>("session_id_verified")?
                .flatten(),
            minted_by: record.decode_at::<Option<String>>("minted_by")?.flatten(),
            agent: record.decode_at::<Option<String>>("agent")?.flatten(),
            cwd: record.decode_at::<Option<String>>("cwd")?.flatten(),
            others,
        })
    }

    /// The user's own keys, in their order.
    pub fn into_others(self) -> Vec<(String, Box<RawValue>)> {
        self.others
    }
}

fn others(record: &Record<'_>) -> Vec<(String, Box<RawValue>)> {
    let members = record.members().iter().enumerate();
    let last_of_its_name = |(i, key): (usize, &str)| {
        let later = &record.members()[i + 1..];
        !later.iter().any(|other| other.key == key)
    };
    members
        .filter(|(_, member)| !KNOWN.contains(&member.key.as_ref()))
        .filter(|(i, member)| last_of_its_name((*i, member.key.as_ref())))
        .map(|(_, member)| (member.key.clone().into_owned(), member.value.to_owned()))
        .collect()
}

/// An object whose values stay as they are written.
struct Others(Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Others {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Others, D::Error> {
        let text = <Box<RawValue>>::deserialize(reader)?;
        let record = Record::parse(text.get().as_bytes()).map_err(serde::de::Error::custom)?;
        let members = record.members().iter();
        let pairs = members.map(|one| (one.key.clone().into_owned(), one.value.to_owned()));
        Ok(Others(pairs.collect()))
    }
}

/// The options that a row can have the same of. They win, also the empty id, which means none.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--agent`
    pub agent: Option<String>,
    /// `--cwd`
    pub cwd: Option<String>,
    /// `--session-id`
    pub session_id: Option<String>,
}

/// The session in question, as the caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The id; `None` where there is none.
    pub id: Option<String>,
    /// How it came by it.
    pub source: Source,
    /// Whether a transcript of it has been seen before.
    pub verified: bool,
    /// Who minted it, as the row says.
    pub minted_by: Option<String>,
    /// The directory that the agent is to be launched in: absolute.
    pub cwd: String,
}

/// The name of the agent.
///
/// # Errors
///
/// Neither the options nor the row name one: wrong usage.
pub fn agent_name(given: &Given, row: &Row) -> Result<String, Failure> {
    let name = given.agent.clone().or_else(|| row.agent.clone());
    name.ok_or_else(|| Failure::usage("which agent? Neither --agent nor the row says"))
}

/// The session.
///
/// # Errors
///
/// Wrong usage: no directory, or one that is not there; an id that is none of this agent's.
pub fn session(given: &Given, row: &Row, agent: &Agent) -> Result<Session, Failure> {
    let cwd = given.cwd.as_deref().or(row.cwd.as_deref());
    let cwd = directory(cwd.filter(|cwd| !cwd.is_empty()))?;
    let id = given.session_id.as_deref().or(row.session_id.as_deref());
    let id = id.filter(|id| !id.is_empty());
    if let Some(id) = id
        && !agent.shape.fits(id)
    {
        let shown: String = id.chars().take(100).collect();
        let (name, shape) = (&agent.name, &agent.shape);
        return Err(Failure::usage(format_args!(
            "'{shown}' is no session id of {name} (its ids have the form {shape})"
        )));
    }
    // What the row says, it says of its own id.
    let same = match (id, row.session_id.as_deref()) {
        (Some(id), Some(of_row)) => agent.shape.same(id, of_row),
        (None, None) => true,
        (id, of_row) => id.is_none() && of_row == Some(""),
    };
    let described = same.then_some(row);
    let default = if agent.takes_ids() {
        Source::Assigned
    } else {
        Source::Discovered
    };
    Ok(Session {
        id: id.map(str::to_owned),
        source: described.and_then(|row| row.source).unwrap_or(default),
        verified: described.and_then(|row| row.verified).unwrap_or(false),
        minted_by: described.and_then(|row| row.minted_by.clone()),
        cwd,
    })
}

fn directory(cwd: Option<&str>) -> Result<String, Failure> {
    let usage = |why: String| Failure::usage(why);
    let cwd =
        cwd.ok_or_else(|| usage("in which directory? Neither --cwd nor the row says".to_owned()))?;
    let metadata = std::fs::metadata(cwd).map_err(|error| usage(format!("{cwd}: {error}")))?;
    if !metadata.is_dir() {
        return Err(usage(format!("{cwd}: not a directory")));
    }
    let absolute =
        std::path::absolute(Path::new(cwd)).map_err(|error| usage(format!("{cwd}: {error}")))?;
    absolute
        .into_os_string()
        .into_string()
        .map_err(|_| usage(format!("{cwd}: the working directory's name is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A1: &str = "00000000-0000-4000-8000-0000000000a1";

    fn row(text: &str) -> Row {
        Row::read(&Record::parse(text.as_bytes()).unwrap()).unwrap()
    }

    fn agent(name: &str) -> Agent {
        agents::Table::built_in()
            .unwrap()
            .get(name)
            .unwrap()
            .clone()
    }

    fn given(id: Option<&str>) -> Given {
        Given {
            agent: None,
            cwd: Some("/".to_owned()),
            session_id: id.map(str::to_owned),
        }
    }

    #[test]
    fn options_win_over_the_row() {
        let full = format!(
            r#"{{"session_id":"{A1}","session_id_source":"discovered","session_id_verified":true,"minted_by":"breaker","agent":"claude","cwd":"/usr"}}"#
        );
        let claude = agent("claude");
        let from_row = session(&Given::default(), &row(&full), &claude).unwrap();
        let want = Session {
            id: Some(A1.to_owned()),
            source: Source::Discovered,
            verified: true,
            minted_by: Some("breaker".to_owned()),
            cwd: "/usr".to_owned(),
        };
        assert_eq!(from_row, want);
        // The same id in another spelling is what the row speaks of; another id is not.
        let same = session(&given(Some(&A1.to_uppercase())), &row(&full), &claude).unwrap();
        assert!(same.verified && same.cwd == "/");
        let other = A1.replace("a1", "b2");
        let other = session(&given(Some(&other)), &row(&full), &claude).unwrap();
        assert_eq!((other.source, other.verified), (Source::Assigned, false));
        assert_eq!(other.minted_by, None);
        // An empty id means none.
        let none = session(&given(Some("")), &row(&full), &claude).unwrap();
        assert_eq!((none.id, none.verified), (None, false));
        assert_eq!(agent_name(&given(None), &row(&full)).unwrap(), "claude");
    }

    #[test]
    fn what_is_not_said() {
        let defaults = [("claude", Source::Assigned), ("codex", Source::Discovered)];
        for (name, source) in defaults {
            let session = session(&given(None), &Row::default(), &agent(name)).unwrap();
            assert_eq!((session.source, session.verified), (source, false));
            assert_eq!(session.id, None);
        }
        let pending = row(r#"{"session_id":null,"session_id_source":"pending"}"#);
        let pending = session(&given(None), &pending, &agent("codex")).unwrap();
        assert_eq!(pending.source, Source::Pending);
    }

    #[test]
    fn what_is_wrong_usage() {
        let claude = agent("claude");
        let repeated = format!("{A1}\n{A1}");
        for id in [" ", "x", "../x", &repeated, "a\0", &"a".repeat(10 << 20)] {
            let failure = session(&given(Some(id)), &Row::default(), &claude).unwrap_err();
            assert_eq!(failure.status().code(), 2, "{id:.40}");
            assert!(failure.message().len() < 400);
        }
        for cwd in ["", "/no/such/directory", "/dev/null"] {
            let given = Given {
                cwd: Some(cwd.to_owned()),
                ..Given::default()
            };
            let failure = session(&given, &Row::default(), &claude).unwrap_err();
            assert_eq!(failure.status().code(), 2, "{cwd}");
        }
        assert!(agent_name(&Given::default(), &Row::default()).is_err());
        for text in [
            r#"{"session_id":7}"#,
            r#"{"session_id_source":"guessed"}"#,
            r#"{"session_id_verified":"yes"}"#,
        ] {
            assert!(
                Row::read(&Record::parse(text.as_bytes()).unwrap()).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn other_keys_are_kept_as_they_are_written() {
        let kept = |text: &str| {
            let others = row(text).into_others().into_iter();
            let shown = others.map(|(key, value)| format!("{key}={}", value.get()));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            kept(
                r#"{"name":"x","session_id":null,"n":1e400,"name":"y","big":18446744073709551616}"#
            ),
            r#"n=1e400 name="y" big=18446744073709551616"#
        );
        let decision = r#"{"v":1,"type":"decision","action":"mint","argv":["a"],"row":{"name":"x","argv":1.0}}"#;
        assert_eq!(kept(decision), r#"name="x" argv=1.0"#);
        assert_eq!(kept(r#"{"type":"decision","row":null}"#), "");
    }
}
