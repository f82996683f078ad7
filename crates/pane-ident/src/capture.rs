//! `capture`: a record that binds an address to the process that owns it.

mod own;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mux::{Found, Listing, Multiplexer, Occupant, Pane, Server, Silence};
use process::{ENDING, Handle, Here, Identity, Interrupts, Pid, Sight};
use records::input::{Input, Lines};
use records::text::lossy;
use records::{Deadline, Failure, Output, Record, Status, files, time};
use serde::Serialize;

use crate::args::{CaptureArgs, Subject};
use crate::notice;
use crate::program::Program;
use crate::scene::pane_cwd;
use crate::servers::{Kind, ServerKey, again, foreign_numbers, silence_reason};
use crate::verify::{deadline_of, for_servers};

/// How often a pane that changes hands while it is read is read again.
const TRIES: usize = 8;

/// How long a new pane's process may still be the copy of the server that it begins as.
const FORK_LIMIT: Duration = Duration::from_millis(200);

/// How often it is looked at meanwhile.
const FORK_PAUSE: Duration = Duration::from_millis(5);

/// The largest record that is merged with.
const MAX_RECORD: usize = 16 << 20;

/// The record of a pane and its process.
#[derive(Debug, Serialize)]
struct Binding {
    v: u8,
    r#type: &'static str,
    mux: Option<&'static str>,
    server: Option<BoundServer>,
    pane: Option<String>,
    pid: Pid,
    ident: Identity,
    exe: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    label: Option<String>,
    tty: Option<String>,
    age_ms: Option<u64>,
    host: String,
    lossy: bool,
    argv_cut: bool,
    at: String,
}

#[derive(Debug, Serialize)]
struct BoundServer {
    socket: Option<String>,
    ident: Option<Identity>,
}

/// The keys of a binding.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "v", "type", "mux", "server", "pane", "pid", "ident", "exe", "argv", "cwd", "label", "tty",
    "age_ms", "host", "lossy", "argv_cut", "at",
];

/// Runs `capture`.
///
/// # Errors
///
/// There is nothing to bind, or it cannot be told.
pub fn run(args: &CaptureArgs) -> Result<Status, Failure> {
    if args.merge.is_none() {
        args.output.check_keys(&[KEYS])?;
    }
    let deadline = deadline_of(args.timeout);
    let mut output = Output::new(&args.output, crate::HUMAN);
    output.set_deadline(deadline);
    let limit = for_servers(deadline);
    let capture = Capture {
        args,
        here: Here::new().until(limit.instant()),
        deadline: limit,
    };
    let interrupts = Interrupts::catch(&ENDING)?;
    // Before the pane is looked at, so that what is bound is as fresh as can be.
    let user = match &args.merge {
        None => None,
        Some(path) => {
            let read = || user_record(path, for_servers(deadline));
            let text = notice::during("the record", deadline, &interrupts, read)??;
            Some((path, text))
        }
    };
    let binding = notice::during("the pane", deadline, &interrupts, || {
        capture.binding(&args.subject)
    })??;
    // From here on only output is waited for, which every signal may end.
    notice::release(interrupts);
    match user {
        None => output.emit(&binding)?,
        Some((path, text)) => output.pass(&merged(&text, path, &binding)?)?,
    }
    output.finish()?;
    Ok(Status::Done)
}

/// What a capture works with.
struct Capture<'a> {
    args: &'a CaptureArgs,
    here: Here,
    deadline: Deadline,
}

impl Capture<'_> {
    fn binding(&self, subject: &Subject) -> Result<Binding, Failure> {
        if let Some(pid) = subject.pid {
            let (handle, program) = self.process(pid)?;
            return Ok(self.bind(&handle, program, None));
        }
        if subject.own {
            return self.own_pane();
        }
        let panes = [
            (Kind::Tmux, &subject.tmux),
            (Kind::Herdr, &subject.herdr),
            (Kind::Kitty, &subject.kitty),
        ];
        let named = panes
            .into_iter()
            .find_map(|(kind, pane)| Some((kind, pane.as_deref()?)));
        let (kind, pane) = named.ok_or_else(|| Failure::usage("nothing to bind is named"))?;
        let server = self
            .args
            .servers
            .open(&ServerKey::default_of(kind))
            .map_err(Failure::unknown)?;
        self.pane(server.as_ref(), pane)
    }

    /// Binds the pane `address`. It is looked at before and after its process is read, so that
    /// the record is of one process and not of two.
    fn pane(&self, server: &dyn Multiplexer, address: &str) -> Result<Binding, Failure> {
        let mut changing =
            Failure::unknown(format_args!("pane {address} changes hands all the time"));
        for _ in 0..TRIES {
            let before = self.ask(server, address)?;
            let (pane, pid) = occupied(server, &before, address)?;
            let (handle, program) = match self.process(pid) {
                Ok(read) => read,
                Err(failure) if failure.status() == Status::No => {
                    // It has ended since; the server may have another one there by now.
                    changing = failure;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let program = match program {
                copy if self.is_copy(&before, &copy) => self.after_exec(&before, &handle, copy),
                program => program,
            };
            let after = self.ask(server, address)?;
            let (again, pid) = occupied(server, &after, address)?;
            if again.id == pane.id && pid == handle.pid() && !handle.has_ended() {
                let place = Place {
                    mux: server.name(),
                    server: after.server.as_ref(),
                    pane: again,
                };
                return Ok(self.bind(&handle, program, Some(place)));
            }
        }
        Err(changing)
    }

    fn ask(&self, server: &dyn Multiplexer, address: &str) -> Result<Listing, Failure> {
        let listing = again(self.deadline, || server.pane(address, self.deadline));
        let listing = listing.map_err(|silence| match silence {
            Silence::NoAnswer(_) if self.deadline.passed() => Failure::deadline(silence),
            silence => Failure::unknown(format_args!("{}: {silence}", silence_reason(&silence))),
        })?;
        match foreign_numbers(&self.here, &listing) {
            Some(why) => Err(Failure::unknown(format_args!("other_namespace: {why}"))),
            None => Ok(listing),
        }
    }

    /// A live process, held, with what it runs.
    fn process(&self, pid: Pid) -> Result<(Handle, Program), Failure> {
        let gone = || Failure::no(format_args!("process {pid} has ended"));
        match self.here.look(pid) {
            Sight::Alive(handle) => match Program::of(&handle, self.args.full_argv) {
                Some(program) => Ok((handle, program)),
                None if handle.has_ended() => Err(gone()),
                None => Err(Failure::unknown(format_args!(
                    "process {pid} changes its program all the time"
                ))),
            },
            Sight::Zombie(_) => Err(gone()),
            Sight::Absent => Err(Failure::no(format_args!("there is no process {pid}"))),
            Sight::Unknown(why) => Err(Failure::unknown(why)),
        }
    }

    /// Whether a pane's process runs what its server runs. A new pane's does for a moment, between
    /// fork and exec, and what it will run is not to be seen yet.
    fn is_copy(&self, listing: &Listing, program: &Program) -> bool {
        let server = listing.server.as_ref().and_then(|server| server.pid);
        let server = server.map(|pid| Program::read(pid, self.args.full_argv));
        let runs = |program: &Program| Some((program.exe.clone()?, program.argv.clone()?));
        server.is_some_and(|server| runs(&server).is_some() && runs(&server) == runs(program))
    }

    /// What the process runs once it is no copy of its server, if that comes soon.
    fn after_exec(&self, listing: &Listing, handle: &Handle, mut program: Program) -> Program {
        let limit = Deadline::after(FORK_LIMIT).min(self.deadline);
        while self.is_copy(listing, &program) && !limit.passed() {
            limit.sleep(FORK_PAUSE);
            match Program::of(handle, self.args.full_argv) {
                Some(now) => program = now,
                None => break,
            }
        }
        program
    }

    fn bind(&self, handle: &Handle, program: Program, place: Option<Place<'_>>) -> Binding {
        let pane = place.as_ref().map(|place| place.pane);
        let server = place.as_ref().and_then(|place| place.server);
        let socket = server.and_then(|server| server.socket.as_ref());
        let socket = socket.map(|socket| lossy(socket.as_bytes()));
        let lossy = program.lossy || socket.as_ref().is_some_and(|(_, lossy)| *lossy);
        let entry = handle.entry();
        Binding {
            v: 1,
            r#type: "binding",
            mux: place.as_ref().map(|place| place.mux),
            server: server.map(|server| BoundServer {
                socket: socket.map(|(text, _)| text),
                ident: self.server_ident(server),
            }),
            pane: pane.map(|pane| pane.id.clone()),
            pid: handle.pid(),
            ident: handle.ident().clone(),
            exe: program.exe,
            argv: program.argv,
            cwd: pane.and_then(pane_cwd).or(program.cwd),
            label: pane.and_then(|pane| pane.label.clone()),
            tty: pane
                .and_then(|pane| pane.tty.clone())
                .or_else(|| terminal(entry?.tty)),
            age_ms: entry.and_then(|entry| age(entry.start)),
            host: self.here.host().to_owned(),
            lossy,
            argv_cut: program.argv_cut,
            at: time::now(),
        }
    }

    fn server_ident(&self, server: &Server) -> Option<Identity> {
        match self.here.look(server.pid?) {
            Sight::Alive(handle) => Some(handle.ident().clone()),
            _ => None,
        }
    }
}

/// Where a process was found.
struct Place<'a> {
    mux: &'static str,
    server: Option<&'a Server>,
    pane: &'a Pane,
}

/// The pane that `address` means, and its process.
fn occupied<'l>(
    server: &dyn Multiplexer,
    listing: &'l Listing,
    address: &str,
) -> Result<(&'l Pane, Pid), Failure> {
    let mux = server.name();
    if listing.server.is_none() {
        return Err(Failure::no(format_args!(
            "no {mux} server is running at {}, so there is no pane {address}; \
             --{mux}-socket names another one",
            server.place()
        )));
    }
    let pane = match listing.find(address) {
        Found::One(pane) => pane,
        Found::None => {
            // What tmux itself would complete or guess is compared exactly here.
            let forms = match mux == "tmux" && !address.starts_with('%') {
                true => "; a pane is named %N, @N or SESSION:WINDOW[.PANE]",
                false => "",
            };
            return Err(Failure::no(format_args!(
                "there is no pane {address}{forms}"
            )));
        }
        Found::Several => {
            return Err(Failure::no(format_args!(
                "several panes are called {address}"
            )));
        }
    };
    match &pane.occupant {
        Occupant::Process(pid) => Ok((pane, *pid)),
        Occupant::Nobody => Err(Failure::no(format_args!(
            "pane {address} has no live process"
        ))),
        Occupant::Unknown(why) => Err(Failure::unknown(format_args!("pane {address}: {why}"))),
    }
}

/// For how long a process has been there, in milliseconds.
fn age(start: process::Start) -> Option<u64> {
    let age = SystemTime::now().duration_since(start.wall_clock()?);
    // The start is known to a tick, so a process of this moment can seem to be of the next.
    u64::try_from(age.unwrap_or_default().as_millis()).ok()
}

/// The path of the terminal that has the device number `device`.
fn terminal(device: u64) -> Option<String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    if device == 0 {
        return None;
    }
    let mut nodes = ["/dev/pts", "/dev"]
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    let node = nodes.find(|node| {
        let meta = node.metadata();
        meta.is_ok_and(|meta| meta.file_type().is_char_device() && meta.rdev() == device)
    })?;
    Some(node.path().to_string_lossy().into_owned())
}

/// The user's own record, which is to be merged with.
fn user_record(path: &Path, deadline: Deadline) -> Result<Vec<u8>, Failure> {
    if path != Path::new("-") {
        return Ok(files::read_trusted(path, MAX_RECORD)?);
    }
    records::input::announce_terminal();
    match Lines::stdin_until(deadline).next_record() {
        Ok(Some(Input::Record(record))) => Ok(record.bytes().to_vec()),
        Ok(Some(Input::Bad(bad))) => Err(Failure::new(Status::BadInput, bad)),
        Ok(None) => Err(Failure::new(
            Status::BadInput,
            "standard input has no record",
        )),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Failure::deadline("standard input has no record"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The user's record with the binding's keys, which win; but its type stays its own.
fn merged(text: &[u8], path: &Path, binding: &Binding) -> Result<Vec<u8>, Failure> {
    let bad = |why| Failure::new(Status::BadInput, format_args!("{}: {why}", path.display()));
    if text.trim_ascii().is_empty() {
        let why = "there is no record in it; is it the output as well? A shell empties that first";
        return Err(bad(why.to_owned()));
    }
    let binding = serde_json::to_vec(binding)?;
    let binding = Record::parse(&binding).map_err(Failure::failed)?;
    let mut line = one_line(text);
    for member in binding.members() {
        let record = Record::parse(&line).map_err(bad)?;
        if member.key == "type" && record.kind().is_some() {
            continue;
        }
        line = record.with(&member.key, member.value)?;
    }
    Ok(line)
}

/// A file's record may be written over several lines; records that are printed are not. Outside
/// of strings, where no newline can stand, they are mere blanks.
fn one_line(text: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    };
    text.trim_ascii().iter().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding() -> Binding {
        Binding {
            v: 1,
            r#type: "binding",
            mux: Some("tmux"),
            server: None,
            pane: Some("%3".to_owned()),
            pid: Pid::own(),
            ident: "lstart:h:0:4242:17:0".parse().unwrap(),
            exe: None,
            argv: None,
            cwd: None,
            label: None,
            tty: None,
            age_ms: None,
            host: "h".to_owned(),
            lossy: false,
            argv_cut: false,
            at: "t".to_owned(),
        }
    }

    #[test]
    fn the_users_keys_stay_and_the_bindings_win() {
        let merge = |text: &str| {
            let line = merged(text.as_bytes(), Path::new("f"), &binding());
            line.map(|line| String::from_utf8(line).unwrap())
        };
        let line = merge("{\n \"task\": \"a\",\n \"pane\": \"%1\", \"n\": 1e400}\n").unwrap();
        assert!(!line.contains('\n'));
        assert!(line.starts_with(r#"{  "task": "a",  "pane": "%3", "n": 1e400,"v":1,"#));
        assert!(line.contains(r#""type":"binding","mux":"tmux","server":null"#));
        let typed = merge(r#"{"type":"task","ident":"old"}"#).unwrap();
        assert!(typed.starts_with(r#"{"type":"task","ident":"lstart:h:0:4242:17:0""#));
        for bad in ["", "[]", "{} {}", "text", "{\"a\":\"b"] {
            let failure = merge(bad).unwrap_err();
            assert_eq!(failure.status(), Status::BadInput, "{bad}");
        }
    }

    #[test]
    fn terminals_by_their_device() {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata("/dev/null").unwrap().rdev();
        assert_eq!(terminal(device).as_deref(), Some("/dev/null"));
        assert_eq!(terminal(0), None);
        assert_eq!(terminal(u64::MAX), None);
    }
}
