//! The members of all targets, each held by its handle.

use std::collections::HashMap;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::kin::Candidate;
use super::outcome::Course;
use crate::entry::{Entry, Start};
use crate::handle::{Delivery, Handle};
use crate::here::{Here, Sight};
use crate::ident::Identity;
use crate::pid::Pid;
use crate::sys::{self, Reader};

/// A process that belongs to one or more targets.
#[derive(Debug)]
pub(super) struct Member {
    pub pid: Pid,
    pub ident: Identity,
    pub start: Option<Start>,
    /// Its process group when it was first seen; `None` where the table hides it.
    pub pgid: Option<i32>,
    /// `None` for one that was a zombie when it was first seen.
    handle: Option<Handle>,
    pub course: Course,
    /// What it was sent, each once.
    pub signals: Vec<Signal>,
    /// When its end was noticed, on the monotonic clock and in the table's unit.
    pub ended: Option<(Instant, Start)>,
}

/// Whether the number of a group still is the one that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is.
    Yes,
    /// It was up to this moment.
    Until(Start),
    /// It may be another group's.
    No,
}

impl Hold {
    pub(super) fn admits(self, start: Start) -> bool {
        match self {
            Hold::Yes => true,
            Hold::Until(last) => start <= last,
            Hold::No => false,
        }
    }
}

impl Member {
    fn held(handle: Handle) -> Member {
        Member {
            pid: handle.pid(),
            ident: handle.ident().clone(),
            start: handle.entry().map(|entry| entry.start),
            pgid: handle.entry().map(|entry| entry.pgid),
            handle: Some(handle),
            course: Course::default(),
            signals: Vec::new(),
            ended: None,
        }
    }

    /// Whether it leads a process group.
    pub(super) fn leads(&self) -> bool {
        self.pgid == Some(self.pid.get())
    }

    /// Its handle while it lives.
    pub(super) fn alive(&self) -> Option<&Handle> {
        self.handle.as_ref().filter(|_| !self.course.ended)
    }

    /// What the table shows of it now; also of a zombie.
    pub(super) fn current(&self) -> Option<Entry> {
        match &self.handle {
            Some(handle) => handle.current(),
            None => Reader::new()
                .entry(self.pid)
                .ok()
                .filter(|entry| Some(entry.start) == self.start),
        }
    }

    /// Looks whether it has ended.
    pub(super) fn notice_death(&mut self) {
        if self.alive().is_some_and(Handle::has_ended) {
            self.mark_ended();
        }
    }

    fn mark_ended(&mut self) {
        self.course.ended = true;
        self.ended = Some((Instant::now(), sys::now()));
    }

    /// Sends `signal`, unless it has ended.
    pub(super) fn send(&mut self, signal: Signal) {
        self.notice_death();
        let Some(handle) = self.alive() else {
            return;
        };
        match handle.signal(signal) {
            Delivery::Sent => {
                self.course.denied = false;
                self.course.signalled |= signal != Signal::SIGCONT;
                self.course.killed |= signal == Signal::SIGKILL;
                if !self.signals.contains(&signal) {
                    self.signals.push(signal);
                }
            }
            Delivery::Gone => self.mark_ended(),
            Delivery::Denied => self.course.denied = true,
            Delivery::Failed(_) => {}
        }
    }
}

/// All members of all targets, each once.
#[derive(Debug, Default)]
pub(super) struct Cast {
    members: Vec<Member>,
    by_pid: HashMap<Pid, usize>,
}

impl Cast {
    pub(super) fn member(&self, index: usize) -> Option<&Member> {
        self.members.get(index)
    }

    pub(super) fn member_mut(&mut self, index: usize) -> Option<&mut Member> {
        self.members.get_mut(index)
    }

    /// The member with this number and start.
    pub(super) fn find(&self, pid: Pid, start: Option<Start>) -> Option<usize> {
        let index = *self.by_pid.get(&pid)?;
        self.members
            .get(index)
            .is_some_and(|member| member.start == start)
            .then_some(index)
    }

    /// Takes the process that `handle` holds.
    pub(super) fn take(&mut self, handle: Handle) -> usize {
        let start = handle.entry().map(|entry| entry.start);
        match self.find(handle.pid(), start) {
            Some(index) => index,
            None => self.push(Member::held(handle)),
        }
    }

    /// Opens a handle on `candidate`, if it still is that process.
    pub(super) fn open(&mut self, here: &Here, candidate: &Candidate) -> Option<usize> {
        if let Some(index) = self.find(candidate.pid, Some(candidate.start)) {
            return Some(index);
        }
        match here.look(candidate.pid) {
            Sight::Alive(handle) => {
                let same = handle
                    .entry()
                    .is_some_and(|entry| entry.start == candidate.start);
                same.then(|| self.push(Member::held(handle)))
            }
            Sight::Zombie(ident) => {
                let entry = Reader::new().entry(candidate.pid).ok()?;
                let member = Member {
                    pid: candidate.pid,
                    ident,
                    start: Some(candidate.start),
                    pgid: Some(entry.pgid),
                    handle: None,
                    course: Course {
                        ended: true,
                        ..Course::default()
                    },
                    signals: Vec::new(),
                    ended: Some((Instant::now(), sys::now())),
                };
                (entry.start == candidate.start).then(|| self.push(member))
            }
            Sight::Absent | Sight::Unknown(_) => None,
        }
    }

    fn push(&mut self, member: Member) -> usize {
        let index = self.members.len();
        self.by_pid.insert(member.pid, index);
        self.members.push(member);
        index
    }

    /// Whether the group `number` still is the one that the members among `of` are or were in.
    ///
    /// A number is not handed out again while a process, a zombie too, has it as its own or as
    /// that of its group or session. So one such process that is known proves it. With the leader
    /// itself dead and collected, the kernel is asked through the leader's handle (Linux 6.9).
    /// Where it has no answer, the number was the group's until the last known member's end.
    pub(super) fn hold(&self, number: Pid, of: &[usize]) -> Hold {
        let known = || of.iter().filter_map(|&index| self.member(index));
        let leader = known().find(|member| member.pid == number);
        if leader.is_some_and(|leader| leader.current().is_some()) {
            return Hold::Yes;
        }
        let in_group = || known().filter(|member| member.pgid == Some(number.get()));
        let lives = |member: &Member| member.alive().is_some_and(|handle| !handle.has_ended());
        if in_group().any(lives) {
            return Hold::Yes;
        }
        let notice = leader.and_then(|leader| leader.handle.as_ref()?.end_notice());
        match notice.and_then(sys::group_lives) {
            Some(true) => Hold::Yes,
            Some(false) => Hold::No,
            None => in_group()
                .map(|member| member.ended.map_or_else(sys::now, |(_, at)| at))
                .max()
                .map_or(Hold::No, Hold::Until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_number_admits() {
        let at = Start::Ticks;
        assert!(Hold::Yes.admits(at(7)));
        assert!(Hold::Until(at(7)).admits(at(7)));
        assert!(
            !Hold::Until(at(7)).admits(at(8)),
            "the number may be another's by then"
        );
        assert!(!Hold::No.admits(at(1)));
    }
}
