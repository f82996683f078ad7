//! `--herdr`, against a server with herdr's habits.

use serde_json::json;

use crate::herdr::{Habits, Herdr};
use crate::stage::{Waiting, command, ms, start, wait};
use crate::support::{Sandbox, until};

struct Scene {
    sandbox: Sandbox,
    herdr: Herdr,
    pane: String,
}

impl Scene {
    /// A server with a pane.
    fn new() -> Scene {
        let herdr = Herdr::start();
        let pane = herdr.create("/tmp", "label");
        Scene {
            sandbox: Sandbox::new(),
            herdr,
            pane,
        }
    }

    /// A wait for this pane, once it is subscribed.
    fn waiting(&self, words: &[&str]) -> Waiting {
        let socket = self.herdr.socket();
        let base = [
            "--herdr",
            &self.pane,
            "--ack-line",
            "armed",
            "--timeout",
            "20",
            "--herdr-socket",
            socket.to_str().unwrap(),
        ];
        let waiting = start(command(&self.sandbox, &[&base[..], words].concat()));
        waiting.until_printed("armed\n");
        waiting
    }
}

/// The records behind the line that says that the wait is armed.
fn records(waited: &crate::stage::Waited) -> Vec<serde_json::Value> {
    let lines = waited.stdout.lines().filter(|line| *line != "armed");
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_state_at_the_start_is_an_answer() {
    let scene = Scene::new();
    scene.herdr.report(&scene.pane, "bot", "working");
    let waited = scene.waiting(&[]).finish();
    let record = &records(waited.ended(0, "matched"))[0];
    assert_eq!(record["event"], "pane.agent_status_changed");
    assert_eq!(record["initial"], true);
    assert_eq!(record["data"]["pane_id"], scene.pane);
    assert_eq!(record["data"]["agent_status"], "working");
    assert_eq!(record["data"]["agent"], "bot");
    let line = waited.stdout.lines().nth(1).unwrap();
    let head =
        r#"{"v":1,"type":"event","source":"herdr","event":"pane.agent_status_changed","data":{"#;
    assert!(line.starts_with(head), "{line}");
    // A state that is not the awaited one is no answer.
    let blocked = ["--match", "data.agent_status=blocked"];
    let waiting = scene.waiting(&blocked);
    std::thread::sleep(ms(100));
    scene.herdr.report(&scene.pane, "bot", "blocked");
    let waited = waiting.finish();
    let record = &records(waited.ended(0, "matched"))[0];
    assert_eq!(record["initial"], false);
    assert_eq!(record["data"]["agent_status"], "blocked");
}

#[test]
fn a_close_and_an_exit_are_both_seen() {
    let scene = Scene::new();
    let other = scene.herdr.split(&scene.pane);
    let third = scene.herdr.split(&scene.pane);
    let gone = ["--no-initial", "--on", "exit,close"];
    let waiting = scene.waiting(&gone);
    // A stranger's end is not ours.
    scene.herdr.close(&other);
    std::thread::sleep(ms(300));
    scene.herdr.close(&scene.pane);
    let waited = waiting.finish();
    let record = &records(waited.ended(0, "matched"))[0];
    assert_eq!(record["event"], "pane.closed");
    assert_eq!(record["data"]["pane_id"], scene.pane);
    assert_eq!(records(&waited).len(), 1);
    let scene = Scene {
        pane: third,
        ..scene
    };
    let waiting = scene.waiting(&gone);
    scene.herdr.run_in(&scene.pane, "exit");
    let waited = waiting.finish();
    assert_eq!(
        records(waited.ended(0, "matched"))[0]["event"],
        "pane.exited"
    );
}

#[test]
fn a_pane_that_is_gone_already_is_an_answer_and_the_others_are_waited_for() {
    let scene = Scene::new();
    let other = scene.herdr.split(&scene.pane);
    scene.herdr.close(&other);
    let waiting = scene.waiting(&[
        "--herdr",
        &other,
        "--match",
        "event=pane.closed",
        "--count",
        "2",
    ]);
    waiting.until_printed(&other);
    scene.herdr.close(&scene.pane);
    let waited = waiting.finish();
    let seen = records(waited.ended(0, "matched"));
    assert_eq!(
        (&seen[0]["data"]["pane_id"], &seen[0]["initial"]),
        (&json!(other), &json!(true))
    );
    assert_eq!(seen[1]["data"]["pane_id"], scene.pane);
    assert_eq!(seen[1]["initial"], false);
    // Alone it needs no subscription to be an answer, unless only a status would be one.
    let socket = scene.herdr.socket();
    let base = [
        "--herdr",
        "w9:p9",
        "--timeout",
        "20",
        "--herdr-socket",
        socket.to_str().unwrap(),
    ];
    let waited = wait(&scene.sandbox, &base);
    assert_eq!(
        waited.ended(0, "matched").records()[0]["data"]["pane_id"],
        "w9:p9"
    );
    let waited = wait(&scene.sandbox, &[&base[..], &["--on", "status"]].concat());
    waited.ended(3, "source_error").gone_at(ms(0));
    assert!(waited.stderr.contains("pane_not_found"), "{waited:?}");
}

#[test]
fn old_events_are_not_taken_for_new_ones() {
    let scene = Scene::new();
    if scene.herdr.is_real() {
        return;
    }
    // What the ring holds is replayed to new subscribers, as if it were of this pane.
    for event in ["pane.closed", "pane.exited"] {
        let wire = event.replace('.', "_");
        let data = json!({"pane_id": scene.pane, "type": wire, "workspace_id": "w1"});
        scene.herdr.emit(event, data);
    }
    let waiting = scene.waiting(&["--no-initial", "--on", "exit,close"]);
    std::thread::sleep(ms(900));
    assert_eq!(waiting.printed(), "armed\n");
    scene.herdr.close(&scene.pane);
    let waited = waiting.finish();
    assert_eq!(records(waited.ended(0, "matched")).len(), 1);
    assert!(waited.count("seen") >= 3, "{waited:?}");
}

#[test]
fn a_lost_server_a_burst_and_a_quiet_pane_are_told_apart() {
    let scene = Scene::new();
    let never = [
        "--no-initial",
        "--all",
        "--match",
        "data.agent_status=never",
    ];
    // The server goes: that says nothing of the pane.
    let waiting = scene.waiting(&never);
    scene.herdr.stop();
    let lost = waiting.finish();
    lost.ended(1, "closed");
    assert_eq!(lost.count("seen"), 1, "the acknowledgement alone");
    let words = ["--herdr", &scene.pane, "--herdr-socket"];
    let socket = scene.herdr.socket();
    let words = [&words[..], &[socket.to_str().unwrap(), "--timeout", "20"]].concat();
    wait(&scene.sandbox, &words)
        .ended(3, "unavailable")
        .gone_at(ms(0));
    // A burst, of which a part is lost: it was not quiet.
    let scene = Scene::new();
    let short = ["--herdr", &scene.pane, "--timeout", "1", "--herdr-socket"];
    let socket = scene.herdr.socket();
    let short = [&short[..], &[socket.to_str().unwrap()], &never].concat();
    let quiet = wait(&scene.sandbox, &short);
    quiet.ended(124, "deadline");
    assert_eq!(quiet.count("seen"), 1);
    let waiting = start(command(&scene.sandbox, &short));
    for n in 0..200 {
        scene
            .herdr
            .report(&scene.pane, "bot", ["working", "idle"][n % 2]);
    }
    let burst = waiting.finish();
    burst.ended(124, "deadline");
    assert!(
        burst.count("seen") > 1 && burst.count("seen") < 200,
        "{burst:?}"
    );
    if scene.herdr.is_real() {
        return;
    }
    // An error in the middle of the stream: something was lost.
    let waiting = scene.waiting(&never);
    scene.herdr.break_streams(
        "{\"id\":\"x\",\"error\":{\"code\":\"events_lost\",\"message\":\"lost\"}}\n",
    );
    let waited = waiting.finish();
    waited.ended(3, "source_error");
    assert!(waited.stderr.contains("events_lost"), "{waited:?}");
}

#[test]
fn a_slow_consumer_is_dropped_by_the_server_and_says_so() {
    let scene = Scene::new();
    if scene.herdr.is_real() {
        return;
    }
    scene.herdr.set_habits(Habits {
        tick: ms(1),
        patience: ms(200),
        ..Habits::default()
    });
    let (reader, writer) = std::io::pipe().unwrap();
    let socket = scene.herdr.socket();
    let mut slow = command(
        &scene.sandbox,
        &[
            "--herdr",
            &scene.pane,
            "--on",
            "status",
            "--all",
            "--timeout",
            "20",
            "--herdr-socket",
            socket.to_str().unwrap(),
        ],
    );
    slow.stdout(writer);
    let waiting = start(slow);
    let mut reader = reader;
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut reader, &mut first).unwrap();
    let pid = nix::unistd::Pid::from_raw(waiting.pid());
    // Stopped, it reads nothing, until the server has had enough.
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let text = "x".repeat(4000);
    let pane = &scene.pane;
    for n in 0..400 {
        let status = ["working", "idle"][n % 2];
        let data =
            json!({"pane_id": pane, "workspace_id": "w1", "agent_status": status, "agent": text});
        scene.herdr.emit("pane.agent_status_changed", data);
        std::thread::sleep(ms(2));
    }
    std::thread::sleep(ms(500));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    let drain = std::thread::spawn(move || {
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut all).unwrap();
        all
    });
    let waited = waiting.finish();
    drain.join().unwrap();
    waited.ended(0, "closed");
    assert!(waited.count("seen") > 10, "{waited:?}");
}

#[test]
fn a_server_that_is_stopped_or_hangs_up() {
    let scene = Scene::new();
    let socket = scene.herdr.socket();
    let words = [
        "--herdr",
        &scene.pane,
        "--timeout",
        "0.5",
        "--herdr-socket",
        socket.to_str().unwrap(),
    ];
    scene.herdr.freeze();
    let waited = wait(&scene.sandbox, &words);
    waited
        .ended(3, "no_ack")
        .not_before(ms(500))
        .gone_at(ms(500));
    scene.herdr.thaw();
    if scene.herdr.is_real() {
        return;
    }
    scene.herdr.set_habits(Habits {
        hang_up: true,
        ..Habits::default()
    });
    wait(&scene.sandbox, &words)
        .ended(3, "no_ack")
        .gone_at(ms(0));
}

#[test]
fn a_handoff_is_the_end_of_the_stream() {
    let scene = Scene::new();
    let waiting = scene.waiting(&["--no-initial"]);
    scene.herdr.handoff();
    waiting.finish().ended(1, "closed");
    // And the pane is still there.
    until("it is up", || {
        scene.herdr.try_request("ping", json!({})).is_ok()
    });
    scene
        .waiting(&["--match", "initial=true"])
        .finish()
        .ended(0, "matched");
}

#[test]
fn a_server_that_contradicts_itself_is_not_asked_without_end() {
    use std::io::{BufRead, BufReader, Write};
    let sandbox = Sandbox::new();
    let listener = std::os::unix::net::UnixListener::bind(sandbox.path("h")).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = BufReader::new(client.unwrap());
            let mut line = String::new();
            let _ = client.read_line(&mut line);
            let request: serde_json::Value = serde_json::from_str(&line).unwrap();
            let pane = json!({"pane_id": "w1:p1", "workspace_id": "w1"});
            let answer = match request["method"] == "events.subscribe" {
                true => json!({"id": request["id"],
                    "error": {"code": "pane_not_found", "message": "no such pane"}}),
                false => json!({"id": request["id"],
                    "result": {"type": "pane_info", "pane": pane}}),
            };
            let _ = client.get_mut().write_all(format!("{answer}\n").as_bytes());
        }
    });
    let words = ["--herdr", "w1:p1", "--herdr-socket", "h", "--timeout", "1"];
    let waited = wait(&sandbox, &words);
    assert_eq!(waited.status.code(), Some(3), "{waited:?}");
    let seen = waited.count("seen");
    assert!((2..=20).contains(&seen), "{waited:?}");
}
