//! The pane that one is in oneself.

use serde_json::Value;

use crate::herdr::Herdr;
use crate::stage::{Tmux, verify};
use crate::support::{Sandbox, bin, said, until};

/// Runs a line of shell in a pane and waits until the file `name` has its status.
fn in_pane(sandbox: &Sandbox, tmux: &Tmux<'_>, line: &str, name: &str) -> (String, String) {
    let tool = bin("pane-ident").display();
    let script =
        format!("{line} >{name}.out 2>{name}.err; echo $? >{name}.tmp; mv {name}.tmp {name}");
    tmux.window(&[
        "sh",
        "-c",
        &format!("pane_ident={tool}; {script}; exec sleep 600"),
    ]);
    until("the line is done", || sandbox.path(name).exists());
    let text = |ending: &str| {
        let path = sandbox.path(&format!("{name}{ending}"));
        std::fs::read_to_string(path).unwrap()
    };
    (text("").trim().to_owned(), text(".out") + &text(".err"))
}

#[test]
fn capture_self_finds_the_pane_by_its_environment() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let (status, text) = in_pane(&sandbox, &tmux, "$pane_ident capture --self", "direct");
    assert_eq!(status, "0", "{text}");
    let binding: Value = serde_json::from_str(&text).unwrap();
    let pane = binding["pane"].as_str().unwrap();
    assert_eq!(binding["pid"], tmux.pid(pane));
    verify(&sandbox, &binding, &[]).is("match", "same_process");
    // From a script in a subshell as well, and with variables that name another pane: no.
    let line = "(sh -c '\"$0\" capture --self -o pane' \"$pane_ident\"; TMUX_PANE=%0 $pane_ident capture --self)";
    let (status, text) = in_pane(&sandbox, &tmux, line, "nested");
    assert_eq!(status, "1", "{text}");
    assert!(text.starts_with('%'), "{text}");
    assert!(text.contains("stale_environment"), "{text}");
}

/// In a pane in a kitty it is the pane that is meant, and that kitty need not answer.
#[test]
fn the_innermost_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let kitty = "KITTY_WINDOW_ID=1 KITTY_LISTEN_ON=unix:@nobody";
    let line = format!("{kitty} $pane_ident capture --self --kitten-bin /not/there -o mux");
    let (status, text) = in_pane(&sandbox, &tmux, &line, "inner");
    assert_eq!((status.as_str(), text.as_str()), ("0", "tmux\n"));
    // Where the pane's own variables tell nothing, it is asked after all.
    let line = format!("unset TMUX; {line}");
    let (status, text) = in_pane(&sandbox, &tmux, &line, "outer");
    assert_eq!(status, "3", "{text}");
}

#[test]
fn nobody_acts_on_his_own_pane_by_accident() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let line = "{ $pane_ident capture --self >own.json; \
        $pane_ident verify -o verdict.state,verdict.reason <own.json; echo $?; \
        $pane_ident verify --ancestor -o verdict.state --tmux \"$TMUX_PANE\" \"$($pane_ident capture --self -o ident)\"; echo $?; \
        $pane_ident exec --binding own.json -- touch acted; echo $?; }";
    let (_, text) = in_pane(&sandbox, &tmux, line, "own");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["self\town_pane", "1", "match", "0"], "{text}");
    assert_eq!(lines[4], "122", "{text}");
    assert!(!sandbox.path("acted").exists());
    // From outside it is a pane like any other.
    let own = std::fs::read(sandbox.path("own.json")).unwrap();
    let own: Value = serde_json::from_slice(&own).unwrap();
    verify(&sandbox, &own, &[]).is("match", "same_process");
}

#[test]
fn not_in_a_pane() {
    let sandbox = Sandbox::new();
    let tmux = Tmux::start(&sandbox, "t");
    let capture = |vars: &[(&str, &str)]| {
        let mut command = sandbox.tool("pane-ident");
        command.args(["capture", "--self"]);
        for name in ["TMUX", "TMUX_PANE", "HERDR_PANE_ID", "KITTY_WINDOW_ID"] {
            command.env_remove(name);
        }
        let output = command.envs(vars.iter().copied()).output().unwrap();
        assert!(output.stdout.is_empty(), "{output:?}");
        (output.status.code(), said(&output))
    };
    let (code, text) = capture(&[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("not in a pane"), "{text}");
    let socket = tmux.socket().to_str().unwrap();
    let server = format!("{socket},{},0", tmux.server_pid());
    for pane in ["%0", "%99"] {
        let (code, text) = capture(&[("TMUX", &server), ("TMUX_PANE", pane)]);
        assert_eq!(code, Some(1));
        assert!(text.contains("stale_environment"), "{text}");
    }
    let gone = format!("{socket}.gone,1,0");
    let (code, text) = capture(&[("TMUX", &gone), ("TMUX_PANE", "%0")]);
    assert_eq!(code, Some(1));
    assert!(text.contains("stale_environment"), "{text}");
}

/// Runs a line in a herdr pane, and waits until it has written the file `name`.
fn in_herdr(sandbox: &Sandbox, herdr: &Herdr, pane: &str, line: &str, name: &str) -> String {
    let path = sandbox.path(name);
    let path = path.display();
    herdr.run_in(
        pane,
        &format!("({line}) >{path}.tmp 2>&1; mv {path}.tmp {path}"),
    );
    until("the line is done", || sandbox.path(name).exists());
    std::fs::read_to_string(sandbox.path(name)).unwrap()
}

#[test]
fn in_a_herdr_pane() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let pane = herdr.create("/", "mine");
    let tool = bin("pane-ident").display();
    let line = format!("unset TMUX TMUX_PANE; {tool} capture --self");
    let binding = in_herdr(&sandbox, &herdr, &pane, &line, "herdr");
    let binding: Value = serde_json::from_str(&binding).unwrap();
    assert_eq!(binding["pane"], pane.as_str());
    assert_eq!(binding["mux"], "herdr");
    assert_eq!(binding["pid"], herdr.pid(&pane));
    // After a move the variable is an alias; the record has the present id.
    let to = serde_json::json!({"pane_id": pane, "destination": {"type": "new_workspace"}});
    herdr.request("pane.move", to);
    let moved = in_herdr(&sandbox, &herdr, &pane, &line, "moved");
    let moved: Value = serde_json::from_str(&moved).unwrap();
    assert_ne!(moved["pane"], binding["pane"]);
    assert_eq!(moved["pid"], binding["pid"]);
}

/// The survivor of a closed pane keeps its variables, and after a restart they name a stranger.
#[test]
fn a_survivor_whose_variables_name_a_stranger() {
    let sandbox = Sandbox::new();
    let herdr = Herdr::start();
    let keeper = herdr.create("/", "keeper");
    let closed = herdr.create("/", "closed");
    let tool = bin("pane-ident").display();
    let go = sandbox.path("go");
    let out = sandbox.path("out");
    let script = format!(
        "echo $$ > {pid}; while [ ! -e {go} ]; do sleep 0.05; done; unset TMUX TMUX_PANE; \
         {tool} capture --self >{out}.tmp 2>&1; echo status $? >>{out}.tmp; mv {out}.tmp {out}",
        pid = sandbox.path("pid").display(),
        go = go.display(),
        out = out.display(),
    );
    let script = sandbox.script("survivor", &format!("#!/bin/sh\n{script}\n"));
    herdr.run_in(&closed, &format!("setsid {} &", script.display()));
    until("it runs", || {
        std::fs::read_to_string(sandbox.path("pid")).is_ok_and(|text| text.ends_with('\n'))
    });
    let pid = std::fs::read_to_string(sandbox.path("pid")).unwrap();
    sandbox.track_pid(pid.trim().parse().unwrap());
    herdr.close(&closed);
    herdr.restart();
    let stranger = herdr.create("/", "stranger");
    assert_eq!(stranger, closed, "the id is given out again");
    std::fs::write(&go, "").unwrap();
    until("it has asked", || out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("stale_environment"), "{text}");
    assert!(text.contains("status 1"), "{text}");
    drop(keeper);
}
