//! The wait: one loop over poll(2), with one deadline for everything.
//!
//! Nothing in the loop blocks but poll. The source never waits, a thread of its own writes what is
//! printed, and signals come as something to be read. So each time round, whatever is stuck, the
//! loop sees the deadline, and the beat says no more than that it goes round.

use std::io;
use std::time::{Duration, Instant};

use process::Interrupts;
use records::Deadline;
use records::waiting::Waiting;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::beat::Beat;
use crate::end::End;
use crate::intake::Intake;
use crate::sink::{Health, Mark};
use crate::source::exit::Watched;
use crate::source::{Source, Turn, Wakers};
use crate::tell;

/// How long a look may take where no waiting is wanted (`--timeout 0`, or the process of `--pid`
/// has ended): to read what is there, not to wait for more.
const LOOK: Duration = Duration::from_millis(50);

/// How long before the deadline a source is told that it is near.
const NEAR: Duration = Duration::from_millis(400);

/// Everything that takes part in a wait.
pub struct Wait {
    /// Where events come from.
    pub source: Box<dyn Source>,
    /// Where they go.
    pub intake: Intake,
    /// The signals that end it.
    pub interrupts: Interrupts,
    /// When it has begun.
    pub started: Instant,
    /// How long it may take.
    pub timeout: Duration,
    /// The process without which it makes no sense to wait.
    pub process: Option<Watched>,
    /// When that was seen to have ended.
    pub process_ended: Option<Instant>,
    /// The file that says that it is turning.
    pub beat: Option<Beat>,
    /// What is awaited, for a person.
    pub awaited: String,
}

/// How it went.
pub struct Outcome {
    /// How it has ended.
    pub end: End,
    /// Where to go on in the file that was followed.
    pub offset: Option<Mark>,
}

impl Wait {
    /// Waits. What was found is in the intake's output queue afterwards, all of it printed unless
    /// the end says that something came before.
    pub fn run(&mut self) -> Outcome {
        let deadline = match self.timeout.is_zero() {
            true => Deadline::after(LOOK),
            false => self.after(self.timeout),
        };
        let mut waiting = Waiting::new(self.awaited.clone(), deadline);
        let end = match self.turns(deadline, &mut waiting) {
            Ok(end) => end,
            Err(error) => {
                tell(&format!("cannot wait: {error}"));
                End::NotPrinted
            }
        };
        drop(waiting);
        self.source.stop();
        Outcome {
            end,
            offset: self.source.offset(),
        }
    }

    /// This long after the beginning.
    fn after(&self, time: Duration) -> Deadline {
        Deadline::after(time.saturating_sub(self.started.elapsed()))
    }

    fn turns(&mut self, deadline: Deadline, waiting: &mut Waiting) -> io::Result<End> {
        // Set once the source has come to an end, and its lines are only to be printed.
        let mut over: Option<End> = None;
        let near = self.after(self.timeout.saturating_sub(NEAR.min(self.timeout / 2)));
        let mut is_near = false;
        loop {
            self.beat();
            waiting.tick();
            if let Some(&signal) = self.interrupts.take().first() {
                return Ok(End::Interrupted(signal));
            }
            let sink = self.intake.sink();
            sink.heard();
            match sink.health() {
                Health::Good => {}
                Health::ReaderGone => return Ok(End::ReaderGone),
                Health::Failed(errno) => {
                    tell(&format!("cannot write to standard output: {errno}"));
                    return Ok(End::NotPrinted);
                }
            }
            if !is_near && near.passed() && !self.timeout.is_zero() {
                is_near = true;
                self.source.wind_down();
            }
            let mut more = false;
            if over.is_none() && !sink.is_full() {
                (over, more) = self.look(waiting);
                if !self.intake.sink().is_empty() {
                    waiting.erase();
                }
                self.intake.sink_mut().hand_over()?;
            }
            let printed = self.intake.sink().is_empty();
            if let Some(end) = over
                && printed
            {
                return Ok(end);
            }
            let looked = !more && !self.source.is_looking();
            if deadline.passed() || self.timeout.is_zero() && over.is_none() && looked && printed {
                return Ok(match over {
                    // Found, and not printed: that is for the one to say who ends the output.
                    Some(end) => end,
                    None => self.source.at_deadline(),
                });
            }
            let next = deadline.min(waiting.next());
            let next = if is_near { next } else { next.min(near) };
            if self.sleep(next, over.is_some(), more)? {
                return Ok(End::ReaderGone);
            }
        }
    }

    /// Lets the source look, and says whether that was the last time and whether there is more.
    fn look(&mut self, waiting: &mut Waiting) -> (Option<End>, bool) {
        // Seen before the source is looked at: what the process has done in its life is there by
        // then.
        if self.process.as_ref().is_some_and(Watched::has_ended) {
            self.process_ended.get_or_insert_with(Instant::now);
            self.source.look_again();
        }
        let turn = self.source.turn(&mut self.intake);
        if self.intake.is_satisfied() {
            return (Some(End::Matched), false);
        }
        match turn {
            Turn::More => (None, true),
            Turn::Done(end, why) => {
                if let Some(why) = why {
                    waiting.erase();
                    tell(&why);
                }
                (Some(end), false)
            }
            Turn::Idle => {
                let last_look = |at: Instant| !self.source.is_looking() || at.elapsed() >= LOOK;
                let is_over = self.process_ended.is_some_and(last_look);
                (is_over.then_some(End::ProcessEnded), false)
            }
        }
    }

    fn beat(&mut self) {
        if let Some(beat) = &mut self.beat
            && let Err(error) = beat.turn()
        {
            tell(&format!("no beat any more: {error}"));
            self.beat = None;
        }
    }

    /// Sleeps until something happens, or until it is time for something. Whether the reader of
    /// what is printed has gone.
    fn sleep(&self, next: Deadline, is_over: bool, more: bool) -> io::Result<bool> {
        let is_full = self.intake.sink().is_full();
        let is_quiet = self.intake.is_quiet();
        let mut wakers = Wakers::default();
        wakers.readable(self.interrupts.wake());
        wakers.readable(self.intake.sink().wake());
        let reader = (!is_quiet).then(|| wakers.abandoned(rustix::stdio::stdout()));
        let mut due = self.beat.as_ref().map(Beat::due);
        if !is_over && !is_full {
            self.source.wakers(&mut wakers);
            // One that has ended would wake without end.
            let process = self
                .process
                .as_ref()
                .filter(|_| self.process_ended.is_none());
            process.inspect(|process| process.wakers(&mut wakers));
            let others = [
                self.source.due(),
                process.and_then(Watched::due),
                self.process_ended.map(|at| at + LOOK),
            ];
            due = due.into_iter().chain(others.into_iter().flatten()).min();
        }
        let until_due = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = match (more && !is_full, until_due, next.left()) {
            (true, _, _) => Some(Duration::ZERO),
            (false, a, b) => a.into_iter().chain(b).min(),
        };
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(wakers.as_mut(), timeout.as_ref()) {
            Ok(_) => Ok(reader.is_some_and(|reader| wakers.has_woken(reader))),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}
