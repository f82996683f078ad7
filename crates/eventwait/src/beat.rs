//! `--beat`: a file whose time says that the wait is turning.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use records::files::{self, Access};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

/// A file that is touched again and again by the wait loop, and by nothing else.
pub struct Beat {
    path: PathBuf,
    every: Duration,
    file: File,
    due: Instant,
}

impl Beat {
    /// Makes the file, or takes the one that is there, and touches it.
    ///
    /// # Errors
    /// It cannot be made, or must not be trusted.
    pub fn start(path: PathBuf, every: Duration) -> io::Result<Beat> {
        let file = files::open_trusted(&path, Access::ReadWrite)?;
        let due = Instant::now();
        let mut beat = Beat {
            path,
            every,
            file,
            due,
        };
        beat.touch()?;
        Ok(beat)
    }

    /// Touches the file if it is time.
    ///
    /// # Errors
    /// The file was removed or replaced, and what is there now cannot be used.
    pub fn turn(&mut self) -> io::Result<()> {
        if Instant::now() < self.due {
            return Ok(());
        }
        self.touch()
    }

    fn touch(&mut self) -> io::Result<()> {
        self.due = Instant::now() + self.every;
        if !files::still_named(&self.path, &self.file)? {
            self.file = files::open_trusted(&self.path, Access::ReadWrite)?;
        }
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let both = Timestamps {
            last_access: now,
            last_modification: now,
        };
        Ok(rustix::fs::futimens(&self.file, &both)?)
    }

    /// When it will be time again.
    pub fn due(&self) -> Instant {
        self.due
    }
}
