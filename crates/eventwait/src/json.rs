//! Looking for a few keys in a line of JSON, without taking the rest apart.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// A dotted path to a value: keys, and indices of arrays.
#[derive(Clone, Debug)]
pub struct Path {
    /// The whole path, and what is left of it after each of its dots.
    rests: Vec<Rest>,
}

/// A path, or the end of one.
#[derive(Clone, Debug)]
struct Rest {
    /// Every key that it can begin with, and which of the rests comes after it. The whole of it as
    /// one key comes first: a key that has dots itself wins, then the longest.
    cuts: Vec<(String, Option<usize>)>,
    /// Those keys.
    wanted: Wanted,
}

impl Path {
    /// The path that `text` writes.
    pub fn new(text: &str) -> Path {
        let after_dots = text.match_indices('.').map(|(at, _)| at + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(after_dots).collect();
        let rest = |(number, &start): (usize, &usize)| {
            let inner = (number + 1..starts.len()).rev();
            let inner = inner.map(|next| (text[start..starts[next] - 1].to_owned(), Some(next)));
            let whole = std::iter::once((text[start..].to_owned(), None));
            let cuts: Vec<_> = whole.chain(inner).collect();
            let wanted = Wanted::of(cuts.iter().map(|(key, _)| key));
            Rest { cuts, wanted }
        };
        Path {
            rests: starts.iter().enumerate().map(rest).collect(),
        }
    }

    /// The keys that it may begin with.
    fn keys(&self) -> impl Iterator<Item = &String> {
        let whole = self.rests.first().into_iter();
        whole.flat_map(|rest| rest.cuts.iter().map(|(key, _)| key))
    }

    /// The value that one of the rests leads to, in an object of which this was found.
    fn lead<'a>(&self, rest: usize, found: &Found<'a, '_>) -> Option<&'a str> {
        let cuts = self.rests.get(rest)?.cuts.iter();
        cuts.filter_map(|(key, next)| Some((found.value(key)?, next)))
            .find_map(|(value, next)| match next {
                None => Some(value),
                Some(next) => {
                    let inner = self.rests.get(*next)?.wanted.look(value)?;
                    self.lead(*next, &inner)
                }
            })
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
        Wanted::of(paths.into_iter().flat_map(Path::keys))
    }

    fn of<'k>(keys: impl Iterator<Item = &'k String>) -> Wanted {
        let mut keys: Vec<String> = keys.cloned().collect();
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
        path.lead(0, self)
    }

    fn value(&self, key: &String) -> Option<&'a str> {
        let at = self.keys.iter().position(|wanted| wanted == key)?;
        *self.values.get(at)?
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
