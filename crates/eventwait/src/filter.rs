//! Which lines are the awaited ones. Pure.

use std::borrow::Cow;
use std::str::FromStr;

use memchr::memmem::Finder;
use regex_lite::Regex;

use crate::json;

/// One `--match`: what must hold of one key.
#[derive(Clone, Debug)]
pub struct Condition {
    path: json::Path,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Equal(String),
    Unequal(String),
    Like(Pattern),
}

/// A regular expression. One without a special sign is looked for as the text that it is, which is
/// many times as fast.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// This text is to be found.
    Text(Box<Finder<'static>>),
    /// This expression is to be found.
    Regex(Regex),
}

impl FromStr for Condition {
    type Err = String;

    /// `KEY=VALUE`, `KEY!=VALUE` or `KEY~REGEX`: the leftmost of the three signs decides.
    fn from_str(text: &str) -> Result<Condition, String> {
        let (at, sign) = text
            .char_indices()
            .find_map(|(at, c)| match c {
                '=' => Some((at, "=")),
                '~' => Some((at, "~")),
                '!' if text[at..].starts_with("!=") => Some((at, "!=")),
                _ => None,
            })
            .ok_or("neither KEY=VALUE, KEY!=VALUE nor KEY~REGEX")?;
        let (key, value) = (&text[..at], &text[at + sign.len()..]);
        if key.is_empty() {
            return Err("a key is missing".to_owned());
        }
        let test = match sign {
            "=" => Test::Equal(value.to_owned()),
            "!=" => Test::Unequal(value.to_owned()),
            _ => Test::Like(value.parse()?),
        };
        Ok(Condition {
            path: json::Path::new(key),
            test,
        })
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        if regex_lite::escape(text) == text {
            return Ok(Pattern::Text(Box::new(Finder::new(text).into_owned())));
        }
        match Regex::new(text) {
            Ok(regex) => Ok(Pattern::Regex(regex)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Pattern {
    /// Whether it is found in a line. Bytes that are not UTF-8 are judged as they would be shown.
    fn is_in(&self, line: &[u8]) -> bool {
        match self {
            Pattern::Text(text) => text.find(line).is_some(),
            Pattern::Regex(regex) => regex.is_match(&shown(line)),
        }
    }
}

/// A line as it would be shown.
fn shown(line: &[u8]) -> Cow<'_, str> {
    // Checked first: this is faster than the lossy way, and nearly all lines are text.
    match str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    }
}

impl Condition {
    /// Whether it holds of a value, which may be missing.
    fn holds(&self, value: Option<&str>) -> bool {
        match (&self.test, value) {
            (Test::Unequal(_), None) => true,
            (_, None) => false,
            (Test::Equal(want), Some(json)) => is_text(json, want),
            (Test::Unequal(want), Some(json)) => !is_text(json, want),
            (Test::Like(pattern), Some(json)) => pattern.is_in(json::text(json).as_bytes()),
        }
    }
}

/// Whether `json` is a string with the text `want`, or, if it is something else, is written so.
fn is_text(json: &str, want: &str) -> bool {
    json::text(json) == want
}

/// Everything that a line must be to match; by default any line does.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    conditions: Vec<Condition>,
    lines: Vec<Pattern>,
    wanted: json::Wanted,
}

/// What a filter says of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is an awaited one.
    Match,
    /// It is not.
    Other,
    /// It would have to be JSON, and is not.
    NotJson,
}

impl Filter {
    /// All of `conditions` and all of `lines` must hold.
    pub fn new(conditions: Vec<Condition>, lines: Vec<Pattern>) -> Filter {
        let wanted = json::Wanted::new(conditions.iter().map(|condition| &condition.path));
        Filter {
            conditions,
            lines,
            wanted,
        }
    }

    /// Whether it is the filter that takes any line.
    pub fn takes_all(&self) -> bool {
        self.conditions.is_empty() && self.lines.is_empty()
    }

    /// Judges one line. JSON is read no further than the keys that are asked for need it, and all
    /// else of it is skipped over (and checked to be JSON).
    pub fn judge(&self, line: &[u8]) -> Verdict {
        if !self.conditions.is_empty() {
            let text = shown(line);
            let Some(found) = self.wanted.look(&text) else {
                return Verdict::NotJson;
            };
            let all = &self.conditions;
            if !all.iter().all(|one| one.holds(found.get(&one.path))) {
                return Verdict::Other;
            }
        }
        if self.lines.iter().all(|pattern| pattern.is_in(line)) {
            Verdict::Match
        } else {
            Verdict::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(conditions: &[&str], line: &str) -> Verdict {
        let parse = |text: &&str| text.parse().unwrap();
        Filter::new(conditions.iter().map(parse).collect(), vec![]).judge(line.as_bytes())
    }

    #[test]
    fn conditions_by_the_book() {
        use Verdict::{Match, NotJson, Other};
        let line = r#"{"a":"x","n":1.0,"t":true,"o":{"p":{"q":"deep"},"s":[1,{"k":"v"}]},"o.p":"flat","u":"\u4e2d\n","nil":null,"e":""}"#;
        let table = [
            (&["a=x"][..], Match),
            (&["a=y"], Other),
            (&["a!=y"], Match),
            (&["a!=x"], Other),
            (&["a~^x$"], Match),
            (&["a~y"], Other),
            // Numbers, truth values and the like by their JSON, as it was written.
            (&["n=1.0"], Match),
            (&["n=1"], Other),
            (&["t=true"], Match),
            (&["nil=null"], Match),
            (&["o.s=[1,{\"k\":\"v\"}]"], Match),
            // Paths, of which a key with dots in it wins.
            (&["o.p.q=deep"], Match),
            (&["o.s.1.k=v"], Match),
            (&["o.s.0=1"], Match),
            (&["o.p=flat"], Match),
            // Escapes.
            (&["u=中\n"], Match),
            (&["u~中"], Match),
            // What is missing.
            (&["z=x"], Other),
            (&["z~."], Other),
            (&["z~"], Other),
            (&["z!=x"], Match),
            (&["z="], Other),
            (&["e="], Match),
            (&["a.b=x"], Other),
            // All must hold.
            (&["a=x", "t=true"], Match),
            (&["a=x", "t=false"], Other),
        ];
        for (conditions, want) in table {
            assert_eq!(judge(conditions, line), want, "{conditions:?}");
        }
        for not_json in [
            "",
            "x",
            "{",
            "{\"a\":\"x\"",
            "{\"a\":\"x\"} y",
            "{\"b\":tru,\"a\":1}",
        ] {
            assert_eq!(judge(&["a!=1"], not_json), NotJson, "{not_json}");
        }
        // JSON without keys.
        for scalar in ["[]", "1", "\"a\"", "null", " [1,2] "] {
            assert_eq!(judge(&["a=x"], scalar), Other, "{scalar}");
            assert_eq!(judge(&["a!=x"], scalar), Match, "{scalar}");
        }
        // Of a repeated key the last one counts.
        assert_eq!(judge(&["a=2"], r#"{"a":1,"a":2}"#), Match);
        assert_eq!(judge(&["\u{e9}=1"], "{\"\\u00e9\":1}"), Match);
    }

    #[test]
    fn a_long_path_is_no_danger() {
        let keys = 60;
        let path = vec!["a"; keys].join(".");
        let line = format!("{}1{}", "{\"a\":".repeat(keys), "}".repeat(keys));
        assert_eq!(judge(&[&format!("{path}=1")], &line), Verdict::Match);
        assert_eq!(judge(&[&format!("{path}.a=1")], &line), Verdict::Other);
        let dotted = format!("{{\"{}\":{{\"a\":1}}}}", vec!["a"; keys - 1].join("."));
        assert_eq!(judge(&[&format!("{path}=1")], &dotted), Verdict::Match);
    }

    #[test]
    fn the_leftmost_sign_decides() {
        let line = r#"{"a":"b=c~d!=e","x~":"1"}"#;
        assert_eq!(judge(&["a=b=c~d!=e"], line), Verdict::Match);
        assert_eq!(judge(&["a~^b=c~d"], line), Verdict::Match);
        assert_eq!(judge(&["a!=b=c"], line), Verdict::Match);
        assert_eq!(judge(&["a!~x"], line), Verdict::Other, "the key is a!");
        for wrong in ["", "a", "=x", "~x", "!=x", "a!x", "a~("] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_the_rest() {
        let filter = Filter::new(vec!["a=1".parse().unwrap()], vec![]);
        assert_eq!(filter.judge(b"{\"b\":\"\xff\",\"a\":1}"), Verdict::Match);
        let filter = Filter::new(vec![], vec!["^a.c$".parse().unwrap()]);
        assert_eq!(filter.judge("a中c".as_bytes()), Verdict::Match);
        assert_eq!(filter.judge(b"not json"), Verdict::Other);
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!(
            "{{\"a\":{}{},\"b\":1}}",
            "[".repeat(1 << 20),
            "]".repeat(1 << 20)
        );
        assert_eq!(judge(&["b=1"], &deep), Verdict::Match);
        assert_eq!(judge(&["a.0=1"], &deep), Verdict::Other);
    }
}
