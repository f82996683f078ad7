//! What a look is worth: hidden processes, mounts that hang, and a table that changes.

use std::time::{Duration, Instant};

use super::*;
use crate::support::{as_user, bin, rounds, said, unused_user};

#[test]
fn a_users_own_processes_are_a_complete_look() {
    let sandbox = Sandbox::new();
    let id = new_id();
    for question in [["--session-id", id.as_str()], ["--cwd", "/nowhere"]] {
        let mut command = sandbox.tool_as_user("holder-scan");
        let free = Scanned::of(command.args(question).output().unwrap());
        assert_eq!(
            (free.verdict(), free.code()),
            ("free", 0),
            "{:?}",
            free.output
        );
        assert_eq!(free.scan()["complete"], true);
    }
    if nix::unistd::geteuid().is_root() {
        let mut command = sandbox.tool_as_user("holder-scan");
        command.args(["--cwd", "/nowhere", "--all-users", "-e"]);
        let unknown = Scanned::of(command.output().unwrap());
        assert_eq!((unknown.verdict(), unknown.code()), ("unknown", 3));
        assert!(unknown.scan()["others_unseen"].as_u64().unwrap() > 0);
    }
}

#[test]
fn what_cannot_be_read_of_ones_own_is_not_nobody() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    // A user of this test's own, with a process that is not dumpable.
    let user = unused_user();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = as_user(user);
        command
            .arg(program)
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    };
    let id = new_id();
    let line =
        "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print(flush=True); sys.stdin.read()";
    let mut hidden = Killed(
        run("/usr/bin/env", &["python3", "-c", line])
            .spawn()
            .unwrap(),
    );
    let mut ready = [0];
    std::io::Read::read_exact(hidden.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    std::fs::set_permissions(
        sandbox.path(""),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let ask = |question: [&str; 2]| {
        let mut command = run(text(bin("holder-scan")), &["-e"]);
        let output = command
            .args(question)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let scanned = Scanned::of(output);
        (
            scanned.code(),
            scanned.scan()["unreadable"].as_u64().unwrap(),
        )
    };
    assert_eq!(ask(["--cwd", "/nowhere"]), (3, 1));
    assert_eq!(
        ask(["--session-id", &id]),
        (1, 0),
        "arguments are for everybody"
    );
}

#[test]
fn processes_that_do_not_show_up_are_not_nobody() {
    let id = new_id();
    // In a pid namespace of its own, so that nobody else's /proc is changed.
    let line = format!(
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 \
         --clear-groups {} -e --session-id {id}",
        bin("holder-scan").display()
    );
    let mut command = Command::new("unshare");
    command.args(["-mpf", "--kill-child"]);
    if !nix::unistd::geteuid().is_root() {
        // Only one user can be had in a user namespace here.
        return;
    }
    let output = command
        .args(["sh", "-c", &line])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let unknown = Scanned::of(output);
    assert_eq!(
        (unknown.verdict(), unknown.code()),
        ("unknown", 3),
        "{:?}",
        unknown.output
    );
    assert_eq!(unknown.scan()["complete"], false);
    assert!(said(&unknown.output).contains("hidepid"));
}

#[test]
fn a_foreign_proc_is_not_believed() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let mut command = Command::new("unshare");
    command
        .args(["-Urpf", "--kill-child"])
        .arg(bin("holder-scan"));
    let output = command
        .args(["-e", "--session-id", &id])
        .current_dir(sandbox.path(""))
        .output();
    let unknown = Scanned::of(output.unwrap());
    assert_eq!(
        (unknown.verdict(), unknown.code()),
        ("unknown", 3),
        "{:?}",
        unknown.output
    );
}

#[test]
fn a_dead_mount_holds_nothing_up() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let id = new_id();
    // A file system in user space whose server never answers, in a mount namespace of its own. A
    // process inside has its working directory there, as far as the kernel knows.
    let line = "import ctypes, os, subprocess, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        point = sys.argv[1]\n\
        fd = os.open('/dev/fuse', os.O_RDWR)\n\
        options = f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()\n\
        if libc.mount(b'dead', point.encode(), b'fuse', 0, options) != 0:\n\
        \x20   sys.exit(f'mount: {os.strerror(ctypes.get_errno())}')\n\
        path = os.open(point, os.O_PATH)\n\
        child = subprocess.Popen(['sleep', '600'], pass_fds=[path])\n\
        codes = []\n\
        for question in (['--session-id', sys.argv[3]], ['--file', '/etc/passwd'], ['--cwd', '/nowhere']):\n\
        \x20   scan = subprocess.run([sys.argv[2], '-e', '--timeout', '20s'] + question, stdout=subprocess.DEVNULL)\n\
        \x20   codes.append(scan.returncode)\n\
        hung = subprocess.run([sys.argv[2], '-e', '--timeout', '300ms', '--file', point + '/x'], capture_output=True)\n\
        child.kill()\n\
        child.wait()\n\
        print(codes, hung.returncode, b'\"complete\":false' in hung.stdout, flush=True)\n\
        os._exit(0)\n";
    let point = sandbox.path("mount");
    std::fs::create_dir(&point).unwrap();
    let started = Instant::now();
    let mut command = Command::new("unshare");
    command
        .args(["-m", "--", "python3", "-c", line, text(&point)])
        .arg(bin("holder-scan"))
        .arg(&id);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        answer.starts_with("[1, ") && answer.trim().ends_with(", 1] 3 True"),
        "{output:?}"
    );
}

#[test]
fn a_holder_is_never_missed_while_thousands_come_and_go() {
    let sandbox = Sandbox::new();
    let id = new_id();
    let agent = idle(&sandbox, "claude", &["--session-id", &id]);
    // Each of them is two programs, one after the other, of which none is a holder.
    let storm = "i=0; while [ $i -lt 5000 ]; do sh -c 'exec -a \"other --session-id\" true' & \
                 i=$((i+1)); [ $((i%50)) -eq 0 ] && wait; done; wait";
    let mut storms: Vec<Killed> = (0..rounds(2))
        .map(|_| {
            let mut command = Command::new("bash");
            command
                .args(["-c", storm])
                .stdin(Stdio::null())
                .stderr(Stdio::null());
            Killed(command.spawn().unwrap())
        })
        .collect();
    let mut scans = 0;
    while storms
        .iter_mut()
        .any(|storm| storm.0.try_wait().unwrap().is_none())
    {
        let held = scan(&sandbox, &["--session-id", &id, "--mentions"]);
        assert_eq!(
            held.classes(),
            [(pid(&agent), "foreign")],
            "{:?}",
            held.output
        );
        scans += 1;
    }
    assert!(scans > 0);
}

#[test]
fn records_are_of_one_program() {
    let sandbox = Sandbox::new();
    let unique = new_id();
    // One process that becomes another program again and again.
    let script = sandbox.path("spin.sh");
    std::fs::write(
        &script,
        "case $1 in a) exec bash \"$0\" b \"$2\" b;; *) exec sh \"$0\" a \"$2\" a;; esac\n",
    )
    .unwrap();
    let mut command = Command::new("sh");
    command
        .arg(&script)
        .args(["a", &unique, "a"])
        .stdin(Stdio::null());
    let spinning = Killed(command.spawn().unwrap());
    let mut seen = 0;
    for _ in 0..rounds(40) {
        let held = scan(&sandbox, &["--arg", &unique]);
        for holder in held.holders() {
            let argv: Vec<&str> = holder["argv"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            assert_eq!(argv[2], argv[4], "half of one, half of the other: {holder}");
            let shell = if argv[2] == "a" { "sh" } else { "bash" };
            assert_eq!(argv[0], shell, "{holder}");
            seen += 1;
        }
    }
    drop(spinning);
    assert!(seen > 0, "it was between two programs at every look");
}

#[test]
fn the_output_is_written_or_failed() {
    let sandbox = Sandbox::new();
    let full = sandbox
        .bash("holder-scan --dump > /dev/full")
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(125));
    let early = sandbox
        .bash("holder-scan --dump | true; echo ${PIPESTATUS[0]}")
        .output()
        .unwrap();
    let status = String::from_utf8(early.stdout).unwrap();
    assert!(["141", "0"].contains(&status.trim()), "{status}");
}
