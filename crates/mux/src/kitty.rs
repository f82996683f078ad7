//! kitty, through its own command: `kitten @ ls` has the process of every window.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use process::Pid;
use process::helper;
use records::Deadline;
use serde::Deserialize;

use crate::pane::{Listing, Multiplexer, Occupant, Pane, Server, Silence};
use crate::program;
use crate::socket::{SocketError, Stream};

/// More than kitty prints of ten thousand windows, each with its environment.
const LIMIT: usize = 64 << 20;

/// A kitty that allows remote control on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kitty {
    program: OsString,
    /// As `kitten @ --to` takes it: `unix:PATH`, `unix:@NAME`, `tcp:HOST:PORT`.
    address: String,
}

impl Kitty {
    /// The kitty at `address` (as in `KITTY_LISTEN_ON`, or the socket's path), to be asked by
    /// `program`, or by the `kitten` on PATH.
    ///
    /// # Errors
    ///
    /// There is no kitten, or the address is none.
    pub fn new(address: &OsStr, program: Option<&OsStr>) -> Result<Kitty, String> {
        let address = address
            .to_str()
            .filter(|address| !address.is_empty())
            .ok_or("kitty's address is not readable")?;
        let address = match address.starts_with('/') {
            true => format!("unix:{address}"),
            false => address.to_owned(),
        };
        Ok(Kitty {
            program: program::find("kitten", program)?,
            address,
        })
    }

    /// The path of its socket, where it has one in the file system.
    fn path(&self) -> Option<PathBuf> {
        let path = self.address.strip_prefix("unix:")?;
        path.starts_with('/').then(|| PathBuf::from(path))
    }

    /// The server itself, if one is running. Only a socket with a path can be looked at.
    fn server(&self, deadline: Deadline) -> Result<Option<Server>, Silence> {
        let mut server = Server {
            socket: Some(self.address.clone().into()),
            pid: None,
            peer: None,
        };
        let Some(path) = self.path() else {
            return Ok(Some(server));
        };
        match Stream::connect(&path, deadline) {
            Ok(stream) => {
                server.peer = process::peer(stream.socket()).ok();
                server.pid = server.peer.and_then(|peer| peer.pid);
                Ok(Some(server))
            }
            Err(SocketError::NotRunning) => Ok(None),
            Err(error) => {
                let text = format!("kitty at {}: {error}", self.address);
                Err(match error {
                    SocketError::Denied => Silence::Denied(text),
                    SocketError::Deadline => Silence::NoAnswer(text),
                    _ => Silence::Failed(text),
                })
            }
        }
    }
}

impl Multiplexer for Kitty {
    fn name(&self) -> &'static str {
        "kitty"
    }

    fn place(&self) -> String {
        self.address.clone()
    }

    fn panes(&self, deadline: Deadline) -> Result<Listing, Silence> {
        let Some(server) = self.server(deadline)? else {
            return Ok(Listing::default());
        };
        let mut command = Command::new(&self.program);
        command.args(["@", "--to", &self.address, "ls"]);
        let ran = helper::run(&mut command, crate::until(deadline), LIMIT)
            .map_err(|error| crate::helper_silence("kitten", error))?;
        if !ran.status.success() {
            let text = String::from_utf8_lossy(&ran.stderr);
            return Err(Silence::Failed(format!("kitten: {}", text.trim())));
        }
        let panes = windows(&ran.stdout).map_err(|error| {
            Silence::Failed(format!("kitten: the list is not readable: {error}"))
        })?;
        Ok(Listing {
            server: Some(server),
            panes,
        })
    }
}

/// The windows of `kitten @ ls`: system windows, their tabs, the tabs' windows.
fn windows(json: &[u8]) -> serde_json::Result<Vec<Pane>> {
    #[derive(Deserialize)]
    struct SystemWindow {
        tabs: Vec<Tab>,
    }
    #[derive(Deserialize)]
    struct Tab {
        windows: Vec<Window>,
    }
    #[derive(Deserialize)]
    struct Window {
        id: u64,
        #[serde(default)]
        pid: Option<i64>,
        #[serde(default)]
        title: Option<String>,
    }
    let all: Vec<SystemWindow> = serde_json::from_slice(json)?;
    let windows = all
        .into_iter()
        .flat_map(|system| system.tabs)
        .flat_map(|tab| tab.windows);
    Ok(windows
        .map(|window| Pane {
            id: window.id.to_string(),
            names: Vec::new(),
            occupant: match window.pid.and_then(Pid::new) {
                Some(pid) => Occupant::Process(pid),
                None => Occupant::Unknown("kitty does not know the window's process".to_owned()),
            },
            cwd: None,
            label: window.title,
            tty: None,
        })
        .collect())
}

/// The same, for the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// The windows of `kitten @ ls`.
    pub fn windows(json: &[u8]) -> Option<Vec<crate::Pane>> {
        super::windows(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_all_tabs() {
        let json = br#"[{"id":1,"platform_window_id":7,"tabs":[
            {"id":1,"title":"t","windows":[
              {"id":3,"pid":4242,"title":"one","cwd":"/","cmdline":["zsh"],"env":{"A":"b"}},
              {"id":4,"pid":null,"title":"two"}]},
            {"id":2,"windows":[]}]},
          {"id":2,"tabs":[{"windows":[{"id":12,"pid":99,"is_self":false}]}]}]"#;
        let panes = windows(json).unwrap();
        let seen: Vec<_> = panes
            .iter()
            .map(|pane| (pane.id.as_str(), pane.label.as_deref(), &pane.occupant))
            .collect();
        let pid = |number| Occupant::Process(Pid::new(number).unwrap());
        assert_eq!(seen[0], ("3", Some("one"), &pid(4242)));
        assert!(matches!(seen[1], ("4", Some("two"), Occupant::Unknown(_))));
        assert_eq!(seen[2], ("12", None, &pid(99)));
        assert!(windows(b"{}").is_err());
        assert!(windows(b"").is_err());
    }

    #[test]
    fn addresses() {
        let program = Some(OsStr::new("kitten"));
        let at = |address: &str| Kitty::new(OsStr::new(address), program);
        let path = |address: &str| at(address).unwrap().path();
        assert_eq!(path("/run/k"), Some(PathBuf::from("/run/k")));
        assert_eq!(path("unix:/run/k"), Some(PathBuf::from("/run/k")));
        assert_eq!(path("unix:@k"), None);
        assert_eq!(path("tcp:localhost:5"), None);
        assert!(at("").is_err());
    }
}
