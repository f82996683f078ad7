//! A wall clock that is set while they work, by hours: no deadline and no identity reads it.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Sandbox, record, records};

/// What is put before the C library: the wall clock jumps after it was read for the first time.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    static int read_before;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && read_before++) now->tv_sec += atol(getenv("JUMP"));
    return result;
}
"#;

#[test]
fn by_two_hours_in_either_direction() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("jumping.c"), JUMPING).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "jumping.so", "jumping.c", "-ldl"])
        .current_dir(sandbox.path(""))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let (_sleeper, ident) = sandbox.sleeper();
    let ident = ident.to_string();
    for jump in ["-7200", "7200"] {
        let run = |tool: &str, words: &[&str]| {
            let mut command = sandbox.tool(tool);
            command.args(words).env("JUMP", jump);
            command.env("LD_PRELOAD", sandbox.path("jumping.so"));
            let began = Instant::now();
            let output = command.output().unwrap();
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{tool} {jump}: {took:?}");
            (output, took)
        };
        let half = Duration::from_millis(500);
        for words in [&["--path", "never"][..], &["--cmd", "false"]] {
            let (waited, took) = run("eventwait", &[&["--timeout", "500ms"], words].concat());
            assert_eq!(waited.status.code(), Some(124), "{words:?} {jump}");
            assert!(took >= half, "{words:?} {jump}: {took:?}");
        }
        let words = ["--wait", "--timeout", "500ms", "--", "sleep", "600"];
        let (ended, took) = run("detach", &words);
        assert_eq!(ended.status.code(), Some(124), "{jump}: {ended:?}");
        assert!(took >= half, "{jump}: {took:?}");
        let (same, _) = run("pane-ident", &["verify", &ident]);
        let same = record(&same);
        assert_eq!(same["verdict"]["state"], "match", "{jump}: {same}");
        // A process that is started while the clock is wrong is the same when it is right.
        let (started, _) = run("detach", &["--", "sleep", "600"]);
        let started = record(&started);
        let ident = started["ident"].as_str().unwrap();
        sandbox.track(ident);
        let ended = sandbox.tool("reap").arg(ident).output().unwrap();
        assert_eq!(
            records(&ended)[0]["reap"]["outcome"],
            "terminated",
            "{jump}"
        );
    }
    // The clock that they print did jump.
    let hour = |jump: &str| {
        let words = [
            "--path",
            "/",
            "--path",
            "/tmp",
            "--count",
            "2",
            "--timeout",
            "9",
        ];
        let mut command = sandbox.tool("eventwait");
        command.args(words).env("JUMP", jump);
        command.env("LD_PRELOAD", sandbox.path("jumping.so"));
        let events = records(&command.output().unwrap());
        events[1]["at"].as_str().unwrap()[11..13].to_owned()
    };
    assert_ne!(hour("0"), hour("-7200"));
}
