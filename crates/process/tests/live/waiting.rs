//! Waiting for the first of many ends.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use process::{Handle, Here, Signal, wait};

use crate::support::{PATIENCE, Sub, alive, sleeper};

/// Waits until a handle has ended.
fn first_end(handles: &[&Handle]) -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(first) = handles.iter().position(|handle| handle.has_ended()) {
            return first;
        }
        assert!(Instant::now() < deadline, "nobody ended");
        wait(handles, None, Some(deadline)).unwrap();
    }
}

#[test]
fn the_first_end_of_many_wakes() {
    let here = Here::new();
    let children: Vec<Sub> = (0..50).map(|_| sleeper()).collect();
    let handles: Vec<Handle> = children.iter().map(|c| alive(&here, c.pid())).collect();
    let mut left: Vec<&Handle> = handles.iter().collect();
    for chosen in [20, 0, 47] {
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                left[chosen].signal(Signal::SIGKILL)
            });
            assert_eq!(first_end(&left), chosen);
            assert_eq!(killer.join().unwrap(), process::Delivery::Sent);
        });
        // What has ended would wake at once.
        left.remove(chosen);
        assert!(left.iter().all(|handle| !handle.has_ended()));
    }
}

#[test]
fn what_has_ended_does_not_wait() {
    let here = Here::new();
    let mut child = sleeper();
    let handle = alive(&here, child.pid());
    child.end_uncollected();
    // Without a deadline: this returns, or hangs for good.
    wait(&[&handle], None, None).unwrap();
    assert!(handle.has_ended());
    child.end();
    wait(&[&handle], None, None).unwrap();
    assert!(handle.has_ended());
}

#[test]
fn a_readable_descriptor_wakes() {
    let here = Here::new();
    let child = sleeper();
    let handle = alive(&here, child.pid());
    let (wake, mut waker) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            waker.write_all(b"x").unwrap();
        });
        wait(&[&handle], Some(wake.as_fd()), None).unwrap();
        wait(&[], Some(wake.as_fd()), None).unwrap();
    });
    assert!(!handle.has_ended());
}

#[test]
fn the_deadline_ends_a_wait() {
    let here = Here::new();
    let child = sleeper();
    let handle = alive(&here, child.pid());
    for handles in [&[][..], &[&handle]] {
        let deadline = Instant::now() + Duration::from_millis(50);
        while Instant::now() < deadline {
            wait(handles, None, Some(deadline)).unwrap();
        }
    }
    // One that has passed is a look.
    wait(&[&handle], None, Some(Instant::now())).unwrap();
    assert!(!handle.has_ended());
}
