//! `--path`: a path exists, or is gone.

use std::path::PathBuf;
use std::time::Instant;

use records::{text, time};
use rustix::io::Errno;
use serde::Serialize;

use super::points::Points;
use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;

/// Paths that are waited for.
pub struct Paths {
    /// Those of which it has not happened yet.
    pending: Vec<PathBuf>,
    /// How many there were.
    all: u64,
    gone: bool,
    /// Nothing has been looked at yet.
    is_new: bool,
    points: Points,
}

#[derive(Serialize)]
struct Event {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    path: String,
    state: &'static str,
    at: String,
    lossy: bool,
    argv_cut: bool,
}

impl Paths {
    /// Waits until each of `paths` exists, or, with `gone`, does not; or only looks `once`.
    pub fn new(mut paths: Vec<PathBuf>, gone: bool, once: bool) -> Paths {
        let mut seen = std::collections::HashSet::new();
        paths.retain(|path| seen.insert(path.clone()));
        Paths {
            all: paths.len() as u64,
            pending: paths,
            gone,
            is_new: true,
            points: Points::new(once),
        }
    }
}

impl Source for Paths {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        if !self.points.is_stale() {
            return Turn::Idle;
        }
        // What has happened already needs no watch.
        let has_happened = |path: &&PathBuf| exists(path) == Ok(Some(!self.gone));
        let lacks = intake.lacks().unwrap_or(self.all);
        let enough =
            self.is_new && self.pending.iter().filter(has_happened).count() as u64 >= lacks;
        if std::mem::take(&mut self.is_new) && enough {
            // Unless not all of that is what is awaited.
            self.points.look_again();
        } else {
            self.points.begin();
            for path in &self.pending {
                self.points.arm(path);
            }
            self.points.end();
        }
        intake.armed();
        let mut error = None;
        let gone = self.gone;
        self.pending.retain(|path| {
            if intake.is_satisfied() {
                return true;
            }
            match exists(path) {
                Ok(Some(exists)) if exists != gone => {
                    intake.record(&event(path, gone));
                    false
                }
                Ok(_) => true,
                Err(errno) => {
                    error = Some(format!("{}: {errno}", path.display()));
                    true
                }
            }
        });
        match error {
            Some(why) if !intake.is_satisfied() => Turn::failed(End::SourceError, why),
            _ if self.pending.is_empty() => Turn::done(intake.after_all(self.all)),
            _ => Turn::Idle,
        }
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        self.points.wakers(wakers);
    }

    fn due(&self) -> Option<Instant> {
        self.points.due()
    }

    fn look_again(&mut self) {
        self.points.look_again();
    }

    fn wind_down(&mut self) {
        self.points.release();
    }

    fn leave(&mut self) {
        self.points.leave();
    }
}

/// Whether `path` leads to something, links followed, as `test -e` sees it; `None` where that
/// cannot be told now.
///
/// # Errors
/// It can never be told: no such path can exist.
fn exists(path: &std::path::Path) -> Result<Option<bool>, Errno> {
    match rustix::fs::stat(path) {
        Ok(_) => Ok(Some(true)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Some(false)),
        Err(errno @ (Errno::NAMETOOLONG | Errno::INVAL)) => Err(errno),
        Err(_) => Ok(None),
    }
}

fn event(path: &std::path::Path, gone: bool) -> Event {
    let (path, lossy) = text::lossy(path.as_os_str().as_encoded_bytes());
    Event {
        v: 1,
        r#type: "event",
        source: "path",
        path,
        state: if gone { "gone" } else { "exists" },
        at: time::now(),
        lossy,
        argv_cut: false,
    }
}
