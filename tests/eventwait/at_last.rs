//! The last bound of all: the wait's own end a moment after its deadline, whatever it is stuck in.

use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pipe::PIPE_BUF;

use crate::bounds::{full_pipe, left_in};
use crate::stage::{command, ms, start};
use crate::support::Sandbox;

#[test]
fn a_message_that_nobody_reads() {
    let sandbox = Sandbox::new();
    // It does not fit into what room there is, so that writing it never ends.
    let name = "x".repeat(2 * PIPE_BUF);
    let (mut reader, writer) = full_pipe();
    reader.read_exact(&mut [0; PIPE_BUF]).unwrap();
    let mut wait = command(&sandbox, &["--follow", &name, "--timeout", "0.5"]);
    wait.stderr(writer);
    let waited = start(wait).finish();
    assert_eq!(waited.status.code(), Some(124));
    waited.not_before(ms(500)).gone_at(ms(500));
    assert!(left_in(reader).starts_with("eventwait: cannot follow xx"));
}

#[test]
fn a_mount_that_does_not_answer() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("mount")).unwrap();
    // A file system in user space whose server never answers, in a mount namespace of its own. What
    // waits for it is woken by no signal but one that ends it.
    let line = "import ctypes, os, subprocess, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        fd = os.open('/dev/fuse', os.O_RDWR)\n\
        options = f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()\n\
        if libc.mount(b'dead', b'mount', b'fuse', 0, options) != 0:\n\
        \x20   sys.exit(f'mount: {os.strerror(ctypes.get_errno())}')\n\
        for source in '--path', '--follow':\n\
        \x20   wait = [sys.argv[1], source, 'mount/x', '--timeout', '0.5']\n\
        \x20   print(subprocess.run(wait, timeout=20).returncode, flush=True)\n\
        os._exit(0)\n";
    let output = Command::new("unshare")
        .args(["-m", "--", "python3", "-c", line])
        .arg(env!("CARGO_BIN_EXE_eventwait"))
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "124\n124\n", "{output:?}");
}
