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
/// of another type is shown as its type and its keys and values.
pub type HumanView = &'static [(&'static str, &'static [Column])];

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
        let text = cell(record.get(column.key));
        // Two blanks more, so that columns never touch.
        let pad = column.width.saturating_sub(text.chars().count()) + 2;
        line.push_str(&text);
        line.extend(std::iter::repeat_n(' ', pad));
    }
    line
}

fn listed(record: &Record<'_>, kind: &str) -> String {
    let mut line = shown(kind).into_owned();
    let keys = record.members().iter();
    for member in keys.filter(|member| !matches!(member.key.as_ref(), "v" | "type")) {
        line.push_str("  ");
        line.push_str(&shown(&member.key));
        line.push('=');
        line.push_str(&cell(Some(member.value)));
    }
    line
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
                r#"{"v":1,"type":"x","a":"b\nc","n":null,"o":{"k":1}}"#,
                "x  a=b\\x0ac  n=-  o={\"k\":1}",
            ),
            ("{\"a\":1}", "-  a=1"),
        ];
        for (record, want) in table {
            let record = Record::parse(record.as_bytes()).unwrap();
            assert_eq!(line(&record, VIEW), want);
        }
    }
}
