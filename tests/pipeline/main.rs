//! The tools composed, and the rules that all six keep, seen from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../resume_id/home.rs"]
#[allow(dead_code)] // Shared with the tests of resume-id.
mod home;

mod agent;
mod bare;
#[cfg(target_os = "linux")]
mod clock;
mod cut;
mod deadlines;
mod demo;
mod foreign;
mod forms;
mod hints;
mod lines;
mod numbers;
mod passing;
mod properties;
mod reports;
mod scene;
mod signals;
mod stage;
mod status;
mod streams;
mod usage;
