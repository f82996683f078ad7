//! How what was started is ended again.

use std::time::Duration;

use process::end::{EndOptions, Scope, Target, Watch};
use process::{Child, Handle, Here, Pid, Reader, Remnant, Signal, Table};
use records::say;

use crate::keeper::Keeper;

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

/// Ends the command, its group, and whatever else it has started, and comes back when all of that
/// is dead, or the time for it is over.
///
/// This process has started nothing but the command, and orphans below it are given to it where
/// the kernel can do that; so its descendants are all that the command has left.
///
/// Gives what became of it, in words.
pub fn end(here: &Here, child: &mut Child, patience: Patience) -> &'static str {
    let (grace, kill_grace) = patience.times();
    let mut options = EndOptions {
        grace,
        kill_grace,
        ..EndOptions::default()
    };
    // What a member forks while it dies, in a session of its own, is seen by the next round only.
    for _ in 0..ROUNDS {
        let mut left = descendants(here).into_iter();
        let Some(root) = left.next() else { break };
        let target = Target {
            extra: left.collect(),
            ..Target::alive(root, Scope::Auto)
        };
        if let Err(error) = process::end::end(here, vec![target], &options, Watch::default()) {
            say!("cannot end the command: {error}");
            child.signal_group(Signal::SIGKILL);
            break;
        }
        child.exit();
        process::collect_adopted(child.pid());
        options.signal = Signal::SIGKILL;
    }
    if here.distrust().is_none() && child.ended().is_some() {
        return ENDED;
    }
    // Nobody could be held by a handle: the table is another pid namespace's, or cannot be read.
    // But this is our own child, and its group is known. What it leaves is given to us.
    let _ = process::become_subreaper(true);
    match child.end_group(grace, kill_grace) {
        Remnant::Nothing => ENDED,
        Remnant::Others => "the command has been ended, but not all that it has started",
        Remnant::Child => "the command got KILL, and lives on",
    }
}

/// The same, for a command whose marker `keeper` keeps without a guard: whoever sweeps is told by a
/// note beside it that this was no accident. With a guard, the guard says so.
pub fn end_on_purpose(
    here: &Here,
    child: &mut Child,
    keeper: Option<&Keeper>,
    patience: Patience,
) -> &'static str {
    let unguarded = keeper.filter(|keeper| keeper.guard().is_none());
    let note = unguarded.and_then(|keeper| keeper.note_stop(here));
    let ended = end(here, child, patience);
    if let Some(mut note) = note {
        // Where that fails, the sweep calls it an accident: no reason to fail here.
        let _ = match child.ended() {
            Some(_) => note.target_is_dead(),
            None => note.withdraw(),
        };
    }
    ended
}

/// What is said where nothing is left.
pub const ENDED: &str = "the command has been ended";

/// Says that `signal` ended this process before it had done its work, and what became of that.
pub fn say_interrupted(signal: Signal, what: &str) {
    say!(
        "interrupted by {}: {what}",
        process::signal_name(signal as i32)
    );
}

/// How often what is left is looked for again.
const ROUNDS: usize = 5;

/// Handles on the live processes below this one, parents first.
fn descendants(here: &Here) -> Vec<Handle> {
    let table = Table::read(&mut Reader::new()).unwrap_or_default();
    let below = table.descendants(&[Pid::own()]);
    below
        .into_iter()
        .filter_map(|pid| here.open(pid).ok())
        .collect()
}
