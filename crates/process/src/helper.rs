//! A helper command that can neither hang nor stay behind.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Pid as RawPid;

use crate::{exec, sys};

/// How often one looks whether a group that got KILL is dead.
const STEP: Duration = Duration::from_millis(1);

/// What a helper did.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it said on stderr.
    pub stderr: Vec<u8>,
}

/// Why a helper gave no answer.
#[derive(Debug)]
pub enum HelperError {
    /// It could not be started or read.
    Io(io::Error),
    /// It was still running at the deadline, and was ended with its group.
    Deadline,
    /// It printed more than it may, and was ended with its group.
    TooMuch,
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelperError::Io(error) => error.fmt(f),
            HelperError::Deadline => f.write_str("no answer before the deadline"),
            HelperError::TooMuch => f.write_str("it printed more than it should"),
        }
    }
}

impl std::error::Error for HelperError {}

impl From<io::Error> for HelperError {
    fn from(error: io::Error) -> HelperError {
        HelperError::Io(error)
    }
}

/// Runs `command` to its end, with no input, and collects what it prints.
///
/// It runs in a process group of its own, which gets KILL at `deadline`, or once it has printed
/// more than `limit` bytes on either stream, and in any case before this returns; on Linux the
/// kernel ends it too if this process is killed. A helper that starts a session of its own
/// escapes all of that.
///
/// # Errors
///
/// It could not be started, was too slow, or printed too much.
pub fn run(command: &mut Command, deadline: Instant, limit: usize) -> Result<Ran, HelperError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut helper = Helper::start(command)?;
    let (Some(mut out), Some(mut err)) = (helper.stdout(), helper.stderr()) else {
        return Err(io::Error::other("the helper's output is not connected").into());
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        let mut fds = Vec::with_capacity(2);
        if out_open {
            fds.push(PollFd::new(&out, PollFlags::IN));
        }
        if err_open {
            fds.push(PollFd::new(&err, PollFlags::IN));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(HelperError::Deadline);
        }
        // A grandchild may hold the streams open after the helper itself has ended.
        let step = left.min(Duration::from_millis(100));
        let timeout = rustix::time::Timespec::try_from(step).ok();
        let ready = match poll(&mut fds, timeout.as_ref()) {
            Ok(ready) => ready,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(io::Error::from(errno).into()),
        };
        if ready == 0 && helper.has_ended()? {
            break;
        }
        let readable: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut readable = readable.into_iter();
        if out_open && readable.next() == Some(true) {
            out_open = take(&mut out, &mut stdout, limit)?;
        }
        if err_open && readable.next() == Some(true) {
            err_open = take(&mut err, &mut stderr, limit)?;
        }
    }
    while !helper.has_ended()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(HelperError::Deadline);
        }
        std::thread::sleep(left.min(Duration::from_millis(2)));
    }
    Ok(Ran {
        status: helper.end()?,
        stdout,
        stderr,
    })
}

/// Reads once; `false` at the end of the stream.
fn take(from: &mut impl Read, into: &mut Vec<u8>, limit: usize) -> Result<bool, HelperError> {
    let mut chunk = [0; 16 * 1024];
    let length = from.read(&mut chunk)?;
    into.extend_from_slice(chunk.get(..length).unwrap_or_default());
    if into.len() > limit {
        return Err(HelperError::TooMuch);
    }
    Ok(length > 0)
}

/// The leaders of the groups of all helpers that have not been collected, so that their numbers
/// are their own.
static LEADERS: Mutex<Vec<RawPid>> = Mutex::new(Vec::new());

fn leaders() -> MutexGuard<'static, Vec<RawPid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raw_pid(child: &Child) -> RawPid {
    RawPid::from_child(child)
}

/// KILL to the groups of all helpers, in whatever thread they are waited for: for a process that is
/// about to end by a signal. The lock that this needs is waited for up to `limit`, since a program
/// on a mount that hangs can hold up a start for ever.
pub fn kill_all(limit: Duration) {
    let until = Instant::now() + limit;
    let leaders = loop {
        match LEADERS.try_lock() {
            Ok(leaders) => break leaders,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return,
        }
    };
    for &leader in leaders.iter() {
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
}

/// A helper that runs beside its caller, as the leader of a process group of its own. The whole
/// group is dead when this is dropped; on Linux the kernel ends the helper too if this process is
/// killed.
#[derive(Debug)]
pub struct Helper(Option<Child>);

/// Has the status of a child kept until it is asked for. With SIGCHLD ignored, as some callers leave
/// it, the kernel would collect the child itself, and its status with it, wait(2).
pub fn expect_children() {
    if sys::is_ignored(Signal::SIGCHLD) {
        sys::default_signal(Signal::SIGCHLD);
    }
}

impl Helper {
    /// Starts `command`, whose streams the caller has connected, with all signals at their default.
    ///
    /// # Errors
    ///
    /// Those of fork(2) and execve(2).
    pub fn start(command: &mut Command) -> io::Result<Helper> {
        Helper::start_by(command, None)
    }

    /// Starts a user's command `argv` with these streams: standard input, output and error. A file
    /// without an executable format is not run, where [`Helper::start`], like execvp(3), would give
    /// it to a shell.
    ///
    /// # Errors
    ///
    /// Those of fork(2) and execve(2), and of `argv` if that is no command.
    pub fn start_words(argv: &[OsString], streams: [Stdio; 3]) -> io::Result<Helper> {
        let exec = exec::prepare(argv)?;
        let mut command = Command::new(argv.first().ok_or(io::ErrorKind::InvalidInput)?);
        let [stdin, stdout, stderr] = streams;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        Helper::start_by(&mut command, Some(exec))
    }

    fn start_by(command: &mut Command, exec: Option<sys::Exec>) -> io::Result<Helper> {
        expect_children();
        command.process_group(0);
        sys::as_helper(command, exec);
        // Under the lock, so that none is started and unknown when all are to be ended.
        let mut leaders = leaders();
        let child = command.spawn()?;
        leaders.push(raw_pid(&child));
        Ok(Helper(Some(child)))
    }

    /// Its standard input, if that is a pipe and has not been taken before.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.0.as_mut()?.stdin.take()
    }

    /// Its standard output, if that is a pipe and has not been taken before.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.as_mut()?.stdout.take()
    }

    /// Its standard error, if that is a pipe and has not been taken before.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.0.as_mut()?.stderr.take()
    }

    /// Whether the helper itself has ended. It is not collected, so its number stays its own.
    ///
    /// # Errors
    ///
    /// Those of waitid(2).
    pub fn has_ended(&self) -> io::Result<bool> {
        self.0.as_ref().map_or(Ok(true), sys::has_ended)
    }

    /// KILL to the helper's group, or to what is left of it, without waiting for that.
    pub fn kill(&self) {
        if let Some(child) = &self.0 {
            sys::kill_group_of(child);
        }
    }

    /// KILL to the helper's group, and waits `patience` at most until everybody in it is dead.
    pub fn end_soon(mut self, patience: Duration) {
        let Some(group) = self.0.as_ref().map(raw_pid) else {
            return;
        };
        self.kill();
        let until = Instant::now() + patience;
        while self.has_ended().is_ok_and(|ended| !ended) {
            if Instant::now() >= until {
                // It sleeps in the kernel and dies when it wakes. To collect it would be to wait.
                std::mem::forget(self);
                return;
            }
            std::thread::sleep(STEP);
        }
        let _ = self.end();
        while Instant::now() < until && has_live_member(group) {
            std::thread::sleep(STEP);
        }
    }

    /// KILL to what is left of the group, then the helper's status.
    ///
    /// # Errors
    ///
    /// It was collected before.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        match self.0.take() {
            Some(mut child) => {
                sys::kill_group_of(&child);
                // Before it is collected and its number may come to mean another group.
                leaders().retain(|leader| *leader != raw_pid(&child));
                child.wait()
            }
            None => Err(io::Error::other("the helper was collected before")),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.0.is_some() {
            let _ = self.end();
        }
    }
}

/// Whether anybody in `group` lives. Those who have not been collected by whoever adopted them are
/// dead all the same.
fn has_live_member(group: RawPid) -> bool {
    // The table is long, and mostly nobody is left at all.
    if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    let mut reader = sys::Reader::new();
    let pids = reader.pids().unwrap_or_default();
    pids.into_iter().any(|pid| match reader.entry(pid) {
        Ok(entry) => entry.pgid == group.as_raw_pid() && !reader.is_dead(&entry),
        Err(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn within(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn both_streams_and_the_status() {
        let ran = run(
            &mut sh("cat; echo out; echo err >&2; exit 7"),
            within(20),
            100,
        )
        .unwrap();
        assert_eq!(ran.status.code(), Some(7));
        assert_eq!(
            (&ran.stdout[..], &ran.stderr[..]),
            (&b"out\n"[..], &b"err\n"[..])
        );
    }

    #[test]
    fn words_are_looked_up_and_never_given_to_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        // Written by another process: what this one has open for writing, a child of another test
        // has for a moment too, and then it cannot be executed.
        let mut copy = std::process::Command::new("sh");
        copy.args(["-c", "echo exit 0 >\"$1\"", "sh"]).arg(&plain);
        assert!(copy.status().unwrap().success());
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let streams = || [Stdio::null(), Stdio::null(), Stdio::null()];
        let start = |words: &[&OsStr]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Helper::start_words(&words, streams())
        };
        let code = |error: io::Result<Helper>| error.unwrap_err().raw_os_error();
        assert_eq!(
            code(start(&[plain.as_ref()])),
            Some(Errno::ACCESS.raw_os_error())
        );
        std::fs::set_permissions(&plain, executable).unwrap();
        assert_eq!(
            code(start(&[plain.as_ref()])),
            Some(Errno::NOEXEC.raw_os_error())
        );
        let missing = OsStr::new("no-such-program");
        assert_eq!(code(start(&[missing])), Some(Errno::NOENT.raw_os_error()));
        assert!(start(&[]).is_err());
        let script = [
            "sh",
            "-c",
            "test \"$1\" = 'a b' && test -n \"$PATH\" && exit 7",
            "x",
            "a b",
        ];
        let mut helper = start(&script.map(OsStr::new)).unwrap();
        let until = within(20);
        while !helper.has_ended().unwrap() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(helper.end().unwrap().code(), Some(7));
    }

    #[test]
    fn a_helper_that_hangs_is_ended_with_its_group() {
        let started = Instant::now();
        let deadline = started + Duration::from_millis(300);
        let error = run(&mut sh("trap '' TERM; sleep 61 & sleep 62"), deadline, 100).unwrap_err();
        assert!(matches!(error, HelperError::Deadline), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_group_is_ended_to_its_last_member() {
        let streams = [Stdio::null(), Stdio::null(), Stdio::null()];
        let words = ["sh", "-c", "sleep 64 & sleep 65 & exec sleep 66"].map(OsString::from);
        let helper = Helper::start_words(&words, streams).unwrap();
        let group = raw_pid(helper.0.as_ref().unwrap());
        helper.end_soon(Duration::from_secs(20));
        assert!(!has_live_member(group));
    }

    #[test]
    fn a_grandchild_that_keeps_the_streams_does_not_hold_it_up() {
        let ran = run(&mut sh("echo $$; sleep 63 &"), within(20), 100).unwrap();
        assert!(ran.status.success());
        // The whole group is dead: no live process has the helper's group any more.
        let group: i32 = String::from_utf8(ran.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let mut reader = crate::Reader::new();
        let mut alive = || {
            reader.pids().unwrap().into_iter().any(
                |pid| matches!(reader.entry(pid), Ok(e) if e.pgid == group && !e.state.is_zombie()),
            )
        };
        // KILL takes a moment.
        let deadline = within(20);
        while alive() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn output_is_bounded() {
        let error = run(&mut sh("while :; do echo yes; done"), within(20), 1000).unwrap_err();
        assert!(matches!(error, HelperError::TooMuch), "{error}");
    }
}
