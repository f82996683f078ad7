//! `--stdin`, filters, forms of output, what is said at the end.

use std::io::Write;
use std::process::Stdio;

use crate::stage::{AFTER, Waited, Waiting, command, later, ms, start, wait};
use crate::support::{Sandbox, until};

/// A wait over this input.
#[track_caller]
fn over(sandbox: &Sandbox, input: &[u8], words: &[&str]) -> Waited {
    let mut command = command(sandbox, &[&["--stdin", "--timeout", "20"], words].concat());
    let mut waiting = start({
        command.stdin(Stdio::piped());
        command
    });
    let mut stdin = waiting.child.stdin.take().unwrap();
    // It may be gone before it has read all.
    let _ = stdin.write_all(input);
    drop(stdin);
    waiting.finish()
}

#[test]
fn lines_come_out_as_they_went_in() {
    let sandbox = Sandbox::new();
    let odd = b"{\"n\":1.0, \"u\":\"\\u0041\"}\n\n\xff\xfe\n \t\r\nlast without newline";
    let waited = over(&sandbox, odd, &["--all"]);
    waited.ended(0, "closed");
    assert_eq!(waited.count("seen"), 5);
    let mut output = command(&sandbox, &["--stdin", "--all", "--timeout", "20"]);
    std::fs::write(sandbox.path("in"), odd).unwrap();
    let input = std::fs::File::open(sandbox.path("in")).unwrap();
    let output = output.stdin(input).output().unwrap();
    assert_eq!(output.stdout, [&odd[..], b"\n"].concat());
}

#[test]
fn one_match_is_enough_or_as_many_as_wanted() {
    let sandbox = Sandbox::new();
    let input = b"a1\nb\na2\na3\n";
    let one = over(&sandbox, input, &["--line", "^a"]);
    assert_eq!(one.ended(0, "matched").stdout, "a1\n");
    let two = over(&sandbox, input, &["--line", "^a", "--count", "2"]);
    assert_eq!(two.ended(0, "matched").stdout, "a1\na2\n");
    assert_eq!((two.count("matched"), two.count("seen")), (2, 3));
    let few = over(&sandbox, input, &["--line", "^a", "--count", "4"]);
    assert_eq!(few.ended(1, "closed").stdout, "a1\na2\na3\n");
    over(&sandbox, input, &["--line", "^a", "--all"]).ended(0, "closed");
    over(&sandbox, input, &["--line", "^c", "--all"]).ended(1, "closed");
    over(&sandbox, input, &["--line", "^c"]).ended(1, "closed");
    over(&sandbox, input, &["--line", "a", "--line", "2"]).ended(0, "matched");
    over(&sandbox, input, &["--line", "a", "--line", "b"]).ended(1, "closed");
}

#[test]
fn what_is_not_json_is_counted_and_not_fatal() {
    let sandbox = Sandbox::new();
    let input = b"plain\n{\"a\":1\n[]\n{\"a\":2}\n{\"a\":1,\"b\":{\"c\":\"x y\"}}\n";
    let waited = over(&sandbox, input, &["--match", "a=1", "--match", "b.c~^x"]);
    waited.ended(0, "matched");
    assert_eq!((waited.count("not_json"), waited.count("seen")), (2, 5));
}

#[test]
fn columns_words_eyes_and_nothing() {
    let sandbox = Sandbox::new();
    let input = b"{\"a\":\"x\\ty\",\"b\":null,\"c\":[1,\"it's\"]}\nplain\n{\"z\":1}\n";
    let of = |words: &[&str]| over(&sandbox, input, &[words, &["--all"]].concat()).stdout;
    assert_eq!(of(&["-o", "a,b,c,d"]), "x y\t\t[1,\"it's\"]\t\n");
    assert_eq!(of(&["-o", "a,b,c", "--sh"]), "'x\ty' '' 1 'it'\\''s'\n");
    assert!(of(&["-H"]).contains("plain\n"));
    assert_eq!(of(&["-q"]), "");
    over(&sandbox, input, &["-q", "--match", "z=1"]).ended(0, "matched");
    over(&sandbox, input, &["-q", "--match", "z=2"]).ended(1, "closed");
}

#[test]
fn a_line_over_the_limit_is_skipped_and_counted() {
    let sandbox = Sandbox::new();
    let long = [
        &b"{\"a\":\""[..],
        &vec![b'x'; 5 << 20],
        b"\"}\n{\"a\":\"ok\"}\n",
    ]
    .concat();
    let waited = over(&sandbox, &long, &["--max-line", "1M", "--match", "a=ok"]);
    waited.ended(0, "matched");
    assert_eq!((waited.count("too_long"), waited.count("seen")), (1, 2));
    // Below the limit it is a line like any other.
    let waited = over(&sandbox, &long, &["--match", "a~x", "-q"]);
    assert_eq!(waited.ended(0, "matched").count("too_long"), 0);
}

#[test]
fn the_ack_line_comes_first_and_once_and_is_no_match() {
    let sandbox = Sandbox::new();
    let waited = over(
        &sandbox,
        b"a\nb\n",
        &["--ack-line", "@armed", "--all", "-o", "x"],
    );
    assert_eq!(waited.ended(0, "closed").stdout, "@armed\n");
    let waited = over(
        &sandbox,
        b"a\nb\n",
        &["--ack-line", "@armed", "--line", "b"],
    );
    assert_eq!(waited.ended(0, "matched").stdout, "@armed\nb\n");
    assert_eq!(waited.count("matched"), 1);
}

#[test]
fn a_caller_may_have_numbers_of_its_own() {
    let sandbox = Sandbox::new();
    let codes = [
        "--exit-code",
        "deadline=0",
        "--exit-code",
        "closed=4",
        "--exit-code",
        "unavailable=2",
        "--exit-code",
        "interrupted=9",
        "--exit-code",
        "matched=5",
    ];
    let run = |words: &[&str]| wait(&sandbox, &[&codes[..], words].concat());
    run(&["--stdin", "--timeout", "9"]).ended(4, "closed");
    run(&["--path", "p", "--timeout", "0"]).ended(0, "deadline");
    run(&["--socket", "s", "--timeout", "9"]).ended(2, "unavailable");
    run(&["--path", ".", "--timeout", "9"]).ended(5, "matched");
    let words = [
        &codes[..],
        &["--path", "p", "--ack-line", "armed", "--timeout", "20"],
    ]
    .concat();
    let waiting = start(command(&sandbox, &words));
    waiting.until_printed("armed\n");
    let pid = nix::unistd::Pid::from_raw(waiting.pid());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    waiting.finish().ended(9, "interrupted");
}

#[test]
fn the_summary_goes_where_it_is_wanted() {
    let sandbox = Sandbox::new();
    let tool = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_eventwait"));
        command.args(["--path", ".", "--timeout", "9"]).args(words);
        command.current_dir(sandbox.path("")).output().unwrap()
    };
    assert_eq!(tool(&[]).stderr, b"", "nothing is said unasked");
    let output = tool(&["--summary=s"]);
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    let text = std::fs::read_to_string(sandbox.path("s")).unwrap();
    assert!(
        text.starts_with("{\"v\":1,\"type\":\"wait\",\"end\":\"matched\"") && text.ends_with("}\n")
    );
    // That there is no place for it is said before, and not after the wait.
    std::fs::create_dir(sandbox.path("closed")).unwrap();
    let nobody = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    std::fs::set_permissions(sandbox.path("closed"), nobody).unwrap();
    let mut nowhere = vec!["--summary=none/s"];
    // root may write anywhere.
    if !nix::unistd::geteuid().is_root() {
        nowhere.push("--summary=closed/s");
    }
    for option in nowhere {
        let output = tool(&[option]);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert_eq!(output.stdout, b"");
    }
    // What must not be trusted is not written, and nothing else is done.
    std::os::unix::fs::symlink("s", sandbox.path("link")).unwrap();
    for option in ["--summary=link", "--beat=link"] {
        let output = tool(&[option]);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert_eq!(output.stdout, b"");
    }
}

#[test]
fn the_beat_goes_on_while_the_wait_turns_and_not_longer() {
    let sandbox = Sandbox::new();
    let words = [
        "--path",
        "p",
        "--beat",
        "beat",
        "--beat-every",
        "30ms",
        "--timeout",
        "20",
    ];
    let waiting = start(command(&sandbox, &words));
    let path = sandbox.path("beat");
    let time = || {
        std::fs::metadata(&path)
            .and_then(|meta| meta.modified())
            .ok()
    };
    let beats = |count| {
        for _ in 0..count {
            let before = time();
            until("the next beat", || time() > before);
        }
    };
    beats(4);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // It is made again if somebody takes it away.
    std::fs::remove_file(&path).unwrap();
    until("it is there again", || path.exists());
    beats(2);
    // A process that exists and does not turn has no beat.
    let pid = nix::unistd::Pid::from_raw(waiting.pid());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    until("it is stopped", || {
        crate::support::state(pid.as_raw()) == Some('T')
    });
    let before = time();
    std::thread::sleep(ms(200));
    assert_eq!(time(), before);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    until("it turns again", || time() > before);
    std::fs::write(sandbox.path("p"), "").unwrap();
    waiting.finish().ended(0, "matched");
    let before = time();
    std::thread::sleep(ms(100));
    assert_eq!(time(), before);
}

#[test]
fn a_signal_ends_it_at_once_and_what_was_ignored_stays_so() {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM};
    let sandbox = Sandbox::new();
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waiting = start(command(
            &sandbox,
            &["--path", "p", "--ack-line", "armed", "--timeout", "20"],
        ));
        waiting.until_printed("armed\n");
        let sent = std::time::Instant::now();
        let pid = nix::unistd::Pid::from_raw(waiting.pid());
        nix::sys::signal::kill(pid, signal).unwrap();
        let waited = waiting.finish();
        waited.died(signal as i32, "interrupted");
        waited.gone_after(sent, AFTER);
    }
    let tool = env!("CARGO_BIN_EXE_eventwait");
    let script = format!("trap '' INT; exec {tool} --path p --timeout 0.5");
    let mut child = std::process::Command::new("bash")
        .args(["-c", &script])
        .spawn()
        .unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    until("it is the tool", || {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "eventwait"
    });
    nix::sys::signal::kill(pid, SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(124));
}

#[test]
fn a_second_reader_of_the_same_input_does_not_hold_it_up() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let stdin = |reader: &std::io::PipeReader| Stdio::from(reader.try_clone().unwrap());
    let mut waits = Vec::new();
    for _ in 0..2 {
        let mut command = command(
            &sandbox,
            &["--stdin", "--line", "never", "--timeout", "0.5"],
        );
        command.stdin(stdin(&reader));
        waits.push(start(command));
    }
    let mut writer = writer;
    let talker = later(0, move || {
        for _ in 0..50 {
            let _ = writer.write_all(b"line\n");
            std::thread::sleep(ms(15));
        }
    });
    // Each is watched to its end by itself.
    let finish = |waiting: Waiting| std::thread::spawn(move || waiting.finish());
    let ends: Vec<_> = waits.into_iter().map(finish).collect();
    for end in ends {
        let waited = end.join().unwrap();
        waited.ended(124, "deadline").gone_at(ms(500));
    }
    talker.join().unwrap();
}

#[test]
fn wrong_usage_is_said_with_status_2() {
    let sandbox = Sandbox::new();
    for words in [
        &["--stdin"][..],
        &["--stdin", "--gone", "--timeout", "1"],
        &["--stdin", "--path", "p", "--timeout", "1"],
        &["--timeout", "1"],
        &["--stdin", "--timeout", ""],
        &["--stdin", "--timeout", "-1"],
        &["--stdin", "--timeout", "1", "--match", "x"],
        // What is not looked at is not taken.
        &["--connect", "a", "--connect", "b", "--timeout", "1"],
        &["--follow", "a", "--follow", "b", "--timeout", "1"],
        &["--path", "a", "b", "--timeout", "1"],
        &["--path", "a", "--timeout", "1", "--timeout", "2"],
        &["--tmux", "--tmux-socket", "", "--timeout", "1"],
    ] {
        let waited = wait(&sandbox, words);
        assert_eq!(waited.status.code(), Some(2), "{words:?}");
        assert!(waited.stderr.starts_with("eventwait: "), "{waited:?}");
    }
}
