//! What a `scan` record says: what was asked, and whether the answer is about here and now.

use std::time::{Duration, SystemTime};

use records::Record;

use super::Place;

/// How far ahead of ours a scan's clock may be before it counts as one of another day.
const SKEW: Duration = Duration::from_secs(5);

/// A scan.
#[derive(Debug)]
pub(super) struct Scan {
    /// The session ids that it is about.
    pub(super) ids: Vec<String>,
    /// Whether it asks for other things as well: a directory, a file, a port.
    pub(super) asks_more: bool,
    /// What it comes to, whatever was asked.
    pub(super) verdict: String,
    /// How many holders it has found.
    pub(super) holders: u64,
    /// Whether it is worth believing, or why not.
    pub(super) worth: Result<(), String>,
}

impl Scan {
    pub(super) fn read(
        record: &Record<'_>,
        here: &Place,
        now: SystemTime,
        max_age: Duration,
    ) -> Scan {
        Scan {
            ids: ids(record),
            asks_more: asks_more(record),
            verdict: record.str("verdict").unwrap_or_default().into_owned(),
            holders: record.u64("holders").unwrap_or_default(),
            worth: worth(record, here, now, max_age),
        }
    }
}

fn ids(record: &Record<'_>) -> Vec<String> {
    let ids = record.array("what.session_id").unwrap_or_default();
    let ids = ids.into_iter().filter_map(records::record::string);
    ids.map(|id| id.into_owned()).collect()
}

/// Whatever else `what` has, but for the user that limits it, asks for more.
fn asks_more(record: &Record<'_>) -> bool {
    let Some(what) = record.get("what") else {
        return false;
    };
    Record::parse(what.get().as_bytes()).is_ok_and(|what| {
        let mut keys = what.members().iter().map(|member| &*member.key);
        keys.any(|key| !matches!(key, "session_id" | "uid"))
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
    // Also where that is the caller: an agent of root's holds a session as well as one of ours.
    if record.has("what.uid") {
        return Err(
            "the scan was limited to one user (--uid), and nobody looked at the others".to_owned(),
        );
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
