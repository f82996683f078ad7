//! `eventwait` against real files, processes, sockets, terminals and multiplexers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/herdr/mod.rs"]
mod herdr;
#[path = "../support/mod.rs"]
mod support;

mod at_last;
mod bounds;
mod commands;
mod drop_in;
mod files;
mod herdr_panes;
mod lines;
mod paths;
mod processes;
mod races;
mod reports;
mod sockets;
mod stage;
mod tmux_panes;
