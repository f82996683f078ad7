//! What an agent's session ids look like, and how a new one is made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The form that the ids of an agent have.
///
/// Written as `uuid`, as `id` (anything that is safe in a file's name), or as a pattern of literal
/// text and classes with a count: `ses_{hex*12}{base62*14}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shape {
    written: String,
    parts: Option<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Class(Class, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Hex,
    Digit,
    Base62,
}

/// RFC 9562, section 4, whatever the version.
const UUID: &str = "{hex*8}-{hex*4}-{hex*4}-{hex*4}-{hex*12}";

impl Shape {
    /// Whether `id` is one of these ids. Every id is also safe in a file's name.
    pub fn fits(&self, id: &str) -> bool {
        if records::id::parse(id).is_err() {
            return false;
        }
        let Some(parts) = &self.parts else {
            return true;
        };
        let mut rest = id;
        for part in parts {
            let Some(after) = part.strip(rest) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }

    /// Whether a word of this shape can hardly be anything but an id.
    pub fn is_telling(&self) -> bool {
        self.parts.is_some()
    }

    /// Whether two ids of this shape that differ in case alone are one: so it is with UUIDs.
    pub fn ignores_case(&self) -> bool {
        self.written == "uuid"
    }

    /// Whether `a` and `b` are the same id.
    pub fn same(&self, a: &str, b: &str) -> bool {
        if self.ignores_case() {
            a.eq_ignore_ascii_case(b)
        } else {
            a == b
        }
    }
}

impl Part {
    /// What is left of `text` after this part; `None` if it does not begin with it.
    fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Part::Literal(literal) => text.strip_prefix(literal.as_str()),
            Part::Class(class, count) => {
                let (head, rest) = text.split_at_checked(*count)?;
                head.bytes().all(|byte| class.has(byte)).then_some(rest)
            }
        }
    }
}

impl Class {
    fn has(self, byte: u8) -> bool {
        match self {
            Class::Hex => byte.is_ascii_hexdigit(),
            Class::Digit => byte.is_ascii_digit(),
            Class::Base62 => byte.is_ascii_alphanumeric(),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl From<Shape> for String {
    fn from(shape: Shape) -> String {
        shape.written
    }
}

impl TryFrom<String> for Shape {
    type Error = String;

    fn try_from(written: String) -> Result<Shape, String> {
        let parts = match written.as_str() {
            "id" => None,
            "uuid" => Some(parts(UUID)?),
            pattern => Some(parts(pattern)?),
        };
        Ok(Shape { written, parts })
    }
}

fn parts(pattern: &str) -> Result<Vec<Part>, String> {
    let wrong = |why: &str| format!("'{pattern}' is not a shape of ids: {why}");
    let mut parts = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (literal, class) = rest.split_once('{').unwrap_or((rest, ""));
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        if literal.len() == rest.len() {
            break;
        }
        let (class, after) = class
            .split_once('}')
            .ok_or_else(|| wrong("a brace is not closed"))?;
        let (name, count) = class
            .split_once('*')
            .ok_or_else(|| wrong("a class is written {hex*8}"))?;
        let class = match name {
            "hex" => Class::Hex,
            "digit" => Class::Digit,
            "base62" => Class::Base62,
            _ => return Err(wrong("the classes are hex, digit and base62")),
        };
        let count = records::number::in_range(count, 1..=128).map_err(|why| wrong(&why))?;
        parts.push(Part::Class(class, usize::try_from(count).unwrap_or(128)));
        rest = after;
    }
    if parts.is_empty() {
        return Err(wrong("it is empty"));
    }
    Ok(parts)
}

/// Which UUIDs are made for an agent that takes an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mint {
    /// Random.
    #[default]
    V4,
    /// Ordered by time, as the agent's own are.
    V7,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(written: &str) -> Shape {
        Shape::try_from(written.to_owned()).unwrap()
    }

    #[test]
    fn which_ids_fit() {
        let hermes = "{digit*8}_{digit*6}_{hex*6}";
        let opencode = "ses_{hex*12}{base62*14}";
        let table = [
            ("uuid", "00000000-0000-4000-8000-0000000000a1", true),
            ("uuid", "00000000-0000-4000-8000-0000000000A1", true),
            ("uuid", "019a0000-0000-7000-0000-000000000000", true),
            ("uuid", "00000000-0000-4000-8000-0000000000a", false),
            ("uuid", "00000000-0000-4000-8000-0000000000a1b", false),
            ("uuid", "00000000-0000-4000-8000-0000000000g1", false),
            ("uuid", "00000000000040008000000000000000", false),
            ("uuid", "", false),
            ("uuid", " ", false),
            ("uuid", "00000000-0000-4000-8000-0000000000a1\n", false),
            ("id", "foo", true),
            ("id", "../foo", false),
            ("id", ".foo", false),
            ("id", "a\nb", false),
            (opencode, "ses_0123456789abABCDEFGHIJKLMN", true),
            (opencode, "ses_0123456789abABCDEFGHIJKLM", false),
            (opencode, "0123456789abABCDEFGHIJKLMN", false),
            (hermes, "20261129_142621_0a1b2c", true),
            (hermes, "20261129-142621_0a1b2c", false),
            (hermes, "20261129_142621_0a1b2ä", false),
        ];
        for (written, id, want) in table {
            assert_eq!(shape(written).fits(id), want, "{written} {id:?}");
        }
    }

    #[test]
    fn uuids_are_one_whatever_their_case_and_others_are_not() {
        assert!(shape("uuid").same("AB", "ab"));
        assert!(!shape("id").same("AB", "ab"));
    }

    #[test]
    fn shapes_that_are_none() {
        for wrong in ["", "{hex*8", "{hex}", "{word*3}", "{hex*0}", "{hex*x}"] {
            assert!(Shape::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
