//! The clock that start times in the table are read on: the wall clock.

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::entry::Start;

/// The unit of start times.
pub(crate) fn tick() -> Duration {
    Duration::from_micros(1)
}

/// Now, as the start of a process that starts now.
pub(crate) fn now() -> Start {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Start::Epoch(since.as_secs(), since.subsec_micros())
}

/// When `start` was by the wall clock.
pub(crate) fn wall_clock(start: Start) -> Option<SystemTime> {
    match start {
        Start::Epoch(seconds, micros) => {
            UNIX_EPOCH.checked_add(Duration::new(seconds, micros.checked_mul(1000)?))
        }
        Start::Ticks(_) => None,
    }
}

/// Whether the group that a process led has a member left: this kernel cannot be asked.
pub(crate) fn group_lives(_handle: BorrowedFd<'_>) -> Option<bool> {
    None
}
