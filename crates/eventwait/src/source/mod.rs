//! Where events come from.
//!
//! A source never waits: it looks, hands over what there is, and says what it wants to be woken
//! by. It arms its watch first and looks at the state afterwards, so nothing falls between.

pub mod cmd;
pub mod connect;
pub mod control;
pub mod exit;
pub mod follow;
pub mod herdr;
pub mod herdr_wire;
pub mod path;
pub mod points;
pub mod socket;
pub mod stdin;
pub mod stream;
pub mod tmux;
pub mod tmux_pane;

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use crate::end::End;
use crate::intake::Intake;

/// What a turn has come to.
#[derive(Debug)]
pub enum Turn {
    /// There is nothing more at the moment.
    Idle,
    /// There may be more at once.
    More,
    /// The source has ended, in this way; the text says why, where that is not plain.
    Done(End, Option<String>),
}

impl Turn {
    /// The source has ended, and nothing needs to be said about it.
    pub fn done(end: End) -> Turn {
        Turn::Done(end, None)
    }

    /// The source has ended, and why.
    pub fn failed(end: End, why: impl Into<String>) -> Turn {
        Turn::Done(end, Some(why.into()))
    }
}

/// A source of events.
pub trait Source {
    /// Looks what there is, without ever waiting, and hands it to `intake`: a bounded amount in
    /// one turn.
    fn turn(&mut self, intake: &mut Intake) -> Turn;

    /// What wakes it.
    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>);

    /// When it wants to look without being woken.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// The next turn must look at the present state, whatever the watch says.
    fn look_again(&mut self) {}

    /// Whether the answer to a look is still under way.
    fn is_looking(&self) -> bool {
        false
    }

    /// How the wait has ended if the deadline comes now.
    fn at_deadline(&self) -> End {
        End::Deadline
    }

    /// Where in which file to go on after this wait.
    fn offset(&self) -> Option<crate::sink::Mark> {
        None
    }

    /// The deadline is near: what takes time to be given up is given up now, and looking has to do.
    fn wind_down(&mut self) {}

    /// Ends what the source has started, within a bounded time.
    fn stop(&mut self) {}

    /// All is said: what the end of the process would have to wait for is given up, if that can be
    /// done faster.
    fn leave(&mut self) {}
}

/// The descriptors that a wait is woken by.
#[derive(Default)]
pub struct Wakers<'a>(Vec<PollFd<'a>>);

impl<'a> Wakers<'a> {
    /// Wakes when `fd` can be read, or has come to its end.
    pub fn readable(&mut self, fd: BorrowedFd<'a>) {
        self.0.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }

    /// Wakes when `fd` can be written.
    pub fn writable(&mut self, fd: BorrowedFd<'a>) {
        self.0.push(PollFd::from_borrowed_fd(fd, PollFlags::OUT));
    }

    /// Wakes when nobody is at the other end of `fd` any more. Its place, for
    /// [`Wakers::has_woken`].
    pub fn abandoned(&mut self, fd: BorrowedFd<'a>) -> usize {
        self.0
            .push(PollFd::from_borrowed_fd(fd, process::hang_up(fd)));
        self.0.len() - 1
    }

    /// Whether the descriptor in this place has woken the wait.
    pub fn has_woken(&self, place: usize) -> bool {
        self.0.get(place).is_some_and(|fd| !fd.revents().is_empty())
    }

    /// All of them, for poll(2).
    pub fn as_mut(&mut self) -> &mut [PollFd<'a>] {
        &mut self.0
    }
}
