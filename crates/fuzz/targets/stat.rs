//! The line of `/proc/PID/stat`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::{Start, parse_stat};

fuzz_target!(|line: &[u8]| {
    let Some(entry) = parse_stat(line) else {
        return;
    };
    // The kernel's way of printing what was read is read as the same.
    let (Start::Ticks(ticks), flags) = (entry.start, u32::from(entry.kernel_thread) << 21) else {
        panic!("another clock");
    };
    let (state, tty) = (entry.state.0, entry.tty as u32 as i32);
    let mut printed = format!("{} (", entry.pid).into_bytes();
    printed.extend(&entry.name);
    let rest = format!(
        ") {state} {} {} {} {tty} {} {flags} 0 0 0 0 0 0 0 0 20 0 {} 0 {ticks} 0 0\n",
        entry.ppid, entry.pgid, entry.sid, entry.tpgid, entry.threads
    );
    printed.extend(rest.into_bytes());
    assert_eq!(parse_stat(&printed), Some(entry));
});
