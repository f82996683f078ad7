//! The main job: a wrapper is started, found beside a stranger and a mention, and ended with all
//! that it has started.

use serde_json::Value;

use crate::scene::Scene;
use crate::stage::{Ran, in_namespace, marked};
use crate::support::{Sandbox, bin_dir};

/// The script that `make demo` runs: every step holds, and nothing is left.
#[test]
fn the_script_of_the_demo() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("tmp")).unwrap();
    let mark = format!("DEMO_MARK={}", crate::scene::new_id());
    let (name, value) = mark.split_once('=').unwrap();
    let output = std::process::Command::new("bash")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.sh"))
        .arg(bin_dir())
        .env("TMPDIR", sandbox.path("tmp"))
        .env(name, value)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out(), ran.err());
    assert_eq!(ran.lines().last().unwrap(), "Every step held.");
    assert!(!ran.out().contains("NOT SO"), "{}", ran.out());
    let left: Vec<_> = std::fs::read_dir(sandbox.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let marked = marked(&mark);
    assert!(marked.is_empty(), "still there: {marked:?}");
}

/// The records of a type.
fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["type"] == kind)
        .collect()
}

fn records(ran: &Ran) -> Vec<Value> {
    ran.lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn our_own_is_ended_and_nobody_else() {
    let scene = Scene::new();
    let seen = records(&scene.run("scan --mentions"));
    let class = |pid: i32| {
        let mut of_it = of_type(&seen, "holder")
            .into_iter()
            .filter(|holder| holder["pid"] == pid);
        of_it
            .next()
            .map(|holder| holder["class"].as_str().unwrap().to_owned())
    };
    assert_eq!(class(scene.own).as_deref(), Some("own"), "{seen:#?}");
    assert_eq!(
        class(scene.foreign).as_deref(),
        Some("foreign"),
        "{seen:#?}"
    );
    assert_eq!(
        class(scene.mention).as_deref(),
        Some("mention"),
        "{seen:#?}"
    );
    assert_eq!(of_type(&seen, "scan")[0]["verdict"], "foreign");

    let ran = scene.run("scan --mentions | tee seen | reap");
    // The stranger was refused.
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ended = records(&ran);
    let seen = std::fs::read_to_string(scene.sandbox.path("seen")).unwrap();
    assert_eq!(ended.len(), seen.lines().count());
    for record in of_type(&ended, "holder") {
        let expected = match record["class"].as_str() {
            Some("own") => "terminated",
            _ => "foreign",
        };
        assert_eq!(record["reap"]["outcome"], expected, "{record:#}");
    }
    assert!(!scene.own_lives());

    // The same again: nothing of ours is left, and nothing more to be done.
    let ran = scene.run("scan | tee again | reap");
    let again = std::fs::read_to_string(scene.sandbox.path("again")).unwrap();
    assert!(!again.contains("\"class\":\"own\""), "{again}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

/// Whoever asks is in his own way by no wrapper that a shell's line is usually put behind.
#[test]
fn whoever_asks_holds_nothing() {
    let sandbox = Sandbox::new();
    let id = crate::scene::new_id();
    let asks = [
        "holder-scan --session-id $id -o verdict",
        "timeout 60 holder-scan --session-id $id -o verdict",
        "env -u x holder-scan --session-id=$id -o verdict",
        "nice -n 1 setsid --wait holder-scan --session-id $id -o verdict",
        "sh -c \"holder-scan --session-id $id -o verdict; :\"",
        "holder-scan --session-id $id | timeout 60 reap | cat | sed -n 's/.*\"verdict\":\"\\([a-z]*\\)\".*/\\1/p'",
    ];
    for line in asks {
        let mut command = sandbox.bash(line);
        let output = command.env("id", &id).output().unwrap();
        let ran = Ran::of(output);
        assert_eq!(ran.lines(), ["free"], "{line}: {ran:?}");
    }
}

/// Between the look and the signal the wrapper dies, and its number goes to somebody else.
#[test]
fn a_number_that_is_handed_out_again_between_the_stages() {
    let sandbox = Sandbox::new();
    let ran = in_namespace(
        &sandbox,
        true,
        r#"
        id=00000000-0000-4000-8000-00000000dead
        echo 'while :; do sleep 600; done' >wrapper.sh
        next 300; bash wrapper.sh "{\"args\":[\"--session-id\",\"$id\"]}" & own=$!
        until holder-scan --session-id $id --own-arg wrapper.sh >seen; [ -s seen ] &&
            grep -q '"class":"own"' seen; do :; done
        pane-ident capture --pid $own >bound
        kill -KILL $own; wait $own 2>/dev/null
        next $own; bash -c 'while :; do sleep 600; done' & new=$!
        [ $new = $own ] || exit 9
        reap <seen | sed -n 's/.*"outcome":"\([a-z]*\)".*/\1/p' | head -1
        pane-ident verify -o verdict.state,verdict.reason <bound; echo $?
        pane-ident verify <bound | reap -o reap.outcome; echo $?
        eventwait --exit "$(sed 's/.*"ident":"\([^"]*\)".*/\1/' bound)" --timeout 0 -q; echo $?
        holder-scan --registry bound -o holding.state
        printf '{"v":1,"type":"process",%s\n' "$(sed 's/.*\("pid":.*\)/\1/' bound)" >lock
        detach --lock lock -o status -- true
        lives $new && echo "it lives"
        "#,
    );
    let expected = [
        "recycled",
        "foreign\trecycled",
        "1",
        "not_verified",
        "1",
        "0",
        "recycled",
        "started",
        "it lives",
    ];
    assert_eq!(ran.lines(), expected, "{ran:?}");
}
