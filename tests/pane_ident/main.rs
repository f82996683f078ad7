//! `pane-ident` against real processes, real tmux servers, and herdr.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/herdr/mod.rs"]
mod herdr;
#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod exec;
mod herdr_panes;
mod incident;
mod kitty;
mod namespaces;
mod operands;
mod own;
mod records;
mod scripts;
mod silence;
mod stage;
mod tmux_panes;
