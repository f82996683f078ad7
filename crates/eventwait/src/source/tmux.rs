//! `--tmux`: what tmux notifies a control client of, and the death of panes.
//!
//! tmux has no notice for a pane's death. The end of a pane's process tells at once, changes of
//! windows tell of panes that vanish; all of them lead to one list of all panes, which alone is
//! believed, and which is also asked for each second.
//!
//! A format subscription (`refresh-client -B`) would tell of dead panes, too, of the attached
//! session alone and once a second. It is not used, for the sake of the server: tmux 3.3a looks at
//! it by a timer, and crashes where the timer comes while a client is still on its way out of a
//! session that is gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use mux::Tmux;
use process::helper::Helper;
use process::{Here, Pid};
use records::{Deadline, time};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;

use super::control::{self, Data, Line, Listed, Reader};
use super::tmux_pane::{Known, UNSURE};
use super::{Source, Turn, Wakers};
use crate::end::End;
use crate::intake::Intake;
use crate::split::{Piece, Splitter};

/// How often all panes are asked for without a reason.
const EVERY: Duration = Duration::from_secs(1);

/// How often tmux is asked for what it may not know yet.
const AGAIN: Duration = Duration::from_millis(50);

/// How long the server's socket may take to tell whose it is: it has just answered.
const PEER: Duration = Duration::from_millis(20);

/// How long the end waits for the control client to die.
const DEATH: Duration = Duration::from_millis(40);

/// A tmux server, through a control client of it.
pub struct TmuxEvents {
    tmux: Tmux,
    /// Of which panes; all if there are none.
    wanted: Vec<String>,
    max_line: usize,
    client: Option<Client>,
    /// What was in the last list.
    panes: Option<Vec<Known>>,
    /// Those that have vanished, and of whose process it is not known yet how it ended: tmux lets
    /// a pane go with its terminal, before it has collected the process.
    leaving: Vec<Known>,
    /// The deadline is near: what is known by now has to do.
    hurry: bool,
    /// Who has those panes.
    server: Option<Pid>,
    /// Which session to attach to: that of the first wanted pane, or any.
    target: Option<String>,
    /// Whether its panes' processes have other numbers here.
    is_foreign: bool,
    /// The session that was attached to is gone, and perhaps no more than that.
    reattaching: bool,
    /// Since when the server is gone.
    gone: Option<Instant>,
    next_list: Instant,
}

struct Client {
    helper: Helper,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    lines: Splitter,
    reader: Reader,
    listing: bool,
    said: Vec<u8>,
    attached: bool,
}

#[derive(Serialize)]
struct Event<'a> {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    event: &'a str,
    data: Data,
    initial: bool,
    at: String,
}

impl TmuxEvents {
    /// The panes `wanted` of the server, or all.
    pub fn new(tmux: Tmux, wanted: Vec<String>, max_line: usize) -> TmuxEvents {
        TmuxEvents {
            tmux,
            target: wanted.first().cloned(),
            wanted,
            max_line,
            client: None,
            panes: None,
            leaving: Vec::new(),
            hurry: false,
            server: None,
            is_foreign: false,
            reattaching: false,
            gone: None,
            next_list: Instant::now(),
        }
    }

    fn attach(&mut self) -> io::Result<Client> {
        let mut command = self.tmux.command();
        // The client must not start a server (-N), nor give the session an environment (-E), nor
        // decide how large the windows are.
        command.args(["-N", "-C", "attach-session", "-E", "-f", "ignore-size"]);
        if let Some(target) = &self.target {
            command.arg("-t").arg(target);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut helper = Helper::start(&mut command)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (helper.stdin(), helper.stdout(), helper.stderr())
        else {
            return Err(io::Error::other("tmux is not connected"));
        };
        // Our own ends of pipes that nobody shares.
        for fd in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(Client {
            helper,
            stdin,
            stdout,
            stderr,
            lines: Splitter::new(self.max_line, 0),
            reader: Reader::default(),
            listing: false,
            said: Vec::new(),
            attached: false,
        })
    }

    /// The control client has ended: because what it was to attach to is not there, or because
    /// its session or the server is gone.
    fn ended(&mut self, intake: &mut Intake) -> Turn {
        let Some(client) = self.client.take() else {
            return Turn::Idle;
        };
        let said = client.end();
        if self.panes.is_some() {
            // Another session of the same server serves as well.
            self.target = None;
            return match std::mem::replace(&mut self.reattaching, true) {
                true => self.closed(intake),
                false => Turn::More,
            };
        }
        // The wanted pane may be gone, and the server there: any session serves to ask it.
        if self.target.take().is_some() && said.contains("can't find") {
            return Turn::More;
        }
        // The server was told to stay without any session (exit-empty).
        if said.contains("no sessions") && !self.wanted.is_empty() {
            intake.armed();
            self.compare(Vec::new(), intake);
            return Turn::done(End::Closed);
        }
        let why = match said.trim() {
            "" => "tmux closed the connection".to_owned(),
            said => format!("tmux: {said}"),
        };
        Turn::failed(End::Unavailable, why)
    }

    /// The server is gone, and the terminals of its panes with it, of which most processes end a
    /// moment later. Those that do are told of before it is over.
    fn closed(&mut self, intake: &mut Intake) -> Turn {
        if let Some(client) = self.client.take() {
            client.end();
        }
        let gone = *self.gone.get_or_insert_with(Instant::now);
        self.hurry |= gone.elapsed() >= UNSURE;
        let mut panes = self.panes.take().unwrap_or_default();
        panes.retain(|known| !known.reported && self.is_wanted(&known.listed.id));
        for mut known in panes.extract_if(.., |known| known.has_ended()) {
            known.dead_since = Some(Instant::now());
            self.leaving.push(known);
        }
        // Of the others the server alone would have known.
        panes.retain(|known| known.process.is_some());
        self.tell_leaving(intake);
        let is_over = self.hurry || panes.is_empty() && self.leaving.is_empty();
        self.panes = Some(panes);
        match is_over {
            true => Turn::done(End::Closed),
            false => Turn::Idle,
        }
    }

    fn is_wanted(&self, pane: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == pane)
    }

    /// Takes a list of all panes: who has died since the last one, or, in the first one, before?
    fn compare(&mut self, list: Vec<Listed>, intake: &mut Intake) {
        let initial = self.panes.is_none();
        let mut before = self.panes.take().unwrap_or_default();
        let here = (!self.is_foreign).then(Here::new);
        let mut now: Vec<Known> = Vec::with_capacity(list.len());
        let mut soon = false;
        for listed in list {
            // A window that is linked into two sessions is listed twice.
            if now.iter().any(|known| known.listed.id == listed.id) {
                continue;
            }
            // A pane can be given another process (respawn-pane), with which the one before is left.
            let is_same =
                |known: &Known| known.listed.id == listed.id && known.listed.pid == listed.pid;
            let known = before.iter().position(is_same);
            let known = known.map(|at| before.swap_remove(at));
            let mut known =
                known.unwrap_or_else(|| Known::new(here.as_ref(), listed.clone(), initial));
            known.listed = listed;
            if known.listed.is_dead && !known.reported {
                let since = *known.dead_since.get_or_insert_with(Instant::now);
                if self.hurry || known.exit() != (None, None) || since.elapsed() >= UNSURE {
                    known.reported = true;
                    if self.is_wanted(&known.listed.id) {
                        intake.record(&event("pane.exited", known.death(), known.initial));
                    }
                } else {
                    soon = true;
                }
            }
            now.push(known);
        }
        // What is left of those before has vanished, or was replaced, and its death with it.
        for mut known in before.into_iter().filter(|known| !known.reported) {
            if self.is_wanted(&known.listed.id) {
                known.dead_since.get_or_insert_with(Instant::now);
                self.leaving.push(known);
            }
        }
        self.tell_leaving(intake);
        if initial {
            for wanted in &self.wanted {
                if !now.iter().any(|known| known.listed.id == *wanted) {
                    let data = Data::Exited {
                        pane: wanted.clone(),
                        pid: None,
                        code: None,
                        signal: None,
                    };
                    intake.record(&event("pane.exited", data, true));
                }
            }
        }
        self.panes = Some(now);
        let pause = if soon { AGAIN } else { EVERY };
        self.next_list = Instant::now() + pause;
    }

    /// Tells of the panes that have vanished, once it is known how their processes ended.
    fn tell_leaving(&mut self, intake: &mut Intake) {
        if self.leaving.is_empty() {
            return;
        }
        let here = Here::new();
        let hurry = self.hurry;
        let is_known = |known: &mut Known| hurry || known.is_as_known_as_can_be(&here);
        for known in self.leaving.extract_if(.., is_known) {
            intake.record(&event("pane.exited", known.death(), false));
        }
    }

    /// Takes a line of the control client. An error ends the wait.
    fn take(&mut self, line: &[u8], intake: &mut Intake) -> Result<(), Turn> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        match client.reader.take(line) {
            Line::Nothing => {}
            // The first answer is that to attaching. What is asked before is asked without a
            // session.
            Line::Done if !client.attached => {
                client.attached = true;
                client.list();
            }
            Line::Done => {}
            Line::Refused(why) => client.said = why.into_bytes(),
            Line::List(server, list) => {
                client.listing = false;
                // Ids begin again with another server.
                if self.panes.is_some() && self.server != server {
                    return Err(self.closed(intake));
                }
                if self.panes.is_none() {
                    let peer = self.tmux.peer(Deadline::after(PEER));
                    self.is_foreign = peer.is_some_and(|peer| Here::new().is_foreign(peer));
                }
                self.server = server;
                self.reattaching = false;
                // Nothing is missed from here on: it is in the list, or a change of it.
                intake.armed();
                self.compare(list, intake);
            }
            Line::Notice {
                name,
                data,
                changes,
            } => {
                if changes {
                    client.list();
                }
                let pane = data.pane();
                if self.panes.is_none() || self.reattaching {
                    // What our own attaching has brought about.
                } else if self.wanted.is_empty() || pane.is_some_and(|pane| self.is_wanted(pane)) {
                    intake.record(&event(&name, data, false));
                } else {
                    intake.skipped(true);
                }
            }
        }
        Ok(())
    }
}

impl Client {
    /// Sends a command. It is little, and a server that takes nothing more is not asked.
    fn ask(&mut self, command: &str) {
        let _ = rustix::io::write(&self.stdin, command.as_bytes());
    }

    fn list(&mut self) {
        if !std::mem::replace(&mut self.listing, true) {
            self.ask(control::LIST);
        }
    }

    /// Ends the client; what it said on its stderr.
    fn end(mut self) -> String {
        let mut bytes = [0; 1024];
        if let Ok(length) = rustix::io::read(&self.stderr, &mut bytes) {
            self.said.extend_from_slice(&bytes[..length]);
        }
        self.helper.end_soon(DEATH);
        String::from_utf8_lossy(&self.said).into_owned()
    }

    fn read(&mut self) -> Result<usize, Errno> {
        rustix::io::read(&self.stdout, self.lines.room()).inspect(|length| {
            self.lines.filled(*length);
        })
    }
}

impl Source for TmuxEvents {
    fn turn(&mut self, intake: &mut Intake) -> Turn {
        if self.gone.is_some() {
            return self.closed(intake);
        }
        if self.client.is_none() {
            match self.attach() {
                Ok(client) => self.client = Some(client),
                Err(error) => {
                    return Turn::failed(End::SourceError, format!("cannot run tmux: {error}"));
                }
            }
        }
        self.tell_leaving(intake);
        if intake.is_satisfied() {
            return Turn::Idle;
        }
        let died = self.panes.iter().flatten().any(Known::is_news);
        let due = self.panes.is_some() && self.next_list <= Instant::now();
        let Some(client) = &mut self.client else {
            return Turn::Idle;
        };
        if died || due {
            client.list();
            self.next_list = Instant::now() + if died { AGAIN } else { EVERY };
        }
        let read = client.read();
        loop {
            let piece = self
                .client
                .as_mut()
                .and_then(|client| client.lines.next_piece());
            let line = match piece {
                Some(Piece::Line { bytes, .. }) => bytes.to_vec(),
                Some(Piece::TooLong) => {
                    intake.piece(&Piece::TooLong, 0);
                    continue;
                }
                None => break,
            };
            if let Err(turn) = self.take(&line, intake) {
                return turn;
            }
            if intake.is_satisfied() {
                return Turn::Idle;
            }
        }
        match read {
            Ok(0) => self.ended(intake),
            Ok(_) => Turn::More,
            Err(Errno::AGAIN | Errno::INTR) => Turn::Idle,
            Err(errno) => Turn::failed(End::SourceError, format!("tmux: {errno}")),
        }
    }

    fn wakers<'a>(&'a self, wakers: &mut Wakers<'a>) {
        if let Some(client) = &self.client {
            wakers.readable(client.stdout());
        }
        // One whose death is known by now would wake without end.
        let panes = self.panes.iter().flatten().chain(&self.leaving);
        let alive = panes.filter(|known| !known.has_ended());
        for process in alive.filter_map(|known| known.process.as_ref()) {
            process.wakers(wakers);
        }
    }

    fn due(&self) -> Option<Instant> {
        let leaving = self.leaving.first().map(|_| Instant::now() + AGAIN);
        let next = self.gone.map_or(self.next_list, |gone| gone + UNSURE);
        Some(leaving.map_or(next, |again| again.min(next)))
    }

    fn wind_down(&mut self) {
        self.hurry = true;
        self.next_list = Instant::now();
    }

    fn look_again(&mut self) {
        self.next_list = Instant::now();
    }

    fn is_looking(&self) -> bool {
        self.panes.is_none()
    }

    fn at_deadline(&self) -> End {
        match self.panes {
            Some(_) => End::Deadline,
            None => End::NoAck,
        }
    }

    fn stop(&mut self) {
        if let Some(client) = self.client.take() {
            client.end();
        }
    }
}

impl Client {
    fn stdout(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }
}

fn event<'a>(name: &'a str, data: Data, initial: bool) -> Event<'a> {
    Event {
        v: 1,
        r#type: "event",
        source: "tmux",
        event: name,
        data,
        initial,
        at: time::now(),
    }
}
