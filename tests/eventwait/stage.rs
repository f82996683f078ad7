//! What these tests share: a wait under observation.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use crate::support::{Sandbox, lives, until};

/// By this variable in their environment the processes of one wait are found.
const MARK: &str = "EVENTWAIT_TEST_MARK";

/// How long after its deadline a wait may still be there.
pub const AFTER: Duration = Duration::from_millis(100);

/// A wait with these arguments, in the sandbox's folder, with no input, that ends with a summary
/// on stderr.
pub fn command(sandbox: &Sandbox, words: &[&str]) -> Command {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventwait"));
    command
        .arg("--summary")
        .args(words)
        .current_dir(sandbox.path(""))
        .env(MARK, format!("{}-{count}", std::process::id()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A wait that is going on.
pub struct Waiting {
    pub child: Child,
    mark: String,
    started: Instant,
    noise: Noise,
    birth: Duration,
    stdout: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<Vec<u8>>>,
}

/// A wait that is over.
#[derive(Debug)]
pub struct Waited {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The record of its summary; `null` where it said none.
    pub summary: Value,
    pub took: Duration,
    /// When it was gone.
    pub gone: Instant,
    /// How late this machine was meanwhile with things that were due.
    pub noise: Duration,
}

/// Runs a wait to its end.
#[track_caller]
pub fn wait(sandbox: &Sandbox, words: &[&str]) -> Waited {
    start(command(sandbox, words)).finish()
}

/// Starts a wait. What it prints to pipes is read all the time.
#[track_caller]
pub fn start(mut command: Command) -> Waiting {
    let mark = command
        .get_envs()
        .find(|(key, _)| *key == MARK)
        .and_then(|(_, value)| value)
        .expect("a mark");
    let mark = format!("{MARK}={}", mark.to_str().unwrap());
    let birth = a_process();
    let noise = Noise::start();
    let started = Instant::now();
    let mut child = command.spawn().unwrap();
    noise.pid.store(child.id(), Ordering::Relaxed);
    let stdout = Arc::new(Mutex::new(Vec::new()));
    let mut readers = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        let seen = Arc::clone(&stdout);
        readers.push(std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut chunk) {
                seen.lock().unwrap().extend_from_slice(&chunk[..length]);
            }
            Vec::new()
        }));
    }
    if let Some(mut pipe) = child.stderr.take() {
        readers.push(std::thread::spawn(move || {
            let mut all = Vec::new();
            pipe.read_to_end(&mut all).unwrap();
            all
        }));
    }
    Waiting {
        child,
        mark,
        started,
        noise,
        birth,
        stdout,
        readers,
    }
}

/// How long a process takes from its start to its end that does nothing.
fn a_process() -> Duration {
    let started = Instant::now();
    assert!(Command::new("/bin/true").status().unwrap().success());
    started.elapsed()
}

impl Waiting {
    /// What it has printed so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.stdout.lock().unwrap()).into_owned()
    }

    /// Waits until it has printed this.
    #[track_caller]
    pub fn until_printed(&self, text: &str) {
        until(text, || self.printed().contains(text));
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits until it is a zombie, and says how long its leader and this thread were ready to run
    /// meanwhile and had no processor to run on.
    fn until_dead(&self) -> Duration {
        let pid = rustix::process::Pid::from_child(&self.child);
        let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let before = Scheduled::of("/proc/thread-self").queued;
        waitid(WaitId::Pid(pid), dead).unwrap();
        let own = Scheduled::of("/proc/thread-self").queued - before;
        own + Scheduled::of(&format!("/proc/{}", self.pid())).queued
    }

    /// Waits for its end, and makes sure that nothing of it is left.
    #[track_caller]
    pub fn finish(mut self) -> Waited {
        let queued = self.until_dead();
        let gone = Instant::now();
        let status = self.child.wait().unwrap();
        let took = gone - self.started;
        let noise = self.noise.stop() + self.birth.max(a_process()) * 2 + queued;
        let left = marked(&self.mark);
        assert!(left.is_empty(), "left behind: {left:?}");
        let texts: Vec<Vec<u8>> = self
            .readers
            .drain(..)
            .map(|one| one.join().unwrap())
            .collect();
        let stderr = String::from_utf8_lossy(&texts.concat()).into_owned();
        let summary = stderr
            .lines()
            .find(|line| line.contains(r#""type":"wait""#));
        Waited {
            status,
            stdout: self.printed(),
            summary: summary.map_or(Value::Null, |line| serde_json::from_str(line).unwrap()),
            stderr,
            took,
            gone,
            noise,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Waited {
    /// Asserts how it ended: its exit status and the word in its summary.
    #[track_caller]
    pub fn ended(&self, code: i32, end: &str) -> &Waited {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert_eq!(self.summary["end"], end, "{self:?}");
        self
    }

    /// Asserts that it died by this signal, and what its summary says.
    #[track_caller]
    pub fn died(&self, signal: i32, end: &str) -> &Waited {
        assert_eq!(self.status.signal(), Some(signal), "{self:?}");
        assert_eq!(self.summary["end"], end, "{self:?}");
        self
    }

    /// Asserts that it was gone this long after its start, plus 100 ms, plus what the machine was
    /// late with other things at the same time.
    #[track_caller]
    pub fn gone_at(&self, deadline: Duration) -> &Waited {
        assert!(self.took <= deadline + AFTER + self.noise, "{self:?}");
        self
    }

    /// Asserts that it was gone this long after a moment, plus what the machine was late with.
    #[track_caller]
    pub fn gone_after(&self, moment: Instant, within: Duration) -> &Waited {
        let after = self.gone.saturating_duration_since(moment);
        assert!(after <= within + self.noise, "{after:?}: {self:?}");
        self
    }

    /// Asserts that it did not give up before.
    #[track_caller]
    pub fn not_before(&self, deadline: Duration) -> &Waited {
        assert!(self.took >= deadline, "{self:?}");
        self
    }

    /// The records on stdout.
    pub fn records(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap();
        self.stdout.lines().map(parse).collect()
    }

    /// A number of the summary.
    #[track_caller]
    pub fn count(&self, key: &str) -> u64 {
        self.summary[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {self:?}"))
    }
}

/// The live processes with this in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|one| one == mark.as_bytes())
            && lives(*pid)
    })
    .collect()
}

/// What proc_pid_schedstat(5) says of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scheduled {
    /// How long it has run.
    ran: Duration,
    /// How long it was ready to run and had no processor to run on.
    queued: Duration,
}

impl Scheduled {
    /// Of the one with this folder; nothing if it is gone.
    fn of(folder: &str) -> Scheduled {
        let said = std::fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let mut nanos = said
            .split(' ')
            .map(|nanos| nanos.parse().unwrap_or_default());
        let mut next = || Duration::from_nanos(nanos.next().unwrap_or_default());
        Scheduled {
            ran: next(),
            queued: next(),
        }
    }
}

/// The state of the process or thread with this folder, proc_pid_stat(5).
fn state_in(folder: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("{folder}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Of a process whose leader has exited, the threads that are left, if all of them are ready to
/// run: it is gone as soon as each has had a processor. How long they stood in line for one is
/// known to nobody afterwards.
fn last_threads(pid: i32) -> Option<Vec<(i32, Scheduled)>> {
    if state_in(&format!("/proc/{pid}")) != Some('Z') {
        return None;
    }
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let tasks = tasks.flatten();
    let tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    let others = tasks.filter(|task| *task != pid);
    let ready = others.map(|task| {
        let folder = format!("/proc/{pid}/task/{task}");
        (state_in(&folder) == Some('R')).then(|| (task, Scheduled::of(&folder)))
    });
    ready.collect()
}

/// How long the last threads of a process may be seen ready, and nothing be said of their running,
/// while they do run: the kernel says it at each tick, and has 100 of them in a second at least.
const TICK: Duration = Duration::from_millis(10);

/// How long the last threads of a process stand in line for a processor, as far as one who looks at
/// them can be sure of it.
#[derive(Default)]
struct Line {
    now: Option<(Instant, Vec<(i32, Scheduled)>)>,
    stood: Duration,
    before: Duration,
}

impl Line {
    fn look(&mut self, threads: Option<Vec<(i32, Scheduled)>>) {
        match (&self.now, threads.filter(|left| !left.is_empty())) {
            (Some((since, same)), Some(threads)) if *same == threads => {
                self.stood = since.elapsed().saturating_sub(TICK);
            }
            (_, threads) => {
                self.before += std::mem::take(&mut self.stood);
                self.now = threads.map(|threads| (Instant::now(), threads));
            }
        }
    }
}

/// How late the machine is: a thread that sleeps for a moment, again and again, and sees by how
/// much it overslept, and how long the last threads of a process stand in line for a processor.
struct Noise {
    stop: Arc<AtomicBool>,
    pid: Arc<AtomicU32>,
    thread: Option<JoinHandle<(Duration, Duration)>>,
}

impl Noise {
    fn start() -> Noise {
        let stop = Arc::new(AtomicBool::new(false));
        let pid = Arc::new(AtomicU32::new(0));
        let (seen, of) = (Arc::clone(&stop), Arc::clone(&pid));
        let thread = std::thread::spawn(move || {
            let step = Duration::from_millis(2);
            let (mut late, mut line) = (Duration::ZERO, Line::default());
            while !seen.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                std::thread::sleep(step);
                late = late.max(asleep.elapsed().saturating_sub(step));
                let pid = i32::try_from(of.load(Ordering::Relaxed)).unwrap();
                line.look((pid != 0).then(|| last_threads(pid)).flatten());
            }
            (late, line.before + line.stood)
        });
        Noise {
            stop,
            pid,
            thread: Some(thread),
        }
    }

    /// The start of a process, its last steps and this look at it can each be late.
    fn stop(&mut self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().map(|thread| thread.join().unwrap());
        let (late, queued) = seen.unwrap_or_default();
        late * 4 + queued
    }
}

/// Does something after a moment, in a thread of its own.
pub fn later(moment: u64, what: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(moment));
        what();
    })
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The CPU time that the test's ended children have used so far; for one child at a time.
pub fn cpu_of(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
