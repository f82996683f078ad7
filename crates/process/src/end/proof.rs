//! Who is left of a group whose leader has ended.
//!
//! A group's number is its leader's pid, and once the group is empty the number can be handed out
//! again. So a process with that group number is not for that alone one of the old group: it may
//! have been forked by a new leader of the same number, that has ended as well.

use std::time::Duration;

use crate::entry::{Entry, Start};
use crate::here::Here;
use crate::ident::Identity;
use crate::pid::Pid;
use crate::table::Table;

/// What is known of a process that has ended, to tell what is left of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The process, and the number of the group and session that it may have led.
    pub leader: Pid,
    /// When it started, as the table here counts; `None` where that is not known exactly.
    pub started: Option<Start>,
    /// How long it lived, as was stated by whoever saw it end.
    pub uptime: Option<Duration>,
    /// Whether everybody with its group number is to be taken, proved or not.
    pub unproved_too: bool,
}

impl Remains {
    /// What is left of the process `leader`; `None` where that is nobody: the end of a boot leaves
    /// no process, and whoever is in a group of that number now is another's.
    pub fn of(leader: &Identity, here: &Here) -> Option<Remains> {
        (!here.is_of_another_boot(leader)).then(|| Remains {
            leader: leader.pid(),
            started: here.started(leader),
            uptime: None,
            unproved_too: false,
        })
    }

    /// Whether the leader still has its entry in the table: it is a zombie, so its number is its
    /// own, and so is the group.
    pub(super) fn is_held_by_a_zombie(&self, table: &Table) -> bool {
        self.started.is_some_and(|started| {
            table
                .get(self.leader)
                .is_some_and(|entry| entry.start == started && entry.state.is_zombie())
        })
    }

    /// Whether the leader's number is another process's by now. The group was empty before it could
    /// be given that number. A zombie with it may be the leader, unless both starts are known.
    pub(super) fn is_number_taken(&self, table: &Table) -> bool {
        table.get(self.leader).is_some_and(|entry| {
            !entry.state.is_zombie() || self.started.is_some_and(|start| start != entry.start)
        })
    }

    /// Whether `member` was born into the leader's session while the leader lived, which makes it
    /// one of the leader's group whatever has become of the number since.
    ///
    /// Its session is inherited at its birth, or its own; that of the leader's number is not its
    /// own. In the leader's lifetime nobody else could lead a session of that number. A start is
    /// known to the tick, so only what is a whole tick before the death counts: a number that is
    /// handed out again at once cannot pass.
    pub(super) fn is_birth_proved(&self, member: &Entry) -> bool {
        let (Some(started), Some(uptime)) = (self.started, self.uptime) else {
            return false;
        };
        let number = self.leader.get();
        if member.pgid != number || member.sid != number || member.pid == self.leader {
            return false;
        }
        match (started, member.start) {
            (Start::Ticks(leader), Start::Ticks(member)) => {
                let lived = uptime.as_nanos() / crate::sys::tick().as_nanos().max(1);
                member >= leader && u128::from(member - leader) < lived
            }
            (Start::Epoch(leader, leader_micros), Start::Epoch(member, member_micros)) => {
                let micros = |seconds: u64, micros: u32| {
                    u128::from(seconds) * 1_000_000 + u128::from(micros)
                };
                let (leader, member) =
                    (micros(leader, leader_micros), micros(member, member_micros));
                member >= leader && member - leader < uptime.as_micros()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::State;

    fn pid(number: i32) -> Pid {
        Pid::new(number.into()).unwrap()
    }

    fn entry(number: i32, pgid: i32, sid: i32, ticks: u64) -> Entry {
        Entry {
            pid: pid(number),
            ppid: 1,
            pgid,
            sid,
            tty: 0,
            tpgid: -1,
            state: State('S'),
            threads: 1,
            kernel_thread: false,
            start: Start::Ticks(ticks),
            name: b"x".to_vec(),
        }
    }

    fn remains(uptime: Option<u64>) -> Remains {
        Remains {
            leader: pid(100),
            started: Some(Start::Ticks(1000)),
            uptime: uptime.map(Duration::from_millis),
            unproved_too: false,
        }
    }

    #[test]
    fn born_into_the_leaders_session_while_it_lived() {
        // A leader that lived from tick 1000 to tick 1100.
        let lived = remains(Some(1000));
        let table = [
            (
                entry(101, 100, 100, 1000),
                true,
                "in the leader's first tick",
            ),
            (entry(101, 100, 100, 1050), true, "half-way"),
            (entry(101, 100, 100, 1099), true, "a tick before the death"),
            (
                entry(101, 100, 100, 1100),
                false,
                "in the tick of the death",
            ),
            (
                entry(101, 100, 100, 1101),
                false,
                "after it: a new leader's child",
            ),
            (entry(101, 100, 100, 999), false, "before the leader"),
            (
                entry(101, 100, 90, 1050),
                false,
                "the group, in another session",
            ),
            (
                entry(101, 101, 100, 1050),
                false,
                "the session, in another group",
            ),
            (entry(100, 100, 100, 1050), false, "a new leader itself"),
        ];
        for (member, expected, what) in table {
            assert_eq!(lived.is_birth_proved(&member), expected, "{what}");
        }
        let member = entry(101, 100, 100, 1050);
        assert!(
            !remains(None).is_birth_proved(&member),
            "no death is stated"
        );
        assert!(!remains(Some(0)).is_birth_proved(&entry(101, 100, 100, 1000)));
        let unknown_start = Remains {
            started: None,
            ..lived
        };
        assert!(!unknown_start.is_birth_proved(&member));
    }

    #[test]
    fn a_zombie_holds_its_number() {
        let zombie = |ticks| Entry {
            state: State('Z'),
            ..entry(100, 100, 100, ticks)
        };
        let held = |entry: Entry| remains(None).is_held_by_a_zombie(&Table::from_iter([entry]));
        assert!(held(zombie(1000)));
        assert!(!held(zombie(1001)), "another process's zombie");
        assert!(!held(entry(100, 100, 100, 1000)), "it lives");
        assert!(!remains(None).is_held_by_a_zombie(&Table::default()));
    }

    #[test]
    fn whose_number_it_is() {
        let unknown_start = Remains {
            started: None,
            ..remains(None)
        };
        let zombie = |ticks| Entry {
            state: State('Z'),
            ..entry(100, 100, 100, ticks)
        };
        let table = [
            (remains(None), zombie(1000), false, "the leader itself"),
            (
                remains(None),
                zombie(1001),
                true,
                "another process's zombie",
            ),
            (remains(None), entry(100, 100, 100, 1001), true, "it lives"),
            (unknown_start.clone(), zombie(1000), false, "it may be"),
            (unknown_start, entry(100, 100, 100, 1000), true, "it lives"),
        ];
        for (remains, entry, taken, what) in table {
            let table = Table::from_iter([entry]);
            assert_eq!(remains.is_number_taken(&table), taken, "{what}");
        }
        assert!(!remains(None).is_number_taken(&Table::default()));
    }
}
