//! `--cmd`: a command succeeds. For what gives no notice of itself.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use process::Interrupts;
use process::Signal;
use process::helper::Helper;
use records::text::Argv;
use records::time;
use serde::Serialize;

use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;

/// How long the end waits for a command that got KILL, so that none is left.
const DEATH: Duration = Duration::from_millis(40);

/// A command that is run until it exits 0.
pub struct Cmd {
    argv: Vec<OsString>,
    /// Whether the arguments are shown whole.
    full_argv: bool,
    every: Duration,
    running: Option<Helper>,
    /// Wakes when a child has ended.
    children: Interrupts,
    due: Option<Instant>,
    runs: u64,
    succeeded: bool,
}

#[derive(Serialize)]
struct Event {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    argv: Vec<String>,
    runs: u64,
    at: String,
    lossy: bool,
    argv_cut: bool,
}

impl Cmd {
    /// Runs `argv`, with a pause of `every` after each run.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(argv: Vec<OsString>, full_argv: bool, every: Duration) -> std::io::Result<Cmd> {
        // Before it is caught: a signal that is ignored stays so.
        process::helper::expect_children();
        Ok(Cmd {
            argv,
            full_argv,
            every,
            running: None,
            children: Interrupts::catch(&[Signal::SIGCHLD])?,
            due: Some(Instant::now()),
            runs: 0,
            succeeded: false,
        })
    }

    fn start(&mut self) -> Result<(), String> {
        let stderr = || {
            let stderr = std::io::stderr().as_fd().try_clone_to_owned();
            stderr
                .map(Stdio::from)
                .map_err(|error| format!("standard error: {error}"))
        };
        let helper = Helper::start_words(&self.argv, [Stdio::null(), stderr()?, stderr()?]);
        self.running = Some(helper.map_err(|error| {
            let name = self.argv.first().map(|word| word.to_string_lossy());
            let name = name.unwrap_or_default();
            let is_line = error.kind() == ErrorKind::NotFound && name.contains(' ');
            let hint = match is_line {
                true => " (no shell is run: each word of the command is an argument of its own)",
                false => "",
            };
            format!("cannot run {name}: {error}{hint}")
        })?);
        self.runs += 1;
        self.due = None;
        Ok(())
    }

    fn event(&self) -> Event {
        let words = self.argv.iter().map(|word| word.as_encoded_bytes());
        let argv = Argv::new(words, self.full_argv);
        Event {
            v: 1,
            r#type: "event",
            source: "cmd",
            argv: argv.argv,
            runs: self.runs,
            at: time::now(),
            lossy: argv.lossy,
            argv_cut: argv.argv_cut,
        }
    }
}

impl Source for Cmd {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        intake.armed();
        self.children.take();
        if self.succeeded {
            return Turn::Idle;
        }
        if let Some(running) = &mut self.running {
            match running.has_ended() {
                Ok(false) => return Turn::Idle,
                Ok(true) => {}
                Err(error) => return Turn::failed(End::SourceError, error.to_string()),
            }
            // What the command left running in its group goes with it.
            let status = running.end();
            self.running = None;
            match status {
                Ok(status) if status.success() => {
                    self.succeeded = true;
                    intake.record(&self.event());
                    return Turn::done(intake.after_all(1));
                }
                Ok(_) => self.due = Instant::now().checked_add(self.every),
                Err(error) => return Turn::failed(End::SourceError, error.to_string()),
            }
        }
        if self.due.is_some_and(|due| due <= Instant::now())
            && let Err(why) = self.start()
        {
            return Turn::failed(End::SourceError, why);
        }
        Turn::Idle
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        wakers.readable(self.children.wake());
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn look_again(&mut self) {
        if self.due.is_some() {
            self.due = Some(Instant::now());
        }
    }

    fn is_looking(&self) -> bool {
        self.running.is_some()
    }

    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end_soon(DEATH);
        }
    }
}
