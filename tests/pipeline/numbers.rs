//! Numbers that are no targets: what other programs have been seen to take for "everybody", "my
//! own group" or somebody else. In a pid namespace, with witnesses that must survive.

use crate::stage::in_namespace;
use crate::support::Sandbox;

/// Starts two witnesses, one of them in the group of the script, and has the function `each`
/// called with every number. Whatever it echoes is wrong.
fn survive(each: &str) {
    let sandbox = Sandbox::new();
    let script = format!(
        r#"
        sleep 600 & witness=$!; setsid sleep 600 & other=$!
        group=$(cut -d' ' -f5 /proc/$$/stat)
        ident=$(reap --dry-run -o ident $witness)
        IFS=: read -r _ boot space _ ticks inode <<<"$ident"
        # Says so if the status of what has just been run is not one of these.
        expect() {{
            status=$?; what=$1; shift
            for good in "$@"; do [ $status = "$good" ] && return; done
            echo "$what: $status"; cat out
        }}
        >out
        {each}
        for number in 0 00 1 01 -0 -1 -2 "-$witness" "-$group" "+$witness" "0$witness" \
            4194305 32769999 2147483647 2147483648 -2147483648 4294967294 4294967295 4294967296 \
            4294967297 -4294967297 18446744073709551615 18446744073709551616 \
            99999999999999999999 -1555555555555555555 '' ' ' abc '1 2' "$witness $other" \
            " $witness" "$witness " "$witness"$'\n' 0x10 1e3 "$witness.0" 12abc "$witness," ٣
        do
            each "$number"
        done
        lives $witness || echo "the witness is dead"
        lives $other || echo "the other witness is dead"
        echo done
        "#
    );
    let ran = in_namespace(&sandbox, true, &script);
    assert_eq!(ran.lines(), ["done"], "{ran:?}");
}

/// The operands of all tools but `reap`, whose own tests have them.
#[test]
fn as_operands() {
    survive(
        r#"each() {
            pane-ident capture --pid="$1" >out 2>&1; expect "capture --pid '$1'" 2
            pane-ident capture --pid "$1" >out 2>&1; expect "capture --pid '$1'" 2
            pane-ident verify -- "$1" >out 2>&1; expect "verify '$1'" 2
            eventwait --timeout 0 --exit="$1" >out 2>&1; expect "--exit '$1'" 2
            eventwait --timeout 0 --path / --pid="$1" >out 2>&1; expect "--pid '$1'" 2
            resume-id --agent claude --cwd / --claim . --claimant="$1" >out 2>&1
            expect "--claimant '$1'" 2
        }"#,
    );
}

/// As the pid of an identity that is well formed otherwise.
#[test]
fn in_identities() {
    survive(
        r#"each() {
            for ident in "linux:$boot:$space:$1:$ticks:$inode" "linux:$boot:$space:$1:$ticks:0" \
                "lstart:$(uname -n):0:$1:1764426381:0" "macos:$boot:0:$1:1.000001:0"
            do
                reap -- "$ident" >out 2>&1; expect "reap '$ident'" 2
                pane-ident verify -- "$ident" >out 2>&1; expect "verify '$ident'" 2
                eventwait --timeout 0 --exit="$ident" >out 2>&1; expect "--exit '$ident'" 2
                eventwait --timeout 0 --path / --pid="$ident" >out 2>&1
                expect "--pid '$ident'" 2
                resume-id --agent claude --cwd / --claim . --claimant="$ident" >out 2>&1
                expect "--claimant '$ident'" 2
            done
        }"#,
    );
}

/// In the records and files that others have written.
#[test]
fn in_records() {
    survive(
        r#"
        id=00000000-0000-4000-8000-0000000000a1
        bad() { printf '{"type":"process","pid":%s,"root":%s,"ident":%s,"session_id":"%s"}\n' \
            "$1" "$1" "$2" $id; }
        each() {
            # Blanks around a number are no part of it.
            case $1 in ' '?*|?*[$' \n']) return ;; esac
            quoted="\"$1\""
            for pid in "$1" "$quoted"; do
                for id_of in null "\"\"" "$quoted" "\"linux:$boot:$space:${quoted:1:-1}:1:1\""; do
                    bad "$pid" "$id_of" >record
                    # Not to be verified, or no record at all.
                    pane-ident verify <record >out 2>&1; expect "verify $pid $id_of" 1 3 65
                    grep -q '"state":"match"' out && echo "a match: $(cat record)"
                    holder-scan --registry record >out 2>&1; expect "row $pid $id_of" 0 65
                    grep -q '"state":"alive"' out && echo "alive: $(cat record)"
                    # What it names is in nobody's tree.
                    holder-scan --arg 600 --own-record record >out 2>&1
                    grep -q '"class":"own"' out && echo "own: $(cat record)"
                    detach --lock record --ready-timeout 0 -o status -- true >out 2>&1
                    expect "lock $pid $id_of" 0 125
                    grep -q running out && echo "running: $pid $id_of"
                done
            done
        }"#,
    );
}

/// A decision that others have tampered with ends nobody, and launches nothing.
#[test]
fn in_decisions() {
    survive(
        r#"
        now=$(date -u +%FT%T.000Z)
        each() {
            case $1 in ' '?*|?*[$' \n']) return ;; esac
            quoted="\"$1\""
            for pid in "$1" "$quoted"; do
                for class in own foreign; do
                    printf '{"type":"decision","action":"reclaim","then":"resume","at":"%s",
                        "agent":"claude","cwd":"/","argv":["touch","%s/launched"],"stale":[
                        {"type":"holder","class":"%s","pid":%s,"root":%s,
                         "root_ident":"linux:%s:%s:%s:1:1"}]}' \
                        $now "$PWD" $class "$pid" "$pid" $boot $space "${quoted:1:-1}" |
                        tr -d '\n' >decision
                    reap <decision >reaped 2>/dev/null; expect "reap $pid $class" 1 3 65
                    resume-id --exec --decision reaped >out 2>&1
                    expect "exec $pid $class" 1 3 65
                done
            done
            [ -e launched ] && echo "launched: $1"
        }"#,
    );
}
