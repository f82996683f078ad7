//! Looking at files that may lie on a mount which does not answer.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use records::Deadline;

/// What a look without a deadline is given.
const OTHERWISE: Duration = Duration::from_secs(5);

/// What `look` gives, if it does so in time. Otherwise it is left behind: a thread that hangs in
/// the kernel ends with the process.
pub fn bounded<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let spawned = thread::Builder::new().spawn(move || {
        // Nobody listens any more where the deadline has passed.
        let _ = sender.send(look());
    });
    spawned.ok()?;
    receiver
        .recv_timeout(deadline.left().unwrap_or(OTHERWISE))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_left_behind() {
        assert_eq!(bounded(Deadline::never(), || 7), Some(7));
        let (sender, receiver) = mpsc::channel::<()>();
        let hangs = move || receiver.recv();
        assert_eq!(
            bounded(Deadline::after(Duration::from_millis(20)), hangs),
            None
        );
        drop(sender);
    }
}
