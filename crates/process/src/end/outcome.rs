//! What came of a member, and what of a target by its members.

use std::fmt;

/// What came of a member or a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was dead already, or ended before it was signalled.
    Gone,
    /// It is dead, by the first signal or after it.
    Terminated,
    /// It is dead, and was sent KILL.
    Killed,
    /// It lives.
    Survived,
    /// It lives, and is not ours to signal (EPERM).
    Denied,
    /// It lives, and the sequence was stopped before it was done.
    Interrupted,
    /// It may or may not belong to the target, so it was left alone.
    Unknown,
    /// It would have been signalled.
    DryRun,
    /// Nothing was signalled.
    Refused(Refusal),
}

/// Why nothing of a target was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its members would include the caller, its ancestors or its pipeline.
    OwnFamily,
    /// It is init.
    Init,
    /// It is a thread of the kernel.
    KernelThread,
}

impl Outcome {
    /// The outcome as records carry it.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Gone => "gone",
            Outcome::Terminated => "terminated",
            Outcome::Killed => "killed",
            Outcome::Survived => "survived",
            Outcome::Denied => "denied",
            Outcome::Interrupted => "interrupted",
            Outcome::Unknown => "unknown",
            Outcome::DryRun => "dry_run",
            Outcome::Refused(Refusal::OwnFamily) => "self",
            Outcome::Refused(Refusal::Init) => "init",
            Outcome::Refused(Refusal::KernelThread) => "kernel",
        }
    }

    /// Whether it is certain that this is dead.
    pub fn is_dead(self) -> bool {
        matches!(self, Outcome::Gone | Outcome::Terminated | Outcome::Killed)
    }

    /// What a target's outcome goes by where its members differ: the greatest.
    fn weight(self) -> u8 {
        match self {
            Outcome::Gone => 0,
            Outcome::Terminated => 1,
            Outcome::Killed => 2,
            Outcome::DryRun => 3,
            Outcome::Unknown => 4,
            Outcome::Denied => 5,
            Outcome::Survived => 6,
            Outcome::Interrupted => 7,
            Outcome::Refused(_) => 8,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl serde::Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What has happened to one member so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Course {
    /// It is not proved to belong to the target, and is left alone.
    pub unproved: bool,
    /// It has been sent a signal that ends.
    pub signalled: bool,
    /// It has been sent KILL.
    pub killed: bool,
    /// The kernel has refused the last signal for it.
    pub denied: bool,
    /// It is dead.
    pub ended: bool,
}

/// How the sequence as a whole came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    Done,
    Interrupted,
    DryRun,
}

/// What came of a member.
pub(super) fn of_member(course: Course, close: Close) -> Outcome {
    match course {
        Course {
            ended: true,
            killed: true,
            ..
        } => Outcome::Killed,
        Course {
            ended: true,
            signalled: true,
            ..
        } => Outcome::Terminated,
        Course { ended: true, .. } => Outcome::Gone,
        Course { unproved: true, .. } => Outcome::Unknown,
        Course { denied: true, .. } => Outcome::Denied,
        _ => match close {
            Close::Done => Outcome::Survived,
            Close::Interrupted => Outcome::Interrupted,
            Close::DryRun => Outcome::DryRun,
        },
    }
}

/// What came of a target with these members: the worst that came of one of them. With none, it was
/// dead already.
pub(super) fn of_target(members: impl IntoIterator<Item = Outcome>) -> Outcome {
    members
        .into_iter()
        .max_by_key(|outcome| outcome.weight())
        .unwrap_or(Outcome::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_by_its_course() {
        let none = Course::default();
        let signalled = Course {
            signalled: true,
            ..none
        };
        let killed = Course {
            killed: true,
            ..signalled
        };
        let dead = |course| Course {
            ended: true,
            ..course
        };
        let table = [
            (dead(none), Close::Done, Outcome::Gone),
            (dead(signalled), Close::Done, Outcome::Terminated),
            (dead(killed), Close::Done, Outcome::Killed),
            (signalled, Close::Done, Outcome::Survived),
            (killed, Close::Done, Outcome::Survived),
            (signalled, Close::Interrupted, Outcome::Interrupted),
            (dead(signalled), Close::Interrupted, Outcome::Terminated),
            (none, Close::Interrupted, Outcome::Interrupted),
            (
                Course {
                    denied: true,
                    ..none
                },
                Close::Done,
                Outcome::Denied,
            ),
            // It could not be signalled, and has ended all the same.
            (
                dead(Course {
                    denied: true,
                    ..none
                }),
                Close::Done,
                Outcome::Gone,
            ),
            (
                Course {
                    unproved: true,
                    ..none
                },
                Close::Done,
                Outcome::Unknown,
            ),
            (
                Course {
                    unproved: true,
                    ..none
                },
                Close::DryRun,
                Outcome::Unknown,
            ),
            (none, Close::DryRun, Outcome::DryRun),
        ];
        for (course, close, expected) in table {
            assert_eq!(of_member(course, close), expected, "{course:?} {close:?}");
        }
    }

    #[test]
    fn a_target_by_the_worst_of_its_members() {
        use Outcome::*;
        let table: [(&[Outcome], Outcome); 8] = [
            (&[], Gone),
            (&[Gone, Gone], Gone),
            (&[Gone, Terminated], Terminated),
            (&[Terminated, Killed, Terminated], Killed),
            (&[Killed, Denied], Denied),
            (&[Denied, Survived], Survived),
            (&[Terminated, Unknown], Unknown),
            (&[Terminated, Interrupted, Denied], Interrupted),
        ];
        for (members, expected) in table {
            assert_eq!(of_target(members.iter().copied()), expected, "{members:?}");
        }
    }
}
