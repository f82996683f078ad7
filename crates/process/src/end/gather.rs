//! Who belongs to each target: found before the first signal, and looked for again between the
//! stages.

use std::collections::HashSet;
use std::io;

use super::cast::Member;
use super::kin::{Before, Candidate, Kin, Via};
use super::outcome::Refusal;
use super::sequence::Sequence;
use super::{Remains, Root, Scope, Target};
use crate::handle::Handle;
use crate::pid::Pid;
use crate::table::Table;

/// One target while it is worked on.
pub(super) struct Play {
    scope: Scope,
    pub members: Vec<usize>,
    /// The group that is its own as a whole.
    group: Option<Pid>,
    /// A group that is its own by those members that are proved.
    remains: Option<Pid>,
    /// Who is given its orphans.
    adopters: HashSet<Pid>,
    pub refused: Option<Refusal>,
}

impl Sequence<'_, '_> {
    /// Takes one target in hand.
    pub(super) fn open(&mut self, target: Target, table: &Table, kin: &Kin<'_>) -> Play {
        let mut play = Play {
            scope: target.scope,
            members: Vec::new(),
            group: None,
            remains: None,
            adopters: HashSet::new(),
            refused: None,
        };
        match target.root {
            Root::Alive(root) => self.open_root(&mut play, root),
            Root::Ended(Some(remains)) => self.open_remains(&mut play, &remains, table, kin),
            Root::Ended(None) => {}
        }
        for handle in target.extra {
            let index = self.cast.take(handle);
            self.include(&mut play, index);
        }
        for &index in &play.members {
            let pid = self.cast.member(index).map(|member| member.pid);
            play.adopters
                .extend(pid.into_iter().flat_map(|pid| table.ancestors(pid)));
        }
        if play.refused.is_none() {
            self.gather(&mut play, kin);
        }
        let members = play.members.iter();
        let mut pids = members.filter_map(|&index| Some(self.cast.member(index)?.pid));
        if pids.any(|pid| self.family.contains(&pid)) {
            play.refused = play.refused.or(Some(Refusal::OwnFamily));
        }
        if play.refused.is_some() {
            play.members.clear();
        }
        play
    }

    fn open_root(&mut self, play: &mut Play, root: Handle) {
        let pid = root.pid();
        if pid.is_init() {
            play.refused = Some(Refusal::Init);
        } else if root.entry().is_some_and(|entry| entry.kernel_thread) {
            play.refused = Some(Refusal::KernelThread);
        }
        let index = self.cast.take(root);
        let leads = self.cast.member(index).is_some_and(Member::leads);
        play.group = Some(pid).filter(|_| leads && play.scope.takes_group());
        self.include(play, index);
    }

    fn open_remains(&mut self, play: &mut Play, remains: &Remains, table: &Table, kin: &Kin<'_>) {
        let number = remains.leader;
        let by_zombie = remains.is_held_by_a_zombie(table);
        if by_zombie && let Some(leader) = table.get(number) {
            // The zombie is reported, whatever group it is in.
            let leader = Candidate {
                pid: number,
                start: leader.start,
                via: Via::Group(number),
            };
            if let Some(index) = self.cast.open(self.here, &leader) {
                self.include(play, index);
            }
        }
        if remains.is_number_taken(table) || !play.scope.takes_group() {
            return;
        }
        play.remains = Some(number);
        for candidate in kin.in_group(number) {
            let Some(index) = self.cast.open(self.here, &candidate) else {
                continue;
            };
            let proved = by_zombie
                || remains.unproved_too
                || table
                    .get(candidate.pid)
                    .is_some_and(|entry| remains.is_birth_proved(entry));
            let is_new = !self.plays_have(index);
            if let Some(member) = self.cast.member_mut(index) {
                // Proved for one target is proved.
                member.course.unproved = !proved && (is_new || member.course.unproved);
            }
            if !play.members.contains(&index) {
                play.members.push(index);
            }
        }
    }

    fn plays_have(&self, index: usize) -> bool {
        self.plays.iter().any(|play| play.members.contains(&index))
    }

    /// Makes one that is proved a member.
    fn include(&mut self, play: &mut Play, index: usize) {
        if let Some(member) = self.cast.member_mut(index) {
            member.course.unproved = false;
        }
        if !play.members.contains(&index) {
            play.members.push(index);
        }
    }

    /// Adds whom one reading of the table shows to belong to `play`, and gives the new ones.
    fn gather(&mut self, play: &mut Play, kin: &Kin<'_>) -> Vec<usize> {
        let mut new = Vec::new();
        let descends = play.scope.takes_descendants();
        if descends {
            let parents = self.shown(play, kin);
            self.admit(play, kin.descendants(&parents), &mut new);
        }
        let mut by_group = play.group.map_or_else(Vec::new, |own| kin.in_group(own));
        let before = Before {
            everybody: &self.everybody,
            adopters: &play.adopters,
        };
        for number in self.other_groups(play) {
            by_group.extend(kin.orphans_in_group(number, &before));
        }
        if !by_group.is_empty() {
            let met = new.len();
            self.admit(play, by_group, &mut new);
            if descends && new.len() > met {
                let parents = self.shown(play, kin);
                self.admit(play, kin.descendants(&parents), &mut new);
            }
        }
        new
    }

    /// The members of `play` that the reading shows and that can have children.
    fn shown(&self, play: &Play, kin: &Kin<'_>) -> Vec<Pid> {
        let members = play.members.iter().filter_map(|&i| self.cast.member(i));
        members
            .filter(|member| !member.course.unproved)
            .filter(|member| {
                member
                    .start
                    .is_some_and(|start| kin.shows(member.pid, start))
            })
            .map(|member| member.pid)
            .collect()
    }

    /// The groups whose orphans are the target's, but which are not its own as a whole.
    fn other_groups(&self, play: &Play) -> Vec<Pid> {
        let mut numbers: Vec<Pid> = play.remains.into_iter().collect();
        if play.scope.takes_descendants() {
            let members = play.members.iter().filter_map(|&i| self.cast.member(i));
            let leaders = members.filter(|member| member.leads() && !member.course.unproved);
            numbers.extend(leaders.map(|member| member.pid));
        }
        numbers.retain(|&number| Some(number) != play.group);
        numbers
    }

    /// Makes those of `candidates` members that belong to `play` once a handle holds them.
    fn admit(&mut self, play: &mut Play, candidates: Vec<Candidate>, new: &mut Vec<usize>) {
        let mut known: HashSet<usize> = play.members.iter().copied().collect();
        let mut passed_over = HashSet::new();
        for candidate in candidates {
            if candidate.pid.is_init() {
                continue;
            }
            if matches!(candidate.via, Via::Child(parent) if passed_over.contains(&parent)) {
                passed_over.insert(candidate.pid);
                continue;
            }
            let Some(index) = self.cast.open(self.here, &candidate) else {
                passed_over.insert(candidate.pid);
                continue;
            };
            if known.contains(&index) {
                continue;
            }
            // Once it is held: whether the group that it is in still is the one that is meant.
            let belongs = match candidate.via {
                Via::Child(_) => true,
                Via::Group(number) => {
                    let stayed = self
                        .cast
                        .member(index)
                        .is_some_and(|member| member.pgid == Some(number.get()));
                    stayed
                        && self
                            .cast
                            .hold(number, &play.members)
                            .admits(candidate.start)
                }
            };
            if belongs {
                known.insert(index);
                self.include(play, index);
                new.push(index);
            } else {
                passed_over.insert(candidate.pid);
            }
        }
    }

    /// Reads the table again, and gives the members that are new.
    pub(super) fn look_again(&mut self) -> io::Result<Vec<usize>> {
        let table = Table::read(&mut self.reader)?;
        let kin = Kin::new(&table);
        let mut new = Vec::new();
        let mut plays = std::mem::take(&mut self.plays);
        for play in plays.iter_mut().filter(|play| play.refused.is_none()) {
            new.extend(self.gather(play, &kin));
        }
        // A tool cannot come to be its own target's child; it is spared all the same.
        for play in &mut plays {
            play.members.retain(|&index| {
                let pid = self.cast.member(index).map(|member| member.pid);
                pid.is_none_or(|pid| !self.family.contains(&pid))
            });
        }
        self.plays = plays;
        Ok(new)
    }
}
