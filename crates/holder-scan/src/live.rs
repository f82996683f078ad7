//! The live process table as a snapshot: one quick look at everybody, a close one at those who may
//! have to do with the question.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use process::{Entry, Family, Here, Pid, Reader, Sight, Table, terminal_name};
use records::Deadline;

use crate::glance::{Glance, Glancer};
use crate::judge::{Question, Resolve};
use crate::look::{Look, in_time};
use crate::path;
use crate::program::{self, Program};
use crate::snapshot::{Open, Row, Snapshot};
use crate::stores::{self, Homes, Stores};
use crate::targets::Targets;

/// How often the list of processes is read again for new ones.
const ROUNDS: usize = 3;

/// Of up to one in so many processes the children are asked for; beyond that the parents of all are.
const FEW: usize = 8;

/// How often a process that changes while it is read is read again.
const TRIES: usize = 4;

/// How often, and after which pause, a fork that is about to become another program is looked at
/// again. On a busy machine it may have to wait for its turn.
const FORK_LOOKS: usize = 1000;
const FORK_PAUSE: Duration = Duration::from_millis(1);

/// Which processes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that have to do with the question.
    Asked,
    /// Those that hold any session, or meet the criteria.
    Holding,
    /// All.
    All,
}

/// A question to the live table.
pub struct Request<'a> {
    /// What is asked about sessions, and what makes a holder one's own.
    pub question: &'a Question,
    /// What else is asked for.
    pub targets: &'a Targets,
    /// Which processes are wanted.
    pub scope: Scope,
    /// When to stop.
    pub deadline: Deadline,
    /// Gives the path behind links.
    pub resolve: Resolve<'a>,
}

/// Reads the live table.
pub fn scan(here: &Here, request: &Request<'_>) -> (Snapshot, Look) {
    let mut look = Look::default();
    if let Some(why) = here.distrust() {
        look.fail(why);
        return (Snapshot::default(), look);
    }
    if let Some(why) = process::concealment() {
        look.fail(format!("{why}: some processes do not show up"));
    }
    let mut scan = Scan {
        here,
        request,
        glancer: Glancer::new(request),
        reader: Reader::new(),
        look,
        glances: HashMap::new(),
        stores: Arc::default(),
        rows: HashMap::new(),
        family: Family::default(),
        ancestors: HashSet::new(),
        relatives: HashSet::new(),
    };
    scan.run();
    scan.finish()
}

struct Scan<'a> {
    here: &'a Here,
    request: &'a Request<'a>,
    glancer: Glancer<'a>,
    reader: Reader,
    look: Look,
    glances: HashMap<Pid, Glance>,
    stores: Arc<Stores>,
    rows: HashMap<Pid, Row>,
    family: Family,
    ancestors: HashSet<Pid>,
    /// Whose rows are of the caller's family.
    relatives: HashSet<Pid>,
}

impl Scan<'_> {
    fn run(&mut self) {
        for round in 0..ROUNDS {
            let pids = self.reader.pids();
            let Some(pids) = self.had(pids) else {
                return;
            };
            let new = self.glance_at(&pids);
            if self.request.deadline.passed() {
                self.look
                    .fail("the deadline passed before everything was read");
            }
            if round > 0 && new.is_empty() {
                break;
            }
            self.look_into_stores(&new, round == 0);
            let candidates = self.candidates(&new);
            if !candidates.is_empty() {
                self.collect(&candidates);
            }
        }
    }

    /// Looks at those that are new.
    fn glance_at(&mut self, pids: &[Pid]) -> Vec<Pid> {
        let mut new = Vec::new();
        for &pid in pids {
            if self.glances.contains_key(&pid) {
                continue;
            }
            if self.request.deadline.passed() {
                break;
            }
            if let Some(glance) = self.glancer.glance(pid, &mut self.look) {
                self.glances.insert(pid, glance);
                new.push(pid);
            }
        }
        new
    }

    fn look_into_stores(&mut self, new: &[Pid], first: bool) {
        let question = self.request.question;
        let wanted = match self.request.scope {
            Scope::Asked => !question.ids.is_empty(),
            Scope::Holding => true,
            Scope::All => false,
        };
        let agents: Vec<Pid> = new
            .iter()
            .copied()
            .filter(|pid| {
                self.glances
                    .get(pid)
                    .is_some_and(|glance| glance.agent.is_some())
            })
            .collect();
        if !wanted || (!first && agents.is_empty()) {
            return;
        }
        let mut homes = stores::homes(|name| std::env::var_os(name).map(PathBuf::from));
        for pid in agents {
            homes.extend(self.homes_of(pid));
        }
        let pids: HashSet<Pid> = self.glances.keys().copied().collect();
        let ids = question.ids.clone();
        let found = in_time(self.request.deadline, move || {
            stores::look(&homes, &pids, &ids)
        });
        match found {
            Some(found) => self.stores = Arc::new(found),
            None => self.look.fail("the agents' folders do not answer"),
        }
    }

    /// Where a running agent has its folder.
    fn homes_of(&mut self, pid: Pid) -> Homes {
        let agent = self.glances.get(&pid).and_then(|glance| glance.agent);
        let environ = self.reader.environ(pid).unwrap_or_default();
        let variable = |name: &str| {
            let value = environ
                .iter()
                .find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
            Some(path::to_path(value))
        };
        agent
            .and_then(|agent| stores::home(agent, &variable))
            .into_iter()
            .collect()
    }

    /// Those of `new` that may have to do with the question.
    fn candidates(&mut self, new: &[Pid]) -> HashSet<Pid> {
        let all = self.request.scope != Scope::Asked;
        let sessions =
            !self.request.question.ids.is_empty() || self.request.scope == Scope::Holding;
        let stores = Arc::clone(&self.stores);
        let mut found = HashSet::new();
        for &pid in new {
            let Some(glance) = self.glances.get(&pid) else {
                continue;
            };
            let (may_hold, is_candidate) = (glance.may_hold_files, glance.is_candidate());
            let by_file = sessions && (may_hold || stores.has_files) && self.has_session_file(pid);
            let locked = stores.locks.iter().any(|(lock, _)| lock.pid == Some(pid));
            let named = stores
                .rows
                .get(&pid)
                .is_some_and(|rows| rows.iter().any(|row| self.is_asked(&row.registered.id)));
            if is_candidate || by_file || locked || named || self.request.scope == Scope::All {
                found.insert(pid);
            }
        }
        if let Some(uid) = self.request.question.uid.filter(|_| !all) {
            found.retain(|&pid| self.reader.uid(pid) == Ok(uid));
        }
        found
    }

    fn is_asked(&self, id: &[u8]) -> bool {
        self.request.scope != Scope::Asked || self.request.question.ids.has(id)
    }

    fn has_session_file(&mut self, pid: Pid) -> bool {
        let open = self.reader.descriptors(pid).unwrap_or_default();
        let asked = self.request.scope == Scope::Asked;
        open.iter().any(|(_, path)| {
            let path = path::bytes_of(path);
            path.first() == Some(&b'/')
                && (!asked || self.request.question.ids.any_near(&path))
                && self
                    .glancer
                    .session_in(&path)
                    .is_some_and(|id| self.is_asked(id))
        })
    }

    /// Reads the candidates, their ancestors, and what lives below any of them that may be a root.
    fn collect(&mut self, candidates: &HashSet<Pid>) {
        let table = match self.request.scope {
            Scope::All => Table::read(&mut self.reader),
            _ => Ok(Table::around(&mut self.reader, candidates.iter().copied())),
        };
        let Some(mut table) = self.had(table) else {
            return;
        };
        let family = Family::of(&table, &mut self.reader);
        self.family = family.through(program::launches, &table, &mut self.reader);
        // Who has been one stays it, if a parent ends meanwhile.
        self.ancestors.extend(self.family.ancestors());
        let mut roots: HashSet<Pid> = candidates.clone();
        for &pid in candidates {
            self.add_row(pid, &table);
            if self.request.scope == Scope::All {
                continue;
            }
            for above in table.ancestors(pid) {
                if above.is_init() {
                    break;
                }
                self.add_row(above, &table);
                if self.may_be_root(above) {
                    roots.insert(above);
                }
            }
        }
        if self.request.scope == Scope::All {
            return;
        }
        // The most expensive part of a scan is made small where next to nothing is there.
        let roots: Vec<Pid> = roots.into_iter().collect();
        let most = self.glances.len() / FEW;
        let added = table.add_descendants(&mut self.reader, &roots, most);
        if self.had(added).is_none() {
            return;
        }
        for below in table.descendants(&roots) {
            self.add_row(below, &table);
        }
    }

    /// What was read of the table, or a look that failed.
    fn had<T>(&mut self, read: io::Result<T>) -> Option<T> {
        read.map_err(|error| {
            let why = format!("the process table cannot be read: {error}");
            self.look.fail(why);
        })
        .ok()
    }

    /// Whether a process above a candidate may be what the candidate is judged by.
    fn may_be_root(&self, pid: Pid) -> bool {
        let Some(row) = self
            .rows
            .get(&pid)
            .filter(|_| !self.relatives.contains(&pid))
        else {
            return false;
        };
        let argv = row.argv.as_deref().unwrap_or_default();
        let program = Program::of(argv, row.exe.as_deref());
        let criteria = &self.request.question.criteria;
        program.agent.is_some()
            || !crate::claims::of_argv(argv, &program).is_empty()
            || (criteria.any() && criteria.are_met_by(row, self.request.resolve))
    }

    fn add_row(&mut self, pid: Pid, table: &Table) {
        let entry = table.get(pid).filter(|entry| !entry.kernel_thread);
        let Some(entry) = entry.filter(|_| !self.rows.contains_key(&pid)) else {
            return;
        };
        // First, as it may end while the rest is read, and would be a stranger then.
        let is_relative = self.family.has(entry, &mut self.reader);
        if let Some(row) = self.read_row(pid) {
            self.rows.insert(pid, row);
            if is_relative {
                self.relatives.insert(pid);
            }
        }
    }

    /// Reads one process whole. Who it is and what it runs is read before and after the rest, so
    /// that no row is of two processes, or of two programs that one process has run.
    fn read_row(&mut self, pid: Pid) -> Option<Row> {
        for _ in 0..TRIES {
            let before = self.settled(pid)?;
            if before.state.is_zombie() && self.reader.is_dead(&before) {
                return None;
            }
            let argv = self.reader.argv(pid);
            let mut row = self.read_rest(&before);
            let again = self.reader.argv(pid);
            let Sight::Alive(handle) = self.here.look(pid) else {
                return None;
            };
            if handle.entry()?.start == before.start && argv == again {
                row.argv = argv.ok();
                row.ident = Some(handle.ident().clone());
                self.add_registry(&mut row, &before);
                return Some(row);
            }
        }
        self.look
            .fail(format!("process {pid} changed whenever it was read"));
        None
    }

    /// The entry of `pid`, once it is no more the fork of an ancestor of the caller that has yet to
    /// become the command it was forked for: until then it has the arguments of a shell that may
    /// name what is asked for. A fork that stays one sleeps sooner or later, to wait for somebody.
    fn settled(&mut self, pid: Pid) -> Option<Entry> {
        let mut entry = self.reader.entry(pid).ok()?;
        let parent = Pid::new(entry.ppid.into());
        let Some(parent) = parent.filter(|parent| self.ancestors.contains(parent)) else {
            return Some(entry);
        };
        for _ in 0..FORK_LOOKS {
            let may_become = matches!(entry.state.0, 'R' | 'D')
                && self.reader.argv(pid) == self.reader.argv(parent);
            if !may_become || self.request.deadline.passed() {
                break;
            }
            std::thread::sleep(FORK_PAUSE);
            entry = self.reader.entry(pid).ok()?;
        }
        Some(entry)
    }

    fn read_rest(&mut self, entry: &Entry) -> Row {
        let pid = entry.pid;
        let glance = self.glances.get(&pid);
        let found = glance
            .map(|glance| glance.found.clone())
            .unwrap_or_default();
        let needs_env = self.glancer.needs_env() || self.request.scope == Scope::All;
        let started = entry.start.wall_clock();
        let mut row = Row {
            ppid: Some(entry.ppid),
            pgid: Some(entry.pgid),
            sid: Some(entry.sid),
            uid: self.reader.uid(pid).ok(),
            name: Some(entry.name.clone()),
            state: Some(entry.state.0),
            foreground: Some(entry.tpgid > 0 && entry.tpgid == entry.pgid),
            tty: terminal_name(entry.tty),
            age: started.map(|started| started.elapsed().unwrap_or_default()),
            exe: self.reader.exe(pid).ok().map(|exe| path::bytes_of(&exe)),
            cwd: self.reader.cwd(pid).ok().map(|cwd| path::bytes_of(&cwd)),
            found,
            ..Row::new(pid)
        };
        if needs_env {
            row.env = self
                .reader
                .environ(pid)
                .ok()
                .map(|environ| environ.iter().filter_map(|pair| split_pair(pair)).collect());
        }
        row.open = self.session_files(pid);
        row
    }

    /// The files of sessions that a process has open.
    fn session_files(&mut self, pid: Pid) -> Option<Vec<Open>> {
        let open = self.reader.descriptors(pid).ok();
        let mut files = Vec::new();
        for (fd, target) in open.iter().flatten() {
            let path = path::bytes_of(target);
            if self.glancer.session_in(&path).is_none() {
                continue;
            }
            let mounts = self.glancer.mounts(pid);
            let info = self.reader.descriptor(pid, *fd, &mounts);
            files.push(Open {
                fd: Some(fd.to_string()),
                path,
                locked: info.is_ok_and(|info| info.locked),
            });
        }
        if open.is_some() {
            return Some(files);
        }
        // Where descriptors cannot be read, the kernel's list still names who took a lock. It is
        // not asked otherwise: who took it may have left it to a child.
        let locks = self
            .stores
            .locks
            .iter()
            .filter(|(lock, _)| lock.pid == Some(pid));
        let files: Vec<Open> = locks
            .map(|(_, path)| Open {
                fd: None,
                path: path::bytes_of(path),
                locked: true,
            })
            .collect();
        (!files.is_empty()).then_some(files)
    }

    fn add_registry(&self, row: &mut Row, entry: &Entry) {
        let rows = self.stores.rows.get(&row.pid).into_iter().flatten();
        let meant = rows.filter(|written| written.means(entry, row.uid, self.here));
        row.registry = meant.map(|written| written.registered.clone()).collect();
    }

    fn finish(mut self) -> (Snapshot, Look) {
        self.look.processes = self.glances.len();
        let mut rows: Vec<Row> = self.rows.into_values().collect();
        Row::sort(&mut rows);
        let snapshot = Snapshot {
            rows,
            ancestors: self.ancestors,
            family: self.relatives,
            caller_uid: Some(nix::unistd::geteuid().as_raw()),
        };
        (snapshot, self.look)
    }
}

/// `NAME=VALUE`.
fn split_pair(pair: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let at = pair.iter().position(|&byte| byte == b'=')?;
    Some((pair[..at].to_vec(), Some(pair[at + 1..].to_vec())))
}
