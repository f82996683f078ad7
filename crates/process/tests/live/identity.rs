//! Who a process is, from its start to its end.

use std::io::Write;
use std::process::{Command, Stdio};

use process::{Delivery, Here, Identity, Pid, Reader, Sight, Signal, Standing};

use crate::support::{Sub, alive, ident, sleeper, until};

#[test]
fn a_process_is_the_same_until_it_has_ended() {
    let here = Here::new();
    let mut child = sleeper();
    let handle = alive(&here, child.pid());
    let word = handle.ident().to_string();
    let recorded: Identity = word.parse().unwrap();
    assert_eq!(&recorded, handle.ident());
    assert_eq!(recorded.pid(), child.pid());
    assert!(recorded.is_exact());
    assert_eq!(here.find(&recorded, None).word(), "same");
    assert_eq!(here.find(&recorded, Some(here.host())).word(), "same");
    assert!(!handle.has_ended());
    assert_eq!(handle.current().unwrap().pid, child.pid());

    child.end_uncollected();
    assert!(handle.has_ended());
    assert!(matches!(here.look(child.pid()), Sight::Zombie(zombie) if zombie == recorded));
    assert!(matches!(
        here.find(&recorded, None),
        Standing::Gone { zombie: true }
    ));
    assert!(here.open(child.pid()).is_err());

    let pid = child.pid();
    child.end();
    assert!(handle.has_ended());
    assert!(handle.current().is_none());
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Gone);
    assert!(matches!(here.look(pid), Sight::Absent));
    assert!(matches!(
        here.find(&recorded, None),
        Standing::Gone { zombie: false }
    ));
}

#[test]
fn exec_keeps_an_identity() {
    let here = Here::new();
    let mut child = Sub::start(
        Command::new("sh")
            .args(["-c", "read line; exec cat"])
            .stdin(Stdio::piped()),
    );
    let before = ident(&here, child.pid());
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    until("another program", || {
        Reader::new().entry(child.pid()).unwrap().name == b"cat"
    });
    assert_eq!(ident(&here, child.pid()), before);
}

#[test]
fn a_signal_reaches_its_process() {
    let here = Here::new();
    let mut child = sleeper();
    let handle = alive(&here, child.pid());
    assert_eq!(handle.signal(Signal::SIGSTOP), Delivery::Sent);
    until("a stop", || {
        handle.current().is_some_and(|now| now.state.is_stopped())
    });
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Sent);
    until("the end", || handle.has_ended());
    assert!(!child.lives());
}

#[test]
fn init_is_never_signalled() {
    let here = Here::new();
    let init = Pid::new(1).unwrap();
    // CONT would harm nobody.
    assert_eq!(alive(&here, init).signal(Signal::SIGCONT), Delivery::Denied);
}
