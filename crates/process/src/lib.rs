//! What muxutils knows of processes: who one is, whether it lives, how it is started apart from
//! its caller, and how it is ended for certain.
//!
//! | room | what it knows |
//! |---|---|
//! | [`Pid`] | a number that can only mean one process |
//! | [`Operand`] | a process as it is named on a command line |
//! | [`Identity`] | the word that names a process for good, and when two of them are the same |
//! | [`Here`] | this machine: the identity of a pid, and what became of a recorded process |
//! | [`Handle`], [`wait`] | a process that is held, signalled and waited for through its handle |
//! | [`Reader`], [`Entry`], [`Table`] | the process table, a process at a time and as a whole |
//! | [`Family`], [`own_family`] | who must never be signalled by us |
//! | [`end`](mod@end) | the sequence that ends processes, and comes back when they are dead |
//! | [`Launch`] | a command as the leader of a session of its own, with proof |
//! | [`become_command`], [`Exit`] | becoming another program, and how one ended |
//! | [`ProcessRecord`] | what the tools say of one process |
//! | [`SocketPath`], [`probe_socket`] | whether a Unix socket answers, and who is behind it |
//! | [`Watch`] | notice of changes to files and directories |
//! | [`helper`] | a command of ours that can neither hang nor stay behind |
//! | [`Interrupts`] | the signals that ask a tool to end |
//! | [`main!`] | where a tool begins |
//!
//! Platforms differ in `sys` alone, which is also the only place with `unsafe`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod end;
mod entry;
mod exec;
mod exit;
mod files;
mod handle;
pub mod helper;
mod here;
mod ident;
mod interrupt;
mod launch;
mod limit;
mod lstart;
mod operand;
mod pid;
mod record;
mod socket;
#[allow(unsafe_code)]
mod sys;
mod table;

pub use entry::{Entry, Start, State, Unread};
pub use exec::{Refusal, become_command, command_exists};
pub use exit::{Exit, signal_name};
pub use files::{DescriptorInfo, FileId, FileLock, SocketEnd};
pub use handle::{Delivery, Handle, wait};
pub use here::{Here, Sight, Standing};
pub use ident::{
    Comparison, Identity, LinuxIdentity, LstartIdentity, MacosIdentity, NotAnIdentity,
};
pub use interrupt::{ENDING, Interrupts, die_by, unblock};
pub use launch::{
    Blocked, Child, Held, Launch, LaunchError, Remnant, block_signals, close, close_descriptors,
    fork_apart, is_open, survive_failing_writes,
};
pub use limit::raise_descriptor_limit;
pub use nix::sys::signal::Signal;
pub use operand::{Operand, file_hint};
pub use pid::{NotAPid, Pid};
pub use record::{Named, ProcessRecord, Ready, Status};
pub use socket::{SocketPath, probe_socket, stream_socket};
pub use sys::{
    ClosedOutput, Mounts, Peer, PipeEnd, Reader, Watch, become_subreaper, collect_adopted,
    concealment, file_at, file_locks, hang_up, kernel_path, peer, socket_ends, start,
    tcp_listeners, terminal_called, terminal_name,
};
pub use table::{Family, Table, own_family};

// What reads the kernel's texts, for the fuzz targets.
#[cfg(all(fuzzing, target_os = "linux"))]
pub use sys::parse_stat;
#[cfg(fuzzing)]
pub use sys::split_strings;
