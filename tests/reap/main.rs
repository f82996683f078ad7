//! `reap` against real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod groups;
mod interrupts;
mod ladder;
mod many;
mod markers;
mod namespace;
mod records;
mod stage;
mod traced;
mod trees;
