//! Work that may hang in the kernel, given no longer than a deadline.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};

use crate::deadline::Deadline;

/// What `look` gives, or `None` if the deadline passes first.
///
/// A file system that does not answer cannot be left in the middle of a system call. So the look is
/// made in a thread of its own, and it is the thread that is left: it ends with the process.
///
/// # Errors
///
/// No thread can be had.
pub fn bounded<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    run(
        deadline,
        Box::new(move || *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(look())),
    )?;
    Ok(slot.lock().unwrap_or_else(PoisonError::into_inner).take())
}

/// Says that the thread is through, also where it panics.
struct Through(Arc<AtomicBool>, Thread);

impl Drop for Through {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

/// Not generic, so that a tool has one copy of what starts a thread.
fn run(deadline: Deadline, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let is_through = Arc::new(AtomicBool::new(false));
    let through = Through(Arc::clone(&is_through), thread::current());
    thread::Builder::new().spawn(move || {
        let _through = through;
        work();
    })?;
    while !is_through.load(Ordering::Acquire) && !deadline.passed() {
        match deadline.left() {
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_hangs_is_left_behind() {
        let hangs = || {
            loop {
                thread::park();
            }
        };
        let deadline = Deadline::after(Duration::from_millis(20));
        assert_eq!(bounded(deadline, hangs).unwrap(), None::<()>);
        assert!(deadline.passed());
    }

    #[test]
    fn what_ends_in_time_is_given() {
        assert_eq!(bounded(Deadline::never(), || 7).unwrap(), Some(7));
        let later = || {
            thread::sleep(Duration::from_millis(5));
            7
        };
        assert_eq!(bounded(Deadline::never(), later).unwrap(), Some(7));
        assert_eq!(
            bounded(Deadline::after(Duration::from_secs(60)), later).unwrap(),
            Some(7)
        );
    }
}
