//! The text of a manual, as `--help` prints it, and its form for man(1).
//!
//! - A line at the margin is the title of a section.
//! - Two blanks before it: text. Blank lines separate paragraphs.
//! - Six blanks, right below a line of text: what that line, a term, means.
//! - Four blanks, after a blank line: to be shown as it is, such as commands.

use std::fmt::Write as _;

/// A section of a manual.
pub struct Section<'a> {
    pub title: &'a str,
    lines: Vec<&'a str>,
}

/// The sections of a text.
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with("  ") {
            let section: &mut Section = sections.last_mut().expect("a title comes first");
            section.lines.push(line);
        } else {
            let (title, lines) = (line, Vec::new());
            sections.push(Section { title, lines });
        }
    }
    sections
}

impl Section<'_> {
    /// The section with its title.
    pub fn roff(&self) -> String {
        format!(".SH {}\n{}", title(self.title), self.body(true))
    }

    /// The section without its title; `first`: nothing is before it under its title.
    pub fn body(&self, first: bool) -> String {
        let mut roff = String::new();
        let blocks = self.lines.split(|line| line.is_empty());
        for block in blocks.filter(|block| !block.is_empty()) {
            let opens = first && roff.is_empty();
            if indent(block[0]) >= 4 {
                literal(&mut roff, block, opens);
            } else {
                flowing(&mut roff, block, opens);
            }
        }
        roff
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn title(words: &str) -> String {
    match words.contains(' ') {
        true => format!("\"{words}\""),
        false => words.to_owned(),
    }
}

fn literal(roff: &mut String, lines: &[&str], opens: bool) {
    if !opens {
        roff.push_str(".PP\n");
    }
    roff.push_str(".RS 4\n.nf\n");
    for line in lines {
        let line = line.strip_prefix("    ").expect("four blanks");
        roff.push_str(&own_line(&escape(line)));
    }
    roff.push_str(".fi\n.RE\n");
}

/// Paragraphs, and terms with what they mean.
fn flowing(roff: &mut String, lines: &[&str], opens: bool) {
    let is_meaning = |at: usize| lines.get(at).is_some_and(|line| indent(line) == 6);
    let mut inside_text = false;
    for (at, line) in lines.iter().enumerate() {
        let words = line.trim_start();
        match indent(line) {
            6 => roff.push_str(&own_line(&marked(words))),
            2 if is_meaning(at + 1) => {
                let _ = writeln!(roff, ".TP\n\\fB{}\\fR", escape(words));
                inside_text = false;
            }
            2 => {
                let is_first = opens && at == 0;
                if !inside_text && !is_first {
                    roff.push_str(".PP\n");
                }
                inside_text = true;
                roff.push_str(&own_line(&marked(words)));
            }
            other => panic!("{other} blanks before {line:?}"),
        }
    }
}

/// A line of text that is not taken for a request.
fn own_line(text: &str) -> String {
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}\n"),
        false => format!("{text}\n"),
    }
}

/// Text in which options and the names of manual pages are bold.
fn marked(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let start = word.len() - word.trim_start_matches(['(', '\'']).len();
        let end = word.trim_end_matches(['.', ',', ';', ':', ')', '\'']).len();
        let core = word.get(start..end).unwrap_or_default();
        let is_option = core
            .strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
        let strong = match core.split_once('(') {
            Some((name, section)) if section.len() == 1 && !name.is_empty() => name,
            None if is_option => core,
            _ => return escape(word),
        };
        let (before, after) = (&word[..start], &word[start + strong.len()..]);
        format!(
            "{}\\fB{}\\fR{}",
            escape(before),
            escape(strong),
            escape(after)
        )
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What stands for these characters themselves, also where roff would make typography of them.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[test]
fn a_text_becomes_a_page() {
    let text = "ONE TWO\n  See --all, or\n  x(1).\n\n    a \\ 'b'\n      c\n\n  0\n      Yes.\n  1\n      .No\n\n  End.\n";
    let sections = sections(text);
    assert_eq!(sections.len(), 1);
    assert_eq!(
        sections[0].roff(),
        ".SH \"ONE TWO\"\nSee \\fB\\-\\-all\\fR, or\n\\fBx\\fR(1).\n\
         .PP\n.RS 4\n.nf\na \\e \\(aqb\\(aq\n  c\n.fi\n.RE\n\
         .TP\n\\fB0\\fR\nYes.\n.TP\n\\fB1\\fR\n\\&.No\n.PP\nEnd.\n"
    );
}
