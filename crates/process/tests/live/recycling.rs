//! Numbers that come to mean another process, on purpose: inside a pid namespace of one's own the
//! next number can be chosen.

use std::fs;
use std::time::Instant;

use process::{Delivery, Here, Identity, LinuxIdentity, Pid, Reader, Signal, Standing};

use crate::inside::{PRIVATE, within};
use crate::support::{PATIENCE, Sub, alive, ident, sleeper};

/// A new process with the number `pid`, which must be free.
pub fn start_as(pid: Pid) -> Sub {
    let deadline = Instant::now() + PATIENCE;
    loop {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid.get() - 1).to_string()).unwrap();
        let child = sleeper();
        if child.pid() == pid {
            return child;
        }
        assert!(Instant::now() < deadline, "{pid} is never the next");
    }
}

fn linux(identity: Identity) -> LinuxIdentity {
    match identity {
        Identity::Linux(linux) => linux,
        other => panic!("an identity of Linux, not {other}"),
    }
}

#[test]
fn a_recycled_pid_is_another_process() {
    if !within("recycling::a_recycled_pid_is_another_process", &PRIVATE) {
        return;
    }
    let here = Here::new();
    let old = sleeper();
    let pid = old.pid();
    let handle = alive(&here, pid);
    let recorded = handle.ident().clone();
    old.end();
    // Into another tick, so that the ticks alone tell the two apart as well.
    let ended = ticks_now();
    crate::support::until("the next tick", || ticks_now() > ended);
    let mut new = start_as(pid);

    let standing = here.find(&recorded, None);
    let Standing::Recycled(Some(found)) = standing else {
        panic!("recycled, not {standing:?}");
    };
    assert_eq!(found, ident(&here, pid));
    let without_inode = LinuxIdentity {
        inode: None,
        ..linux(recorded)
    };
    let standing = here.find(&Identity::Linux(without_inode), None);
    assert_eq!(standing.word(), "recycled");

    // The old handle is of the old process for good.
    assert!(handle.has_ended());
    assert!(handle.current().is_none());
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Gone);
    assert!(new.lives());

    // A zombie with the number is not the recorded process, which is gone all the same.
    new.end_uncollected();
    let standing = here.find(handle.ident(), None);
    assert!(matches!(standing, Standing::Gone { zombie: false }));
}

/// The start time that a process would have now.
fn ticks_now() -> u64 {
    linux(ident(&Here::new(), sleeper().pid())).ticks
}

#[test]
fn a_pid_recycled_within_one_tick() {
    if !within("recycling::a_pid_recycled_within_one_tick", &PRIVATE) {
        return;
    }
    let here = Here::new();
    if ident(&here, Pid::own()).inode().is_none() {
        eprintln!("not tested: this kernel has no pidfs");
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let old = sleeper();
        let handle = alive(&here, old.pid());
        let recorded = linux(handle.ident().clone());
        let pid = old.pid();
        old.end();
        let mut new = start_as(pid);
        let now = linux(ident(&here, pid));
        if now.ticks == recorded.ticks {
            assert_eq!((now.boot, now.pid), (recorded.boot, recorded.pid));
            let standing = here.find(&Identity::Linux(recorded), None);
            assert_eq!(standing.word(), "recycled");
            // Neither is it taken for the old one by what only compares ticks.
            assert!(handle.current().is_none());
            assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Gone);
            assert!(new.lives());
            return;
        }
        assert!(Instant::now() < deadline, "never twice in one tick");
    }
}

#[test]
fn many_lives_of_one_number_are_many_identities() {
    if !within(
        "recycling::many_lives_of_one_number_are_many_identities",
        &PRIVATE,
    ) {
        return;
    }
    let here = Here::new();
    let first = sleeper();
    let pid = first.pid();
    let mut seen = vec![ident(&here, pid)];
    first.end();
    for _ in 0..30 {
        let child = start_as(pid);
        let now = ident(&here, pid);
        assert_eq!(Reader::new().entry(pid).unwrap().pid, pid);
        if now.inode().is_some() {
            assert!(!seen.contains(&now), "{now} twice");
        }
        seen.push(now);
        child.end();
    }
    for recorded in &seen {
        assert_eq!(here.find(recorded, None).word(), "gone");
    }
}
