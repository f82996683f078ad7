//! The clock that start times in the table are read on.

use std::time::{Duration, SystemTime};

use crate::entry::Start;

/// The unit of start times. The kernel has told user space nothing but 100 a second for decades
/// (`USER_HZ`), and still it is to be asked for.
pub(crate) fn tick() -> Duration {
    use nix::unistd::{SysconfVar, sysconf};
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_second = per_second.and_then(|hz| u32::try_from(hz).ok());
    Duration::from_secs(1) / per_second.filter(|&hz| hz > 0).unwrap_or(100)
}

/// Now, as the start of a process that starts now. Both are shifted in a time namespace.
pub(crate) fn now() -> Start {
    Start::Ticks(ticks(since_boot()))
}

/// When `start` was by the wall clock, as that is set at present.
pub(crate) fn wall_clock(start: Start) -> Option<SystemTime> {
    let Start::Ticks(start) = start else {
        return None;
    };
    let nanos = u64::try_from(tick().as_nanos()).ok()?.checked_mul(start)?;
    let start = Duration::from_nanos(nanos);
    SystemTime::now().checked_sub(since_boot().saturating_sub(start))
}

fn ticks(since_boot: Duration) -> u64 {
    let ticks = since_boot.as_nanos() / tick().as_nanos().max(1);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// The time since boot, with the time in suspend, clock_gettime(2).
fn since_boot() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
    now.map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_started_a_moment_ago() {
        let own = crate::Reader::new().entry(crate::Pid::own()).unwrap();
        assert!(own.start <= now());
        let age = wall_clock(own.start).unwrap().elapsed().unwrap();
        assert!(age < Duration::from_secs(600), "{age:?}");
    }
}
