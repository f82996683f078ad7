//! Processes of other pid and time namespaces, and a `/proc` that is not one's own.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use process::{Comparison, Here, Identity, Pid, Reader, Sight, Standing, Table};

use crate::inside::{PRIVATE, told, within, within_told, works};
use crate::support::{PATIENCE, Sub, ident, sleeper};

/// A pid namespace of one's own, with the `/proc` of outside.
const FOREIGN_PROC: [&str; 4] = ["unshare", "-Urpf", "--kill-child", "--"];

#[test]
fn a_foreign_proc_makes_everything_unknown() {
    let name = "namespaces::a_foreign_proc_makes_everything_unknown";
    if !within(name, &FOREIGN_PROC) {
        return;
    }
    let here = Here::new();
    assert!(here.distrust().unwrap().contains("/proc"));
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let child_pid = Pid::new(child.id().into()).unwrap();
    for pid in [Pid::own(), child_pid, Pid::new(2).unwrap()] {
        let Sight::Unknown(why) = here.look(pid) else {
            panic!("{pid} is unknown");
        };
        assert!(why.contains("/proc"), "{why}");
        assert!(here.open(pid).is_err());
    }
    let boot = here.boot().unwrap();
    let other_boot = uuid::Uuid::from_u128(7);
    for recorded in [
        format!("linux:{boot}:{}:{}:1:2", here.space().unwrap(), child_pid),
        format!("linux:{boot}:{}:4194304:1:2", here.space().unwrap()),
        format!("linux:{other_boot}:4026531836:5:1:2"),
        format!("lstart:{}:0:{}:1764426381:0", here.host(), child_pid),
    ] {
        let recorded: Identity = recorded.parse().unwrap();
        let standing = here.find(&recorded, None);
        assert!(
            matches!(&standing, Standing::Unknown(why) if why.contains("/proc")),
            "{recorded}: {standing:?}"
        );
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_foreign_proc_with_the_same_number_is_not_believed() {
    let name = "namespaces::a_foreign_proc_with_the_same_number_is_not_believed";
    const GUESSED: &str = "PROCESS_TEST_GUESSED";
    let called = || {
        fs::read_link("/proc/self")
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    if std::env::var_os(GUESSED).is_some() {
        let here = Here::new();
        assert!(here.distrust().is_some());
        assert!(matches!(here.look(Pid::own()), Sight::Unknown(_)));
        // For the run that has started this one.
        println!("called {} and is {}", called(), Pid::own());
        return;
    }
    if !within(name, &FOREIGN_PROC) {
        return;
    }
    // Inside, the next number can be chosen; outside, it is guessed from the last one.
    let mut outside: i32 = called().parse().unwrap();
    let deadline = Instant::now() + PATIENCE;
    for distance in (0..6).cycle() {
        fs::write(
            "/proc/sys/kernel/ns_last_pid",
            (outside + distance).to_string(),
        )
        .unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(GUESSED, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, said) = said.split_once("called ").unwrap();
        let (called, rest) = said.split_once(" and is ").unwrap();
        if rest.lines().next() == Some(called) {
            return;
        }
        assert!(Instant::now() < deadline, "never the same number");
        outside = called.parse().unwrap();
    }
}

#[test]
fn a_proc_of_ones_own_is_believed() {
    let here = Here::new();
    assert_eq!(here.distrust(), None);
    let space = here.space().unwrap();
    if within_told(
        "namespaces::a_proc_of_ones_own_is_believed",
        &PRIVATE,
        &space,
    ) {
        assert_eq!(Pid::own().get(), 1);
        // Another pid namespace is another part of the word.
        assert_ne!(space, told());
    }
}

#[test]
fn one_process_seen_from_two_namespaces() {
    if !works(&PRIVATE) {
        return;
    }
    let here = Here::new();
    let launcher = PRIVATE.iter().skip(1);
    let script = "echo \"$(readlink /proc/self/ns/pid) $$\"; exec cat";
    let mut unshare = Sub::start(
        Command::new(PRIVATE[0])
            .args(launcher)
            .args(["sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped()),
    );
    let mut line = String::new();
    let mut said = std::io::BufReader::new(unshare.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    let (namespace, inside) = line.trim().split_once(' ').unwrap();
    let namespace = namespace
        .strip_prefix("pid:[")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap();

    // The same process by its number of here.
    let table = Table::read(&mut Reader::new()).unwrap();
    let &[outer] = &table.descendants(&[unshare.pid()])[..] else {
        panic!("unshare has one child");
    };
    let Identity::Linux(seen_here) = ident(&here, outer) else {
        panic!("an identity of Linux");
    };
    // As it would have written it itself.
    let mut seen_there = seen_here.clone();
    seen_there.pidns = namespace.parse().unwrap();
    seen_there.pid = Pid::new(inside.parse().unwrap()).unwrap();
    assert_ne!(seen_there.pidns, seen_here.pidns);
    assert_ne!(seen_there.pid, seen_here.pid);
    let compared = Identity::Linux(seen_here.clone()).compare(&Identity::Linux(seen_there.clone()));
    match seen_here.inode {
        Some(_) => assert_eq!(compared, Comparison::Same),
        None => assert!(matches!(compared, Comparison::Unknown(_))),
    }
    // Whether the number of there still lives cannot be told from here.
    let standing = here.find(&Identity::Linux(seen_there), None);
    assert!(matches!(standing, Standing::Unknown(why) if why.contains("pid namespace")));
}

#[test]
fn one_process_seen_from_two_time_namespaces() {
    const LATER: [&str; 6] = ["unshare", "-UrT", "--boottime", "100000", "-f", "--"];
    let name = "namespaces::one_process_seen_from_two_time_namespaces";
    let child = sleeper();
    let recorded = ident(&Here::new(), child.pid()).to_string();
    if !within_told(name, &LATER, &recorded) {
        assert!(!recorded.contains('+'), "{recorded}");
        return;
    }
    let here = Here::new();
    assert!(here.space().unwrap().contains('+'));
    let recorded: Identity = told().parse().unwrap();
    let Identity::Linux(now) = ident(&here, recorded.pid()) else {
        panic!("an identity of Linux");
    };
    let Identity::Linux(then) = &recorded else {
        panic!("an identity of Linux");
    };
    assert!(now.ticks > then.ticks, "the kernel shifts the ticks");
    assert_eq!(now.pidns, then.pidns);
    match then.inode {
        Some(_) => assert_eq!(here.find(&recorded, None).word(), "same"),
        None => assert_eq!(here.find(&recorded, None).word(), "unknown"),
    }
    let mut bare = then.clone();
    bare.inode = None;
    let standing = here.find(&Identity::Linux(bare), None);
    assert!(matches!(standing, Standing::Unknown(why) if why.contains("time namespace")));
}

#[test]
fn kernel_threads_are_told_by_their_flag() {
    // Only the initial pid namespace has any.
    let thread = Pid::new(2).unwrap();
    let is_kthreadd = fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n");
    if is_kthreadd {
        let mut reader = Reader::new();
        assert!(reader.entry(thread).unwrap().kernel_thread);
        assert_eq!(reader.argv(thread).unwrap(), Vec::<Vec<u8>>::new());
    }
    assert!(!Reader::new().entry(Pid::own()).unwrap().kernel_thread);
}
