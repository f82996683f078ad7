//! The sweep: what it announces, and what it does not touch.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::guarded::*;
use crate::support::*;

/// The marker's line, for a process that is gone, with one field of its identities changed.
fn with_field(marker: &Value, index: usize, word: &str) -> String {
    let mut marker = marker.clone();
    for place in ["/ident", "/guard/ident"] {
        let ident = marker.pointer_mut(place).unwrap();
        let mut fields: Vec<String> = ident
            .as_str()
            .unwrap()
            .split(':')
            .map(str::to_owned)
            .collect();
        fields[index] = word.to_owned();
        *ident = fields.join(":").into();
    }
    marker["death_id"] = format!("{index}-{word}").into();
    format!("{marker}\n")
}

#[test]
fn a_folder_with_other_peoples_things_in_it() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    let marker = scene.read_marker().unwrap();
    let put = |name: &str, text: &str| {
        std::fs::write(scene.path(name), text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(scene.path(name), mode).unwrap();
    };
    let boot = "00000000-0000-4000-8000-000000000000";
    put("boot.marker", &with_field(&marker, 1, boot));
    // To be left and named.
    put("space.marker", &with_field(&marker, 2, "1"));
    let whole = with_field(&marker, 1, boot);
    put("half.marker", &whole[..whole.len() / 2]);
    put("other.marker", "{\"type\":\"process\"}\n");
    put("text.marker", "precious\n");
    put("empty.marker", "");
    symlink(scene.path("boot.marker"), scene.path("link.marker")).unwrap();
    std::fs::create_dir(scene.path("folder.marker")).unwrap();
    nix::unistd::mkfifo(&scene.path("fifo.marker"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    put("open.marker", &whole);
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(scene.path("open.marker"), mode).unwrap();
    // Not looked at.
    put("boot.marker.stopping", "not a note\n");
    put("markers", &whole);
    put(".marker", &whole);
    let mut left: Vec<&str> = vec![
        "m.marker",
        "space.marker",
        "half.marker",
        "other.marker",
        "text.marker",
        "empty.marker",
        "link.marker",
        "folder.marker",
        "fifo.marker",
        "open.marker",
        "markers",
        ".marker",
    ];
    if nix::unistd::geteuid().is_root() {
        put("stranger.marker", &whole);
        std::os::unix::fs::chown(scene.path("stranger.marker"), Some(65534), None).unwrap();
        left.push("stranger.marker");
    }
    let output = scene.sweep();
    assert_eq!(output.status.code(), Some(3), "one is unknown: {output:?}");
    let told = record(&output);
    assert_eq!(told["death_id"], format!("1-{boot}"));
    assert_eq!(scene.announced(), [told]);
    assert!(!scene.path("boot.marker").exists());
    for name in &left {
        assert!(
            scene.path(name).symlink_metadata().is_ok(),
            "{name} is gone"
        );
        let is_named = said(&output).contains(&format!("/{name}:"));
        let is_quiet = ["m.marker", "markers", ".marker"].contains(name);
        assert_eq!(is_named, !is_quiet, "{name}: {}", said(&output));
    }
    assert!(lives(one.pid) && lives(one.guard));
}

#[test]
fn without_a_guard_it_is_the_sweep_that_tells() {
    let scene = Scene::new();
    let words = [
        "--marker",
        "m.marker",
        "--announce",
        "deaths",
        "--tag",
        "t",
        "sleep",
        "600",
    ];
    let value = scene.detach(&words);
    assert_eq!(value["guard"], Value::Null);
    let output = scene.sweep();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    kill(number(&value, "pid"));
    until_dead(number(&value, "pid"));
    assert_eq!(record(&scene.sweep())["tag"], "t");
    let death = scene.death();
    assert_eq!(
        (&death["by"], &death["ident"]),
        (&"sweep".into(), &value["ident"])
    );
    let output = scene.sweep();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
}

#[test]
fn a_folder_that_is_not_there_is_a_failure() {
    let scene = Scene::new();
    let words = ["--sweep", "missing", "--announce", "deaths"];
    let output = scene.tool("detach").args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(said(&output).contains("missing"), "{output:?}");
}

#[test]
fn a_start_on_a_marker_that_was_left_is_not_stranded_of_the_old_death() {
    let scene = Scene::new();
    let old = scene.start(&["sh", "-c", "sleep 600 & echo $! >child; wait"]);
    let child = pids(&scene, "child", 1)[0];
    scene.track_pid(child);
    kill(old.guard);
    until_dead(old.guard);
    kill(old.pid);
    until_dead(old.pid);
    // The old leader may be a zombie still: then its number is its own, and its child is named.
    let new = scene.start(&["sleep", "600"]);
    let announced = scene.announced();
    let death = &announced[0];
    assert_eq!((announced.len(), &death["by"]), (1, &"sweep".into()));
    assert_eq!(death["ident"], old.record["ident"]);
    let stranded: Vec<i32> = death["stranded"]
        .as_array()
        .unwrap()
        .iter()
        .map(|named| number(named, "pid"))
        .collect();
    assert_eq!(stranded, [child]);
    assert!(lives(new.pid));
}

#[test]
fn what_may_not_be_read_is_named_and_left() {
    if !nix::unistd::geteuid().is_root() {
        // Nobody else's files are at hand then; a file without permissions does as well.
        let scene = Scene::new();
        std::fs::write(scene.path("m.marker"), "{}\n").unwrap();
        let mode = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(scene.path("m.marker"), mode).unwrap();
        let output = scene.sweep();
        assert!(said(&output).contains("m.marker"), "{output:?}");
        return;
    }
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    kill(one.guard);
    kill(one.pid);
    until_dead(one.guard);
    until_dead(one.pid);
    let mut command = scene.tool_as_user("detach");
    let output = command
        .args(["--sweep", ".", "--announce", "theirs"])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(0), 0),
        "{output:?}"
    );
    assert!(said(&output).contains("m.marker"), "{output:?}");
    assert!(scene.marker().exists() && !scene.path("theirs").exists());
}

#[test]
fn without_a_guard_an_end_by_detach_itself_is_no_accident() {
    for (words, status) in [
        ("--ready-file zz --ready-timeout 200ms -- sleep 600", 124),
        ("--wait --timeout 200ms -- sleep 600", 124),
        ("-- sleep 600 >/dev/full", 125),
    ] {
        let scene = Scene::new();
        let line = format!("detach --marker m.marker --announce deaths {words}");
        let output = scene.bash(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words}: {output:?}");
        let output = scene.sweep();
        assert_eq!(output.status.code(), Some(0), "{words}: {output:?}");
        let death = scene.death();
        assert_eq!(
            (&death["deliberate"], &death["unnatural"]),
            (&json!(true), &json!(false)),
            "{words}: {death}"
        );
        assert!(!scene.path("m.marker.stopping").exists(), "{words}");
    }
}

#[test]
fn without_a_guard_a_start_that_fails_leaves_no_marker() {
    let scene = Scene::new();
    let words = ["--marker", "m.marker", "--announce", "deaths"];
    let mut command = scene.tool("detach");
    let output = command
        .args(words)
        .arg("no-such-command-anywhere")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0);
}
