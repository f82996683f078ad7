//! From claims to processes: each is looked for once, however many records name it.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use process::end::{Outcome, Refusal, Remains, Root, Scope, Target};
use process::{
    Comparison, Handle, Here, Identity, Pid, ProcessRecord, Reader, Sight, Standing, Start, Table,
    own_family,
};
use records::{say, text};

use crate::batch::{Evidence, Job};
use crate::guarded::{self, Guarded, Keepers};
use crate::judge::Claim;
use crate::verdict::Verdict;

/// How far a start time may lie behind a file's and count as not after it: a tick of the process
/// table and one of the clock that files are stamped by.
const CLOCK_SLACK: Duration = Duration::from_millis(30);

/// How targets are looked for.
pub struct Search<'a> {
    /// This machine.
    pub here: &'a Here,
    /// How far to reach from them.
    pub scope: Scope,
    /// Whether unproved members of a group without a leader are to be taken.
    pub leaderless: bool,
    /// Whether nothing is to be ended, and so no stop to be noted.
    pub dry_run: bool,
    /// Whether arguments are shown whole.
    pub full_argv: bool,
    /// Who was the caller's own family when the call began: a command that feeds this one has
    /// closed its end of the pipe by the time that all of it is read.
    pub family: &'a Family,
    /// What is known of those that have ended.
    pub evidence: &'a [Evidence],
}

/// The tool itself, its ancestors and its pipeline, at one moment.
#[derive(Debug, Default)]
pub struct Family(HashMap<Pid, Start>);

impl Family {
    /// Who they are now. Where the table cannot be read nobody is known, and nobody will be ended.
    pub fn now() -> Family {
        let mut reader = Reader::new();
        let Ok(table) = Table::around_own_family(&mut reader) else {
            return Family::default();
        };
        let family = own_family(&table, &mut reader).into_iter();
        Family(
            family
                .filter_map(|pid| Some((pid, table.get(pid)?.start)))
                .collect(),
        )
    }

    fn has(&self, handle: &Handle) -> bool {
        let start = handle.entry().map(|entry| entry.start);
        start.is_some() && self.0.get(&handle.pid()).copied() == start
    }
}

/// What the search has found.
#[derive(Default)]
pub struct Found {
    /// What is to be ended.
    pub targets: Vec<Target>,
    /// For each target: who has to know of its end.
    pub guarded: Vec<Guarded>,
    /// A stop could not be noted, so it was not begun.
    pub failed: bool,
    /// For each job: the target in `targets`, or why there is none.
    pub jobs: Vec<Result<usize, Verdict>>,
    /// For each job: a record of its own, as far as the process could be seen.
    pub records: Vec<Option<ProcessRecord>>,
}

impl Search<'_> {
    /// Looks for the targets of all `jobs`.
    pub fn run(&self, jobs: &[Job]) -> Found {
        let mut found = Found::default();
        // The first job of each claim. Of two that name one process the second may name its marker,
        // so all that is claimed counts.
        let mut first: HashMap<(&Claim, Option<SystemTime>), usize> = HashMap::new();
        for (index, job) in jobs.iter().enumerate() {
            let (answer, record) = match job {
                Job::Refuse(verdict) => (Err(*verdict), None),
                Job::End { claim, not_after } => {
                    let known = *first.entry((claim, *not_after)).or_insert(index);
                    match (found.jobs.get(known), found.records.get(known)) {
                        (Some(answer), Some(record)) => (*answer, record.clone()),
                        _ => self.resolve(claim, *not_after, &mut found),
                    }
                }
            };
            found.jobs.push(answer);
            found.records.push(record);
        }
        found
    }

    /// Looks for one target, and takes it into `found`.
    fn resolve(
        &self,
        claim: &Claim,
        not_after: Option<SystemTime>,
        found: &mut Found,
    ) -> (Result<usize, Verdict>, Option<ProcessRecord>) {
        let mut record = self.record(claim);
        let mut guarded = Guarded::none();
        let answer = match self.find(claim, not_after, &mut record, &mut guarded) {
            Ok(target) => {
                found.targets.push(target);
                found.guarded.push(guarded);
                Ok(found.targets.len() - 1)
            }
            Err(refused) => {
                found.failed |= refused == Refused::NotNoted;
                close(&mut guarded, false);
                Err(refused.verdict())
            }
        };
        (answer, Some(record))
    }

    fn find(
        &self,
        claim: &Claim,
        not_after: Option<SystemTime>,
        record: &mut ProcessRecord,
        guarded: &mut Guarded,
    ) -> Result<Target, Refused> {
        let root = match &claim.ident {
            Some(recorded) => {
                let host = claim.host.as_deref();
                let located =
                    guarded::locate(self.here, recorded, host, &claim.keepers, !self.dry_run);
                let located = located.map_err(|error| {
                    say!("process {}: its end cannot be noted: {error}", claim.pid);
                    Refused::NotNoted
                })?;
                *guarded = located.guarded;
                let ident = located.ident;
                match located.standing {
                    Standing::Same(handle) => Root::Alive(handle),
                    Standing::Gone { .. } => Root::Ended(self.remains(&ident)),
                    Standing::Recycled(_) => return Err(Verdict::Recycled.into()),
                    Standing::Unknown(why) => return Err(unknown(claim.pid, &why).into()),
                }
            }
            None => match self.here.look(claim.pid) {
                Sight::Alive(handle) => Root::Alive(handle),
                Sight::Zombie(ident) => {
                    record.ident = Some(ident.clone());
                    Root::Ended(self.remains(&ident))
                }
                Sight::Absent => Root::Ended(Some(Remains {
                    leader: claim.pid,
                    started: None,
                    uptime: None,
                    unproved_too: self.leaderless,
                })),
                Sight::Unknown(why) => return Err(unknown(claim.pid, &why).into()),
            },
        };
        if let Root::Alive(handle) = &root {
            if started_after(handle, not_after) {
                return Err(Verdict::Recycled.into());
            }
            self.describe(handle, record);
            if self.family.has(handle) {
                return Err(Verdict::Of(Outcome::Refused(Refusal::OwnFamily)).into());
            }
            if claim.keepers == Keepers::default() && guarded::has_guard(handle) {
                say!(
                    "process {}: its guard will announce this as an accident, or start it again; \
                     reap <MARKER stops it for good",
                    claim.pid
                );
            }
        }
        let ident = record.ident.as_ref();
        let extra = match (&root, ident) {
            (Root::Ended(_), Some(ident)) => self.stranded(ident),
            _ => Vec::new(),
        };
        Ok(Target {
            root,
            scope: self.scope,
            extra,
        })
    }

    /// What is known of a process that has ended.
    fn remains(&self, ident: &Identity) -> Option<Remains> {
        Some(Remains {
            uptime: self.about(ident).filter_map(|exit| exit.uptime).max(),
            unproved_too: self.leaderless,
            ..Remains::of(ident, self.here)?
        })
    }

    /// Those who outlived `ident` by what is known, and live now.
    fn stranded(&self, ident: &Identity) -> Vec<Handle> {
        let named = self.about(ident).flat_map(|exit| &exit.stranded);
        named
            .filter_map(|member| match self.here.find(member, None) {
                Standing::Same(handle) => Some(handle),
                _ => None,
            })
            .collect()
    }

    fn about(&self, ident: &Identity) -> impl Iterator<Item = &Evidence> {
        let same = |exit: &&Evidence| exit.ident.compare(ident) == Comparison::Same;
        self.evidence.iter().filter(same)
    }

    fn record(&self, claim: &Claim) -> ProcessRecord {
        let mut record = ProcessRecord::on(self.here.host());
        record.pid = Some(claim.pid);
        record.ident = claim.ident.clone();
        record
    }

    /// Puts into `record` what is to be seen of a live process.
    fn describe(&self, handle: &Handle, record: &mut ProcessRecord) {
        let mut reader = Reader::new();
        record.ident = Some(handle.ident().clone());
        if let Some(entry) = handle.entry() {
            record.pgid = Some(entry.pgid);
            record.sid = Some(entry.sid);
            let started = entry.start.wall_clock();
            record.started_at = started.map(records::time::rfc3339_millis);
        }
        if let Ok(argv) = reader.argv(handle.pid()) {
            let shown = text::Argv::new(argv.iter().map(Vec::as_slice), self.full_argv);
            record.argv = Some(shown.argv);
            record.argv_cut = shown.argv_cut;
            record.lossy |= shown.lossy;
        }
        if let Ok(cwd) = reader.cwd(handle.pid()) {
            let (cwd, lossy) = text::lossy(cwd.as_os_str().as_encoded_bytes());
            record.cwd = Some(cwd);
            record.lossy |= lossy;
        }
    }
}

/// Why a target is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// For what was found of it.
    For(Verdict),
    /// That it is a stop on purpose could not be noted.
    NotNoted,
}

impl Refused {
    fn verdict(self) -> Verdict {
        match self {
            Refused::For(verdict) => verdict,
            Refused::NotNoted => Verdict::UNKNOWN,
        }
    }
}

impl From<Verdict> for Refused {
    fn from(verdict: Verdict) -> Refused {
        Refused::For(verdict)
    }
}

/// Closes a note, and says so where that fails: it then counts for as long as this process lives.
pub fn close(guarded: &mut Guarded, dead: bool) {
    if let Err(error) = guarded.close(dead) {
        say!("{error}");
    }
}

fn unknown(pid: Pid, why: &str) -> Verdict {
    say!("process {pid}: {why}");
    Verdict::UNKNOWN
}

/// Whether the process started after a file that names it was last written: then the file means
/// another one. Many file systems keep whole seconds only.
fn started_after(handle: &Handle, written: Option<SystemTime>) -> bool {
    let Some(written) = written else {
        return false;
    };
    let started = handle.entry().and_then(|entry| entry.start.wall_clock());
    started.is_some_and(|started| is_after(started, written))
}

fn is_after(started: SystemTime, written: SystemTime) -> bool {
    let whole_seconds = written
        .duration_since(SystemTime::UNIX_EPOCH)
        .is_ok_and(|since| since.subsec_nanos() == 0);
    let slack = if whole_seconds {
        CLOCK_SLACK + Duration::from_secs(1)
    } else {
        CLOCK_SLACK
    };
    started
        .duration_since(written)
        .is_ok_and(|later| later > slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_nobody_who_started_later() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let table = [
            (
                at(10_000),
                at(10_500),
                false,
                "written half a second after the start",
            ),
            (at(10_510), at(10_500), false, "within a tick"),
            (at(10_540), at(10_500), true, "started after"),
            (
                at(10_900),
                at(10_000),
                false,
                "a file system of whole seconds",
            ),
            (at(11_100), at(10_000), true, "started in a later second"),
        ];
        for (started, written, expected, what) in table {
            assert_eq!(is_after(started, written), expected, "{what}");
        }
    }
}
