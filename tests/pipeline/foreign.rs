//! A /proc of another pid namespace: every number in it means another process, so nothing in it is
//! believed, and nobody is signalled.

use crate::stage::in_namespace;
use crate::support::Sandbox;

/// Runs a script where /proc is another namespace's; `target` lives there, and `ident` is an
/// identity with its number.
#[track_caller]
fn elsewhere(script: &str) -> Vec<String> {
    let sandbox = Sandbox::new();
    let script = format!(
        r#"
        sleep 600 & target=$!
        boot=$(cat /proc/sys/kernel/random/boot_id)
        ident=linux:$boot:4026531836:$target:1:1
        {script}
        kill -0 $target || echo "the target is dead"
        kill -KILL $target
        "#
    );
    let ran = in_namespace(&sandbox, false, &script);
    assert_eq!(ran.signal, None, "{ran:?}");
    ran.lines()
}

#[test]
fn nobody_is_ended() {
    let lines = elsewhere(
        r#"
        reap --grace 100ms -o reap.outcome $target 2>err; echo "$?"
        reap --grace 100ms -o reap.outcome $ident 2>/dev/null; echo "$?"
        echo "{\"pid\":$target,\"ident\":\"$ident\"}" | reap -o reap.outcome 2>/dev/null; echo "$?"
        grep -c /proc err
        "#,
    );
    assert_eq!(lines, ["unknown", "3", "unknown", "3", "unknown", "3", "1"]);
}

#[test]
fn nobody_is_recognised() {
    let lines = elsewhere(
        r#"
        pane-ident verify -o verdict.state $ident; echo $?
        echo "{\"ident\":\"$ident\"}" | pane-ident verify -o verdict.state; echo $?
        pane-ident capture --pid $target; echo $?
        eventwait --exit $ident --timeout 0 2>/dev/null; echo $?
        eventwait --exit $target --timeout 0 2>/dev/null; echo $?
        "#,
    );
    assert_eq!(lines, ["unknown", "3", "unknown", "3", "3", "3", "3"]);
}

#[test]
fn nobody_is_seen_to_hold_anything_or_nothing() {
    let lines = elsewhere(
        r#"
        holder-scan --arg 600 -o verdict,complete 2>/dev/null; echo $?
        holder-scan -q --arg 600 2>/dev/null; echo $?
        echo "{\"ident\":\"$ident\"}" | holder-scan --registry - -o holding.state 2>/dev/null; echo $?
        "#,
    );
    assert_eq!(lines, ["unknown\tfalse", "3", "3", "unknown", "3"]);
}

#[test]
fn nothing_is_launched() {
    let lines = elsewhere(
        r#"
        # A lock whose holder cannot be judged is no free lock.
        printf '{"v":1,"type":"process","pid":%s,"ident":"%s"}\n' $target $ident >lock
        detach --lock lock -- touch started >/dev/null 2>err; echo $?
        [ -e started ] && echo started
        id=00000000-0000-4000-8000-0000000000a1
        holder-scan --session-id $id 2>/dev/null |
            resume-id --agent claude --session-id $id --cwd / --holders - -o action 2>/dev/null
        echo $?
        "#,
    );
    assert_eq!(lines, ["3", "unknown", "3"]);
}
