//! One line of shell in the place of a reader that a supervisor's scripts know: its columns, its
//! exit statuses, its end by a signal.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};

use crate::herdr::Herdr;
use crate::support::{Sandbox, bin_dir};

/// The reader: SOCKET TIMEOUT PANE...
const LINE: &str = r#"exec eventwait --herdr "${@:3}" --herdr-socket "$1" --timeout "$2" \
  --on status --no-initial --all --ack-line @subscribed \
  -o data.pane_id,data.workspace_id,data.agent_status,data.agent \
  --exit-code deadline=0 --exit-code reader_gone=0 --exit-code interrupted=0 \
  --exit-code unavailable=2 --exit-code no_ack=2 --exit-code source_error=3 --exit-code closed=4"#;

/// The first line of every reader's server.
const ACK: &str = "{\"id\":\"1\",\"result\":{\"type\":\"subscription_started\"}}\n";

fn reader(socket: &PathBuf, timeout: &str, panes: &[&str]) -> Child {
    let path = format!("{}:/usr/bin:/bin", bin_dir().display());
    Command::new("bash")
        .args(["-c", LINE, "reader"])
        .arg(socket)
        .arg(timeout)
        .args(panes)
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A server for one subscription, which it takes and then goes on like this.
fn serve(
    sandbox: &Sandbox,
    talk: impl FnOnce(UnixStream) + Send + 'static,
) -> (PathBuf, JoinHandle<()>) {
    let path = sandbox.path("s");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        BufReader::new(stream.try_clone().unwrap())
            .read_line(&mut asked)
            .unwrap();
        assert!(asked.contains("\"events.subscribe\""), "{asked}");
        talk(stream);
    });
    (path, thread)
}

/// Reads until the client is gone.
fn linger(mut stream: UnixStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn the_columns_and_the_statuses_of_the_reader() {
    let status = |fields: &str| {
        format!("{{\"event\":\"pane.agent_status_changed\",\"data\":{{{fields}}}}}\n")
    };
    let full = status(
        r#""pane_id":"w1:p1","workspace_id":"w1","agent_status":"blocked","agent":"a\tb\nc""#,
    );
    let sparse = status(r#""pane_id":"w1:p1","agent":"x""#);
    let stray = "{\"event\":\"pane_closed\",\"data\":{\"pane_id\":\"w1:p1\"}}\nnot json\n[1]\n";
    // A pane that was not asked for is the caller's to skip.
    let other = status(r#""pane_id":"w9:p9","workspace_id":"w9","agent_status":"idle""#);
    let lines = format!("{ACK}{full}{stray}{sparse}{other}");
    let columns = "@subscribed\nw1:p1\tw1\tblocked\ta b c\nw1:p1\t\t\tx\nw9:p9\tw9\tidle\t\n";
    type Talk = Box<dyn FnOnce(UnixStream) + Send>;
    let say = |text: String, stays: bool| -> Talk {
        Box::new(move |mut stream| {
            stream.write_all(text.as_bytes()).unwrap();
            if stays {
                linger(stream);
            }
        })
    };
    let table: [(&str, Talk, &str, i32, &str); 9] = [
        (
            "quiet",
            say(ACK.to_owned(), true),
            "0.3",
            0,
            "@subscribed\n",
        ),
        ("lines", say(lines.clone(), true), "0.5", 0, columns),
        ("closed", say(lines, false), "20", 4, columns),
        (
            "half a line",
            say(format!("{ACK}{{\"ev"), false),
            "20",
            4,
            "@subscribed\n",
        ),
        (
            "closed before the ack",
            say(String::new(), false),
            "20",
            2,
            "",
        ),
        ("no ack in time", say(String::new(), true), "0.3", 2, ""),
        ("no json", say("hello\n".to_owned(), true), "20", 3, ""),
        (
            "an error",
            say(
                "{\"id\":\"1:sub:0:1\",\"error\":{\"code\":\"pane_not_found\"}}\n".to_owned(),
                false,
            ),
            "20",
            3,
            "",
        ),
        (
            "a list",
            say("[\"subscription_started\"]\n".to_owned(), true),
            "20",
            3,
            "",
        ),
    ];
    let sandbox = Sandbox::new();
    for (what, talk, timeout, code, want) in table {
        let (socket, server) = serve(&sandbox, talk);
        let output = reader(&socket, timeout, &["w1:p1", "w1:p2"])
            .wait_with_output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{what}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), want, "{what}");
        server.join().unwrap();
    }
    std::fs::remove_file(sandbox.path("s")).unwrap();
    for (timeout, panes, code) in [
        ("20", &["w1:p1"][..], 2),
        ("20", &[], 2),
        ("soon", &["w1:p1"], 2),
        ("-1", &["w1:p1"], 2),
    ] {
        let output = reader(&sandbox.path("s"), timeout, panes)
            .wait_with_output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{timeout} {panes:?}");
    }
}

#[test]
fn it_is_ended_by_a_signal_at_once_and_leaves_with_its_reader() {
    let herdr = Herdr::start();
    let pane = herdr.create("/tmp", "label");
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut child = reader(&herdr.socket(), "60", &[&pane]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "@subscribed\n");
        herdr.report(
            &pane,
            "bot",
            if signal == Signal::SIGTERM {
                "blocked"
            } else {
                "working"
            },
        );
        line.clear();
        // Line by line, without waiting for more.
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{pane}\t")), "{line}");
        kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let mut child = reader(&herdr.socket(), "60", &[&pane]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
