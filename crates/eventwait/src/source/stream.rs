//! A connected Unix stream socket: what is to be sent to it, and the lines it sends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix};

use super::Wakers;
use crate::split::Splitter;

/// What came of an attempt to connect.
#[derive(Debug)]
pub enum Attempt {
    /// Somebody listens, and has a place in the queue for us.
    Connected(OwnedFd),
    /// Somebody listens, and the queue is full.
    Full,
    /// Nobody listens there, or nobody may.
    Refused(Errno),
}

/// Tries to connect to the Unix stream socket at `path`, without waiting.
///
/// # Errors
/// No descriptor is left, or the path is too long for an address and there is no way around that.
pub fn connect(path: &Path) -> io::Result<Attempt> {
    let socket = process::stream_socket()?;
    let connected = match SocketAddrUnix::new(path) {
        Ok(address) => rustix::net::connect(&socket, &address),
        Err(Errno::NAMETOOLONG) => connect_through_folder(&socket, path)?,
        Err(errno) => return Err(errno.into()),
    };
    Ok(match connected {
        Ok(()) => Attempt::Connected(socket),
        // EAGAIN is Linux's word for a full queue, unix(7).
        Err(Errno::AGAIN | Errno::INPROGRESS | Errno::INTR) => Attempt::Full,
        Err(errno) => Attempt::Refused(errno),
    })
}

/// A path that does not fit into an address is reached through an open descriptor of its folder,
/// where the system shows descriptors as names.
fn connect_through_folder(socket: &OwnedFd, path: &Path) -> io::Result<Result<(), Errno>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NAMETOOLONG.into());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(folder, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(errno) => return Ok(Err(errno)),
    };
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    let short = Path::new("/proc/self/fd")
        .join(number.to_string())
        .join(name);
    match SocketAddrUnix::new(&short) {
        Ok(address) if Path::new("/proc/self/fd").exists() => {
            Ok(rustix::net::connect(socket, &address))
        }
        _ => Err(io::Error::other(format!(
            "the path has {} bytes, and a Unix socket's path at most {}",
            path.as_os_str().len(),
            process::SocketPath::MAX,
        ))),
    }
}

/// A connection on which lines go both ways.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
    to_send: Vec<u8>,
    sent: usize,
    /// The lines that came.
    pub lines: Splitter,
}

/// What reading has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Something was read.
    Some,
    /// There is nothing at the moment.
    Nothing,
    /// There will be nothing more.
    End,
}

impl Stream {
    /// A connection over which `to_send` is to be sent.
    pub fn new(socket: OwnedFd, to_send: Vec<u8>, max_line: usize) -> Stream {
        Stream {
            socket,
            to_send,
            sent: 0,
            lines: Splitter::new(max_line, 0),
        }
    }

    /// Sends as much as is taken now; whether all has been sent. The sending side is never shut
    /// down: some servers take that for the end of the whole conversation.
    ///
    /// # Errors
    /// Those of send(2): the other side is gone.
    pub fn send(&mut self) -> Result<bool, Errno> {
        while let Some(rest) = self
            .to_send
            .get(self.sent..)
            .filter(|rest| !rest.is_empty())
        {
            match rustix::net::send(&self.socket, rest, SendFlags::empty()) {
                Ok(length) => self.sent += length,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(true)
    }

    /// Whether something is still to be sent.
    pub fn is_sending(&self) -> bool {
        self.sent < self.to_send.len()
    }

    /// Reads once. A connection that broke has ended, like one that was closed.
    pub fn read(&mut self) -> Read {
        loop {
            let room = self.lines.room();
            match rustix::net::recv(&self.socket, room, RecvFlags::empty()) {
                Ok((0, _)) => return Read::End,
                Ok((length, _)) => {
                    self.lines.filled(length);
                    return Read::Some;
                }
                Err(Errno::AGAIN) => return Read::Nothing,
                Err(Errno::INTR) => {}
                Err(_) => return Read::End,
            }
        }
    }

    /// What wakes it.
    pub fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        wakers.readable(self.fd());
        if self.is_sending() {
            wakers.writable(self.fd());
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
