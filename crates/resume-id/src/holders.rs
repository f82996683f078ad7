//! Who holds the session, as `holder-scan` saw it, and whether that look is worth believing.

use std::time::{Duration, SystemTime};

use records::Record;
use serde_json::value::RawValue;

use agents::Shape;

/// How far ahead of ours a scan's clock may be before it counts as one of another day.
const SKEW: Duration = Duration::from_secs(5);

/// What is known of the holders.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nobody asked for them to be considered.
    NotConsulted,
    /// They were to be considered, and nobody looked well enough; the text says why.
    Bad(String),
    /// Everybody who holds it.
    Good {
        /// The scan's own verdict, for the record.
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
    /// Who holds other ids: a scan can be about several.
    elsewhere: Vec<(String, Class)>,
    scans: Vec<Scan>,
    broken: Option<String>,
}

#[derive(Debug)]
struct Scan {
    ids: Vec<String>,
    verdict: String,
    worth: Result<(), String>,
}

impl<'a> Reading<'a> {
    /// A look at the id `id`.
    pub fn new(id: &'a str, shape: &'a Shape) -> Reading<'a> {
        Reading {
            id,
            shape,
            holders: Vec::new(),
            elsewhere: Vec::new(),
            scans: Vec::new(),
            broken: None,
        }
    }

    /// Takes a record: a `holder`, a `scan`, or something else, which is left aside.
    pub fn hear(&mut self, record: &Record<'_>, here: &Place, now: SystemTime, max_age: Duration) {
        match record.kind().as_deref() {
            Some("holder") if holds(record) => match record.str("session_id") {
                Some(id) if !self.shape.same(&id, self.id) => {
                    self.elsewhere.push((id.into_owned(), class(record)));
                }
                _ => match holder(record) {
                    Ok(holder) => self.holders.push(holder),
                    Err(why) => self.lose(why),
                },
            },
            Some("scan") => {
                let ids = ids(record);
                if ids.iter().any(|id| self.shape.same(id, self.id)) {
                    self.scans.push(Scan {
                        ids,
                        verdict: record.str("verdict").unwrap_or_default().into_owned(),
                        worth: worth(record, here, now, max_age),
                    });
                }
            }
            _ => {}
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
        let verdict = match self.holders.is_empty() {
            true => "free".to_owned(),
            false => last.verdict.clone(),
        };
        Look::Good {
            verdict,
            holders: self.holders,
        }
    }

    /// Whether the holders that were told of are such as the scan's verdict speaks of, which is
    /// about all of its ids.
    fn bears_out(&self, scan: &Scan) -> bool {
        let held = |classes: &[Class]| {
            let mut ours = self.holders.iter();
            let mut others = self.elsewhere.iter();
            ours.any(|holder| classes.contains(&holder.class))
                || others.any(|(id, class)| {
                    let mut ids = scan.ids.iter();
                    classes.contains(class) && ids.any(|one| self.shape.same(one, id))
                })
        };
        match scan.verdict.as_str() {
            "free" => !held(&[Class::Own, Class::Foreign]),
            "own" | "own_active" => held(&[Class::Own, Class::Itself]),
            "foreign" => held(&[Class::Foreign, Class::Itself]),
            _ => false,
        }
    }
}

/// Whether the record is of a process that holds an id: not one that merely names it, and not one
/// that has left it since its launch.
fn holds(record: &Record<'_>) -> bool {
    if matches!(
        record.str("class").as_deref(),
        Some("mention" | "descendant")
    ) {
        return false;
    }
    let evidence = record.array("evidence").unwrap_or_default();
    let is_past = |piece: &&RawValue| {
        let piece = Record::parse(piece.get().as_bytes());
        piece.is_ok_and(|piece| piece.bool("superseded") == Some(true))
    };
    evidence.is_empty() || !evidence.iter().all(is_past)
}

fn class(record: &Record<'_>) -> Class {
    match record.str("class").as_deref() {
        Some("own") => Class::Own,
        Some("self") => Class::Itself,
        _ => Class::Foreign,
    }
}

/// The session ids that a scan is about.
fn ids(record: &Record<'_>) -> Vec<String> {
    let ids = record.array("what.session_id").unwrap_or_default();
    let ids = ids.into_iter().filter_map(records::record::string);
    ids.map(|id| id.into_owned()).collect()
}

fn holder(record: &Record<'_>) -> Result<Holder, String> {
    let pid = record.u64("pid").ok_or("a holder without a pid")?;
    let ms = record.u64("youngest_child_ms").or(record.u64("age_ms"));
    let text = record.text().trim().to_owned();
    Ok(Holder {
        pid,
        root: record.u64("root").unwrap_or(pid),
        class: class(record),
        shared: record.bool("shared") == Some(true),
        active: record.bool("active") != Some(false),
        settled_for: ms.map(Duration::from_millis),
        record: RawValue::from_string(text).map_err(|error| error.to_string())?,
    })
}

/// Whether a scan about this id says anything about here and now.
fn worth(
    record: &Record<'_>,
    here: &Place,
    now: SystemTime,
    max_age: Duration,
) -> Result<(), String> {
    if record.bool("complete") != Some(true) {
        return Err("holder-scan could not look at everything".to_owned());
    }
    let host = record.str("host");
    let same = |key: &str, ours: &Option<String>| match (record.get(key), ours) {
        (Some(theirs), Some(ours)) => theirs.get().trim_matches('"') == ours,
        // Where there are no such things, the host stands for them.
        (_, None) => !record.has(key) && host.as_deref() == Some(here.host.as_str()),
        (None, Some(_)) => false,
    };
    if !same("boot_id", &here.boot_id) {
        return Err("the scan is of another boot or another machine".to_owned());
    }
    if !same("pidns", &here.pidns) {
        return Err("the scan is of another pid namespace".to_owned());
    }
    let at = record
        .str("at")
        .and_then(|at| records::time::parse(&at).ok());
    let at = at.ok_or("the scan does not say when it was made")?;
    let too_old = now.duration_since(at).is_ok_and(|age| age > max_age);
    let ahead = at.duration_since(now).is_ok_and(|ahead| ahead > SKEW);
    if too_old || ahead {
        return Err(format!(
            "the scan is not of now: it was made at {}",
            records::time::rfc3339_millis(at)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
