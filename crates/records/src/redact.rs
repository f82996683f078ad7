//! Hiding the values of environment variables in a JSON argument.
//!
//! Wrappers get their whole launch as one JSON argument, its `env` with tokens
//! and keys in it. Records, which end up in logs, must not carry them.

use std::iter::Peekable;
use std::ops::Range;

/// What stands where a value was.
const HIDDEN: &str = "\"…\"";

/// How many times a string in a JSON argument may itself be JSON with strings
/// that are JSON. Beyond that a string which could hold an `env` is hidden.
const MAX_LEVEL: u8 = 8;

/// `argument` with every value below a key `env`, at any depth, replaced by
/// `"…"`; keys and every byte outside stay. `None` if there is nothing to hide:
/// the argument is no JSON object or array (also in the form `--name=JSON`), or
/// has no such key.
///
/// An argument that begins like JSON and is none (it may have been cut off) is
/// shown up to its first key `env` alone.
pub(crate) fn env_values(argument: &str) -> Option<String> {
    if let Some(hidden) = hide(argument, 0) {
        return Some(hidden);
    }
    let (name, json) = argument.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(plain) {
        return None;
    }
    Some(format!("{name}={}", hide(json, 0)?))
}

fn hide(text: &str, level: u8) -> Option<String> {
    if !matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[')) {
        return None;
    }
    // An escaped key `env` has a backslash; anything else has it literally.
    if !text.contains("env") && !text.contains('\\') {
        return None;
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return hide_rest(text);
    }
    let edits = find_values(text, level);
    if edits.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (span, value) in edits {
        out.push_str(&text[done..span.start]);
        out.push_str(&value);
        done = span.end;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// What to replace in a text that is valid JSON, in its order.
fn find_values(text: &str, level: u8) -> Vec<(Range<usize>, String)> {
    let mut edits = Vec::new();
    let mut depth = 0_usize;
    // The depth of the container that is the value of an `env`, while in it.
    let mut below: Option<usize> = None;
    let mut env_is_next = false;
    let mut tokens = Tokens::new(text).peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Open => {
                depth += 1;
                if env_is_next && below.is_none() {
                    below = Some(depth);
                }
                env_is_next = false;
            }
            Token::Close => {
                if below == Some(depth) {
                    below = None;
                }
                depth = depth.saturating_sub(1);
            }
            Token::String(span) if next_is_colon(&mut tokens) => {
                env_is_next = is_env(&text[span]);
            }
            Token::String(span) | Token::Word(span) => {
                if env_is_next || below.is_some() {
                    edits.push((span, HIDDEN.to_owned()));
                } else if let Some(value) = hide_in_string(&text[span.clone()], level) {
                    edits.push((span, value));
                }
                env_is_next = false;
            }
            Token::Colon => {}
        }
    }
    edits
}

/// A string that is JSON itself is no place to hide.
fn hide_in_string(token: &str, level: u8) -> Option<String> {
    if !token.starts_with('"') || !token.contains('\\') {
        return None;
    }
    let inner: String = serde_json::from_str(token).ok()?;
    if level == MAX_LEVEL {
        return Some(HIDDEN.to_owned());
    }
    Some(crate::splice::quoted(&hide(&inner, level + 1)?))
}

/// For a text that is not valid JSON: nothing after the first thing that could
/// be a key `env` is shown.
fn hide_rest(text: &str) -> Option<String> {
    let mut tokens = Tokens::new(text).peekable();
    let mut by_token = None;
    while let Some(token) = tokens.next() {
        if let Token::String(span) = token
            && next_is_colon(&mut tokens)
            && is_env(&text[span.clone()])
        {
            by_token = Some(span.end);
            break;
        }
    }
    // Where quotes do not pair, strings are not where they seem to be. The
    // second form is a key in a string that is JSON itself.
    let by_text = ["\"env\"", "env\\\""]
        .iter()
        .filter_map(|key| Some(text.find(key)? + key.len()))
        .min();
    let end = by_token.into_iter().chain(by_text).min()?;
    Some(format!("{}:{HIDDEN}", &text[..end]))
}

fn next_is_colon(tokens: &mut Peekable<Tokens<'_>>) -> bool {
    matches!(tokens.peek(), Some(Token::Colon))
}

/// Whether a JSON string is `env` once its escapes are resolved.
fn is_env(token: &str) -> bool {
    token == "\"env\""
        || token.contains('\\') && serde_json::from_str::<String>(token).is_ok_and(|k| k == "env")
}

enum Token {
    Open,
    Close,
    Colon,
    String(Range<usize>),
    Word(Range<usize>),
}

/// The tokens of JSON, and of whatever else: it never fails.
struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// The end of the string that begins at `start`.
    fn string_end(&self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    fn word_end(&self, start: usize) -> usize {
        let ends = |b: &u8| b"{}[],:\" \t\r\n".contains(b);
        let length = self.bytes[start..].iter().position(ends);
        length.map_or(self.bytes.len(), |length| start + length)
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let byte = self.bytes.get(start)?;
            self.at += 1;
            return Some(match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => continue,
                b'{' | b'[' => Token::Open,
                b'}' | b']' => Token::Close,
                b':' => Token::Colon,
                b'"' => {
                    self.at = self.string_end(start);
                    Token::String(start..self.at)
                }
                _ => {
                    self.at = self.word_end(start);
                    Token::Word(start..self.at)
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_env_are_hidden_and_nothing_else_changes() {
        let table = [
            (
                r#"{"env":{"A":"s","B":"t"}}"#,
                r#"{"env":{"A":"…","B":"…"}}"#,
            ),
            (
                r#"{ "x" : 1.0 , "env" : { "A" : 17 } }"#,
                r#"{ "x" : 1.0 , "env" : { "A" : "…" } }"#,
            ),
            (
                r#"{"env":["A=s","B=t"],"n":1e400}"#,
                r#"{"env":["…","…"],"n":1e400}"#,
            ),
            (r#"{"env":"A=s","cmd":["x"]}"#, r#"{"env":"…","cmd":["x"]}"#),
            (r#"{"env":null,"a":true}"#, r#"{"env":"…","a":true}"#),
            (
                r#"[{"o":{"env":{"A":"s"}}},"b"]"#,
                r#"[{"o":{"env":{"A":"…"}}},"b"]"#,
            ),
            (
                r#"{"env":{"A":{"env":"s","c":["t",{"d":false}]}},"e":"f"}"#,
                r#"{"env":{"A":{"env":"…","c":["…",{"d":"…"}]}},"e":"f"}"#,
            ),
            (r#"{"\u0065nv":{"A":"s"}}"#, r#"{"\u0065nv":{"A":"…"}}"#),
            (r#"{"env":{},"a":"s"} "#, r#"{"env":{},"a":"s"} "#),
            (
                r#"{"env":{"A":"\"}"},"b":"\"env\":"}"#,
                r#"{"env":{"A":"…"},"b":"\"env\":"}"#,
            ),
            (
                r#"--config={"env":{"A":"s"}}"#,
                r#"--config={"env":{"A":"…"}}"#,
            ),
            (
                r#"{"inner":"{\"env\":{\"A\":\"s\"}}","b":1}"#,
                r#"{"inner":"{\"env\":{\"A\":\"…\"}}","b":1}"#,
            ),
            (
                r#"{"inner":"{\u0022env\u0022:{\u0022A\u0022:\u0022s\u0022}}"}"#,
                r#"{"inner":"{\"env\":{\"A\":\"…\"}}"}"#,
            ),
        ];
        for (argument, want) in table {
            let shown = env_values(argument).unwrap_or_else(|| argument.to_owned());
            assert_eq!(shown, want);
        }
    }

    #[test]
    fn what_has_no_env_stays() {
        let same = [
            "",
            "plain",
            "env",
            "--env",
            r#""env":"x""#,
            r#"{"environment":{"A":"s"}}"#,
            r#"{"a":"env","b":["env"]}"#,
            r#"{"ENV":{"A":"s"}}"#,
            "{not json",
            r#"{"a":"b\"c"}"#,
            r#"sh -c '{"env":1}'"#,
            "[",
        ];
        for argument in same {
            assert_eq!(env_values(argument), None, "{argument}");
        }
    }

    #[test]
    fn json_that_is_broken_or_cut_off_leaks_nothing() {
        let secret = "s3cret";
        let whole = format!(
            r#"{{"cwd":"/x","env":{{"A":"{secret}","B":"x"}},"i":"{{\"env\":{{\"A\":\"{secret}\"}}}}"}}"#
        );
        for end in 0..whole.len() {
            let cut = &whole[..end];
            let shown = env_values(cut).unwrap_or_else(|| cut.to_owned());
            assert!(!shown.contains("s3c"), "{cut} became {shown}");
        }
        let broken = [
            r#"{"a":"x"y","env":{"A":"s3cret"}}"#,
            r#"{"env":{"A":"x"}},"B":"s3cret"}"#,
            r#"[1,{"env" : ["s3cret"#,
            r#"{"\u0065nv":{"A":"s3cret"#,
            r#"{x:"{\"env\":{\"A\":\"s3cret"#,
            "  {\"env\"\n:\"s3cret",
        ];
        for argument in broken {
            let shown = env_values(argument).unwrap();
            assert!(!shown.contains(secret), "{argument} became {shown}");
            assert!(argument.starts_with(&shown[..shown.len() - HIDDEN.len() - 1]));
        }
    }

    #[test]
    fn depth_is_no_danger() {
        let depth = 1 << 20;
        let deep = ["[".repeat(depth), "]".repeat(depth)].concat();
        let argument = format!("{{\"a\":{deep},\"env\":{{\"A\":\"s\"}}}}");
        let shown = env_values(&argument).unwrap();
        assert!(shown.ends_with("\"env\":{\"A\":\"…\"}}"));
        // JSON in a string in JSON, and so on: each level doubles the escapes.
        let mut nested = r#"{"env":"s3cret"}"#.to_owned();
        for _ in 0..12 {
            nested = format!("[{}]", crate::splice::quoted(&nested));
        }
        assert!(!env_values(&nested).unwrap().contains("s3cret"));
    }
}
