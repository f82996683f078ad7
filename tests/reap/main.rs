//! `reap` against real processes.

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod groups;
mod interrupts;
mod ladder;
mod many;
mod namespace;
mod records;
mod stage;
mod traced;
mod trees;
