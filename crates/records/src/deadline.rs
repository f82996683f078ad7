//! The end of the whole call, on the monotonic clock.

use std::time::{Duration, Instant};

use rustix::time::Timespec;

/// A point in time up to which a call may wait, or none. It does not move when
/// the wall clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Now and `wait` more. One that lies beyond the clock's range never passes.
    pub fn after(wait: Duration) -> Self {
        Self(Instant::now().checked_add(wait))
    }

    /// As [`Deadline::after`], or never.
    pub fn after_or_never(wait: Option<Duration>) -> Self {
        wait.map_or(Self::never(), Self::after)
    }

    /// No deadline.
    pub const fn never() -> Self {
        Self(None)
    }

    /// The time left, zero once it has passed; `None` if it never passes.
    pub fn left(self) -> Option<Duration> {
        let at = self.0?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// The point in time itself; `None` if it never comes.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// The time left in the form that `poll(2)` and its like take.
    pub fn timespec(self) -> Option<Timespec> {
        Timespec::try_from(self.left()?).ok()
    }

    /// Whether it has passed. With a wait of zero it has from the beginning, so
    /// "look once, do not wait" is: look, then ask this.
    pub fn passed(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    /// The earlier one of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(match (self.0, other.0) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        })
    }

    /// Sleeps for `wait`, but not past the deadline.
    pub fn sleep(self, wait: Duration) {
        std::thread::sleep(self.left().map_or(wait, |left| left.min(wait)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_passed_at_once() {
        let now = Deadline::after(Duration::ZERO);
        assert!(now.passed());
        assert_eq!(now.left(), Some(Duration::ZERO));
    }

    #[test]
    fn never_never_passes() {
        for never in [Deadline::never(), Deadline::after(Duration::MAX)] {
            assert!(!never.passed());
            assert_eq!(never.left(), None);
            assert!(never.timespec().is_none());
        }
        assert_eq!(Deadline::after_or_never(None), Deadline::never());
    }

    #[test]
    fn the_earlier_one_counts() {
        let hour = Deadline::after(Duration::from_secs(3600));
        let day = Deadline::after(Duration::from_secs(86400));
        assert_eq!(hour.min(day), hour);
        assert_eq!(day.min(hour), hour);
        assert_eq!(hour.min(Deadline::never()), hour);
        assert_eq!(Deadline::never().min(hour), hour);
        assert_eq!(Deadline::never().min(Deadline::never()), Deadline::never());
        assert!(!hour.passed());
        assert!(hour.left().unwrap() > Duration::from_secs(3590));
    }
}
