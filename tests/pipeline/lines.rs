//! Lines that are no records, long lines, and how much memory they take.

use crate::stage::{FILTERS, READERS, idle, run};
use crate::support::Sandbox;

/// The longest line that is taken: 16 MiB.
const LONGEST: usize = 16 << 20;

/// A few of the ways in which a line can be no JSON object.
const BAD: &[&[u8]] = &[
    b"not json",
    b"[1]",
    b"\"text\"",
    b"123",
    b"null",
    b"",
    b" \t\r",
    b"{\"cut\":1",
    b"{\"cut\":\"",
    b"{\"a\":1}}",
    b"{\"a\":1} {\"b\":2}",
    b"{'a':1}",
    b"{\"a\":01}",
    b"{\"a\":tru}",
    b"{\"a\":1,}",
    b"{\"a\":\"\xff\"}",
    b"\xef\xbb\xbf{\"a\":1}",
    b"{\"a\":\"\x01\"}",
    b"\x1b[31m{\"a\":1}",
    b"\0",
];

#[test]
fn a_line_that_is_no_record_spoils_no_other() {
    let sandbox = Sandbox::new();
    let mut input = Vec::new();
    for (at, bad) in BAD.iter().enumerate() {
        input.extend_from_slice(format!("{{\"good\":{at}}}\n").as_bytes());
        input.extend_from_slice(bad);
        input.push(b'\n');
    }
    for job in FILTERS {
        let ran = run(&sandbox, job, &input);
        assert_eq!(ran.code, Some(65), "{job:?}: {ran:?}");
        let out = ran.lines();
        let good: Vec<_> = (0..BAD.len())
            .map(|at| format!("{{\"good\":{at}}}"))
            .collect();
        assert_eq!(out[..BAD.len()], good, "{job:?}");
        let said = ran.err();
        let said: Vec<_> = said.lines().collect();
        assert_eq!(said.len(), BAD.len(), "{job:?}: {said:#?}");
        for (at, message) in said.iter().enumerate() {
            let number = format!(": standard input: line {}: ", 2 * at + 2);
            assert!(
                message.starts_with(&format!("{}{number}", job.0)),
                "{job:?}: {message}"
            );
            assert!(!message.contains(char::is_control), "{job:?}: {message:?}");
        }
    }
}

/// Whoever reads records has nothing but bad ones here, and says so without a crash.
#[test]
fn nothing_but_lines_that_are_no_records() {
    let sandbox = Sandbox::new();
    for (tool, words) in READERS {
        for input in [&b"{\"cut\":"[..], b"\xff\xfe\n", b"[]\n[]\n", b"\n"] {
            let ran = run(&sandbox, (tool, words), input);
            // A decision that is not there cannot be told; a source of lines has ended.
            let expected: &[i32] = match (tool, words[..].first()) {
                ("eventwait", _) => &[1],
                ("resume-id", _) => &[3, 65],
                _ => &[65],
            };
            assert!(
                ran.code.is_some_and(|code| expected.contains(&code)),
                "{tool} {words:?} {input:?}: {ran:?}"
            );
            assert!(
                tool == "eventwait" || ran.err().starts_with(&format!("{tool}: ")),
                "{tool} {words:?}: {ran:?}"
            );
        }
    }
}

/// A record of exactly `length` bytes.
fn record_of(length: usize) -> Vec<u8> {
    let mut line = b"{\"x\":\"".to_vec();
    line.resize(length - 2, b'y');
    line.extend_from_slice(b"\"}");
    line
}

#[test]
fn a_line_of_16_mib_passes_and_a_longer_one_is_an_error() {
    let sandbox = Sandbox::new();
    for job in FILTERS {
        let mut input = record_of(LONGEST);
        input.extend_from_slice(b"\n{\"next\":1}\n");
        let ran = run(&sandbox, job, &input);
        assert_eq!(ran.code, idle(job.0), "{job:?}: {}", ran.err());
        assert!(ran.stdout.starts_with(&input), "{job:?}");

        let mut input = record_of(LONGEST + 1);
        input.extend_from_slice(b"\n{\"next\":1}\n");
        let ran = run(&sandbox, job, &input);
        assert_eq!(ran.code, Some(65), "{job:?}: {}", ran.err());
        assert!(ran.stdout.starts_with(b"{\"next\":1}\n"), "{job:?}");
        assert!(
            ran.err().contains("line 1: longer than 16777216 bytes"),
            "{}",
            ran.err()
        );
    }
}

/// Brackets within brackets are no way to the end of the stack.
#[test]
fn however_deep() {
    let sandbox = Sandbox::new();
    let depth = 200_000;
    let line = format!("{{\"a\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth));
    let forms: [&[&str]; 3] = [&[], &["-o", "a.0.0,b"], &["-H"]];
    for (tool, words) in FILTERS {
        for form in forms {
            let ran = run(&sandbox, (tool, &[words, form].concat()), line.as_bytes());
            assert_eq!(ran.signal, None, "{tool} {form:?}");
            assert!(
                matches!(ran.code, Some(0 | 1 | 65)),
                "{tool} {form:?}: {:?}",
                ran.code
            );
        }
    }
    // Where it stands in a key that is looked into.
    let keys = [
        ("decision", "stale"),
        ("decision", "argv"),
        ("exit", "stranded"),
        ("holder", "evidence"),
        ("scan", "what"),
        ("process_entry", "argv"),
    ];
    for (kind, key) in keys {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let line = format!("{{\"type\":\"{kind}\",\"{key}\":{deep}}}\n");
        for job in READERS {
            let ran = run(&sandbox, job, line.as_bytes());
            assert_eq!(ran.signal, None, "{job:?} {kind} {key}");
            // The status of a panic.
            assert_ne!(ran.code, Some(101), "{job:?} {kind} {key}");
        }
    }
}

/// The most memory that a process has had, in bytes.
#[cfg(target_os = "linux")]
fn peak(pid: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// A line without an end takes as much memory as the longest line that is allowed, not more.
#[cfg(target_os = "linux")]
#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    use std::io::Write as _;
    use std::process::Stdio;

    use crate::support::{state, until};

    let sandbox = Sandbox::new();
    let streams = [
        ("reap", &[][..]),
        ("pane-ident", &["verify", "--timeout", "5m"]),
        ("eventwait", &["--stdin", "--all", "--timeout", "5m"]),
    ];
    for (tool, words) in streams {
        let mut child = sandbox
            .tool(tool)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let part = vec![b'y'; 1 << 20];
        for _ in 0..128 {
            stdin.write_all(&part).unwrap();
        }
        stdin.write_all(b"\n{\"next\":1}\n").unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        until("all of it is read", || {
            rustix::io::ioctl_fionread(&stdin).unwrap() == 0 && state(pid) == Some('S')
        });
        let peak = peak(pid);
        assert!(peak < 56 << 20, "{tool}: {} MiB", peak >> 20);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"{\"next\":1}\n", "{tool}");
        let expected = if tool == "eventwait" { 0 } else { 65 };
        assert_eq!(output.status.code(), Some(expected), "{tool}");
    }
}
