//! What a multiplexer is asked, and what it may answer.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use process::{Peer, Pid};
use records::Deadline;

/// One server of a terminal multiplexer.
pub trait Multiplexer: fmt::Debug + Send + Sync {
    /// The multiplexer's name, as records carry it in `mux`.
    fn name(&self) -> &'static str;

    /// Where the server is asked for, for people.
    fn place(&self) -> String;

    /// All panes of the server, in one query where it has one. A server that is not running has
    /// no panes, and that is an answer.
    ///
    /// # Errors
    ///
    /// The server did not say. Nothing may be concluded from that.
    fn panes(&self, deadline: Deadline) -> Result<Listing, Silence>;

    /// The panes that `address` could mean, for one who wants only that. Others may be in the
    /// answer; the caller looks with [`Listing::find`].
    ///
    /// # Errors
    ///
    /// As [`Multiplexer::panes`].
    fn pane(&self, address: &str, deadline: Deadline) -> Result<Listing, Silence> {
        let _ = address;
        self.panes(deadline)
    }
}

/// What a server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The server; `None` where none is running.
    pub server: Option<Server>,
    /// Its panes, each once.
    pub panes: Vec<Pane>,
}

/// A running server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The socket it listens on: its path, or its address in the multiplexer's own form.
    pub socket: Option<OsString>,
    /// Its process.
    pub pid: Option<Pid>,
    /// Who the kernel says is behind the socket. The numbers that a server in another pid
    /// namespace gives its processes mean others here.
    pub peer: Option<Peer>,
}

/// A socket's path, as it is recorded: good in every working directory.
pub(crate) fn absolute(path: &Path) -> OsString {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.into_os_string()
}

/// One pane, as its server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    /// Its id, by which it is recorded.
    pub id: String,
    /// Other addresses that mean exactly this pane at this moment.
    pub names: Vec<String>,
    /// The process that the pane was made for, or that took its place.
    pub occupant: Occupant,
    /// Its working directory, where the server is the one to ask for it.
    pub cwd: Option<PathBuf>,
    /// What people call it.
    pub label: Option<String>,
    /// The path of its terminal.
    pub tty: Option<String>,
}

/// Who sits in a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// This process, says the server.
    Process(Pid),
    /// Nobody: the process has ended, and the pane was kept.
    Nobody,
    /// The server could not say; the text says why.
    Unknown(String),
}

/// Which pane an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// No pane.
    None,
    /// This one.
    One(&'a Pane),
    /// More than one, so that none may be chosen.
    Several,
}

impl Listing {
    /// The pane that `address` means: compared exactly with ids and names, never by prefix or
    /// pattern.
    pub fn find(&self, address: &str) -> Found<'_> {
        if let Some(pane) = self.panes.iter().find(|pane| pane.id == address) {
            return Found::One(pane);
        }
        let mut named = self
            .panes
            .iter()
            .filter(|pane| pane.names.iter().any(|name| name == address));
        match (named.next(), named.next()) {
            (None, _) => Found::None,
            (Some(pane), None) => Found::One(pane),
            (Some(_), Some(_)) => Found::Several,
        }
    }
}

/// Why a server did not say. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It did not answer before the deadline, or went away while it was asked.
    NoAnswer(String),
    /// It may not be asked by this user.
    Denied(String),
    /// It answered with an error, or with something that is not understood, or its command could
    /// not be run.
    Failed(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silence::NoAnswer(why) | Silence::Denied(why) | Silence::Failed(why) => {
                f.write_str(why)
            }
        }
    }
}

impl std::error::Error for Silence {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(id: &str, names: &[&str]) -> Pane {
        Pane {
            id: id.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            occupant: Occupant::Nobody,
            cwd: None,
            label: None,
            tty: None,
        }
    }

    #[test]
    fn addresses_are_compared_exactly() {
        let listing = Listing {
            server: None,
            panes: vec![
                pane("%1", &["@1", "work:0", "work:0.0"]),
                pane("%11", &["work:0.1", "twice"]),
                pane("%2", &["twice", "%1"]),
            ],
        };
        let table = [
            ("%1", Some("%1")),
            ("work:0", Some("%1")),
            ("work:0.1", Some("%11")),
            ("work", None),
            ("wor", None),
            ("%", None),
            ("%111", None),
            ("*", None),
            ("", None),
        ];
        for (address, id) in table {
            let found = match listing.find(address) {
                Found::One(pane) => Some(pane.id.as_str()),
                Found::None => None,
                Found::Several => panic!("{address}"),
            };
            assert_eq!(found, id, "{address}");
        }
        assert_eq!(listing.find("twice"), Found::Several);
    }
}
