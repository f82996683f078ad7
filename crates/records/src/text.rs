//! Bytes that the kernel gives (arguments, paths), as text for records.

use crate::redact;

/// The most that is shown of one argument: 4 KiB.
pub const MAX_ARGUMENT: usize = 4 << 10;

/// `bytes` as text, what is not UTF-8 replaced by U+FFFD, and whether anything
/// had to be: a record's `lossy`. Nothing is ever matched on such text.
pub fn lossy(bytes: &[u8]) -> (String, bool) {
    match str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
    }
}

/// Arguments as records show them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argv {
    /// The arguments.
    pub argv: Vec<String>,
    /// Whether an argument was not UTF-8.
    pub lossy: bool,
    /// Whether an argument was longer than [`MAX_ARGUMENT`] and has been cut.
    pub argv_cut: bool,
}

impl Argv {
    /// Shows `arguments`. Unless they are to be shown in `full`
    /// (`--full-argv`), the values below a key `env` in a JSON argument become
    /// `"…"`, and then an argument that is too long is cut.
    pub fn new<'a>(arguments: impl IntoIterator<Item = &'a [u8]>, full: bool) -> Self {
        let mut shown = Self::default();
        for argument in arguments {
            let (mut text, lossy) = lossy(argument);
            shown.lossy |= lossy;
            if !full {
                if let Some(redacted) = redact::env_values(&text) {
                    text = redacted;
                }
                shown.argv_cut |= cut(&mut text, MAX_ARGUMENT);
            }
            shown.argv.push(text);
        }
        shown
    }
}

/// Cuts `text` to at most `max` bytes, not inside of a character.
fn cut(text: &mut String, max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    text.truncate(text.floor_char_boundary(max));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[&[u8]], full: bool) -> Argv {
        Argv::new(arguments.iter().copied(), full)
    }

    #[test]
    fn bytes_become_text() {
        assert_eq!(lossy("zoë".as_bytes()), ("zoë".to_owned(), false));
        assert_eq!(lossy(b"a\xffb"), ("a\u{fffd}b".to_owned(), true));
    }

    #[test]
    fn arguments_are_redacted_then_cut() {
        let long = "ü".repeat(MAX_ARGUMENT);
        let wrapped = format!("{{\"env\":{{\"A\":\"s3cret\"}},\"prompt\":\"{long}\"}}");
        let argv = shown(&[b"cmd", wrapped.as_bytes(), b"\xff"], false);
        assert!(argv.lossy && argv.argv_cut);
        assert!(argv.argv[1].starts_with("{\"env\":{\"A\":\"…\"},"));
        assert!(argv.argv[1].len() <= MAX_ARGUMENT && argv.argv[1].len() > MAX_ARGUMENT - 4);
        assert_eq!(argv.argv[2], "\u{fffd}");

        let full = shown(&[wrapped.as_bytes()], true);
        assert_eq!(full.argv, [wrapped]);
        assert!(!full.lossy && !full.argv_cut);
    }

    #[test]
    fn exactly_the_limit_is_not_cut() {
        let limit = vec![b'x'; MAX_ARGUMENT];
        assert!(!shown(&[&limit], false).argv_cut);
        let over = vec![b'x'; MAX_ARGUMENT + 1];
        let argv = shown(&[&over, b""], false);
        assert!(argv.argv_cut);
        assert_eq!(
            (argv.argv[0].len(), argv.argv[1].as_str()),
            (MAX_ARGUMENT, "")
        );
    }
}
