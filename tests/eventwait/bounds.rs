//! All the ways in which a wait could get stuck: it is gone at its deadline, and nothing is left.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::stage::{AFTER, Waited, command, ms, start, wait};
use crate::support::{Killed, Sandbox, state, until};

/// A server that says one line again and again, until its client is gone.
fn talker(sandbox: &Sandbox) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(sandbox.path("s")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = b"{\"event\":\"chatter\"}\n".repeat(1000);
        while stream.write_all(&lines).is_ok() {}
    })
}

/// A pipe that is full, and its reader, who does not read.
pub fn full_pipe() -> (std::io::PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'.'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

/// What was left in a pipe by a wait, behind what had filled it.
pub fn left_in(mut reader: std::io::PipeReader) -> String {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    String::from_utf8(all)
        .unwrap()
        .trim_start_matches('.')
        .to_owned()
}

#[track_caller]
fn at_half_a_second(waited: &Waited) {
    waited.not_before(ms(500)).gone_at(ms(500));
}

#[test]
fn a_source_that_never_stops_talking() {
    let sandbox = Sandbox::new();
    let server = talker(&sandbox);
    let waited = wait(
        &sandbox,
        &["--socket", "s", "--match", "event=x", "--timeout", "0.5"],
    );
    at_half_a_second(waited.ended(124, "deadline"));
    assert!(waited.count("seen") > 1000);
    server.join().unwrap();
}

#[test]
fn a_source_that_says_nothing() {
    let sandbox = Sandbox::new();
    let listener = UnixListener::bind(sandbox.path("s")).unwrap();
    let waited = wait(&sandbox, &["--socket", "s", "--timeout", "0.5"]);
    at_half_a_second(waited.ended(124, "deadline"));
    let (mut stream, _) = listener.accept().unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "its socket is closed");
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut stdin = command(&sandbox, &["--stdin", "--timeout", "0.5"]);
    stdin.stdin(reader);
    at_half_a_second(start(stdin).finish().ended(124, "deadline"));
}

#[test]
fn a_server_that_accepts_and_never_answers() {
    let sandbox = Sandbox::new();
    let script = "import socket, time\n\
        s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(9); time.sleep(600)";
    let server = Command::new("python3")
        .args(["-c", script])
        .current_dir(sandbox.path(""))
        .spawn()
        .unwrap();
    let server = Killed(server);
    wait(&sandbox, &["--connect", "s", "--timeout", "20"]).ended(0, "matched");
    let pid = i32::try_from(server.0.id()).unwrap();
    let stop = nix::sys::signal::Signal::SIGSTOP;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), stop).unwrap();
    until("it is stopped", || state(pid) == Some('T'));
    let words = ["--socket", "s", "--send", "hello", "--timeout", "0.5"];
    at_half_a_second(wait(&sandbox, &words).ended(124, "deadline"));
    let with_ack = [&words[..], &["--ack", "ok=true"]].concat();
    at_half_a_second(wait(&sandbox, &with_ack).ended(3, "no_ack"));
    // One that does not even take what is sent.
    let long = "x".repeat(120_000);
    let sends: Vec<&str> = (0..8).flat_map(|_| ["--send", &long]).collect();
    at_half_a_second(wait(&sandbox, &[&with_ack[..], &sends].concat()).ended(3, "no_ack"));
}

#[test]
fn a_full_backlog() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("s");
    let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
    let listener = process::stream_socket().unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let mut held = Vec::new();
    loop {
        let one = process::stream_socket().unwrap();
        if rustix::net::connect(&one, &address).is_err() {
            break;
        }
        held.push(one);
    }
    at_half_a_second(
        wait(&sandbox, &["--socket", "s", "--timeout", "0.5"]).ended(3, "unavailable"),
    );
    at_half_a_second(
        wait(&sandbox, &["--connect", "s", "--timeout", "0.5"]).ended(124, "deadline"),
    );
    // As soon as there is a place it goes on.
    let waiting = start(command(&sandbox, &["--connect", "s", "--timeout", "20"]));
    std::thread::sleep(ms(50));
    drop(rustix::net::accept(&listener).unwrap());
    waiting.finish().ended(0, "matched").gone_at(ms(100));
}

#[test]
fn a_reader_that_does_not_read() {
    let sandbox = Sandbox::new();
    let (reader, writer) = full_pipe();
    let flags = fcntl_getfl(&writer).unwrap();
    let mut found = command(&sandbox, &["--path", ".", "--timeout", "0.5"]);
    found.stdout(writer.try_clone().unwrap());
    let waiting = start(found);
    // Looked at while it is stuck.
    std::thread::sleep(ms(200));
    assert_eq!(fcntl_getfl(&writer).unwrap(), flags);
    let waited = waiting.finish();
    at_half_a_second(waited.ended(124, "deadline"));
    assert_eq!((waited.count("matched"), waited.count("dropped")), (1, 1));
    assert_eq!(fcntl_getfl(&writer).unwrap(), flags);
    drop(writer);
    assert_eq!(left_in(reader), "", "whole or not at all");
}

#[test]
fn a_flood_and_a_reader_that_does_not_read() {
    let sandbox = Sandbox::new();
    let server = talker(&sandbox);
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    let flags = fcntl_getfl(&writer).unwrap();
    let words = [
        "--socket",
        "s",
        "--all",
        "--beat",
        "beat",
        "--beat-every",
        "20ms",
        "--timeout",
        "0.8",
    ];
    let mut flood = command(&sandbox, &words);
    flood.stdout(writer.try_clone().unwrap());
    let waiting = start(flood);
    let path = sandbox.path("beat");
    let time = || {
        std::fs::metadata(&path)
            .and_then(|meta| meta.modified())
            .ok()
    };
    until("the pipe is full", || {
        let mut fds = [rustix::event::PollFd::new(
            &writer,
            rustix::event::PollFlags::OUT,
        )];
        rustix::event::poll(&mut fds, Some(&rustix::time::Timespec::default())).unwrap() == 0
    });
    // Waiting for a slow reader is turning.
    for _ in 0..5 {
        let before = time();
        until("the next beat", || time() > before);
    }
    assert_eq!(fcntl_getfl(&writer).unwrap(), flags);
    let memory = std::fs::read_to_string(format!("/proc/{}/status", waiting.pid())).unwrap();
    let waited = waiting.finish();
    waited.not_before(ms(800)).gone_at(ms(800));
    assert_eq!(waited.summary["end"], "deadline");
    assert_eq!(
        waited.status.code(),
        Some(0),
        "some lines were printed: {waited:?}"
    );
    let rss = memory
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let rss: u64 = rss.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(rss < 30_000, "{rss} kB");
    server.join().unwrap();
    drop(writer);
    let text = left_in(reader);
    assert!(text.ends_with('\n'), "whole lines only");
    let printed = text.lines().count() as u64;
    assert_eq!(printed + waited.count("dropped"), waited.count("matched"));
    assert!(text.lines().all(|line| line == "{\"event\":\"chatter\"}"));
}

#[test]
fn stdout_and_stderr_are_one_pipe_that_nobody_reads() {
    let sandbox = Sandbox::new();
    let (_reader, writer) = full_pipe();
    let mut both = command(&sandbox, &["--path", ".", "--timeout", "0.5"]);
    both.stdout(writer.try_clone().unwrap()).stderr(writer);
    let waited = start(both).finish();
    assert_eq!(waited.status.code(), Some(124));
    at_half_a_second(&waited);
}

#[test]
fn a_line_longer_than_the_pipe_is_cut_and_said_to_be() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("f"), format!("{}\n", "x".repeat(200_000))).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut long = command(
        &sandbox,
        &["--follow", "f", "--from", "start", "--timeout", "0.5"],
    );
    long.stdout(writer);
    let waited = start(long).finish();
    at_half_a_second(waited.ended(124, "deadline"));
    assert_eq!(waited.summary["cut"], true);
    assert_eq!((waited.count("dropped"), waited.count("offset")), (1, 0));
    let text = left_in(reader);
    assert!(
        text.len() >= 4096 && text.bytes().all(|b| b == b'x'),
        "{}",
        text.len()
    );
}

#[test]
fn a_line_without_an_end() {
    let sandbox = Sandbox::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let endless = std::thread::spawn(move || while writer.write_all(&[b'x'; 65536]).is_ok() {});
    let mut stdin = command(
        &sandbox,
        &["--stdin", "--max-line", "1M", "--timeout", "0.5"],
    );
    stdin.stdin(reader);
    let waited = start(stdin).finish();
    at_half_a_second(waited.ended(124, "deadline"));
    endless.join().unwrap();
}

#[test]
fn a_pipe_that_is_non_blocking_already() {
    let sandbox = Sandbox::new();
    let (reader, writer) = full_pipe();
    let flags = fcntl_getfl(&writer).unwrap() | OFlags::NONBLOCK;
    fcntl_setfl(&writer, flags).unwrap();
    let mut found = command(&sandbox, &["--path", ".", "--timeout", "0.5"]);
    found.stdout(writer.try_clone().unwrap());
    at_half_a_second(start(found).finish().ended(124, "deadline"));
    assert_eq!(fcntl_getfl(&writer).unwrap(), flags);
    // Once it is read, everything comes through.
    let mut all = command(&sandbox, &["--stdin", "--all", "--timeout", "20"]);
    let input = "a line of text\n".repeat(20_000);
    std::fs::write(sandbox.path("in"), &input).unwrap();
    all.stdin(File::open(sandbox.path("in")).unwrap())
        .stdout(writer);
    let drain = std::thread::spawn(move || left_in(reader));
    start(all).finish().ended(0, "closed");
    assert_eq!(drain.join().unwrap(), input);
}

#[test]
fn a_terminal_that_is_stopped() {
    let sandbox = Sandbox::new();
    let pty = nix::pty::openpty(None, None).unwrap();
    // As after ^S.
    rustix::termios::tcflow(&pty.slave, rustix::termios::Action::OOff).unwrap();
    let flags = fcntl_getfl(&pty.slave).unwrap();
    let mut found = command(&sandbox, &["--path", ".", "--timeout", "0.5"]);
    found.stdout(pty.slave.try_clone().unwrap());
    let waited = start(found).finish();
    at_half_a_second(waited.ended(124, "deadline"));
    assert_eq!(fcntl_getfl(&pty.slave).unwrap(), flags);
    // The same for what is shown of a long wait.
    let mut long = command(&sandbox, &["--path", "never", "--timeout", "2.5"]);
    long.stderr(pty.slave.try_clone().unwrap());
    let waited = start(long).finish();
    assert_eq!(waited.status.code(), Some(124));
    waited.gone_at(ms(2500));
}

#[test]
fn the_reader_goes_away() {
    let sandbox = Sandbox::new();
    let silent = UnixListener::bind(sandbox.path("s")).unwrap();
    for words in [
        &["--socket", "s", "--timeout", "20"][..],
        &["--path", "never", "--timeout", "20"],
        &["--follow", "never", "--all", "--timeout", "20"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut one = command(&sandbox, &[words, &["--ack-line", "armed"]].concat());
        one.stdout(writer);
        let waiting = start(one);
        let mut reader = reader;
        reader.read_exact(&mut [0; 6]).unwrap();
        drop(reader);
        let gone = std::time::Instant::now();
        let waited = waiting.finish();
        waited.gone_after(gone, AFTER);
        waited.died(13, "reader_gone");
        assert!(!waited.stderr.contains("panic"), "{waited:?}");
    }
    drop(silent);
    let script = "yes | eventwait --stdin --all --timeout 20 | head -1";
    let output = Command::new("bash")
        .args(["-c", script])
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", crate::support::bin_dir().display()),
        )
        .output()
        .unwrap();
    assert_eq!(
        (output.stdout, output.stderr),
        (b"y\n".to_vec(), Vec::new())
    );
}

#[test]
fn a_socket_as_standard_output() {
    let sandbox = Sandbox::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut found = command(&sandbox, &["--path", ".", "--timeout", "20"]);
    found.stdout(OwnedFd::from(theirs));
    start(found).finish().ended(0, "matched");
    let mut text = String::new();
    let mut ours = ours;
    ours.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    // And one that nobody reads, with a flood.
    let server = talker(&sandbox);
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let mut flood = command(&sandbox, &["--socket", "s", "--all", "--timeout", "0.5"]);
    flood.stdout(OwnedFd::from(theirs));
    let waited = start(flood).finish();
    at_half_a_second(&waited);
    assert_eq!(waited.summary["end"], "deadline");
    server.join().unwrap();
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    let mut found = command(&sandbox, &["--path", ".", "--timeout", "20"]);
    found.stdout(File::options().write(true).open("/dev/full").unwrap());
    let waited = start(found).finish();
    assert_eq!(waited.status.code(), Some(125), "{waited:?}");
    assert!(
        waited.stderr.contains("cannot write to standard output"),
        "{waited:?}"
    );
}

#[test]
fn memory_does_not_grow_with_the_stream() {
    let sandbox = Sandbox::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut stdin = command(&sandbox, &["--stdin", "--match", "a=2", "--timeout", "60"]);
    stdin.stdin(reader);
    let waiting = start(stdin);
    let block = b"{\"a\":1,\"b\":\"some text to make it longer\"}\n".repeat(2500);
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", waiting.pid())).unwrap();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    for _ in 0..10 {
        writer.write_all(&block).unwrap();
    }
    let early = peak();
    for _ in 0..500 {
        writer.write_all(&block).unwrap();
    }
    assert!(peak() < early + 2000, "{early} kB, then {} kB", peak());
    writer.write_all(b"{\"a\":2}\n").unwrap();
    waiting.finish().ended(0, "matched");
}

#[test]
fn a_command_inherits_nothing_of_the_wait() {
    let sandbox = Sandbox::new();
    let script = "echo fds $(ls /proc/self/fd | wc -l) >&2";
    let direct = Command::new("sh").args(["-c", script]).output().unwrap();
    let direct = String::from_utf8(direct.stderr).unwrap();
    let waited = wait(&sandbox, &["--timeout", "20", "--cmd", "sh", "-c", script]);
    waited.ended(0, "matched");
    assert!(waited.stderr.starts_with(&direct), "{direct} {waited:?}");
}
