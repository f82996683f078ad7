//! Inside pid namespaces: numbers that are handed out again, and numbers that would mean everybody.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, bin};

/// What scripts in a namespace begin with. `next PID` makes PID the next number to be handed out.
const PRELUDE: &str = r#"
set -u
next() { echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; }
ident() { "$REAP" --dry-run -o ident "$1"; }
reap() { "$REAP" --grace 300ms --kill-grace 2s "$@"; }
lives() { [ -d "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status"; }
"#;

/// Runs a script as init of a pid namespace, in a session of its own.
fn in_namespace(sandbox: &Sandbox, script: &str) -> Output {
    let script = format!("{PRELUDE}{script}");
    Command::new("setsid")
        .args([
            "--wait",
            "unshare",
            "-Urpf",
            "--mount-proc",
            "bash",
            "-c",
            &script,
        ])
        .env("REAP", bin("reap"))
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn outcome(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap();
    record["reap"]["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_number_that_was_handed_out_again() {
    let sandbox = Sandbox::new();
    let output = in_namespace(
        &sandbox,
        r#"
        next 300; setsid sleep 600 & old=$!; old_ident=$(ident $old)
        kill -KILL $old; wait $old 2>/dev/null
        next $old; setsid sleep 600 & new=$!
        [ $new = $old ] || exit 9
        reap "$old_ident"; echo "status $?"
        reap --leaderless "$old_ident"; echo "status $?"
        echo "{\"pid\":$new,\"ident\":\"$old_ident\"}" | reap; echo "status $?"
        lives $new && echo "it lives"
        "#,
    );
    let lines = lines(&output);
    for at in [0, 2, 4] {
        assert_eq!(outcome(&lines[at]), "recycled");
        assert_eq!(lines[at + 1], "status 1");
    }
    assert_eq!(lines[6], "it lives");
}

/// The leader is dead and collected, its number was given to a new leader, which has forked and is
/// dead and collected as well: the child is nobody's that the caller knows.
#[test]
fn a_stranger_in_a_group_with_the_old_number() {
    let sandbox = Sandbox::new();
    let output = in_namespace(
        &sandbox,
        r#"
        next 300; setsid sleep 600 & old=$!; old_ident=$(ident $old)
        sleep 0.1; kill -KILL $old; wait $old 2>/dev/null
        next $old; setsid bash -c 'sleep 600 & echo $! >child; exit' & new=$!
        [ $new = $old ] || exit 9
        wait $new; child=$(cat child)
        [ "$(cut -d' ' -f5 /proc/$child/stat)" = $old ] || exit 8
        reap "$old_ident"; echo "status $?"
        lives $child && echo "it lives"
        # Its death was announced, and the stranger was born after it.
        { echo "{\"pid\":$old,\"ident\":\"$old_ident\"}"
          echo "{\"type\":\"exit\",\"ident\":\"$old_ident\",\"uptime_ms\":100,\"stranded\":[]}"
        } | reap -o reap.outcome; echo "status $?"
        lives $child && echo "it lives"
        # The number alone.
        reap -o reap.outcome $old; echo "status $?"
        lives $child && echo "it lives"
        "#,
    );
    let lines = lines(&output);
    assert_eq!(outcome(&lines[0]), "unknown");
    let rest = [
        "status 3", "it lives", "unknown", "status 3", "it lives", "unknown", "status 3",
        "it lives",
    ];
    assert_eq!(lines[1..], rest);
}

/// The leader dies of the first signal, and its number is handed out again while the sequence still
/// waits for another member.
#[test]
fn a_number_that_is_handed_out_again_meanwhile() {
    let sandbox = Sandbox::new();
    // The target's child lives in a group of its own, so the target's group is empty once it is
    // dead, and the number is free.
    let output = in_namespace(
        &sandbox,
        r#"
        next 300; setsid bash -c '
            setsid bash -c "trap \"\" TERM; echo >armed; exec sleep 600" & wait' & target=$!
        until [ -e armed ]; do sleep 0.01; done
        "$REAP" --grace 3s -o reap.outcome $target & reaper=$!
        wait $target 2>/dev/null
        next $target; setsid bash -c 'sleep 600 & echo $! >child; exit' & new=$!
        [ $new = $target ] || exit 9
        wait $new; child=$(cat child)
        [ "$(cut -d' ' -f5 /proc/$child/stat)" = $target ] || exit 8
        wait $reaper; echo "status $?"
        lives $child && echo "it lives"
        "#,
    );
    assert_eq!(lines(&output), ["killed", "status 0", "it lives"]);
}

#[test]
fn a_foreign_process_table() {
    let sandbox = Sandbox::new();
    // The table is that of the outer namespace: every number in it means another process.
    let output = Command::new("setsid")
        .args(["--wait", "unshare", "-Urpf", "bash", "-c"])
        .arg("sleep 600 & \"$REAP\" -o reap.outcome $!; echo status $?; kill -0 $! && echo lives; kill -9 $!")
        .env("REAP", bin("reap"))
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(lines(&output), ["unknown", "status 3", "lives"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("/proc"));
}

/// Everything that another program has been seen to take for "everybody" or "my own group".
#[test]
fn numbers_that_are_no_targets() {
    let sandbox = Sandbox::new();
    let output = in_namespace(
        &sandbox,
        r#"
        sleep 600 & witness=$!; setsid sleep 600 & other=$!
        # Its own group and session have witnesses too.
        group=$(cut -d' ' -f5 /proc/$$/stat)
        for word in 0 1 -1 -2 -$witness -- 4294967295 4294967296 4294967297 -4294967297 \
            99999999999999999999 -1555555555555555555 '' ' ' abc '1 2' "$witness $other" \
            " $witness" "$witness " 0x10 +$witness 1e3 4194305 -$group; do
            [ "$word" = -- ] && continue
            for form in "" "--"; do
                "$REAP" $form "$word" >/dev/null 2>&1; status=$?
                [ $status = 2 ] || echo "operand '$word': $status"
            done
            printf '%s\n' "$word" >pidfile
            "$REAP" --pidfile pidfile >/dev/null 2>&1; status=$?
            [ $status = 2 ] || echo "pidfile '$word': $status"
            for options in "" "--allow-bare-pid" "--allow-bare-pid --leaderless --active"; do
                for number in "$word" "\"$word\""; do
                    # Blanks around a number are no part of it.
                    case $number in ' '*|*' ') continue ;; esac
                    for type in process holder; do
                        printf '{"type":"%s","class":"own","pid":%s,"root":%s}\n' \
                            $type "$number" "$number" | "$REAP" $options >/dev/null 2>&1
                        status=$?
                        # No JSON at all, or a refusal.
                        [ $status = 65 ] || [ $status = 1 ] || [ $type$status = holder3 ] ||
                            echo "record '$number' of $type: $status"
                    done
                done
            done
        done
        for signal in 0 -1 STOP CONT 64 99 ''; do
            "$REAP" --signal "$signal" $witness >/dev/null 2>&1; status=$?
            [ $status = 2 ] || echo "signal '$signal': $status"
        done
        # Itself, its ancestors, init.
        for target in $$ 1; do
            "$REAP" -- $target >/dev/null 2>&1 && echo "target $target"
        done
        lives $witness || echo "the witness is dead"
        lives $other || echo "the other witness is dead"
        echo done
        "#,
    );
    assert_eq!(lines(&output), ["done"]);
}
