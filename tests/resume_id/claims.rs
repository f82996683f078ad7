//! Of two launches at the same moment, one goes ahead.

use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::home::{A1, Home};
use crate::support::{Killed, record, said, until};

/// A launcher: a shell that claims the session for itself and becomes what is decided.
fn launcher(home: &Home, claims: &str) -> Child {
    let line = format!(
        "resume-id --agent claude --session-id $id --cwd $ws --claim '{claims}' --claimant $$ |
         resume-id --exec --decision - 2>/dev/null; exit"
    );
    let mut command = home.bash(&line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn fifty_pairs_at_the_same_moment() {
    let home = Home::new();
    home.conversation(A1);
    // An agent that is there until the pair has been told.
    home.sandbox.script(
        "bin/claude",
        "#!/bin/sh\necho \"$$ x x $*\" >>\"$HOME/called\"\n\
         until [ -e \"$HOME/told\" ]; do sleep 0.01; done\n",
    );
    for pair in 0..50 {
        for left in ["called", "told"] {
            let _ = std::fs::remove_file(home.path(left));
        }
        let claims = home.path(&format!("claims-{pair}"));
        let claims = claims.to_str().unwrap();
        let mut both = [launcher(&home, claims), launcher(&home, claims)];
        until("one is refused, or both are launched", || {
            let mut ended = both.iter_mut().map(|one| one.try_wait().unwrap());
            ended.any(|ended| ended.is_some()) || home.calls().len() > 1
        });
        home.write("told", "");
        for one in &mut both {
            one.wait().unwrap();
        }
        assert_eq!(home.calls().len(), 1, "pair {pair}: {:?}", home.calls());
    }
}

#[test]
fn a_claim_lives_as_long_as_its_claimant() {
    let home = Home::new();
    let claims = home.path("claims");
    let claims = claims.to_str().unwrap();
    let (sleeper, ident) = home.sandbox.sleeper();
    let pid = ident.pid().to_string();
    let claim = |claimant: &str| home.decide(A1, &["--claim", claims, "--claimant", claimant]);
    let first = record(&claim(&pid));
    assert_eq!(first["action"], "assign");
    assert_eq!(first["claim"]["claimant"], ident.to_string());

    // Its own, by pid or identity; not another's.
    assert_eq!(record(&claim(&ident.to_string()))["action"], "assign");
    let (_other, other) = home.sandbox.sleeper();
    let other = other.to_string();
    let refused = claim(&other);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(record(&refused)["action"], "already_running");
    assert_eq!(record(&refused)["claim"], json!(null));
    // The id's case makes no other session of it.
    let upper = home.decide(
        &A1.to_uppercase(),
        &["--claim", claims, "--claimant", &other],
    );
    assert_eq!(upper.status.code(), Some(1));

    // SIGKILL frees it, with nothing to clean up.
    drop(sleeper);
    let taken = claim(&other);
    assert_eq!(taken.status.code(), Some(0), "{}", said(&taken));
    assert_eq!(record(&taken)["claim"]["claimant"], other);

    // An empty one and a half-written one are free; the file stays the same.
    let file = record(&taken)["claim"]["file"].as_str().unwrap().to_owned();
    let whole = std::fs::read(&file).unwrap();
    for part in [0, 1, whole.len() / 2] {
        std::fs::write(&file, &whole[..part]).unwrap();
        let own = std::process::id().to_string();
        assert_eq!(claim(&own).status.code(), Some(0));
    }
    use std::os::unix::fs::MetadataExt;
    let one = std::fs::read_dir(claims).unwrap().count();
    assert_eq!(one, 1);
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn the_agent_takes_the_claim_over() {
    let home = Home::new();
    home.sandbox.script(
        "bin/claude",
        "#!/bin/sh\necho \"$$\" >>\"$HOME/called\"\nexec sleep 600\n",
    );
    let claims = home.path("claims");
    let claims = claims.to_str().unwrap();
    let mut child = Killed(launcher(&home, claims));
    until("the agent was called", || home.calls().len() == 1);
    let agent: i32 = home.calls()[0].parse().unwrap();
    home.sandbox.track_pid(agent);
    let own = std::process::id().to_string();
    let claim = || home.decide(A1, &["--claim", claims, "--claimant", &own]);
    assert_eq!(claim().status.code(), Some(1));
    // The launcher's end is not the agent's.
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let refused = record(&claim());
    assert_eq!(refused["action"], "already_running");
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("process {agent} ")), "{reason}");
    kill(agent);
    crate::support::until_dead(agent);
    assert_eq!(claim().status.code(), Some(0));
}

fn kill(pid: i32) {
    let mut command = Command::new("kill");
    assert!(
        command
            .args(["-KILL", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_claim_that_changed_hands_is_not_passed_on() {
    let home = Home::new();
    let claims = home.path("claims");
    let claims = claims.to_str().unwrap();
    let (_a, first) = home.sandbox.sleeper();
    let decision = home.decision(A1, &["--claim", claims, "--claimant", &first.to_string()]);
    let file = decision["claim"]["file"].as_str().unwrap();
    let (_b, second) = home.sandbox.sleeper();
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replace(&first.to_string(), &second.to_string())).unwrap();
    let output = home.exec(&format!("{decision}\n"));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(home.calls().is_empty());
}

#[test]
fn a_claim_in_a_relative_directory() {
    let home = Home::new();
    let (_sleeper, ident) = home.sandbox.sleeper();
    let decision = home.decision(A1, &["--claim", "claims", "--claimant", &ident.to_string()]);
    // Wherever it is followed, it names the same file.
    let follow = || {
        let mut command = home.tool(&["--exec", "--decision", "-"]);
        command.current_dir(home.path(""));
        crate::home::with_input(command, &format!("{decision}\n"))
    };
    let followed = follow();
    assert_eq!(followed.status.code(), Some(0), "{}", said(&followed));
    assert_eq!(home.calls().len(), 1);
    // One that is gone is not made again.
    let claims = home.path("w/claims");
    std::fs::remove_dir_all(&claims).unwrap();
    let refused = follow();
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(!claims.exists());
    assert_eq!(home.calls().len(), 1);
}

#[test]
fn a_recycled_pid_does_not_keep_a_claim() {
    let home = Home::new();
    // In a pid namespace of its own, a pid is handed out again on purpose. (The first bash there is
    // init, which no claimant can be.)
    let script = r#"
        claim() { resume-id --agent claude --session-id "$id" --cwd "$ws" --claim "$HOME/claims" --claimant "$1" -o action; }
        sleep 600 & first=$!
        claim $first
        claim $$ || true
        kill -KILL $first; wait $first 2>/dev/null
        tries=0
        while :; do
            echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
            sleep 600 & [ $! = $first ] && break
            kill -KILL $!; wait $! 2>/dev/null
            tries=$((tries + 1)); [ $tries -lt 100 ] || exit 9
        done
        claim $$
        kill -KILL $first
    "#;
    let mut command =
        home.bash("exec unshare -Urpf --mount-proc bash -c 'bash -c \"$script\"; exit'");
    let output = command.env("script", script).output().unwrap();
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(shown, "assign\nalready_running\nassign\n", "{output:?}");
}

#[test]
fn claimants_that_are_none() {
    let home = Home::new();
    for claimant in ["", "0", "1", "-1", "4294967295", "1 2", "12abc"] {
        let output = home.decide(A1, &["--claim", "claims", "--claimant", claimant]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{claimant}: {}",
            said(&output)
        );
    }
    assert!(!home.path("w/claims").exists());
}
