//! What is a process, and which one, by what Linux says of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use process::{Comparison, Here, Identity, LstartIdentity, Pid, Reader, Sight, Standing, State};

use crate::inside::copy_program;
use crate::support::{PATIENCE, Sub, ident, sleeper, until};

#[test]
fn a_thread_id_is_no_pid() {
    let here = Here::new();
    let (tell, told) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        let _ = released.recv();
    });
    let tid = told.recv().unwrap().as_raw_nonzero().get();
    assert!(fs::exists(format!("/proc/{tid}/stat")).unwrap());
    let tid = Pid::new(tid.into()).unwrap();
    assert_ne!(tid, Pid::own());
    assert!(matches!(here.look(tid), Sight::Absent));
    let Identity::Linux(mut own) = ident(&here, Pid::own()) else {
        panic!("an identity of Linux");
    };
    own.pid = tid;
    let standing = here.find(&Identity::Linux(own), None);
    assert!(matches!(standing, Standing::Gone { zombie: false }));
    assert!(!Reader::new().pids().unwrap().contains(&tid));
    drop(release);
    thread.join().unwrap();
}

#[test]
fn a_child_of_any_thread_is_a_child() {
    let of_this = sleeper();
    let of_another = std::thread::spawn(sleeper).join().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(sleeper()).unwrap();
        let _ = released.recv();
    });
    let of_a_living_one = told.recv().unwrap();
    let mut reader = Reader::new();
    // Other tests start and end theirs meanwhile.
    let mut children = None;
    until("no change while they are listed", || {
        children = reader.children(Pid::own());
        children.is_some()
    });
    let children = children.unwrap();
    for child in [&of_this, &of_another, &of_a_living_one] {
        assert!(children.contains(&child.pid()), "{children:?}");
    }
    assert_eq!(reader.children(of_this.pid()), Some(Vec::new()));
    drop(release);
    thread.join().unwrap();
}

/// The kernel goes on in its list of children where it was, by their number, when an earlier one is
/// gone meanwhile.
#[test]
fn no_child_is_left_out_while_earlier_ones_go() {
    const EACH: usize = 300;
    // The first children go one by one, each at a byte; the later ones stay until the end.
    let script = format!(
        "for each in {{1..{EACH}}}; do (read -rn1) <&0 & done
         for each in {{1..{EACH}}}; do (read -r) <&2 & echo $!; done
         while :; do wait -n; done"
    );
    let (until_the_end, _end) = std::io::pipe().unwrap();
    let mut shell = Sub::start(
        Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(until_the_end),
    );
    let said = BufReader::new(shell.stdout.take().unwrap());
    let staying: Vec<Pid> = said
        .lines()
        .take(EACH)
        .map(|line| Pid::new(line.unwrap().parse().unwrap()).unwrap())
        .collect();
    let parent = shell.pid();
    let mut input = shell.stdin.take().unwrap();
    let mut reader = Reader::new();
    let deadline = Instant::now() + PATIENCE;
    for gone in 1..=EACH {
        input.write_all(b"x").unwrap();
        // Without a pause: one is to go while they are listed.
        loop {
            assert!(Instant::now() < deadline, "none is gone");
            let Some(children) = reader.children(parent) else {
                continue;
            };
            let missing = staying.iter().filter(|pid| !children.contains(pid));
            assert_eq!(missing.count(), 0, "of {}", children.len());
            if children.len() <= 2 * EACH - gone {
                break;
            }
        }
    }
}

#[test]
fn names_with_blanks_parentheses_and_newlines() {
    let here = Here::new();
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "a b",
        ") S 1 1 1",
        "x) R 1\n1 1 (",
        "((",
        "new\nline",
        "\u{e9}\u{fc}",
    ] {
        let program = folder.path().join(name);
        copy_program(Path::new("/bin/cat"), &program);
        let child = Sub::start(Command::new(&program).stdin(Stdio::piped()));
        let entry = Reader::new().entry(child.pid()).unwrap();
        assert_eq!(entry.name, name.as_bytes(), "{name:?}");
        assert_eq!(entry.ppid, Pid::own().get());
        assert!(
            entry.state == State('S') || entry.state == State('R') || entry.state == State('D')
        );
        let identity = ident(&here, child.pid());
        assert_eq!(here.find(&identity, None).word(), "same");
    }
}

#[test]
fn what_a_record_says_against_what_is() {
    let here = Here::new();
    let child = sleeper();
    let Identity::Linux(now) = ident(&here, child.pid()) else {
        panic!("an identity of Linux");
    };
    let find = |change: &dyn Fn(&mut process::LinuxIdentity), host| {
        let mut recorded = now.clone();
        change(&mut recorded);
        here.find(&Identity::Linux(recorded), host)
    };
    let why = |standing| match standing {
        Standing::Unknown(why) => why,
        other => panic!("unknown, not {other:?}"),
    };
    let host = here.host().to_owned();
    let elsewhere = format!("not-{host}");

    // Another boot: gone, unless it was another machine's.
    let other_boot = |id: &mut process::LinuxIdentity| id.boot = uuid::Uuid::from_u128(7);
    for known in [None, Some(&*host)] {
        let standing = find(&other_boot, known);
        assert!(matches!(standing, Standing::Gone { zombie: false }));
    }
    assert!(why(find(&other_boot, Some(&elsewhere))).contains(&elsewhere));
    // In the same boot the name of the machine says nothing: containers have their own.
    assert_eq!(find(&|_| (), Some(&elsewhere)).word(), "same");

    // Another pid namespace: the number says nothing here.
    assert!(why(find(&|id| id.pidns += 1, None)).contains("namespace"));

    // Two inodes decide.
    if let Some(inode) = now.inode {
        let other = find(&|id| id.inode = Some(inode + 1), None);
        assert!(matches!(other, Standing::Recycled(Some(Identity::Linux(found))) if found == now));
        assert_eq!(find(&|id| id.ticks += 1, None).word(), "same");
        assert_eq!(find(&|id| id.timens = Some(7), None).word(), "same");
    }
    // Without both, the ticks, within one time namespace.
    assert_eq!(find(&|id| id.inode = None, None).word(), "same");
    let ticks = |id: &mut process::LinuxIdentity| (id.inode, id.ticks) = (None, id.ticks - 1);
    assert_eq!(find(&ticks, None).word(), "recycled");
    let timens = |id: &mut process::LinuxIdentity| (id.inode, id.timens) = (None, Some(7));
    assert!(why(find(&timens, None)).contains("time namespace"));

    let foreign: Identity = format!("macos:{}:0:{}:1.000000:0", now.boot, now.pid)
        .parse()
        .unwrap();
    assert_eq!(here.find(&foreign, None).word(), "unknown");
}

/// What ps(1) says, in seconds since the epoch.
fn lstart(pid: Pid) -> u64 {
    let output = |command: &mut Command| {
        let output = command.env("TZ", "UTC0").env("LC_ALL", "C").output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let started = output(Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]));
    let seconds = output(Command::new("date").args(["-d", started.trim(), "+%s"]));
    seconds.trim().parse().unwrap()
}

#[test]
fn a_start_time_of_ps_is_good_to_a_second() {
    let here = Here::new();
    let mut child = sleeper();
    let seconds = lstart(child.pid());
    let recorded = |seconds: u64| {
        Identity::Lstart(LstartIdentity {
            host: here.host().to_owned(),
            pid: child.pid(),
            seconds,
        })
    };
    for seconds in [seconds - 1, seconds, seconds + 1] {
        let standing = here.find(&recorded(seconds), None);
        let Standing::Same(handle) = standing else {
            panic!("{seconds}: {standing:?}");
        };
        assert!(!handle.ident().is_exact());
        let exact = ident(&here, child.pid());
        assert!(matches!(
            exact.compare(handle.ident()),
            Comparison::Unknown(_)
        ));
    }
    for seconds in [seconds - 3, seconds + 3] {
        assert_eq!(here.find(&recorded(seconds), None).word(), "recycled");
    }
    let elsewhere = Identity::Lstart(LstartIdentity {
        host: format!("not-{}", here.host()),
        pid: child.pid(),
        seconds,
    });
    assert_eq!(here.find(&elsewhere, None).word(), "unknown");
    let recorded = recorded(seconds);
    child.end_uncollected();
    assert!(matches!(
        here.find(&recorded, None),
        Standing::Gone { zombie: true }
    ));
    child.end();
    assert!(matches!(
        here.find(&recorded, None),
        Standing::Gone { zombie: false }
    ));
}
