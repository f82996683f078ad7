//! What a JSON argument says: the sessions it carries, and the directory, environment and command
//! that a wrapper was told to start its agent with.

use std::collections::HashMap;

use agents::signs::Signs;
use serde::de::IgnoredAny;

use crate::claims::{Found, in_words};
use crate::program::{shell_text, takes_text};
use crate::shell;

/// Deeper nesting is nobody's configuration.
const MAX_DEPTH: usize = 512;

/// Keys whose string is the program that a wrapper starts.
const COMMAND_KEYS: &[&str] = &["command", "cmd", "program", "executable", "file", "shell"];

/// An argument that is JSON, or the beginning of JSON that was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Whether it is whole. The keys at its top are taken only then.
    pub is_whole: bool,
    /// The string under `cwd` at the top.
    pub cwd: Option<Vec<u8>>,
    /// The strings under `env` at the top.
    pub env: HashMap<Vec<u8>, Vec<u8>>,
    /// The strings under `command` and its like, at any depth.
    pub commands: Vec<Vec<u8>>,
    /// The strings that are elements of each array, in their order; what is no string is empty.
    arrays: Vec<Vec<Vec<u8>>>,
}

impl Argument {
    /// Takes an argument as JSON; `None` if it is something else.
    pub fn parse(argument: &[u8]) -> Option<Argument> {
        let start = argument
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())?;
        if !matches!(argument[start], b'{' | b'[') {
            return None;
        }
        let is_whole = match serde_json::from_slice::<IgnoredAny>(argument) {
            Ok(_) => true,
            Err(error) if error.is_eof() => false,
            Err(_) => return None,
        };
        let mut walk = Walk::default();
        walk.run(argument)?;
        let mut found = walk.found;
        found.is_whole = is_whole;
        if !is_whole {
            found.cwd = None;
            found.env.clear();
        }
        Some(found)
    }

    /// The sessions that its arrays name after a flag.
    pub fn claims(&self) -> Vec<Found> {
        // Once for all arrays: there may be as many of these as of commands.
        let mut commands = self.commands.iter();
        let of_command = commands.find_map(|word| Signs::of_program(word));
        let shell = self.commands.iter().find(|command| takes_text(command));
        let mut found = Vec::new();
        for array in &self.arrays {
            // Behind a placeholder, since the first word of an array may be a flag already.
            let mut words: Vec<&[u8]> = vec![b""];
            words.extend(array.iter().map(Vec::as_slice));
            let agent = array.first().and_then(|word| Signs::of_program(word));
            found.extend(in_words(&words, agent.or(of_command)));
            // `["sh", "-c", TEXT]`, or `["-c", TEXT]` beside a command that is a shell.
            let mut text = shell_text(array);
            if let (None, Some(shell)) = (text, shell) {
                words[0] = shell;
                text = shell_text(&words);
            }
            if let Some((_, text)) = text {
                found.extend(shell::claims(text));
            }
        }
        found
    }
}

/// A walk over the tokens of JSON, which may end anywhere.
#[derive(Default)]
struct Walk {
    stack: Vec<Level>,
    found: Argument,
}

enum Level {
    Array(Vec<Vec<u8>>),
    Object { key: Option<Vec<u8>>, is_key: bool },
}

impl Walk {
    fn run(&mut self, text: &[u8]) -> Option<()> {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'[' => self.open(Level::Array(Vec::new()))?,
                b'{' => self.open(Level::Object {
                    key: None,
                    is_key: true,
                })?,
                b']' | b'}' => self.close(),
                b'"' => match string(&text[at..]) {
                    Some((value, length)) => {
                        self.string(value);
                        at += length;
                    }
                    // Cut off inside of a string: its value is not known.
                    None => break,
                },
                b',' => {
                    if let Some(Level::Object { key, is_key }) = self.stack.last_mut() {
                        (*key, *is_key) = (None, true);
                    }
                }
                b':' => {
                    if let Some(Level::Object { is_key, .. }) = self.stack.last_mut() {
                        *is_key = false;
                    }
                }
                b't' | b'f' | b'n' | b'0'..=b'9' | b'-' => {
                    self.other();
                    at += text[at..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                        .count();
                }
                _ => {}
            }
        }
        while !self.stack.is_empty() {
            self.close();
        }
        Some(())
    }

    fn open(&mut self, level: Level) -> Option<()> {
        if self.stack.len() >= MAX_DEPTH {
            return None;
        }
        self.other();
        self.stack.push(level);
        Some(())
    }

    fn close(&mut self) {
        if let Some(Level::Array(strings)) = self.stack.pop() {
            self.found.arrays.push(strings);
        }
    }

    /// A value that is no string: it keeps its place in an array.
    fn other(&mut self) {
        if let Some(Level::Array(strings)) = self.stack.last_mut() {
            strings.push(Vec::new());
        }
    }

    fn string(&mut self, value: Vec<u8>) {
        let depth = self.stack.len();
        let is_env = depth == 2 && self.key_at(0) == Some(b"env");
        match self.stack.last_mut() {
            Some(Level::Array(strings)) => strings.push(value),
            Some(Level::Object { key, is_key: true }) => {
                *key = Some(value);
                self.forget_earlier(depth);
            }
            Some(Level::Object { key, .. }) => {
                let key = key.take().unwrap_or_default();
                if is_env {
                    self.found.env.insert(key, value);
                } else if depth == 1 && key == b"cwd" {
                    self.found.cwd = Some(value);
                } else if COMMAND_KEYS.iter().any(|known| known.as_bytes() == key) {
                    self.found.commands.push(value);
                }
            }
            None => {}
        }
    }

    /// Of a key that is there twice the last one counts, whatever its value is.
    fn forget_earlier(&mut self, depth: usize) {
        match self.key_at(depth - 1) {
            Some(b"cwd") if depth == 1 => self.found.cwd = None,
            Some(b"env") if depth == 1 => self.found.env.clear(),
            Some(name) if depth == 2 && self.key_at(0) == Some(b"env") => {
                let name = name.to_vec();
                self.found.env.remove(&name);
            }
            _ => {}
        }
    }

    fn key_at(&self, depth: usize) -> Option<&[u8]> {
        match self.stack.get(depth) {
            Some(Level::Object { key, .. }) => key.as_deref(),
            _ => None,
        }
    }
}

/// The value of the JSON string whose opening quote is before `text`, and how long it is with its
/// closing quote. `None` where there is none.
fn string(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    let mut at = 0;
    loop {
        let stop = memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        value.extend_from_slice(&text[at..at + stop]);
        at += stop + 1;
        if text[at - 1] == b'"' {
            return Some((value, at));
        }
        let escape = *text.get(at)?;
        at += 1;
        match escape {
            b'u' => {
                let unit = hex(text.get(at..at + 4)?)?;
                at += 4;
                let mut units = vec![unit];
                // The second half of a surrogate pair.
                if (0xd800..0xdc00).contains(&unit) && text.get(at..at + 2) == Some(b"\\u") {
                    units.push(hex(text.get(at + 2..at + 6)?)?);
                    at += 6;
                }
                value.extend(String::from_utf16_lossy(&units).into_bytes());
            }
            b'n' => value.push(b'\n'),
            b't' => value.push(b'\t'),
            b'r' => value.push(b'\r'),
            b'b' => value.push(8),
            b'f' => value.push(12),
            other => value.push(other),
        }
    }
}

fn hex(digits: &[u8]) -> Option<u16> {
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000-0000-4000-8000-0000000000a1";

    fn claims(text: &str) -> Vec<String> {
        let text = text.replace("ID", ID);
        let found = Argument::parse(text.as_bytes()).map(|json| json.claims());
        let found = found.unwrap_or_default().into_iter();
        found
            .map(|found| {
                let (flag, id) = (found.flag, found.id);
                let word = [flag, id].join(&b' ');
                String::from_utf8(word).unwrap().replace(ID, "ID")
            })
            .collect()
    }

    #[test]
    fn ids_in_arrays() {
        let table: &[(&str, &[&str])] = &[
            (r#"{"args":["--session-id","ID"]}"#, &["--session-id ID"]),
            (
                "{ \"args\" : [ \"--session-id\" ,\n \"ID\" ] }",
                &["--session-id ID"],
            ),
            (r#"["--resume=ID"]"#, &["--resume ID"]),
            (
                r#"{"a":{"b":[1,[{"c":["x","--resume","ID"]}]]}}"#,
                &["--resume ID"],
            ),
            (
                r#"{"args":["\u002d-session-id","\u00300000000-0000-4000-8000-0000000000a1"]}"#,
                &["--session-id ID"],
            ),
            (r#"{"args":["--session-id",null,"ID"]}"#, &[]),
            (r#"{"--session-id":"ID"}"#, &[]),
            (r#"{"session_id":"ID"}"#, &[]),
            (r#"{"cmd":"claude --resume ID"}"#, &[]),
            (
                r#"{"run":[{"argv":["x","--resume=ID"]}]}"#,
                &["--resume ID"],
            ),
            (r#"["codex","resume","ID"]"#, &["resume ID"]),
            (
                r#"{"command":"sh","args":["-c","claude --resume ID"]}"#,
                &["--resume ID"],
            ),
            (r#"{"x":"[\"--session-id\",\"ID\"]"}"#, &[]),
            (r#"{"args":["-r","ID"]}"#, &[]),
            (r#"{"command":"claude","args":["-r","ID"]}"#, &["-r ID"]),
            (r#"["/opt/claude","-r","ID"]"#, &["-r ID"]),
            (r#"["sh","-c","claude --resume ID"]"#, &["--resume ID"]),
            (
                r#"{"command":"bash","args":["-lc","exec claude -r ID"]}"#,
                &["-r ID"],
            ),
            (r#"{"args":["--resume","ID","--fork-session"]}"#, &[]),
            ("plain --session-id ID", &[]),
        ];
        for (text, want) in table {
            assert_eq!(claims(text), *want, "{text}");
        }
    }

    #[test]
    fn json_that_is_cut_off_counts_by_its_text() {
        let whole =
            format!(r#"{{"args":["--session-id","{ID}","x"],"cwd":"/w","env":{{"A":"b"}}}}"#);
        let id_ends = whole.find(ID).unwrap() + ID.len() + 1;
        for end in 1..whole.len() {
            let json = Argument::parse(&whole.as_bytes()[..end]).unwrap();
            assert_eq!(json.claims().len(), usize::from(end >= id_ends), "{end}");
            assert_eq!((json.is_whole, json.cwd), (false, None));
        }
        assert!(Argument::parse(whole.as_bytes()).unwrap().is_whole);
        // What ends wrongly is no JSON that was cut off.
        assert_eq!(
            Argument::parse(br#"["--session-id","x"] is what I typed"#),
            None
        );
    }

    #[test]
    fn the_top_of_a_configuration() {
        let text = r#"{"command":"claude","cwd":"/w/app","env":{"X":"\"cwd\":\"/no\"","NAME":"main","cwd":"/no"},
            "inner":{"cwd":"/no","env":{"NAME":"no"}},"n":[{"cwd":"/no"}]}"#;
        let json = Argument::parse(text.as_bytes()).unwrap();
        assert_eq!(json.cwd.as_deref(), Some(&b"/w/app"[..]));
        assert_eq!(json.commands, [b"claude"]);
        let mut names: Vec<_> = json.env.keys().map(Vec::as_slice).collect();
        names.sort_unstable();
        assert_eq!(names, [&b"NAME"[..], b"X", b"cwd"]);
        assert_eq!(json.env[&b"NAME"[..]], b"main");
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_one_counts() {
        let top = |text: &str| {
            let json = Argument::parse(text.as_bytes()).unwrap();
            let env = json
                .env
                .into_iter()
                .map(|(name, value)| [name, value].concat());
            (json.cwd, env.collect::<Vec<_>>())
        };
        let b = || Some(b"/b".to_vec());
        assert_eq!(top(r#"{"cwd":"/a","cwd":"/b"}"#).0, b());
        assert_eq!(top(r#"{"cwd":"/a","cwd":null}"#).0, None);
        assert_eq!(
            top(r#"{"env":{"N":"1"},"cwd":"/b","env":{"M":"2"}}"#),
            (b(), vec![b"M2".to_vec()])
        );
        assert_eq!(top(r#"{"env":{"N":"1","N":"2"}}"#).1, [b"N2".to_vec()]);
        assert!(top(r#"{"env":{"N":"1","N":7}}"#).1.is_empty());
        assert!(top(r#"{"env":{"N":"1"},"env":7}"#).1.is_empty());
    }

    /// What a stranger's argument costs grows as it does: a megabyte in no time, which took minutes
    /// where every array was compared with every command.
    #[test]
    fn many_arrays_commands_and_keys_take_no_time() {
        let many = |part: &str| part.repeat((1 << 20) / part.len());
        let started = std::time::Instant::now();
        for text in [
            format!("[{}{{{}\"z\":1}}]", many("[],"), many("\"cmd\":\"a\",")),
            format!(
                "[{}{{{}\"z\":1}}]",
                many("[\"-c\",\"x\"],"),
                many("\"cmd\":\"a\",")
            ),
            format!(
                "{{\"env\":{{{}\"z\":\"\"}}}}",
                (0..100_000)
                    .map(|n| format!("\"{n}\":\"\","))
                    .collect::<String>()
            ),
        ] {
            let json = Argument::parse(text.as_bytes()).unwrap();
            assert!(json.is_whole && json.claims().is_empty());
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
    }

    #[test]
    fn depth_does_not_overflow() {
        assert_eq!(Argument::parse("[".repeat(100_000).as_bytes()), None);
        assert!(Argument::parse("[".repeat(100).as_bytes()).is_some());
    }
}
