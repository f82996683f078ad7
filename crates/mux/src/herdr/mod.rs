//! herdr, straight on its socket (protocol 20, herdr 0.8).
//!
//! One request a connection, never half-closed, with our own deadline on every step: a stopped
//! server accepts connections and never answers, and herdr's own command then hangs.

mod address;
mod wire;

use std::fmt;
use std::path::{Path, PathBuf};

use records::Deadline;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::pane::{Listing, Multiplexer, Occupant, Pane, Server, Silence, absolute};
use crate::socket::{SocketError, Stream};
pub use address::default_socket;
use process::Pid;
pub use wire::{Message, event_name, parse_message, request_line};

/// The id of our requests. Answers are not matched by it: an error can carry another one, and
/// there is one request a connection.
const REQUEST_ID: &str = "muxutils";

/// A herdr server, by its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Herdr {
    socket: PathBuf,
}

/// The result of a request, as the server wrote it.
pub type Answer = Result<Box<RawValue>, RequestError>;

/// Why a request had no result.
#[derive(Debug)]
pub enum RequestError {
    /// There was no connection, or not for long enough.
    Socket(SocketError),
    /// The server closed without a word.
    Closed,
    /// The server said no.
    Refused {
        /// Its word for it, such as `pane_not_found`.
        code: String,
        /// Its text for people.
        message: String,
    },
    /// The answer is not of the protocol; the text says how.
    Malformed(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Socket(error) => error.fmt(f),
            RequestError::Closed => f.write_str("it closed without an answer"),
            RequestError::Refused { code, message } => write!(f, "{message} ({code})"),
            RequestError::Malformed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<SocketError> for RequestError {
    fn from(error: SocketError) -> RequestError {
        RequestError::Socket(error)
    }
}

impl Herdr {
    /// The server that listens on `socket`.
    pub fn at(socket: impl Into<PathBuf>) -> Herdr {
        Herdr {
            socket: socket.into(),
        }
    }

    /// The server that a client would use which is started here: the one of the pane this runs
    /// in, of the session that the environment names, or the default one.
    pub fn from_env() -> Herdr {
        Herdr::at(default_socket(|name| std::env::var_os(name)))
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A connection, on which one request can be sent; [`request_line`] makes it and
    /// [`parse_message`] reads what comes.
    ///
    /// # Errors
    ///
    /// As [`Stream::connect`].
    pub fn connect(&self, deadline: Deadline) -> Result<Stream, SocketError> {
        Stream::connect(&self.socket, deadline)
    }

    /// Sends one request and reads its result.
    ///
    /// # Errors
    ///
    /// There was no result; the error says why.
    pub fn request(&self, method: &str, params: &serde_json::Value, deadline: Deadline) -> Answer {
        ask(&mut self.connect(deadline)?, method, params, deadline)
    }

    fn result<T: for<'a> Deserialize<'a>>(
        &self,
        method: &str,
        params: &serde_json::Value,
        deadline: Deadline,
    ) -> Result<T, RequestError> {
        decode(method, &self.request(method, params, deadline)?)
    }

    /// The first request of several, which also finds out whether a server is running.
    fn first(
        &self,
        method: &str,
        params: &serde_json::Value,
        deadline: Deadline,
    ) -> Result<Option<(Server, Answer)>, Silence> {
        let mut stream = match self.connect(deadline) {
            Ok(stream) => stream,
            Err(SocketError::NotRunning) => return Ok(None),
            Err(error) => return Err(self.silence(error.into())),
        };
        let peer = process::peer(stream.socket()).ok();
        let server = Server {
            socket: Some(absolute(&self.socket)),
            pid: peer.and_then(|peer| peer.pid),
            peer,
        };
        Ok(Some((server, ask(&mut stream, method, params, deadline))))
    }

    /// `info` with its process. `None` if it has been closed meanwhile.
    fn complete(
        &self,
        info: PaneInfo,
        tab_label: Option<String>,
        deadline: Deadline,
    ) -> Result<Option<Pane>, Silence> {
        let params = serde_json::json!({ "pane_id": info.pane_id });
        let answer = self.result::<ProcessAnswer>("pane.process_info", &params, deadline);
        let (occupant, tty) = match answer {
            Ok(ProcessAnswer { process_info: info }) => (occupant(info.shell_pid), info.tty),
            Err(RequestError::Refused { code, .. }) if code == PANE_NOT_FOUND => return Ok(None),
            Err(RequestError::Refused { message, .. }) => (Occupant::Unknown(message), None),
            Err(error) => return Err(self.silence(error)),
        };
        Ok(Some(Pane {
            id: info.pane_id,
            names: Vec::new(),
            occupant,
            cwd: info.cwd.map(PathBuf::from),
            label: info.label.or(tab_label),
            tty,
        }))
    }

    fn silence(&self, error: RequestError) -> Silence {
        let text = format!("herdr at {}: {error}", self.socket.display());
        match error {
            RequestError::Socket(SocketError::Denied) => Silence::Denied(text),
            // One that was there a moment ago is being restarted: its panes are not known.
            RequestError::Socket(SocketError::Deadline | SocketError::NotRunning)
            | RequestError::Closed => Silence::NoAnswer(text),
            _ => Silence::Failed(text),
        }
    }
}

/// What herdr says of a pane that it does not have.
const PANE_NOT_FOUND: &str = "pane_not_found";

fn occupant(shell_pid: Option<i64>) -> Occupant {
    match shell_pid.map(Pid::new) {
        Some(Some(pid)) => Occupant::Process(pid),
        Some(None) => Occupant::Unknown("herdr names a process that cannot be".to_owned()),
        None => Occupant::Unknown("herdr does not know the pane's process".to_owned()),
    }
}

fn decode<T: for<'a> Deserialize<'a>>(method: &str, result: &RawValue) -> Result<T, RequestError> {
    serde_json::from_str(result.get())
        .map_err(|error| RequestError::Malformed(format!("{method}: {error}")))
}

/// Sends one request on a new connection and reads its result.
fn ask(
    stream: &mut Stream,
    method: &str,
    params: &serde_json::Value,
    deadline: Deadline,
) -> Answer {
    let sent = stream.send(&request_line(REQUEST_ID, method, params), deadline);
    if let Err(SocketError::Deadline) = sent {
        return Err(SocketError::Deadline.into());
    }
    // A server that has gone while it was sent to may have answered before.
    let line = match stream.next_line(deadline)? {
        Some(line) => line,
        None => {
            return Err(sent
                .err()
                .map_or(RequestError::Closed, RequestError::Socket));
        }
    };
    match parse_message(&line).map_err(RequestError::Malformed)? {
        Message::Result(result) => Ok(result),
        Message::Error { code, message } => Err(RequestError::Refused { code, message }),
        Message::Event { .. } => Err(RequestError::Malformed("an event is no answer".to_owned())),
    }
}

impl Multiplexer for Herdr {
    fn name(&self) -> &'static str {
        "herdr"
    }

    fn place(&self) -> String {
        self.socket.display().to_string()
    }

    /// The panes in one request, and one more for each: no list of herdr's has the process.
    fn panes(&self, deadline: Deadline) -> Result<Listing, Silence> {
        const LIST: &str = "pane.list";
        let none = serde_json::json!({});
        let Some((server, answer)) = self.first(LIST, &none, deadline)? else {
            return Ok(Listing::default());
        };
        let listed: PaneList = answer
            .and_then(|result| decode(LIST, &result))
            .map_err(|error| self.silence(error))?;
        let tabs = match self.result::<TabList>("tab.list", &none, deadline) {
            Ok(listed) => listed.tabs,
            // They have labels, and those are no reason to know nothing of the panes.
            Err(RequestError::Refused { .. }) => Vec::new(),
            Err(error) => return Err(self.silence(error)),
        };
        let mut panes = Vec::with_capacity(listed.panes.len());
        for info in listed.panes {
            let tab = tabs
                .iter()
                .find(|tab| Some(&tab.tab_id) == info.tab_id.as_ref());
            let tab_label = tab.and_then(|tab| tab.label.clone());
            panes.extend(self.complete(info, tab_label, deadline)?);
        }
        Ok(Listing {
            server: Some(server),
            panes,
        })
    }

    fn pane(&self, address: &str, deadline: Deadline) -> Result<Listing, Silence> {
        const GET: &str = "pane.get";
        let params = serde_json::json!({ "pane_id": address });
        let Some((server, answer)) = self.first(GET, &params, deadline)? else {
            return Ok(Listing::default());
        };
        let info = match answer.and_then(|result| decode::<PaneAnswer>(GET, &result)) {
            Ok(answer) => Some(answer.pane),
            Err(RequestError::Refused { code, .. }) if code == PANE_NOT_FOUND => None,
            Err(error) => return Err(self.silence(error)),
        };
        let pane = match info {
            Some(info) => {
                let tab_label = self.tab_label(&info, deadline)?;
                self.complete(info, tab_label, deadline)?
            }
            None => None,
        };
        // A pane that was moved keeps its old id as an alias; it is recorded by its present one.
        let panes = pane.map(|mut pane| {
            pane.names.push(address.to_owned());
            pane
        });
        Ok(Listing {
            server: Some(server),
            panes: panes.into_iter().collect(),
        })
    }
}

impl Herdr {
    fn tab_label(&self, info: &PaneInfo, deadline: Deadline) -> Result<Option<String>, Silence> {
        let Some(tab) = &info.tab_id else {
            return Ok(None);
        };
        let params = serde_json::json!({ "tab_id": tab });
        match self.result::<TabAnswer>("tab.get", &params, deadline) {
            Ok(answer) => Ok(answer.tab.label),
            Err(RequestError::Refused { .. }) => Ok(None),
            Err(error) => Err(self.silence(error)),
        }
    }
}

#[derive(Deserialize)]
struct PaneList {
    panes: Vec<PaneInfo>,
}

#[derive(Deserialize)]
struct PaneAnswer {
    pane: PaneInfo,
}

#[derive(Deserialize)]
struct PaneInfo {
    pane_id: String,
    #[serde(default)]
    tab_id: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct TabList {
    tabs: Vec<TabInfo>,
}

#[derive(Deserialize)]
struct TabAnswer {
    tab: TabInfo,
}

#[derive(Deserialize)]
struct TabInfo {
    tab_id: String,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct ProcessAnswer {
    process_info: ProcessInfo,
}

#[derive(Deserialize)]
struct ProcessInfo {
    #[serde(default)]
    shell_pid: Option<i64>,
    #[serde(default)]
    tty: Option<String>,
}

/// Reads a result as each of the answers that are asked for, for the fuzz targets.
#[cfg(fuzzing)]
pub fn read_as_every_answer(result: &RawValue) {
    let _ = decode::<PaneList>("", result);
    let _ = decode::<PaneAnswer>("", result);
    let _ = decode::<TabList>("", result);
    let _ = decode::<TabAnswer>("", result);
    let info = decode::<ProcessAnswer>("", result).map(|answer| answer.process_info);
    let _ = info.map(|info| (occupant(info.shell_pid), info.tty));
}

#[cfg(test)]
mod tests;
