//! The exit statuses, which mean the same in every tool.

/// What a tool says with its exit status.
///
/// 124 to 127 are those of `timeout(1)` and `env(1)`; 65 is `EX_DATAERR` of
/// `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// 0: yes, done.
    Done,
    /// 1: no: nothing found, not the same, refused, survived.
    No,
    /// 2: wrong usage.
    Usage,
    /// 3: could not find out; neither a yes nor a no may be made of it.
    Unknown,
    /// 65: some input line was not a record; the rest was done.
    BadInput,
    /// 122: no match before a command was to run, so it was not run.
    NoMatch,
    /// 123: what was checked before a command changed while it ran.
    Changed,
    /// 124: the deadline passed.
    Deadline,
    /// 125: the tool itself failed, or its output could not be written.
    Failed,
    /// 126: the command could not be run.
    CannotRun,
    /// 127: the command was not found.
    NotFound,
    /// Another program's status, or one the caller asked for.
    Code(u8),
}

impl Status {
    /// The number for `exit(3)`.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
            Self::BadInput => 65,
            Self::NoMatch => 122,
            Self::Changed => 123,
            Self::Deadline => 124,
            Self::Failed => 125,
            Self::CannotRun => 126,
            Self::NotFound => 127,
            Self::Code(code) => code,
        }
    }

    /// The status for several records, of which one came out as `self` and
    /// another as `other`: the first of 125, 65, 124, 3, 1, 0.
    ///
    /// The others (2, 122, 123, 126, 127, a command's own) end a call and are
    /// not about one record among several: they outrank all, and of two of
    /// them `self` stays.
    #[must_use]
    pub const fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    const fn rank(self) -> u8 {
        match self.code() {
            0 => 0,
            1 => 1,
            3 => 2,
            124 => 3,
            65 => 4,
            125 => 5,
            _ => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{self, *};

    #[test]
    fn codes_are_the_documented_ones() {
        let table = [
            (Done, 0),
            (No, 1),
            (Usage, 2),
            (Unknown, 3),
            (BadInput, 65),
            (NoMatch, 122),
            (Changed, 123),
            (Deadline, 124),
            (Failed, 125),
            (CannotRun, 126),
            (NotFound, 127),
            (Code(42), 42),
        ];
        for (status, code) in table {
            assert_eq!(status.code(), code, "{status:?}");
        }
    }

    #[test]
    fn the_worst_wins_whatever_the_order() {
        let order = [Failed, BadInput, Deadline, Unknown, No, Done];
        for (i, worse) in order.iter().enumerate() {
            for better in &order[i..] {
                assert_eq!(worse.worse(*better), *worse);
                assert_eq!(better.worse(*worse), *worse);
            }
        }
        let fold = |all: &[Status]| all.iter().fold(Done, |a, b| a.worse(*b));
        assert_eq!(fold(&[]), Done);
        assert_eq!(fold(&[No, BadInput, Unknown]), BadInput);
        assert_eq!(fold(&[Failed, NotFound, No]), NotFound);
    }
}
