//! What the stand-in has: workspaces, tabs, panes with real shells, and the ring of events.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use process::{Here, Pid, Reader, Signal, Table};
use serde_json::{Value, json};

/// How many events the ring holds.
const RING: usize = 512;

/// A request's result, or an error's code and message.
pub type Answer = Result<Value, (&'static str, String)>;

#[derive(Default)]
pub struct State {
    socket: PathBuf,
    workspaces: Vec<Workspace>,
    panes: Vec<Pane>,
    aliases: HashMap<String, String>,
    terminals: u64,
    ring: VecDeque<Event>,
    /// The number of the next event.
    pub next_event: u64,
}

#[derive(Clone)]
pub struct Event {
    pub number: u64,
    /// The dotted name.
    pub name: String,
    pub data: Value,
}

struct Workspace {
    number: u32,
    label: String,
    tabs: Vec<(u32, String)>,
    next_pane: u32,
}

struct Pane {
    id: String,
    terminal: u64,
    workspace: u32,
    tab: u32,
    cwd: String,
    label: Option<String>,
    agent: Option<String>,
    status: String,
    shell: Option<(Child, ChildStdin)>,
}

/// A number in herdr's digits: bijective base 32.
fn digits(mut number: u32) -> String {
    const DIGITS: &[u8; 32] = b"123456789ABCDEFGHJKMNPQRSTVWXYZ0";
    let mut text = Vec::new();
    while number > 0 {
        number -= 1;
        text.push(DIGITS[(number % 32) as usize]);
        number /= 32;
    }
    text.reverse();
    String::from_utf8(text).unwrap()
}

fn text<'a>(params: &'a Value, key: &str) -> Option<&'a str> {
    params[key].as_str()
}

impl State {
    pub fn new(socket: &Path) -> State {
        State {
            socket: socket.to_owned(),
            ..State::default()
        }
    }

    pub fn answer(&mut self, method: &str, params: &Value) -> Answer {
        match method {
            "ping" => Ok(json!({"type": "pong", "version": "0.8.0", "protocol": 20,
                "capabilities": {"live_handoff": true, "detached_server_daemon": false}})),
            "pane.list" => {
                let panes: Vec<Value> = self.panes.iter().map(Pane::info).collect();
                Ok(json!({"type": "pane_list", "panes": panes}))
            }
            "tab.list" => Ok(json!({"type": "tab_list", "tabs": self.tabs()})),
            "session.snapshot" => Ok(json!({"type": "session_snapshot", "snapshot": {
                "version": "0.8.0", "protocol": 20, "workspaces": [], "layouts": [], "agents": [],
                "tabs": self.tabs(),
                "panes": self.panes.iter().map(Pane::info).collect::<Vec<_>>()}})),
            "tab.get" => {
                let id = text(params, "tab_id").unwrap_or_default();
                let tab = self.tabs().into_iter().find(|tab| tab["tab_id"] == id);
                let tab = tab.ok_or(("tab_not_found", format!("tab {id} not found")))?;
                Ok(json!({"type": "tab_info", "tab": tab}))
            }
            "pane.get" => {
                let info = self.pane(params)?.info();
                Ok(json!({"type": "pane_info", "pane": info}))
            }
            "pane.process_info" => {
                let pane = self.pane(params)?;
                let pid = pane.shell.as_ref().map(|(shell, _)| shell.id());
                Ok(
                    json!({"type": "pane_process_info", "process_info": {"pane_id": pane.id,
                    "shell_pid": pid, "foreground_process_group_id": pid,
                    "foreground_processes": []}}),
                )
            }
            "workspace.create" => self.create(params),
            "tab.rename" => self.rename_tab(params),
            "pane.split" => {
                let beside = json!({"pane_id": params["target_pane_id"]});
                let pane = self.pane(&beside)?;
                let (workspace, tab, cwd) = (pane.workspace, pane.tab, pane.cwd.clone());
                let pane = self.add_pane(workspace, tab, &cwd);
                Ok(json!({"type": "pane_info", "pane": pane}))
            }
            "pane.rename" => {
                self.pane(params)?.label = text(params, "label").map(str::to_owned);
                let info = self.pane(params)?.info();
                self.emit(
                    "pane.updated",
                    json!({"type": "pane_updated", "pane": info}),
                );
                Ok(json!({"type": "pane_info", "pane": info}))
            }
            "pane.send_input" => {
                let line = text(params, "text").unwrap_or_default().to_owned();
                let enter = params["keys"]
                    .as_array()
                    .is_some_and(|keys| !keys.is_empty());
                if let Some((_, input)) = &mut self.pane(params)?.shell {
                    // A shell that has just ended takes no more.
                    let _ = input.write_all(line.as_bytes());
                    let _ = input.write_all(if enter { b"\n" } else { b"" });
                }
                Ok(json!({"type": "ok"}))
            }
            "pane.report_agent" => {
                let pane = self.pane(params)?;
                let status = text(params, "state").unwrap_or("unknown").to_owned();
                pane.agent = text(params, "agent").map(str::to_owned);
                let changed = std::mem::replace(&mut pane.status, status) != pane.status;
                let data = json!({"agent": pane.agent, "agent_status": pane.status,
                    "pane_id": pane.id, "workspace_id": pane.workspace_id()});
                if changed {
                    self.emit("pane.agent_status_changed", data);
                }
                Ok(json!({"type": "ok"}))
            }
            "pane.move" => self.move_pane(params),
            "pane.close" => {
                let id = self.pane(params)?.id.clone();
                let at = self.panes.iter().position(|pane| pane.id == id).unwrap();
                let mut pane = self.panes.remove(at);
                pane.end_session();
                let workspace = pane.workspace_id();
                self.emit(
                    "pane.closed",
                    json!({"type": "pane_closed", "pane_id": id, "workspace_id": workspace}),
                );
                let left = self
                    .panes
                    .iter()
                    .any(|other| other.workspace == pane.workspace);
                if !left {
                    self.workspaces
                        .retain(|other| other.number != pane.workspace);
                    let data = json!({"type": "workspace_closed", "workspace_id": workspace});
                    self.emit("workspace.closed", data);
                }
                Ok(json!({"type": "ok"}))
            }
            _ => Err(("invalid_request", format!("unknown method {method}"))),
        }
    }

    fn create(&mut self, params: &Value) -> Answer {
        // The counter is not saved: the highest that is left, and one more.
        let highest = self.workspaces.iter().map(|workspace| workspace.number);
        let number = highest.max().unwrap_or(0) + 1;
        let label = text(params, "label").unwrap_or_default();
        self.workspaces.push(Workspace {
            number,
            label: label.to_owned(),
            tabs: vec![(1, "1".to_owned())],
            next_pane: 1,
        });
        let pane = self.add_pane(number, 1, text(params, "cwd").unwrap_or("/"));
        let workspace = json!({"workspace_id": pane["workspace_id"], "label": label});
        Ok(json!({"type": "workspace_created", "workspace": workspace,
            "tab": self.tabs().last(), "root_pane": pane}))
    }

    fn add_pane(&mut self, number: u32, tab: u32, cwd: &str) -> Value {
        let mut workspaces = self.workspaces.iter_mut();
        let workspace = workspaces.find(|other| other.number == number).unwrap();
        let id = format!("w{}:p{}", digits(number), digits(workspace.next_pane));
        workspace.next_pane += 1;
        self.terminals += 1;
        let mut pane = Pane {
            id,
            terminal: self.terminals,
            workspace: number,
            tab,
            cwd: cwd.to_owned(),
            label: None,
            agent: None,
            status: "unknown".to_owned(),
            shell: None,
        };
        pane.start_shell(&self.socket);
        let info = pane.info();
        self.panes.push(pane);
        self.emit(
            "pane.created",
            json!({"type": "pane_created", "pane": info}),
        );
        info
    }

    fn rename_tab(&mut self, params: &Value) -> Answer {
        let id = text(params, "tab_id").unwrap_or_default();
        let label = text(params, "label").unwrap_or_default();
        for workspace in &mut self.workspaces {
            let number = digits(workspace.number);
            for (tab, old) in &mut workspace.tabs {
                if format!("w{number}:t{}", digits(*tab)) == id {
                    label.clone_into(old);
                }
            }
        }
        Ok(json!({"type": "ok"}))
    }

    /// To a new workspace: another id, and the old one goes on to mean it.
    fn move_pane(&mut self, params: &Value) -> Answer {
        let old = self.pane(params)?.id.clone();
        let highest = self.workspaces.iter().map(|workspace| workspace.number);
        let number = highest.max().unwrap_or(0) + 1;
        self.workspaces.push(Workspace {
            number,
            label: String::new(),
            tabs: vec![(1, "1".to_owned())],
            next_pane: 2,
        });
        let pane = self.pane(params)?;
        pane.id = format!("w{}:p1", digits(number));
        (pane.workspace, pane.tab) = (number, 1);
        let (id, info) = (pane.id.clone(), pane.info());
        self.aliases.insert(old.clone(), id);
        let data = json!({"type": "pane_moved", "previous_pane_id": old, "pane": info});
        self.emit("pane.moved", data);
        Ok(json!({"type": "pane_move", "move_result": {"pane": info}}))
    }

    fn pane(&mut self, params: &Value) -> Result<&mut Pane, (&'static str, String)> {
        let id = text(params, "pane_id").unwrap_or_default();
        let id = self.aliases.get(id).map_or(id, String::as_str).to_owned();
        let mut panes = self.panes.iter_mut();
        let pane = panes.find(|pane| pane.id == id);
        pane.ok_or(("pane_not_found", format!("pane {id} not found")))
    }

    pub fn has_pane(&self, id: &str) -> bool {
        let id = self.aliases.get(id).map_or(id, String::as_str);
        self.panes.iter().any(|pane| pane.id == id)
    }

    fn tabs(&self) -> Vec<Value> {
        let workspaces = self.workspaces.iter();
        let tabs = workspaces.flat_map(|workspace| {
            let number = digits(workspace.number);
            let tabs = workspace.tabs.iter();
            tabs.map(move |(tab, label)| {
                json!({"tab_id": format!("w{number}:t{}", digits(*tab)), "number": tab,
                    "workspace_id": format!("w{number}"), "label": label, "pane_count": 1,
                    "focused": true, "agent_status": "unknown"})
            })
        });
        tabs.collect()
    }

    pub fn emit(&mut self, name: &str, data: Value) {
        let number = self.next_event;
        self.next_event += 1;
        self.ring.push_back(Event {
            number,
            name: name.to_owned(),
            data,
        });
        if self.ring.len() > RING {
            self.ring.pop_front();
        }
    }

    /// The first event from number `from` on that is wanted.
    pub fn event(&self, from: u64, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        let mut events = self.ring.iter();
        events.find(|e| e.number >= from && wanted(e)).cloned()
    }

    /// Takes note of shells that have ended by themselves.
    pub fn collect(&mut self) {
        let ended = |pane: &mut Pane| match &mut pane.shell {
            Some((shell, _)) => shell.try_wait().unwrap().is_some(),
            None => false,
        };
        let mut gone: Vec<(String, String)> = Vec::new();
        self.panes.retain_mut(|pane| {
            let ended = ended(pane);
            if ended {
                gone.push((pane.id.clone(), pane.workspace_id()));
            }
            !ended
        });
        for (id, workspace) in gone {
            self.emit(
                "pane.exited",
                json!({"type": "pane_exited", "pane_id": id, "workspace_id": workspace}),
            );
        }
    }

    /// As when the server stops: every session ends, the layout is saved.
    pub fn end_shells(&mut self) {
        self.panes.iter_mut().for_each(Pane::end_session);
        self.ring.clear();
        self.aliases.clear();
    }

    /// As when it starts again: new shells under the saved ids.
    pub fn start_shells(&mut self) {
        let left: Vec<u32> = self.panes.iter().map(|pane| pane.workspace).collect();
        self.workspaces
            .retain(|workspace| left.contains(&workspace.number));
        self.new_terminals();
        for pane in &mut self.panes {
            (pane.agent, pane.status) = (None, "unknown".to_owned());
            pane.start_shell(&self.socket);
        }
    }

    /// A live handoff keeps the shells and gives every terminal a new id.
    pub fn new_terminals(&mut self) {
        for pane in &mut self.panes {
            self.terminals += 1;
            pane.terminal = self.terminals;
        }
    }

    /// The session is deleted.
    pub fn forget(&mut self) {
        self.panes.clear();
        self.workspaces.clear();
        self.aliases.clear();
    }
}

impl Pane {
    fn workspace_id(&self) -> String {
        format!("w{}", digits(self.workspace))
    }

    fn info(&self) -> Value {
        let mut info = json!({"pane_id": self.id, "workspace_id": self.workspace_id(),
            "tab_id": format!("{}:t{}", self.workspace_id(), digits(self.tab)),
            "terminal_id": format!("term_{:014x}", self.terminal), "focused": true,
            "cwd": self.cwd, "foreground_cwd": self.cwd, "agent_status": self.status,
            "revision": 0, "a_field_of_a_later_version": {"x": [1, null]}});
        if let Some(label) = &self.label {
            info["label"] = json!(label);
        }
        if let Some(agent) = &self.agent {
            info["agent"] = json!(agent);
        }
        info
    }

    /// A shell that leads a session of its own, with herdr's environment.
    fn start_shell(&mut self, socket: &Path) {
        let mut command = Command::new("setsid");
        command
            .arg("/bin/sh")
            .current_dir(&self.cwd)
            .env("HERDR_ENV", "1")
            .env("HERDR_PANE_ID", &self.id)
            .env(
                "HERDR_TAB_ID",
                format!("{}:t{}", self.workspace_id(), digits(self.tab)),
            )
            .env("HERDR_WORKSPACE_ID", self.workspace_id())
            .env("HERDR_SOCKET_PATH", socket)
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut shell = command.spawn().unwrap();
        let input = shell.stdin.take().unwrap();
        let pid = Pid::new(shell.id().into()).unwrap();
        // Until then it is not yet the leader, and a close would miss what it starts.
        let leads = || matches!(Reader::new().entry(pid), Ok(e) if e.sid == pid.get());
        while !leads() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.shell = Some((shell, input));
    }

    /// Ends all that has the shell's session; what has started one of its own survives.
    fn end_session(&mut self) {
        let Some((mut shell, input)) = self.shell.take() else {
            return;
        };
        let here = Here::new();
        let table = Table::read(&mut Reader::new()).unwrap();
        let sid = i32::try_from(shell.id()).unwrap();
        for entry in table.entries().iter().filter(|entry| entry.sid == sid) {
            if let Ok(handle) = here.open(entry.pid) {
                handle.signal(Signal::SIGHUP);
                handle.signal(Signal::SIGKILL);
            }
        }
        drop(input);
        shell.wait().unwrap();
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.end_session();
    }
}
