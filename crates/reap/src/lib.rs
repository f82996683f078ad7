//! The job of `reap`: to end processes by identity, and to come back only when they are dead.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use std::process::ExitCode;

/// The `reap` command.
pub fn main() -> ExitCode {
    ExitCode::from(125)
}
