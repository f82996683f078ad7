//! `-H`: a record as one aligned line, for eyes.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::columns::plain;
use crate::record::{Record, elements};
use crate::say::shown;

/// One column of the lines for eyes.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The value's path in the record.
    pub key: &'static str,
    /// The least width, in characters; a longer value pushes the rest aside.
    pub width: usize,
}

/// How a tool shows its records: for each type of record, its columns. A record
/// of another type is shown as its type and, with their keys, its short values.
pub type HumanView = &'static [(&'static str, &'static [Column])];

/// What is worth a look in records that pass through many tools.
const TELLING: [(&str, &[&str]); 2] = [
    ("scan", &["verdict", "holders", "processes", "complete"]),
    (
        "exit",
        &[
            "pid",
            "code",
            "signal",
            "deliberate",
            "uptime_ms",
            "tag",
            "argv",
        ],
    ),
];

/// How many characters of a value are shown beside its key.
const SHORT: usize = 40;

/// `record` as one line, without a newline. Control characters are made
/// visible, a `null` or a missing value is `-`.
pub fn line(record: &Record<'_>, view: HumanView) -> String {
    let kind = record.kind().unwrap_or(Cow::Borrowed("-"));
    let line = match view.iter().find(|(known, _)| *known == kind) {
        Some((_, columns)) => aligned(record, columns),
        None => listed(record, &kind),
    };
    line.trim_end().to_owned()
}

fn aligned(record: &Record<'_>, columns: &[Column]) -> String {
    let mut line = String::new();
    for column in columns {
        let value = record.get(column.key);
        let text = match value.map(RawValue::get) {
            // There is no heading that says of what it is true.
            Some("true") => name(column.key).to_owned(),
            Some("false") => format!("not {}", name(column.key)),
            _ => cell(value),
        };
        // Two blanks more, so that columns never touch.
        let pad = column.width.saturating_sub(text.chars().count()) + 2;
        line.push_str(&text);
        line.extend(std::iter::repeat_n(' ', pad));
    }
    line
}

fn listed(record: &Record<'_>, kind: &str) -> String {
    let telling = TELLING.iter().find(|(known, _)| *known == kind);
    let is_told = |key: &str| match telling {
        Some((_, keys)) => keys.contains(&key),
        None => !matches!(key, "v" | "type"),
    };
    let mut line = shown(kind).into_owned();
    let members = record.members().iter();
    for member in members.filter(|member| is_told(&member.key) && is_plain(member.value)) {
        let text = cell(Some(member.value));
        line.push_str("  ");
        line.push_str(&shown(&member.key));
        line.push('=');
        line.extend(text.chars().take(SHORT));
        if text.chars().count() > SHORT {
            line.push('…');
        }
    }
    line
}

/// Whether a value says something, and is no structure of its own.
fn is_plain(value: &RawValue) -> bool {
    match elements(value.get()) {
        Some(items) => !items.is_empty() && items.into_iter().all(item_is_plain),
        None => !matches!(value.get(), "null" | "\"\"") && !value.get().starts_with('{'),
    }
}

fn item_is_plain(item: &RawValue) -> bool {
    !item.get().starts_with(['{', '['])
}

/// The last part of a dotted key.
fn name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn cell(value: Option<&RawValue>) -> String {
    let items = value.and_then(|value| elements(value.get()));
    let text = match items {
        Some(items) => {
            let items: Vec<_> = items.into_iter().map(item_text).collect();
            Cow::Owned(items.join(" "))
        }
        None => plain(value),
    };
    match text.as_ref() {
        "" => "-".to_owned(),
        text => shown(text).into_owned(),
    }
}

/// One element of a list: of a process, its number.
fn item_text(item: &RawValue) -> Cow<'_, str> {
    let record = Record::parse(item.get().as_bytes()).ok();
    let pid = record.as_ref().and_then(|record| record.get("pid"));
    match pid {
        Some(pid) => Cow::Owned(plain(Some(pid)).into_owned()),
        None => plain(Some(item)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: HumanView = &[(
        "process",
        &[
            Column {
                key: "pid",
                width: 6,
            },
            Column {
                key: "exit.code",
                width: 3,
            },
            Column {
                key: "argv",
                width: 0,
            },
        ],
    )];

    #[test]
    fn records_are_aligned_by_their_type() {
        let table = [
            (
                r#"{"type":"process","pid":12,"exit":null,"argv":["sh","-c","a\u001bb"]}"#,
                "12      -    sh -c a\\x1bb",
            ),
            (
                r#"{"type":"process","pid":1234567,"exit":{"code":3},"argv":[]}"#,
                "1234567  3    -",
            ),
            (
                r#"{"type":"process","pid":1,"argv":[{"pid":12,"x":1},{"pid":13},{"x":1}]}"#,
                "1       -    12 13 {\"x\":1}",
            ),
            (
                r#"{"v":1,"type":"x","a":"b\nc","n":null,"o":{"k":1},"l":["p q",2],"p":[{}],"e":[],"t":true}"#,
                "x  a=b\\x0ac  l=p q 2  t=true",
            ),
            (
                r#"{"type":"process","pid":true,"exit":{"code":false},"argv":["true"]}"#,
                "pid     not code  true",
            ),
            (
                r#"{"type":"scan","what":{"cwd":["/"]},"verdict":"free","holders":0,"host":"h","complete":true}"#,
                "scan  verdict=free  holders=0  complete=true",
            ),
            ("{\"a\":1}", "-  a=1"),
        ];
        let long = format!(r#"{{"type":"x","a":"{}"}}"#, "ü".repeat(41));
        let long = Record::parse(long.as_bytes()).unwrap();
        assert_eq!(line(&long, VIEW), format!("x  a={}…", "ü".repeat(40)));
        for (record, want) in table {
            let record = Record::parse(record.as_bytes()).unwrap();
            assert_eq!(line(&record, VIEW), want);
        }
    }
}
