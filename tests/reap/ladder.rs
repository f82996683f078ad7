//! The stop ladder of a caller's shell library, with `reap` in the place of its kills and sleeps.

use std::process::Output;

use crate::support::Sandbox;

/// `stop_runner PID IDENT`: 0 it is stopped and its group is empty, 1 it is stale and nothing was
/// signalled, 2 it cannot be proved, or somebody is left. The library then asks `kill -0` of the
/// group, which a zombie passes.
const LIBRARY: &str = r#"
stop_runner() {
    case $1 in '' | *[!0-9]*) return 2 ;; esac
    [ -n "$2" ] || return 2
    case $(reap --until vanished --grace "${GRACE-5s}" --kill-grace 20s -o reap.outcome "$2") in
        terminated | killed) return 0 ;;
        gone | recycled) return 1 ;;
        *) return 2 ;;
    esac
}
start() { detach -o pid,ident -- bash -c "$1"; }
group_is_empty() { ! kill -0 -- "-$1" 2>/dev/null; }
"#;

fn run(sandbox: &Sandbox, script: &str) -> Output {
    let output = sandbox
        .bash(&format!("{LIBRARY}{script}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn a_runner_is_stopped_and_its_group_is_empty() {
    let sandbox = Sandbox::new();
    let script = r#"
        read -r pid ident < <(start 'sleep 600 & sleep 600 & wait')
        stop_runner "$pid" "$ident"; echo $?; group_is_empty "$pid"; echo $?
        stop_runner "$pid" "$ident"; echo $?
        GRACE=200ms
        read -r pid ident < <(start 'trap "" TERM; sleep 600 & echo >up; wait')
        until [ -e up ]; do sleep 0.01; done
        stop_runner "$pid" "$ident"; echo $?; group_is_empty "$pid"; echo $?
    "#;
    assert_eq!(run(&sandbox, script).stdout, b"0\n0\n1\n0\n0\n");
}

#[test]
fn who_cannot_be_proved_is_not_touched() {
    let sandbox = Sandbox::new();
    let script = r#"
        read -r pid ident < <(start 'sleep 600 & echo $! >child; wait')
        until [ -s child ]; do sleep 0.01; done
        stop_runner abc "$ident"; echo $?
        stop_runner "$pid" ''; echo $?
        stop_runner "$pid" "${ident%:*}:1"; echo $?
        kill -0 "$pid" && echo lives
        kill -KILL "$pid"
        until [ -z "$(ps -o stat= -p "$pid")" ]; do sleep 0.05; done
        stop_runner "$pid" "$ident"; echo $?
        kill -0 "$(cat child)" && echo lives
        kill -KILL "$(cat child)"
    "#;
    assert_eq!(run(&sandbox, script).stdout, b"2\n2\n1\nlives\n2\nlives\n");
}
