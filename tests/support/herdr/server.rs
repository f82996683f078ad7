//! The stand-in's socket: connections, requests, streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::RecvFlags;
use serde_json::{Value, json};

use super::state::{Event, State};

/// How often the server looks round.
const TURN: Duration = Duration::from_millis(5);

/// What of the server's behaviour can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// New lifecycle subscriptions get old events first (0.8); without it only new ones (0.9).
    pub replay: bool,
    /// How often streams are looked after: one event a subscription each time.
    pub tick: Duration,
    /// How long a request, and a reader of events, may take.
    pub patience: Duration,
    /// Every connection is closed without a word.
    pub hang_up: bool,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits {
            replay: true,
            tick: Duration::from_millis(100),
            patience: Duration::from_secs(5),
            hang_up: false,
        }
    }
}

pub struct Server {
    socket: PathBuf,
    shared: Arc<Mutex<Shared>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: State,
    habits: Habits,
    frozen: bool,
    running: bool,
    /// Streams of an earlier generation are at their end.
    generation: u64,
    /// What they get before that.
    last_words: String,
    asked: Vec<String>,
}

impl Server {
    pub fn start(socket: &Path) -> Server {
        let server = Server {
            socket: socket.to_owned(),
            shared: Arc::new(Mutex::new(Shared {
                state: State::new(socket),
                habits: Habits::default(),
                frozen: false,
                running: false,
                generation: 0,
                last_words: String::new(),
                asked: Vec::new(),
            })),
            thread: Mutex::default(),
        };
        server.start_again();
        server
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn start_again(&self) {
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut shared = self.shared.lock().unwrap();
        shared.running = true;
        shared.state.start_shells();
        let state = Arc::clone(&self.shared);
        let thread = std::thread::spawn(move || listen(&listener, &state));
        *self.thread.lock().unwrap() = Some(thread);
    }

    /// The socket's file stays, as after a crash, and nobody listens on it.
    pub fn stop(&self) {
        {
            let mut shared = self.shared.lock().unwrap();
            (shared.running, shared.frozen) = (false, false);
            shared.generation += 1;
            shared.last_words.clear();
        }
        if let Some(thread) = self.thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
        self.shared.lock().unwrap().state.end_shells();
    }

    pub fn forget(&self) {
        self.shared.lock().unwrap().state.forget();
    }

    pub fn freeze(&self, frozen: bool) {
        self.shared.lock().unwrap().frozen = frozen;
    }

    pub fn set_habits(&self, habits: Habits) {
        self.shared.lock().unwrap().habits = habits;
    }

    pub fn emit(&self, event: &str, data: Value) {
        self.shared.lock().unwrap().state.emit(event, data);
    }

    pub fn break_streams(&self, text: &str) {
        let mut shared = self.shared.lock().unwrap();
        shared.generation += 1;
        text.clone_into(&mut shared.last_words);
    }

    pub fn asked(&self) -> Vec<String> {
        self.shared.lock().unwrap().asked.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(listener: &UnixListener, shared: &Arc<Mutex<Shared>>) {
    loop {
        let frozen = {
            let mut shared = shared.lock().unwrap();
            if !shared.running {
                // Another test's command, on its way from fork to exec, may hold a copy of it.
                let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
                return;
            }
            if !shared.frozen {
                shared.state.collect();
            }
            shared.frozen
        };
        match listener.accept() {
            // The kernel accepts for a server that is frozen; this stands for its backlog.
            Ok((client, _)) => {
                let shared = Arc::clone(shared);
                std::thread::spawn(move || serve(client, &shared));
            }
            Err(_) => std::thread::sleep(if frozen { TURN * 4 } else { TURN }),
        }
    }
}

/// Waits while the server is frozen; gives what it has then.
fn habits(shared: &Mutex<Shared>) -> Option<Habits> {
    loop {
        let shared = shared.lock().unwrap();
        if !shared.running {
            return None;
        }
        if !shared.frozen {
            return Some(shared.habits);
        }
        drop(shared);
        std::thread::sleep(TURN);
    }
}

fn serve(mut client: UnixStream, shared: &Mutex<Shared>) {
    client.set_nonblocking(false).unwrap();
    let Some(habits) = habits(shared).filter(|habits| !habits.hang_up) else {
        return;
    };
    client.set_read_timeout(Some(habits.patience)).unwrap();
    client.set_write_timeout(Some(habits.patience)).unwrap();
    let mut line = Vec::new();
    let mut reader = BufReader::new((&client).take(1 << 20));
    if reader.read_until(b'\n', &mut line).is_err() || !line.ends_with(b"\n") {
        return;
    }
    let request: Value = serde_json::from_slice(&line).unwrap_or_default();
    let id = request["id"].as_str().map(str::to_owned);
    let method = request["method"].as_str().map(str::to_owned);
    let params = request.get("params").filter(|params| params.is_object());
    let (Some(id), Some(method), Some(params)) = (id, method, params) else {
        let _ = answer(
            &mut client,
            &refusal("", "invalid_request", "not a request"),
        );
        return;
    };
    shared.lock().unwrap().asked.push(method.clone());
    match method.as_str() {
        "events.subscribe" => subscribe(client, &id, params, shared),
        "server.live_handoff" => {
            let mut shared = shared.lock().unwrap();
            shared.state.new_terminals();
            shared.generation += 1;
            shared.last_words.clear();
            let _ = answer(&mut client, &json!({"id": id, "result": {"type": "ok"}}));
        }
        _ => {
            let result = shared.lock().unwrap().state.answer(&method, params);
            let reply = match result {
                Ok(result) => json!({"id": id, "result": result}),
                Err(("invalid_request", message)) => refusal("", "invalid_request", &message),
                Err((code, message)) => refusal(&id, code, &message),
            };
            let _ = answer(&mut client, &reply);
        }
    }
}

fn refusal(id: &str, code: &str, message: &str) -> Value {
    json!({"id": id, "error": {"code": code, "message": message}})
}

fn answer(client: &mut UnixStream, reply: &Value) -> std::io::Result<()> {
    client.write_all(format!("{reply}\n").as_bytes())
}

struct Subscription {
    event: String,
    pane: Option<String>,
    /// The number of the first event that has not been looked at.
    next: u64,
}

/// The events that belong to one pane: they keep their dot, and are not replayed.
fn is_scoped(event: &str) -> bool {
    matches!(
        event,
        "pane.agent_status_changed" | "pane.output_matched" | "pane.scroll_changed"
    )
}

impl Subscription {
    fn wants(&self, event: &Event) -> bool {
        let scoped = is_scoped(&self.event);
        event.name == self.event
            && (!scoped || event.data["pane_id"].as_str() == self.pane.as_deref())
    }
}

fn subscribe(mut client: UnixStream, id: &str, params: &Value, shared: &Mutex<Shared>) {
    let (mut subscriptions, generation) = {
        let shared = shared.lock().unwrap();
        let mut subscriptions = Vec::new();
        let wanted = params["subscriptions"].as_array().cloned();
        for (i, wanted) in wanted.unwrap_or_default().iter().enumerate() {
            let event = wanted["type"].as_str().unwrap_or_default().to_owned();
            let pane = wanted["pane_id"].as_str().map(str::to_owned);
            let missing = |pane: &String| !shared.state.has_pane(pane);
            if let Some(pane) = pane.as_ref().filter(|pane| missing(pane)) {
                let message = format!("pane {pane} not found");
                let id = format!("{id}:sub:{i}:probe");
                let _ = answer(&mut client, &refusal(&id, "pane_not_found", &message));
                return;
            }
            let replayed = shared.habits.replay && !is_scoped(&event);
            let next = if replayed { 0 } else { shared.state.next_event };
            subscriptions.push(Subscription { event, pane, next });
        }
        (subscriptions, shared.generation)
    };
    let ack = json!({"id": id, "result": {"type": "subscription_started"}});
    if answer(&mut client, &ack).is_err() {
        return;
    }
    while let Some(habits) = habits(shared) {
        if is_lost(&client) {
            return;
        }
        let mut batch = String::new();
        {
            let shared = shared.lock().unwrap();
            if shared.generation != generation {
                let _ = client.write_all(shared.last_words.as_bytes());
                return;
            }
            for subscription in &mut subscriptions {
                let event = shared
                    .state
                    .event(subscription.next, |e| subscription.wants(e));
                if let Some(event) = event {
                    subscription.next = event.number + 1;
                    batch += &wire(&event);
                }
            }
        }
        if client.write_all(batch.as_bytes()).is_err() {
            return;
        }
        std::thread::sleep(habits.tick);
    }
}

fn wire(event: &Event) -> String {
    let name = if is_scoped(&event.name) {
        event.name.clone()
    } else {
        event.name.replace('.', "_")
    };
    format!("{}\n", json!({"data": event.data, "event": name}))
}

/// Whether the client has closed, if only half, or has sent what it should not.
fn is_lost(client: &UnixStream) -> bool {
    let mut byte = [0; 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = rustix::net::recv(client, &mut byte[..], flags);
    !matches!(peeked, Err(rustix::io::Errno::AGAIN))
}
