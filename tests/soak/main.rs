//! What must stay as it was however often the tools run: processes, descriptors, files, memory.
//!
//! `MUXUTILS_SOAK` has more of everything. This process adopts whatever loses its parent, so that
//! nothing which a round has started can hide: each test is alone in it. Each says its figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout)]
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod crowd;
mod house;
mod memory;
mod rounds;
