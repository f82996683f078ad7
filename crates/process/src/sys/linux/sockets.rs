//! Who listens where: Unix sockets by the file they are bound to, TCP ports.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::files::{file_at, read_list};
use crate::files::SocketEnd;

/// Netlink, netlink(7), sock_diag(7).
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;

/// What is to be shown of each Unix socket: name, file, peer, waiting connections.
const UDIAG_SHOW: u32 = 1 | 2 | 4 | 8;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;
const UNIX_DIAG_ICONS: u16 = 3;

/// The sockets that are bound to `path`, whatever path each was bound with, and those that are
/// connected to one of them. A path that is gone is matched by the name it was bound with. Sockets
/// of other network namespaces are not seen.
///
/// # Errors
///
/// The kernel does not tell of sockets, or `path` cannot be looked up.
pub fn socket_ends(path: &Path) -> io::Result<Vec<SocketEnd>> {
    let file = match file_at(path) {
        // The kernel gives 32 bits of the inode and its own form of the device.
        Ok((_, file)) => Some((file.inode as u32, file.device.0 << 20 | file.device.1)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let name = path.as_os_str().as_bytes();
    let all = unix_sockets()?;
    let is_there = |socket: &UnixSocket| match file {
        Some(file) => socket.file == Some(file),
        None => socket.name == name,
    };
    let bound: Vec<&UnixSocket> = all.iter().filter(|socket| is_there(socket)).collect();
    let is_bound = |inode: u32| bound.iter().any(|socket| socket.inode == inode);
    let waiting = bound
        .iter()
        .flat_map(|socket| socket.waiting.iter().copied());
    let connected = all
        .iter()
        .filter(|socket| socket.peer.is_some_and(is_bound));
    let clients = connected.map(|socket| socket.inode).chain(waiting);
    let clients = clients.filter(|inode| !is_bound(*inode));
    let end = |inode: u32, is_client| SocketEnd {
        inode: inode.into(),
        is_client,
    };
    let bound = bound.iter().map(|socket| end(socket.inode, false));
    Ok(bound.chain(clients.map(|inode| end(inode, true))).collect())
}

/// The inodes of the sockets that listen on the TCP port `port`, of either family.
///
/// # Errors
///
/// The kernel's table cannot be read.
pub fn tcp_listeners(port: u16) -> io::Result<Vec<u64>> {
    let table = |path| read_list(path).map(|table| String::from_utf8_lossy(&table).into_owned());
    let mut inodes = parse_tcp(&table("/proc/net/tcp")?, port);
    match table("/proc/net/tcp6") {
        Ok(table) => inodes.extend(parse_tcp(&table, port)),
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(inodes)
}

/// The state `TCP_LISTEN` in the tables, proc_pid_net(5).
const LISTEN: &str = "0A";

fn parse_tcp(table: &str, port: u16) -> Vec<u64> {
    let listener = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (_, local) = fields.nth(1)?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        let here = u16::from_str_radix(local, 16).ok()? == port;
        (here && state == LISTEN && inode != 0).then_some(inode)
    };
    table.lines().skip(1).filter_map(listener).collect()
}

/// A Unix socket of this network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct UnixSocket {
    inode: u32,
    name: Vec<u8>,
    file: Option<(u32, u32)>,
    peer: Option<u32>,
    waiting: Vec<u32>,
}

/// All Unix sockets, by sock_diag(7).
fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    send(netlink.as_raw_fd(), &request(), MsgFlags::empty())?;
    let mut sockets = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = match recv(netlink.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other?,
        };
        let mut rest = buffer.get(..length).unwrap_or_default();
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                NLMSG_DONE => return Ok(sockets),
                NLMSG_ERROR => {
                    let errno = u32_at(body, 0).unwrap_or_default() as i32;
                    return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
                }
                _ => sockets.extend(parse_unix(body)),
            }
            rest = after;
        }
    }
}

/// A `nlmsghdr` and a `unix_diag_req` that asks for all sockets in all states.
fn request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 24);
    bytes.extend((HEADER as u32 + 24).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend([0; 8]); // sequence and port
    bytes.extend([AddressFamily::Unix as u8, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // states
    bytes.extend(0_u32.to_ne_bytes()); // inode
    bytes.extend(UDIAG_SHOW.to_ne_bytes());
    bytes.extend([0; 8]); // cookie
    bytes
}

/// The first message of `bytes`: its type, its body, and what is behind it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((u16_at(bytes, 4)?, body, after))
}

/// A `unix_diag_msg` and its attributes.
fn parse_unix(body: &[u8]) -> Option<UnixSocket> {
    let mut socket = UnixSocket {
        inode: u32_at(body, 4)?,
        ..UnixSocket::default()
    };
    let mut rest = body.get(16..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let value = rest.get(4..length.into())?;
        match kind {
            // With the NUL at its end, unless it is an abstract one, which begins with NUL.
            UNIX_DIAG_NAME => {
                socket.name = value.strip_suffix(&[0]).unwrap_or(value).to_vec();
            }
            UNIX_DIAG_VFS => socket.file = u32_at(value, 0).zip(u32_at(value, 4)),
            UNIX_DIAG_PEER => socket.peer = u32_at(value, 0).filter(|&inode| inode != 0),
            UNIX_DIAG_ICONS => {
                let inodes = value.chunks_exact(4).filter_map(|inode| u32_at(inode, 0));
                socket.waiting = inodes.filter(|&inode| inode != 0).collect();
            }
            _ => {}
        }
        rest = rest
            .get(usize::from(length).next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Some(socket)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    /// The inode of an open socket.
    fn inode(socket: &impl AsRawFd) -> u64 {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn a_socket_has_a_listener_and_clients() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let waiting = UnixStream::connect(&path).unwrap();
        let ends = socket_ends(&path).unwrap();
        let end = |inode, is_client| SocketEnd { inode, is_client };
        assert!(ends.contains(&end(inode(&listener), false)));
        assert!(
            ends.contains(&end(inode(&waiting), true)),
            "before it is accepted"
        );
        let (accepted, _) = listener.accept().unwrap();
        fs::hard_link(&path, dir.path().join("other")).unwrap();
        let ends = socket_ends(&dir.path().join("other")).unwrap();
        assert!(ends.contains(&end(inode(&accepted), false)));
        assert!(ends.contains(&end(inode(&waiting), true)));
        fs::remove_file(&path).unwrap();
        let ends = socket_ends(&path).unwrap();
        assert!(ends.contains(&end(inode(&listener), false)), "by its name");
        assert_eq!(socket_ends(&dir.path().join("none")).unwrap(), []);
    }

    #[test]
    fn a_port_has_listeners_and_its_clients_are_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        let found = tcp_listeners(address.port()).unwrap();
        assert_eq!(found, [inode(&listener)]);
        let client_port = client.local_addr().unwrap().port();
        assert_eq!(tcp_listeners(client_port).unwrap(), []);
    }

    #[test]
    fn half_a_message_is_none() {
        assert_eq!(message(&[]), None);
        assert_eq!(message(&[40, 0, 0, 0, 20, 0]), None);
        assert_eq!(parse_unix(&[0; 10]), None);
    }
}
