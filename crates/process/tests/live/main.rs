//! Identity, handles and the process table on real processes.
//!
//! Some of these tests run once more inside namespaces, as another user or under a system call
//! filter: see [`inside::within`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, missing_docs)]

#[cfg(target_os = "linux")]
mod fallback;
mod identity;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod interrupts;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod recycling;
mod support;
mod table;
#[cfg(target_os = "linux")]
mod users;
mod waiting;
