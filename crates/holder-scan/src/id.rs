//! Session ids, and how they are found among bytes.

use memchr::memmem;

/// A session id that is asked for.
///
/// Ids are compared whole; UUIDs without regard to case, since some agents take either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    text: String,
    is_uuid: bool,
}

impl SessionId {
    /// The id `text`, as the caller spells it.
    ///
    /// # Errors
    ///
    /// It is empty, has more than one line, or is longer than any agent's. Said for people.
    pub fn new(text: &str) -> Result<SessionId, String> {
        if text.is_empty() {
            return Err("a session id is not empty".to_owned());
        }
        if text.len() > 1024 {
            return Err("a session id is not longer than 1024 bytes".to_owned());
        }
        if text.chars().any(char::is_control) {
            return Err("a session id is one line without control characters".to_owned());
        }
        Ok(SessionId {
            text: text.to_owned(),
            is_uuid: is_uuid(text.as_bytes()),
        })
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

    /// Whether the bytes of this id are anywhere in `bytes`, also inside of a longer word: the
    /// quick look that says which processes are worth a closer one.
    pub fn is_near(&self, bytes: &[u8]) -> bool {
        self.find(bytes, 0).is_some()
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
        // Case aside, the first dash is the first byte of a UUID that can be searched for.
        memchr::memchr_iter(b'-', rest).find_map(|dash| {
            let start = dash.checked_sub(FIRST_DASH)?;
            let word = rest.get(start..start + self.text.len())?;
            self.is(word).then_some(from + start)
        })
    }
}

/// Where a UUID has its first dash.
const FIRST_DASH: usize = 8;

/// Whether `word` has the form of a UUID, of whatever version.
pub fn is_uuid(word: &[u8]) -> bool {
    word.len() == 36
        && word.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

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
        let id = SessionId::new(UUID).unwrap();
        assert!(id.is_near(format!("--x={}9", UUID.to_uppercase()).as_bytes()));
        assert!(!id.is_near(b"-"));
        assert!(!id.is_near(&UUID.as_bytes()[..35]));
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
