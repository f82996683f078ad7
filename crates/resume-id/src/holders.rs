//! Who holds the session, as `holder-scan` saw it, and whether that look is worth believing.

mod scan;

use std::time::{Duration, SystemTime};

use records::Record;
use serde_json::value::RawValue;

use agents::Shape;
use process::Pid;

use scan::Scan;

/// What is known of the holders.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nobody asked for them to be considered.
    NotConsulted,
    /// They were to be considered, and nobody looked well enough; the text says why.
    Bad(String),
    /// Everybody who holds it.
    Good {
        /// What the scan says of this id, for the record.
        verdict: String,
        /// The holders' records.
        holders: Vec<Holder>,
    },
}

/// One process that holds the id.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Its process.
    pub pid: u64,
    /// The root of its tree.
    pub root: u64,
    /// Whose it is.
    pub class: Class,
    /// Whether it is a daemon that serves several sessions.
    pub shared: bool,
    /// Whether an agent lives in the tree.
    pub active: bool,
    /// Since when the youngest child, or else the agent itself, has lived; `None` if unknown.
    pub settled_for: Option<Duration>,
    /// The flag before the id, where nothing but the process's own arguments says that it holds it.
    pub flag: Option<String>,
    /// The record, as it was read.
    pub record: Box<RawValue>,
}

/// Whose a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The caller's: every criterion that was given fits.
    Own,
    /// The caller itself, an ancestor of it, or its pipeline.
    Itself,
    /// Somebody else's; when in doubt, foreign.
    Foreign,
}

/// This machine, as scans name it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The boot id, where there is one to be read.
    pub boot_id: Option<String>,
    /// The pid namespace.
    pub pidns: Option<String>,
    /// The host's name.
    pub host: String,
}

/// Reads the records of a look, one after the other.
#[derive(Debug)]
pub struct Reading<'a> {
    id: &'a str,
    shape: &'a Shape,
    holders: Vec<Holder>,
    /// Who was told of besides. A scan can be about several ids; and where it asks for something else
    /// as well, a directory or a file, who holds that has no id.
    elsewhere: Vec<(Option<String>, Class)>,
    /// How many records of holders there were.
    told: u64,
    scans: Vec<Scan>,
    broken: Option<String>,
}

impl<'a> Reading<'a> {
    /// A look at the id `id`.
    pub fn new(id: &'a str, shape: &'a Shape) -> Reading<'a> {
        Reading {
            id,
            shape,
            holders: Vec::new(),
            elsewhere: Vec::new(),
            told: 0,
            scans: Vec::new(),
            broken: None,
        }
    }

    /// Takes a record: a `holder`, a `scan`, or something else, which is left aside.
    pub fn hear(&mut self, record: &Record<'_>, here: &Place, now: SystemTime, max_age: Duration) {
        match record.kind().as_deref() {
            Some("holder") => self.hear_holder(record),
            Some("scan") => {
                let scan = Scan::read(record, here, now, max_age);
                if scan.ids.iter().any(|id| self.shape.same(id, self.id)) {
                    self.scans.push(scan);
                }
            }
            _ => {}
        }
    }

    fn hear_holder(&mut self, record: &Record<'_>) {
        if names_only(record) {
            return;
        }
        self.told += 1;
        if has_left(record) {
            return;
        }
        match record.str("session_id") {
            Some(id) if self.shape.same(&id, self.id) => match holder(record) {
                Ok(holder) => self.holders.push(holder),
                Err(why) => self.lose(why),
            },
            id => {
                let id = id.map(|id| id.into_owned());
                self.elsewhere.push((id, class(record)));
            }
        }
    }

    /// Something that may have been a holder could not be read.
    pub fn lose(&mut self, why: String) {
        self.broken.get_or_insert(why);
    }

    /// What the look comes to: without a scan of this id nobody has looked.
    pub fn finish(self) -> Look {
        if let Some(why) = self.broken {
            return Look::Bad(format!("what holder-scan said is damaged: {why}"));
        }
        let Some(last) = self.scans.last() else {
            return Look::Bad(
                "nobody looked who holds this session: there is no scan record about its id"
                    .to_owned(),
            );
        };
        if let Some(why) = self.scans.iter().find_map(|scan| scan.worth.as_ref().err()) {
            return Look::Bad(why.clone());
        }
        if let Some(scan) = self.scans.iter().find(|scan| !self.bears_out(scan)) {
            return Look::Bad(format!(
                "the scan's verdict '{}' does not go with the holders that came before it",
                scan.verdict
            ));
        }
        // One that is missing may be a holder of this id.
        if let Some(scan) = self.scans.iter().find(|scan| scan.holders > self.told) {
            return Look::Bad(format!(
                "the scan counts {} holders, of which {} came",
                scan.holders, self.told
            ));
        }
        Look::Good {
            verdict: self.verdict(&last.verdict),
            holders: self.holders,
        }
    }

    /// The verdict on this id: that of the scan, which is `all`, speaks of everything that was asked.
    fn verdict(&self, all: &str) -> String {
        let has = |class| self.holders.iter().any(|holder| holder.class == class);
        let own = |holder: &Holder| holder.class == Class::Own && holder.active;
        if self.holders.is_empty() {
            "free"
        } else if self.elsewhere.is_empty() || has(Class::Itself) {
            // Only the scan knows whether the caller itself counts as its own or as foreign.
            all
        } else if has(Class::Foreign) {
            "foreign"
        } else if self.holders.iter().any(own) {
            "own_active"
        } else {
            "own"
        }
        .to_owned()
    }

    /// Whether the holders that were told of are such as the scan's verdict speaks of, which is
    /// about all that it asks for.
    fn bears_out(&self, scan: &Scan) -> bool {
        let held = |classes: &[Class]| {
            let mut ours = self.holders.iter();
            let mut others = self.elsewhere.iter();
            ours.any(|holder| classes.contains(&holder.class))
                || others.any(|(id, class)| classes.contains(class) && self.is_asked(scan, id))
        };
        match scan.verdict.as_str() {
            "free" => !held(&[Class::Own, Class::Foreign]),
            "own" | "own_active" => held(&[Class::Own, Class::Itself]),
            "foreign" => held(&[Class::Foreign, Class::Itself]),
            _ => false,
        }
    }

    /// Whether the scan asks for what a holder of another id, or of none, holds.
    fn is_asked(&self, scan: &Scan, id: &Option<String>) -> bool {
        match id {
            Some(id) => scan.ids.iter().any(|one| self.shape.same(one, id)),
            None => scan.asks_more,
        }
    }
}

/// Whether the record is of a process that merely names an id, or was started by one that holds it.
fn names_only(record: &Record<'_>) -> bool {
    let class = record.str("class");
    matches!(class.as_deref(), Some("mention" | "descendant"))
}

/// Whether the process has gone on to another id since its launch.
fn has_left(record: &Record<'_>) -> bool {
    let evidence = record.array("evidence").unwrap_or_default();
    let is_past = |piece: &&RawValue| {
        let piece = Record::parse(piece.get().as_bytes());
        piece.is_ok_and(|piece| piece.bool("superseded") == Some(true))
    };
    !evidence.is_empty() && evidence.iter().all(is_past)
}

fn class(record: &Record<'_>) -> Class {
    match record.str("class").as_deref() {
        Some("own") => Class::Own,
        Some("self") => Class::Itself,
        _ => Class::Foreign,
    }
}

/// A record with a number that no process can have is refused: nobody knows whom it means. So is one
/// of ours with that of init, which nobody ends.
fn holder(record: &Record<'_>) -> Result<Holder, String> {
    let class = class(record);
    let number = |key: &str| match record.u64(key) {
        Some(pid) if is_pid(pid, class) => Ok(pid),
        _ => Err(format!("a holder with a bad {key}")),
    };
    let pid = match record.has("pid") {
        true => number("pid")?,
        false => return Err("a holder without a pid".to_owned()),
    };
    let root = match record.has("root") {
        true => number("root")?,
        false => pid,
    };
    let ms = record.u64("youngest_child_ms").or(record.u64("age_ms"));
    let text = record.text().trim().to_owned();
    Ok(Holder {
        pid,
        root,
        class,
        shared: record.bool("shared") == Some(true),
        active: record.bool("active") != Some(false),
        settled_for: ms.map(Duration::from_millis),
        flag: flag(record),
        record: RawValue::from_string(text).map_err(|error| error.to_string())?,
    })
}

/// A lock, an open transcript or a table of the agent's shows an agent. Arguments may be those of a
/// script.
fn flag(record: &Record<'_>) -> Option<String> {
    let mut flag = None;
    for piece in record.array("evidence")? {
        let piece = Record::parse(piece.get().as_bytes()).ok()?;
        match piece.str("by").as_deref() {
            Some("lock" | "fd" | "registry") => return None,
            Some("argv") => flag = flag.or(piece.str("flag").map(|flag| flag.into_owned())),
            _ => {}
        }
    }
    flag
}

fn is_pid(number: u64, class: Class) -> bool {
    let pid = i64::try_from(number).ok().and_then(Pid::new);
    pid.is_some_and(|pid| class != Class::Own || !pid.is_init())
}

#[cfg(test)]
mod tests;
