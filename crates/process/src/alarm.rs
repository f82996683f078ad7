//! The end of a process at a time that was set for it, whatever it is stuck in by then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::interrupt::unblock;
use crate::sys;

/// Ends this process a while after its deadline, unless it has ended or cancelled this before.
///
/// It is SIGALRM from setitimer(2), not a thread that sleeps: the end of a process waits for each of
/// its threads to run once more, and on a busy machine one that has slept for long may stand in line
/// for a tenth of a second. There is one in a process.
#[derive(Debug)]
pub struct Alarm {
    asleep: Arc<AtomicBool>,
}

/// The exit status that an [`Alarm`] gives.
#[derive(Debug)]
pub struct AlarmStatus {
    /// Whether what the process is for has happened.
    pub done: Arc<AtomicBool>,
    /// The status where it has.
    pub if_done: u8,
    /// The status where it has not.
    pub if_not: u8,
}

impl Alarm {
    /// Has the process end `after` its `deadline`, which is in so much time. What it has not
    /// written yet is lost.
    ///
    /// A SIGALRM that comes before the deadline is somebody else's, and does what it would have done
    /// without this.
    ///
    /// # Errors
    ///
    /// Those of sigaction(2).
    pub fn set(deadline: Duration, after: Duration, status: AlarmStatus) -> io::Result<Alarm> {
        let asleep = Arc::new(AtomicBool::new(false));
        let alarm = Alarm {
            asleep: Arc::clone(&asleep),
        };
        // One that is later than the clock goes never comes.
        if let Some(due) = Instant::now().checked_add(deadline) {
            sys::exit_by_alarm(due, asleep, status)?;
            unblock(&[Signal::SIGALRM]);
            sys::set_alarm(deadline.saturating_add(after), after);
        }
        Ok(alarm)
    }

    /// Sleeps, and is not stuck meanwhile: a process that is due and has not been woken has had no
    /// processor. Then the alarm only wakes it, and comes again.
    pub fn asleep<T>(&self, sleep: impl FnOnce() -> T) -> T {
        self.asleep.store(true, Ordering::SeqCst);
        let woken = sleep();
        self.asleep.store(false, Ordering::SeqCst);
        woken
    }

    /// It is the deadline, and the process ends by itself; at the latest after this time.
    pub fn end_within(&self, time: Duration) {
        sys::set_alarm(time, time);
    }

    /// The process goes on.
    pub fn cancel(&self) {
        sys::set_alarm(Duration::ZERO, Duration::ZERO);
    }
}
