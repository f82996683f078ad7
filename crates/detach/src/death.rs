//! What there is to say of a process that has ended.

use std::path::Path;
use std::time::Duration;

use marker::Marker;
use process::{Entry, Exit, Handle, Here, Identity, Named, Pid, Reader, Table};
use records::text::lossy;
use records::{Record, time};
use serde::Serialize;

use crate::ready::last_bytes;

/// The record of a death, `type: exit`, in the order of its keys.
#[derive(Clone, Debug, Serialize)]
pub struct ExitRecord {
    v: u8,
    r#type: &'static str,
    /// The process.
    pub pid: Pid,
    /// Who it was.
    pub ident: Identity,
    /// Its arguments, as its record showed them.
    pub argv: Option<Vec<String>>,
    /// How it ended; all `null` where nobody can tell.
    #[serde(flatten)]
    pub exit: Exit,
    /// Whether that was not in its nature: a signal, a code, code 0 too soon; and not wanted.
    pub unnatural: bool,
    /// Whether it was ended on purpose.
    pub deliberate: bool,
    /// How long it ran.
    pub uptime_ms: Option<u64>,
    /// Members of its group or session that live on, and what else of it is known to.
    pub stranded: Vec<Named>,
    /// The end of its log.
    pub log_tail: Option<String>,
    /// How many restarts in a row had led to it.
    pub restarts: u32,
    /// The one id of this death.
    pub death_id: String,
    /// Who announces it.
    pub by: By,
    /// What the command line said to say.
    pub tag: Option<String>,
    /// Whether bytes of arguments or log could not be shown.
    pub lossy: bool,
    /// Whether an argument was too long to be shown whole.
    pub argv_cut: bool,
    /// When this was written.
    pub at: String,
}

/// Who announces a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The process's guard.
    Guard,
    /// A sweep, since the guard was gone too.
    Sweep,
}

impl ExitRecord {
    /// Its keys.
    #[rustfmt::skip]
    pub const KEYS: &[&str] = &[
        "v", "type", "pid", "ident", "argv", "code", "signal", "core", "unnatural", "deliberate",
        "uptime_ms", "stranded", "log_tail", "restarts", "death_id", "by", "tag", "lossy",
        "argv_cut", "at",
    ];

    /// What `marker` says of the process whose death it stands for.
    pub fn of_marker(marker: &Marker, by: By) -> ExitRecord {
        let mut record = ExitRecord {
            v: 1,
            r#type: "exit",
            pid: marker.ident.pid(),
            ident: marker.ident.clone(),
            argv: None,
            exit: Exit::default(),
            unnatural: true,
            deliberate: false,
            uptime_ms: None,
            stranded: Vec::new(),
            log_tail: None,
            restarts: 0,
            death_id: marker.death_id.clone(),
            by,
            tag: None,
            lossy: false,
            argv_cut: false,
            at: time::now(),
        };
        if let Ok(said) = Record::parse(&marker.line) {
            record.argv = said.decode_at("argv").ok().flatten();
            record.tag = said.str("tag").map(|tag| tag.into_owned());
            record.lossy = said.bool("lossy").unwrap_or(false);
            record.argv_cut = said.bool("argv_cut").unwrap_or(false);
        }
        record
    }

    /// Adds the end of the log: whole lines, at most 4 KiB, none of them older than `from` bytes.
    pub fn with_log(&mut self, log: &Path, from: u64) {
        if let Ok(bytes) = last_bytes(log, from) {
            let (text, any) = lossy(&bytes);
            self.log_tail = Some(text);
            self.lossy |= any;
        }
    }
}

/// The record of a breaker that has tripped, `type: give_up`.
#[derive(Clone, Debug, Serialize)]
pub struct GiveUpRecord {
    v: u8,
    r#type: &'static str,
    argv: Option<Vec<String>>,
    restarts: u32,
    last_exit: Exit,
    tag: Option<String>,
    lossy: bool,
    argv_cut: bool,
    at: String,
}

impl GiveUpRecord {
    /// After the death `last` and so many restarts in a row, of which the last has ended, or
    /// failed, like this.
    pub fn after(last: &ExitRecord, restarts: u32, last_exit: Exit) -> GiveUpRecord {
        GiveUpRecord {
            v: 1,
            r#type: "give_up",
            argv: last.argv.clone(),
            restarts,
            last_exit,
            tag: last.tag.clone(),
            lossy: last.lossy,
            argv_cut: last.argv_cut,
            at: time::now(),
        }
    }
}

/// Who has outlived a process.
#[derive(Debug, Default)]
pub struct Left {
    /// Members of its group or session.
    pub members: Vec<Handle>,
    /// Other descendants of it, in sessions of their own, where they are known: they have been
    /// given to this process when their parents ended.
    pub strays: Vec<Handle>,
}

impl Left {
    /// Looks for what `leader` has left. While it has not been collected, the number is its own;
    /// later it may have been handed out again, and then whoever has it, with all of theirs, is
    /// left out.
    pub fn by(leader: Pid, here: &Here) -> Left {
        let Ok(table) = Table::read(&mut Reader::new()) else {
            return Left::default();
        };
        let own = table.get(leader);
        if own.is_some_and(|entry| !entry.state.is_zombie()) {
            return Left::default();
        }
        let number = leader.get();
        let is_member = |entry: &Entry| entry.pgid == number || entry.sid == number;
        let live = |entry: &&Entry| entry.pid != leader && !entry.state.is_zombie();
        let entries = table.entries().iter();
        let members = entries.filter(live).filter(|entry| is_member(entry));
        // Orphans of the leader can only have been given to its own parent. What an earlier run has
        // left is older than this run.
        let child = own.filter(|own| own.ppid == Pid::own().get());
        let adopted = child.map(|own| {
            let children = table.entries().iter().filter(|entry| {
                entry.ppid == Pid::own().get() && entry.pid != leader && entry.start >= own.start
            });
            let mut pids: Vec<Pid> = children.map(|entry| entry.pid).collect();
            pids.extend(table.descendants(&pids));
            pids
        });
        let adopted = adopted.into_iter().flatten();
        let strays = adopted.filter_map(|pid| table.get(pid));
        let open = |entry: &Entry| here.open(entry.pid).ok();
        Left {
            members: members.filter_map(open).collect(),
            strays: strays
                .filter(live)
                .filter(|entry| !is_member(entry))
                .filter_map(open)
                .collect(),
        }
    }

    /// All of them, by number and identity.
    pub fn named(&self) -> Vec<Named> {
        let all = self.members.iter().chain(&self.strays);
        all.map(|handle| Named {
            pid: handle.pid(),
            ident: handle.ident().clone(),
        })
        .collect()
    }
}

/// Whole milliseconds.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
