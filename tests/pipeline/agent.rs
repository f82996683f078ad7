//! The whole line: who looks, who decides, who ends, who becomes the agent; with each of them
//! killed in the middle. Whatever happens, nothing is launched beside what still lives.

use std::process::Stdio;

use crate::home::Home;
use crate::scene::{new_id, struck};
use crate::stage::{Ran, feed, in_namespace};
use crate::support::{Killed, Sandbox, lives, until};

const PRELUDE: &str = r#"
set -o pipefail
look() { holder-scan --session-id "$id" --own-arg wrapper.sh --own-cwd "$ws"; }
decide() { resume-id --agent claude --session-id "$id" --cwd "$ws" --holders -; }
become() { resume-id --exec --decision -; }
"#;

/// The stages as scripts, since a word of the line would itself be taken for a holder.
const LOOK: &str = "exec holder-scan --session-id \"$id\" --own-arg wrapper.sh --own-cwd \"$ws\"";
const DECIDE: &str = "exec resume-id --agent claude --session-id \"$id\" --cwd \"$ws\" --holders -";

/// A wrapper that notes that it was asked to end, and stays.
const WRAPPER: &str = "#!/bin/bash\ntrap 'echo >>\"$HOME/asked\"' TERM\n\
    echo >\"$HOME/up\"\nwhile :; do sleep 0.02; done\n";

/// A home in which a wrapper without an agent is in the way of a launch.
struct Scene {
    home: Home,
    id: String,
    husk: Killed,
}

impl Scene {
    fn new() -> Scene {
        let home = Home::new();
        let id = new_id();
        home.conversation(&id);
        home.write("look.sh", LOOK);
        home.write("decide.sh", DECIDE);
        let wrapper = home.sandbox.script("wrapper.sh", WRAPPER);
        let mut command = home.bash("exec setsid \"$@\"");
        command
            .args(["bash", "bash"])
            .arg(wrapper)
            .arg(format!(r#"{{"args":["--session-id","{id}"]}}"#))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let husk = Killed(command.spawn().unwrap());
        until("the wrapper is up", || home.path("up").exists());
        Scene { home, id, husk }
    }

    fn husk_lives(&self) -> bool {
        lives(i32::try_from(self.husk.0.id()).unwrap())
    }

    fn run(&self, line: &str) -> Ran {
        let mut command = self.home.bash(&format!("{PRELUDE}{line}"));
        command.env("id", &self.id);
        feed(command, b"")
    }

    /// Runs a line that must end with 3 and launch nothing.
    #[track_caller]
    fn refuses(&self, line: &str) {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(3), "{line}: {ran:?}");
        let calls = self.home.calls();
        assert!(calls.is_empty(), "{line}: launched: {calls:?}");
        assert!(
            ran.err().contains("resume-id: "),
            "no reason: {line}: {ran:?}"
        );
    }
}

#[test]
fn what_is_in_the_way_is_ended_and_then_the_agent_is_launched() {
    let scene = Scene::new();
    let ran = scene.run("look | decide | reap --grace 100ms | become");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!scene.husk_lives());
    assert_eq!(scene.home.the_call(), format!("--resume {}", scene.id));
}

/// A stranger holds the same session: our own remnant goes, the stranger stays, and the launch
/// gets an id of its own.
#[test]
fn a_stranger_and_a_remnant() {
    let scene = Scene::new();
    std::fs::create_dir(scene.home.path("other")).unwrap();
    let other = scene
        .home
        .sandbox
        .script("other/claude", "#!/bin/sh\nsleep 600\n");
    let stranger =
        scene
            .home
            .sandbox
            .detach(&["--", other.to_str().unwrap(), "--resume", &scene.id]);
    let ran = scene.run("look | decide | reap --grace 100ms | become");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!scene.husk_lives());
    assert!(lives(crate::support::number(&stranger, "pid")));
    let call = scene.home.the_call();
    let id = call
        .strip_prefix("--session-id ")
        .unwrap_or_else(|| panic!("{call}"));
    assert!(id.len() == 36 && id != scene.id, "{call}");
}

#[test]
fn a_look_that_is_killed() {
    let scene = Scene::new();
    for signal in ["KILL", "TERM"] {
        for (call, nth) in [("getdents64", 1), ("getdents64", 4)] {
            let by = struck(signal, call, nth);
            scene.refuses(&format!("{by} sh ../look.sh | decide | reap | become"));
            assert!(scene.husk_lives());
        }
    }
    let by = struck("KILL", "write", 1);
    scene.refuses(&format!("{by} sh ../look.sh | decide | reap | become"));
    assert!(scene.husk_lives());
}

#[test]
fn a_decision_that_is_killed() {
    let scene = Scene::new();
    for (call, nth) in [("execve", 2), ("read", 5), ("write", 1)] {
        let by = struck("KILL", call, nth);
        scene.refuses(&format!("look | {by} sh ../decide.sh | reap | become"));
        assert!(scene.husk_lives());
    }
}

#[test]
fn a_reaper_that_is_killed() {
    // Before and after its first signal; and when all is done, before it says so.
    for (call, nth) in [("pidfd_open", 1), ("pidfd_send_signal", 1), ("write", 1)] {
        let scene = Scene::new();
        let by = struck("KILL", call, nth);
        scene.refuses(&format!("look | decide | {by} reap --grace 100ms | become"));
        assert_eq!(scene.husk_lives(), call != "write", "{call}");
    }
}

#[test]
fn a_reaper_that_is_ended_while_it_waits() {
    for signal in ["KILL", "TERM", "INT", "HUP"] {
        let scene = Scene::new();
        let line = format!(
            "{{ until [ -e ../asked ]; do sleep 0.01; done; kill -{signal} \"$(cat reaper)\"; }} &
             look | decide | {{ echo $BASHPID >reaper; exec reap --grace 60s; }} | become"
        );
        scene.refuses(&line);
        assert!(scene.husk_lives(), "{signal}");
    }
}

/// A record that ends in the middle is no record, wherever it is cut.
#[test]
fn a_stream_that_is_cut_anywhere() {
    let scene = Scene::new();
    std::fs::write(scene.home.path("w/look"), scene.run("look").stdout).unwrap();
    let look = std::fs::metadata(scene.home.path("w/look")).unwrap().len();
    for cut in [0, 1, look / 3, look / 2, look - 2] {
        let ran = scene.run(&format!("head -c {cut} look | decide | reap | become"));
        assert!(matches!(ran.code, Some(3 | 65)), "{cut}: {ran:?}");
        assert!(scene.home.calls().is_empty(), "{cut}: {ran:?}");
        assert!(scene.husk_lives(), "{cut}: {ran:?}");
    }
    std::fs::write(
        scene.home.path("w/decision"),
        scene.run("look | decide").stdout,
    )
    .unwrap();
    let decision = std::fs::metadata(scene.home.path("w/decision"))
        .unwrap()
        .len();
    for cut in [0, 1, decision / 3, decision / 2, decision - 2] {
        let ran = scene.run(&format!("head -c {cut} decision | reap | become"));
        assert!(matches!(ran.code, Some(3 | 65)), "{cut}: {ran:?}");
        assert!(scene.home.calls().is_empty(), "{cut}: {ran:?}");
        assert!(scene.husk_lives(), "{cut}: {ran:?}");
    }
    // Cut between reap and the launch.
    let ran = scene.run("reap --grace 100ms <decision >reaped");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let reaped = std::fs::metadata(scene.home.path("w/reaped"))
        .unwrap()
        .len();
    for cut in [0, 1, reaped / 2, reaped - 2] {
        let ran = scene.run(&format!("head -c {cut} reaped | become"));
        assert!(matches!(ran.code, Some(3 | 65)), "{cut}: {ran:?}");
        assert!(scene.home.calls().is_empty(), "{cut}: {ran:?}");
    }
    assert_eq!(scene.run("become <reaped").code, Some(0));
    assert_eq!(scene.home.the_call(), format!("--resume {}", scene.id));
}

#[test]
fn a_look_at_something_else() {
    let scene = Scene::new();
    let looks = [
        "holder-scan --session-id 00000000-0000-4000-8000-00000000beef --own-arg wrapper.sh",
        "holder-scan --arg wrapper.sh --own-arg wrapper.sh",
        "look --timeout 0 | sed 's/\"complete\":true/\"complete\":false/'",
        "look | sed 's/\"boot_id\":\"[^\"]*/\"boot_id\":\"00000000-0000-4000-8000-000000000000/'",
        "look | sed \"s/\\\"at\\\":\\\"[^\\\"]*/\\\"at\\\":\\\"$(date -u -d yesterday +%FT%T.000Z)/\"",
        "look | grep -v '\"type\":\"scan\"'",
        "cat /dev/null",
    ];
    for look in looks {
        scene.refuses(&format!("{look} | decide | reap | become"));
        assert!(scene.husk_lives(), "{look}");
    }
}

/// Between the decision and its execution the remnant dies by itself, and its number goes to
/// somebody else, who is not touched; nor is the launch made on the word of an old decision.
#[test]
fn a_number_that_is_handed_out_again_between_the_stages() {
    let sandbox = Sandbox::new();
    let ran = in_namespace(
        &sandbox,
        true,
        r#"
        export HOME=$PWD PATH=$PWD/bin:$PATH
        mkdir bin; printf '#!/bin/sh\necho >>"$HOME/called"\n' >bin/claude; chmod +x bin/claude
        id=00000000-0000-4000-8000-00000000dead
        look() { holder-scan --session-id $id --own-arg wrapper.sh --own-cwd "$PWD"; }
        decide() { resume-id --agent claude --session-id $id --cwd "$PWD" --holders -; }
        echo 'while :; do sleep 600; done' >wrapper.sh
        next 300; bash wrapper.sh "{\"args\":[\"--session-id\",\"$id\"]}" & own=$!
        until look | decide >decision; grep -q '"action":"reclaim"' decision; do :; done
        kill -KILL $own; wait $own 2>/dev/null
        next $own; bash -c 'while :; do sleep 600; done' & new=$!
        [ $new = $own ] || exit 9
        reap <decision >reaped; echo $?
        sed 's/.*"reap":{"outcome":"\([a-z]*\)".*/\1/' reaped
        resume-id --exec --decision - <reaped 2>/dev/null; echo $?
        [ -e called ] && echo launched
        lives $new && echo "it lives"
        "#,
    );
    assert_eq!(ran.lines(), ["1", "recycled", "1", "it lives"], "{ran:?}");
}
