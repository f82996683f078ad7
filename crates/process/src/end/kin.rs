//! Who belongs to a target, by one reading of the table.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::entry::{Entry, Start};
use crate::pid::Pid;
use crate::table::Table;

/// One reading of the table, ordered by family and by group.
pub(super) struct Kin<'t> {
    table: &'t Table,
    children: HashMap<i32, Vec<&'t Entry>>,
    groups: HashMap<i32, Vec<&'t Entry>>,
}

/// Somebody who belongs to a target if what is said of it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The process.
    pub pid: Pid,
    /// When it started, so that it is not taken for another one later.
    pub start: Start,
    /// Why it belongs.
    pub via: Via,
}

/// Why somebody belongs to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// As a child of this one, if that belongs.
    Child(Pid),
    /// As one of the group of this number, if the number still is the one that is meant.
    Group(Pid),
}

/// What was seen before, to tell who was forked since.
pub(super) struct Before<'a> {
    /// Everybody, at the first reading.
    pub everybody: &'a HashMap<Pid, Start>,
    /// Who is given the orphans of the target: its ancestors at the first reading. Init and what
    /// is outside of the namespace always are.
    pub adopters: &'a HashSet<Pid>,
}

impl<'t> Kin<'t> {
    pub(super) fn new(table: &'t Table) -> Kin<'t> {
        let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
        let mut groups: HashMap<i32, Vec<&Entry>> = HashMap::new();
        for entry in table.entries() {
            children.entry(entry.ppid).or_default().push(entry);
            groups.entry(entry.pgid).or_default().push(entry);
        }
        Kin {
            table,
            children,
            groups,
        }
    }

    /// Whether the table shows this very process.
    pub(super) fn shows(&self, pid: Pid, start: Start) -> bool {
        self.table
            .get(pid)
            .is_some_and(|entry| entry.start == start)
    }

    /// The members of the group `number`.
    pub(super) fn group(&self, number: Pid) -> impl Iterator<Item = &'t Entry> {
        self.groups
            .get(&number.get())
            .into_iter()
            .flatten()
            .copied()
    }

    /// All descendants of `parents`, each after its parent, without `parents` themselves.
    pub(super) fn descendants(&self, parents: &[Pid]) -> Vec<Candidate> {
        let mut seen: HashSet<Pid> = parents.iter().copied().collect();
        let mut queue: VecDeque<Pid> = parents.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(parent) = queue.pop_front() {
            for child in self.children.get(&parent.get()).into_iter().flatten() {
                if seen.insert(child.pid) {
                    queue.push_back(child.pid);
                    found.push(Candidate {
                        pid: child.pid,
                        start: child.start,
                        via: Via::Child(parent),
                    });
                }
            }
        }
        found
    }

    /// The members of the group `number`, as candidates.
    pub(super) fn in_group(&self, number: Pid) -> Vec<Candidate> {
        self.group(number)
            .map(|entry| candidate(entry, number))
            .collect()
    }

    /// Those in the group `number`, which a member of the target leads or led, that were forked
    /// since and have lost their parent: a member that ends can leave such a child behind, and
    /// nothing but the group tells whose it was. Who has another parent is that one's.
    pub(super) fn orphans_in_group(&self, number: Pid, before: &Before<'_>) -> Vec<Candidate> {
        self.group(number)
            .filter(|entry| before.everybody.get(&entry.pid) != Some(&entry.start))
            .filter(|entry| match Pid::new(entry.ppid.into()) {
                Some(parent) => parent.is_init() || before.adopters.contains(&parent),
                None => true,
            })
            .map(|entry| candidate(entry, number))
            .collect()
    }
}

fn candidate(entry: &Entry, number: Pid) -> Candidate {
    Candidate {
        pid: entry.pid,
        start: entry.start,
        via: Via::Group(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::new(number.into()).unwrap()
    }

    fn pids(candidates: &[Candidate]) -> Vec<i32> {
        candidates.iter().map(|found| found.pid.get()).collect()
    }

    #[test]
    fn descendants_in_any_group_each_after_its_parent() {
        let table = Table::of_rows(&[
            (10, 1, 10, 5),
            (11, 10, 10, 6),
            (12, 11, 12, 7),
            (9, 12, 12, 8),
            (20, 1, 20, 5),
            (30, 1, 10, 9),
        ]);
        let kin = Kin::new(&table);
        assert_eq!(pids(&kin.descendants(&[pid(10)])), [11, 12, 9]);
        assert_eq!(kin.descendants(&[pid(10)])[1].via, Via::Child(pid(11)));
        assert_eq!(pids(&kin.in_group(pid(10))), [10, 11, 30]);
        assert!(kin.shows(pid(10), Start::Ticks(5)));
        assert!(!kin.shows(pid(10), Start::Ticks(6)));
    }

    #[test]
    fn a_circle_in_a_reading_ends() {
        let table = Table::of_rows(&[(10, 11, 10, 1), (11, 10, 10, 1)]);
        assert_eq!(pids(&Kin::new(&table).descendants(&[pid(10)])), [11]);
    }

    #[test]
    fn orphans_that_were_forked_since() {
        let table = Table::of_rows(&[
            (40, 1, 30, 1),   // an orphan that was there before
            (41, 1, 30, 50),  // forked since, adopted by init
            (42, 5, 30, 50),  // forked since, adopted by a subreaper above the target
            (43, 77, 30, 50), // forked since by a stranger in that group
            (44, 0, 30, 50),  // forked since, its parent is outside the namespace
            (45, 1, 31, 50),  // another group
            (46, 1, 30, 50),  // a number that was another process before
        ]);
        let everybody = HashMap::from([(pid(40), Start::Ticks(1)), (pid(46), Start::Ticks(2))]);
        let before = Before {
            everybody: &everybody,
            adopters: &HashSet::from([pid(5)]),
        };
        let found = Kin::new(&table).orphans_in_group(pid(30), &before);
        assert_eq!(pids(&found), [41, 42, 44, 46]);
    }
}
