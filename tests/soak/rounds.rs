//! Detach, scan, verify, reap, again and again.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::house::{House, children, descriptors, memory};
use crate::support::{lives, number, record, records, rounds, said, state, until, until_dead};

/// How many rounds in a normal run; `MUXUTILS_SOAK=500` makes 10,000 of them.
const ROUNDS: u32 = 20;

/// The ways in which a command is started, one a round. Each leaves files of a constant name.
const FORMS: [&[&str]; 4] = [
    &["--log", "log", "--ready-line", "ready"],
    &["--lock", "lock"],
    &["--guard", "--marker", "m.marker", "--announce", "deaths"],
    &["--ready-socket", "socket"],
];

/// A command with a family, and with its session and the form of its start in its arguments.
const WRAPPER: &str = r#"
case $3 in
  --ready-socket) socat UNIX-LISTEN:socket,fork /dev/null & ;;
  *) sleep 600 & ;;
esac
echo ready
wait
"#;

/// Runs `command` with this input, which fits into a pipe.
fn output(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Runs `command` with this input and expects this status.
#[track_caller]
fn run(mut command: Command, input: &[u8], code: i32) -> Output {
    let output = output(&mut command, input);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {output:?}");
    assert_eq!(said(&output), "", "{command:?}");
    output
}

/// A server with one pane, and the pane's binding.
struct Pane<'a> {
    house: &'a House,
    /// The server, and the pane's process.
    pids: [i32; 2],
    binding: Vec<u8>,
}

impl Pane<'_> {
    fn open(house: &House) -> Pane<'_> {
        let mut command = house.command("tmux");
        command.args(["-S", "run/tmux", "-f", "/dev/null", "new-session", "-d"]);
        command.arg("sleep 600000");
        run(command, b"", 0);
        let mut command = house.tool("pane-ident");
        let socket = house.path("run/tmux");
        command.args(["capture", "--tmux", "%0", "--tmux-socket"]);
        command.arg(socket);
        let output = run(command, b"", 0);
        let binding = record(&output);
        let server = binding["server"]["ident"].as_str().unwrap();
        let server = server.split(':').nth(3).unwrap().parse().unwrap();
        Pane {
            house,
            pids: [server, number(&binding, "pid")],
            binding: output.stdout,
        }
    }

    fn close(self) {
        let mut command = self.house.command("tmux");
        command.args(["-S", "run/tmux", "kill-server"]);
        run(command, b"", 0);
        self.pids.into_iter().for_each(until_dead);
        std::fs::remove_file(self.house.path("run/tmux")).unwrap();
    }
}

/// One round, by the way number `round`. The command that was started is dead after it.
fn round(house: &House, pane: &Pane<'_>, round: u32, own: &[u32]) {
    let form = FORMS[round as usize % FORMS.len()];
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    let id = id.trim();

    let mut command = house.tool("detach");
    command.args(["--record", "record"]).args(form);
    command.args(["--", "bash", "wrapper.sh", "--session-id", id, form[0]]);
    let started = record(&run(command, b"", 0));
    let kept = std::fs::read(house.path("record")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), started);
    let ident = started["ident"].as_str().unwrap();

    let mut seen = Vec::new();
    until("the wrapper holds its session alone", || {
        let mut command = house.tool("holder-scan");
        command.args(["--session-id", id, "--own-arg", "wrapper.sh"]);
        let output = output(&mut command, b"");
        let held = records(&output);
        assert_eq!(held[0]["root_ident"], ident, "{output:?}");
        assert_eq!(held[0]["class"], "own", "{output:?}");
        let is_alone = held.len() == 2 && held[1]["verdict"] == "own";
        seen = output.stdout;
        // What it starts is a copy of it at first. And the scan sees the whole machine, where there
        // may be somebody at any moment who cannot be read: 3.
        is_alone && output.status.success()
    });

    let verify = |input: &[u8], code: i32, states: &[&str]| {
        let mut command = house.tool("pane-ident");
        command.arg("verify");
        let judged = records(&run(command, input, code));
        let judged = judged.iter().map(|record| &record["verdict"]["state"]);
        assert!(judged.eq(states), "{states:?}");
    };
    verify(&[&kept[..], &pane.binding].concat(), 0, &["match", "match"]);

    let mut command = house.tool("eventwait");
    command.args(["--exit", ident, "--timeout", "60", "--summary=summary"]);
    let waiting = command.stdout(Stdio::piped()).spawn().unwrap();

    // A guard is told of by the record alone.
    let guarded = !started["guard"].is_null();
    let target = if guarded { &kept } else { &seen };
    let reaped = records(&run(house.tool("reap"), target, 0));
    assert_eq!(reaped[0]["reap"]["outcome"], "terminated", "{reaped:?}");
    assert!(!lives(number(&started, "pid")), "{reaped:?}");

    let told = waiting.wait_with_output().unwrap();
    assert_eq!(record(&told)["ident"], ident, "{told:?}");
    verify(&kept, 1, &["gone"]);
    // The server's own, which nobody has asked it to remove.
    let _ = std::fs::remove_file(house.path("socket"));
    house.collect(own);
}

/// Processes that live through all rounds: a guard that starts its command again and again, and a
/// wait for what guards say.
struct Keepers {
    guard: i32,
    follow: Child,
}

impl Keepers {
    fn start(house: &House) -> Keepers {
        let mut command = house.tool("detach");
        command.args(["--restart", "on-failure", "--healthy", "0"]);
        command.args(["--marker", "kept.marker", "--announce", "kept"]);
        command.args(["--", "sh", "-c", "exit 1"]);
        let guard = number(&record(&run(command, b"", 0))["guard"], "pid");
        let mut command = house.tool("eventwait");
        command.args(["--follow", "deaths", "--all", "--timeout", "100h"]);
        command.arg("--summary=summary.follow");
        let follow = command.stdout(File::create(house.path("followed")).unwrap());
        Keepers {
            guard,
            follow: follow.spawn().unwrap(),
        }
    }

    /// Guard and wait.
    fn pids(&self) -> [String; 2] {
        [self.guard.to_string(), self.follow.id().to_string()]
    }

    /// Memory in kB and descriptors of guard and wait, while neither does anything.
    fn cost(&self, house: &House) -> [(u64, usize); 2] {
        let deaths = || lines(house, "kept");
        let mut cost = self.pids().map(|_| (0, 0));
        until("the guard is at rest", || {
            let before = deaths();
            cost = self.pids().map(|pid| (memory(&pid), descriptors(&pid)));
            // Its command is not there, and it has not been there meanwhile.
            let has_children = !children(self.guard).is_empty();
            !has_children && before == deaths() && state(self.guard) == Some('S')
        });
        cost
    }

    /// Ends both, after this many deaths.
    fn end(mut self, house: &House, deaths: usize) {
        until("every death is passed on", || {
            lines(house, "followed") == deaths
        });
        let wait = nix::unistd::Pid::from_raw(self.follow.id().cast_signed());
        nix::sys::signal::kill(wait, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.follow.wait().unwrap();
        // Its command is hardly ever there: the guard itself is asked to end.
        let guard = nix::unistd::Pid::from_raw(self.guard);
        nix::sys::signal::kill(guard, nix::sys::signal::Signal::SIGTERM).unwrap();
        until("the guard is dead", || !lives(self.guard));
    }
}

/// How many lines the file has.
fn lines(house: &House, name: &str) -> usize {
    let text = std::fs::read(house.path(name)).unwrap_or_default();
    text.iter().filter(|&&byte| byte == b'\n').count()
}

#[test]
fn nothing_is_left_and_memory_is_flat() {
    let house = House::new();
    std::fs::write(house.path("wrapper.sh"), WRAPPER).unwrap();
    let before = house.files();
    let pane = Pane::open(&house);
    let keepers = Keepers::start(&house);
    let own = [keepers.follow.id()];
    let count = rounds(ROUNDS);
    let begun = Instant::now();
    let mut early = None;
    for number in 1..=count {
        round(&house, &pane, number, &own);
        if number == (count / 10).max(FORMS.len() as u32) {
            until("it was started again", || lines(&house, "kept") >= 2);
            early = Some((house.files(), keepers.cost(&house)));
        }
        if number % 1000 == 0 {
            println!(
                "{number} rounds in {:.1?}: {:?}",
                begun.elapsed(),
                keepers.cost(&house)
            );
        }
    }
    let (files, cost) = early.unwrap();
    let restarts = lines(&house, "kept");
    until("it was started again", || lines(&house, "kept") > restarts);
    let took = begun.elapsed();

    let now = keepers.cost(&house);
    println!(
        "{count} rounds in {took:.1?}, {restarts} restarts; memory in kB and descriptors of guard \
         and wait: {cost:?}, then {now:?}",
    );
    let deaths = lines(&house, "deaths");
    for (early, now) in cost.iter().zip(now) {
        // A guard reads the table of processes, and the allocator keeps room for the longest.
        assert!(now.0 <= early.0 + 768, "{early:?} kB, then {now:?} kB");
        assert_eq!(early.1, now.1, "descriptors");
    }
    assert_eq!(deaths as u32, (count + 2) / 4, "deaths that were announced");
    keepers.end(&house, deaths);
    pane.close();
    house.assert_empty();

    // What is left is what was asked for.
    let asked = [
        "deaths",
        "followed",
        "kept",
        "lock",
        "log",
        "record",
        "summary",
        "summary.follow",
    ];
    let asked = asked.map(|name| house.path(name));
    let left: Vec<_> = house.files().difference(&before).cloned().collect();
    assert_eq!(left, asked);
    let known = |path: &std::path::PathBuf| left.contains(path) || before.contains(path);
    let more: Vec<_> = files.iter().filter(|path| !known(path)).collect();
    // The marker of the one that was running, the server's socket and folder.
    assert!(more.len() <= 3, "{more:?}");
}
