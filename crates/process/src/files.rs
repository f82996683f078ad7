//! Files as the kernel tells them apart, whatever they are called.

/// A file by device and inode.
///
/// The device is the one of the mounted file system. On file systems that give stat(2) another
/// one (btrfs subvolumes), two of these still compare with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device's major and minor number.
    pub device: (u32, u32),
    /// The inode.
    pub inode: u64,
}

/// What the kernel says of one open descriptor, without touching the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorInfo {
    /// The file; `None` where the kernel does not say (Linux before 5.14).
    pub file: Option<FileId>,
    /// Whether a lock is held through it: flock(2), or a POSIX or open-file-description lock.
    pub locked: bool,
}

/// A lock on a file, as the kernel's list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// The process that took it; `None` where the lock belongs to an open file, or to a process
    /// outside of this pid namespace.
    pub pid: Option<crate::Pid>,
    /// The file.
    pub file: FileId,
}

/// A Unix socket that has to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketEnd {
    /// Its inode, as in `socket:[INODE]`.
    pub inode: u64,
    /// Whether it is connected to the socket there, rather than bound to the path.
    pub is_client: bool,
}
