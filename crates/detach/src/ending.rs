//! How what was started is ended again.

use std::time::Duration;

use process::{Child, Handle};

/// How long a command has to end after TERM.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Two seconds.
    Usual,
    /// Next to none: this process itself has been asked to end, and has a tenth of a second.
    Hasty,
    /// So long.
    Grace(Duration),
}

impl Patience {
    /// The time from TERM to KILL, and from KILL to giving up.
    fn times(self) -> (Duration, Duration) {
        match self {
            Patience::Usual => (Duration::from_secs(2), Duration::from_secs(2)),
            Patience::Hasty => (Duration::from_millis(40), Duration::from_millis(40)),
            Patience::Grace(grace) => (grace, Duration::from_secs(2)),
        }
    }
}

/// INTERIM
pub fn end(child: &mut Child, handle: Option<&Handle>, patience: Patience) {
    let (grace, kill) = patience.times();
    child.signal_group(process::Signal::SIGTERM);
    let handles: Vec<&Handle> = handle.into_iter().collect();
    let _ = process::wait(&handles, None, Some(std::time::Instant::now() + grace));
    child.signal_group(process::Signal::SIGKILL);
    let _ = process::wait(&handles, None, Some(std::time::Instant::now() + kill));
}
