//! What is known of coding agents, as one table that two tools share: `holder-scan` wants to know
//! how an agent shows itself in the process table, `resume-id` how it is launched and where it
//! keeps its sessions.
//!
//! | room | what it knows |
//! |---|---|
//! | [`Table`], [`Agent`] | the entries, built in and the user's own |
//! | [`Shape`] | what an agent's ids look like |
//! | [`Environment`] | the variables that say where an agent's files are |
//! | [`Store`], [`Transcript`] | the sessions of an agent, as they are on disk |
//! | [`CwdEncoding`] | how an agent makes a name of a working directory |
//! | [`sqlite`] | a few columns of a database that its owner writes to |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cwd;
mod encode;
mod env;
mod glob;
mod jsonl;
mod open;
mod shape;
pub mod signs;
pub mod sqlite;
mod store;
mod table;

pub use cwd::Cwds;
pub use encode::{CwdEncoding, sha256_hex};
pub use env::Environment;
pub use open::regular as open_regular;
pub use shape::{Mint, Shape};
pub use store::{State, Store, Transcript};
/// What reads the files of agents, for the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::jsonl::{Told, read};
    pub use crate::store::yaml_string;
}

pub use table::{
    Agent, Blocks, CwdFile, Ids, JsonDocument, JsonLines, Moved, OpaqueFile, SqliteTable, Table,
    Transcripts, TurnRule,
};
