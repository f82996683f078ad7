//! Reading a few columns of one table of an SQLite database, also while its owner writes to it.
//!
//! Two agents keep their sessions in such a table, and all that is wanted of it is three columns of
//! one row. The library with its own copy of SQLite makes a binary 1.9 MB larger (measured: fat
//! LTO, stripped; all of `resume-id` is to stay under 1 MiB), needs a C compiler, and takes locks
//! and writes a `-shm` file in the agent's own directory even when it opens a database to read it.
//! What is here takes no lock and writes nothing: it reads the file format
//! (<https://www.sqlite.org/fileformat2.html>), the write-ahead log included, and then looks
//! whether the files have changed meanwhile. If so it reads again, until the deadline.
//!
//! Not understood, and said so rather than guessed: tables WITHOUT ROWID and texts in UTF-16.

mod btree;
mod pager;
mod schema;
mod value;

use std::path::Path;
use std::time::Duration;

use records::Deadline;

use pager::{Pager, Stamp};
pub use value::Value;

/// Why a database gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It was being written to; another try may succeed.
    Busy(String),
    /// It is damaged, not to be read, or not a database.
    Unreadable(String),
}

/// A column that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// A table without it is not understood.
    Needed(String),
    /// Where the table does not have it, it holds nothing.
    Wanted(String),
}

type Result<T> = std::result::Result<T, Trouble>;

/// The pause before another try.
const PAUSE: Duration = Duration::from_millis(20);

/// The values of `columns` in every row of `table` for which `wanted` says yes; for no column at all,
/// nothing. A table that is not there, as in a new database, has no rows.
///
/// # Errors
///
/// In words: the file cannot be read or understood, a column is missing, or the database was
/// written to all the time until the deadline.
pub fn rows(
    path: &Path,
    table: &str,
    columns: &[Option<Column>],
    deadline: Deadline,
    wanted: &dyn Fn(&[Value]) -> bool,
) -> std::result::Result<Vec<Vec<Value>>, String> {
    loop {
        let why = match try_rows(path, table, columns, deadline, wanted) {
            Ok(rows) => return Ok(rows),
            Err(Trouble::Unreadable(why)) => return Err(format!("{}: {why}", path.display())),
            Err(Trouble::Busy(why)) => why,
        };
        if deadline.passed() {
            return Err(format!("{}: {why}", path.display()));
        }
        deadline.sleep(PAUSE);
    }
}

fn try_rows(
    path: &Path,
    table: &str,
    columns: &[Option<Column>],
    deadline: Deadline,
    wanted: &dyn Fn(&[Value]) -> bool,
) -> Result<Vec<Vec<Value>>> {
    let before = Stamp::take(path)?;
    // What is found wrong in a file that changes meanwhile is not its fault.
    let outcome = read(path, table, columns, deadline, wanted);
    if Stamp::take(path)? != before {
        return Err(Trouble::Busy("it changed while it was read".to_owned()));
    }
    outcome
}

fn read(
    path: &Path,
    table: &str,
    columns: &[Option<Column>],
    deadline: Deadline,
    wanted: &dyn Fn(&[Value]) -> bool,
) -> Result<Vec<Vec<Value>>> {
    let Some(pager) = Pager::open(path, deadline)? else {
        return Ok(Vec::new());
    };
    let Some(found) = schema::find(&pager, table)? else {
        return Ok(Vec::new());
    };
    let place = |column: &Option<Column>| match column {
        None => Ok(None),
        Some(Column::Wanted(name)) => Ok(found.column(name)),
        Some(Column::Needed(name)) => match found.column(name) {
            Some(place) => Ok(Some(place)),
            None => Err(Trouble::Unreadable(format!(
                "table {table} has no column {name}"
            ))),
        },
    };
    let places: Vec<Option<usize>> = columns.iter().map(place).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    btree::scan(&pager, found.root, &mut |payload| {
        let row = value::columns(payload, &places)?;
        if wanted(&row) {
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests;
