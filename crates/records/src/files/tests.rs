use super::*;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn trust_is_a_matter_of_kind_owner_and_mode() {
    const FILE: u32 = 0o100_000;
    let table = [
        (FILE | 0o600, 1000, None),
        (FILE | 0o755, 1000, None),
        (FILE | 0o644, 0, None),
        (FILE | 0o600, 1001, Some("is owned by another user")),
        (FILE | 0o620, 1000, Some("can be written by other users")),
        (FILE | 0o602, 0, Some("can be written by other users")),
        (0o120_777, 1000, Some("is a symbolic link")),
        (0o040_700, 1000, Some("is a directory")),
        (0o010_600, 1000, Some("is not a regular file")),
        (0o140_600, 1000, Some("is not a regular file")),
        (0o020_600, 0, Some("is not a regular file")),
        (0o060_600, 0, Some("is not a regular file")),
    ];
    for (mode, owner, want) in table {
        assert_eq!(distrust(mode, owner, 1000), want, "{mode:o} of {owner}");
    }
}

#[test]
fn what_must_not_be_trusted_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("good"), "x").unwrap();
    chmod(&at("good"), 0o644);
    fs::write(at("open"), "x").unwrap();
    chmod(&at("open"), 0o666);
    symlink(at("good"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    // By the command: not every platform has the call.
    let made = std::process::Command::new("mkfifo")
        .arg(at("fifo"))
        .status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

    for access in [Access::Read, Access::ReadWrite, Access::Append] {
        open_trusted(&at("good"), access).unwrap();
        for name in ["open", "link", "dangling", "fifo", "socket"] {
            let error = open_trusted(&at(name), access).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        let error = open_trusted(&at("folder"), access).unwrap_err();
        assert!(error.to_string().contains("folder"), "{error}");
    }
    assert!(!at("nowhere").exists());
    assert_eq!(mode(&at("good")), 0o644);
}

#[test]
fn a_new_file_is_private_and_close_on_exec_and_blocking() {
    let dir = tempfile::tempdir().unwrap();
    for (name, access) in [
        ("rw", Access::ReadWrite),
        ("append", Access::Append),
        ("new", Access::New),
    ] {
        let path = dir.path().join(name);
        let file = open_trusted(&path, access).unwrap();
        assert_eq!(mode(&path), 0o600);
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
        assert_eq!(flags.contains(OFlags::APPEND), access == Access::Append);
    }
    let kind = |name: &str, access| {
        open_trusted(&dir.path().join(name), access)
            .unwrap_err()
            .kind()
    };
    assert_eq!(kind("none", Access::Read), io::ErrorKind::NotFound);
    assert_eq!(kind("new", Access::New), io::ErrorKind::AlreadyExists);
    assert_eq!(kind("no/folder", Access::Append), io::ErrorKind::NotFound);
}

#[test]
fn reading_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "12345").unwrap();
    chmod(&path, 0o600);
    assert_eq!(read_trusted(&path, 5).unwrap(), b"12345");
    let error = read_trusted(&path, 4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_file_appears_whole_and_leaves_nothing_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("record");
    write_whole(&path, b"one\n").unwrap();
    assert_eq!(mode(&path), 0o600);
    let first = fs::metadata(&path).unwrap().ino();
    let reader = fs::File::open(&path).unwrap();
    write_whole(&path, b"two\n").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two\n");
    assert_ne!(fs::metadata(&path).unwrap().ino(), first);
    // Whoever has the old file open reads it to its end.
    assert_eq!(io::read_to_string(reader).unwrap(), "one\n");
    assert_eq!(names(dir.path()), ["record"]);
}

#[test]
fn a_target_that_is_not_ours_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("open"), "x").unwrap();
    chmod(&at("open"), 0o666);
    symlink(at("open"), at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    for name in ["open", "link", "folder"] {
        let error = write_whole(&at(name), b"new").unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    for path in [Path::new("/"), Path::new(".."), &at("none/x")] {
        assert!(write_whole(path, b"new").is_err());
    }
    assert_eq!(fs::read(at("open")).unwrap(), b"x");
    assert_eq!(names(dir.path()), ["folder", "link", "open"]);
}

#[test]
fn a_temporary_file_is_removed_when_it_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x");
    let folder = Folder::of(&target).unwrap();
    let temporary = Temporary::new(&folder, &target).unwrap();
    assert_eq!(names(dir.path()), [temporary.name.as_os_str()]);
    assert_eq!(mode(&dir.path().join(&temporary.name)), 0o600);
    drop(temporary);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn lines_of_several_writers_to_a_file_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("announcements");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c"] {
            let path = &path;
            scope.spawn(move || {
                let file = open_trusted(path, Access::Append).unwrap();
                for i in 0..200 {
                    let line = letter.repeat(1 + i * 37);
                    append_line(&file, path.display(), line.as_bytes()).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 600);
    for line in text.lines() {
        assert_eq!(line.trim_matches(line.chars().next().unwrap()), "");
    }
    let read_only = open_trusted(&path, Access::Read).unwrap();
    let error = append_line(&read_only, "FILE", b"x").unwrap_err();
    assert!(error.to_string().starts_with("FILE: "), "{error}");
}

#[test]
fn a_lock_is_held_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let held = lock(&path, Deadline::never()).unwrap();
    assert_eq!(held.read(10).unwrap(), b"");
    held.rewrite_in_place(b"a long record\n").unwrap();
    held.rewrite_in_place(b"short\n").unwrap();
    assert_eq!(held.read(10).unwrap(), b"short\n");
    assert!(held.read(3).is_err());

    for wait in [Duration::ZERO, Duration::from_millis(30)] {
        let deadline = Deadline::after(wait);
        let error = lock(&path, deadline).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(deadline.passed());
    }
    let file = held.into_file();
    assert!(lock(&path, Deadline::after(Duration::ZERO)).is_err());
    drop(file);
    let again = lock(&path, Deadline::after(Duration::ZERO)).unwrap();
    assert_eq!(again.read(10).unwrap(), b"short\n");
}

/// How many descriptors of this process are open on the file `path`.
fn descriptors_of(path: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let open = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
    open.filter(|open| open == path).count()
}

#[test]
fn a_lock_that_was_waited_for_is_on_the_file_that_has_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let held = lock(&path, Deadline::never()).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock(&path, Deadline::after(Duration::from_secs(60))));
        while descriptors_of(&path) < 2 {
            std::thread::yield_now();
        }
        let new = dir.path().join("new");
        fs::write(&new, "new").unwrap();
        chmod(&new, 0o600);
        fs::rename(&new, &path).unwrap();
        let got = waiter.join().unwrap().unwrap();
        assert_eq!(got.read(10).unwrap(), b"new");
        assert!(still_named(&path, got.file()).unwrap());
        assert!(!still_named(&path, held.file()).unwrap());
    });
    fs::remove_file(&path).unwrap();
    assert!(!still_named(&path, held.file()).unwrap());
}
