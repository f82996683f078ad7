//! Having a path watched: every place at which something may happen to it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use process::Watch;
use rustix::fs::{FileType, Stat};

use super::Wakers;
use crate::tell;

/// How often one looks where the kernel gives no notice, as on a network mount.
const UNNOTIFIED: Duration = Duration::from_millis(40);

/// How often one looks all the same where it does: a mount point that is mounted over tells
/// nobody.
const NOTIFIED: Duration = Duration::from_secs(1);

/// How often one looks in the last moments before the deadline.
const AT_LAST: Duration = Duration::from_millis(2);

/// As many symbolic links as Linux follows in one path, path_resolution(7).
const MAX_LINKS: usize = 40;

/// A watch on paths, with looking now and then where it does not reach.
pub struct Points {
    watch: Option<Watch>,
    /// No watch could be had, which has been said.
    refused: bool,
    /// Whether a notice comes of everything in this round.
    notified: bool,
    due: Option<Instant>,
    stale: bool,
    /// Nothing is watched any more.
    released: bool,
}

impl Points {
    /// Watches nothing yet. One who wants to look `once` needs no watch at all.
    pub fn new(once: bool) -> Points {
        Points {
            watch: None,
            refused: false,
            notified: true,
            due: None,
            stale: true,
            released: once,
        }
    }

    /// Whether it is time to arm the watch again and to look: something has happened, or time
    /// has passed. What has happened is forgotten.
    pub fn is_stale(&mut self) -> bool {
        let happened = match &mut self.watch {
            Some(watch) => watch.take().unwrap_or(true),
            None => false,
        };
        let due = self.due.is_some_and(|due| due <= Instant::now());
        std::mem::take(&mut self.stale) || happened || due
    }

    /// It is time to look, whatever happened.
    pub fn look_again(&mut self) {
        self.stale = true;
    }

    /// Watches nothing from now on, and looks all the more often. The kernel may need a while to
    /// take a watch down, on a busy machine some tenths of a second; where the end of a process
    /// waits for that (see [`Watch`]), it has to be over by the deadline.
    pub fn release(&mut self) {
        self.released = true;
        self.stale = true;
        if let Some(watch) = self.watch.take() {
            // Without a thread it is closed here and now.
            let _ = std::thread::Builder::new().spawn(move || drop(watch));
        }
    }

    /// Watches nothing any more. Unlike the end of the process, this need not wait for the kernel:
    /// see [`Watch`].
    pub fn leave(&mut self) {
        self.watch = None;
    }

    /// When it will be time to look if nothing happens before.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Begins a round of arming. Where no watch can be had that is said, once, and looking has to
    /// do until there is one: those of waits that have ended come free a little later.
    pub fn begin(&mut self) {
        if self.watch.is_none() && !self.released {
            match Watch::new() {
                Ok(watch) => self.watch = Some(watch),
                Err(error) if !self.refused => {
                    self.refused = true;
                    tell(&format!(
                        "no notice of changes to files, looking every {UNNOTIFIED:?} instead: {error}"
                    ));
                }
                Err(_) => {}
            }
        }
        self.notified = self.watch.is_some();
        if let Some(watch) = &mut self.watch {
            watch.begin();
        }
    }

    /// Has every step on the way to `path` watched, links in the way and their targets too, up to
    /// the first that is missing. Each is watched before the next is looked for, so that a change
    /// of any of them is noticed or already seen.
    pub fn arm(&mut self, path: &Path) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        let mut folder = match path.is_absolute() {
            true => PathBuf::from("/"),
            false => match std::env::current_dir() {
                Ok(folder) => folder,
                Err(_) => {
                    self.notified = false;
                    return;
                }
            },
        };
        let mut steps = steps_of(path);
        let mut links = 0;
        while let Some(step) = steps.pop_front() {
            if step == ".." {
                folder.pop();
                continue;
            }
            let watched = watch.entry(&folder, &step).is_ok() && Watch::is_notified(&folder);
            self.notified &= watched;
            let here = folder.join(&step);
            match rustix::fs::lstat(&here).map(|stat| kind(&stat)) {
                Ok(FileType::Symlink) if links < MAX_LINKS => {
                    links += 1;
                    let Ok(target) = std::fs::read_link(&here) else {
                        return;
                    };
                    if target.is_absolute() {
                        folder = PathBuf::from("/");
                    }
                    let mut onwards = steps_of(&target);
                    onwards.append(&mut steps);
                    steps = onwards;
                }
                Ok(FileType::Directory) => folder = here,
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Has the open file `file` watched.
    pub fn arm_content(&mut self, file: BorrowedFd<'_>, path: &Path) {
        if let Some(watch) = &mut self.watch {
            self.notified &= watch.content(file).is_ok() && Watch::is_notified(path);
        }
    }

    /// Ends the round: the state is to be looked at now.
    pub fn end(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.end();
        }
        let pause = match (self.released, self.notified) {
            (true, _) => AT_LAST,
            (false, true) => NOTIFIED,
            (false, false) => UNNOTIFIED,
        };
        self.due = Instant::now().checked_add(pause);
    }

    /// What wakes it.
    pub fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        if let Some(watch) = &self.watch {
            wakers.readable(watch.as_fd());
        }
    }
}

/// The file type in a stat.
pub fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn steps_of(path: &Path) -> VecDeque<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(step).collect()
}
