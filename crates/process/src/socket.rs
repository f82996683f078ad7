//! Unix sockets: whether one answers, and who is behind it.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::sys::{self, Peer};

/// The path of a Unix socket, known to fit into its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPath(PathBuf);

impl SocketPath {
    /// The longest path, in bytes: `sun_path` has room for one more, the NUL, unix(7).
    pub const MAX: usize = sys::SOCKET_PATH_MAX;

    /// The path, if it is not too long for an address.
    ///
    /// # Errors
    ///
    /// The text names the limit.
    pub fn new(path: &OsStr) -> Result<SocketPath, String> {
        match path.len() {
            0 => Err("a socket's path is not empty".to_owned()),
            length if length > SocketPath::MAX => Err(format!(
                "the path has {length} bytes, and a Unix socket's path at most {}",
                SocketPath::MAX
            )),
            _ => Ok(SocketPath(path.into())),
        }
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Who accepts connections at `path`; `None` where nobody does: no such file, a stale one, one
/// that is no socket, a server whose backlog is full. Never waits.
///
/// # Errors
///
/// This process may not connect, or has no descriptor left.
pub fn probe_socket(path: &SocketPath) -> std::io::Result<Option<Peer>> {
    let address = SocketAddrUnix::new(path.as_path())?;
    let socket = stream_socket()?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => match sys::peer(&UnixStream::from(socket)) {
            // It has hung up already, and macOS does not remember who it was.
            Err(error) if error.kind() == std::io::ErrorKind::NotConnected => Ok(None),
            peer => peer.map(Some),
        },
        // NOENT, NOTDIR: no file. CONNREFUSED: no listener. AGAIN: a full backlog (on Linux).
        // PROTOTYPE: a socket of datagrams.
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::CONNREFUSED
            | Errno::AGAIN
            | Errno::PROTOTYPE
            | Errno::INPROGRESS
            | Errno::INTR,
        ) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// A Unix stream socket that never waits and is closed on exec. In three steps, since macOS has no
/// flags for it.
///
/// # Errors
///
/// No descriptor is left.
pub fn stream_socket() -> std::io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn path(folder: &tempfile::TempDir, name: &str) -> SocketPath {
        SocketPath::new(folder.path().join(name).as_os_str()).unwrap()
    }

    #[test]
    fn only_a_connect_counts() {
        let folder = tempfile::tempdir().unwrap();
        let socket = path(&folder, "s");
        assert_eq!(probe_socket(&socket).unwrap(), None, "no such file");
        let listener = UnixListener::bind(socket.as_path()).unwrap();
        let peer = probe_socket(&socket).unwrap().unwrap();
        assert_eq!(peer.pid, Some(crate::Pid::own()));
        drop(listener);
        assert!(socket.as_path().exists());
        assert_eq!(probe_socket(&socket).unwrap(), None, "a stale file");
        let file = path(&folder, "f");
        std::fs::write(file.as_path(), "").unwrap();
        assert_eq!(probe_socket(&file).unwrap(), None, "no socket");
    }

    #[test]
    fn a_full_backlog_is_no_answer_and_no_wait() {
        let folder = tempfile::tempdir().unwrap();
        let socket = path(&folder, "s");
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let address = SocketAddrUnix::new(socket.as_path()).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut held = Vec::new();
        let answered = (0..16).all(|_| {
            let stream = stream_socket().unwrap();
            let connected = rustix::net::connect(&stream, &address).is_ok();
            held.push(stream);
            connected
        });
        assert!(!answered, "the backlog never filled");
        assert_eq!(probe_socket(&socket).unwrap(), None);
    }

    #[test]
    fn a_path_that_is_too_long_names_the_limit() {
        let long = "x".repeat(SocketPath::MAX + 1);
        let why = SocketPath::new(OsStr::new(&long)).unwrap_err();
        assert!(why.contains(&SocketPath::MAX.to_string()), "{why}");
        assert!(SocketPath::new(OsStr::new(&long[1..])).is_ok());
    }
}
