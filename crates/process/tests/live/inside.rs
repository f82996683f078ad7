//! Other surroundings to look from: namespaces, a system call filter, another user.

use std::path::Path;
use std::process::{Command, Stdio};

/// A pid namespace of one's own with its `/proc`, and the right to say which pid comes next.
pub const PRIVATE: [&str; 5] = ["unshare", "-Urpf", "--kill-child", "--mount-proc", "--"];

/// Set to the name of the test that runs inside.
const INSIDE: &str = "PROCESS_TEST_INSIDE";

/// What the first run told.
const TOLD: &str = "PROCESS_TEST_TOLD";

/// What the first run of this test told the second.
pub fn told() -> String {
    std::env::var(TOLD).unwrap()
}

/// Whether this is the second run of the test `name`, inside what `launcher` sets up. In the first
/// run it makes that second one, and has it pass.
pub fn within(name: &str, launcher: &[&str]) -> bool {
    within_told(name, launcher, "")
}

/// Like [`within`], and the first run tells the second something.
pub fn within_told(name: &str, launcher: &[&str], tell: &str) -> bool {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        return true;
    }
    if !works(launcher) {
        return false;
    }
    let exe = std::env::current_exe().unwrap();
    let mut words = launcher.iter().map(AsRef::as_ref).chain([exe.as_os_str()]);
    let output = Command::new(words.next().unwrap())
        .args(words)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .env(TOLD, tell)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "inside {launcher:?}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Whether this system lets this user set up what `launcher` does. Root and CI have to be able to.
pub fn works(launcher: &[&str]) -> bool {
    let Some((program, args)) = launcher.split_first() else {
        return true;
    };
    let tried = Command::new(program).args(args).arg("true").output();
    match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => eprint!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("{program}: {error}"),
    }
    let must = is_root() || std::env::var_os("CI").is_some();
    assert!(!must, "{launcher:?} does not work here");
    eprintln!("not tested: {launcher:?} does not work for this user");
    false
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Copies a program so that all may execute it. Another process does it: were the copy open for
/// writing here, a child that another test starts just then would hold it open for a moment too,
/// and a program that is being written cannot be executed.
pub fn copy_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let status = install.args(["-m", "755", "--"]).args([from, to]).status();
    assert!(status.unwrap().success());
}
