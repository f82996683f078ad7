//! A singleton between two of its runs: its guard lives, and starts it again in a moment.

use std::path::Path;
use std::time::Duration;

use process::Here;
use records::waiting::Waiting;
use records::{Deadline, Failure};

use crate::args::Args;
use crate::keeper::Guarded;
use crate::lock::{Holder, Lock};
use crate::start::shown;

/// How often one looks whether it is back.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Locks the lock file at `path`, as [`Lock::take`] does; but not while nobody runs only because
/// the guard of the same marker is pausing before a restart. It needs the lock for that.
///
/// # Errors
///
/// As [`Lock::take`]; at `deadline` also where the pause lasts longer.
pub fn take_lock(
    args: &Args,
    here: &Here,
    path: &Path,
    deadline: Deadline,
) -> Result<Lock, Failure> {
    let mut waiting = Waiting::new("restart of the command", deadline);
    loop {
        let lock = Lock::take(path, deadline)?;
        let Some(paused) = paused(args, here, &lock) else {
            return Ok(lock);
        };
        drop(lock);
        if deadline.passed() {
            let path = path.display();
            return Err(Failure::deadline(format_args!("{path}: {paused}")));
        }
        waiting.tick();
        deadline.sleep(LOOK_EVERY);
    }
}

/// Whose pause it is, if nobody runs because of one.
fn paused(args: &Args, here: &Here, lock: &Lock) -> Option<Guarded> {
    let marker = args.marker.as_deref()?;
    // What else is the matter with the file comes up at the start.
    let Ok(Holder::Nobody) = lock.holder(here) else {
        return None;
    };
    let own = shown(args.lock.clone(), &mut false);
    Guarded::by_marker(marker, here).filter(|guarded| guarded.has_ended && guarded.lock == own)
}
