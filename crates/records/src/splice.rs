//! Setting one key of a JSON object in its text, every other byte as it was.

use std::ops::Range;

use crate::record::{Member, elements, index, members};

/// `text`, an object with these members, with `key` set to the JSON `value`.
pub(crate) fn set(text: &str, members: &[Member<'_>], key: &str, value: &str) -> String {
    let mut out = String::with_capacity(text.len() + key.len() + value.len() + 8);
    let mut done = 0;
    for member in members.iter().filter(|member| member.key == key) {
        let old = span(text, member.value.get());
        out.push_str(&text[done..old.start]);
        out.push_str(value);
        done = old.end;
    }
    if done == 0 {
        let (at, comma) = match members.last() {
            Some(last) => (span(text, last.value.get()).end, ","),
            None => (text.rfind('}').unwrap_or(text.len()), ""),
        };
        out.push_str(&text[..at]);
        out.push_str(comma);
        out.push_str(&quoted(key));
        out.push(':');
        out.push_str(value);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

/// As [`set`], for the key at the end of `path`, inside of the object `text`.
pub(crate) fn set_at(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    let no_object = || format!("no object to set {} in", path.join("."));
    let [way @ .., key] = path else {
        return Err("an empty path".to_owned());
    };
    let mut object = text;
    for step in way {
        object = child(object, step).ok_or_else(no_object)?;
    }
    let inner = members(object).map_err(|_| no_object())?;
    let hole = span(text, object);
    let new = set(object, &inner, key, value);
    Ok([&text[..hole.start], &new, &text[hole.end..]].concat())
}

fn child<'a>(text: &'a str, step: &str) -> Option<&'a str> {
    let value = if text.trim_start().starts_with('[') {
        elements(text)?.get(index(step)?).copied()?
    } else {
        crate::record::find(&members(text).ok()?, step)?
    };
    Some(value.get())
}

/// Where `part`, a slice of `whole`, lies in it.
fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
