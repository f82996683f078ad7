//! A herdr server for tests: a stand-in that speaks its protocol with its bad habits, or, where
//! `MUXUTILS_TEST_HERDR` names the program, a real one in a home of its own.
//!
//! In a test's main file: `#[path = "support/herdr/mod.rs"] mod herdr;`. Then:
//!
//! ```ignore
//! let herdr = Herdr::start();
//! let pane = herdr.create("/tmp", "a label");  // a workspace with one pane: its id, "w1:p1"
//! herdr.pid(&pane);                            // its shell, which is a real process
//! herdr.run_in(&pane, "echo hello > /tmp/x");  // typed into that shell
//! herdr.request("pane.close", json!({"pane_id": pane}));
//! ```
//!
//! The server is at `herdr.socket()`. What happens to servers: [`Herdr::restart`] (the same ids,
//! new shells), [`Herdr::handoff`] (the same shells, a new server), [`Herdr::start_over`] (session
//! deleted, ids from the beginning), [`Herdr::stop`], [`Herdr::freeze`] (it accepts and does not
//! answer), [`Herdr::thaw`]. Statuses come from `pane.report_agent`, see [`Herdr::report`].
//!
//! The habits, as herdr 0.8 has them; where [`Habits`] has a switch, [`Herdr::set_habits`] takes it:
//!
//! - one request a connection, which is then closed; a further one is ignored
//! - a request that is not whole after [`Habits::patience`] (5 s): closed without a word
//! - errors of a request that does not parse have the id `""`; a subscription to a missing pane is
//!   refused as a whole, with an id that is not the request's
//! - a half-closed client, and one that sends another byte, loses its stream
//! - lifecycle events come as `pane_closed`, those of one pane as `pane.agent_status_changed`
//! - [`Habits::replay`]: a new lifecycle subscription first gets what is still in the ring of 512,
//!   unmarked; status subscriptions do not
//! - one event a subscription each [`Habits::tick`] (100 ms); what falls out of the ring meanwhile
//!   is lost without a mark
//! - a reader that does not read: the server waits 5 s and closes
//! - close by request gives `pane_closed` alone, a shell's own end `pane_exited` alone
//! - stop, restart, handoff: bare EOF
//! - [`Habits::hang_up`]: every connection is closed without a word
//!
//! [`Herdr::emit`] sends any event by hand, [`Herdr::break_streams`] sends a line (an error, half
//! an object) into every stream and closes it, [`Herdr::asked`] tells which requests have come.
//! These and the habits are the stand-in's alone: a test that uses them begins with
//! `if herdr.is_real() { return; }`.

#![allow(dead_code)]

mod real;
mod server;
mod state;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use server::Habits;

/// A running herdr. Its shells, and what runs in their sessions, end with it.
pub struct Herdr {
    backend: Backend,
    dir: tempfile::TempDir,
}

enum Backend {
    StandIn(server::Server),
    Real(real::Server),
}

impl Herdr {
    /// Starts a server without any workspace.
    pub fn start() -> Herdr {
        // Socket paths are short, and the real one needs a home of its own.
        let dir = tempfile::Builder::new().prefix("hd").tempdir().unwrap();
        let backend = match std::env::var_os("MUXUTILS_TEST_HERDR") {
            Some(program) => Backend::Real(real::Server::start(program, dir.path())),
            None => Backend::StandIn(server::Server::start(&dir.path().join("herdr.sock"))),
        };
        let herdr = Herdr { backend, dir };
        herdr.until_up();
        herdr
    }

    /// Whether this is a real herdr, which has no switches.
    pub fn is_real(&self) -> bool {
        matches!(self.backend, Backend::Real(_))
    }

    /// The API socket.
    pub fn socket(&self) -> PathBuf {
        match &self.backend {
            Backend::StandIn(server) => server.socket().to_owned(),
            Backend::Real(server) => server.socket(),
        }
    }

    /// A folder that goes with the server.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The result of a request that must succeed.
    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Value {
        self.try_request(method, params)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The result of a request, or the server's error.
    pub fn try_request(&self, method: &str, params: Value) -> Result<Value, Value> {
        let mut stream = UnixStream::connect(self.socket()).map_err(|e| json!(e.to_string()))?;
        let request = json!({"id": "test", "method": method, "params": params});
        let wait = Some(Duration::from_secs(30));
        stream.set_read_timeout(wait).unwrap();
        stream
            .write_all(format!("{request}\n").as_bytes())
            .map_err(|e| json!(e.to_string()))?;
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .map_err(|e| json!(e.to_string()))?;
        let mut answer: Value = serde_json::from_str(&line).map_err(|e| json!(e.to_string()))?;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].take()),
        }
    }

    /// A workspace with one pane; the pane's id.
    #[track_caller]
    pub fn create(&self, cwd: &str, label: &str) -> String {
        let created = self.request("workspace.create", json!({"cwd": cwd, "label": label}));
        let pane = &created["root_pane"]["pane_id"];
        let pane = pane.as_str().expect("a pane").to_owned();
        self.request("pane.rename", json!({"pane_id": pane, "label": label}));
        pane
    }

    /// A second pane beside `pane`; its id.
    #[track_caller]
    pub fn split(&self, pane: &str) -> String {
        let params = json!({"target_pane_id": pane, "direction": "right"});
        let split = self.request("pane.split", params);
        split["pane"]["pane_id"]
            .as_str()
            .expect("a pane")
            .to_owned()
    }

    /// The shell of a pane.
    #[track_caller]
    pub fn pid(&self, pane: &str) -> i32 {
        let info = self.request("pane.process_info", json!({"pane_id": pane}));
        let pid = info["process_info"]["shell_pid"].as_i64().expect("a pid");
        i32::try_from(pid).unwrap()
    }

    /// Closes a pane, and ends all that is in its shell's session.
    #[track_caller]
    pub fn close(&self, pane: &str) {
        self.request("pane.close", json!({ "pane_id": pane }));
    }

    /// Types a line into the shell of a pane.
    #[track_caller]
    pub fn run_in(&self, pane: &str, line: &str) {
        let params = json!({"pane_id": pane, "text": line, "keys": ["enter"]});
        self.request("pane.send_input", params);
    }

    /// Gives the agent of a pane a status: `working`, `blocked`, `idle`.
    #[track_caller]
    pub fn report(&self, pane: &str, agent: &str, state: &str) {
        let source = "custom:test";
        let params = json!({"pane_id": pane, "source": source, "agent": agent, "state": state});
        self.request("pane.report_agent", params);
    }

    /// Stops the server and starts it again: the same ids, new shells.
    pub fn restart(&self) {
        self.stop();
        match &self.backend {
            Backend::StandIn(server) => server.start_again(),
            Backend::Real(server) => server.start_again(),
        }
        self.until_up();
    }

    /// Stops the server, with all its shells.
    pub fn stop(&self) {
        match &self.backend {
            Backend::StandIn(server) => server.stop(),
            Backend::Real(server) => server.stop(),
        }
    }

    /// Stops the server, deletes its session and starts it again: nothing is there, and ids start
    /// from the beginning.
    pub fn start_over(&self) {
        self.stop();
        match &self.backend {
            Backend::StandIn(server) => {
                server.forget();
                server.start_again();
            }
            Backend::Real(server) => {
                server.forget();
                server.start_again();
            }
        }
        self.until_up();
    }

    /// A new server takes over from the old one: the same panes with the same shells, other
    /// terminal ids, and all streams broken.
    pub fn handoff(&self) {
        self.request("server.live_handoff", json!({}));
        self.until_up();
    }

    /// From now on it accepts connections and answers none, as when it is stopped (SIGSTOP).
    pub fn freeze(&self) {
        match &self.backend {
            Backend::StandIn(server) => server.freeze(true),
            Backend::Real(server) => server.signal(process::Signal::SIGSTOP),
        }
    }

    /// Ends [`Herdr::freeze`].
    pub fn thaw(&self) {
        match &self.backend {
            Backend::StandIn(server) => server.freeze(false),
            Backend::Real(server) => server.signal(process::Signal::SIGCONT),
        }
    }

    /// Other habits for the connections to come.
    pub fn set_habits(&self, habits: Habits) {
        self.stand_in().set_habits(habits);
    }

    /// Sends an event, by its dotted name, to all who have subscribed to it.
    pub fn emit(&self, event: &str, data: Value) {
        self.stand_in().emit(event, data);
    }

    /// Sends `text` into every stream as it is, and closes it.
    pub fn break_streams(&self, text: &str) {
        self.stand_in().break_streams(text);
    }

    /// The methods that were asked for so far, in their order.
    pub fn asked(&self) -> Vec<String> {
        self.stand_in().asked()
    }

    fn stand_in(&self) -> &server::Server {
        match &self.backend {
            Backend::StandIn(server) => server,
            Backend::Real(_) => panic!("a real herdr has no such switch"),
        }
    }

    fn until_up(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.try_request("ping", json!({})).is_err() {
            assert!(Instant::now() < deadline, "herdr does not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
