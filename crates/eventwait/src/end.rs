//! How a wait ends, and which exit status that is. Pure.

use std::fmt;
use std::str::FromStr;

use process::Signal;
use records::Status;

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What was awaited has happened, and has been said.
    Matched,
    /// The deadline came first.
    Deadline,
    /// The source has ended.
    Closed,
    /// The process of `--pid` has ended.
    ProcessEnded,
    /// The source could not be reached, or cannot be judged.
    Unavailable,
    /// No acknowledgement came.
    NoAck,
    /// The source said that something is wrong.
    SourceError,
    /// Nobody reads what is printed.
    ReaderGone,
    /// This signal came.
    Interrupted(Signal),
    /// What was found could not be printed.
    NotPrinted,
}

impl End {
    /// Its word in the summary and in `--exit-code`.
    pub fn word(self) -> &'static str {
        match self {
            End::Matched => "matched",
            End::Deadline => "deadline",
            End::Closed => "closed",
            End::ProcessEnded => "process_ended",
            End::Unavailable => "unavailable",
            End::NoAck => "no_ack",
            End::SourceError => "source_error",
            End::ReaderGone | End::NotPrinted => "reader_gone",
            End::Interrupted(_) => "interrupted",
        }
    }
}

/// All words of ends.
const WORDS: [&str; 9] = [
    "matched",
    "deadline",
    "closed",
    "process_ended",
    "unavailable",
    "no_ack",
    "source_error",
    "reader_gone",
    "interrupted",
];

/// One `--exit-code END=N`: another status for an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCode {
    end: &'static str,
    code: u8,
}

impl FromStr for ExitCode {
    type Err = String;

    fn from_str(text: &str) -> Result<ExitCode, String> {
        let (word, code) = text.split_once('=').ok_or("not END=N")?;
        let end = WORDS
            .iter()
            .find(|known| **known == word)
            .ok_or_else(|| format!("no such end: {word} (there are {})", WORDS.join(", ")))?;
        let code = records::number::in_range(code, 0..=255)?;
        let code = u8::try_from(code).map_err(|error| error.to_string())?;
        Ok(ExitCode { end, code })
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.end, self.code)
    }
}

/// What the process is to do at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Exit with a status.
    With(Status),
    /// Die by the signal that came.
    By(Signal),
    /// Die by SIGPIPE, as a filter does whose reader is gone.
    Quietly,
}

/// How the process leaves after `end`. With `all` an end of the stream or of the time is a success
/// if something has been `said` before. The last of several `codes` for one end counts.
pub fn leave(end: End, all: bool, said: bool, codes: &[ExitCode]) -> Leave {
    if end == End::NotPrinted {
        return Leave::With(Status::Failed);
    }
    let chosen = codes.iter().rev().find(|code| code.end == end.word());
    if let Some(chosen) = chosen {
        return Leave::With(Status::Code(chosen.code));
    }
    Leave::With(match end {
        End::Matched => Status::Done,
        End::Deadline | End::Closed | End::ProcessEnded if all && said => Status::Done,
        End::Deadline => Status::Deadline,
        End::Closed | End::ProcessEnded => Status::No,
        End::Unavailable | End::NoAck | End::SourceError => Status::Unknown,
        End::NotPrinted => Status::Failed,
        End::ReaderGone => return Leave::Quietly,
        End::Interrupted(signal) => return Leave::By(signal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_by_the_book() {
        let term = Signal::SIGTERM;
        let table = [
            // end, --all, something said, how to leave
            (End::Matched, false, true, Leave::With(Status::Done)),
            (End::Matched, true, true, Leave::With(Status::Done)),
            (End::Deadline, false, false, Leave::With(Status::Deadline)),
            (End::Deadline, false, true, Leave::With(Status::Deadline)),
            (End::Deadline, true, false, Leave::With(Status::Deadline)),
            (End::Deadline, true, true, Leave::With(Status::Done)),
            (End::Closed, false, true, Leave::With(Status::No)),
            (End::Closed, true, false, Leave::With(Status::No)),
            (End::Closed, true, true, Leave::With(Status::Done)),
            (End::ProcessEnded, false, false, Leave::With(Status::No)),
            (End::ProcessEnded, true, true, Leave::With(Status::Done)),
            (End::Unavailable, false, false, Leave::With(Status::Unknown)),
            (End::NoAck, true, false, Leave::With(Status::Unknown)),
            (End::SourceError, true, true, Leave::With(Status::Unknown)),
            (End::NotPrinted, true, true, Leave::With(Status::Failed)),
            (End::ReaderGone, true, true, Leave::Quietly),
            (End::Interrupted(term), true, true, Leave::By(term)),
        ];
        for (end, all, said, want) in table {
            assert_eq!(leave(end, all, said, &[]), want, "{end:?} {all} {said}");
        }
    }

    #[test]
    fn a_caller_may_have_numbers_of_its_own() {
        let codes: Vec<ExitCode> = ["deadline=0", "closed=4", "interrupted=0", "closed=5"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let with = |code| Leave::With(Status::Code(code));
        assert_eq!(leave(End::Deadline, true, false, &codes), with(0));
        assert_eq!(leave(End::Closed, true, true, &codes), with(5));
        let interrupted = End::Interrupted(Signal::SIGTERM);
        assert_eq!(leave(interrupted, false, false, &codes), with(0));
        assert_eq!(
            leave(End::Matched, false, true, &codes),
            Leave::With(Status::Done)
        );
        for wrong in [
            "",
            "closed",
            "closed=",
            "closed=256",
            "closed=-1",
            "never=1",
            "closed=04",
        ] {
            assert!(wrong.parse::<ExitCode>().is_err(), "{wrong:?}");
        }
    }
}
