//! `detach` on real processes, terminals and sockets.
//!
//! Of the situations that were collected from other projects' reports, these have no test here:
//!
//! | situation | why |
//! |---|---|
//! | a CI cleaner ends whatever carries its mark in the environment | detach changes no variable but those of `--pid-env`; the manual says that such a cleaner reaches the command |
//! | a logout empties the user's cgroup | a session leader stays in its cgroup; the manual says so |
//! | a record that is not there yet on macOS | type-checked only; the same code is tested on Linux |

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
