//! `detach` on real processes, terminals and sockets.

#[path = "../support/mod.rs"]
mod support;

mod exec;
mod foreground;
mod isolation;
mod lock;
mod ready;
mod record;
