//! Sessions that the text of `sh -c` names.
//!
//! This is no shell: nothing is expanded or run. The text is taken apart into simple commands and
//! their words, as far as quoting goes.

use agents::signs::Signs;

use crate::claims::{Found, in_words};
use crate::program::{Kind, before_own_tool, command_in, kind_of_command, run_a_namer, shell_text};

/// How deep shell text in shell text is followed.
const MAX_DEPTH: usize = 4;

/// The sessions that commands in `text` name as their own.
pub fn claims(text: &[u8]) -> Vec<Found> {
    claims_within(text, MAX_DEPTH)
}

fn claims_within(text: &[u8], depth: usize) -> Vec<Found> {
    let mut found = Vec::new();
    for command in commands(text) {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let words = before_own_tool(&words[command_in(&words)..]);
        let Some(command) = words.first() else {
            continue;
        };
        if run_a_namer(words) {
            continue;
        }
        match kind_of_command(command) {
            _ if *command == b"eval" && depth > 0 => {
                found.extend(claims_within(&words[1..].join(&b' '), depth - 1));
            }
            Kind::Shell if depth > 0 => match shell_text(words) {
                Some((_, inner)) => found.extend(claims_within(inner, depth - 1)),
                None => found.extend(in_words(words, None)),
            },
            _ => {
                let agent = words.iter().find_map(|word| Signs::of_program(word));
                found.extend(in_words(words, agent));
            }
        }
    }
    found
}

/// The simple commands of shell text, each as its words with the quotes taken off.
fn commands(text: &[u8]) -> Vec<Words> {
    let mut splitter = Splitter::default();
    let mut rest = text.iter().copied().peekable();
    // The quote that is open; of `$'…'`, in which a backslash counts, the dollar.
    let mut quote = None;
    while let Some(byte) = rest.next() {
        match (quote, byte) {
            (Some(b'$'), b'\'') => quote = None,
            (Some(b'$'), b'\\') => splitter.word().extend(rest.next()),
            (Some(b'$'), byte) => splitter.push(byte),
            (Some(open), byte) if byte == open => quote = None,
            (Some(b'"'), b'\\') => {
                if let Some(next) = rest.next() {
                    if !matches!(next, b'"' | b'\\' | b'$' | b'`') {
                        splitter.push(b'\\');
                    }
                    splitter.push(next);
                }
            }
            (Some(b'"') | None, b'`') if splitter.is_in_backquotes() => quote = splitter.close(),
            (Some(b'"') | None, b'`') => {
                splitter.start_word();
                splitter.open(quote.take(), byte);
            }
            (Some(b'"') | None, b'$') if rest.next_if_eq(&b'(').is_some() => {
                splitter.start_word();
                splitter.open(quote.take(), b'(');
            }
            (Some(_), byte) => splitter.push(byte),
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                splitter.start_word();
            }
            (None, b'\\') => {
                // A line that goes on has no byte of its own.
                if let Some(next) = rest.next().filter(|next| *next != b'\n') {
                    splitter.push(next);
                }
            }
            (None, b'$') => match rest.peek() {
                Some(b'{') => splitter.expansion(&mut rest),
                Some(b'\'') => {
                    rest.next();
                    quote = Some(byte);
                    splitter.start_word();
                }
                Some(b'"') => {}
                _ => splitter.push(byte),
            },
            (None, b'(') => splitter.open(None, byte),
            (None, b')') if splitter.is_in_backquotes() => splitter.end_command(),
            (None, b')') => quote = splitter.close(),
            (None, b'<' | b'>') => {
                // `ID>>file` are two words; `2>file`, `&>file` and `<<` are none by themselves.
                if !splitter.may_redirect() {
                    splitter.end_word();
                }
                splitter.push(byte);
            }
            // `2>&1` and `&>file` are redirections, `{a,b}` is a word.
            (None, b'&') if splitter.redirects() => splitter.push(byte),
            (None, b'&') if rest.peek() == Some(&b'>') => {
                splitter.end_word();
                splitter.push(byte);
            }
            (None, b'{' | b'}') if !splitter.is_between_words() || is_in_word(rest.peek()) => {
                splitter.push(byte);
            }
            (None, b' ' | b'\t' | b'\r') => splitter.end_word(),
            (None, b'#') if splitter.is_between_words() => {
                rest.find(|byte| *byte == b'\n');
                splitter.end_command();
            }
            (None, b'\n' | b';' | b'&' | b'|' | b'{' | b'}') => splitter.end_command(),
            (None, byte) => splitter.push(byte),
        }
    }
    while !splitter.outer.is_empty() {
        splitter.close();
    }
    splitter.end_command();
    splitter.commands
}

/// Whether a word goes on with `next`.
fn is_in_word(next: Option<&u8>) -> bool {
    next.is_some_and(|next| !b" \t\r\n;&|()".contains(next))
}

/// The words of one simple command.
type Words = Vec<Vec<u8>>;

#[derive(Default)]
struct Splitter {
    commands: Vec<Words>,
    words: Words,
    word: Option<Vec<u8>>,
    /// The commands around a `$(…)`, which go on behind it.
    outer: Vec<Around>,
}

/// A command with another one inside.
struct Around {
    words: Words,
    word: Option<Vec<u8>>,
    /// The quote that the inner one stands in.
    quote: Option<u8>,
    /// What the inner one began with.
    opening: u8,
}

impl Splitter {
    fn start_word(&mut self) {
        self.word.get_or_insert_default();
    }

    fn word(&mut self) -> &mut Vec<u8> {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, byte: u8) {
        self.word().push(byte);
    }

    fn is_between_words(&self) -> bool {
        self.word.is_none()
    }

    /// Whether what stands last is a redirection that goes on.
    fn redirects(&self) -> bool {
        let last = self.word.as_ref().and_then(|word| word.last());
        matches!(last, Some(b'<' | b'>'))
    }

    /// Whether a redirection may go on behind the present word, or begin with it.
    fn may_redirect(&self) -> bool {
        let mut word = self.word.iter().flatten();
        word.all(|byte| byte.is_ascii_digit() || *byte == b'&') || self.redirects()
    }

    /// Begins a command inside of the present one.
    fn open(&mut self, quote: Option<u8>, opening: u8) {
        self.outer.push(Around {
            words: std::mem::take(&mut self.words),
            word: self.word.take(),
            quote,
            opening,
        });
    }

    /// Whether the present command began with a backquote, which ends it.
    fn is_in_backquotes(&self) -> bool {
        self.outer.last().is_some_and(|last| last.opening == b'`')
    }

    /// Ends it, and goes on with the one around it, in the quote that was open there.
    fn close(&mut self) -> Option<u8> {
        self.end_command();
        let around = self.outer.pop()?;
        (self.words, self.word) = (around.words, around.word);
        around.quote
    }

    /// Takes `{NAME}` behind a dollar, which is a part of a word whatever is in it.
    fn expansion(&mut self, rest: &mut impl Iterator<Item = u8>) {
        self.push(b'$');
        let mut depth = 0;
        for byte in rest {
            self.push(byte);
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let commands = commands(text.as_bytes()).into_iter();
        commands
            .map(|words| {
                let words = words.into_iter();
                let words: Vec<_> = words.map(|word| String::from_utf8(word).unwrap()).collect();
                words.join("·")
            })
            .collect()
    }

    #[test]
    fn words_of_simple_commands() {
        let table: [(&str, &[&str]); 27] = [
            ("a b;c", &["a·b", "c"]),
            ("a 'b c' \"d \\\" e\" f\\ g", &["a·b c·d \" e·f g"]),
            ("x=1 a | b && c", &["x=1·a", "b", "c"]),
            ("a # not ; this\nb", &["a", "b"]),
            ("a#b", &["a#b"]),
            ("(a; b) & { c; }", &["a", "b", "c"]),
            ("a '' b", &["a··b"]),
            ("a 'open", &["a·open"]),
            ("a ${X:-b c} ${Y} d", &["a·${X:-b c}·${Y}·d"]),
            ("a $(b; c) d", &["b", "c", "a··d"]),
            ("a `b c` d; e", &["b·c", "a··d", "e"]),
            ("a $((1 + 2)) b", &["1·+·2", "a··b"]),
            ("a >l 2>&1 b &>c &d", &["a·>l·2>&1·b·&>c", "d"]),
            ("a {b,c} {} d", &["a·{b,c}·{}·d"]),
            ("x() { a; }; y", &["x", "a", "y"]),
            ("case x in y) a;; esac", &["case·x·in·y", "a", "esac"]),
            ("a $(b", &["b", "a·"]),
            ("a ${b", &["a·${b"]),
            ("a b>>l c<d e", &["a·b·>>l·c·<d·e"]),
            ("a b2>l 2>m", &["a·b2·>l·2>m"]),
            ("x=\"$(a b)\" c; d", &["a·b", "x=·c", "d"]),
            ("x=\"y`a b` z\" c", &["a·b", "x=y z·c"]),
            ("\"$(a \"b c\" $(d))\" e", &["d", "a·b c·", "·e"]),
            ("\"`a \"b c\"`\" e", &["a·b c", "·e"]),
            (
                "\"$(case x in y) a;; esac)\" b",
                &["case·x·in·y", " a;; esac)·b"],
            ),
            ("a $'b\\'c d' e $\"f\" $", &["a·b'c d·e·f·$"]),
            ("a '$(b)' \"\\$(c)\" d", &["a·$(b)·$(c)·d"]),
        ];
        for (text, want) in table {
            assert_eq!(split(text), want, "{text}");
        }
    }

    #[test]
    fn flags_count_in_commands_that_can_hold() {
        const ID: &str = "00000000-0000-4000-8000-0000000000a1";
        let table = [
            ("claude --resume ID", 1),
            ("cd /w; X=1 exec claude -r ID || true", 1),
            ("FOO='a b' timeout 5 claude -r ID", 1),
            ("node w.js --session-id ID", 1),
            ("claude ${FLAGS} -r ID", 1),
            ("exec claude $(flags) --resume ID 2>&1", 1),
            ("claude 2>&1 -r ID", 1),
            ("out=$(claude -r ID)", 1),
            ("out=\"$(claude --resume ID)\"", 1),
            ("echo \"`claude --resume ID`\"", 1),
            ("out=\"$(holder-scan --session-id ID)\"", 0),
            ("claude --resume ID>>log", 1),
            ("claude --resume ID</dev/null", 1),
            ("claude --resume=ID>log 2>&1", 1),
            ("claude --resume $'ID'", 1),
            ("claude --resume \"ID\"&>log", 1),
            ("x=$(grep --resume ID log)", 0),
            ("node w.js --session-id ID --then eventwait", 1),
            ("node w.js -r ID", 0),
            ("echo ID", 0),
            ("holder-scan --session-id ID; :", 0),
            (
                "/opt/bin/holder-scan --session-id ID | resume-id --session-id ID",
                0,
            ),
            ("timeout 20 holder-scan --session-id ID", 0),
            ("sudo -n reap --session-id ID", 0),
            ("grep --resume ID log", 0),
            ("tmux new claude --session-id ID", 0),
            ("echo '--resume ID'", 0),
            ("bash -lc 'claude --resume ID'", 1),
            ("while :; do eval 'claude -r ID'; done", 1),
            (
                "source x && eval 'holder-scan --session-id ID' < /dev/null",
                0,
            ),
            ("eval claude -r ID", 1),
            ("# claude --resume ID", 0),
            ("claude --resume ID --fork-session", 0),
        ];
        for (text, count) in table {
            let text = text.replace("ID", ID);
            let found = claims(text.as_bytes());
            assert_eq!(found.len(), count, "{text}");
            let is_id = |found: &Found| found.id == ID.as_bytes();
            assert!(found.iter().all(is_id), "{text}: {found:?}");
        }
    }
}
