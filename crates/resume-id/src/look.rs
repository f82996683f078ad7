//! Looking at files and the agent's sessions, no longer than the deadline allows.

use std::time::Duration;

use agents::{Store, Transcript};
use records::Deadline;

use crate::database::Rows;

/// How long a look that watches the deadline itself may take beyond it to say so.
const GRACE: Duration = Duration::from_millis(50);

/// The sessions that `find` finds in `store`; if they are `rows` of a database, it must have them.
///
/// # Errors
///
/// In words: they cannot be read, or not before the deadline.
pub fn sessions(
    store: Store,
    rows: Option<Rows>,
    deadline: Deadline,
    find: impl FnOnce(&Store) -> Result<Vec<Transcript>, String> + Send + 'static,
) -> Result<Vec<Transcript>, String> {
    bounded(deadline, move || {
        rows.map_or(Ok(()), |rows| rows.check(deadline))?;
        find(&store)
    })
}

/// What `look` says, or that it took too long: the process ends, or becomes another program, soon
/// after.
///
/// # Errors
///
/// Those of `look`; the deadline.
pub fn bounded<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match in_time(deadline, look) {
        Ok(Some(told)) => told,
        Ok(None) => Err("reading them takes too long".to_owned()),
        Err(error) => Err(format!("no thread to look with: {error}")),
    }
}

/// What `look` gives; `None` if that takes too long. What is there at once is had after the deadline,
/// too.
///
/// # Errors
///
/// No thread can be had.
pub fn in_time<T: Send + 'static>(
    deadline: Deadline,
    look: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Option<T>> {
    let left = deadline.left().map(|left| left + GRACE);
    records::bounded(Deadline::after_or_never(left), look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_never_ends_is_left() {
        let deadline = Deadline::after(Duration::from_millis(20));
        let told = bounded(deadline, || {
            loop {
                std::thread::park();
            }
        });
        assert_eq!(told, Err::<(), _>("reading them takes too long".to_owned()));
        let told = bounded(Deadline::never(), || Ok(7));
        assert_eq!(told, Ok(7));
        let told = in_time(Deadline::after(Duration::ZERO), || 7);
        assert_eq!(told.unwrap(), Some(7));
    }
}
