//! A connection to a Unix stream socket on which no step can hang.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use memchr::memchr;
use records::Deadline;
use records::input::MAX_LINE;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// How long a full backlog is left alone before the next try: the kernel gives no notice of room
/// in it.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Why there is no connection, or no more of it.
#[derive(Debug)]
pub enum SocketError {
    /// Nobody listens there: no such socket, or one that its owner has left behind.
    NotRunning,
    /// Not by this user.
    Denied,
    /// The deadline came first.
    Deadline,
    /// A line is longer than any that is taken.
    TooLong,
    /// Anything else.
    Io(io::Error),
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketError::NotRunning => f.write_str("nobody listens there"),
            SocketError::Denied => f.write_str("permission denied"),
            SocketError::Deadline => f.write_str("no answer before the deadline"),
            SocketError::TooLong => write!(f, "a line longer than {MAX_LINE} bytes"),
            SocketError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SocketError {}

impl From<io::Error> for SocketError {
    fn from(error: io::Error) -> SocketError {
        match Errno::from_io_error(&error) {
            Some(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => SocketError::NotRunning,
            Some(Errno::ACCESS | Errno::PERM) => SocketError::Denied,
            _ => SocketError::Io(error),
        }
    }
}

impl From<Errno> for SocketError {
    fn from(errno: Errno) -> SocketError {
        io::Error::from(errno).into()
    }
}

/// What one reading brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Bytes.
    Some,
    /// Nothing for now.
    Nothing,
    /// Nothing for ever: the other side has closed.
    End,
}

/// A connected stream. Its descriptor is this process's own and non-blocking.
///
/// It is never half-closed: there are servers that take the end of what they are sent for the end
/// of the client.
#[derive(Debug)]
pub struct Stream {
    socket: UnixStream,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
}

impl Stream {
    /// Connects to the socket at `path`. A full backlog is waited for.
    ///
    /// # Errors
    ///
    /// Nobody listens, the deadline came, or what connect(2) says.
    pub fn connect(path: &Path, deadline: Deadline) -> Result<Stream, SocketError> {
        let address = SocketAddrUnix::new(path)?;
        let socket = socket()?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) | Err(Errno::ISCONN) => break,
                // Linux: the backlog is full.
                Err(Errno::AGAIN) => {
                    if deadline.passed() {
                        return Err(SocketError::Deadline);
                    }
                    deadline.sleep(BACKLOG_PAUSE);
                }
                // The connection is under way; asking again tells what became of it.
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => {
                    ready(socket.as_fd(), PollFlags::OUT, deadline)?;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Stream {
            socket: UnixStream::from(socket),
            buffer: Vec::new(),
            searched: 0,
        })
    }

    /// The socket itself, for its peer.
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    ///
    /// The deadline came, or the other side has closed.
    pub fn send(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), SocketError> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        ready(self.socket.as_fd(), PollFlags::OUT, deadline)?;
                    }
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    /// The next line, without its newline; `None` where the other side has closed. What it sent
    /// last without a newline is no line, but what it could not finish.
    ///
    /// # Errors
    ///
    /// The deadline came, the line is too long, or what recv(2) says.
    pub fn next_line(&mut self, deadline: Deadline) -> Result<Option<Vec<u8>>, SocketError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > MAX_LINE {
                return Err(SocketError::TooLong);
            }
            match self.fill()? {
                Filled::Some => {}
                Filled::End => return Ok(None),
                Filled::Nothing => ready(self.socket.as_fd(), PollFlags::IN, deadline)?,
            }
        }
    }

    /// A line that has been read already, for one who waits with a poll(2) of his own.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(self.searched + at + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.pop();
        self.searched = 0;
        Some(line)
    }

    /// Reads once, without waiting.
    ///
    /// # Errors
    ///
    /// What recv(2) says. That the other side has gone without reading all it was sent
    /// (ECONNRESET) is an end like any other.
    pub fn fill(&mut self) -> Result<Filled, SocketError> {
        let mut chunk = [0; CHUNK];
        loop {
            return match self.socket.read(&mut chunk) {
                Ok(0) => Ok(Filled::End),
                Ok(length) => {
                    self.buffer
                        .extend_from_slice(chunk.get(..length).unwrap_or_default());
                    Ok(Filled::Some)
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => Ok(Filled::Nothing),
                    io::ErrorKind::ConnectionReset => Ok(Filled::End),
                    _ => Err(error.into()),
                },
            };
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A new socket: not inherited by commands, and not waited for.
fn socket() -> rustix::io::Result<OwnedFd> {
    // In two steps, since macOS has no flag for it. A command that another thread starts in
    // between gets a socket that is connected to nothing yet.
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Waits until `fd` is ready.
fn ready(fd: BorrowedFd<'_>, what: PollFlags, deadline: Deadline) -> Result<(), SocketError> {
    loop {
        let left = deadline.timespec();
        let mut fds = [PollFd::from_borrowed_fd(fd, what)];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => return Err(SocketError::Deadline),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::time::Instant;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn lines_however_they_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut line = [0; 6];
            client.read_exact(&mut line).unwrap();
            assert_eq!(&line, b"hello\n");
            for part in ["o", "ne\n\ntw", "o\n", "unfinished"] {
                client.write_all(part.as_bytes()).unwrap();
            }
        });
        let mut stream = Stream::connect(&path, soon()).unwrap();
        stream.send(b"hello\n", soon()).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = stream.next_line(soon()).unwrap() {
            lines.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(lines, ["one", "", "two"]);
        server.join().unwrap();
    }

    #[test]
    fn nobody_there() {
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join("stale");
        drop(UnixListener::bind(&stale).unwrap());
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [stale, folder.path().join("none"), file.join("below"), file] {
            let error = Stream::connect(&path, soon()).unwrap_err();
            assert!(
                matches!(error, SocketError::NotRunning),
                "{path:?}: {error}"
            );
        }
        let long = folder.path().join("x".repeat(200));
        assert!(matches!(
            Stream::connect(&long, soon()),
            Err(SocketError::Io(_))
        ));
    }

    #[test]
    fn a_server_that_never_answers_and_one_that_never_accepts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let limit = Duration::from_millis(200);
        let started = Instant::now();
        let mut silent = Stream::connect(&path, soon()).unwrap();
        silent.send(b"{}\n", soon()).unwrap();
        let answer = silent.next_line(Deadline::after(limit));
        assert!(matches!(answer, Err(SocketError::Deadline)), "{answer:?}");
        // Nobody reads, so the socket's buffer fills.
        let flood = vec![b'x'; 4 << 20];
        let sent = silent.send(&flood, Deadline::after(limit));
        assert!(matches!(sent, Err(SocketError::Deadline)), "{sent:?}");
        // Nobody accepts, so the backlog fills.
        let mut held = Vec::new();
        let refused = loop {
            match Stream::connect(&path, Deadline::after(limit)) {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
            assert!(held.len() < 100, "the backlog has no end");
        };
        assert!(matches!(refused, SocketError::Deadline), "{refused}");
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}
