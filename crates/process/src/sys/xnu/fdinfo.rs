//! The answers of `proc_pidinfo` and `proc_pidfdinfo`, `<sys/proc_info.h>`.

use super::{long, string, word};

/// `sizeof(struct vinfo_stat)`, with which the descriptions of vnodes, pipes and sockets begin.
const VINFO_STAT: usize = 136;

/// `sizeof(struct vnode_info)`: a `vinfo_stat`, type, padding and file system.
const VNODE_INFO: usize = VINFO_STAT + 16;

/// `MAXPATHLEN`.
const PATH_SIZE: usize = 1024;

/// `sizeof(struct proc_fileinfo)`, with which the description of a descriptor begins.
const FILE_INFO: usize = 24;

/// `sizeof(struct proc_vnodepathinfo)`: working directory and root directory.
pub(crate) const VNODE_PATHS: usize = 2 * (VNODE_INFO + PATH_SIZE);

/// What a descriptor is, by `PROX_FDTYPE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Vnode,
    Socket,
    Pipe,
    Other(i32),
}

/// `struct proc_fdinfo`: number and kind of each open descriptor.
pub(crate) fn descriptors(bytes: &[u8]) -> impl Iterator<Item = (i32, Kind)> {
    bytes.chunks_exact(8).filter_map(|pair| {
        let kind = match word(pair, 4)? {
            1 => Kind::Vnode,
            2 => Kind::Socket,
            6 => Kind::Pipe,
            other => Kind::Other(other),
        };
        Some((word(pair, 0)?, kind))
    })
}

/// The working directory of `struct proc_vnodepathinfo`.
pub(crate) fn working_directory(bytes: &[u8]) -> Option<&[u8]> {
    string(bytes, VNODE_INFO, PATH_SIZE)
}

/// The path of `struct vnode_fdinfowithpath`.
pub(crate) fn vnode_path(bytes: &[u8]) -> Option<&[u8]> {
    string(bytes, FILE_INFO + VNODE_INFO, PATH_SIZE)
}

/// Device and inode of the vnode of `struct vnode_fdinfowithpath`: `vst_dev` is the first word of
/// its `vinfo_stat`, `vst_ino` the second long one.
pub(crate) fn vnode_file(bytes: &[u8]) -> Option<(u32, u64)> {
    let device = word(bytes, FILE_INFO)? as u32;
    Some((device, long(bytes, FILE_INFO + 8)?))
}

/// A number that both ends of the pipe of `struct pipe_fdinfo` share: each end has its own
/// handle and its peer's, which is 0 once nobody has the other end open.
pub(crate) fn pipe(bytes: &[u8]) -> Option<u64> {
    let own = long(bytes, FILE_INFO + VINFO_STAT)?;
    let peer = long(bytes, FILE_INFO + VINFO_STAT + 8)?;
    Some(if peer == 0 { own } else { own.min(peer) })
}

/// Whether a descriptor reads and writes, by the `fi_openflags` (`FREAD`, `FWRITE`) that its
/// description begins with.
pub(crate) fn directions(bytes: &[u8]) -> (bool, bool) {
    let flags = word(bytes, 0).unwrap_or_default();
    (flags & 1 != 0, flags & 2 != 0)
}

/// The kernel's own handle of the socket of `struct socket_fdinfo`.
pub(crate) fn socket(bytes: &[u8]) -> Option<u64> {
    long(bytes, FILE_INFO + VINFO_STAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_descriptor_has_a_number_and_a_kind() {
        let pairs = [(0, 1), (1, 6), (2, 2), (7, 5)];
        let bytes: Vec<u8> = pairs
            .iter()
            .flat_map(|&(fd, kind): &(i32, i32)| [fd.to_ne_bytes(), kind.to_ne_bytes()])
            .flatten()
            .collect();
        let kinds = [
            (0, Kind::Vnode),
            (1, Kind::Pipe),
            (2, Kind::Socket),
            (7, Kind::Other(5)),
        ];
        assert_eq!(descriptors(&bytes).collect::<Vec<_>>(), kinds);
        assert_eq!(descriptors(&bytes[..9]).count(), 1, "half an entry is none");
    }

    #[test]
    fn paths_end_at_the_first_nul() {
        let mut bytes = vec![0; VNODE_PATHS];
        bytes[152..157].copy_from_slice(b"/a b\0");
        assert_eq!(working_directory(&bytes), Some(&b"/a b"[..]));
        assert_eq!(working_directory(&bytes[..500]), None);
        bytes[176..181].copy_from_slice(b"/c d\0");
        assert_eq!(vnode_path(&bytes), Some(&b"/c d"[..]));
        bytes[24..28].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[32..40].copy_from_slice(&9_u64.to_ne_bytes());
        assert_eq!(vnode_file(&bytes), Some((7, 9)));
    }

    #[test]
    fn both_ends_of_a_pipe_have_one_number() {
        let end = |own: u64, peer: u64| {
            let mut bytes = vec![0; 184];
            bytes[160..168].copy_from_slice(&own.to_ne_bytes());
            bytes[168..176].copy_from_slice(&peer.to_ne_bytes());
            bytes
        };
        assert_eq!(pipe(&end(70, 30)), Some(30));
        assert_eq!(directions(&1_i32.to_ne_bytes()), (true, false));
        assert_eq!(directions(&2_i32.to_ne_bytes()), (false, true));
        assert_eq!(pipe(&end(30, 70)), Some(30));
        assert_eq!(pipe(&end(70, 0)), Some(70), "the other end is closed");
        assert_eq!(pipe(&[0; 100]), None);
        assert_eq!(socket(&end(70, 30)), Some(70));
    }
}
