//! `--path` and `--connect`.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::json;

use crate::stage::{AFTER, command, later, ms, start, wait};
use crate::support::{Sandbox, until};

#[test]
fn what_is_true_already_is_an_answer() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("p");
    type Make = fn(&std::path::Path);
    let kinds: [Make; 5] = [
        |path| fs::write(path, "").unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| drop(UnixListener::bind(path).unwrap()),
        |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        |path| std::os::unix::fs::symlink("/", path).unwrap(),
    ];
    for make in kinds {
        wait(&sandbox, &["--path", "p", "--timeout", "0"]).ended(124, "deadline");
        let gone = wait(&sandbox, &["--path", "p", "--gone", "--timeout", "0"]);
        gone.ended(0, "matched").gone_at(ms(0));
        make(&path);
        wait(&sandbox, &["--path", "p", "--timeout", "0"]).ended(0, "matched");
        wait(&sandbox, &["--path", "p", "--gone", "--timeout", "0"]).ended(124, "deadline");
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&path);
    }
}

#[test]
fn the_event_has_all_its_keys_in_order() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("p"), "").unwrap();
    let waited = wait(&sandbox, &["--path", "p", "--timeout", "9"]);
    let (head, tail) = waited.stdout.split_once(r#","at":"2"#).unwrap();
    assert_eq!(
        head,
        r#"{"v":1,"type":"event","source":"path","path":"p","state":"exists""#
    );
    assert!(
        tail.ends_with("Z\",\"lossy\":false,\"argv_cut\":false}\n"),
        "{tail}"
    );
    let (head, tail) = waited.stderr.split_once(r#""took_ms":"#).unwrap();
    assert_eq!(
        head,
        r#"{"v":1,"type":"wait","end":"matched","matched":1,"seen":1,"not_json":0,"dropped":0,"too_long":0,"cut":false,"offset":null,"#
    );
    assert!(
        tail.trim_end()
            .strip_suffix('}')
            .unwrap()
            .parse::<u64>()
            .is_ok()
    );
}

#[test]
fn every_step_of_the_way_may_come_later() {
    let sandbox = Sandbox::new();
    let (a, b) = (sandbox.path("a"), sandbox.path("a/b/c"));
    let waiting = start(command(&sandbox, &["--path", "a/b/c", "--timeout", "20"]));
    std::thread::sleep(ms(50));
    fs::create_dir(&a).unwrap();
    std::thread::sleep(ms(50));
    fs::create_dir(a.join("b")).unwrap();
    std::thread::sleep(ms(50));
    fs::write(&b, "").unwrap();
    waiting.finish().ended(0, "matched").gone_at(ms(150));
}

#[test]
fn the_way_may_be_moved_and_lead_through_links() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.path(name);
    // The folder is replaced by another one with the file in it.
    fs::create_dir_all(at("d/e")).unwrap();
    fs::create_dir_all(at("new/e")).unwrap();
    fs::write(at("new/e/f"), "").unwrap();
    let waiting = start(command(&sandbox, &["--path", "d/e/f", "--timeout", "20"]));
    std::thread::sleep(ms(50));
    fs::rename(at("d"), at("old")).unwrap();
    fs::rename(at("new"), at("d")).unwrap();
    waiting.finish().ended(0, "matched").gone_at(ms(50));
    // What the link leads to appears in another folder.
    fs::create_dir(at("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere/target", at("link")).unwrap();
    let waiting = start(command(&sandbox, &["--path", "link", "--timeout", "20"]));
    std::thread::sleep(ms(50));
    fs::write(at("elsewhere/target"), "").unwrap();
    waiting.finish().ended(0, "matched").gone_at(ms(50));
    let waiting = start(command(
        &sandbox,
        &["--path", "link", "--gone", "--timeout", "20"],
    ));
    std::thread::sleep(ms(50));
    fs::remove_file(at("elsewhere/target")).unwrap();
    waiting.finish().ended(0, "matched").gone_at(ms(50));
}

#[test]
fn of_several_any_is_enough_or_as_many_as_wanted_or_all() {
    let sandbox = Sandbox::new();
    for name in ["b", "c"] {
        fs::write(sandbox.path(name), "").unwrap();
    }
    let paths = ["--path", "a", "--path", "b", "--path", "c"];
    let run = |more: &[&str]| wait(&sandbox, &[&paths[..], more].concat());
    let waited = run(&["--timeout", "9"]);
    assert_eq!(waited.ended(0, "matched").records()[0]["path"], "b");
    assert_eq!(waited.records().len(), 1);
    let waited = run(&["--count", "2", "--timeout", "9"]);
    assert_eq!(waited.ended(0, "matched").records().len(), 2);
    run(&["--count", "3", "--timeout", "0.2"]).ended(124, "deadline");
    let waited = run(&["--all", "--timeout", "0.2"]);
    assert_eq!(waited.ended(0, "deadline").records().len(), 2);
    let path = sandbox.path("a");
    let maker = later(50, move || fs::write(path, "").unwrap());
    let waited = run(&["--all", "--timeout", "20"]);
    assert_eq!(waited.ended(0, "matched").records()[2]["path"], "a");
    maker.join().unwrap();
}

#[test]
fn where_the_kernel_gives_no_notice_it_is_looked_for() {
    let sandbox = Sandbox::new();
    let (mut sleeper, _) = sandbox.sleeper();
    let path = format!("/proc/{}/task", sleeper.0.id());
    let waiting = start(command(
        &sandbox,
        &["--path", &path, "--gone", "--timeout", "20"],
    ));
    std::thread::sleep(ms(100));
    sleeper.0.kill().unwrap();
    sleeper.0.wait().unwrap();
    let ended = std::time::Instant::now();
    let waited = waiting.finish();
    waited.ended(0, "matched").gone_after(ended, ms(50) + AFTER);
}

#[test]
fn without_a_watch_it_is_looked_for_and_said_once() {
    let sandbox = Sandbox::new();
    let tool = env!("CARGO_BIN_EXE_eventwait");
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && \
         exec {tool} --summary --path p --timeout 20 --ack-line armed"
    );
    let mut waiting = std::process::Command::new("unshare")
        .args(["-Ur", "bash", "-c", &script])
        .current_dir(sandbox.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut armed = [0; 6];
    let stdout = waiting.stdout.as_mut().unwrap();
    std::io::Read::read_exact(stdout, &mut armed).unwrap();
    fs::write(sandbox.path("p"), "").unwrap();
    let output = waiting.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("no notice of changes").count(), 1, "{said}");
}

/// Runs a script of bash in a user namespace of its own, which has limits of its own.
#[cfg(target_os = "linux")]
#[track_caller]
fn succeeds_with_limits_of_its_own(sandbox: &Sandbox, script: &str) {
    let output = std::process::Command::new("timeout")
        .args(["60", "unshare", "-Ur", "bash", "-c", script])
        .current_dir(sandbox.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_circle_of_links_leads_to_nothing() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink("b", sandbox.path("a")).unwrap();
    std::os::unix::fs::symlink("a", sandbox.path("b")).unwrap();
    wait(&sandbox, &["--path", "a", "--timeout", "0.2"]).ended(124, "deadline");
    wait(&sandbox, &["--path", "a", "--gone", "--timeout", "20"]).ended(0, "matched");
}

#[cfg(target_os = "linux")]
#[test]
fn a_watch_is_asked_for_until_there_is_one() {
    let sandbox = Sandbox::new();
    let tool = env!("CARGO_BIN_EXE_eventwait");
    let script = format!(
        "limit=/proc/sys/user/max_inotify_instances
         echo 0 > $limit
         {tool} --path p --timeout 20 --ack-line armed >said &
         until grep -q armed said; do sleep 0.01; done
         ls -l /proc/$!/fd | grep inotify && exit 9
         echo 1 > $limit
         until ls -l /proc/$!/fd | grep inotify; do sleep 0.01; done
         touch p
         wait $!"
    );
    succeeds_with_limits_of_its_own(&sandbox, &script);
}

#[cfg(target_os = "linux")]
#[test]
fn what_need_not_be_waited_for_needs_no_watch() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("there"), "a line\n").unwrap();
    let tool = env!("CARGO_BIN_EXE_eventwait");
    // Who asked for a watch would say that there is none.
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances
         {tool} --path there --timeout 20 2>>said &&
         {tool} --path there --path never --timeout 20 2>>said &&
         {tool} --follow there --from start --timeout 0 2>>said || exit
         {tool} --path never --timeout 0 2>>said
         [ $? = 124 ] && [ ! -s said ]"
    );
    succeeds_with_limits_of_its_own(&sandbox, &script);
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_gets_every_watch_back() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("log"), "a line\n").unwrap();
    let tool = env!("CARGO_BIN_EXE_eventwait");
    // A wait that has ended may still be counted for a moment. One that is never given back fails
    // the third wait, and all that come after it.
    let script = format!(
        "echo 2 > /proc/sys/user/max_inotify_instances
         for i in {{1..20}}; do
             until said=$({tool} --follow log --from start --timeout 20 2>&1) && [ \"$said\" = 'a line' ]
             do :; done
         done"
    );
    succeeds_with_limits_of_its_own(&sandbox, &script);
}

#[test]
fn bytes_that_are_no_text_are_shown_and_matched_as_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"p\xff");
    let mut wait = command(&sandbox, &["--timeout", "9", "--path"]);
    wait.arg(name);
    fs::write(sandbox.path("").join(name), "").unwrap();
    let waited = start(wait).finish();
    let record = &waited.ended(0, "matched").records()[0];
    assert_eq!(record["path"], "p\u{fffd}");
    assert_eq!(record["lossy"], true);
}

#[test]
fn only_an_answer_counts_as_connected() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("s");
    let words = ["--connect", "s", "--timeout", "0.3"];
    wait(&sandbox, &words)
        .ended(124, "deadline")
        .gone_at(ms(300));
    // A file that a dead server has left.
    drop(UnixListener::bind(&path).unwrap());
    wait(&sandbox, &words)
        .ended(124, "deadline")
        .gone_at(ms(300));
    fs::remove_file(&path).unwrap();
    let waiting = start(command(&sandbox, &["--connect", "s", "--timeout", "20"]));
    std::thread::sleep(ms(100));
    let listener = UnixListener::bind(&path).unwrap();
    let waited = waiting.finish();
    waited.ended(0, "matched").gone_at(ms(150));
    let record = &waited.records()[0];
    assert_eq!(record["source"], "connect");
    assert_eq!(
        (&record["path"], &record["state"]),
        (&json!("s"), &json!("answers"))
    );
    drop(listener);
}

#[test]
fn paths_that_do_not_fit_into_an_address_are_reached_all_the_same() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path(&"long".repeat(40));
    fs::create_dir(&folder).unwrap();
    // A server cannot bind so long a path either, except from within.
    let script = "import socket, sys, time, os\n\
        os.chdir(sys.argv[1])\n\
        s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(9); time.sleep(600)";
    let server = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(&folder)
        .spawn()
        .unwrap();
    let _server = crate::support::Killed(server);
    let path = folder.join("s");
    until("the server listens", || path.exists());
    let path = path.to_str().unwrap();
    assert!(path.len() > 108);
    wait(&sandbox, &["--connect", path, "--timeout", "20"]).ended(0, "matched");
    wait(&sandbox, &["--socket", path, "--timeout", "0.3"]).ended(124, "deadline");
}

#[test]
fn a_path_is_never_shortened_to_another() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("");
    let room = 107 - folder.as_os_str().len();
    let short = "x".repeat(room);
    let listener = UnixListener::bind(folder.join(&short)).unwrap();
    let long = folder.join(short.clone() + "y");
    let long = long.to_str().unwrap();
    wait(&sandbox, &["--connect", long, "--timeout", "0.2"]).ended(124, "deadline");
    wait(&sandbox, &["--socket", long, "--timeout", "0.2"]).ended(3, "unavailable");
    listener.set_nonblocking(true).unwrap();
    assert!(
        listener.accept().is_err(),
        "somebody connected to the prefix"
    );
    let short = folder.join(short);
    wait(
        &sandbox,
        &["--connect", short.to_str().unwrap(), "--timeout", "9"],
    )
    .ended(0, "matched");
}

#[test]
fn a_process_whose_end_makes_waiting_pointless() {
    let sandbox = Sandbox::new();
    let (mut sleeper, ident) = sandbox.sleeper();
    let ident = ident.to_string();
    let words = ["--path", "never", "--pid", &ident, "--timeout", "20"];
    let waiting = start(command(&sandbox, &words));
    std::thread::sleep(ms(50));
    sleeper.0.kill().unwrap();
    waiting.finish().ended(1, "process_ended").gone_at(ms(50));
    // It is not asked for what happens only after its end, but for what it did in its life.
    wait(&sandbox, &words)
        .ended(1, "process_ended")
        .gone_at(Duration::ZERO);
    fs::write(sandbox.path("never"), "").unwrap();
    wait(&sandbox, &words).ended(0, "matched");
    let elsewhere = "linux:f7473ef0-6a4b-4a8f-abe8-72c5ed7385cf:1:77:1:0";
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let elsewhere = elsewhere.replace("f7473ef0-6a4b-4a8f-abe8-72c5ed7385cf", boot.trim());
    let words = ["--path", "never", "--pid", &elsewhere, "--timeout", "20"];
    wait(&sandbox, &words)
        .ended(3, "unavailable")
        .gone_at(Duration::ZERO);
}
