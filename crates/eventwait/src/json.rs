//! Looking for a few keys in a line of JSON, without taking the rest apart.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// A dotted path to a value: keys, and indices of arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Every way to cut the path in two at a dot, after all of it as one key: a key that has dots
    /// itself wins, then the longest.
    cuts: Vec<(String, Option<Path>)>,
}

impl Path {
    /// The path that `text` writes.
    pub fn new(text: &str) -> Path {
        let dots = text.rmatch_indices('.');
        let cut =
            |(at, _): (usize, &str)| (text[..at].to_owned(), Some(Path::new(&text[at + 1..])));
        let whole = std::iter::once((text.to_owned(), None));
        Path {
            cuts: whole.chain(dots.map(cut)).collect(),
        }
    }

    /// The value that the path leads to, starting inside of `json`.
    fn lead<'a>(&self, json: &'a str) -> Option<&'a str> {
        Wanted::new([self]).look(json)?.get(self)
    }
}

/// The keys that have to be found at the top of a line.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    keys: Vec<String>,
}

/// What was found of them.
pub struct Found<'a, 'w> {
    keys: &'w [String],
    values: Values<'a>,
}

/// One place for each wanted key.
type Values<'a> = Vec<Option<&'a str>>;

impl Wanted {
    /// The keys that `paths` may begin with.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Wanted {
        let cuts = paths.into_iter().flat_map(|path| &path.cuts);
        let mut keys: Vec<String> = cuts.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys.dedup();
        Wanted { keys }
    }

    /// Looks for them in `text`; `None` if that is not JSON. In an array the keys are indices. Of
    /// a key that is there twice the last one counts.
    pub fn look<'a>(&self, text: &'a str) -> Option<Found<'a, '_>> {
        let first = text.bytes().find(|b| !b.is_ascii_whitespace());
        let mut reader = serde_json::Deserializer::from_str(text);
        let values = match first {
            Some(b'{') => reader.deserialize_map(Look(&self.keys)),
            Some(b'[') => reader.deserialize_seq(Look(&self.keys)),
            // A scalar has no keys.
            _ => IgnoredAny::deserialize(&mut reader).map(|_| Values::new()),
        };
        let values = values.ok()?;
        reader.end().ok()?;
        Some(Found {
            keys: &self.keys,
            values,
        })
    }
}

impl<'a> Found<'a, '_> {
    /// The JSON of the value at `path`, if there is one.
    pub fn get(&self, path: &Path) -> Option<&'a str> {
        path.cuts.iter().find_map(|(key, inner)| {
            let at = self.keys.iter().position(|wanted| wanted == key)?;
            let value = (*self.values.get(at)?)?;
            match inner {
                None => Some(value),
                Some(inner) => inner.lead(value),
            }
        })
    }
}

/// A value's text: that of a string, its escapes resolved, and the JSON of anything else.
pub fn text(json: &str) -> Cow<'_, str> {
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    match inner {
        None => Cow::Borrowed(json),
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        Some(_) => serde_json::from_str::<&RawValue>(json)
            .ok()
            .and_then(records::record::string)
            .unwrap_or(Cow::Borrowed(json)),
    }
}

struct Look<'w>(&'w [String]);

impl<'de> Visitor<'de> for Look<'_> {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values<'de>, A::Error> {
        let mut values = vec![None; self.0.len()];
        while let Some(key) = map.next_key_seed(Key(self.0))? {
            match key.and_then(|at| values.get_mut(at)) {
                Some(place) => *place = Some(map.next_value::<&RawValue>()?.get()),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(values)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Values<'de>, A::Error> {
        let index = |key: &String| records::number::parse(key).ok();
        let wanted: Vec<_> = self.0.iter().map(index).collect();
        let mut values = vec![None; wanted.len()];
        let mut at = 0;
        while let Some(element) = seq.next_element::<&RawValue>()? {
            let here = wanted.iter().position(|&index| index == Some(at));
            if let Some(place) = here.and_then(|here| values.get_mut(here)) {
                *place = Some(element.get());
            }
            at += 1;
        }
        Ok(values)
    }
}

/// Which of the wanted keys comes next, if it is one.
struct Key<'w>(&'w [String]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        let raw = <&RawValue>::deserialize(reader)?.get();
        let key = text(raw);
        Ok(self.0.iter().position(|wanted| *wanted == key))
    }
}
