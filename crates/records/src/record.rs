//! One line of input, seen as a JSON object without being taken apart.
//!
//! A filter must give back every byte it does not own, so a record is never
//! parsed into values and printed again (which would turn `1e400`, `1.0` or
//! 18446744073709551615 into something else): it is a view on its own text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use serde::de::value::MapDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::number;
use crate::splice;

/// A JSON object, as it was written.
///
/// Nesting is skipped without recursion, so no depth of it can overflow the
/// stack. Of a key that is there twice the last one counts, as in `jq`.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    text: &'a str,
    members: Vec<Member<'a>>,
}

/// One member of a JSON object.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The key, its escapes resolved.
    pub key: Cow<'a, str>,
    /// The value, as it was written.
    pub value: &'a RawValue,
}

impl<'a> Record<'a> {
    /// Takes one line (without its newline) as a record.
    ///
    /// # Errors
    /// Says for people why the line is not a JSON object: it is empty, is not
    /// UTF-8, is another kind of JSON, is cut off, is followed by something.
    pub fn parse(line: &'a [u8]) -> Result<Self, String> {
        let text = str::from_utf8(line).map_err(|error| {
            let at = error.valid_up_to() + 1;
            format!("not a JSON object: not UTF-8 at byte {at}")
        })?;
        let blank = |c| matches!(c, ' ' | '\t' | '\r' | '\n');
        match text.trim_start_matches(blank).bytes().next() {
            None => return Err("not a JSON object: an empty line".to_owned()),
            Some(b'{') => {}
            Some(_) => return Err("not a JSON object".to_owned()),
        }
        let members = members(text).map_err(|error| {
            // The reader counts lines and columns; there is but one line here.
            let (message, at) = (error.to_string(), error.column());
            let why = message.split(" at line ").next().unwrap_or_default();
            format!("not a JSON object: {why} at byte {at}")
        })?;
        Ok(Self { text, members })
    }

    /// The line, byte for byte.
    pub fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The line.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Keys and values in their order, a repeated key as often as it is there.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// The value at a path: keys and array indices, separated by dots
    /// (`verdict.state`, `stale.0.pid`). A key that has dots itself wins.
    pub fn get(&self, path: &str) -> Option<&'a RawValue> {
        resolve(path, |key| find(&self.members, key))
    }

    /// The text of the string at a path, its escapes resolved; `None` if there
    /// is none or it is not a string.
    pub fn str(&self, path: &str) -> Option<Cow<'a, str>> {
        string(self.get(path)?)
    }

    /// The whole number at a path, written as such (`12`; not `12.0`, `1e3`,
    /// `-1` or `"12"`), up to 2^64-1. One over [`number::EXACT`] may be a string.
    pub fn u64(&self, path: &str) -> Option<u64> {
        let value = self.get(path)?.get();
        match value.strip_prefix('"') {
            None => number::parse(value).ok(),
            Some(rest) => {
                let number = number::parse(rest.strip_suffix('"')?).ok()?;
                (number > number::EXACT).then_some(number)
            }
        }
    }

    /// The truth value at a path.
    pub fn bool(&self, path: &str) -> Option<bool> {
        match self.get(path)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether there is a value at a path, and it is not `null`.
    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_some_and(|value| value.get() != "null")
    }

    /// The elements of the array at a path; `None` if there is no array.
    pub fn array(&self, path: &str) -> Option<Vec<&'a RawValue>> {
        elements(self.get(path)?.get())
    }

    /// The record's `type`, if it is a string.
    pub fn kind(&self) -> Option<Cow<'a, str>> {
        self.str("type")
    }

    /// The whole record as a Rust type. Keys that the type does not know are
    /// skipped; of a repeated key the last one counts.
    ///
    /// # Errors
    /// Says for people what does not fit.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, String> {
        let mut seen = HashSet::new();
        let from_the_last = self.members.iter().rev();
        let entries = from_the_last
            .filter(|member| seen.insert(member.key.as_ref()))
            .map(|member| (member.key.as_ref(), member.value));
        T::deserialize(MapDeserializer::new(entries))
            .map_err(|error: serde_json::Error| error.to_string())
    }

    /// The value at a path as a Rust type; `None` if there is none.
    ///
    /// # Errors
    /// Names the path and says what does not fit.
    pub fn decode_at<T: Deserialize<'a>>(&self, path: &str) -> Result<Option<T>, String> {
        let Some(value) = self.get(path) else {
            return Ok(None);
        };
        match serde_json::from_str(value.get()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }

    /// The same line with `key` set to `value`, every other byte as it was: in
    /// the place of each value that `key` has already, else after the last one.
    ///
    /// # Errors
    /// `value` cannot be written as JSON.
    pub fn with<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> serde_json::Result<Vec<u8>> {
        let value = serde_json::to_string(value)?;
        Ok(splice::set(self.text, &self.members, key, &value).into_bytes())
    }

    /// As [`Record::with`], for a key inside of the record: `path` leads
    /// through keys and array indices to an object, its last item is the key.
    /// Of a repeated key on the way the last one is changed.
    ///
    /// # Errors
    /// There is no object at the path, or `value` cannot be written as JSON.
    pub fn with_at<T: Serialize + ?Sized>(
        &self,
        path: &[&str],
        value: &T,
    ) -> Result<Vec<u8>, String> {
        let value = serde_json::to_string(value).map_err(|error| error.to_string())?;
        splice::set_at(self.text, path, &value).map(String::into_bytes)
    }
}

/// The text of a JSON string, its escapes resolved; `None` if it is something
/// else. Half a surrogate pair becomes U+FFFD, as in `jq`.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    if let Ok(text) = serde_json::from_str(value.get()) {
        return Some(Cow::Owned(text));
    }
    // A reader of bytes lets half a pair through, in three bytes like those of
    // any other character of that size.
    let bytes = serde_json::from_str::<Bytes>(value.get()).ok()?.0;
    Some(Cow::Owned(without_surrogates(&bytes)))
}

/// `bytes` as text, each surrogate (`ED A0..BF xx`) as one U+FFFD.
fn without_surrogates(bytes: &[u8]) -> String {
    let mut valid = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if let [0xed, 0xa0..=0xbf, _, ..] = rest {
            valid.extend_from_slice("\u{fffd}".as_bytes());
            rest = &rest[3..];
        } else {
            valid.push(*first);
            rest = &rest[1..];
        }
    }
    String::from_utf8_lossy(&valid).into_owned()
}

/// The members of the object that `text` is.
pub(crate) fn members(text: &str) -> serde_json::Result<Vec<Member<'_>>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Members)?;
    reader.end()?;
    Ok(members)
}

/// The elements of the array that `text` is; `None` if it is something else.
pub fn elements(text: &str) -> Option<Vec<&RawValue>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_seq(Elements).ok()
}

pub(crate) fn find<'a>(members: &[Member<'a>], key: &str) -> Option<&'a RawValue> {
    let found = members.iter().rev().find(|member| member.key == key)?;
    Some(found.value)
}

/// Tries the whole of `path` as one key first, then what is before each of its
/// dots, the longest first.
fn resolve<'a>(path: &str, lookup: impl Fn(&str) -> Option<&'a RawValue>) -> Option<&'a RawValue> {
    if let Some(value) = lookup(path) {
        return Some(value);
    }
    path.rmatch_indices('.').find_map(|(dot, _)| {
        let inner = lookup(&path[..dot])?.get();
        inside(inner, &path[dot + 1..])
    })
}

fn inside<'a>(text: &'a str, path: &str) -> Option<&'a RawValue> {
    if text.starts_with('{') {
        let members = members(text).ok()?;
        resolve(path, |key| find(&members, key))
    } else if text.starts_with('[') {
        let elements = elements(text)?;
        resolve(path, |key| elements.get(index(key)?).copied())
    } else {
        None
    }
}

/// An array index, in the one way of writing it.
pub(crate) fn index(key: &str) -> Option<usize> {
    usize::try_from(number::parse(key).ok()?).ok()
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        // Keys are taken raw as well, so that half a surrogate pair in one does
        // not make the line unreadable.
        while let Some(key) = map.next_key_seed(Raw)? {
            let key = string(key).unwrap_or_default();
            let value = map.next_value_seed(Raw)?;
            members.push(Member { key, value });
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(Raw)? {
            elements.push(element);
        }
        Ok(elements)
    }
}

struct Raw;

impl<'de> DeserializeSeed<'de> for Raw {
    type Value = &'de RawValue;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(reader)
    }
}

struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Record<'_> {
        Record::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn only_a_json_object_is_a_record() {
        for line in [
            "{}",
            " {\"a\" : 1 }\r",
            "\t{\"\":null}",
            "{\"a\":1,\"a\":2}",
        ] {
            assert_eq!(parse(line).bytes(), line.as_bytes());
        }
        let bad: [&[u8]; 20] = [
            b"",
            b" ",
            b"[]",
            b"1",
            b"\"a\"",
            b"null",
            b"nope",
            b"{",
            b"{\"a\":}",
            b"{\"a\":1",
            b"{\"a\":1}}",
            b"{\"a\":1} {}",
            b"{\"a\":01}",
            b"{a:1}",
            b"{\"a\":1,}",
            b"{\"a\":\"\x01\"}",
            b"{\"a\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"{1:2}",
            b"{\"a\":\"\\x\"}",
        ];
        for line in bad {
            let why = Record::parse(line).expect_err(&String::from_utf8_lossy(line));
            assert!(why.starts_with("not a JSON object"), "{why}");
        }
        let why = Record::parse(b"{\"a\":1} x").unwrap_err();
        assert_eq!(why, "not a JSON object: trailing characters at byte 9");
    }

    #[test]
    fn no_depth_of_nesting_overflows_the_stack() {
        let depth = 4 << 20;
        let deep = ["[".repeat(depth), "]".repeat(depth)].concat();
        let line = format!("{{\"a\":{deep},\"b\":7}}");
        let record = parse(&line);
        assert_eq!(record.u64("b"), Some(7));
        assert_eq!(record.get("a.0.0").unwrap().get().len(), 2 * depth - 4);
        assert!(record.decode_at::<Vec<u8>>("a").is_err());
        #[derive(serde::Deserialize)]
        struct B {
            b: u64,
        }
        assert_eq!(record.decode::<B>().unwrap().b, 7);
        let objects = ["{\"a\":".repeat(1 << 20), "1".into(), "}".repeat(1 << 20)].concat();
        assert!(parse(&objects).with("b", "c").is_ok());
        assert!(Record::parse(&objects.as_bytes()[..objects.len() - 1]).is_err());
    }

    #[test]
    fn paths_lead_to_values() {
        let record = parse(
            r#"{"a":{"b":[10,{"c":"x"}],"":5},"a.b":"dotted","d":1,"d":2,"\u0065":3,
                "x.y":{"z":4},"1":"one","n":null,"s":[{"p":1,"p":2}]}"#,
        );
        let table = [
            ("a.b", Some("\"dotted\"")),
            ("a.b.0", Some("10")),
            ("a.b.1.c", Some("\"x\"")),
            ("a.b.2", None),
            ("a.b.00", None),
            ("a.b.-1", None),
            ("a.b.c", None),
            ("a.", Some("5")),
            ("d", Some("2")),
            ("d.0", None),
            ("e", Some("3")),
            ("x.y.z", Some("4")),
            ("1", Some("\"one\"")),
            ("n", Some("null")),
            ("s.0.p", Some("2")),
            ("", None),
            (".", None),
            ("missing", None),
        ];
        for (path, want) in table {
            assert_eq!(record.get(path).map(RawValue::get), want, "{path:?}");
        }
        assert!(record.has("d") && !record.has("n") && !record.has("missing"));
        assert_eq!(record.array("s").unwrap().len(), 1);
        assert!(record.array("a").is_none());
    }

    #[test]
    fn values_are_read_strictly() {
        let record = parse(
            r#"{"type":"process","i":12,"big":18446744073709551615,"over":18446744073709551616,
                "text":"9007199254740993","f":12.0,"e":1e3,"m":-1,"s":"12","t":true,"z":false,"esc":"a\n\u00e9\ud83d\ude00",
                "half":"x\ud800y","two":"\udc00\ud800"}"#,
        );
        assert_eq!(record.kind().as_deref(), Some("process"));
        assert_eq!(record.u64("i"), Some(12));
        assert_eq!(record.u64("big"), Some(u64::MAX));
        assert_eq!(record.u64("text"), Some(9_007_199_254_740_993));
        for path in ["over", "f", "e", "m", "s", "t", "missing"] {
            assert_eq!(record.u64(path), None, "{path}");
        }
        assert_eq!(record.bool("t"), Some(true));
        assert_eq!(record.bool("z"), Some(false));
        assert_eq!(record.bool("i"), None);
        assert_eq!(record.str("esc").as_deref(), Some("a\né😀"));
        assert_eq!(record.str("half").as_deref(), Some("x\u{fffd}y"));
        assert_eq!(record.str("two").as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(record.str("i"), None);
    }

    #[test]
    fn records_become_types() {
        #[derive(serde::Deserialize)]
        struct Target<'a> {
            pid: u32,
            #[serde(borrow)]
            ident: Option<Cow<'a, str>>,
            #[serde(borrow)]
            rest: Option<&'a RawValue>,
            missing: Option<bool>,
        }
        let line = r#"{"pid":1,"x":[1e400],"ident":"a\tb","rest":{"n":1.0},"pid":2}"#;
        let record = parse(line);
        let target: Target<'_> = record.decode().unwrap();
        assert_eq!((target.pid, target.missing), (2, None));
        assert_eq!(target.ident.as_deref(), Some("a\tb"));
        assert_eq!(target.rest.map(RawValue::get), Some("{\"n\":1.0}"));
        assert!(parse("{\"pid\":-1}").decode::<Target<'_>>().is_err());
        assert_eq!(record.decode_at::<u8>("pid"), Ok(Some(2)));
        assert_eq!(record.decode_at::<u8>("none"), Ok(None));
        let why = record.decode_at::<u8>("ident").unwrap_err();
        assert!(why.starts_with("ident: "), "{why}");
    }
}
