//! The same answers where there is no pidfd to be had: an old kernel, a sandbox. And a process
//! whose first thread has ended.

// A filter for system calls and a thread that ends alone have no safe wrapper.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use nix::libc;
use nix::unistd::ForkResult;
use process::{Delivery, Here, Identity, Pid, Reader, Sight, Signal, Standing, wait};

use crate::inside::{PRIVATE, within};
use crate::recycling::start_as;
use crate::support::{PATIENCE, alive, ident, sleeper, until};

/// Has pidfd_open(2) fail in this thread and its children, as it does on a kernel without it.
fn forbid_pidfds() {
    let step = |code: u32, k: u32, (jt, jf): (u8, u8)| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut program = [
        // The number of the system call is the first word of `struct seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, (0, 0)),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_pidfd_open as u32,
            (0, 1),
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
            (0, 0),
        ),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, (0, 0)),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: prctl(2) reads the filter, which lives until it has returned.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        );
        assert_eq!(set, 0);
    }
    let own = rustix::process::getpid();
    let tried = rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty());
    assert_eq!(tried.unwrap_err(), rustix::io::Errno::NOSYS);
}

/// A child whose first thread has ended while another lives on. Killed and collected at the end.
struct Headless(nix::unistd::Pid);

impl Headless {
    fn start() -> Headless {
        // SAFETY: this is the second run of a single test, so no other thread is in the middle of
        // anything that the child could need.
        match unsafe { nix::unistd::fork() }.unwrap() {
            ForkResult::Parent { child } => Headless(child),
            ForkResult::Child => {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(1000)));
                // SAFETY: the system call ends the calling thread alone, and nothing after it.
                unsafe { libc::syscall(libc::SYS_exit, 0) };
                unreachable!()
            }
        }
    }

    fn pid(&self) -> Pid {
        Pid::new(self.0.as_raw().into()).unwrap()
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.0, Signal::SIGKILL);
        let _ = nix::sys::wait::waitpid(self.0, None);
    }
}

fn a_headless_process_lives() {
    let here = Here::new();
    let child = Headless::start();
    until("the end of the first thread", || {
        let entry = Reader::new().entry(child.pid()).unwrap();
        entry.state.is_zombie() && entry.threads == 2
    });
    let handle = alive(&here, child.pid());
    assert!(handle.entry().unwrap().state.is_zombie());
    assert!(!handle.has_ended());
    assert!(!Reader::new().is_dead(&handle.current().unwrap()));
    assert_eq!(here.find(handle.ident(), None).word(), "same");

    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Sent);
    until("the end of the last thread", || handle.has_ended());
    until("a zombie", || {
        matches!(here.look(child.pid()), Sight::Zombie(_))
    });
    let standing = here.find(handle.ident(), None);
    assert!(matches!(standing, Standing::Gone { zombie: true }));
}

#[test]
fn a_zombie_leader_with_a_living_thread_is_alive() {
    let name = "fallback::a_zombie_leader_with_a_living_thread_is_alive";
    if within(name, &[]) {
        a_headless_process_lives();
    }
}

#[test]
fn without_pidfds_a_zombie_leader_is_alive_too() {
    let name = "fallback::without_pidfds_a_zombie_leader_is_alive_too";
    if within(name, &[]) {
        forbid_pidfds();
        a_headless_process_lives();
    }
}

#[test]
fn without_pidfds_the_dead_are_gone() {
    if !within("fallback::without_pidfds_the_dead_are_gone", &[]) {
        return;
    }
    let here = Here::new();
    let mut child = sleeper();
    let exact = ident(&here, child.pid());
    forbid_pidfds();
    let handle = alive(&here, child.pid());
    assert_eq!(handle.ident().inode(), None);
    assert_eq!(here.find(&exact, None).word(), "same");
    assert_eq!(here.find(handle.ident(), None).word(), "same");
    assert!(!handle.has_ended());

    // A wait for it looks again and again.
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Sent);
    let deadline = Instant::now() + PATIENCE;
    while !handle.has_ended() {
        assert!(Instant::now() < deadline);
        wait(&[&handle], None, Some(deadline)).unwrap();
    }
    assert!(!child.lives());

    assert!(handle.has_ended());
    assert!(matches!(here.look(handle.pid()), Sight::Absent));
    assert_eq!(here.find(&exact, None).word(), "gone");
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Gone);
}

#[test]
fn without_pidfds_a_thread_id_is_no_pid() {
    if !within("fallback::without_pidfds_a_thread_id_is_no_pid", &[]) {
        return;
    }
    forbid_pidfds();
    // This test runs in a thread of its own.
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let tid = Pid::new(tid.into()).unwrap();
    assert_ne!(tid, Pid::own());
    assert!(matches!(Here::new().look(tid), Sight::Absent));
}

#[test]
fn without_pidfds_a_recycled_pid_gets_no_signal() {
    let name = "fallback::without_pidfds_a_recycled_pid_gets_no_signal";
    if !within(name, &PRIVATE) {
        return;
    }
    forbid_pidfds();
    let here = Here::new();
    let old = sleeper();
    let pid = old.pid();
    let handle = alive(&here, pid);
    old.end();
    let mut new = start_as(pid);
    let deadline = Instant::now() + PATIENCE;
    while ticks(&here, pid) == ticks_of(handle.ident()) {
        assert!(Instant::now() < deadline);
        new.end();
        new = start_as(pid);
    }
    assert_eq!(here.find(handle.ident(), None).word(), "recycled");
    assert!(handle.has_ended());
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Gone);
    assert!(new.lives());
}

fn ticks(here: &Here, pid: Pid) -> u64 {
    ticks_of(&ident(here, pid))
}

fn ticks_of(identity: &Identity) -> u64 {
    match identity {
        Identity::Linux(linux) => linux.ticks,
        other => panic!("an identity of Linux, not {other}"),
    }
}
