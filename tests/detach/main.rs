//! `detach` on real processes, terminals and sockets. Reported situations without a test are in
//! `tests/cases.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod announce;
mod exec;
mod foreground;
mod guard;
mod guarded;
mod guarded_wait;
mod isolation;
mod lock;
mod ready;
mod record;
mod restarts;
#[cfg(target_os = "linux")]
mod steps;
mod stops;
mod sweep;
