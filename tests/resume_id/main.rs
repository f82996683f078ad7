//! `resume-id` with transcripts on disk, real claimants, and the other tools around it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod claims;
mod discover;
mod exec;
mod files;
mod home;
mod pane;
mod pipeline;
mod transcripts;
