//! The process table as a whole, and what follows from it about families of processes.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::entry::Entry;
use crate::pid::Pid;
use crate::sys::{PipeEnd, Reader};

/// One reading of the process table.
///
/// A reading is no snapshot: processes come and go while it is made. What is concluded from it
/// about one process is checked again through that process's own handle before it is acted on.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By number.
    entries: Vec<Entry>,
}

impl FromIterator<Entry> for Table {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Table {
        let mut entries: Vec<Entry> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.pid);
        Table { entries }
    }
}

impl Table {
    /// Reads the table, in one pass. Processes that end meanwhile are left out, as are those that
    /// are hidden from this user.
    ///
    /// # Errors
    ///
    /// The table as a whole cannot be read.
    pub fn read(reader: &mut Reader) -> io::Result<Table> {
        let pids = reader.pids()?;
        Ok(pids
            .into_iter()
            .filter_map(|pid| reader.entry(pid).ok())
            .collect())
    }

    /// Reads `pids` and the caller, with the ancestors of each: a few of thousands of entries, which
    /// are enough to tell lineages.
    pub fn around(reader: &mut Reader, pids: impl IntoIterator<Item = Pid>) -> Table {
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        for pid in pids.into_iter().chain([Pid::own()]) {
            let mut next = Some(pid);
            while let Some(pid) = next.filter(|&pid| seen.insert(pid)) {
                let entry = reader.entry(pid).ok();
                next = entry.as_ref().and_then(|entry| Pid::new(entry.ppid.into()));
                entries.extend(entry);
            }
        }
        entries.into_iter().collect()
    }

    /// Reads as much as tells the caller's [`own_family`].
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    pub fn around_own_family(reader: &mut Reader) -> io::Result<Table> {
        let mut table = Table::around(reader, []);
        if pipeline_ends(reader).is_empty() {
            return Ok(table);
        }
        let parent = table.ancestors(Pid::own()).first().copied();
        match parent.and_then(|parent| reader.children(parent)) {
            Some(siblings) => table.add(reader, &siblings),
            None => table = Table::read(reader)?,
        }
        Ok(table)
    }

    /// Adds the descendants of `roots`. What the kernel says of the children of one process costs
    /// more than an entry: for more than `most` parents, and where it does not say it for certain,
    /// the whole table is read instead.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    pub fn add_descendants(
        &mut self,
        reader: &mut Reader,
        roots: &[Pid],
        most: usize,
    ) -> io::Result<()> {
        let mut seen: HashSet<Pid> = roots.iter().copied().collect();
        let mut parents = roots.to_vec();
        while !parents.is_empty() {
            let mut below = Vec::new();
            for &parent in &parents {
                let is_cheap = seen.len() <= most;
                let children = is_cheap.then(|| reader.children(parent)).flatten();
                let Some(children) = children else {
                    *self = Table::read(reader)?;
                    return Ok(());
                };
                below.extend(children.into_iter().filter(|&child| seen.insert(child)));
            }
            self.add(reader, &below);
            parents = below;
        }
        Ok(())
    }

    /// Adds the entries of those of `pids` that it has not.
    fn add(&mut self, reader: &mut Reader, pids: &[Pid]) {
        let missing = pids.iter().filter(|&&pid| self.get(pid).is_none());
        let read: Vec<Entry> = missing.filter_map(|&pid| reader.entry(pid).ok()).collect();
        self.entries.extend(read);
        self.entries.sort_by_key(|entry| entry.pid);
    }

    /// All processes, by number.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The process `pid`.
    pub fn get(&self, pid: Pid) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&pid, |entry| entry.pid);
        at.ok().and_then(|at| self.entries.get(at))
    }

    /// The parent of `pid`, its parent and so on, nearest first. Ends at a parent that the table
    /// does not have.
    pub fn ancestors(&self, pid: Pid) -> Vec<Pid> {
        let mut found = Vec::new();
        let mut seen = HashSet::from([pid]);
        let mut next = self.get(pid).and_then(|entry| Pid::new(entry.ppid.into()));
        while let Some(parent) = next.filter(|&parent| seen.insert(parent)) {
            found.push(parent);
            next = self
                .get(parent)
                .and_then(|entry| Pid::new(entry.ppid.into()));
        }
        found
    }

    /// The descendants of `roots`, each after its parent, without the roots themselves.
    pub fn descendants(&self, roots: &[Pid]) -> Vec<Pid> {
        let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
        for entry in &self.entries {
            children.entry(entry.ppid).or_default().push(entry.pid);
        }
        let mut seen: HashSet<Pid> = roots.iter().copied().collect();
        let mut found = Vec::new();
        let mut queue: std::collections::VecDeque<Pid> = roots.iter().copied().collect();
        while let Some(parent) = queue.pop_front() {
            for &child in children.get(&parent.get()).into_iter().flatten() {
                if seen.insert(child) {
                    found.push(child);
                    queue.push_back(child);
                }
            }
        }
        found
    }

    /// The members of the process group `pgid`.
    pub fn group(&self, pgid: Pid) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.pgid == pgid.get())
    }
}

/// Who must never be signalled by a tool that runs at the end of a pipeline: the tool itself, its
/// ancestors, and the other commands of its pipeline.
///
/// The pipeline are the children of the tool's own parent that have the other end open of the pipe
/// which is the tool's stdin or stdout. One that has the same end has only inherited what the tool
/// has: a server, say, that a script has started, and whose output goes where the script's does.
/// Process group and session play no part: in a script they are the script's, with everything that
/// it has started.
pub fn own_family(table: &Table, reader: &mut Reader) -> HashSet<Pid> {
    let family = Family::of(table, reader);
    let mut members: HashSet<Pid> = family.line.iter().copied().collect();
    let entries = table.entries().iter();
    let found = entries.filter(|entry| family.has(entry, reader));
    members.extend(found.map(|entry| entry.pid));
    members
}

/// The [`own_family`] of the caller, of which a process is asked whether it belongs to it: to look
/// at the pipes of all siblings costs much where they are many.
#[derive(Debug, Default)]
pub struct Family {
    /// The ancestors of the caller, the nearest first, and itself as the last.
    line: Vec<Pid>,
    /// Its parent's number; 0 where that is outside of this pid namespace.
    parent: Option<i32>,
    ends: Vec<PipeEnd>,
}

impl Family {
    /// The family of the caller, whose ancestors `table` has.
    pub fn of(table: &Table, reader: &mut Reader) -> Family {
        let mut line = table.ancestors(Pid::own());
        line.push(Pid::own());
        Family {
            line,
            parent: table.get(Pid::own()).map(|own| own.ppid),
            ends: pipeline_ends(reader),
        }
    }

    /// The caller's ancestors, the nearest first.
    pub fn ancestors(&self) -> &[Pid] {
        self.line.split_last().map_or(&[], |(_, above)| above)
    }

    /// Whether the process of `entry` belongs to it.
    pub fn has(&self, entry: &Entry, reader: &mut Reader) -> bool {
        if self.line.contains(&entry.pid) {
            return true;
        }
        if self.ends.is_empty() || self.parent != Some(entry.ppid) {
            return false;
        }
        let open = reader.pipe_ends(entry.pid).unwrap_or_default();
        open.iter()
            .any(|theirs| self.ends.iter().any(|ours| ours.is_joined_with(theirs)))
    }
}

/// The ends by which the caller would be in a pipeline: its stdin and its stdout, where they are
/// pipes.
fn pipeline_ends(reader: &mut Reader) -> Vec<PipeEnd> {
    let mut ends = reader.pipe_ends(Pid::own()).unwrap_or_default();
    ends.retain(|end| (end.fd == 0 && end.reads) || (end.fd == 1 && end.writes));
    ends
}

impl PipeEnd {
    /// Whether `other` is the other end of the pipe that this is an end of, as the tool's stdin
    /// (where it reads) or stdout (where it writes).
    fn is_joined_with(&self, other: &PipeEnd) -> bool {
        self.pipe == other.pipe
            && if self.fd == 0 {
                other.writes
            } else {
                other.reads
            }
    }
}

#[cfg(test)]
impl Table {
    /// A table of rows of number, parent, group and start.
    pub(crate) fn of_rows(rows: &[(i32, i32, i32, u64)]) -> Table {
        use crate::entry::{Start, State};
        let entries = rows.iter().filter_map(|&(number, ppid, pgid, ticks)| {
            Some(Entry {
                pid: Pid::new(number.into())?,
                ppid,
                pgid,
                sid: pgid,
                tty: 0,
                tpgid: -1,
                state: State('S'),
                threads: 1,
                kernel_thread: false,
                start: Start::Ticks(ticks),
                name: b"x".to_vec(),
            })
        });
        entries.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::new(number.into()).unwrap()
    }

    #[test]
    fn families() {
        let table = Table::of_rows(&[
            (1, 0, 1, 1),
            (10, 1, 10, 1),
            (11, 10, 10, 1),
            (12, 11, 12, 1),
            (9, 12, 10, 1),
            (20, 1, 20, 1),
        ]);
        assert_eq!(table.ancestors(pid(9)), [pid(12), pid(11), pid(10), pid(1)]);
        assert_eq!(table.descendants(&[pid(10)]), [pid(11), pid(12), pid(9)]);
        assert_eq!(table.descendants(&[pid(11), pid(20)]), [pid(12), pid(9)]);
        let group: Vec<Pid> = table.group(pid(10)).map(|entry| entry.pid).collect();
        assert_eq!(group, [pid(9), pid(10), pid(11)]);
    }

    #[test]
    fn a_table_read_while_it_changed_may_hold_a_circle() {
        let table = Table::of_rows(&[(10, 11, 10, 1), (11, 10, 10, 1)]);
        assert_eq!(table.ancestors(pid(10)), [pid(11)]);
        assert_eq!(table.descendants(&[pid(10)]), [pid(11)]);
        assert!(table.ancestors(pid(99)).is_empty());
    }

    #[test]
    fn the_live_table_has_us_and_our_parent() {
        let mut reader = Reader::new();
        let table = Table::read(&mut reader).unwrap();
        let own = table.get(Pid::own()).unwrap();
        assert_eq!(own.ppid, std::os::unix::process::parent_id() as i32);
        assert!(own_family(&table, &mut reader).contains(&Pid::new(own.ppid.into()).unwrap()));
    }
}
