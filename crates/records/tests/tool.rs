//! The frame of a tool, as its caller sees it: exit status, signals, streams.
//!
//! This program is both the tool and its test: it runs itself with
//! `RECORDS_TEST_TOOL` set to be the tool. So it has a `main` of its own.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Output, Stdio};

use records::{Failure, OutputArgs, Status};

const ROLE: &str = "RECORDS_TEST_TOOL";
const SIGPIPE: i32 = 13;

/// A tool for tests
#[derive(clap::Parser)]
#[command(version = "9.8.7")]
struct Args {
    #[command(flatten)]
    output: OutputArgs,
    /// Fail in this way
    #[arg(long, value_parser = ["usage", "failed", "unknown", "no", "io", "status"])]
    fail: Option<String>,
    /// Copy records from stdin
    #[arg(long)]
    copy: bool,
    /// Print for ever
    #[arg(long)]
    forever: bool,
    #[arg(long, value_parser = records::duration::parse)]
    timeout: Option<std::time::Duration>,
}

fn run(args: Args) -> Result<Status, Failure> {
    let mut output = records::Output::new(&args.output, &[]);
    match args.fail.as_deref() {
        Some("usage") => return Err(Failure::usage("wrong\u{1b}[2J usage")),
        Some("failed") => return Err(Failure::failed("broken").context("x")),
        Some("unknown") => return Err(Failure::unknown("who knows")),
        Some("no") => return Err(Failure::no("no")),
        Some("io") => return Err(std::io::Error::other("FILE: gone").into()),
        Some(_) => return Ok(Status::Code(42)),
        None => {}
    }
    if args.forever {
        loop {
            output.pass(b"{}")?;
        }
    }
    let mut status = Status::Done;
    if args.copy {
        let mut lines = records::input::Lines::stdin();
        while let Some(input) = lines.next_record()? {
            match input {
                records::input::Input::Record(record) => output.pass(record.bytes())?,
                records::input::Input::Bad(bad) => {
                    records::say!("{bad}");
                    status = status.worse(Status::BadInput);
                }
            }
            if !lines.has_buffered_line() {
                output.flush()?;
            }
        }
    }
    output.finish()?;
    Ok(status)
}

fn tool(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "1").args(args).stdin(Stdio::null());
    command
}

fn seen(args: &[&str]) -> (Option<i32>, String, String) {
    of(&tool(args).output().unwrap())
}

fn of(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn failures_have_their_status_and_one_message() {
    let table = [
        ("usage", 2, "probe: wrong\\x1b[2J usage\n"),
        ("failed", 125, "probe: x: broken\n"),
        ("unknown", 3, "probe: who knows\n"),
        ("no", 1, "probe: no\n"),
        ("io", 125, "probe: FILE: gone\n"),
        ("status", 42, ""),
    ];
    for (fail, code, message) in table {
        let want = (Some(code), String::new(), message.to_owned());
        assert_eq!(seen(&["--fail", fail]), want);
    }
}

fn usage_errors_are_messages_of_the_tool() {
    for args in [
        &["--nope\u{1b}[31m"][..],
        &["--sh"],
        &["--timeout", "-1"],
        &["--timeout", ""],
        &["operand"],
    ] {
        let (code, out, err) = seen(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.starts_with("probe: "), "{err}");
        assert!(err.contains("--help") && !err.contains('\u{1b}'), "{err}");
        assert!(!err.contains("error:"), "{err}");
    }
}

fn help_and_version_are_output() {
    let version = (Some(0), "probe 9.8.7\n".to_owned(), String::new());
    assert_eq!(seen(&["--version"]), version);
    for flag in ["-h", "--help"] {
        let (code, out, err) = seen(&[flag]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(
            out.contains("Usage: probe ") && !out.contains('\u{1b}'),
            "{out}"
        );
    }
}

fn output_that_cannot_be_written_is_125() {
    for args in [&["--help"][..], &["--version"], &["--copy"], &["--forever"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut child = tool(args)
            .stdin(Stdio::piped())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One that does not read may be gone by now.
        let _ = child.stdin.take().unwrap().write_all(b"{}\n");
        let (code, _, err) = of(&child.wait_with_output().unwrap());
        assert_eq!(code, Some(125), "{args:?}");
        assert!(
            err.starts_with("probe: cannot write to standard output: "),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1);
    }
}

fn a_reader_that_goes_away_ends_it_by_sigpipe() {
    for args in [&["--forever"][..], &["--help"], &["--copy"]] {
        let (read, write) = std::io::pipe().unwrap();
        let mut child = tool(args)
            .stdin(Stdio::piped())
            .stdout(write)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(read);
        // The tool may be gone before it reads.
        let _ = child.stdin.take().unwrap().write_all(b"{}\n");
        let output = child.wait_with_output().unwrap();
        // --help may have been written before the reader went away.
        let early = args == ["--help"] && output.status.success();
        assert!(
            early || output.status.signal() == Some(SIGPIPE),
            "{:?}",
            output.status
        );
        assert!(output.stderr.is_empty());
    }
}

fn the_shell_sees_what_it_sees_of_grep() {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("bash")
        .args(["-c", "\"$0\" --forever | head -n 1; echo ${PIPESTATUS[0]}"])
        .arg(exe)
        .env(ROLE, "1")
        .output()
        .unwrap();
    assert_eq!(of(&output), (Some(0), "{}\n141\n".into(), String::new()));
}

fn bad_lines_are_said_and_the_rest_is_done() {
    let mut child = tool(&["--copy"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = b"{\"a\":1e400}\n[\x1b]\n\n {\"b\" : 18446744073709551616 }";
    child.stdin.take().unwrap().write_all(input).unwrap();
    let (code, out, err) = of(&child.wait_with_output().unwrap());
    assert_eq!(code, Some(65));
    assert_eq!(out, "{\"a\":1e400}\n {\"b\" : 18446744073709551616 }\n");
    assert_eq!(
        err,
        "probe: standard input: line 2: not a JSON object\n\
         probe: standard input: line 3: not a JSON object: an empty line\n"
    );
}

fn a_filter_answers_before_it_waits() {
    let mut child = tool(&["--copy"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"a\":1}\n{\"b\"").unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = records::input::Lines::new("tool", stdout);
    let line = lines.next_record().unwrap();
    assert!(matches!(line, Some(records::input::Input::Record(r)) if r.u64("a") == Some(1)));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(65));
}

fn closed_streams_are_no_panic() {
    let exe = std::env::current_exe().unwrap();
    for (shell, code) in [
        ("\"$0\" --fail no 2>&-", 1),
        ("\"$0\" --nope 2>/dev/full", 2),
    ] {
        let output = Command::new("sh")
            .args(["-c", shell])
            .arg(&exe)
            .env(ROLE, "1")
            .output();
        assert_eq!(
            of(&output.unwrap()),
            (Some(code), String::new(), String::new())
        );
    }
}

fn main() -> ExitCode {
    if std::env::var_os(ROLE).is_some() {
        let words: Vec<OsString> = std::env::args_os().collect();
        let words = words.iter().map(OsString::as_os_str).collect();
        return records::tool::main("probe", words, run).into();
    }
    let tests: [(&str, fn()); 9] = [
        ("failures", failures_have_their_status_and_one_message),
        ("usage errors", usage_errors_are_messages_of_the_tool),
        ("help and version", help_and_version_are_output),
        ("unwritable output", output_that_cannot_be_written_is_125),
        ("SIGPIPE", a_reader_that_goes_away_ends_it_by_sigpipe),
        ("SIGPIPE and the shell", the_shell_sees_what_it_sees_of_grep),
        ("bad lines", bad_lines_are_said_and_the_rest_is_done),
        ("flushing", a_filter_answers_before_it_waits),
        ("closed streams", closed_streams_are_no_panic),
    ];
    // A failed assertion panics, which is the exit status that cargo wants.
    for (name, test) in tests {
        println!("{name} ...");
        test();
    }
    ExitCode::SUCCESS
}
