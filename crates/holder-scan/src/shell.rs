//! Sessions that the text of `sh -c` names.
//!
//! This is no shell: nothing is expanded or run. The text is taken apart into simple commands and
//! their words, as far as quoting goes.

use agents::signs::Signs;

use crate::claims::{Found, in_words};
use crate::program::{Kind, command_in, kind_of_command, run_a_namer, shell_text};

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
        let words = &words[command_in(&words)..];
        let Some(command) = words.first() else {
            continue;
        };
        if run_a_namer(words) {
            continue;
        }
        match kind_of_command(command) {
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
fn commands(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut splitter = Splitter::default();
    let mut rest = text.iter().copied();
    let mut quote = None;
    while let Some(byte) = rest.next() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(b'"'), b'\\') => {
                if let Some(next) = rest.next() {
                    if !matches!(next, b'"' | b'\\' | b'$' | b'`') {
                        splitter.push(b'\\');
                    }
                    splitter.push(next);
                }
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
            (None, b' ' | b'\t' | b'\r') => splitter.end_word(),
            (None, b'#') if splitter.is_between_words() => {
                rest.find(|byte| *byte == b'\n');
                splitter.end_command();
            }
            (None, b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`' | b'{' | b'}') => {
                splitter.end_command();
            }
            (None, byte) => splitter.push(byte),
        }
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<Vec<u8>>>,
    words: Vec<Vec<u8>>,
    word: Option<Vec<u8>>,
}

impl Splitter {
    fn start_word(&mut self) {
        self.word.get_or_insert_default();
    }

    fn push(&mut self, byte: u8) {
        self.word.get_or_insert_default().push(byte);
    }

    fn is_between_words(&self) -> bool {
        self.word.is_none()
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
        let table: [(&str, &[&str]); 8] = [
            ("a b;c", &["a·b", "c"]),
            ("a 'b c' \"d \\\" e\" f\\ g", &["a·b c·d \" e·f g"]),
            ("x=1 a | b && c", &["x=1·a", "b", "c"]),
            ("a # not ; this\nb", &["a", "b"]),
            ("a#b", &["a#b"]),
            ("(a; b) & { c; }", &["a", "b", "c"]),
            ("a '' b", &["a··b"]),
            ("a 'open", &["a·open"]),
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
            ("# claude --resume ID", 0),
            ("claude --resume ID --fork-session", 0),
        ];
        for (text, count) in table {
            let text = text.replace("ID", ID);
            assert_eq!(claims(text.as_bytes()).len(), count, "{text}");
        }
    }
}
