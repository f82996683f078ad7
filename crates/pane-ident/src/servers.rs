//! Which servers can be asked, how, and asking them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use mux::{Herdr, Kitty, Listing, Multiplexer, Silence, Tmux, tmux};
use process::Here;
use records::Deadline;

use crate::verdict::Doubt;

/// How many servers are asked at once, so that one that hangs holds up no other.
const AT_ONCE: usize = 16;

/// How often a server is asked that goes away meanwhile.
const TRIES: usize = 3;

/// The pause between.
const PAUSE: Duration = Duration::from_millis(50);

/// The multiplexers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// tmux(1).
    Tmux,
    /// herdr.
    Herdr,
    /// kitty(1).
    Kitty,
}

impl Kind {
    /// The one that records call `name`.
    pub fn of(name: &str) -> Option<Kind> {
        match name {
            "tmux" => Some(Kind::Tmux),
            "herdr" => Some(Kind::Herdr),
            "kitty" => Some(Kind::Kitty),
            _ => None,
        }
    }
}

/// One server: the multiplexer, and its socket where a record names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey {
    /// The multiplexer.
    pub kind: Kind,
    /// The server's socket; `None` for the one that the options or the environment name.
    pub socket: Option<OsString>,
}

impl ServerKey {
    /// The server that a record does not name any nearer.
    pub fn default_of(kind: Kind) -> ServerKey {
        ServerKey { kind, socket: None }
    }
}

/// The options about servers.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Multiplexers")]
pub struct ServerArgs {
    /// The tmux server, as its options -L and -S take it
    #[arg(long, value_name = "NAME|PATH", value_parser = socket())]
    pub tmux_socket: Option<OsString>,

    /// The herdr server; else HERDR_SOCKET_PATH, else the session's
    #[arg(long, value_name = "PATH", value_parser = socket())]
    pub herdr_socket: Option<OsString>,

    /// The kitty; else KITTY_LISTEN_ON
    #[arg(long, value_name = "ADDRESS", value_parser = socket())]
    pub kitty_socket: Option<OsString>,

    /// The tmux to run, instead of the one on PATH
    #[arg(long, value_name = "FILE")]
    pub tmux_bin: Option<OsString>,

    /// The kitten to run, instead of the one on PATH
    #[arg(long, value_name = "FILE")]
    pub kitten_bin: Option<OsString>,
}

/// A server by its name, path or address. Of an empty one, as a script with an unset variable gives
/// it, it would be found that no server is running there.
fn socket() -> impl TypedValueParser<Value = OsString> {
    let is_named = |socket: OsString| match socket.is_empty() {
        true => Err("it is empty"),
        false => Ok(socket),
    };
    OsStringValueParser::new().try_map(is_named)
}

impl ServerArgs {
    /// A client of the server `key`.
    ///
    /// # Errors
    ///
    /// It cannot be asked: its command is missing, or nothing says where it is.
    pub fn open(&self, key: &ServerKey) -> Result<Box<dyn Multiplexer>, String> {
        let socket = |option: &Option<OsString>| key.socket.clone().or_else(|| option.clone());
        match key.kind {
            Kind::Tmux => {
                let server = socket(&self.tmux_socket);
                let server = server.map_or(tmux::Address::Default, |s| tmux::Address::of(&s));
                Ok(Box::new(Tmux::new(server, self.tmux_bin.as_deref())?))
            }
            Kind::Herdr => Ok(Box::new(
                socket(&self.herdr_socket).map_or_else(Herdr::from_env, Herdr::at),
            )),
            Kind::Kitty => {
                let address = socket(&self.kitty_socket)
                    .or_else(|| std::env::var_os("KITTY_LISTEN_ON"))
                    .ok_or(
                        "kitty's socket is not known: neither --kitty-socket nor KITTY_LISTEN_ON",
                    )?;
                let program: Option<&OsStr> = self.kitten_bin.as_deref();
                Ok(Box::new(Kitty::new(&address, program)?))
            }
        }
    }
}

/// Asks servers, several at once.
pub fn ask_all(
    here: &Here,
    keys: &[ServerKey],
    servers: &ServerArgs,
    deadline: Deadline,
) -> HashMap<ServerKey, Result<Listing, Doubt>> {
    let answers = Mutex::new(HashMap::with_capacity(keys.len()));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = ask(here, key, servers, deadline);
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.insert(key.clone(), answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..keys.len().min(AT_ONCE) {
            scope.spawn(work);
        }
        work();
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn ask(
    here: &Here,
    key: &ServerKey,
    servers: &ServerArgs,
    deadline: Deadline,
) -> Result<Listing, Doubt> {
    let server = servers.open(key).map_err(|why| Doubt {
        reason: "no_multiplexer",
        why,
    })?;
    let listing = again(deadline, || server.panes(deadline)).map_err(|silence| Doubt {
        reason: silence_reason(&silence),
        why: silence.to_string(),
    })?;
    match foreign_numbers(here, &listing) {
        Some(why) => Err(Doubt {
            reason: "other_namespace",
            why,
        }),
        None => Ok(listing),
    }
}

/// Asks, and asks again a moment later where a server went away while it was asked: by then it is
/// gone, or has been replaced by its successor.
///
/// # Errors
///
/// What the last answer was.
pub fn again(
    deadline: Deadline,
    ask: impl Fn() -> Result<Listing, Silence>,
) -> Result<Listing, Silence> {
    let mut answer = ask();
    for _ in 1..TRIES {
        if !matches!(answer, Err(Silence::NoAnswer(_))) || deadline.passed() {
            break;
        }
        deadline.sleep(PAUSE);
        answer = ask();
    }
    answer
}

/// Why the pids that a server names are not to be believed here: it lives in another pid
/// namespace, where they are other processes' numbers.
pub fn foreign_numbers(here: &Here, listing: &Listing) -> Option<String> {
    let peer = listing.server.as_ref()?.peer?;
    here.is_foreign(peer)
        .then(|| "the multiplexer's server lives in another pid namespace".to_owned())
}

/// The token for a server that did not say.
pub fn silence_reason(silence: &Silence) -> &'static str {
    match silence {
        Silence::NoAnswer(_) => "server_silent",
        Silence::Denied(_) => "server_denied",
        Silence::Failed(_) => "server_failed",
    }
}
