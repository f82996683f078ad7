use super::*;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use crate::exit::Status;
use crate::human::Column;
use rustix::time::Timespec;

const VIEW: HumanView = &[("x", &[Column { key: "a", width: 3 }])];

fn args(words: &[&str]) -> Result<OutputArgs, clap::Error> {
    use clap::{Args, FromArgMatches};
    let command = OutputArgs::augment_args(clap::Command::new("x").no_binary_name(true));
    OutputArgs::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// What the lines become under these options.
fn print(words: &[&str], lines: &[&str]) -> String {
    let file = tempfile::tempfile().unwrap();
    let fd = OwnedFd::from(file.try_clone().unwrap());
    let mut output = Output::to(&args(words).unwrap(), VIEW, fd);
    for line in lines {
        output.pass(line.as_bytes()).unwrap();
    }
    output.finish().unwrap();
    let mut file = file;
    std::io::Seek::rewind(&mut file).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn options_choose_the_form() {
    let lines = [r#"{ "type":"x","a":1e400,"b":"t\tu" }"#, "{}"];
    let table: [(&[&str], &str); 9] = [
        (&["-o", " b ,none, a"], "t u\t\t1e400\n"),
        (&[], "{ \"type\":\"x\",\"a\":1e400,\"b\":\"t\\tu\" }\n{}\n"),
        (&["-o", "a"], "1e400\n"),
        (&["-o", "b,none", "--output", "a"], "t u\t\t1e400\n"),
        (&["-o", "b,a", "--sh"], "'t\tu' 1e400\n"),
        (&["-H"], "1e400\n-\n"),
        (&["-q"], ""),
        (&["-q", "-o", "a"], ""),
        (&["-qH"], ""),
    ];
    for (words, want) in table {
        assert_eq!(print(words, &lines), want, "{words:?}");
    }
}

#[test]
fn options_that_contradict_are_refused() {
    let wrong: [&[&str]; 8] = [
        &["-o", " "],
        &["-o", "a, ,b"],
        &["--sh"],
        &["-H", "-o", "a"],
        &["-o", ""],
        &["-o", "a,,b"],
        &["-o", "a,"],
        &["-H", "--sh"],
    ];
    for words in wrong {
        assert!(args(words).is_err(), "{words:?}");
    }
}

#[test]
fn the_heading_does_not_reach_the_tools_own_options() {
    #[derive(clap::Parser)]
    struct Tool {
        #[command(flatten)]
        _output: OutputArgs,
        #[arg(long)]
        _other: bool,
    }
    let command = <Tool as clap::CommandFactory>::command();
    let heading = |id: &str| {
        let mut all = command.get_arguments();
        all.find(|arg| arg.get_id() == id)
            .unwrap()
            .get_help_heading()
    };
    assert_eq!(heading("sh"), Some("Output"));
    assert_eq!(heading("_other"), None);
    command.debug_assert();
}

#[test]
fn a_record_keeps_the_order_of_its_keys() {
    #[derive(Serialize)]
    struct Made {
        v: u8,
        r#type: &'static str,
        a: Option<u64>,
    }
    let (read, write) = rustix::pipe::pipe().unwrap();
    let mut output = Output::to(&OutputArgs::default(), VIEW, write);
    let (v, a) = (1, None);
    output.emit(&Made { v, r#type: "x", a }).unwrap();
    output.finish().unwrap();
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    assert_eq!(text, "{\"v\":1,\"type\":\"x\",\"a\":null}\n");
}

#[test]
fn a_reader_that_went_away_ends_it_quietly_and_for_good() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let mut output = Output::to(&OutputArgs::default(), VIEW, write);
    output.pass(b"{}").unwrap();
    drop(read);
    assert!(output.flush().unwrap_err().is_reader_gone());
    assert!(output.flush().unwrap_err().is_reader_gone());
    assert!(output.finish().unwrap_err().is_reader_gone());
}

#[test]
fn a_full_disk_is_a_failure_of_the_tool() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut output = Output::to(&OutputArgs::default(), VIEW, full.into());
    output.pass(b"{}").unwrap();
    let failure = output.finish().unwrap_err();
    assert_eq!(failure.status(), Status::Failed);
    assert!(
        failure
            .message()
            .starts_with("cannot write to standard output: ")
    );
}

#[test]
fn a_reader_that_does_not_read_is_waited_for_no_longer_than_allowed() {
    let (_read, write) = rustix::pipe::pipe().unwrap();
    let mut output = Output::to(&OutputArgs::default(), VIEW, write);
    let deadline = Deadline::after(Duration::from_millis(50));
    output.set_deadline(deadline);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let failure = output.pass(long.as_bytes()).unwrap_err();
    assert_eq!(failure.status(), Status::Deadline);
    assert!(deadline.passed());
}

#[test]
fn a_non_blocking_descriptor_is_waited_for() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&write, true).unwrap();
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let full = write.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let has_room = || {
            let mut fds = [PollFd::new(&full, PollFlags::OUT)];
            poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
        };
        while has_room() {
            std::thread::yield_now();
        }
        drop(full);
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).map(|_| text)
    });
    let mut output = Output::to(&OutputArgs::default(), VIEW, write);
    output.pass(long.as_bytes()).unwrap();
    output.finish().unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), format!("{long}\n"));
}

#[test]
fn lines_of_several_writers_to_a_pipe_do_not_mix() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let writers: Vec<_> = ["a", "b"]
        .map(|letter| {
            let fd = write.try_clone().unwrap();
            std::thread::spawn(move || {
                let mut output = Output::to(&OutputArgs::default(), VIEW, fd);
                for i in 0..2000 {
                    let line = letter.repeat(1 + i % 700);
                    output.pass(line.as_bytes()).unwrap();
                }
                output.finish().unwrap();
            })
        })
        .into();
    drop(write);
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(text.lines().count(), 4000);
    for line in text.lines() {
        let first = &line[..1];
        assert_eq!(line.trim_matches(first.chars().next().unwrap()), "");
    }
}

#[test]
fn the_rest_is_written_when_it_is_dropped() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let mut output = Output::to(&OutputArgs::default(), VIEW, write);
    output.pass(b"{}").unwrap();
    drop(output);
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    assert_eq!(text, "{}\n");
}

#[test]
fn portions_are_whole_lines() {
    let table: [(&[u8], usize, &[u8]); 5] = [
        (b"ab\ncd\n", 6, b"ab\ncd\n"),
        (b"ab\ncd\n", 5, b"ab\n"),
        (b"ab\ncd\nef\n", 6, b"ab\ncd\n"),
        (b"abcdef\ng\n", 3, b"abcdef\n"),
        (b"abcdef", 3, b"abcdef"),
    ];
    for (bytes, max, want) in table {
        assert_eq!(whole_lines(bytes, max), want);
        let within = &want[..want.len().min(max)];
        assert_eq!(lines_within(bytes, max), within);
    }
}

#[test]
fn keys_that_no_record_has_are_wrong_usage() {
    let known: [&[&str]; 2] = [&["pid", "argv"], &["verdict"]];
    for good in ["pid", "argv.0, verdict.state.x", "pid,pid"] {
        assert_eq!(args(&["-o", good]).unwrap().check_keys(&known), Ok(()));
    }
    assert_eq!(args(&[]).unwrap().check_keys(&known), Ok(()));
    for wrong in ["pdi", "pid,ident", "PID", "state.verdict"] {
        let args = args(&["-o", wrong]).unwrap();
        let failure = args.check_keys(&known).unwrap_err();
        assert_eq!(failure.status(), Status::Usage, "{wrong}");
        assert!(failure.message().ends_with("there are pid, argv, verdict"));
    }
}
