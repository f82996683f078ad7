//! What `make dist` packs installs: the tools that the definitions name, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{at_top, commands};

/// `make` in a folder, with what is built in `target`. Nothing is built.
#[track_caller]
fn make(folder: &Path, target: &Path, words: &[&str]) -> String {
    let mut command = Command::new("make");
    command
        .args(["-s", "CARGO=true"])
        .args(words)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target);
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "make {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => drop(files.insert(path)),
        }
    }
    files
}

/// With stand-ins for the tools that are built, which say their names.
#[test]
fn what_is_packed_installs_and_goes_again() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("target");
    std::fs::create_dir_all(target.join("release")).unwrap();
    let names: Vec<String> = commands().iter().map(|c| c.get_name().to_owned()).collect();
    for name in &names {
        let tool = target.join("release").join(name);
        std::fs::write(&tool, format!("#!/bin/sh\necho {name}\n")).unwrap();
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let said = make(&at_top("."), &target, &["dist"]);
    let packed = PathBuf::from(said.lines().last().unwrap());

    let unpacked = place.path().join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(&packed)
        .arg("--strip-components=1")
        .current_dir(&unpacked)
        .status();
    assert!(tar.unwrap().success());
    for name in ["LICENSE", "README.md"] {
        assert!(unpacked.join(name).exists(), "{name}");
    }
    let prefix = place.path().join("prefix");
    let to = format!("PREFIX={}", prefix.display());
    make(&unpacked, &target, &["install", &to]);
    let mut expected = BTreeSet::from([prefix.join("share/man/man7/muxutils.7")]);
    for name in &names {
        let said = Command::new(prefix.join("bin").join(name)).output();
        assert_eq!(said.unwrap().stdout, format!("{name}\n").into_bytes());
        expected.extend([
            prefix.join(format!("bin/{name}")),
            prefix.join(format!("share/man/man1/{name}.1")),
            prefix.join(format!("share/bash-completion/completions/{name}")),
            prefix.join(format!("share/zsh/site-functions/_{name}")),
            prefix.join(format!("share/fish/vendor_completions.d/{name}.fish")),
        ]);
    }
    assert_eq!(files(&prefix), expected);
    make(&unpacked, &target, &["uninstall", &to]);
    assert_eq!(files(&prefix), BTreeSet::new());
}
