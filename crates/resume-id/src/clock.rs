//! How long the call may take.

use std::time::Duration;

use records::Deadline;

/// What a step is given where the caller does not say.
const USUAL: Duration = Duration::from_secs(5);

/// Even a look that is not to wait takes its time.
const ONE_LOOK: Duration = Duration::from_millis(100);

/// The time that there is, for the whole call or for each of its steps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The end of the whole call, where the caller has set one.
    whole: Option<Deadline>,
}

impl Clock {
    /// A call that begins now, with this `--timeout`.
    pub fn start(timeout: Option<Duration>) -> Clock {
        Clock {
            whole: timeout.map(|timeout| Deadline::after(timeout.max(ONE_LOOK))),
        }
    }

    /// For a step that begins now: a file, the agent's sessions, output that nobody reads.
    pub fn step(self) -> Deadline {
        self.whole.unwrap_or_else(|| Deadline::after(USUAL))
    }

    /// For standard input. What stands before this tool in a pipe has its own time, and may need more:
    /// to end what is stale takes `reap` up to seven seconds.
    pub fn stdin(self) -> Deadline {
        self.whole.unwrap_or(Deadline::never())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_for_the_whole_call() {
        let clock = Clock::start(Some(Duration::from_secs(60)));
        assert_eq!(clock.step(), clock.stdin());
        assert_eq!(clock.step(), clock.step());
        let left = clock.step().left().unwrap();
        assert!(left <= Duration::from_secs(60) && left > Duration::from_secs(30));
        // To look once takes a moment.
        let once = Clock::start(Some(Duration::ZERO)).step();
        assert!(once.left().unwrap() <= ONE_LOOK);
    }

    #[test]
    fn without_one_a_pipe_is_waited_for() {
        let clock = Clock::start(None);
        assert_eq!(clock.stdin(), Deadline::never());
        let left = clock.step().left().unwrap();
        assert!(left <= USUAL && left > Duration::ZERO);
    }
}
