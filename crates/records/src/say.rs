//! Messages for people: `TOOL: message` on stderr.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::OnceLock;

static TOOL: OnceLock<&'static str> = OnceLock::new();

/// Sets the name that stands before every message. The first call counts;
/// [`crate::tool::main`] makes it.
pub fn set_tool(name: &'static str) {
    let _ = TOOL.set(name);
}

/// The tool's name as set by [`set_tool`], or `muxutils` before that.
pub fn tool() -> &'static str {
    TOOL.get().copied().unwrap_or("muxutils")
}

/// Writes `TOOL: message` as one line on stderr, in one write. Control
/// characters, newlines among them, are shown by [`shown`].
///
/// That stderr is closed or full is not worth failing for: nobody could be told.
pub fn say(message: fmt::Arguments<'_>) {
    let message = message.to_string();
    to_stderr(&format!("{}: {}\n", tool(), shown(&message)));
}

/// Writes `TOOL: ` and a text of several lines on stderr, in one write.
/// Newlines stay; every other control character is shown by [`shown`].
pub fn say_lines(text: &str) {
    let lines: Vec<_> = text.trim_end().split('\n').map(shown).collect();
    to_stderr(&format!("{}: {}\n", tool(), lines.join("\n")));
}

/// Writes `TOOL: message` on stderr, as [`say::say`](say()) does.
#[macro_export]
macro_rules! say {
    ($($message:tt)*) => {
        $crate::say::say(::core::format_args!($($message)*))
    };
}

fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// `text` with every character that could act on a terminal made visible: C0,
/// DEL and C1 controls as `\xNN`, line separators and direction overrides as
/// `\u{NNNN}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let code = u32::from(c);
        // Writing to a String cannot fail.
        let _ = match c {
            _ if !is_unsafe(c) => out.write_char(c),
            _ if code <= 0xff => write!(out, "\\x{code:02x}"),
            _ => write!(out, "\\u{{{code:x}}}"),
        };
    }
    Cow::Owned(out)
}

/// Whether a terminal or a line reader could take `c` for more than text.
pub(crate) fn is_unsafe(c: char) -> bool {
    // U+2028, U+2029: separators that some readers split lines at. The rest
    // reorder what is shown (Unicode Technical Report 36, section 2.6).
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_made_visible() {
        let table = [
            ("plain – text", "plain – text"),
            ("a\x1b[31mb", "a\\x1b[31mb"),
            ("two\nlines\r\t\0", "two\\x0alines\\x0d\\x09\\x00"),
            ("\x7f", "\\x7f"),
            ("c1 \u{9b}31m \u{85}", "c1 \\x9b31m \\x85"),
            ("\u{202e}txt\u{2028}", "\\u{202e}txt\\u{2028}"),
        ];
        for (text, want) in table {
            assert_eq!(shown(text), want);
        }
        assert!(matches!(shown("plain"), Cow::Borrowed(_)));
    }
}
