//! What a look was worth.

use std::time::Duration;

use records::{Deadline, bounded, say};

/// What a look at files is given where the call has no deadline.
const OTHERWISE: Duration = Duration::from_secs(5);

/// What `look` gives, if the files that it is at answer in time.
pub fn in_time<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let deadline = match deadline.left() {
        Some(_) => deadline,
        None => Deadline::after(OTHERWISE),
    };
    bounded(deadline, look).ok().flatten()
}

/// How much of the table could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many processes were looked at.
    pub processes: usize,
    /// How many of those that the question is about could not be read.
    pub unreadable: usize,
    /// How many others could not be read.
    pub others_unseen: usize,
    /// Why the look was not complete, beside processes that could not be read.
    failures: Vec<String>,
}

impl Look {
    /// A look at so many processes.
    pub fn at(processes: usize) -> Look {
        Look {
            processes,
            ..Look::default()
        }
    }

    /// Something that the question needs could not be had.
    pub fn fail(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.failures.contains(&why) {
            self.failures.push(why);
        }
    }

    /// Whether all was read that the question needs.
    pub fn is_complete(&self, all_users: bool) -> bool {
        self.failures.is_empty() && self.unreadable == 0 && (!all_users || self.others_unseen == 0)
    }

    /// Tells people why it was not complete.
    pub fn explain(&self, all_users: bool) {
        for why in &self.failures {
            say!("{why}");
        }
        if self.unreadable > 0 {
            say!(
                "{} of the processes in question could not be read",
                self.unreadable
            );
        }
        if all_users && self.others_unseen > 0 {
            say!(
                "{} processes of other users could not be read",
                self.others_unseen
            );
        }
    }
}
