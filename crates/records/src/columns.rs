//! `-o KEY,...`: values of a record as columns, or as words of the shell.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::record::{Record, elements, string};
use crate::say::is_unsafe;

/// The values of `keys` in `record`, separated by tabs; `None` if it has none
/// of them. A string is shown as its text, anything else as JSON, `null` and
/// what is missing as an empty column. What could break a column or a line
/// becomes a blank.
pub fn tabbed(record: &Record<'_>, keys: &[String]) -> Option<String> {
    let values = values(record, keys)?;
    let columns: Vec<_> = values.into_iter().map(column).collect();
    Some(columns.join("\t"))
}

/// The values of `keys` in `record` as words that a POSIX shell's `eval` reads
/// back, separated by one blank; `None` if it has none of them. `null` and what
/// is missing is `''`, an array is its elements. A newline in a value stays,
/// inside of quotes.
pub fn shell_words(record: &Record<'_>, keys: &[String]) -> Option<String> {
    let mut words = Vec::new();
    for value in values(record, keys)? {
        match value.and_then(|value| elements(value.get())) {
            Some(elements) => words.extend(elements.into_iter().map(|item| word(Some(item)))),
            None => words.push(word(value)),
        }
    }
    Some(words.join(" "))
}

fn values<'a>(record: &Record<'a>, keys: &[String]) -> Option<Vec<Option<&'a RawValue>>> {
    let values: Vec<_> = keys.iter().map(|key| record.get(key)).collect();
    values.iter().any(Option::is_some).then_some(values)
}

/// A value's text: that of a string, the JSON of anything else, nothing for
/// `null`.
pub(crate) fn plain(value: Option<&RawValue>) -> Cow<'_, str> {
    match value {
        None => Cow::Borrowed(""),
        Some(value) if value.get() == "null" => Cow::Borrowed(""),
        Some(value) => string(value).unwrap_or(Cow::Borrowed(value.get())),
    }
}

fn column(value: Option<&RawValue>) -> String {
    let blank = |c| if is_unsafe(c) { ' ' } else { c };
    plain(value).chars().map(blank).collect()
}

/// Numbers and truth values stand as they are, all else is quoted, whether it
/// needs it or not: a bare word could be an alias, a keyword, an assignment.
fn word(value: Option<&RawValue>) -> String {
    let text = plain(value);
    match value.map(|value| value.get().as_bytes()) {
        Some([b'0'..=b'9' | b'-', ..] | b"true" | b"false") => text.into_owned(),
        // No argument can carry NUL.
        _ => format!(
            "'{}'",
            text.replace('\0', "\u{fffd}").replace('\'', "'\\''")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"pid":12,"f":1.0,"s":"a\tb\nc\u001b\u0085\u2028d","n":null,
        "o":{"k":"v x"},"argv":["it's","a\nb","",null,3,["x"],"$(id)"],"e":[],"t":true,"z":"a\u0000b"}"#;

    fn keys(keys: &str) -> Vec<String> {
        keys.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn columns_never_break() {
        let line = LINE.replace('\n', "");
        let record = Record::parse(line.as_bytes()).unwrap();
        let table = [
            ("pid", Some("12")),
            ("pid,f,t", Some("12\t1.0\ttrue")),
            ("s", Some("a b c   d")),
            ("n", Some("")),
            ("pid,n,missing,o.k", Some("12\t\t\tv x")),
            ("o", Some(r#"{"k":"v x"}"#)),
            ("argv.0", Some("it's")),
            ("missing", None),
            ("missing,o.none", None),
        ];
        for (columns, want) in table {
            assert_eq!(
                tabbed(&record, &keys(columns)).as_deref(),
                want,
                "{columns}"
            );
        }
    }

    #[test]
    fn words_are_quoted() {
        let line = LINE.replace('\n', "");
        let record = Record::parse(line.as_bytes()).unwrap();
        let table = [
            ("pid,f,t", Some("12 1.0 true")),
            ("argv", Some("'it'\\''s' 'a\nb' '' '' 3 '[\"x\"]' '$(id)'")),
            ("pid,n,missing", Some("12 '' ''")),
            ("e", Some("")),
            ("e,pid", Some("12")),
            ("o", Some(r#"'{"k":"v x"}'"#)),
            ("z", Some("'a\u{fffd}b'")),
            ("missing", None),
        ];
        for (columns, want) in table {
            assert_eq!(
                shell_words(&record, &keys(columns)).as_deref(),
                want,
                "{columns}"
            );
        }
    }

    #[test]
    fn a_shell_reads_the_words_back() {
        let words = [
            "it's",
            "a\nb",
            "",
            " ",
            "*",
            "$HOME `id` \\",
            "-n",
            "#",
            "~",
            "\u{1b}[m",
            "ü",
        ];
        let line = serde_json::json!({ "argv": words }).to_string();
        let record = Record::parse(line.as_bytes()).unwrap();
        let shell = shell_words(&record, &keys("argv")).unwrap();
        let out = std::process::Command::new("sh")
            .args([
                "-c",
                "eval \"set -- $1\"; printf '%s\\0' \"$@\"",
                "sh",
                &shell,
            ])
            .output()
            .unwrap();
        let want: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), want);
    }
}
