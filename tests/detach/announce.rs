//! Each death is told once, whoever dies, and whatever becomes of the file.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use process::Signal;
use serde_json::{Value, json};

use crate::guarded::*;
use crate::support::*;

/// Four sweeps at the same moment.
fn sweeps(scene: &Scene) {
    let all: Vec<_> = (0..4)
        .map(|_| {
            let mut command = scene.tool("detach");
            command.args(["--sweep", ".", "--announce", "deaths"]);
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut sweep in all {
        assert_eq!(sweep.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn never_none_and_never_two() {
    for round in 0..rounds(16) {
        let scene = Scene::new();
        if round % 2 == 0 {
            private(&scene, "deaths", b"{\"type\":\"other\"}\n{\"type\":\"half");
        }
        let one = scene.start(&["sleep", "600"]);
        match round % 8 {
            0 => kill(one.pid),
            1 => {
                kill(one.guard);
                kill(one.pid);
            }
            2 => {
                kill(one.pid);
                kill(one.guard);
            }
            3 => {
                kill(one.pid);
                std::thread::sleep(std::time::Duration::from_millis(u64::from(round)));
                kill(one.guard);
            }
            4 => {
                std::fs::rename(scene.path("deaths"), scene.path("deaths.1")).unwrap();
                kill(one.pid);
            }
            5 => {
                kill(one.pid);
                until("it is told", || !scene.announced().is_empty());
                let _ = std::fs::rename(scene.path("deaths"), scene.path("deaths.1"));
            }
            6 => {
                private(&scene, "deaths", b"");
                kill(one.pid);
            }
            _ => signal_group(one.pid, Signal::SIGTERM),
        }
        sweeps(&scene);
        until("the guard has done its part", || !lives(one.guard));
        until_dead(one.pid);
        sweeps(&scene);
        let told = scene.announced();
        let ours: Vec<&Value> = told
            .iter()
            .filter(|line| line["ident"] == one.record["ident"])
            .collect();
        assert_eq!(ours.len(), 1, "round {round}: {told:?}");
        assert!(!scene.marker().exists(), "round {round}");
    }
}

fn private(scene: &Scene, name: &str, bytes: &[u8]) {
    std::fs::write(scene.path(name), bytes).unwrap();
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(scene.path(name), mode).unwrap();
}

#[test]
fn a_file_that_may_not_grow_is_tried_again() {
    let scene = Scene::new();
    // Forty bytes of the announcement still go in.
    let full = [vec![b'x'; 2007], b"\n".to_vec()].concat();
    private(&scene, "deaths", &full);
    let line = "ulimit -S -f 2; exec detach --guard --marker m.marker --announce deaths sleep 600";
    let output = scene.bash(line).output().unwrap();
    let one = scene.adopt(record(&output));
    kill(one.pid);
    until("a part of it is written", || {
        std::fs::read(scene.path("deaths")).unwrap().len() > full.len()
    });
    until_dead(one.pid);
    assert!(scene.announced().is_empty() && scene.marker().exists());
    assert!(lives(one.guard), "it does not give up");
    let mut command = Command::new("prlimit");
    let pid = one.guard.to_string();
    let freed = command.args(["--fsize=unlimited:", "--pid", &pid]).status();
    assert!(freed.unwrap().success());
    let death = scene.death();
    assert_eq!(
        (&death["signal"], &death["by"]),
        (&json!("KILL"), &json!("guard"))
    );
    let text = std::fs::read(scene.path("deaths")).unwrap();
    assert!(text.starts_with(&full), "what was there is still there");
}

#[test]
fn a_full_disk_is_waited_for() {
    let scene = Scene::new();
    let script = r#"
        mkdir disk; mount -t tmpfs -o size=64k,mode=700 none disk || exit 9
        record=$("$DETACH" --guard --marker m.marker --announce disk/deaths -- sleep 600)
        pid=${record#*'"pid":'}; pid=${pid%%,*}
        dd if=/dev/zero of=disk/filler bs=4k status=none 2>/dev/null
        [ "$(stat -f -c %a disk)" = 0 ] || exit 8
        kill -KILL "$pid"
        sleep 0.5
        [ -s disk/deaths ] && exit 7
        [ -e m.marker ] || exit 6
        "$DETACH" --sweep . --announce disk/deaths
        [ -e m.marker ] || exit 5
        rm disk/filler
        until [ ! -e m.marker ]; do sleep 0.02; done
        "$DETACH" --sweep . --announce disk/deaths
        grep -c death_id disk/deaths"#;
    let output = Command::new("setsid")
        .args([
            "--wait",
            "unshare",
            "-Urmpf",
            "--mount-proc",
            "bash",
            "-c",
            script,
        ])
        .env("DETACH", bin("detach"))
        .current_dir(scene.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"1\n", "{output:?}");
}

#[test]
fn a_folder_that_goes_and_comes_again_is_waited_for() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("far")).unwrap();
    let words = [
        "--guard",
        "--marker",
        "m.marker",
        "--announce",
        "far/deaths",
        "sleep",
        "600",
    ];
    let one = scene.adopt(scene.detach(&words));
    std::fs::remove_dir(scene.path("far")).unwrap();
    kill(one.pid);
    until_dead(one.pid);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(scene.marker().exists() && lives(one.guard));
    std::fs::create_dir(scene.path("far")).unwrap();
    until("its marker is gone", || !scene.marker().exists());
    let text = std::fs::read_to_string(scene.path("far/deaths")).unwrap();
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn what_was_told_elsewhere_is_not_told_again() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    let marker = std::fs::read(scene.marker()).unwrap();
    kill(one.pid);
    scene.death();
    until_dead(one.guard);
    // As if it had been killed before it could remove the marker.
    private(&scene, "m.marker", &marker);
    let words = ["--sweep", ".", "--announce", "elsewhere"];
    let output = scene.tool("detach").args(words).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(!scene.marker().exists());
    let elsewhere = std::fs::read(scene.path("elsewhere")).unwrap_or_default();
    assert!(elsewhere.is_empty());
}

#[test]
fn a_file_that_will_not_do_is_known_before_the_start() {
    let scene = Scene::new();
    std::fs::write(scene.path("target"), "precious\n").unwrap();
    std::os::unix::fs::symlink(scene.path("target"), scene.path("link")).unwrap();
    std::fs::create_dir(scene.path("folder")).unwrap();
    std::fs::write(scene.path("open"), "").unwrap();
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(scene.path("open"), mode).unwrap();
    nix::unistd::mkfifo(&scene.path("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    for (file, why) in [
        ("link", "symbolic link"),
        ("folder", "directory"),
        ("open", "other users"),
        ("fifo", "regular file"),
        ("missing/deaths", "missing"),
    ] {
        for guard in [&["--guard"][..], &[]] {
            let mut command = scene.tool("detach");
            command
                .args(guard)
                .args(["--marker", "m.marker", "--announce", file]);
            let output = command.args(["touch", "ran"]).output().unwrap();
            assert_eq!(output.status.code(), Some(125), "{file}: {output:?}");
            assert!(said(&output).contains(why), "{file}: {output:?}");
            assert!(
                !scene.path("ran").exists() && !scene.marker().exists(),
                "{file}"
            );
        }
    }
    assert_eq!(std::fs::read(scene.path("target")).unwrap(), b"precious\n");
    let words = [
        "--guard",
        "--marker",
        "gone/m.marker",
        "--announce",
        "deaths",
        "touch",
        "ran",
    ];
    let output = scene.tool("detach").args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(said(&output).contains("gone"), "{output:?}");
    assert!(!scene.path("ran").exists());
}

#[test]
fn a_marker_that_is_there_is_told_or_refused() {
    let scene = Scene::new();
    let one = scene.start(&["sleep", "600"]);
    let marker = scene.marker();
    let (marker, pid) = (marker.display(), one.pid);
    let who = format!("{marker}: process {pid} runs under it: reap <{marker} ends that");
    let output = scene.run(&["touch", "ran"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(said(&output).contains(&who), "{output:?}");
    kill(one.guard);
    until_dead(one.guard);
    let output = scene.run(&["touch", "ran"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(said(&output).contains(&who), "{output:?}");
    assert!(!scene.path("ran").exists() && lives(one.pid));
    kill(one.pid);
    until_dead(one.pid);
    // Nobody has told of it yet: the next start does.
    let next = scene.start(&["sleep", "600"]);
    let told = scene.announced();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["ident"], one.record["ident"]);
    assert_eq!(scene.read_marker().unwrap()["ident"], next.record["ident"]);
}
