//! The stages: signal, wait, look again, kill, wait, look again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::cast::{Cast, Member};
use super::kin::{Before, Candidate, Kin, Via};
use super::outcome::{self, Close, Outcome, Refusal};
use super::{
    EndOptions, Ended, MemberReport, Pending, Remains, Report, Root, Scope, Survivor, Target, Watch,
};
use crate::entry::Start;
use crate::handle::{Handle, wait};
use crate::here::Here;
use crate::pid::Pid;
use crate::record::Named;
use crate::sys::Reader;
use crate::table::{Table, own_family};

/// How often somebody who looks on is told.
const PROGRESS: Duration = Duration::from_secs(1);

/// How often zombies are looked at: that one has been collected gives no notice.
const VANISH_POLL: Duration = Duration::from_millis(10);

/// One target while it is worked on.
struct Play {
    scope: Scope,
    members: Vec<usize>,
    /// The group that is its own as a whole.
    group: Option<Pid>,
    /// A group that is its own by those members that are proved.
    remains: Option<Pid>,
    /// Who is given its orphans.
    adopters: HashSet<Pid>,
    refused: Option<Refusal>,
}

pub(super) struct Sequence<'a, 'w> {
    here: &'a Here,
    options: &'a EndOptions,
    watch: Watch<'w>,
    began: Instant,
    reader: Reader,
    cast: Cast,
    plays: Vec<Play>,
    /// Everybody at the first reading.
    everybody: HashMap<Pid, Start>,
    /// Who is never signalled.
    family: HashSet<Pid>,
    interrupted: Option<Signal>,
}

impl<'a, 'w> Sequence<'a, 'w> {
    /// Finds the members of all targets.
    pub(super) fn begin(
        here: &'a Here,
        targets: Vec<Target>,
        options: &'a EndOptions,
        watch: Watch<'w>,
    ) -> io::Result<Sequence<'a, 'w>> {
        let mut sequence = Sequence {
            here,
            options,
            watch,
            began: Instant::now(),
            reader: Reader::new(),
            cast: Cast::default(),
            plays: Vec::with_capacity(targets.len()),
            everybody: HashMap::new(),
            family: HashSet::new(),
            interrupted: None,
        };
        if targets.is_empty() {
            return Ok(sequence);
        }
        let table = Table::read(&mut sequence.reader)?;
        let rows = table.entries().iter();
        sequence.everybody = rows.map(|entry| (entry.pid, entry.start)).collect();
        sequence.family = own_family(&table, &mut sequence.reader);
        let kin = Kin::new(&table);
        for target in targets {
            let play = sequence.open(target, &table, &kin);
            sequence.plays.push(play);
        }
        Ok(sequence)
    }

    /// Takes one target in hand.
    fn open(&mut self, target: Target, table: &Table, kin: &Kin<'_>) -> Play {
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
            Root::Ended(remains) => self.open_remains(&mut play, &remains, table, kin),
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
            play.refused = Some(Refusal::OwnFamily);
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
        // A live process of that number is another one, and the old group was empty before it
        // could be given its number.
        let taken = !by_zombie && table.get(number).is_some();
        if taken || !play.scope.takes_group() {
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
    fn look_again(&mut self) -> io::Result<Vec<usize>> {
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

    /// All members that may be signalled, each once, roots before their descendants.
    fn active(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        self.plays
            .iter()
            .flat_map(|play| &play.members)
            .copied()
            .filter(|&index| seen.insert(index))
            .filter(|&index| {
                self.cast
                    .member(index)
                    .is_some_and(|member| !member.course.unproved)
            })
            .collect()
    }

    /// Those of them that live.
    fn alive(&mut self) -> Vec<usize> {
        let mut active = self.active();
        active.retain(|&index| {
            self.cast.member_mut(index).is_some_and(|member| {
                member.notice_death();
                !member.course.ended
            })
        });
        active
    }

    /// Runs all stages.
    pub(super) fn run(mut self) -> io::Result<Ended> {
        if self.options.dry_run {
            self.alive();
            return Ok(self.close(Close::DryRun));
        }
        if !self.halted() && !self.active().is_empty() {
            self.stages()?;
        }
        self.alive();
        let close = match self.interrupted {
            Some(_) => Close::Interrupted,
            None => Close::Done,
        };
        Ok(self.close(close))
    }

    fn stages(&mut self) -> io::Result<()> {
        let options = self.options;
        let active = self.active();
        self.send(&active, options.signal);
        self.wake_stopped(&active);
        self.settle(after(options.grace), options.signal == Signal::SIGKILL)?;
        if self.halted() {
            return Ok(());
        }
        let mut limit = after(options.kill_grace);
        if !self.alive().is_empty() {
            self.look_again()?;
            if options.kill {
                let alive = self.alive();
                self.send(&alive, Signal::SIGKILL);
                limit = after(options.kill_grace);
                self.settle(limit, true)?;
            }
        }
        if options.vanish && !self.halted() {
            self.vanish(limit)?;
        }
        Ok(())
    }

    fn send(&mut self, members: &[usize], signal: Signal) {
        for &index in members {
            if let Some(member) = self.cast.member_mut(index) {
                member.send(signal);
            }
        }
    }

    /// A stopped process cannot act on a signal. What it was sent is pending by now, so that is
    /// the first thing it sees.
    fn wake_stopped(&mut self, members: &[usize]) {
        for &index in members {
            if let Some(member) = self.cast.member_mut(index)
                && member.course.signalled
                && member.current().is_some_and(|now| now.state.is_stopped())
            {
                member.send(Signal::SIGCONT);
            }
        }
    }

    /// Waits until every member is dead and a reading of the table shows no new one, or until
    /// `limit`. New ones are killed at once, or given the time that is left.
    fn settle(&mut self, limit: Instant, killing: bool) -> io::Result<()> {
        loop {
            if self.halted() {
                return Ok(());
            }
            let alive = self.alive();
            // One that cannot be signalled ends when it likes.
            let awaited: Vec<usize> = alive
                .into_iter()
                .filter(|&index| {
                    self.cast
                        .member(index)
                        .is_some_and(|member| !member.course.denied)
                })
                .collect();
            if awaited.is_empty() {
                let new = self.look_again()?;
                if new.is_empty() {
                    return Ok(());
                }
                if killing {
                    self.send(&new, Signal::SIGKILL);
                }
                if Instant::now() < limit {
                    continue;
                }
            }
            let now = Instant::now();
            if now >= limit {
                return Ok(());
            }
            self.tell(awaited.len(), killing, limit - now);
            self.pause(&awaited, limit)?;
        }
    }

    fn tell(&mut self, alive: usize, killed: bool, left: Duration) {
        if let Some(progress) = self.watch.progress.as_mut() {
            progress(Pending {
                alive,
                killed,
                left,
            });
        }
    }

    fn pause(&mut self, awaited: &[usize], limit: Instant) -> io::Result<()> {
        let limit = match self.watch.progress {
            Some(_) => limit.min(after(PROGRESS)),
            None => limit,
        };
        let members = awaited.iter().filter_map(|&i| self.cast.member(i));
        let handles: Vec<&Handle> = members.filter_map(Member::alive).collect();
        let wake = self.watch.interrupts.map(|interrupts| interrupts.wake());
        wait(&handles, wake, Some(limit))
    }

    /// Waits until no entry of any dead member is left.
    fn vanish(&mut self, limit: Instant) -> io::Result<()> {
        let mut left = self.active();
        loop {
            left.retain(|&index| {
                self.cast
                    .member(index)
                    .is_some_and(|member| member.course.ended && member.current().is_some())
            });
            let now = Instant::now();
            if left.is_empty() || self.halted() || now >= limit {
                return Ok(());
            }
            let wake = self.watch.interrupts.map(|interrupts| interrupts.wake());
            wait(&[], wake, Some(limit.min(after(VANISH_POLL))))?;
        }
    }

    /// Whether a signal has called a halt.
    fn halted(&mut self) -> bool {
        if let Some(interrupts) = self.watch.interrupts
            && self.interrupted.is_none()
        {
            self.interrupted = interrupts.take().first().copied();
        }
        self.interrupted.is_some()
    }

    fn close(self, close: Close) -> Ended {
        let reports = self.plays.iter().map(|play| self.report(play, close));
        Ended {
            reports: reports.collect(),
            interrupted: self.interrupted,
        }
    }

    fn report(&self, play: &Play, close: Close) -> Report {
        let members: Vec<&Member> = play
            .members
            .iter()
            .filter_map(|&index| self.cast.member(index))
            .collect();
        let of = |member: &Member| outcome::of_member(member.course, close);
        let outcome = match play.refused {
            Some(refusal) => Outcome::Refused(refusal),
            None => outcome::of_target(members.iter().map(|member| of(member))),
        };
        Report {
            outcome,
            signals: self.signals(&members, close),
            survivors: members
                .iter()
                .filter(|member| !of(member).is_dead())
                .filter(|member| !matches!(of(member), Outcome::Unknown | Outcome::DryRun))
                .map(|member| Survivor {
                    pid: member.pid,
                    ident: member.ident.clone(),
                    state: member.current().map(|now| now.state),
                })
                .collect(),
            zombies: members
                .iter()
                .filter(|member| member.course.ended && member.current().is_some())
                .map(|member| Named {
                    pid: member.pid,
                    ident: member.ident.clone(),
                })
                .collect(),
            took: self.took(&members),
            members: members
                .iter()
                .map(|member| MemberReport {
                    pid: member.pid,
                    ident: member.ident.clone(),
                    outcome: of(member),
                })
                .collect(),
        }
    }

    fn signals(&self, members: &[&Member], close: Close) -> Vec<Signal> {
        let first = self.options.signal;
        let mut order = vec![first];
        order.extend(
            [Signal::SIGCONT, Signal::SIGKILL]
                .iter()
                .filter(|&&later| later != first),
        );
        order.retain(|signal| {
            members.iter().any(|member| {
                let would = close == Close::DryRun
                    && *signal == first
                    && !member.course.ended
                    && !member.course.unproved;
                would || member.signals.contains(signal)
            })
        });
        order
    }

    fn took(&self, members: &[&Member]) -> Duration {
        let mut last = self.began;
        for member in members {
            match member.ended {
                Some((at, _)) => last = last.max(at),
                None if member.course.unproved => {}
                None => return self.began.elapsed(),
            }
        }
        last - self.began
    }
}

/// Now and `wait` more, as far as the clock goes.
fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait)
        .or_else(|| now.checked_add(Duration::from_secs(u32::MAX.into())))
        .unwrap_or(now)
}
