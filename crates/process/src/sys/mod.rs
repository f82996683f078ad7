//! The one place that knows platforms, and the one place with `unsafe`.
//!
//! `linux` and `macos` have the same names with the same signatures; `unix` is what both share.
//! What each side provides:
//!
//! | name | meaning |
//! |---|---|
//! | [`PID_MAX`] | the largest number a process can have |
//! | [`System`], [`Reach`] | what identities on this machine are made of, and which can be judged here |
//! | [`Pin`], [`wait`] | a handle on one process, so that its number cannot change hands unnoticed |
//! | [`Reader`] | the process table, a process at a time |
//! | [`Peer`], [`peer`] | who is at the other end of a Unix socket |
//! | [`become_subreaper`] | adopt orphaned descendants, where the kernel can |
//! | [`die_with_parent`] | have the kernel end a helper whose parent is gone, where it can |
//! | [`open_descriptors`] | the numbers of this process's descriptors |
//! | [`default_all_signals`] | every signal to its default action |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod unix;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(target_os = "macos")]
use macos as platform;

pub(crate) use platform::{
    PID_MAX, Pin, Reach, System, default_all_signals, die_with_parent, open_descriptors, wait,
};
pub use platform::{Peer, Reader, become_subreaper, peer};
pub(crate) use unix::{
    Fork, as_helper, close_all_but, default_signal, default_signals, descriptor_flags, exit_now,
    fork, has_ended, is_ignored, keep_across_exec, kill_group_of,
};
