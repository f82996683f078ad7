//! The signals that ask a tool to end.

use std::process::Command;
use std::time::Instant;

use nix::sys::signal::{kill, raise};
use process::{ENDING, Interrupts, Signal, die_by, wait};

use crate::inside::within;
use crate::support::PATIENCE;

/// Waits for the first signals.
fn come(interrupts: &Interrupts) -> Vec<Signal> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let came = interrupts.take();
        if !came.is_empty() {
            return came;
        }
        assert!(Instant::now() < deadline, "no signal came");
        wait(&[], Some(interrupts.wake()), Some(deadline)).unwrap();
    }
}

#[test]
fn a_signal_that_is_caught_wakes_the_wait() {
    if !within("interrupts::a_signal_that_is_caught_wakes_the_wait", &[]) {
        return;
    }
    let interrupts = Interrupts::catch(&ENDING).unwrap();
    assert!(interrupts.take().is_empty());
    for signal in ENDING {
        kill(nix::unistd::Pid::this(), signal).unwrap();
        assert_eq!(come(&interrupts), [signal]);
        assert!(interrupts.take().is_empty(), "each is told once");
    }
    // Many are as good as one, and never fill what wakes the wait.
    for _ in 0..100_000 {
        raise(Signal::SIGTERM).unwrap();
    }
    assert_eq!(interrupts.take(), [Signal::SIGTERM]);
    raise(Signal::SIGHUP).unwrap();
    assert_eq!(come(&interrupts), [Signal::SIGHUP]);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let name = "interrupts::a_signal_that_was_ignored_at_the_start_stays_ignored";
    let ignoring = ["sh", "-c", "trap '' TERM INT; exec \"$@\"", "sh"];
    if !within(name, &ignoring) {
        return;
    }
    let interrupts = Interrupts::catch(&ENDING).unwrap();
    raise(Signal::SIGTERM).unwrap();
    raise(Signal::SIGINT).unwrap();
    raise(Signal::SIGHUP).unwrap();
    assert_eq!(come(&interrupts), [Signal::SIGHUP]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        assert_ne!(ignored & 1 << (signal as i32 - 1), 0, "{signal}");
    }
}

#[test]
fn death_by_a_signal_is_seen_as_such() {
    const DYING: &str = "PROCESS_TEST_DYING";
    if std::env::var_os(DYING).is_some() {
        let _interrupts = Interrupts::catch(&ENDING).unwrap();
        die_by(Signal::SIGTERM);
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupts::death_by_a_signal_is_seen_as_such"])
        .env(DYING, "1")
        .output()
        .unwrap()
        .status;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(Signal::SIGTERM as i32), "{status}");
}
