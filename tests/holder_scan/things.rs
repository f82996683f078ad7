//! Files, sockets, ports, terminals, directories, variables and arguments.

use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;

#[test]
fn a_file_under_any_name() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("data");
    let file = File::create(&path).unwrap();
    let holder = idle_with(&sandbox, "x", &[], |command| {
        command.stderr(file);
    });
    let found = |name: &Path| scan(&sandbox, &["--file", text(name)]).classes().len();
    assert_eq!(found(&path), 1);
    let (linked, renamed) = (sandbox.path("linked"), sandbox.path("renamed"));
    fs::hard_link(&path, &linked).unwrap();
    std::os::unix::fs::symlink(&path, sandbox.path("symlink")).unwrap();
    assert_eq!(found(&linked), 1);
    assert_eq!(found(&sandbox.path("symlink")), 1);
    fs::rename(&path, &renamed).unwrap();
    assert_eq!(found(&renamed), 1);
    assert_eq!(found(&path), 0, "it is called otherwise now");
    fs::remove_file(&linked).unwrap();
    fs::remove_file(&renamed).unwrap();
    let gone = scan(&sandbox, &["--file", text(&renamed)]);
    let evidence = &gone.holder(pid(&holder))["evidence"][0];
    assert_eq!(evidence["path"], format!("{} (deleted)", text(&renamed)));
    fs::write(&renamed, "another").unwrap();
    assert_eq!(found(&renamed), 0, "another file of that name");
}

#[test]
fn a_file_as_directory_executable_and_mapping() {
    let sandbox = Sandbox::new();
    let exe = sandbox.copy_of("/bin/sleep", "copy-of-sleep");
    let folder = sandbox.path("folder");
    fs::create_dir(&folder).unwrap();
    let child = Killed(
        Command::new(&exe)
            .arg("600")
            .current_dir(&folder)
            .spawn()
            .unwrap(),
    );
    let fd_of = |path: &Path| {
        let held = scan(&sandbox, &["--file", text(path)]);
        held.holder(pid(&child))["evidence"][0]["fd"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(fd_of(&folder), "cwd");
    assert_eq!(fd_of(&exe), "exe");
    let line = "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); \
                f.close(); print(flush=True); sys.stdin.read()";
    let data = sandbox.path("mapped");
    fs::write(&data, "x".repeat(5000)).unwrap();
    let mut command = Command::new("python3");
    command
        .args(["-c", line, text(&data)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut mapping = Killed(command.spawn().unwrap());
    let mut ready = [0];
    std::io::Read::read_exact(mapping.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    // The mapping keeps a descriptor of its own open, and the file is mapped as well.
    let held = scan(&sandbox, &["--file", text(&data)]);
    let evidence = held.holder(pid(&mapping))["evidence"].as_array().unwrap();
    assert!(
        evidence.iter().any(|piece| piece["fd"] == "mem"),
        "{evidence:?}"
    );
}

#[test]
fn a_socket_has_an_owner_and_clients() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("s.sock");
    // Bound by a relative path.
    let line = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('s.sock'); s.listen(); \
                print(flush=True); c, _ = s.accept(); sys.stdin.read()";
    let mut command = Command::new("python3");
    command.args(["-c", line]).current_dir(sandbox.path(""));
    let mut server = Killed(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut ready = [0];
    std::io::Read::read_exact(server.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let socket = ["--socket", text(&path)];
    assert_eq!(
        scan(&sandbox, &socket).classes(),
        [(pid(&server), "foreign")]
    );
    let stream = UnixStream::connect(&path).unwrap();
    let client = idle_with(&sandbox, "client", &[], |command| {
        command.stderr(std::os::fd::OwnedFd::from(stream));
    });
    let held = scan(&sandbox, &socket);
    assert_eq!(held.holder(pid(&client))["evidence"][0]["name"], "client");
    assert_eq!(held.holder(pid(&server))["evidence"][0]["name"], "bound");
    let other = sandbox.path("other.sock");
    let _listener = UnixListener::bind(&other).unwrap();
    let inside = scan(&sandbox, &["--socket", text(&other)]);
    // This test, which is an ancestor. What another thread of it has just forked has the listener
    // too, until it executes its program.
    let own = i32::try_from(std::process::id()).unwrap();
    assert_eq!(inside.holder(own)["class"], "self");
    assert_eq!(scan(&sandbox, &["-e", "--socket", "/nowhere/x"]).code(), 1);
}

#[test]
fn a_port_has_listeners() {
    let sandbox = Sandbox::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stream = std::net::TcpStream::connect(address).unwrap();
    let _client = idle_with(&sandbox, "client", &[], |command| {
        command.stderr(std::os::fd::OwnedFd::from(stream));
    });
    let server = idle_with(&sandbox, "server", &[], |command| {
        command.stderr(std::os::fd::OwnedFd::from(listener));
    });
    let port = address.port().to_string();
    assert_eq!(
        scan(&sandbox, &["--port", &port]).classes(),
        [(pid(&server), "foreign")]
    );
    for wrong in ["0", "65536", "-1", "x", ""] {
        assert_eq!(scan(&sandbox, &["--port", wrong]).code(), 2, "{wrong}");
    }
}

#[test]
fn directories_variables_and_arguments() {
    let sandbox = Sandbox::new();
    let unique = new_id();
    let (folder, deep) = (
        sandbox.path(&unique),
        sandbox.path(&format!("{unique}/a/b")),
    );
    fs::create_dir_all(&deep).unwrap();
    let longer = sandbox.path(&format!("{unique}x"));
    fs::create_dir(&longer).unwrap();
    std::os::unix::fs::symlink(&folder, sandbox.path("link")).unwrap();
    let script = format!("/somewhere/{unique}.js");
    let inside = idle_with(&sandbox, "x", &[&script], |command| {
        command.current_dir(&deep).env("MARK", &unique);
    });
    let beside = idle_with(&sandbox, "x", &[], |command| {
        command.current_dir(&longer);
    });
    let found = |arguments: &[&str]| scan(&sandbox, arguments).classes().len();
    assert_eq!(found(&["--cwd", text(&folder)]), 0);
    // The one that looks is in that directory.
    assert_eq!(found(&["--cwd", text(&sandbox.path(""))]), 0);
    assert_eq!(found(&["--cwd", text(&deep)]), 1);
    assert_eq!(found(&["--cwd-under", text(&folder)]), 1);
    assert_eq!(found(&["--cwd-under", text(&sandbox.path("link"))]), 1);
    assert_eq!(found(&["--cwd", text(&sandbox.path("link/a/b/"))]), 1);
    assert_eq!(found(&["--env", &format!("MARK={unique}")]), 1);
    assert_eq!(found(&["--env", &format!("MARK={}", &unique[..8])]), 0);
    assert_eq!(found(&["--arg", &format!("{unique}.js")]), 1);
    assert_eq!(found(&["--arg", &script]), 1);
    assert_eq!(found(&["--arg", &unique]), 0);
    let several = ["--cwd", text(&deep), "--cwd", text(&longer)];
    assert_eq!(found(&several), 2, "any of them");
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        found(&["--cwd", text(&deep)]),
        1,
        "a directory that is gone"
    );
    assert_eq!(found(&["--cwd-under", text(&folder)]), 1);
    drop((inside, beside));
    let what = scan(&sandbox, &["--env", "SECRET=value"]);
    assert!(!String::from_utf8_lossy(&what.output.stdout).contains("value"));
}

#[test]
fn what_is_gone_below_a_link_is_found_by_it() {
    let sandbox = Sandbox::new();
    let (sub, deep) = (sandbox.path("real/sub"), sandbox.path("real/more/deep"));
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir_all(&deep).unwrap();
    std::os::unix::fs::symlink("real", sandbox.path("link")).unwrap();
    let file = File::create(deep.join("file")).unwrap();
    let in_sub = idle_with(&sandbox, "x", &[], |command| {
        command.current_dir(&sub).stderr(file);
    });
    let in_deep = idle_with(&sandbox, "x", &[], |command| {
        command.current_dir(&deep);
    });
    fs::remove_dir(&sub).unwrap();
    fs::remove_dir_all(sandbox.path("real/more")).unwrap();
    for (question, place, child) in [
        ("--cwd", "link/sub", &in_sub),
        ("--cwd", "link/sub/", &in_sub),
        ("--cwd", "link/more/deep", &in_deep),
        ("--file", "link/more/deep/file", &in_sub),
    ] {
        let held = scan(&sandbox, &[question, text(&sandbox.path(place))]);
        assert_eq!(held.classes(), [(pid(child), "foreign")], "{place}");
    }
}

#[test]
fn a_terminal() {
    let sandbox = Sandbox::new();
    let line = "import os, pty, sys, time\n\
                pid, fd = pty.fork()\n\
                if pid == 0: os.execvp('sleep', ['sleep', '600'])\n\
                tty = lambda: os.readlink(f'/proc/{pid}/fd/0')\n\
                while not tty().startswith('/dev/pts/'): time.sleep(0.01)\n\
                print(pid, tty(), flush=True)\n\
                sys.stdin.read()\nos.kill(pid, 9)\nos.waitpid(pid, 0)";
    let mut command = Command::new("python3");
    command
        .args(["-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut owner = Killed(command.spawn().unwrap());
    let mut answer = String::new();
    let stdout = owner.0.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut answer).unwrap();
    let (child, tty) = answer.trim().split_once(' ').unwrap();
    let child: i32 = child.parse().unwrap();
    sandbox.track_pid(child);
    for name in [tty, tty.strip_prefix("/dev/").unwrap()] {
        let held = scan(&sandbox, &["--tty", name]);
        assert_eq!(held.classes(), [(child, "foreign")]);
        assert_eq!(held.holders()[0]["tty"], tty.strip_prefix("/dev/").unwrap());
        assert_eq!(held.holders()[0]["foreground"], true);
    }
}

#[test]
fn what_is_no_terminal_is_said() {
    let sandbox = Sandbox::new();
    for (name, said) in [
        ("/etc/passwd", "holder-scan: /etc/passwd: not a terminal\n"),
        (
            "pts/999999",
            "holder-scan: pts/999999: nothing of that name is there\n",
        ),
        ("/dev/tty", ""),
    ] {
        let free = scan(&sandbox, &["-e", "--tty", name]);
        assert_eq!(String::from_utf8_lossy(&free.output.stderr), said);
        assert_eq!((free.verdict(), free.code()), ("free", 1));
    }
}

#[test]
fn a_path_that_is_no_text_makes_the_record_lossy() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let path = sandbox.path("").join(std::ffi::OsStr::from_bytes(b"a\xff"));
    let file = std::fs::File::create(&path).unwrap();
    let child = idle_with(&sandbox, "x", &[], |command| {
        command.stderr(file);
    });
    let mut command = sandbox.tool("holder-scan");
    command.arg("--file").arg(&path);
    let held = Scanned::of(command.output().unwrap());
    let holder = held.holder(pid(&child));
    assert_eq!(holder["lossy"], true);
    let shown = holder["evidence"][0]["path"].as_str().unwrap();
    assert!(shown.ends_with("a\u{fffd}"), "{shown}");
}
