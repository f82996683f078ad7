//! The process table, against another reader of it and while it changes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use process::{Entry, Here, Pid, Reader, Table};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use crate::support::{Sub, ident, sleeper};

/// All processes, without their threads, as sysinfo sees them.
fn sysinfo() -> System {
    let everything = ProcessRefreshKind::nothing()
        .without_tasks()
        .with_cmd(UpdateKind::Always)
        .with_cwd(UpdateKind::Always)
        .with_exe(UpdateKind::Always)
        .with_environ(UpdateKind::Always)
        .with_user(UpdateKind::Always);
    let mut system = sysinfo::System::new().unwrap();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, everything);
    system
}

fn table() -> Table {
    Table::read(&mut Reader::new()).unwrap()
}

#[test]
fn another_reader_sees_the_same_processes() {
    let child = sleeper();
    let before = table();
    let theirs = sysinfo();
    let after = table();
    // Who was there before and after was there in between.
    let lasting = |entry: &&Entry| {
        let later = after.get(entry.pid);
        later.is_some_and(|later| later.start == entry.start && later.ppid == entry.ppid)
    };
    let lasting: Vec<&Entry> = before.entries().iter().filter(lasting).collect();
    assert!(lasting.iter().any(|entry| entry.pid == child.pid()));
    for entry in &lasting {
        let pid = sysinfo::Pid::from_u32(entry.pid.get().unsigned_abs());
        let Some(other) = theirs.process(pid) else {
            panic!("only we see {entry:?}");
        };
        let parent = other.parent().map_or(0, |pid| pid.as_u32());
        assert_eq!(entry.ppid.unsigned_abs(), parent, "{entry:?}");
    }
    // And nobody else was there who was still there afterwards.
    let later = table();
    let ours: HashSet<Pid> = after.entries().iter().map(|entry| entry.pid).collect();
    for pid in theirs.processes().keys() {
        let pid = Pid::new(pid.as_u32().into()).unwrap();
        assert!(ours.contains(&pid) || later.get(pid).is_none(), "{pid}");
    }
}

#[test]
fn another_reader_reads_the_same_of_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let odd = OsStr::from_bytes(b"\xff not utf-8");
    let child = Sub::start(
        Command::new("sh")
            .args(["-c", "read line", "a b", "new\nline", "\u{e9}"])
            .arg(odd)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("ODD", odd)
            .current_dir(&cwd)
            .stdin(Stdio::piped()),
    );
    let pid = child.pid();
    let theirs = sysinfo();
    let other = theirs.process(sysinfo::Pid::from_u32(child.id())).unwrap();
    let mut reader = Reader::new();

    let argv = reader.argv(pid).unwrap();
    let bytes = |words: &[std::ffi::OsString]| -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    assert_eq!(argv, bytes(other.cmd()));
    assert_eq!(argv.last().unwrap(), odd.as_bytes());
    let raw: Vec<u8> = argv
        .iter()
        .flat_map(|word| [&word[..], &[0]].concat())
        .collect();
    assert_eq!(reader.raw_argv(pid).unwrap(), raw);
    assert_eq!(reader.environ(pid).unwrap(), bytes(other.environ()));
    assert_eq!(reader.cwd(pid).unwrap(), cwd);
    assert_eq!(Some(&*reader.cwd(pid).unwrap()), other.cwd());
    assert_eq!(Some(&*reader.exe(pid).unwrap()), other.exe());
    let uid = **other.effective_user_id().unwrap();
    assert_eq!(reader.uid(pid).unwrap(), uid);

    // The whole table and a single look agree.
    let table = table();
    let (whole, single) = (table.get(pid).unwrap(), reader.entry(pid).unwrap());
    assert_eq!((whole.pid, whole.ppid), (single.pid, single.ppid));
    assert_eq!((whole.pgid, whole.sid), (single.pgid, single.sid));
    assert_eq!((whole.start, &whole.name), (single.start, &single.name));
    assert_eq!(single.name, b"sh");
}

#[test]
fn an_argument_may_be_long_or_empty() {
    let long = "x".repeat(100_000);
    let script = ["-c", "read line", "", "a", "", &long, ""];
    let child = Sub::start(Command::new("sh").args(script).stdin(Stdio::piped()));
    let argv = Reader::new().argv(child.pid()).unwrap();
    let expected: Vec<&[u8]> = ["sh"]
        .iter()
        .chain(&script)
        .map(|word| word.as_bytes())
        .collect();
    assert!(argv == expected, "{} arguments", argv.len());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_in_the_middle_of_exec_has_arguments() {
    let mut reader = Reader::new();
    for _ in 0..300 {
        // The start comes back before the new program has its arguments.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::new(child.id().into()).unwrap();
        let environ = reader.environ(pid).unwrap();
        let argv = reader.argv(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(argv, [b"cat"]);
        assert_eq!(environ.len(), std::env::vars_os().count());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn descriptors_are_what_the_kernel_calls_them() {
    let (end, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("open")).unwrap();
    let child = Sub::start(
        Command::new("sh")
            .args(["-c", "kill -STOP $$"])
            .stdin(file)
            .stdout(Stdio::piped())
            .stderr(std::os::fd::OwnedFd::from(end)),
    );
    let open = Reader::new().descriptors(child.pid()).unwrap();
    let target = |fd: i32| {
        let found = open.iter().find(|(number, _)| *number == fd);
        found.unwrap().1.to_str().unwrap().to_owned()
    };
    let path = folder.path().canonicalize().unwrap().join("open");
    assert_eq!(target(0), path.to_str().unwrap());
    assert!(target(1).starts_with("pipe:["), "{}", target(1));
    assert!(target(2).starts_with("socket:["), "{}", target(2));
}

#[test]
fn a_table_that_changes_while_it_is_read() {
    const CHILDREN: usize = 2000;
    let here = Here::new();
    let steady: Vec<Sub> = (0..5).map(|_| sleeper()).collect();
    let idents: Vec<_> = steady.iter().map(|c| ident(&here, c.pid())).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for child in &steady {
        entries.push(table().get(child.pid()).unwrap().clone());
    }
    let started = AtomicUsize::new(0);
    let mut readings = 0;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while started.fetch_add(1, Ordering::SeqCst) < CHILDREN {
                    let mut child = Command::new("/bin/true").spawn().unwrap();
                    assert!(child.wait().unwrap().success());
                }
            });
        }
        while started.load(Ordering::SeqCst) < CHILDREN {
            readings += 1;
            let table = table();
            let mut numbers = HashSet::new();
            for entry in table.entries() {
                assert!(numbers.insert(entry.pid), "{} twice", entry.pid);
                assert!(entry.ppid >= 0 && entry.threads >= 0, "{entry:?}");
                // The children that come and go are whole: whoever is called `true` and is ours
                // is in our group and session.
                if entry.name == b"true" && entry.ppid == Pid::own().get() {
                    let own = table.get(Pid::own()).unwrap();
                    assert_eq!((entry.pgid, entry.sid), (own.pgid, own.sid));
                    assert!(entry.start >= own.start);
                    assert!(!table.ancestors(entry.pid).contains(&entry.pid));
                }
            }
            for ((child, then), identity) in steady.iter().zip(&entries).zip(&idents) {
                let now = table.get(child.pid()).unwrap();
                assert_eq!((now.start, now.ppid), (then.start, then.ppid));
                assert_eq!((now.pgid, &now.name), (then.pgid, &then.name));
                assert_eq!(here.find(identity, None).word(), "same");
            }
        }
    });
    assert!(readings > 0);
}
