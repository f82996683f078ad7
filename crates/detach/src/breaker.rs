//! Whether a command that has ended is started again.

use std::time::Duration;

use process::Exit;

/// The first pause before a restart; it doubles each time.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest pause before a restart.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// What the command line says of restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether there are any.
    pub restart: bool,
    /// How many in a row may fail before it gives up.
    pub max_restarts: u32,
    /// A run that lasted this long was healthy, whatever became of it.
    pub healthy: Duration,
    /// Code 0 sooner than this is no natural end: a command that cannot start may say 0 too.
    pub min_uptime: Duration,
}

impl Policy {
    /// Whether an end was not in the nature of the command. One that nobody can tell of counts as
    /// one: death is never silent.
    pub fn is_unnatural(&self, exit: &Exit, uptime: Option<Duration>) -> bool {
        match exit.code {
            Some(0) => uptime.is_some_and(|uptime| uptime < self.min_uptime),
            _ => true,
        }
    }
}

/// What is done after an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it was natural, or wanted, or there are no restarts.
    Rest,
    /// It is started again after this time.
    Restart(Duration),
    /// It is not started again: too many restarts in a row have failed.
    GiveUp,
}

/// The memory of the runs so far.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    policy: Policy,
    in_a_row: u32,
    delay: Duration,
}

impl Breaker {
    /// Before the first run.
    pub fn new(policy: Policy) -> Breaker {
        Breaker {
            policy,
            in_a_row: 0,
            delay: FIRST_DELAY,
        }
    }

    /// How many restarts in a row have led to the present run.
    pub fn restarts(&self) -> u32 {
        self.in_a_row
    }

    /// A run has ended.
    pub fn ended(&mut self, exit: &Exit, uptime: Duration, deliberate: bool) -> Next {
        let unnatural = self.policy.is_unnatural(exit, Some(uptime));
        if !self.policy.restart || deliberate || !unnatural {
            return Next::Rest;
        }
        if uptime >= self.policy.healthy {
            self.in_a_row = 0;
            self.delay = FIRST_DELAY;
        }
        if self.in_a_row >= self.policy.max_restarts {
            return Next::GiveUp;
        }
        self.in_a_row += 1;
        let delay = self.delay;
        self.delay = (self.delay * 2).min(LONGEST_DELAY);
        Next::Restart(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        restart: true,
        max_restarts: 5,
        healthy: Duration::from_secs(60),
        min_uptime: Duration::from_secs(8),
    };

    fn code(code: i32) -> Exit {
        Exit {
            code: Some(code),
            ..Exit::default()
        }
    }

    /// What follows each of these runs, as `R` and the delay, `-` or `X`.
    fn play(policy: Policy, runs: &[(Exit, u64)]) -> Vec<String> {
        let mut breaker = Breaker::new(policy);
        runs.iter()
            .map(|(exit, seconds)| {
                match breaker.ended(exit, Duration::from_secs(*seconds), false) {
                    Next::Rest => "-".to_owned(),
                    Next::Restart(delay) => format!("R{}", delay.as_secs()),
                    Next::GiveUp => "X".to_owned(),
                }
            })
            .collect()
    }

    #[test]
    fn it_trips_after_so_many_restarts_in_a_row() {
        let expected = ["R1", "R2", "R4", "R8", "R16", "X"];
        assert_eq!(
            play(POLICY, &[(code(1), 0); 6]),
            expected,
            "code 1 at once, six launches"
        );
        assert_eq!(
            play(POLICY, &[(code(0), 0); 6]),
            expected,
            "code 0 at once is no better"
        );
        let killed = Exit {
            signal: Some(9),
            ..Exit::default()
        };
        assert_eq!(play(POLICY, &[(killed, 59); 6]), expected, "never healthy");
        let patient = Policy {
            max_restarts: 7,
            ..POLICY
        };
        assert_eq!(play(patient, &[(code(1), 0); 8])[5..], ["R30", "R30", "X"]);
        let none = Policy {
            max_restarts: 0,
            ..POLICY
        };
        assert_eq!(play(none, &[(code(1), 0)]), ["X"]);
    }

    #[test]
    fn one_healthy_run_resets_count_and_delay() {
        let bad = (code(1), 5);
        let good = (code(1), 60);
        let mut runs = vec![bad; 5];
        runs.push(good);
        runs.extend([bad; 5]);
        assert_eq!(
            play(POLICY, &runs),
            [
                "R1", "R2", "R4", "R8", "R16", "R1", "R2", "R4", "R8", "R16", "X"
            ]
        );
        let alternating: Vec<_> = [bad, good].into_iter().cycle().take(40).collect();
        assert!(
            play(POLICY, &alternating)
                .iter()
                .all(|next| next.starts_with('R'))
        );
    }

    #[test]
    fn a_natural_or_wanted_end_is_the_end() {
        assert_eq!(play(POLICY, &[(code(0), 8)]), ["-"]);
        assert_eq!(play(POLICY, &[(code(0), 7)]), ["R1"]);
        let mut breaker = Breaker::new(POLICY);
        let wanted = breaker.ended(&code(1), Duration::ZERO, true);
        assert_eq!(wanted, Next::Rest);
        let once = Policy {
            restart: false,
            ..POLICY
        };
        assert_eq!(play(once, &[(code(1), 0)]), ["-"]);
    }

    #[test]
    fn what_nobody_can_tell_of_is_unnatural() {
        assert!(POLICY.is_unnatural(&Exit::default(), None));
        assert!(!POLICY.is_unnatural(&code(0), None));
        assert!(POLICY.is_unnatural(&code(0), Some(Duration::from_secs(1))));
    }
}
