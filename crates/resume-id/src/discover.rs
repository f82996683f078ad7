//! `--discover`: the sessions that an agent has of a directory.

use std::time::SystemTime;

use agents::{Agent, Environment, Store, Transcript};
use records::{Deadline, Failure, Output, Status, text, time};
use serde::Serialize;

use crate::database::Rows;
use crate::decision::state_word;
use crate::look;

/// A `session` record.
#[derive(Debug, Serialize)]
struct Session<'a> {
    v: u8,
    r#type: &'static str,
    session_id: &'a str,
    path: String,
    cwd: Option<&'a str>,
    state: &'static str,
    modified_at: Option<String>,
    turns: Option<u64>,
    damaged: bool,
    agent: &'a str,
    lossy: bool,
    argv_cut: bool,
}

/// The keys of a session.
#[rustfmt::skip]
pub const KEYS: &[&str] = &[
    "v", "type", "session_id", "path", "cwd", "state", "modified_at", "turns", "damaged", "agent",
    "lossy", "argv_cut",
];

/// Prints the sessions of `agent` in `cwd` that were written to since then, newest first.
///
/// # Errors
///
/// They cannot be read (3), or the output cannot be written.
pub fn run(
    agent: &Agent,
    environment: &Environment,
    cwd: &str,
    since: Option<SystemTime>,
    deadline: Deadline,
    mut output: Output,
) -> Result<Status, Failure> {
    let store = Store::new(agent, environment, cwd, deadline).map_err(Failure::unknown)?;
    let rows = Rows::of(agent, store.root(), environment);
    let found = look::sessions(store, rows, deadline, Store::list).map_err(Failure::unknown)?;
    // What does not say when it was written to cannot be said to be too old.
    let recent = |one: &&Transcript| match (since, one.modified) {
        (Some(since), Some(modified)) => modified >= since,
        _ => true,
    };
    let mut status = Status::No;
    for one in found.iter().filter(recent) {
        let (path, lossy) = text::lossy(one.path.as_os_str().as_encoded_bytes());
        output.emit(&Session {
            v: 1,
            r#type: "session",
            session_id: &one.id,
            path,
            cwd: one.cwd.as_deref(),
            state: state_word(one),
            modified_at: one.modified.map(time::rfc3339_millis),
            turns: one.turns,
            damaged: one.damaged,
            agent: &agent.name,
            lossy,
            argv_cut: false,
        })?;
        status = Status::Done;
    }
    output.finish()?;
    Ok(status)
}
