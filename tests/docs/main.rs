//! Manual pages and completions say what the command lines' definitions say, and real shells take
//! them. They are packed and installed with the tools.
//!
//! `MUXUTILS_BLESS=1` writes the files again instead of comparing them (`make man`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod completions;
mod dist;
mod help;
mod manual;
mod pages;
mod shells;

use std::path::{Path, PathBuf};

/// The definitions of the six command lines.
fn commands() -> Vec<clap::Command> {
    vec![
        detach::command().name("detach"),
        eventwait::command().name("eventwait"),
        holder_scan::command().name("holder-scan"),
        pane_ident::command().name("pane-ident"),
        reap::command().name("reap"),
        resume_id::command().name("resume-id"),
    ]
}

/// A path from the top of the project.
fn at_top(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The committed file is what was generated; or becomes it.
#[track_caller]
fn compare(path: &str, generated: &str) {
    let file = at_top(path);
    if std::env::var_os("MUXUTILS_BLESS").is_some() {
        std::fs::write(&file, generated).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = committed
        .lines()
        .zip(generated.lines())
        .position(|(left, right)| left != right);
    assert!(
        committed == generated,
        "{path} is not what the definitions say (first in line {}): run 'make man'",
        differs.map_or(0, |line| line + 1)
    );
}
