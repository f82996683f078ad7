//! A command that cannot be executed is no silent success.

use std::os::unix::fs::PermissionsExt;

use crate::support::*;

/// Runs `detach` with these words; gives the exit status and what was said.
fn fails(sandbox: &Sandbox, words: &[&str]) -> (i32, String) {
    let output = sandbox.tool("detach").args(words).output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code().unwrap(), said(&output))
}

#[test]
fn each_kind_of_failure_has_its_status_and_names_the_file() {
    let sandbox = Sandbox::new();
    sandbox.script("no-interpreter", "#!/no/such/interpreter\n");
    sandbox.script("no-format", "echo this is no program\n");
    std::fs::write(sandbox.path("no-permission"), "#!/bin/sh\n").unwrap();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let table = [
        ("no-such-command-anywhere", 127),
        ("./no-such-file", 127),
        ("./no-permission/inside", 127),
        ("", 127),
        ("./no-interpreter", 126),
        ("./no-format", 126),
        ("./no-permission", 126),
        ("./folder", 126),
    ];
    for (command, status) in table {
        let (code, message) = fails(&sandbox, &[command]);
        assert_eq!(code, status, "{command}: {message}");
        assert!(message.starts_with("detach: "), "{message}");
        assert!(message.contains(command), "{message}");
        // The same in the foreground.
        assert_eq!(fails(&sandbox, &["--wait", command]).0, status, "{command}");
    }
    let (code, message) = fails(&sandbox, &["--chdir", "nowhere", "true"]);
    assert_eq!(code, 125, "{message}");
    assert!(message.contains("nowhere"), "{message}");
}

#[test]
fn path_is_searched_as_the_shells_do() {
    let sandbox = Sandbox::new();
    for folder in ["a", "b", "c"] {
        std::fs::create_dir(sandbox.path(folder)).unwrap();
    }
    // Not executable in the first folder, so the one in the second is it.
    std::fs::write(sandbox.path("a/tool"), "#!/bin/sh\n").unwrap();
    sandbox.script("b/tool", "#!/bin/sh\necho b >found\n");
    sandbox.script("tool", "#!/bin/sh\necho here >found\n");
    let run = |path: &str| {
        let output = sandbox
            .tool("detach")
            .args(["--wait", "tool"])
            .env("PATH", path)
            .output();
        output.unwrap().status.code()
    };
    let found = || std::fs::read_to_string(sandbox.path("found")).unwrap();
    assert_eq!(run("a:b"), Some(0));
    assert_eq!(found(), "b\n");
    assert_eq!(run("c::b"), Some(0));
    assert_eq!(found(), "here\n", "an empty entry is the working directory");
    assert_eq!(run("a:c"), Some(126));
    assert_eq!(run("c"), Some(127));
    assert_eq!(run("tool:nowhere"), Some(127));
}

#[test]
fn a_relative_command_is_looked_for_in_the_new_directory() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("sub")).unwrap();
    sandbox.script("sub/tool", "#!/bin/sh\npwd >where\n");
    let output = sandbox
        .tool("detach")
        .args(["--chdir", "sub", "./tool"])
        .output()
        .unwrap();
    let sub = sandbox.path("sub").canonicalize().unwrap();
    assert_eq!(record(&output)["cwd"], sub.to_str().unwrap());
    until("it has run there", || sandbox.path("sub/where").exists());
}

#[test]
fn an_unusual_command_line_is_passed_on_to_the_byte() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let words: [&[u8]; 6] = [b"", b"a b", b"*", b"\xff\xfe", b"--wait", b"new\nline"];
    let output = sandbox
        .tool("detach")
        .args([
            "--wait",
            "--",
            "sh",
            "-c",
            "printf '%s\\0' \"$@\" >args",
            "sh",
        ])
        .args(words.map(OsStr::from_bytes))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut expected = words.join(&0);
    expected.push(0);
    assert_eq!(std::fs::read(sandbox.path("args")).unwrap(), expected);
}

#[test]
fn a_folder_that_may_not_be_searched_has_no_commands() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("closed")).unwrap();
    sandbox.script("closed/tool", "#!/bin/sh\n");
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(sandbox.path("closed"), closed).unwrap();
    let mut command = sandbox.tool_as_user("detach");
    let output = command.arg("tool").env("PATH", "closed").output().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("closed"), open).unwrap();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
}
