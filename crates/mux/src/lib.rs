//! Clients of terminal multiplexers that can neither hang nor be fooled.
//!
//! | room | what it knows |
//! |---|---|
//! | [`Multiplexer`] | what every one of them is asked: which panes has your server? |
//! | [`Tmux`] | tmux, through its own command |
//! | [`Herdr`] | herdr, straight on its socket: requests, and the stream of events |
//! | [`Kitty`] | kitty, through its own command |
//! | [`Stream`] | a connection to a Unix socket, with a deadline on every step |
//! | [`program`] | where a multiplexer's command is to be found |
//!
//! A pane's id is an address and no identity: after a restart of the multiplexer it is somebody
//! else's pane. So all that is asked here is which process sits in a pane; who that process is,
//! and whether it is the right one, is for the caller to judge.
//!
//! Another multiplexer is one more file with a [`Multiplexer`] in it.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod herdr;
pub mod kitty;
pub mod program;
pub mod socket;
pub mod tmux;

mod pane;

pub use herdr::Herdr;
pub use kitty::Kitty;
pub use pane::{Found, Listing, Multiplexer, Occupant, Pane, Server, Silence};
pub use socket::{SocketError, Stream};
pub use tmux::Tmux;

use std::time::{Duration, Instant};

use process::helper::HelperError;
use records::Deadline;

/// How long a multiplexer's command may take where the caller has no limit.
const LONGEST: Duration = Duration::from_secs(3600);

/// `deadline` as helpers take it.
fn until(deadline: Deadline) -> Instant {
    Instant::now() + deadline.left().unwrap_or(LONGEST).min(LONGEST)
}

/// What it means that the command `called` gave no answer.
fn helper_silence(called: &str, error: HelperError) -> Silence {
    let text = format!("{called}: {error}");
    match error {
        HelperError::Deadline => Silence::NoAnswer(text),
        HelperError::Io(_) | HelperError::TooMuch => Silence::Failed(text),
    }
}
