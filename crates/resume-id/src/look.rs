//! Looking at the agent's sessions, no longer than the deadline allows.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use records::Deadline;

/// How long a look that watches the deadline itself may take beyond it to say so.
const GRACE: Duration = Duration::from_millis(50);

/// What `look` says, or that it took too long. A file system that does not answer cannot be left
/// in the middle of a read(2), so the look is made in a thread of its own, which is left behind:
/// the process ends, or becomes another program, soon after.
///
/// # Errors
///
/// Those of `look`; the deadline.
pub fn bounded<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = channel();
    let started = thread::Builder::new().spawn(move || {
        // The receiver is gone after the deadline.
        let _ = sender.send(look());
    });
    started.map_err(|error| format!("no thread to look with: {error}"))?;
    let told = match deadline.left() {
        Some(left) => receiver.recv_timeout(left + GRACE),
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    told.unwrap_or_else(|_| Err("reading them takes too long".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_never_ends_is_left() {
        let deadline = Deadline::after(Duration::from_millis(20));
        let told = bounded(deadline, || {
            loop {
                thread::park();
            }
        });
        assert_eq!(told, Err::<(), _>("reading them takes too long".to_owned()));
        let told = bounded(Deadline::never(), || Ok(7));
        assert_eq!(told, Ok(7));
    }
}
