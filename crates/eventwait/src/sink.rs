//! What is printed, on a standard output that may not be read.
//!
//! A descriptor that is shared with others must not be made non-blocking (that would change the
//! terminal and every other program in the pipeline), and a blocking write(2) can block even
//! directly after poll(2) saw room: another writer may have taken it, a terminal takes a part and
//! stops. So a thread of its own does the writing. The wait goes on beside it, has its deadline,
//! its beat and its signals; and the exit does not wait for the thread, because the end of the
//! process ends a blocked write as well.
//!
//! To know afterwards what has been written, the thread asks for room first and then writes whole
//! lines of no more than `PIPE_BUF` bytes together, which a pipe takes at once or not at all,
//! pipe(7). The queue in between is bounded: while it is full, the source is not read.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

/// From how many queued bytes on the source is not read.
const FULL: usize = 512 << 10;

/// How much is written at once where any size is taken at once.
const BATCH: usize = 256 << 10;

/// How long the end waits for a write that was begun; room has been seen for it.
const IN_FLIGHT: Duration = Duration::from_millis(10);

/// Where in its source a line began, in the bytes of its file; `generation` counts the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Which of the files that had the name one after the other.
    pub generation: u32,
    /// The offset in it.
    pub offset: u64,
}

/// Lines to be printed.
pub struct Sink {
    /// Collected here and handed over in one go.
    pending: Lines,
    shared: Arc<Shared>,
    /// Readable when the writer has taken something, or has failed.
    wake: UnixStream,
    writer: Option<UnixStream>,
}

/// How the writing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should.
    Good,
    /// Nobody reads any more.
    ReaderGone,
    /// Writing has failed.
    Failed(Errno),
}

/// What became of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// How many were not written, or not wholly.
    pub dropped: u64,
    /// Whether one was written in part.
    pub cut: bool,
    /// Where the first one began that was dropped.
    pub first_dropped: Option<Mark>,
}

#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The length of each, with its newline, and where it came from.
    each: Vec<Line>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    length: usize,
    /// `None` for a line that is not counted.
    mark: Option<Mark>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    said: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    queue: Lines,
    /// What of the lines in the writer's hands is still to be written.
    hand: Rest,
    error: Option<Errno>,
    in_flight: bool,
    stop: bool,
}

/// The lines that the writer has in hand and has not written.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    lines: u64,
    first: Option<Mark>,
    cut: bool,
    unfinished: bool,
}

impl Sink {
    /// Nothing printed yet, and no thread either: that comes with the first line. `said` tells when
    /// a line that counts has been written.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(said: Arc<AtomicBool>) -> io::Result<Sink> {
        let (wake, writer) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Sink {
            pending: Lines::default(),
            shared: Arc::new(Shared {
                said,
                ..Shared::default()
            }),
            wake,
            writer: Some(writer),
        })
    }

    /// Something that counts was not to be printed, and so has been said.
    pub fn say_nothing(&self) {
        self.shared.said.store(true, Ordering::SeqCst);
    }

    /// Takes a line, which has no newline. It is on its way with the next [`Sink::hand_over`].
    pub fn put(&mut self, line: &[u8], mark: Option<Mark>) {
        self.pending.bytes.extend_from_slice(line);
        self.pending.bytes.push(b'\n');
        let length = line.len() + 1;
        self.pending.each.push(Line { length, mark });
    }

    /// Gives the lines that were taken to the writer.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn hand_over(&mut self) -> io::Result<()> {
        if self.pending.each.is_empty() {
            return Ok(());
        }
        if let Some(wake) = self.writer.take() {
            let shared = Arc::clone(&self.shared);
            std::thread::Builder::new()
                .name("output".to_owned())
                .spawn(move || write_lines(&shared, &wake))?;
        }
        let mut state = self.shared.lock();
        if state.queue.each.is_empty() {
            std::mem::swap(&mut state.queue, &mut self.pending);
        } else {
            state.queue.bytes.append(&mut self.pending.bytes);
            state.queue.each.append(&mut self.pending.each);
        }
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Whether so much is waiting to be written that no more should be taken.
    pub fn is_full(&self) -> bool {
        self.shared.lock().queue.bytes.len() + self.pending.bytes.len() >= FULL
    }

    /// Whether all has been written.
    pub fn is_empty(&self) -> bool {
        self.pending.each.is_empty() && self.shared.lock().is_done()
    }

    /// How the writing stands.
    pub fn health(&self) -> Health {
        match self.shared.lock().error {
            None => Health::Good,
            Some(Errno::PIPE) => Health::ReaderGone,
            Some(errno) => Health::Failed(errno),
        }
    }

    /// Readable when it is worth asking again.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Forgets that it was readable.
    pub fn heard(&self) {
        let mut bytes = [0; 64];
        while matches!(rustix::io::read(&self.wake, &mut bytes), Ok(1..)) {}
    }

    /// Writes no more, after `patience` at most for what is under way.
    pub fn finish(mut self, patience: Duration) -> Printed {
        let until = Instant::now() + patience;
        let handed = self.hand_over().is_ok();
        let mut state = self.shared.lock();
        while handed && !state.is_done() && state.error.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.wait(state, left);
        }
        state.stop = true;
        let until = Instant::now() + IN_FLIGHT;
        while state.in_flight {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.wait(state, left);
        }
        let queued = state.queue.each.iter().chain(&self.pending.each);
        let queued = queued.filter_map(|line| line.mark);
        let first_queued = queued.clone().next();
        Printed {
            dropped: state.hand.lines + queued.count() as u64,
            cut: state.hand.cut,
            first_dropped: state.hand.first.or(first_queued),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.queue.each.is_empty() && !self.hand.unfinished
    }
}

/// The writer: takes what is queued and writes it, until it is told to stop or cannot.
fn write_lines(shared: &Shared, wake: &UnixStream) {
    let stdout = rustix::stdio::stdout();
    let max = portion_size(stdout);
    let mut hand = Lines::default();
    loop {
        let mut state = shared.lock();
        while state.queue.each.is_empty() && !state.stop {
            state = shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.stop {
            return;
        }
        hand.bytes.clear();
        hand.each.clear();
        std::mem::swap(&mut state.queue, &mut hand);
        state.hand = Hand::new(&hand).rest();
        drop(state);
        // There is room in the queue again.
        let _ = (&*wake).write(&[0]);
        let written = write_hand(shared, stdout, Hand::new(&hand), max);
        if let Err(errno) = written {
            let mut state = shared.lock();
            state.error = errno;
            state.in_flight = false;
        }
        shared.changed.notify_all();
        let _ = (&*wake).write(&[0]);
        if written.is_err() {
            return;
        }
    }
}

/// How much is written at once: anything to a regular file; elsewhere what is taken whole or not
/// at all.
fn portion_size(stdout: BorrowedFd<'_>) -> usize {
    let kind = rustix::fs::fstat(stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::RegularFile) => BATCH,
        _ => PIPE_BUF,
    }
}

/// Writes all lines in hand. `Err(None)`: told to stop.
fn write_hand(
    shared: &Shared,
    stdout: BorrowedFd<'_>,
    mut hand: Hand<'_>,
    max: usize,
) -> Result<(), Option<Errno>> {
    while !hand.is_empty() {
        wait_for_room(stdout)?;
        {
            let mut state = shared.lock();
            if state.stop {
                return Err(None);
            }
            state.in_flight = true;
        }
        let counted = hand.rest().lines;
        let written = rustix::io::write(stdout, hand.portion(max));
        match written {
            Ok(length) => {
                hand.written(length);
                if hand.rest().lines < counted {
                    shared.said.store(true, Ordering::SeqCst);
                }
            }
            // Whoever shares the descriptor has made it non-blocking, and has taken the room.
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Some(errno)),
        }
        let mut state = shared.lock();
        state.in_flight = false;
        state.hand = hand.rest();
        if state.stop {
            drop(state);
            shared.changed.notify_all();
            return Err(None);
        }
    }
    Ok(())
}

fn wait_for_room(stdout: BorrowedFd<'_>) -> Result<(), Option<Errno>> {
    loop {
        let mut fds = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
        match poll(&mut fds, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Some(errno)),
        }
    }
}

/// A place in the middle of lines that are being written.
#[derive(Clone, Copy)]
struct Hand<'a> {
    bytes: &'a [u8],
    each: &'a [Line],
    /// How much of the first line has been written.
    begun: usize,
    /// How many of the lines are counted.
    counted: u64,
}

impl<'a> Hand<'a> {
    fn new(lines: &'a Lines) -> Hand<'a> {
        let counted = lines.each.iter().filter(|line| line.mark.is_some());
        Hand {
            bytes: &lines.bytes,
            each: &lines.each,
            begun: 0,
            counted: counted.count() as u64,
        }
    }

    fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// What to write next: as many whole lines as fit into `max` bytes; of a longer one, a part.
    fn portion(&self, max: usize) -> &'a [u8] {
        let mut length = 0;
        for (n, line) in self.each.iter().enumerate() {
            let rest = if n == 0 {
                line.length - self.begun
            } else {
                line.length
            };
            if length + rest > max {
                break;
            }
            length += rest;
        }
        if length == 0 {
            length = max.min(self.bytes.len());
        }
        &self.bytes[..length]
    }

    fn written(&mut self, length: usize) {
        self.bytes = &self.bytes[length..];
        self.begun += length;
        while let Some((first, others)) = self.each.split_first() {
            if self.begun < first.length {
                break;
            }
            self.begun -= first.length;
            self.counted -= u64::from(first.mark.is_some());
            self.each = others;
        }
    }

    fn rest(&self) -> Rest {
        Rest {
            first: self.each.iter().find_map(|line| line.mark),
            lines: self.counted,
            cut: self.begun > 0,
            unfinished: !self.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Lines {
        let mut lines = Lines::default();
        for (n, text) in texts.iter().enumerate() {
            lines.bytes.extend_from_slice(text.as_bytes());
            let offset = n as u64;
            let mark = Some(Mark {
                generation: 0,
                offset,
            });
            let length = text.len();
            lines.each.push(Line { length, mark });
        }
        lines
    }

    #[test]
    fn portions_are_whole_lines_where_they_can_be() {
        let lines = lines(&["one\n", "two\n", "a long one\n", "end\n"]);
        let mut hand = Hand::new(&lines);
        let mut portions = Vec::new();
        while !hand.is_empty() {
            let portion = hand.portion(9);
            portions.push(str::from_utf8(portion).unwrap());
            hand.written(portion.len());
        }
        assert_eq!(portions, ["one\ntwo\n", "a long on", "e\nend\n"]);
    }

    #[test]
    fn what_is_left_is_known_after_any_write() {
        let lines = lines(&["one\n", "two\n", "three\n"]);
        let mut hand = Hand::new(&lines);
        let mut left = Vec::new();
        for length in [0, 3, 1, 5, 5] {
            hand.written(length);
            let rest = hand.rest();
            left.push((rest.lines, rest.first.map(|mark| mark.offset), rest.cut));
        }
        let want = [
            (3, Some(0), false),
            (3, Some(0), true),
            (2, Some(1), false),
            (1, Some(2), true),
            (0, None, false),
        ];
        assert_eq!(left, want);
    }
}
