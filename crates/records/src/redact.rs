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
/// the argument is no JSON object or array, or has no such key.
///
/// An argument that begins like JSON and is none (it may have been cut off) is
/// shown up to its first key `env` alone.
pub(crate) fn env_values(argument: &str) -> Option<String> {
    hide(argument, 0)
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
    if !token.starts_with('"') || !token.contains("\\\"") {
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
