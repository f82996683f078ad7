//! The line at the terminal while something is waited for.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use records::Deadline;
use records::waiting::Waiting;

/// How long the line is left alone where it is not due.
const LOOK: Duration = Duration::from_secs(1);

/// Does `work`, and says at the terminal, if there is one and it takes long, what is waited for.
pub fn during<T: Send>(what: &str, deadline: Deadline, work: impl FnOnce() -> T + Send) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            // Dropped at the end, whichever way that comes.
            let _done = done;
            work()
        });
        let mut waiting = Waiting::new(what, deadline);
        loop {
            waiting.tick();
            let pause = waiting.next().left().unwrap_or(LOOK);
            if let Err(RecvTimeoutError::Disconnected) = wait.recv_timeout(pause) {
                break;
            }
        }
        drop(waiting);
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
