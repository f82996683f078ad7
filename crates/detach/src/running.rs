//! What was to be started, and is there already.

use process::Handle;
use process::{Peer, Pid, ProcessRecord, Reader, Sight, Status, Table};
use records::text::Argv;
use records::{Failure, Record, exit, say, time};

use crate::death::milliseconds;
use crate::ending;
use crate::ready::Readiness;
use crate::start::{Awaited, Outcome, Printed, Starter, shown};

impl Starter<'_> {
    /// A socket that answers before anything is started: what was to be started is there.
    pub fn already_answered(&self) -> Result<Option<Outcome>, Failure> {
        for socket in &self.args.ready_socket {
            let Some(peer) = process::probe_socket(socket)
                .map_err(|error| Failure::failed(format_args!("{socket}: {error}")))?
            else {
                continue;
            };
            let mut record = self.of_peer(peer);
            record.took_ms = Some(milliseconds(self.began.elapsed()));
            let status = if peer.uid == rustix::process::geteuid().as_raw() {
                record.status = Some(Status::Running);
                self.running_status()
            } else {
                record.status = Some(Status::Occupied);
                say!("{socket} is answered by a process of user {}", peer.uid);
                exit::Status::No
            };
            return Ok(Some(Outcome::Not(Printed::Made(Box::new(record)), status)));
        }
        Ok(None)
    }

    /// The status for a command that is there already: no error, unless it was to be one.
    fn running_status(&self) -> exit::Status {
        match self.args.fail_if_running {
            true => exit::Status::No,
            false => exit::Status::Done,
        }
    }

    /// What can be said of the process behind a socket.
    fn of_peer(&self, peer: Peer) -> ProcessRecord {
        let mut record = ProcessRecord::on(self.here.host());
        record.pid = peer.pid;
        let Some(pid) = peer.pid else {
            return record;
        };
        let Sight::Alive(handle) = self.here.look(pid) else {
            return record;
        };
        let mut reader = Reader::new();
        if let Some(entry) = handle.entry() {
            record.pgid = Some(entry.pgid);
            record.sid = Some(entry.sid);
        }
        if let Ok(words) = reader.argv(pid) {
            let argv = Argv::new(words.iter().map(Vec::as_slice), self.args.full_argv);
            record.argv = Some(argv.argv);
            record.argv_cut = argv.argv_cut;
            record.lossy = argv.lossy;
        }
        record.cwd = shown(reader.cwd(pid).ok(), &mut record.lossy);
        record.ident = Some(handle.ident().clone());
        record
    }

    /// The lock's process runs: it is as good as started here, once it is ready as asked.
    pub fn found(&self, line: &[u8], handle: &Handle) -> Result<Outcome, Failure> {
        let Ok(record) = Record::parse(line) else {
            return Err(Failure::failed("the lock's record cannot be read"));
        };
        let with = |status: Status| record.with("status", &status).map(Printed::Found);
        if !self.args.wants_ready() || self.args.wait {
            return Ok(Outcome::Not(with(Status::Running)?, self.running_status()));
        }
        let since = record
            .str("started_at")
            .and_then(|at| time::parse(&at).ok());
        let readiness = Readiness::of_running(self.args, since);
        let (status, code) = match self.wait_for(None, Some(handle), readiness)? {
            Awaited::Ready(_) => (Status::Running, self.running_status()),
            Awaited::Exited(_) => {
                say!("the running command ended before it was ready");
                (Status::Exited, exit::Status::No)
            }
            Awaited::NotReady(what) => {
                say!("no {what} in time; the running command has been left alone");
                (Status::NotReady, exit::Status::Deadline)
            }
            Awaited::Occupied(why) => {
                say!("{why}");
                (Status::Occupied, exit::Status::No)
            }
            Awaited::Interrupted(signal) => {
                ending::say_interrupted(signal, "the running command has been left alone");
                return Ok(Outcome::Interrupted(signal, None));
            }
        };
        Ok(Outcome::Not(with(status)?, code))
    }
}

/// Who answers instead of the session and the descendants of `leader`; `None` where it is one of
/// them. A listener whose process has ended since has passed its socket on, to a child of its own.
pub fn stranger(peer: Peer, leader: Option<Pid>) -> Option<String> {
    let Some(pid) = peer.pid else {
        return Some("a process of another pid namespace".to_owned());
    };
    let leader = leader?;
    let table = Table::read(&mut Reader::new()).ok()?;
    let entry = table.get(pid)?;
    let own = pid == leader
        || entry.sid == leader.get()
        || table.ancestors(pid).contains(&leader)
        // Given to us when its parent ended: we are the subreaper of what we start alone.
        || table.ancestors(pid).contains(&Pid::own());
    (!own).then(|| format!("process {pid}, which the command has not started"))
}
