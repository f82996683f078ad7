//! The four tools in a pipe: who looks, who decides, who ends, who becomes the agent.

use std::process::{Command, Output, Stdio};

use process::Identity;

use crate::home::Home;
use crate::support::{Killed, lives, said, until};

/// The line that the manual gives.
const PIPE: &str = r#"
    scan() { holder-scan --session-id "$id" --own-arg wrapper.sh --own-cwd "$ws"; }
    decide() { resume-id --agent claude --session-id "$id" --cwd "$ws" --holders - "$@"; }
    become() { resume-id --exec --decision -; }
"#;

/// A home whose session has an id of its own: `holder-scan` sees the whole machine, with all other
/// tests.
struct Scene {
    home: Home,
    id: String,
}

impl Scene {
    fn new() -> Scene {
        let home = Home::new();
        let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        let id = id.trim().to_owned();
        home.conversation(&id);
        // A wrapper as supervisors write them: the id is in its JSON argument, and the agent is
        // its child, or dead.
        std::fs::create_dir(home.path("live")).unwrap();
        home.sandbox.script(
            "wrapper.sh",
            "#!/bin/bash\n[ -z \"$2\" ] || bash \"$2\" --session-id \"$3\" &\n\
             exec 3<>\"$HOME/nothing\"\necho $$ >\"$HOME/up\"\nread -r -u 3\n",
        );
        home.sandbox.script(
            "live/claude",
            "#!/bin/bash\nexec 3<>\"$HOME/nothing\"\necho $$ >\"$HOME/agent-up\"\nread -r -u 3\n",
        );
        let fifo = home.path("nothing");
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        Scene { home, id }
    }

    fn start(&self, words: &[&str]) -> (Killed, Identity) {
        let mut command = self.home.bash("exec \"$@\"");
        command
            .arg("bash")
            .args(words)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let child = Killed(command.spawn().unwrap());
        let ident = self.home.sandbox.track_pid(child.0.id() as i32);
        (child, ident)
    }

    /// A wrapper of ours, with its agent or without.
    fn wrapper(&self, with_agent: bool) -> (Killed, Identity) {
        let script = self.home.path("wrapper.sh");
        let json = format!(
            r#"{{"command":"claude","args":["--session-id","{}"]}}"#,
            self.id
        );
        let agent = self.home.path("live/claude");
        let mut words = vec!["bash", script.to_str().unwrap(), &json];
        if with_agent {
            words.extend([agent.to_str().unwrap(), &self.id]);
        }
        let started = self.start(&words);
        self.await_pid("up");
        if with_agent {
            let agent = self.await_pid("agent-up");
            self.home.sandbox.track_pid(agent);
        }
        started
    }

    /// Waits for a pid in a file of this name.
    fn await_pid(&self, name: &str) -> i32 {
        let read = || std::fs::read_to_string(self.home.path(name)).unwrap_or_default();
        until("somebody is up", || read().ends_with('\n'));
        read().trim().parse().unwrap()
    }

    /// Somebody else's agent with the same id.
    fn stranger(&self) -> (Killed, Identity) {
        let agent = self.home.path("live/claude");
        let started = self.start(&["bash", agent.to_str().unwrap(), "--resume", &self.id]);
        self.await_pid("agent-up");
        started
    }

    fn run(&self, line: &str) -> Output {
        let mut command = self.home.bash(&format!("{PIPE}{line}"));
        command
            .env("id", &self.id)
            .env_remove("up")
            .output()
            .unwrap()
    }
}

fn is_alive(ident: &Identity) -> bool {
    lives(ident.pid().get())
}

#[test]
fn nobody_holds_it() {
    let scene = Scene::new();
    let output = scene.run("scan | decide | reap | become");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(scene.home.the_call(), format!("--resume {}", scene.id));
}

#[test]
fn a_husk_of_ours_is_reclaimed() {
    let scene = Scene::new();
    let (_child, husk) = scene.wrapper(false);
    let output = scene.run("scan | decide | tee decision | reap | become");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!is_alive(&husk));
    assert_eq!(scene.home.the_call(), format!("--resume {}", scene.id));
    let decision = std::fs::read_to_string(scene.home.path("w/decision")).unwrap();
    assert!(
        decision.contains(r#""action":"reclaim","then":"resume""#),
        "{decision}"
    );
}

#[test]
fn a_husk_that_is_not_reaped_is_in_the_way() {
    let scene = Scene::new();
    let (_child, husk) = scene.wrapper(false);
    let output = scene.run("scan | decide | become");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(is_alive(&husk));
    assert!(scene.home.calls().is_empty());
}

#[test]
fn a_stranger_is_left_alone() {
    let scene = Scene::new();
    let (_child, stranger) = scene.stranger();
    let output = scene.run("scan | decide | reap | become");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(is_alive(&stranger));
    let call = scene.home.the_call();
    assert!(
        call.starts_with("--session-id ") && !call.contains(&scene.id),
        "{call}"
    );
}

/// The scan's verdict is about all that it was asked, and so is the class of what it found.
#[test]
fn who_is_only_in_the_directory_holds_nothing() {
    let scene = Scene::new();
    let (_child, there) = scene.start(&["sleep", "600"]);
    let line = r#"holder-scan --session-id "$id" --cwd "$ws" | tee found | decide | reap | become"#;
    let output = scene.run(line);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(is_alive(&there));
    assert_eq!(scene.home.the_call(), format!("--resume {}", scene.id));
    let found = std::fs::read_to_string(scene.home.path("w/found")).unwrap();
    assert!(found.contains(r#""verdict":"foreign""#), "{found}");
}

#[test]
fn a_script_that_is_called_like_the_agent() {
    let scene = Scene::new();
    let script = "#!/bin/bash\nfor id; do :; done\n\
        holder-scan --session-id \"$id\" --own-arg wrapper.sh |\n\
        resume-id --agent claude --session-id \"$id\" --cwd . --holders - $up -o action,reason\n\
        echo $$\n";
    scene.home.sandbox.script("relaunch", script);
    let said = |line: &str| {
        let output = scene.run(line);
        let shown = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = shown.split(['\t', '\n']).collect();
        [words[0], words[1], words[2]].map(str::to_owned)
    };
    for (line, wanted) in [
        (
            r#"up="--min-uptime 1h" "$HOME/relaunch" --session-id "$id""#,
            "unknown",
        ),
        (
            r#"up="--min-uptime 0" "$HOME/relaunch" --session-id "$id""#,
            "already_running",
        ),
    ] {
        let [action, reason, pid] = said(line);
        assert_eq!(action, wanted, "{reason}");
        assert!(reason.contains(&format!("process {pid}")), "{reason}");
        assert!(reason.contains("your script"), "{reason}");
    }
    // As the reason says.
    assert_eq!(said(r#""$HOME/relaunch" "$id""#)[0], "resume");
}

#[test]
fn what_is_well_runs_on() {
    let scene = Scene::new();
    let (_child, wrapper) = scene.wrapper(true);
    until("it has settled", || {
        let output = scene.run("scan | decide --min-uptime 300ms | reap | become");
        assert!(is_alive(&wrapper));
        // 3 while it is too young.
        assert!(
            matches!(output.status.code(), Some(1 | 3)),
            "{}",
            said(&output)
        );
        output.status.code() == Some(1)
    });
    assert!(scene.home.calls().is_empty());
}

#[test]
fn what_is_not_yet_settled_is_asked_again() {
    let scene = Scene::new();
    let (_child, wrapper) = scene.wrapper(true);
    let output = scene.run("scan | decide --min-uptime 1h | reap | become");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("unsettled"));
    assert!(is_alive(&wrapper));
}

#[test]
fn a_crash_loop_is_ended_with_its_wrapper() {
    let scene = Scene::new();
    let (_child, wrapper) = scene.wrapper(true);
    let death = format!(
        "{{\"session_id\":\"{}\",\"code\":0,\"uptime_ms\":9}}\n",
        scene.id
    );
    scene.home.write("w/exits", &death.repeat(3));
    let output = scene.run("scan | decide --min-uptime 1h --history exits | reap | become");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!is_alive(&wrapper));
    let call = scene.home.the_call();
    assert!(
        call.starts_with("--session-id ") && !call.contains(&scene.id),
        "{call}"
    );
}

#[test]
fn silence_is_never_taken_for_free() {
    let scene = Scene::new();
    let (_child, husk) = scene.wrapper(false);
    let table = [
        (
            "holder-scan was killed",
            "sh -c 'kill -KILL $$' | decide | reap | become",
        ),
        (
            "killed before its last word",
            "scan | sed '$d' | decide | reap | become",
        ),
        ("never started", "true | decide | reap | become"),
        (
            "of another id",
            "scan | sed 's/\"what\":{\"session_id\":\\[\"/&x/' | decide | reap | become",
        ),
        (
            "of another boot",
            "scan | sed 's/\"boot_id\":\"/&0/' | decide | reap | become",
        ),
        (
            "of another namespace",
            "scan | sed 's/\"pidns\":\"/&0/' | decide | reap | become",
        ),
        (
            "of yesterday",
            "scan | sed 's/\"at\":\"2/&0/' | decide | reap | become",
        ),
        (
            "looked only half",
            "scan | sed 's/\"complete\":true/\"complete\":false/' | decide | reap | become",
        ),
        (
            "looked at one user",
            "holder-scan --session-id \"$id\" --uid 4000000001 | decide | reap | become",
        ),
        (
            "resume-id was killed",
            "scan | sh -c 'kill -KILL $$' | reap | become",
        ),
        (
            "reap was killed",
            "scan | decide | sh -c 'kill -KILL $$' | become",
        ),
    ];
    for (name, line) in table {
        let output = scene.run(line);
        assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
        assert!(is_alive(&husk), "{name}");
    }
    assert!(scene.home.calls().is_empty());
}

/// The loop of the manual: scan, decide and claim, reap, become the agent, record its exit.
const KEEP: &str = r#"
    row=$1; export KEEP=$row; id=$(resume-id --row "$row" -o session_id)
    while :; do
      id=$(holder-scan --session-id "$id" --own-env "KEEP=$row" |
           resume-id --row "$row" --holders - --history "$row.exits" --record "$row" \
             --claim "$HOME/claims" --claimant $$ -o session_id) || case $? in
        3) sleep "${again:-3}"; continue ;;
        *) exit 1 ;;
      esac
      start=$(date +%s%3N)
      reap <"$row" | resume-id --exec --decision -
      printf '{"session_id":"%s","code":%d,"uptime_ms":%d,"at":%d}\n' \
        "$id" $? $(($(date +%s%3N) - start)) ${start%???} >>"$row.exits"
    done
"#;

/// What the agent of a loop did, until the loop ended.
fn keep(scene: &Scene, agent: &str) -> (Output, Vec<String>) {
    scene.home.sandbox.script("bin/claude", agent);
    let row = format!(
        r#"{{"agent":"claude","cwd":"{}","session_id":"{}"}}"#,
        scene.home.cwd(),
        scene.id
    );
    let row = scene.home.write("row", &row);
    let mut command = scene.home.bash(KEEP);
    let output = command
        .arg("keep")
        .arg(row)
        .env("again", "0.1")
        .output()
        .unwrap();
    let how = |call: String| match call.split_once(' ') {
        Some((flag, id)) if id == scene.id => format!("{flag} the first"),
        Some((flag, _)) => format!("{flag} another"),
        None => call,
    };
    (output, scene.home.calls().into_iter().map(how).collect())
}

#[test]
fn an_agent_that_leaves_at_once_for_ever() {
    let scene = Scene::new();
    std::fs::remove_file(scene.home.transcript(&scene.id)).unwrap();
    let (output, calls) = keep(&scene, "#!/bin/sh\necho \"$*\" >>\"$HOME/called\"\n");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let first = "--session-id the first";
    let another = "--session-id another";
    assert_eq!(calls, [first, first, first, another, another, another]);
    let row = std::fs::read_to_string(scene.home.path("row")).unwrap();
    assert!(row.contains(r#""action":"give_up""#), "{row}");
    // Started again, it still knows.
    let (output, calls) = keep_again(&scene);
    assert_eq!((output.status.code(), calls), (Some(1), 6));
}

fn keep_again(scene: &Scene) -> (Output, usize) {
    let mut command = scene.home.bash(KEEP);
    let output = command
        .arg("keep")
        .arg(scene.home.path("row"))
        .output()
        .unwrap();
    (output, scene.home.calls().len())
}

#[test]
fn a_loop_survives_what_befalls_it() {
    let scene = Scene::new();
    std::fs::remove_file(scene.home.transcript(&scene.id)).unwrap();
    let transcript = scene.home.transcript(&scene.id);
    // First it writes a conversation and is killed; then it is resumed, and the transcript
    // vanishes; then it begins anew, and its loop is told to end.
    let agent = format!(
        "#!/bin/bash\necho \"$*\" >>\"$HOME/called\"\n\
         case $(wc -l <\"$HOME/called\") in\n\
         1) printf '{{\"type\":\"user\",\"cwd\":\"%s\"}}\\n' \"$PWD\" >'{0}'; kill -KILL $$ ;;\n\
         2) rm '{0}'; exit 1 ;;\n\
         3) chmod -x \"$0\" ;;\n\
         esac\n",
        transcript.display()
    );
    let (output, calls) = keep(&scene, &agent);
    assert_eq!(
        calls,
        [
            "--session-id the first",
            "--resume the first",
            "--session-id another"
        ],
        "{}",
        said(&output)
    );
}
