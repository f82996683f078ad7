//! The signals that ask a tool to end, as something a wait can be woken by.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::sys;

/// The signals that end a tool: those that a terminal, a service manager and a person send.
pub const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Signals that are caught from now on, to be asked for, and waited for, in the tool's own time.
///
/// A signal that was ignored when the tool was started stays ignored; one that was blocked does not
/// stay blocked.
#[derive(Debug)]
pub struct Interrupts {
    caught: Vec<(Signal, Arc<AtomicBool>)>,
    wake: UnixStream,
    /// Kept open where no signal is caught, since an end of the stream would wake every wait.
    write: UnixStream,
}

impl Interrupts {
    /// Catches `signals`.
    ///
    /// # Errors
    ///
    /// No descriptor is left, or a signal cannot be caught.
    pub fn catch(signals: &[Signal]) -> io::Result<Interrupts> {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut caught = Vec::with_capacity(signals.len());
        for &signal in signals {
            if sys::is_ignored(signal) {
                continue;
            }
            let flag = Arc::new(AtomicBool::new(false));
            // The flag first, so that it is up when the descriptor wakes the wait.
            signal_hook::flag::register(signal as i32, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal as i32, write.try_clone()?)?;
            caught.push((signal, flag));
        }
        unblock(signals);
        let caught = Interrupts {
            caught,
            wake,
            write,
        };
        if caught.has_come() {
            // Between its flag and its descriptor, so that it has woken nobody.
            (&caught.write).write_all(&[0])?;
        }
        Ok(caught)
    }

    /// Readable once a signal has come; for [`crate::wait`].
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The signals that have come since this was last asked, each at most once.
    pub fn take(&self) -> Vec<Signal> {
        let mut drained = [0; 64];
        while matches!((&self.wake).read(&mut drained), Ok(length) if length > 0) {}
        self.caught
            .iter()
            .filter(|(_, flag)| flag.swap(false, Ordering::SeqCst))
            .map(|(signal, _)| *signal)
            .collect()
    }

    /// Whether a signal has come since [`Interrupts::take`] was last asked.
    pub fn has_come(&self) -> bool {
        self.caught
            .iter()
            .any(|(_, flag)| flag.load(Ordering::SeqCst))
    }

    /// Lets the signals end this process again, where it may have to wait for something that no
    /// signal wakes. Gives the first that has come and was not asked for yet.
    pub fn release(self) -> Option<Signal> {
        for (signal, _) in &self.caught {
            sys::default_signal(*signal);
        }
        self.take().first().copied()
    }
}

/// Lets `signals` reach this thread, and those that it starts from now on.
///
/// What is blocked is inherited, as what is ignored is. But nobody starts a program with TERM blocked
/// in order to protect it: it is left over from a moment in which the caller did not want to be
/// disturbed, and a tool that never hears of TERM could not be ended by it.
pub fn unblock(signals: &[Signal]) {
    let set: SigSet = signals.iter().copied().collect();
    let _ = set.thread_unblock();
}

/// Ends this process by `signal`, as if it had never been caught, so that the caller sees a death
/// by signal. The first process of a pid namespace cannot die so: it ends with the status that a
/// shell makes of such a death.
pub fn die_by(signal: Signal) -> ! {
    sys::default_signal(signal);
    unblock(&[signal]);
    let _ = nix::sys::signal::raise(signal);
    std::process::exit(128 + signal as i32)
}
