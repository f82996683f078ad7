//! `--stdin`: the lines of standard input.
//!
//! A thread of its own does the reading: others may have the same input, so that what poll(2)
//! announced is gone when it is to be read, and read(2) blocks; and its flags are not ours to
//! change. The end of the process ends a blocked read.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;
use crate::split::{CHUNK, Splitter};

/// How many chunks may lie ready: memory stays bounded, and what is read beyond the awaited line
/// is little.
const AHEAD: usize = 2;

type Chunk = Result<Vec<u8>, Errno>;

/// Standard input.
pub struct Stdin {
    chunks: Receiver<Chunk>,
    spent: SyncSender<Vec<u8>>,
    wake: UnixStream,
    lines: Splitter,
    started: bool,
}

impl Stdin {
    /// Starts to read.
    ///
    /// # Errors
    /// No descriptor is left, or no thread can be started.
    pub fn new(max_line: usize) -> io::Result<Stdin> {
        let (wake, writer) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let (to_main, chunks) = sync_channel(AHEAD);
        let (spent, returned) = sync_channel(AHEAD + 1);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read_all(&to_main, &returned, &writer))?;
        Ok(Stdin {
            chunks,
            spent,
            wake,
            lines: Splitter::new(max_line, 0),
            started: false,
        })
    }
}

impl Source for Stdin {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        intake.armed();
        let mut bytes = [0; 64];
        while matches!(rustix::io::read(&self.wake, &mut bytes), Ok(1..)) {}
        let chunk = match self.chunks.try_recv() {
            Ok(chunk) => chunk,
            Err(TryRecvError::Empty) => return Turn::Idle,
            Err(TryRecvError::Disconnected) => return Turn::done(End::Closed),
        };
        self.started = true;
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(errno) => {
                let why = format!("cannot read standard input: {errno}");
                return Turn::failed(End::SourceError, why);
            }
        };
        if chunk.is_empty() {
            if let Some(piece) = self.lines.rest() {
                intake.piece(&piece, 0);
            }
            return Turn::done(End::Closed);
        }
        self.lines.feed(&chunk);
        let _ = self.spent.try_send(chunk);
        while let Some(piece) = self.lines.next_piece() {
            if !intake.piece(&piece, 0) {
                break;
            }
        }
        Turn::More
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        wakers.readable(self.wake.as_fd());
    }

    fn is_looking(&self) -> bool {
        // The thread may not have come round to it yet.
        let mut fds = [PollFd::from_borrowed_fd(
            rustix::stdio::stdin(),
            PollFlags::IN,
        )];
        let now = rustix::time::Timespec::default();
        !self.started && matches!(poll(&mut fds, Some(&now)), Ok(1..))
    }
}

/// The reader: an empty chunk is the end.
fn read_all(to_main: &SyncSender<Chunk>, returned: &Receiver<Vec<u8>>, wake: &UnixStream) {
    loop {
        let mut chunk = returned.try_recv().unwrap_or_default();
        chunk.resize(CHUNK, 0);
        let read =
            rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut chunk[..]));
        let read = match read {
            // Whoever shares the descriptor has made it non-blocking.
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(
                    rustix::stdio::stdin(),
                    PollFlags::IN,
                )];
                let _ = poll(&mut fds, None);
                continue;
            }
            read => read,
        };
        chunk.truncate(*read.as_ref().unwrap_or(&0));
        let is_last = chunk.is_empty();
        if to_main.send(read.map(|_| chunk)).is_err() {
            return;
        }
        let _ = (&*wake).write(&[0]);
        if is_last {
            return;
        }
    }
}
