//! What all six tools agree on, in one small crate: how records come in and go
//! out, what an exit status means, how durations and deadlines are read and
//! kept, and which files may be trusted.
//!
//! A tool's `main` is [`tool::main`]; it reads records with [`input::Lines`],
//! looks into them with [`record::Record`], prints with [`output::Output`], and
//! speaks to people with [`say!`].

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bounded;
pub mod columns;
pub mod deadline;
pub mod duration;
pub mod exit;
pub mod files;
pub mod host;
pub mod human;
pub mod id;
pub mod input;
pub mod number;
pub mod output;
pub mod record;
mod redact;
pub mod say;
mod splice;
pub mod text;
pub mod time;
pub mod tool;
pub mod waiting;

pub use bounded::bounded;
pub use deadline::Deadline;
pub use exit::Status;
pub use output::{Output, OutputArgs};
pub use record::Record;
pub use tool::Failure;
