//! Printing the one record, while signals are caught.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread;

use process::{Interrupts, Signal};
use records::{Failure, Output};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::args::Args;
use crate::{HUMAN, start};

/// Prints the record `line`; in the foreground, where stdout is the command's, it goes to the file
/// alone.
///
/// A write that waits for a reader is woken by no signal that is caught, so it is made in a thread
/// of its own. A signal that comes meanwhile is given back: the caller is to end, and the write
/// with it.
///
/// # Errors
///
/// The record could not be written, or its reader is gone.
pub fn print(args: &Args, line: &[u8], interrupts: &Interrupts) -> Result<Option<Signal>, Failure> {
    if args.wait {
        if let Some(path) = &args.record {
            start::write_record(path, line)?;
        }
        return Ok(None);
    }
    let (done, working) = UnixStream::pair()?;
    let (form, line) = (args.output.clone(), line.to_vec());
    let writer = thread::Builder::new().spawn(move || {
        // Closed at the end, whichever way that comes.
        let _working = working;
        let mut output = Output::new(&form, HUMAN);
        output.pass(&line)?;
        output.finish()
    })?;
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(done.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(interrupts.wake(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
        if !fds[0].revents().is_empty() {
            break;
        }
        if let Some(signal) = interrupts.take().first() {
            return Ok(Some(*signal));
        }
    }
    match writer.join() {
        Ok(printed) => printed.map(|()| None),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
