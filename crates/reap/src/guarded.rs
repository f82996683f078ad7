//! Processes with a marker or a guard: a stop on purpose is noted before it begins, so that it is
//! no false alarm, and is done only once the guard has ended as well.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use marker::{Marker, Stopping};
use process::{
    Comparison, Handle, Here, Identity, Interrupts, Pid, Reader, Signal, Standing, wait,
};
use records::Deadline;
use records::waiting::Waiting;

/// How often a guard that restarts its command faster than it can be noted is followed.
const ATTEMPTS: usize = 4;

/// Where a process's marker is, and who guards it, as its record says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keepers {
    /// The marker file.
    pub marker: Option<PathBuf>,
    /// The guard.
    pub guard: Option<Identity>,
}

/// A process that is being ended on purpose, and whoever has to know.
#[derive(Debug)]
pub struct Guarded {
    note: Option<Stopping>,
    /// The guard, which has yet to end.
    guard: Option<Handle>,
}

/// What was found of a record's process.
pub struct Located {
    /// Who is meant: the process of the record, or what its guard runs in its place by now.
    pub ident: Identity,
    /// What became of that.
    pub standing: Standing,
    /// What has to be closed once it is ended.
    pub guarded: Guarded,
}

impl Located {
    /// Whether its guard lives cannot be told, so neither can when all is done.
    fn unknown(recorded: &Identity, why: &str) -> Located {
        Located {
            ident: recorded.clone(),
            standing: Standing::Unknown(format!("its guard: {why}")),
            guarded: Guarded::none(),
        }
    }
}

/// Finds the process `recorded`, follows its guard to the one that it runs now, and notes beside
/// its marker that it is being ended, unless `noting` is off.
///
/// # Errors
///
/// The note cannot be written. Nothing may be ended then: it would be taken for an accident.
pub fn locate(
    here: &Here,
    recorded: &Identity,
    host: Option<&str>,
    keepers: &Keepers,
    noting: bool,
) -> io::Result<Located> {
    let mut attempt = 1;
    loop {
        let guard = match keepers.guard.as_ref().map(|guard| here.find(guard, host)) {
            Some(Standing::Same(handle)) => Some(handle),
            Some(Standing::Unknown(why)) => return Ok(Located::unknown(recorded, &why)),
            Some(Standing::Gone { .. } | Standing::Recycled(_)) | None => None,
        };
        let current = guard.as_ref().and_then(|_| run_now(keepers));
        let ident = current.unwrap_or_else(|| recorded.clone());
        let standing = here.find(&ident, host);
        let note = match &keepers.marker {
            // A death that nobody is asked to announce any more needs no reason.
            Some(marker) if noting && (is_alive(&standing) || guard.is_some()) => {
                Stopping::note(marker, &ident, here)?
            }
            _ => None,
        };
        let now = guard.as_ref().and_then(|_| run_now(keepers));
        let moved_on = note.is_none()
            && now
                .as_ref()
                .is_some_and(|now| now.compare(&ident) != Comparison::Same);
        if !moved_on || attempt == ATTEMPTS {
            // What it guarded has ended, and it is about to start that again, or to end itself.
            // That it is this marker's guard says the marker.
            if let (Some(guard), Some(_), Some(_), Standing::Gone { .. }) =
                (&guard, &now, &note, &standing)
            {
                guard.signal(Signal::SIGTERM);
            }
            return Ok(Located {
                ident,
                standing,
                guarded: Guarded { note, guard },
            });
        }
        attempt += 1;
    }
}

fn is_alive(standing: &Standing) -> bool {
    matches!(standing, Standing::Same(_))
}

/// Whom the guard of `keepers` runs now, by the marker, if that is this guard's.
fn run_now(keepers: &Keepers) -> Option<Identity> {
    let marker = Marker::read(keepers.marker.as_ref()?).ok()?;
    let guard = keepers.guard.as_ref()?;
    let is_its = marker.guard?.compare(guard) == Comparison::Same;
    is_its.then_some(marker.ident)
}

/// Whether the parent of the process looks like its guard, a `detach` that has a marker: for a hint,
/// where the caller has named no marker.
pub fn has_guard(handle: &Handle) -> bool {
    let parent = handle.entry().and_then(|entry| Pid::new(entry.ppid.into()));
    let argv = parent.and_then(|parent| Reader::new().argv(parent).ok());
    argv.is_some_and(|argv| is_guard(&argv))
}

/// A guard has the arguments of the call that it was started by.
fn is_guard(argv: &[Vec<u8>]) -> bool {
    let mut words = argv.iter().map(Vec::as_slice);
    let program = words.next().unwrap_or_default();
    program.rsplit(|&byte| byte == b'/').next() == Some(b"detach")
        && words
            .take_while(|word| *word != b"--")
            .any(|word| word == b"--marker" || word.starts_with(b"--marker="))
}

impl Guarded {
    /// Nobody has to know.
    pub fn none() -> Guarded {
        Guarded {
            note: None,
            guard: None,
        }
    }

    /// Closes the note: the target is dead, or it lives on. Whoever is still waited for stays.
    ///
    /// # Errors
    ///
    /// The note cannot be closed. It counts no longer than this process lives then.
    pub fn close(&mut self, dead: bool) -> io::Result<()> {
        match self.note.take() {
            Some(mut note) if dead => note.target_is_dead(),
            Some(note) => note.withdraw(),
            None => Ok(()),
        }
    }

    /// The guard, if it has not ended.
    pub fn guard(&self) -> Option<&Handle> {
        self.guard.as_ref().filter(|guard| !guard.has_ended())
    }
}

/// Waits until the guards of all `guarded` have ended, `limit` has come, or a signal has.
///
/// # Errors
///
/// Those of waiting.
pub fn wait_for_guards(
    guarded: &[&Guarded],
    limit: Instant,
    interrupts: &Interrupts,
) -> io::Result<()> {
    let left = limit.saturating_duration_since(Instant::now());
    let mut waiting = Waiting::new("the guard to end", Deadline::after(left));
    loop {
        let guards: Vec<&Handle> = guarded.iter().filter_map(|one| one.guard()).collect();
        if guards.is_empty() || Instant::now() >= limit || interrupts.has_come() {
            return Ok(());
        }
        waiting.tick();
        let next = waiting
            .next()
            .instant()
            .map_or(limit, |next| next.min(limit));
        wait(&guards, Some(interrupts.wake()), Some(next))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_arguments_are_a_guards() {
        let table = [
            ("detach --guard --marker m --announce a -- sleep 9", true),
            ("/opt/bin/detach --restart on-failure --marker=m x", true),
            ("detach --guard --announce a -- sleep 9", false),
            ("detach --wait -- tool --marker m", false),
            ("mydetach --marker m", false),
            ("bash", false),
            ("", false),
        ];
        for (line, expected) in table {
            let argv: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
            assert_eq!(is_guard(&argv), expected, "{line}");
        }
        assert!(!is_guard(&[]));
    }
}
