//! tmux, through its own command.
//!
//! Only `list-panes -a` is believed: `display-message -t` answers, with status 0, for panes that
//! do not exist, and for other panes than the one it was asked about.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use process::helper;
use process::{Peer, Pid};
use records::Deadline;

use crate::pane::{Listing, Multiplexer, Occupant, Pane, Server, Silence, absolute};
use crate::program;
use crate::socket::Stream;

/// More than tmux prints of ten thousand panes.
const LIMIT: usize = 16 << 20;

/// Numbers first, then the lengths in bytes of four texts, then these: a window's name can hold
/// anything, a newline included, and a program in the pane can set it. `#{n:}` is tmux 3.2.
const FORMAT: &str = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_active} #{pane_index} \
     #{window_id} #{window_index} #{session_id} #{pid} \
     #{n:pane_tty} #{n:session_name} #{n:window_name} #{n:socket_path} \
     #{pane_tty}#{session_name}#{window_name}#{socket_path}";

/// A tmux server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tmux {
    program: OsString,
    server: Address,
}

/// Which of the user's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The one that tmux finds by itself: that of the pane this runs in (`TMUX`), else `default`.
    Default,
    /// By its name, as `-L` takes it.
    Name(OsString),
    /// By its socket, as `-S` takes it.
    Socket(PathBuf),
}

impl Address {
    /// What a user calls a server: a path where it has a slash, else a name.
    pub fn of(word: &OsStr) -> Address {
        if word.as_encoded_bytes().contains(&b'/') {
            Address::Socket(word.into())
        } else {
            Address::Name(word.to_owned())
        }
    }
}

impl Tmux {
    /// A server, to be asked by `program`, or by the `tmux` on PATH.
    ///
    /// # Errors
    ///
    /// There is no tmux.
    pub fn new(server: Address, program: Option<&OsStr>) -> Result<Tmux, String> {
        Ok(Tmux {
            program: program::find("tmux", program)?,
            server,
        })
    }

    /// A command to this server, to which tmux's own command and arguments are to be added.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Without it, tmux replaces what it takes for unprintable, and lengths change.
        command.arg("-u");
        match &self.server {
            Address::Default => {}
            Address::Name(name) => {
                command.arg("-L").arg(name);
            }
            Address::Socket(path) => {
                command.arg("-S").arg(path);
            }
        }
        command
    }

    /// Where its socket is.
    fn path(&self) -> PathBuf {
        let named = |name: &OsStr| {
            let folder = std::env::var_os("TMUX_TMPDIR").filter(|folder| !folder.is_empty());
            let folder = folder.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
            let own = format!("tmux-{}", rustix::process::geteuid().as_raw());
            folder.join(own).join(name)
        };
        let inherited = || {
            let value = std::env::var("TMUX").unwrap_or_default();
            let socket = value.split(',').next().filter(|socket| !socket.is_empty());
            socket.map(PathBuf::from)
        };
        match &self.server {
            Address::Default => inherited().unwrap_or_else(|| named(OsStr::new("default"))),
            Address::Name(name) => named(name),
            Address::Socket(path) => path.clone(),
        }
    }

    /// Who is behind its socket, if somebody is; what a server says of itself is a number of its
    /// own pid namespace.
    pub fn peer(&self, deadline: Deadline) -> Option<Peer> {
        peer_at(&self.path(), deadline)
    }

    fn called(&self) -> String {
        match &self.server {
            Address::Default => "tmux".to_owned(),
            Address::Name(name) => format!("tmux -L {}", name.to_string_lossy()),
            Address::Socket(path) => format!("tmux -S {}", path.display()),
        }
    }
}

impl Multiplexer for Tmux {
    fn name(&self) -> &'static str {
        "tmux"
    }

    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn panes(&self, deadline: Deadline) -> Result<Listing, Silence> {
        let mut command = self.command();
        command.args(["list-panes", "-a", "-F", FORMAT]);
        let ran = helper::run(&mut command, crate::until(deadline), LIMIT)
            .map_err(|error| crate::helper_silence(&self.called(), error))?;
        if !ran.status.success() {
            return refusal(&ran.stderr, &self.called());
        }
        let rows = rows(&ran.stdout).ok_or_else(|| {
            Silence::Failed(format!("{}: the list is not readable", self.called()))
        })?;
        let mut listing = listing(rows);
        if let Some(server) = &mut listing.server {
            // It tells what it was started with, which may be relative to some other folder.
            if let Address::Socket(path) = &self.server {
                server.socket = Some(absolute(path));
            }
            // As the server says it, which knows where it is.
            let path = match &self.server {
                Address::Socket(path) => Some(path.clone()),
                Address::Default | Address::Name(_) => server.socket.as_ref().map(PathBuf::from),
            };
            server.peer = path.and_then(|path| peer_at(&path, deadline));
        }
        Ok(listing)
    }
}

fn peer_at(path: &Path, deadline: Deadline) -> Option<Peer> {
    let stream = Stream::connect(path, deadline).ok()?;
    process::peer(stream.socket()).ok()
}

/// What it means that tmux listed nothing.
fn refusal(stderr: &[u8], called: &str) -> Result<Listing, Silence> {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let nobody_listens = text.starts_with("no server running on")
        || (text.starts_with("error connecting to")
            && (text.ends_with("(No such file or directory)")
                || text.ends_with("(Not a directory)")
                || text.ends_with("(Connection refused)")));
    if nobody_listens {
        return Ok(Listing::default());
    }
    // A server that has no session left, and was told to stay.
    if matches!(
        text,
        "no current target" | "no current session" | "no sessions"
    ) {
        return Ok(Listing {
            server: Some(Server::default()),
            panes: Vec::new(),
        });
    }
    let message = format!("{called}: {text}");
    if text.ends_with("(Permission denied)") || text.ends_with("access not allowed") {
        return Err(Silence::Denied(message));
    }
    if text.starts_with("lost server") || text.starts_with("server exited") {
        return Err(Silence::NoAnswer(message));
    }
    Err(Silence::Failed(message))
}

/// One line of the list: a pane as a window has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    pane: String,
    pid: Option<Pid>,
    dead: bool,
    active: bool,
    pane_index: String,
    window: String,
    window_index: String,
    session: String,
    server: Option<Pid>,
    tty: String,
    session_name: String,
    window_name: String,
    socket: OsString,
}

/// Takes the list apart; `None` if it is not wholly of the form that was asked for.
fn rows(mut text: &[u8]) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    while !text.is_empty() {
        let mut word = || {
            let end = memchr::memchr(b' ', text)?;
            let (word, rest) = text.split_at_checked(end)?;
            text = rest.get(1..)?;
            std::str::from_utf8(word).ok()
        };
        let (pane, pid, dead, active) = (word()?, word()?, word()?, word()?);
        let (pane_index, window, window_index) = (word()?, word()?, word()?);
        let (session, server) = (word()?, word()?);
        let lengths: [usize; 4] = [
            word()?.parse().ok()?,
            word()?.parse().ok()?,
            word()?.parse().ok()?,
            word()?.parse().ok()?,
        ];
        let mut texts = lengths.map(|length| {
            let (part, rest) = text.split_at_checked(length)?;
            text = rest;
            Some(part)
        });
        text = text.strip_prefix(b"\n")?;
        let mut bytes = |i: usize| texts.get_mut(i)?.take();
        let socket = OsStr::from_bytes(bytes(3)?).to_owned();
        let mut text = |i: usize| Some(String::from_utf8_lossy(bytes(i)?).into_owned());
        rows.push(Row {
            pane: pane.starts_with('%').then(|| pane.to_owned())?,
            pid: pid.parse::<i64>().ok().and_then(Pid::new),
            // Empty for a pane that lives, in some versions.
            dead: !matches!(dead, "" | "0"),
            active: active == "1",
            pane_index: pane_index.to_owned(),
            window: window.to_owned(),
            window_index: window_index.to_owned(),
            session: session.to_owned(),
            server: server.parse::<i64>().ok().and_then(Pid::new),
            tty: text(0)?,
            session_name: text(1)?,
            window_name: text(2)?,
            socket,
        });
    }
    Some(rows)
}

/// The panes of a list, for the fuzz targets.
#[cfg(fuzzing)]
pub fn listed(text: &[u8]) -> Option<Listing> {
    rows(text).map(listing)
}

/// The panes of the rows, each once: a window that is linked into two sessions is listed twice.
fn listing(rows: Vec<Row>) -> Listing {
    let server = rows.first().map(|row| Server {
        socket: Some(row.socket.clone()),
        pid: row.server,
        peer: None,
    });
    let mut panes: Vec<Pane> = Vec::with_capacity(rows.len());
    for row in rows {
        let names = row.names();
        match panes.iter_mut().find(|pane| pane.id == row.pane) {
            Some(pane) => pane.names.extend(names),
            None => panes.push(row.into_pane(names)),
        }
    }
    Listing {
        // A list without a line still came from a server.
        server: server.or_else(|| Some(Server::default())),
        panes,
    }
}

impl Row {
    /// All that a user may write for this pane besides its id: a window is its active pane.
    fn names(&self) -> Vec<String> {
        let Row { pane_index, .. } = self;
        let mut names = Vec::new();
        for session in [&self.session_name, &self.session] {
            for window in [&self.window_index, &self.window_name, &self.window] {
                let window = format!("{session}:{window}");
                names.push(format!("{window}.{pane_index}"));
                names.push(format!("{window}.{}", self.pane));
                if self.active {
                    names.push(window);
                }
            }
        }
        if self.active {
            names.push(self.window.clone());
        }
        names.dedup();
        names
    }

    fn into_pane(self, names: Vec<String>) -> Pane {
        let occupant = match self.pid {
            _ if self.dead => Occupant::Nobody,
            Some(pid) => Occupant::Process(pid),
            None => Occupant::Unknown("tmux does not know the pane's process".to_owned()),
        };
        Pane {
            id: self.pane,
            names,
            occupant,
            // What tmux has is the directory of whatever runs in the foreground.
            cwd: None,
            label: Some(self.window_name),
            tty: Some(self.tty).filter(|tty| !tty.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pane::Found;

    fn row(pane: &str, rest: [&str; 8], texts: [&str; 4]) -> String {
        let lengths = texts.map(|text| text.len().to_string());
        let words = [&[pane], &rest[..]].concat().join(" ");
        format!("{words} {} {}\n", lengths.join(" "), texts.concat())
    }

    #[test]
    fn rows_of_any_text() {
        let first = row(
            "%0",
            ["77", "0", "1", "0", "@4", "2", "$1", "55"],
            ["/dev/pts/9", "we ird", "na\tm\n%9 1 0 é:x.y", "/tmp/s ock"],
        );
        let dead = row(
            "%1",
            ["78", "1", "0", "1", "@4", "2", "$1", "55"],
            ["", "we ird", "", "/tmp/s ock"],
        );
        let listing = listing(rows(format!("{first}{dead}").as_bytes()).unwrap());
        assert_eq!(
            listing.server,
            Some(Server {
                socket: Some("/tmp/s ock".into()),
                pid: Pid::new(55),
                peer: None,
            })
        );
        let [pane, other] = &listing.panes[..] else {
            panic!("{listing:?}")
        };
        assert_eq!(pane.label.as_deref(), Some("na\tm\n%9 1 0 é:x.y"));
        assert_eq!(pane.tty.as_deref(), Some("/dev/pts/9"));
        assert_eq!(pane.occupant, Occupant::Process(Pid::new(77).unwrap()));
        assert_eq!((&other.occupant, &other.tty), (&Occupant::Nobody, &None));
        for name in [
            "we ird:2",
            "we ird:2.0",
            "$1:2",
            "@4",
            "we ird:@4",
            "we ird:2.%0",
        ] {
            assert_eq!(listing.find(name), Found::One(pane), "{name}");
        }
        assert_eq!(listing.find("we ird:2.1"), Found::One(other));
        assert_eq!(listing.find("we ird"), Found::None);
    }

    #[test]
    fn a_list_of_another_form_is_no_list() {
        let good = row(
            "%0",
            ["77", "0", "1", "0", "@4", "2", "$1", "55"],
            ["t", "s", "w", "p"],
        );
        assert_eq!(rows(good.as_bytes()).unwrap().len(), 1);
        assert_eq!(rows(b"").unwrap().len(), 0);
        for cut in 1..good.len() {
            assert!(rows(&good.as_bytes()[..cut]).is_none(), "cut at {cut}");
            assert!(rows(&good.as_bytes()[cut..]).is_none(), "from {cut}");
        }
        let huge = good.replace(" 1 1 1 1 ", " 1 1 18446744073709551615 1 ");
        assert!(rows(huge.as_bytes()).is_none());
        assert!(rows(good.replace(" 1 1 1 1 ", " 1 1 2 1 ").as_bytes()).is_none());
    }

    #[test]
    fn what_a_refusal_means() {
        let of = |text: &str| refusal(text.as_bytes(), "tmux");
        for text in [
            "no server running on /tmp/tmux-0/default",
            "error connecting to /tmp/x (No such file or directory)\n",
            "error connecting to /etc/passwd/x (Not a directory)",
            "error connecting to /tmp/x (Connection refused)",
        ] {
            assert_eq!(of(text), Ok(Listing::default()), "{text}");
        }
        let empty = of("no current target\n").unwrap();
        assert!(empty.server.is_some() && empty.panes.is_empty());
        let denied = of("error connecting to /tmp/x (Permission denied)");
        assert!(matches!(denied, Err(Silence::Denied(_))));
        assert!(matches!(of("lost server"), Err(Silence::NoAnswer(_))));
        assert!(matches!(of("unknown option -- a"), Err(Silence::Failed(_))));
        assert!(matches!(of(""), Err(Silence::Failed(_))));
    }
}
