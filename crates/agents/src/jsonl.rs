//! Reading a transcript of JSON lines, no further than its answer takes.

use std::io::{self, Read};

use records::Deadline;
use records::input::{Input, Lines};

use crate::cwd::Cwds;
use crate::table::{JsonLines, TurnRule};

/// Up to this size, in bytes, a transcript is read whole, so that its turns can be counted. Of a
/// larger one only as much is read as it takes to tell that it is a conversation of this directory.
const WHOLE: u64 = 8 << 20;

/// What a transcript says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The session's id, where lines have one.
    pub id: Option<String>,
    /// The working directory: ours, if it is there at all, else the first.
    pub cwd: Option<String>,
    /// Whether it is ours; `None` where no line says.
    pub cwd_matches: Option<bool>,
    /// Whether there is a line of a user or of the agent.
    pub conversational: bool,
    /// How many; `None` where the file was not read to its end.
    pub turns: Option<u64>,
    /// Whether a line was no JSON object, as after a crash in the middle of writing one.
    pub damaged: bool,
}

/// Reads `file`, which has `size` bytes.
///
/// # Errors
///
/// Those of read(2); of kind `TimedOut` at the deadline.
pub fn read(
    file: impl Read,
    size: u64,
    form: &JsonLines,
    cwds: &Cwds,
    deadline: Deadline,
) -> io::Result<Told> {
    let mut told = Told::default();
    let mut turns = 0;
    let mut done = 0_u64;
    let mut lines = Lines::new("transcript", file);
    while let Some(line) = lines.next_record()? {
        match line {
            Input::Record(line) => {
                done += line.bytes().len() as u64 + 1;
                turns += u64::from(is_turn(&line, &form.turns));
                told.hear(&line, form, cwds);
            }
            Input::Bad(_) => told.damaged = true,
        }
        told.conversational |= turns > 0;
        if size > WHOLE && told.is_enough(form, done) {
            return Ok(told);
        }
        if deadline.passed() {
            let why = "reading it takes too long";
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
    }
    told.turns = Some(turns);
    Ok(told)
}

fn is_turn(line: &records::Record<'_>, rules: &[TurnRule]) -> bool {
    rules.iter().any(|rule| {
        let value = line.str(&rule.key);
        value.is_some_and(|value| rule.is.iter().any(|one| *one == value))
    })
}

impl Told {
    fn hear(&mut self, line: &records::Record<'_>, form: &JsonLines, cwds: &Cwds) {
        if let Some(key) = form.id.as_deref().filter(|_| self.id.is_none()) {
            self.id = line.str(key).map(|id| id.into_owned());
        }
        if self.cwd_matches == Some(true) {
            return;
        }
        if let Some(cwd) = form.cwd.as_deref().and_then(|key| line.str(key)) {
            let matches = cwds.has(&cwd);
            if matches || self.cwd.is_none() {
                self.cwd = Some(cwd.into_owned());
            }
            self.cwd_matches = Some(matches);
        }
        if let Some(hash) = form.cwd_sha256.as_deref().and_then(|key| line.str(key)) {
            self.cwd_matches = Some(cwds.has_sha256(&hash));
        }
    }

    /// Whether the rest of a large file can be left unread: a conversation of ours stays one. One
    /// that began elsewhere is looked at as far as a small file would be.
    fn is_enough(&self, form: &JsonLines, done: u64) -> bool {
        let silent = form.cwd.is_none() && form.cwd_sha256.is_none();
        let ours = silent || self.cwd_matches == Some(true);
        self.conversational && (ours || (self.cwd_matches.is_some() && done > WHOLE))
    }
}
