//! What a source's lines and events go through: judged, counted, and printed if they match.

use std::borrow::Cow;

use records::human::{self, Column, HumanView};
use records::{OutputArgs, Record, columns};
use serde::Serialize;

use crate::end::End;
use crate::filter::{Filter, Verdict};
use crate::sink::{Mark, Sink};
use crate::split::Piece;

/// How records are shown to eyes.
const VIEW: HumanView = &[(
    "event",
    &[
        Column {
            key: "at",
            width: 24,
        },
        Column {
            key: "source",
            width: 7,
        },
        Column {
            key: "event",
            width: 10,
        },
        Column {
            key: "path",
            width: 10,
        },
        Column {
            key: "pid",
            width: 7,
        },
        Column {
            key: "state",
            width: 7,
        },
        Column {
            key: "code",
            width: 4,
        },
        Column {
            key: "signal",
            width: 6,
        },
        Column {
            key: "data",
            width: 10,
        },
    ],
)];

/// What has been counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines and events that matched.
    pub matched: u64,
    /// All lines and events.
    pub seen: u64,
    /// Lines that would have to be JSON and are not.
    pub not_json: u64,
    /// Lines over the limit.
    pub too_long: u64,
}

/// In which form lines are printed.
#[derive(Clone, Debug)]
enum Form {
    /// As they came.
    AsIs,
    Columns(Vec<String>),
    ShellWords(Vec<String>),
    Human,
    Nothing,
}

/// The way from a source to the output.
pub struct Intake {
    filter: Filter,
    form: Form,
    sink: Sink,
    counts: Counts,
    /// How many matches are enough; `None`: never enough.
    wanted: Option<u64>,
    /// Printed once, when the source is armed.
    ack_line: Option<String>,
}

impl Intake {
    /// Nothing taken in yet.
    pub fn new(
        filter: Filter,
        output: &OutputArgs,
        wanted: Option<u64>,
        ack_line: Option<String>,
        sink: Sink,
    ) -> Intake {
        let keys = || output.keys.clone();
        let form = if output.quiet {
            Form::Nothing
        } else if output.human {
            Form::Human
        } else if output.keys.is_empty() {
            Form::AsIs
        } else if output.sh {
            Form::ShellWords(keys())
        } else {
            Form::Columns(keys())
        };
        Intake {
            filter,
            form,
            sink,
            counts: Counts::default(),
            wanted,
            ack_line,
        }
    }

    /// The source is armed: nothing that happens from now on is missed. The line that a caller
    /// waits for is printed, once.
    pub fn armed(&mut self) {
        if let Some(line) = self.ack_line.take()
            && !self.is_quiet()
        {
            self.sink.put(line.as_bytes(), None);
        }
    }

    /// Takes what a stream was cut into; `generation` counts the files of one name. `false` when
    /// there has been enough.
    pub fn piece(&mut self, piece: &Piece<'_>, generation: u32) -> bool {
        match *piece {
            Piece::Line { bytes, at: offset } => self.line(bytes, Mark { generation, offset }),
            Piece::TooLong => {
                self.counts.seen += 1;
                self.counts.too_long += 1;
                true
            }
        }
    }

    /// Takes a record that a source has made. `false` when there has been enough.
    pub fn record<T: Serialize + ?Sized>(&mut self, record: &T) -> bool {
        match serde_json::to_vec(record) {
            Ok(line) => self.line(&line, Mark::default()),
            // Strings and numbers can always be written.
            Err(_) => !self.is_satisfied(),
        }
    }

    fn line(&mut self, line: &[u8], mark: Mark) -> bool {
        if self.is_satisfied() {
            return false;
        }
        self.counts.seen += 1;
        match self.filter.judge(line) {
            Verdict::Match => {
                self.counts.matched += 1;
                if self.is_quiet() {
                    self.sink.say_nothing();
                }
                if let Some(text) = shown(&self.form, line) {
                    self.sink.put(&text, Some(mark));
                }
            }
            Verdict::NotJson => self.counts.not_json += 1,
            Verdict::Other => {}
        }
        !self.is_satisfied()
    }

    /// Whether the filter is there to find lines like this one.
    pub fn asks_for(&self, line: &[u8]) -> bool {
        !self.filter.takes_all() && self.filter.judge(line) == Verdict::Match
    }

    /// Counts a line that no filter is asked about.
    pub fn skipped(&mut self, is_json: bool) {
        self.counts.seen += 1;
        self.counts.not_json += u64::from(!is_json);
    }

    /// Whether there has been enough.
    pub fn is_satisfied(&self) -> bool {
        self.wanted
            .is_some_and(|wanted| self.counts.matched >= wanted)
    }

    /// How many more there have to be, where that is a number.
    pub fn lacks(&self) -> Option<u64> {
        let lacks = |wanted: u64| wanted.saturating_sub(self.counts.matched);
        self.wanted.map(lacks)
    }

    /// How the wait for `events` ends, each of which can happen only once, now that all have.
    pub fn after_all(&self, events: u64) -> End {
        match self.wanted {
            None if self.counts.matched >= events => End::Matched,
            _ => End::Closed,
        }
    }

    /// Whether nothing is printed, so that it does not matter who reads.
    pub fn is_quiet(&self) -> bool {
        matches!(self.form, Form::Nothing)
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Where the lines go.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The same, to hand lines over.
    pub fn sink_mut(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// No more is taken in.
    pub fn into_sink(self) -> Sink {
        self.sink
    }
}

/// `line` as it is to be printed, if it is.
fn shown<'a>(form: &Form, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let text = match form {
        Form::Nothing => return None,
        Form::AsIs => return Some(Cow::Borrowed(line)),
        _ => String::from_utf8_lossy(line),
    };
    let record = Record::parse(text.as_bytes()).ok();
    let text = match form {
        Form::Columns(keys) => columns::tabbed(&record?, keys)?,
        Form::ShellWords(keys) => columns::shell_words(&record?, keys)?,
        _ => match record {
            Some(record) => human::line(&record, VIEW),
            None => records::say::shown(&text).into_owned(),
        },
    };
    Some(Cow::Owned(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let keys = vec!["a".to_owned(), "b.c".to_owned()];
        let line = br#"{"b":{"c":"x\ty"},"a":null}"#;
        let text = |form: &Form, line| shown(form, line).map(|text| text.into_owned());
        assert_eq!(text(&Form::AsIs, line).unwrap(), line);
        assert_eq!(text(&Form::Columns(keys.clone()), line).unwrap(), b"\tx y");
        assert_eq!(
            text(&Form::ShellWords(keys.clone()), line).unwrap(),
            b"'' 'x\ty'"
        );
        // None of the keys, and no record at all.
        assert_eq!(text(&Form::Columns(keys.clone()), b"{\"z\":1}"), None);
        assert_eq!(text(&Form::Columns(keys.clone()), b"plain"), None);
        assert_eq!(
            text(&Form::Human, b"plain \x1b[1m").unwrap(),
            b"plain \\x1b[1m"
        );
        let broken = b"{\"a\":\"\xff\",\"b\":{\"c\":1}}";
        assert_eq!(
            text(&Form::Columns(keys), broken).unwrap(),
            "\u{fffd}\t1".as_bytes()
        );
    }
}
