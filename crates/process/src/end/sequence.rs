//! The stages: signal, wait, look again, kill, wait, look again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::cast::{Cast, Member};
use super::gather::Play;
use super::kin::Kin;
use super::outcome::{self, Close, Outcome};
use super::{EndOptions, Ended, MemberReport, Pending, Report, Survivor, Target, Watch};
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

pub(super) struct Sequence<'a, 'w> {
    pub(super) here: &'a Here,
    options: &'a EndOptions,
    watch: Watch<'w>,
    began: Instant,
    pub(super) reader: Reader,
    pub(super) cast: Cast,
    pub(super) plays: Vec<Play>,
    /// Everybody at the first reading.
    pub(super) everybody: HashMap<Pid, Start>,
    /// Who is never signalled.
    pub(super) family: HashSet<Pid>,
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
    pub(super) fn run(mut self) -> Ended {
        if self.options.dry_run {
            self.alive();
            return self.close(Close::DryRun, None);
        }
        let mut trouble = None;
        if !self.halted() && !self.active().is_empty() {
            trouble = self.stages().err();
        }
        self.alive();
        let close = match self.interrupted {
            Some(_) => Close::Interrupted,
            None => Close::Done,
        };
        self.close(close, trouble)
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
            self.tell(left.len(), true, limit - now);
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

    fn close(self, close: Close, trouble: Option<io::Error>) -> Ended {
        let reports = self.plays.iter().map(|play| self.report(play, close));
        Ended {
            reports: reports.collect(),
            interrupted: self.interrupted,
            trouble,
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
