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
