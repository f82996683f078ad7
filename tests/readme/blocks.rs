//! The fenced blocks of a Markdown text.

use std::fmt;

/// A block between two fences.
pub struct Block<'a> {
    /// The word behind the opening fence.
    pub kind: &'a str,
    pub text: &'a str,
    /// What is to be true after it, as a line of shell: `<!-- then: LINE -->` right before it.
    pub then: Option<&'a str>,
    /// Whether it holds a second time in the same place: `<!-- twice -->` right before it.
    pub twice: bool,
    line: usize,
}

impl fmt::Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "README.md, block in line {}", self.line)
    }
}

/// All blocks, in their order.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, usize)> = None;
    let (mut at, mut then, mut twice) = (0, None, false);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let words = line.trim_end();
        match (words.strip_prefix("```"), open) {
            (Some(kind), None) => open = Some((index + 1, kind, at)),
            (Some(_), Some((line, kind, from))) => {
                let text = &text[from..start];
                blocks.push(Block {
                    kind,
                    text,
                    then: then.take(),
                    twice: std::mem::take(&mut twice),
                    line,
                });
                open = None;
            }
            (None, None) => {
                twice |= words == "<!-- twice -->";
                let comment = words.strip_prefix("<!-- then: ");
                if let Some(line) = comment.and_then(|rest| rest.strip_suffix(" -->")) {
                    then = Some(line);
                }
            }
            (None, Some(_)) => {}
        }
    }
    assert!(
        open.is_none() && then.is_none() && !twice,
        "a fence or a comment is left open"
    );
    assert!(!blocks.is_empty());
    blocks
}
