//! Processes of another user's, with and without a `/proc` that hides them. Only root can become
//! another user to look.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use process::{Delivery, Here, Identity, Pid, Reader, Sight, Signal, Standing, Unread};

use crate::inside::{copy_program, is_root};
use crate::support::{Sub, ident, sleeper};

/// Set to the word of the process to look at.
const LOOK_AT: &str = "PROCESS_TEST_LOOK_AT";

/// Set to the number of a zombie.
const ZOMBIE: &str = "PROCESS_TEST_ZOMBIE";

/// Set to the number of a thread that leads no process.
const THREAD: &str = "PROCESS_TEST_THREAD";

/// Mounts a `/proc` in namespaces of its own, with the options `$1`, and runs the rest there.
const WITH_PROC: &str = "mount -t proc -o \"$1\" proc /proc && shift && exec \"$@\"";

/// Runs the test `name` as nobody in a pid namespace whose `/proc` has `options`, while root's
/// processes live and are dead there. That takes three runs: this one, one as root inside, and one
/// as nobody. Answers whether this is the last of them.
fn as_nobody(name: &str, options: &str) -> bool {
    const STAGE: &str = "PROCESS_TEST_STAGE";
    let again = |command: &mut Command, stage: &str, program: &Path| {
        let output = command
            .arg(program)
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(STAGE, stage)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{stage}: {said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let exe = std::env::current_exe().unwrap();
    match std::env::var(STAGE).as_deref() {
        Ok("nobody") => true,
        Ok(_) => {
            assert_eq!(Pid::own().get(), 1);
            let live = sleeper();
            let mut dead = sleeper();
            dead.end_uncollected();
            again(
                Command::new("setpriv")
                    .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
                    .env(LOOK_AT, ident(&Here::new(), live.pid()).to_string())
                    .env(ZOMBIE, dead.pid().to_string())
                    .env(THREAD, rustix::thread::gettid().to_string())
                    .current_dir("/"),
                "nobody",
                &exe,
            );
            false
        }
        Err(_) if !is_root() => {
            eprintln!("not tested: only root can become another user");
            false
        }
        Err(_) => {
            // Where nobody can read it.
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let program = folder.path().join("test");
            copy_program(&exe, &program);
            again(
                Command::new("unshare")
                    .args(["-mpf", "--kill-child", "--", "sh", "-c", WITH_PROC, "sh"])
                    .arg(options),
                "root",
                &program,
            );
            false
        }
    }
}

fn look_at() -> Identity {
    std::env::var(LOOK_AT).unwrap().parse().unwrap()
}

fn number(variable: &str) -> Pid {
    std::env::var(variable).unwrap().parse().unwrap()
}

#[test]
fn another_users_process_is_alive() {
    if !as_nobody("users::another_users_process_is_alive", "rw") {
        return;
    }
    let here = Here::new();
    let recorded = look_at();
    let Standing::Same(handle) = here.find(&recorded, None) else {
        panic!("{recorded} lives");
    };
    assert_eq!(handle.ident(), &recorded);
    assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Denied);
    assert!(!handle.has_ended());
    let mut reader = Reader::new();
    assert!(reader.pids().unwrap().contains(&recorded.pid()));
    assert_eq!(reader.uid(recorded.pid()), Ok(0));
    assert_eq!(reader.argv(recorded.pid()).unwrap()[0], b"cat");
    // What may not be read says so, and is not empty.
    assert_eq!(reader.environ(recorded.pid()), Err(Unread::Denied));
    assert_eq!(reader.cwd(recorded.pid()), Err(Unread::Denied));
    assert_eq!(reader.exe(recorded.pid()), Err(Unread::Denied));
    assert_eq!(reader.descriptors(recorded.pid()), Err(Unread::Denied));
    assert!(matches!(here.look(number(ZOMBIE)), Sight::Zombie(_)));
}

#[test]
fn a_hidden_process_is_alive() {
    if !as_nobody("users::a_hidden_process_is_alive", "hidepid=2") {
        return;
    }
    let here = Here::new();
    assert_eq!(here.distrust(), None);
    let recorded = look_at();
    let pid = recorded.pid();
    let mut reader = Reader::new();
    assert!(!reader.pids().unwrap().contains(&pid), "it is hidden");
    assert_eq!(reader.entry(pid), Err(Unread::Gone));

    let Sight::Unknown(why) = here.look(pid) else {
        panic!("{pid} is unknown");
    };
    assert!(why.contains("hides"), "{why}");
    let Identity::Linux(mut changed) = recorded.clone() else {
        panic!("an identity of Linux");
    };
    if let Some(inode) = changed.inode {
        let Standing::Same(handle) = here.find(&recorded, None) else {
            panic!("its inode tells");
        };
        assert!(!handle.has_ended());
        assert!(handle.entry().is_none());
        assert_eq!(handle.signal(Signal::SIGKILL), Delivery::Denied);
        changed.inode = Some(inode + 1);
        let standing = here.find(&Identity::Linux(changed.clone()), None);
        assert!(matches!(standing, Standing::Recycled(None)));
    }
    changed.inode = None;
    let standing = here.find(&Identity::Linux(changed.clone()), None);
    assert!(matches!(standing, Standing::Unknown(why) if why.contains("hides")));

    // A hidden thread is no process.
    assert!(matches!(here.look(number(THREAD)), Sight::Absent));

    // A hidden zombie is dead, and so is a number that nobody has.
    assert!(matches!(here.look(number(ZOMBIE)), Sight::Absent));
    changed.pid = number(ZOMBIE);
    assert_eq!(here.find(&Identity::Linux(changed), None).word(), "gone");
    assert!(matches!(
        here.look(Pid::new(Pid::MAX.into()).unwrap()),
        Sight::Absent
    ));

    // Nobody's own are as ever.
    let own = sleeper();
    assert_eq!(here.find(&ident(&here, own.pid()), None).word(), "same");
    Sub::end(own);
}
