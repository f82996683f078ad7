//! The process table as a whole, and what follows from it about families of processes.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::io;

use crate::entry::Entry;
use crate::pid::Pid;
use crate::sys::{PipeEnd, Reader};

/// So many programs that only start another stand before a command at the most.
const MAX_LAUNCHERS: usize = 16;

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
/// which is the tool's stdin or stdout, and those that are joined with one of them, and so on. One
/// that has the same end has only inherited what the tool has: a server, say, that a script has
/// started, and whose output goes where the script's does. Further along a pipe joins nobody that
/// the parent has open itself, as a shell has that of its `>(…)`: all of its children may have it.
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

/// Whether arguments are those of a program that only starts another, as `timeout` does.
pub type Launches = fn(&[Vec<u8>]) -> bool;

/// The [`own_family`] of the caller, of which a process is asked whether it belongs to it: to look
/// at the pipes of all siblings costs much where they are many.
#[derive(Debug, Default)]
pub struct Family {
    /// The ancestors of the caller, the nearest first, and itself as the last.
    line: Vec<Pid>,
    /// The number of the parent of its pipeline; 0 where that is outside of this pid namespace.
    parent: Option<i32>,
    /// Which arguments are those of a program that only starts another.
    launches: Option<Launches>,
    ends: Vec<PipeEnd>,
    /// The pipes that the parent has open, once that was asked; `None` where it cannot be told.
    shell: OnceCell<Option<Vec<PipeEnd>>>,
    /// The pipeline, once somebody was met that may be further along.
    pipeline: OnceCell<HashSet<Pid>>,
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
            ..Family::default()
        }
    }

    /// The same, where a program that only starts another, as `launches` knows it, is looked
    /// through: what it has started is in its place in the pipeline, the caller as well as others.
    #[must_use]
    pub fn through(mut self, launches: Launches, table: &Table, reader: &mut Reader) -> Family {
        let parent = self.parent.and_then(|parent| Pid::new(parent.into()));
        if !self.ends.is_empty()
            && let Some(parent) = parent
        {
            let starts = |pid: &&Pid| reader.argv(**pid).is_ok_and(|argv| launches(&argv));
            let launcher = self.ancestors().iter().take_while(starts).last();
            let launcher = launcher.and_then(|&launcher| table.get(launcher));
            self.parent = Some(launcher.map_or(parent.get(), |launcher| launcher.ppid));
            self.launches = Some(launches);
        }
        self
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
        if self.ends.is_empty() {
            return false;
        }
        let Some(command) = self.command_of(entry, reader) else {
            return false;
        };
        let open = reader.pipe_ends(entry.pid).unwrap_or_default();
        if are_joined(&self.ends, &open) {
            return true;
        }
        if self.between(open, reader).is_empty() {
            return false;
        }
        let pipeline = self.pipeline.get_or_init(|| self.find_pipeline(reader));
        pipeline.contains(&command)
    }

    /// The child of the pipeline's parent that has become `entry`'s process, or has only started it.
    fn command_of(&self, entry: &Entry, reader: &mut Reader) -> Option<Pid> {
        let (mut pid, mut ppid) = (entry.pid, entry.ppid);
        for _ in 0..MAX_LAUNCHERS {
            if self.parent == Some(ppid) {
                return Some(pid);
            }
            let parent = Pid::new(ppid.into())?;
            if !(self.launches?)(&reader.argv(parent).ok()?) {
                return None;
            }
            (pid, ppid) = (parent, reader.entry(parent).ok()?.ppid);
        }
        None
    }

    /// Who has started the commands of the pipeline.
    fn starter(&self) -> Option<Pid> {
        Pid::new(self.parent?.into())
    }

    /// Those ends that can join two commands of a pipeline: a shell closes them when it has started
    /// both. It may be about to close those that join others with us.
    fn between(&self, mut ends: Vec<PipeEnd>, reader: &mut Reader) -> Vec<PipeEnd> {
        let ask = || reader.pipe_ends(self.starter()?).ok();
        let Some(shell) = self.shell.get_or_init(ask) else {
            return Vec::new();
        };
        let is_in = |ends: &[PipeEnd], end: &PipeEnd| ends.iter().any(|one| one.pipe == end.pipe);
        ends.retain(|end| is_in(&self.ends, end) || !is_in(shell, end));
        ends
    }

    fn find_pipeline(&self, reader: &mut Reader) -> HashSet<Pid> {
        let siblings = self.starter().and_then(|parent| {
            reader.children(parent).or_else(|| {
                let all = Table::read(reader).ok()?;
                let siblings = all.entries().iter();
                let siblings = siblings.filter(|entry| entry.ppid == parent.get());
                Some(siblings.map(|entry| entry.pid).collect())
            })
        });
        let siblings = siblings.unwrap_or_default().into_iter();
        let siblings: Vec<(Pid, Vec<PipeEnd>)> = siblings
            .map(|pid| {
                let ends = reader.pipe_ends(pid).unwrap_or_default();
                (pid, self.between(ends, reader))
            })
            .collect();
        joined(&self.ends, &siblings)
    }
}

/// Who of `all` is joined with `ours`, directly or by others. Who has the same as we have is joined
/// with others by that, and not with us.
fn joined(ours: &[PipeEnd], all: &[(Pid, Vec<PipeEnd>)]) -> HashSet<Pid> {
    let is_ours = |theirs: &PipeEnd| ours.iter().any(|ours| ours.is_same_as(theirs));
    let mut found = HashSet::new();
    let mut ends = ours.to_vec();
    loop {
        let next = all.iter().find(|(pid, theirs)| {
            let only_inherited = theirs.iter().any(is_ours) && !are_joined(ours, theirs);
            !found.contains(pid) && !only_inherited && are_joined(&ends, theirs)
        });
        let Some((pid, theirs)) = next else {
            return found;
        };
        found.insert(*pid);
        ends.extend_from_slice(theirs);
    }
}

fn are_joined(ours: &[PipeEnd], theirs: &[PipeEnd]) -> bool {
    ours.iter().any(|ours| {
        let mut theirs = theirs.iter();
        theirs.any(|theirs| ours.is_joined_with(theirs))
    })
}

/// The ends by which the caller would be in a pipeline: its stdin and its stdout, where they are
/// pipes.
fn pipeline_ends(reader: &mut Reader) -> Vec<PipeEnd> {
    let mut ends = reader.pipe_ends(Pid::own()).unwrap_or_default();
    ends.retain(|end| (end.fd == 0 && end.reads) || (end.fd == 1 && end.writes));
    for end in &mut ends {
        (end.reads, end.writes) = (end.fd == 0, end.fd == 1);
    }
    ends
}

impl PipeEnd {
    /// Whether `other` is an end of the same pipe with the same direction.
    fn is_same_as(&self, other: &PipeEnd) -> bool {
        self.pipe == other.pipe && self.reads == other.reads && self.writes == other.writes
    }

    /// Whether `other` is the other end of the pipe that this is an end of.
    fn is_joined_with(&self, other: &PipeEnd) -> bool {
        self.pipe == other.pipe && ((self.reads && other.writes) || (self.writes && other.reads))
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
    fn a_pipeline_is_joined_from_command_to_command() {
        let end = |fd: i32, pipe: &str, mode: &str| PipeEnd {
            fd,
            pipe: pipe.into(),
            reads: mode.contains('r'),
            writes: mode.contains('w'),
        };
        // 1 | 2 | ours | 3, where 4 has what we have, 5 | 6 are by themselves, and 2 has no more
        // than inherited what 5 writes to.
        let all = [
            (pid(1), vec![end(1, "a", "w")]),
            (
                pid(2),
                vec![end(0, "a", "r"), end(1, "b", "w"), end(9, "e", "w")],
            ),
            (pid(3), vec![end(0, "c", "r")]),
            (pid(4), vec![end(0, "b", "r"), end(1, "c", "w")]),
            (pid(5), vec![end(1, "e", "w")]),
            (pid(6), vec![end(0, "f", "r")]),
            (pid(7), Vec::new()),
        ];
        let ours = [end(0, "b", "r"), end(1, "c", "w")];
        let found = joined(&ours, &all);
        assert_eq!(found, HashSet::from([pid(1), pid(2), pid(3)]));
        assert!(joined(&[], &all).is_empty());
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
