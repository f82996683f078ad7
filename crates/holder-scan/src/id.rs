//! Session ids, and how they are found among bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;
use serde::{Serialize, Serializer};

/// A session id that is asked for.
///
/// Ids are compared whole; UUIDs without regard to case, since some agents take either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    text: Cow<'static, str>,
    is_uuid: bool,
}

impl SessionId {
    /// The id `text`, as the caller spells it.
    ///
    /// # Errors
    ///
    /// It is empty, has more than one line, or is longer than any agent's. Said for people.
    pub fn new(text: &str) -> Result<SessionId, String> {
        SessionId::of(text.to_owned().into())
    }

    /// As [`SessionId::new`], without a copy of what is there until the end.
    pub fn of(text: Cow<'static, str>) -> Result<SessionId, String> {
        let is_uuid = is_uuid(text.as_bytes());
        if text.is_empty() {
            return Err("a session id is not empty".to_owned());
        }
        if text.len() > 1024 {
            return Err("a session id is not longer than 1024 bytes".to_owned());
        }
        if !is_uuid && text.contains(char::is_control) {
            return Err("a session id is one line without control characters".to_owned());
        }
        Ok(SessionId { text, is_uuid })
    }

    /// What all spellings of it have in common.
    fn key(&self) -> Cow<'static, [u8]> {
        match &self.text {
            Cow::Borrowed(text) => folded(text.as_bytes(), self.is_uuid),
            Cow::Owned(text) => folded(text.as_bytes(), self.is_uuid).into_owned().into(),
        }
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `word` is this id.
    pub fn is(&self, word: &[u8]) -> bool {
        if self.is_uuid {
            word.eq_ignore_ascii_case(self.text.as_bytes())
        } else {
            word == self.text.as_bytes()
        }
    }

    /// Whether `bytes` holds this id as a word of its own: no letter or digit is before it (`_` and
    /// `-` may be, as in `rollout-TIME-ID.jsonl`), and none, nor `-` nor `_`, is after it.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let mut from = 0;
        while let Some(start) = self.find(bytes, from) {
            let before = start.checked_sub(1).and_then(|at| bytes.get(at));
            let after = bytes.get(start + self.text.len());
            let longer = before.is_some_and(u8::is_ascii_alphanumeric)
                || after.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
            if !longer {
                return true;
            }
            from = start + 1;
        }
        false
    }

    /// Where this id's bytes first start in `bytes`, not before `from`.
    fn find(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        if !self.is_uuid {
            return memmem::find(rest, self.text.as_bytes()).map(|start| from + start);
        }
        let word = uuids(rest).find(|word| self.is(word))?;
        Some(word.as_ptr().addr() - bytes.as_ptr().addr())
    }
}

/// The ids of one question, each once, and a quick look for any of them: a thousand cost hardly more
/// than one.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    all: Vec<SessionId>,
    /// The key of each.
    known: HashSet<Cow<'static, [u8]>>,
    has_uuids: bool,
    /// The lengths of those that are no UUIDs, each once.
    lengths: Vec<usize>,
    /// Whether one of those begins with a byte.
    firsts: Firsts,
}

impl Ids {
    /// The distinct ones of `ids`, in their order.
    pub fn new(ids: Vec<SessionId>) -> Ids {
        let mut distinct = Ids {
            all: ids,
            ..Ids::default()
        };
        let known = &mut distinct.known;
        known.reserve(distinct.all.len());
        distinct.all.retain(|id| known.insert(id.key()));
        for id in &distinct.all {
            if id.is_uuid {
                distinct.has_uuids = true;
                continue;
            }
            let word = id.text.as_bytes();
            distinct.firsts.0[usize::from(word[0])] = true;
            if !distinct.lengths.contains(&word.len()) {
                distinct.lengths.push(word.len());
            }
        }
        distinct
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The ids, in the order in which they were asked for.
    pub fn iter(&self) -> std::slice::Iter<'_, SessionId> {
        self.all.iter()
    }

    /// Whether `word` is one of them.
    pub fn has(&self, word: &[u8]) -> bool {
        self.known.contains(&*folded(word, is_uuid(word)))
    }

    /// Whether the bytes of any of them are anywhere in `bytes`, also inside of a longer word: the
    /// quick look that says what is worth a closer one.
    pub fn any_near(&self, bytes: &[u8]) -> bool {
        if self.has_uuids && uuids(bytes).any(|word| self.known.contains(&*folded(word, true))) {
            return true;
        }
        match self.all.as_slice() {
            [] => false,
            [id] => !id.is_uuid && memmem::find(bytes, id.text.as_bytes()).is_some(),
            _ => self.lengths.iter().any(|&length| {
                let mut words = bytes.windows(length);
                words.any(|word| self.firsts.0[usize::from(word[0])] && self.known.contains(word))
            }),
        }
    }
}

impl Serialize for Ids {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(SessionId::as_str))
    }
}

#[derive(Clone, Debug)]
struct Firsts([bool; 256]);

impl Default for Firsts {
    fn default() -> Firsts {
        Firsts([false; 256])
    }
}

/// An id as all spellings of it are compared: case does not count in UUIDs.
fn folded(word: &[u8], is_uuid: bool) -> Cow<'_, [u8]> {
    if is_uuid && word.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(word.to_ascii_lowercase())
    } else {
        Cow::Borrowed(word)
    }
}

/// All that has the form of a UUID in `bytes`.
fn uuids(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    // The first dash is the first byte of one that can be searched for.
    memchr::memchr_iter(b'-', bytes).filter_map(|dash| {
        let start = dash.checked_sub(DASHES[0])?;
        let word = bytes.get(start..start + UUID_LENGTH)?;
        is_uuid(word).then_some(word)
    })
}

/// The bytes of a UUID.
const UUID_LENGTH: usize = 36;

/// Where a UUID has its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Whether `word` has the form of a UUID, of whatever version.
pub fn is_uuid(word: &[u8]) -> bool {
    let is_hex = |byte: &&u8| IS_HEX[usize::from(**byte)];
    word.len() == UUID_LENGTH
        && DASHES.iter().all(|&at| word[at] == b'-')
        && word.iter().filter(is_hex).count() == UUID_LENGTH - DASHES.len()
}

/// Which bytes are hexadecimal digits. In a table, since whether the next one will be a letter cannot
/// be foretold: of a branch for that a processor guesses half wrong, which costs more than all else
/// that is done with a UUID.
const IS_HEX: [bool; 256] = {
    let mut is_hex = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_hex[byte] = (byte as u8).is_ascii_hexdigit();
        byte += 1;
    }
    is_hex
};

/// Whether `word` can only be a session id: it has the form that some agent mints. A word of
/// another form may be an id as well, but also a title, `latest`, or the next argument.
pub fn looks_like_one(word: &[u8]) -> bool {
    let opencode = |rest: &[u8]| rest.len() >= 20 && rest.iter().all(u8::is_ascii_alphanumeric);
    let hermes = |word: &[u8]| {
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        word.len() >= 17
            && word.get(8) == Some(&b'_')
            && word.get(15) == Some(&b'_')
            && digits(&word[..8])
            && digits(&word[9..15])
    };
    is_uuid(word) || word.strip_prefix(b"ses_").is_some_and(opencode) || hermes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "00000000-0000-4000-8000-0000000000a1";

    #[test]
    fn ids_are_compared_whole() {
        let id = SessionId::new(UUID).unwrap();
        assert!(id.is(UUID.to_uppercase().as_bytes()));
        assert!(!id.is(format!("{UUID}9").as_bytes()));
        let plain = SessionId::new("abc-1").unwrap();
        assert!(plain.is(b"abc-1"));
        assert!(
            !plain.is(b"ABC-1"),
            "only UUIDs are the same in either case"
        );
    }

    #[test]
    fn an_id_inside_a_longer_word_is_near_and_not_in() {
        let table = [
            ("abc-1", "abc-1", true),
            ("abc-1", "abc-12", false),
            ("abc-1", "xabc-1", false),
            ("abc-1", "abc-1-b", false),
            ("abc-1", "/p/abc-1.jsonl", true),
            ("abc-1", "t_abc-1.jsonl", true),
            ("abc-1", "abc-12 abc-1", true),
            ("a|b", "x a|b y", true),
            (".*", "anything", false),
        ];
        for (id, text, found) in table {
            let id = SessionId::new(id).unwrap();
            assert_eq!(id.is_in(text.as_bytes()), found, "{text}");
        }
    }

    fn ids(words: &[&str]) -> Ids {
        Ids::new(
            words
                .iter()
                .map(|word| SessionId::new(word).unwrap())
                .collect(),
        )
    }

    #[test]
    fn any_of_many_is_found() {
        let upper = UUID.to_uppercase();
        let table: [(&[&str], &str, bool); 12] = [
            (&[UUID], &format!("--x={upper}9"), true),
            (&[UUID], "-", false),
            (&[UUID], &UUID[..35], false),
            (&[UUID], &format!("-{UUID}"), true),
            (&[&upper], UUID, true),
            (&["ses_1"], "a ses_12", true),
            (&["ses_1"], "SES_1", false),
            (&["ses_1", UUID], UUID, true),
            (&["ses_1", UUID], "a ses_12", true),
            (&["ses_1", "ses_123", UUID], "ses_2", false),
            (&["ses_2", "ses_123"], "ses_12 ses_123", true),
            (&[], UUID, false),
        ];
        for (asked, text, near) in table {
            assert_eq!(
                ids(asked).any_near(text.as_bytes()),
                near,
                "{asked:?} {text}"
            );
        }
    }

    #[test]
    fn each_is_asked_once() {
        let upper = UUID.to_uppercase();
        let asked = ids(&["b", UUID, "B", &upper, "b"]);
        let words: Vec<&str> = asked.iter().map(SessionId::as_str).collect();
        assert_eq!(words, ["b", UUID, "B"]);
        assert!(asked.has(upper.as_bytes()) && asked.has(b"B") && !asked.has(b"c"));
    }

    #[test]
    fn what_is_no_id() {
        for text in ["", "a\nb", "a\0b", "\x1b[0m"] {
            assert!(SessionId::new(text).is_err(), "{text:?}");
        }
        assert!(SessionId::new(&"x".repeat(1025)).is_err());
    }

    #[test]
    fn minted_forms() {
        for word in [
            UUID,
            "ses_0123456789abABCDEFGHIJKLMN",
            "20261129_142621_a1b2c3",
        ] {
            assert!(looks_like_one(word.as_bytes()), "{word}");
        }
        for word in ["latest", "ses_x", "my title", "20261129", "--last", ""] {
            assert!(!looks_like_one(word.as_bytes()), "{word}");
        }
    }
}
