//! `--socket`.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use crate::stage::{AFTER, Waiting, command, ms, start, wait};
use crate::support::Sandbox;

/// A server for one connection.
fn serve(sandbox: &Sandbox, talk: impl FnOnce(UnixStream) + Send + 'static) -> JoinHandle<()> {
    let _ = std::fs::remove_file(sandbox.path("s"));
    let listener = UnixListener::bind(sandbox.path("s")).unwrap();
    std::thread::spawn(move || talk(listener.accept().unwrap().0))
}

/// Reads on until the other side has closed: nobody is left behind.
fn until_closed(mut stream: UnixStream) {
    let mut rest = Vec::new();
    // A close with unread data is a reset.
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn lines_are_sent_and_nothing_counts_before_the_ack() {
    let sandbox = Sandbox::new();
    let server = serve(&sandbox, |mut stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut asked = String::new();
        lines.read_line(&mut asked).unwrap();
        lines.read_line(&mut asked).unwrap();
        assert_eq!(asked, "{\"id\":\"1\"}\n-second\n");
        // A client that closed its sending side would be seen here.
        stream.set_read_timeout(Some(ms(100))).unwrap();
        let end = lines.read(&mut [0; 1]).unwrap_err();
        assert_eq!(end.kind(), std::io::ErrorKind::WouldBlock);
        stream.set_read_timeout(None).unwrap();
        // The event in the same packet as the ack is not lost.
        stream
            .write_all(
                b"{\"e\":\"x\"}\nnoise\n{\"result\":{\"type\":\"ok\"}}\n{\"e\":\"x\",\"n\":2}\n",
            )
            .unwrap();
        until_closed(stream);
    });
    let waited = wait(
        &sandbox,
        &[
            "--socket",
            "s",
            "--send",
            "{\"id\":\"1\"}",
            "--send",
            "-second",
            "--ack",
            "result.type=ok",
            "--match",
            "e=x",
            "--ack-line",
            "@ok",
            "--timeout",
            "20",
        ],
    );
    assert_eq!(
        waited.ended(0, "matched").stdout,
        "@ok\n{\"e\":\"x\",\"n\":2}\n"
    );
    assert_eq!((waited.count("seen"), waited.count("not_json")), (4, 1));
    server.join().unwrap();
}

#[test]
fn characters_may_be_cut_by_packets() {
    let sandbox = Sandbox::new();
    let server = serve(&sandbox, |mut stream| {
        for part in "{\"k\":\"中\"}\n".as_bytes().chunks(2) {
            stream.write_all(part).unwrap();
            std::thread::sleep(ms(2));
        }
        until_closed(stream);
    });
    let waited = wait(
        &sandbox,
        &["--socket", "s", "--match", "k=中", "--timeout", "20"],
    );
    assert_eq!(waited.ended(0, "matched").stdout, "{\"k\":\"中\"}\n");
    server.join().unwrap();
}

#[test]
fn ways_to_get_no_answer() {
    let sandbox = Sandbox::new();
    let words = ["--socket", "s", "--ack", "ok=true", "--timeout", "20"];
    // Nobody there, and nobody behind the file any more.
    wait(&sandbox, &words)
        .ended(3, "unavailable")
        .gone_at(ms(0));
    drop(UnixListener::bind(sandbox.path("s")).unwrap());
    wait(&sandbox, &words)
        .ended(3, "unavailable")
        .gone_at(ms(0));
    // Closed before the ack; an error instead of it.
    let server = serve(&sandbox, drop);
    wait(&sandbox, &words).ended(3, "no_ack").gone_at(ms(0));
    server.join().unwrap();
    let server = serve(&sandbox, |mut stream| {
        stream
            .write_all(b"{\"error\":null}\n{\"error\":{\"code\":\"no\"}}\n")
            .unwrap();
        until_closed(stream);
    });
    let waited = wait(&sandbox, &words);
    waited.ended(3, "source_error").gone_at(ms(0));
    assert!(waited.stderr.contains("{\"code\":\"no\"}"), "{waited:?}");
    server.join().unwrap();
}

#[test]
fn an_error_in_the_stream_ends_the_wait_unless_it_is_awaited() {
    let sandbox = Sandbox::new();
    let error = "{\"id\":\"1\",\"error\":{\"code\":\"events_lost\"}}\n";
    let run = |words: &[&str]| {
        let server = serve(&sandbox, move |mut stream| {
            // An error as an event tells of it is not one of the talk itself.
            let event = "{\"ok\":true}\n{\"e\":\"failed\",\"error\":\"no disk\"}\n";
            stream.write_all(event.as_bytes()).unwrap();
            stream.write_all(error.as_bytes()).unwrap();
            stream.write_all(b"{\"e\":\"x\"}\n").unwrap();
            until_closed(stream);
        });
        let waited = wait(
            &sandbox,
            &[&["--socket", "s", "--timeout", "20"], words].concat(),
        );
        server.join().unwrap();
        waited
    };
    let lost = run(&["--ack", "ok=true", "--match", "e=x"]);
    lost.ended(3, "source_error");
    assert!(
        lost.stderr.contains("{\"code\":\"events_lost\"}"),
        "{lost:?}"
    );
    assert_eq!((lost.count("seen"), lost.count("matched")), (3, 0));
    // What is no filter's is nobody's event.
    let any = run(&["--ack", "ok=true", "--count", "2"]);
    any.ended(3, "source_error");
    let wanted = run(&["--ack", "ok=true", "--match", "error.code=events_lost"]);
    assert_eq!(wanted.ended(0, "matched").stdout, error);
    // A stream without an acknowledgement has no such rules.
    run(&["--match", "e=x"]).ended(0, "matched");
}

#[test]
fn the_end_of_the_stream_is_not_an_event() {
    let sandbox = Sandbox::new();
    let server = serve(&sandbox, |mut stream| stream.write_all(b"one\ntw").unwrap());
    let waited = wait(
        &sandbox,
        &["--socket", "s", "--line", "three", "--timeout", "20"],
    );
    waited.ended(1, "closed").gone_at(ms(0));
    assert_eq!(waited.count("seen"), 2);
    server.join().unwrap();
}

#[test]
fn what_is_to_be_sent_need_not_be_taken_at_once() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(100_000);
    let words: Vec<&str> = (0..8).flat_map(|_| ["--send", &long]).collect();
    let size = 8 * (long.len() + 1);
    let server = serve(&sandbox, move |mut stream| {
        // The answer comes before the question has been read.
        stream.write_all(b"early\n").unwrap();
        std::thread::sleep(ms(50));
        let mut all = vec![0; size];
        stream.read_exact(&mut all).unwrap();
        stream.write_all(b"late\n").unwrap();
        until_closed(stream);
    });
    let rest = ["--socket", "s", "--count", "2", "--timeout", "20"];
    let waited = wait(&sandbox, &[&words[..], &rest].concat());
    assert_eq!(waited.ended(0, "matched").stdout, "early\nlate\n");
    server.join().unwrap();
}

#[test]
fn the_server_unless_its_process_dies_first() {
    let sandbox = Sandbox::new();
    let (mut sleeper, ident) = sandbox.sleeper();
    let listener = UnixListener::bind(sandbox.path("s")).unwrap();
    let ident = ident.to_string();
    let words = [
        "--socket",
        "s",
        "--pid",
        &ident,
        "--line",
        "ready",
        "--timeout",
        "20",
    ];
    let waiting = start(command(&sandbox, &words));
    let (mut stream, _) = listener.accept().unwrap();
    // What it has said in its life counts, even if it is read after its death.
    stream.write_all(b"not yet\n").unwrap();
    sleeper.0.kill().unwrap();
    let waited = waiting.finish();
    waited.ended(1, "process_ended");
    assert_eq!(waited.count("seen"), 1);
}

#[test]
fn a_dead_process_is_not_waited_for_in_vain() {
    let sandbox = Sandbox::new();
    let (mut sleeper, ident) = sandbox.sleeper();
    let _listener = UnixListener::bind(sandbox.path("s")).unwrap();
    let ident = ident.to_string();
    let base = ["--pid", &ident, "--timeout", "20", "--ack-line", "armed"];
    let socket = [&base[..], &["--socket", "s", "--ack", "ok=true"]].concat();
    let cmd = [&base[..], &["--cmd", "sleep", "303"]].concat();
    let waits: Vec<_> = [socket, cmd]
        .iter()
        .map(|words| start(command(&sandbox, words)))
        .collect();
    waits[1].until_printed("armed\n");
    std::thread::sleep(ms(50));
    sleeper.0.kill().unwrap();
    let killed = std::time::Instant::now();
    let finish = |waiting: Waiting| std::thread::spawn(move || waiting.finish());
    let ends: Vec<_> = waits.into_iter().map(finish).collect();
    for end in ends {
        let waited = end.join().unwrap();
        waited
            .ended(1, "process_ended")
            .gone_after(killed, ms(100) + AFTER);
    }
}
