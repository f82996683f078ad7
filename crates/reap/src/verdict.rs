//! What `reap` says of a target, in one word, and what that means for the exit status.

use process::end::Outcome;
use records::Status;

/// What became of a target, or why nothing of it was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The sequence ran, or was not begun for a reason of its own.
    Of(Outcome),
    /// A holder that is not our own, or a server that is not.
    Foreign,
    /// A holder of our own in which an agent is active.
    Active,
    /// The number names another process by now.
    Recycled,
    /// The record does not say who the process is.
    NoIdentity,
    /// The record was judged, and not found to be a match.
    NotVerified,
    /// The record has no number that a process could have, or two different ones.
    BadPid,
}

impl Verdict {
    /// Whether it is alive or dead, ours or not, cannot be told.
    pub const UNKNOWN: Verdict = Verdict::Of(Outcome::Unknown);

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Of(outcome) => outcome.word(),
            Verdict::Foreign => "foreign",
            Verdict::Active => "active",
            Verdict::Recycled => "recycled",
            Verdict::NoIdentity => "no_identity",
            Verdict::NotVerified => "not_verified",
            Verdict::BadPid => "bad_pid",
        }
    }

    /// The exit status for a call about this target alone.
    pub fn status(self) -> Status {
        match self {
            Verdict::Of(Outcome::Unknown) => Status::Unknown,
            Verdict::Of(Outcome::DryRun) => Status::Done,
            Verdict::Of(outcome) if outcome.is_dead() => Status::Done,
            _ => Status::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use process::end::Refusal;

    #[test]
    fn words_and_statuses() {
        let table = [
            (Verdict::Of(Outcome::Gone), "gone", 0),
            (Verdict::Of(Outcome::Terminated), "terminated", 0),
            (Verdict::Of(Outcome::Killed), "killed", 0),
            (Verdict::Of(Outcome::DryRun), "dry_run", 0),
            (Verdict::Of(Outcome::Survived), "survived", 1),
            (Verdict::Of(Outcome::Denied), "denied", 1),
            (Verdict::Of(Outcome::Interrupted), "interrupted", 1),
            (Verdict::Of(Outcome::Refused(Refusal::OwnFamily)), "self", 1),
            (Verdict::Of(Outcome::Refused(Refusal::Init)), "init", 1),
            (
                Verdict::Of(Outcome::Refused(Refusal::KernelThread)),
                "kernel",
                1,
            ),
            (Verdict::Foreign, "foreign", 1),
            (Verdict::Active, "active", 1),
            (Verdict::Recycled, "recycled", 1),
            (Verdict::NoIdentity, "no_identity", 1),
            (Verdict::NotVerified, "not_verified", 1),
            (Verdict::BadPid, "bad_pid", 1),
            (Verdict::UNKNOWN, "unknown", 3),
        ];
        for (verdict, word, status) in table {
            assert_eq!((verdict.word(), verdict.status().code()), (word, status));
        }
    }
}
