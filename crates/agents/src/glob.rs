//! Walking a directory along a pattern such as `projects/{cwd}/{id}.jsonl`.

use std::io;
use std::path::{Path, PathBuf};

use records::Deadline;

use crate::shape::Shape;

/// What the names in a pattern may stand for.
pub(crate) struct Wanted<'a> {
    /// The id that is looked for; `None` for all of them.
    pub(crate) id: Option<&'a str>,
    /// The form of the ids.
    pub(crate) shape: &'a Shape,
    /// The names that `{cwd}` may have; `None` for any name.
    pub(crate) cwds: Option<&'a [String]>,
    /// When to stop.
    pub(crate) deadline: Deadline,
}

/// A file that a pattern leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) path: PathBuf,
    /// The id as the path spells it, where it has it whole.
    pub(crate) id: Option<String>,
    /// What stood for `{cwd}`.
    pub(crate) cwd: Option<String>,
}

/// A name of a pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(String),
    /// Any text.
    Any,
    Id,
    /// The first eight characters of the id.
    IdStart,
    Cwd,
}

/// Everything below `root` that fits `pattern`. What is not there is no error: no hit.
///
/// # Errors
///
/// A directory on the way cannot be read; of kind `TimedOut` at the deadline.
pub(crate) fn walk(root: &Path, pattern: &str, wanted: &Wanted<'_>) -> io::Result<Vec<Hit>> {
    let mut hits = vec![Hit {
        path: root.to_owned(),
        id: None,
        cwd: None,
    }];
    for name in pattern.split('/') {
        let tokens = tokens(name);
        let mut next = Vec::new();
        for hit in hits {
            if wanted.deadline.passed() {
                let why = format!("{}: reading it takes too long", hit.path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            step(hit, &tokens, wanted, &mut next)?;
        }
        hits = next;
    }
    hits.sort();
    hits.dedup();
    Ok(hits)
}

/// One name further: by name where all possible names are known, else by reading the directory.
fn step(hit: Hit, tokens: &[Token], wanted: &Wanted<'_>, next: &mut Vec<Hit>) -> io::Result<()> {
    let Some(names) = known_names(tokens, wanted) else {
        return read(&hit, tokens, wanted, next);
    };
    for name in names {
        let path = hit.path.join(&name);
        if exists(&path)?
            && let Some(found) = fit(&name, tokens, wanted)
        {
            next.push(found.after(&hit, path));
        }
    }
    Ok(())
}

fn read(hit: &Hit, tokens: &[Token], wanted: &Wanted<'_>, next: &mut Vec<Hit>) -> io::Result<()> {
    let entries = match std::fs::read_dir(&hit.path) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(()),
        Err(error) => return Err(at(&hit.path, &error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| at(&hit.path, &error))?;
        let name = entry.file_name();
        if let Some(found) = name.to_str().and_then(|name| fit(name, tokens, wanted)) {
            next.push(found.after(hit, entry.path()));
        }
    }
    Ok(())
}

/// What a name has told.
#[derive(Clone, Default)]
struct Found {
    id: Option<String>,
    cwd: Option<String>,
}

impl Found {
    fn after(self, hit: &Hit, path: PathBuf) -> Hit {
        Hit {
            path,
            id: self.id.or_else(|| hit.id.clone()),
            cwd: self.cwd.or_else(|| hit.cwd.clone()),
        }
    }
}

fn exists(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if is_absence(&error) => Ok(false),
        Err(error) => Err(at(path, &error)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// All names that fit, where they can be listed. An id whose case does not count may have been
/// written as it is stored, in lower case or in upper case; no program mixes them.
fn known_names(tokens: &[Token], wanted: &Wanted<'_>) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    for token in tokens {
        let choices: Vec<String> = match token {
            Token::Literal(text) => vec![text.clone()],
            Token::Any => return None,
            Token::Id => spellings(wanted.id?, wanted.shape),
            Token::IdStart => spellings(start(wanted.id?), wanted.shape),
            Token::Cwd => wanted.cwds?.to_vec(),
        };
        names = names
            .iter()
            .flat_map(|name| choices.iter().map(move |choice| format!("{name}{choice}")))
            .collect();
    }
    names.sort();
    names.dedup();
    Some(names)
}

fn spellings(id: &str, shape: &Shape) -> Vec<String> {
    let mut all = vec![id.to_owned()];
    if shape.ignores_case() {
        all.push(id.to_ascii_lowercase());
        all.push(id.to_ascii_uppercase());
    }
    all
}

fn start(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Whether `name` fits, and what it tells.
fn fit(name: &str, tokens: &[Token], wanted: &Wanted<'_>) -> Option<Found> {
    let Some((token, rest)) = tokens.split_first() else {
        return name.is_empty().then(Found::default);
    };
    if let Token::Literal(text) = token {
        return fit(name.strip_prefix(text.as_str())?, rest, wanted);
    }
    let ends = (0..=name.len()).filter(|end| name.is_char_boundary(*end));
    for end in ends {
        let (part, after) = name.split_at(end);
        if !token.takes(part, wanted) {
            continue;
        }
        if let Some(mut found) = fit(after, rest, wanted) {
            match token {
                Token::Id => found.id = Some(part.to_owned()),
                Token::Cwd => found.cwd = Some(part.to_owned()),
                _ => {}
            }
            return Some(found);
        }
    }
    None
}

impl Token {
    fn takes(&self, part: &str, wanted: &Wanted<'_>) -> bool {
        let same = |id: &str| match wanted.shape.ignores_case() {
            true => id.eq_ignore_ascii_case(part),
            false => id == part,
        };
        match self {
            Token::Literal(text) => text == part,
            Token::Any => true,
            Token::Id => match wanted.id {
                Some(id) => same(id),
                None => wanted.shape.fits(part),
            },
            Token::IdStart => match wanted.id {
                Some(id) => same(start(id)),
                None => !part.is_empty(),
            },
            Token::Cwd => match wanted.cwds {
                Some(names) => names.iter().any(|name| name == part),
                None => !part.is_empty(),
            },
        }
    }
}

fn tokens(name: &str) -> Vec<Token> {
    let placeholders = [
        ("*", Token::Any),
        ("{id}", Token::Id),
        ("{id8}", Token::IdStart),
        ("{cwd}", Token::Cwd),
    ];
    let mut tokens = Vec::new();
    let mut literal = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let known = placeholders.iter().find(|(text, _)| rest.starts_with(text));
        match known {
            Some((text, token)) => {
                if !literal.is_empty() {
                    tokens.push(Token::Literal(std::mem::take(&mut literal)));
                }
                tokens.push(token.clone());
                rest = &rest[text.len()..];
            }
            None => {
                literal.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    if !literal.is_empty() {
        tokens.push(Token::Literal(literal));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ID: &str = "00000000-0000-4000-8000-0000000000a1";

    fn hits(root: &Path, pattern: &str, id: Option<&str>, cwds: Option<&[String]>) -> Vec<String> {
        let shape = Shape::try_from("uuid".to_owned()).unwrap();
        let deadline = Deadline::after(Duration::from_secs(60));
        let wanted = Wanted {
            id,
            shape: &shape,
            cwds,
            deadline,
        };
        let hits = walk(root, pattern, &wanted).unwrap();
        hits.into_iter()
            .map(|hit| {
                let path = hit
                    .path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                let id = hit.id.map_or(String::new(), |id| format!(" id={id}"));
                let cwd = hit.cwd.map_or(String::new(), |cwd| format!(" cwd={cwd}"));
                path + &id + &cwd
            })
            .collect()
    }

    #[test]
    fn files_along_a_pattern() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let upper = ID.to_ascii_uppercase();
        for path in [
            format!("p/-a/{ID}.jsonl"),
            format!("p/-b/{upper}.jsonl"),
            "p/-b/other.jsonl".to_owned(),
            format!("s/2026/11/29/rollout-2026-11-29T10-00-00-{ID}.jsonl"),
            format!("s/2026/11/29/rollout-2026-11-29T10-00-00-{ID}.jsonl.zst"),
            "g/x/chats/session-2026-11-29T10-00-00000000.jsonl".to_owned(),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let a = ["-a".to_owned()];
        let claude = "p/{cwd}/{id}.jsonl";
        let want = format!("p/-a/{ID}.jsonl id={ID} cwd=-a");
        assert_eq!(
            hits(root, claude, Some(ID), Some(&a)),
            std::slice::from_ref(&want)
        );
        assert_eq!(
            hits(root, claude, None, Some(&a)),
            std::slice::from_ref(&want)
        );
        let elsewhere = format!("p/-b/{upper}.jsonl id={upper} cwd=-b");
        assert_eq!(hits(root, claude, Some(ID), None), [want, elsewhere]);
        let codex = format!("s/2026/11/29/rollout-2026-11-29T10-00-00-{ID}.jsonl id={ID}");
        let pattern = "s/*/*/*/rollout-*-{id}.jsonl";
        assert_eq!(
            hits(root, pattern, Some(&upper), None),
            std::slice::from_ref(&codex)
        );
        assert_eq!(hits(root, pattern, None, None), [codex]);
        let gemini = "g/x/chats/session-2026-11-29T10-00-00000000.jsonl cwd=x";
        assert_eq!(
            hits(root, "g/{cwd}/chats/session-*-{id8}.jsonl", Some(ID), None),
            [gemini]
        );
        assert!(hits(root, "none/{cwd}/{id}.jsonl", Some(ID), None).is_empty());
        assert!(hits(&root.join("none"), claude, Some(ID), Some(&a)).is_empty());
    }
}
