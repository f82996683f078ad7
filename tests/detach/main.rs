//! `detach` on real processes, terminals and sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod exec;
mod foreground;
mod isolation;
mod lock;
mod ready;
mod record;
