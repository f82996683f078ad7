//! The command line of `eventwait`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use process::Operand;
use records::{OutputArgs, duration};

use crate::end::ExitCode;
use crate::filter::{Condition, Pattern};
use crate::source::follow::From;

/// Wait for one event, bounded on every side by one deadline
///
/// One source is watched until something in it matches every filter, or until the deadline. The
/// state is looked at after the watch is armed: what is true already is an answer, and what
/// happens in between is not lost. At the deadline the wait is over, whatever the source, the
/// reader of standard output or a helper does.
#[derive(Debug, clap::Parser)]
#[group(skip)]
#[command(
    version,
    override_usage = "eventwait SOURCE [FILTER]... --timeout DURATION [OPTIONS]",
    group = clap::ArgGroup::new("source").required(true).args([
        "socket", "herdr", "tmux", "follow", "stdin", "exit", "path", "connect", "cmd",
    ]),
    after_long_help = include_str!("../manual.txt"),
    after_help = "Examples:\n  \
        eventwait --follow server.log --from start --line 'listening on' --timeout 30s\n  \
        eventwait --connect /run/app.sock --pid \"$pid\" --timeout 10s"
)]
pub struct Args {
    /// Each line that a Unix stream socket sends
    #[arg(long, value_name = "PATH", help_heading = "Sources (exactly one)")]
    pub socket: Option<PathBuf>,

    /// What happens to herdr's panes: status, exit, close
    #[arg(long, value_name = "PANE", num_args = 1.., help_heading = "Sources (exactly one)")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub herdr: Vec<String>,

    /// What tmux notifies a control client of, and the death of panes
    #[arg(long, help_heading = "Sources (exactly one)")]
    pub tmux: bool,

    /// Each line appended to a file, which may appear later, be rotated or truncated
    #[arg(long, value_name = "FILE", help_heading = "Sources (exactly one)")]
    pub follow: Option<PathBuf>,

    /// Each line of standard input
    #[arg(long, help_heading = "Sources (exactly one)")]
    pub stdin: bool,

    /// A process has ended (repeatable: any of them)
    #[arg(long, value_name = "PID|IDENT", value_parser = operand, help_heading = "Sources (exactly one)")]
    pub exit: Vec<Operand>,

    /// A path exists, or with --gone does not (repeatable: any of them)
    #[arg(long, value_name = "PATH", help_heading = "Sources (exactly one)")]
    pub path: Vec<PathBuf>,

    /// A Unix socket accepts a connection
    #[arg(long, value_name = "PATH", help_heading = "Sources (exactly one)")]
    pub connect: Option<PathBuf>,

    /// A command (up to ';') exits 0
    #[arg(long, value_name = "COMMAND", help_heading = "Sources (exactly one)")]
    #[arg(num_args = 1.., value_terminator = ";", allow_hyphen_values = true)]
    pub cmd: Vec<OsString>,

    /// With --socket: send this line first (repeatable)
    #[arg(long, value_name = "LINE", help_heading = "Of the sources")]
    #[arg(allow_hyphen_values = true)]
    #[arg(hide_short_help = true)]
    pub send: Vec<String>,

    /// With --socket: nothing counts before a line that matches this, KEY=VALUE and so on
    #[arg(long, value_name = "FILTER", help_heading = "Of the sources")]
    pub ack: Option<Condition>,

    /// With --herdr: herdr's socket [default: HERDR_SOCKET_PATH, else the session's]
    #[arg(long, value_name = "PATH", help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub herdr_socket: Option<PathBuf>,

    /// With --herdr: which kinds of events [default: status,exit,close]
    #[arg(long, value_name = "KIND,...", help_heading = "Of the sources")]
    #[arg(value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    pub on: Vec<Kind>,

    /// With --herdr: leave out the state at the start
    #[arg(long, help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub no_initial: bool,

    /// With --tmux: only what happens to this pane, %N (repeatable)
    #[arg(long, value_name = "ID", help_heading = "Of the sources")]
    #[arg(value_parser = pane_id)]
    pub pane: Vec<String>,

    /// With --tmux: the server's name (as -L) or socket (as -S, with a slash)
    #[arg(long, value_name = "NAME|PATH", help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub tmux_socket: Option<OsString>,

    /// With --tmux: the program [default: tmux on PATH]
    #[arg(long, value_name = "FILE", help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub tmux_bin: Option<OsString>,

    /// With --follow: where to begin in a file that is there: start, end, or a byte [default: end]
    #[arg(long, value_name = "WHERE", help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub from: Option<From>,

    /// With --path: until it does not exist
    #[arg(long, help_heading = "Of the sources")]
    pub gone: bool,

    /// With --cmd: the pause between two runs [default: 250ms]
    #[arg(long, value_name = "DURATION", help_heading = "Of the sources")]
    #[arg(value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub every: Option<Duration>,

    /// With --cmd: show its arguments whole, with the values below "env" in JSON arguments
    #[arg(long, help_heading = "Of the sources")]
    #[arg(hide_short_help = true)]
    pub full_argv: bool,

    /// End when this process ends before a match
    #[arg(long, value_name = "PID|IDENT", value_parser = operand, help_heading = "Of the sources")]
    pub pid: Option<Operand>,

    /// Only JSON of which this holds: KEY=VALUE, KEY!=VALUE, KEY~REGEX, KEY dotted (repeatable)
    #[arg(
        long = "match",
        value_name = "FILTER",
        help_heading = "Filters (all must hold)"
    )]
    pub conditions: Vec<Condition>,

    /// Only lines in which this is found (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Filters (all must hold)")]
    #[arg(allow_hyphen_values = true)]
    pub line: Vec<Pattern>,

    /// End after this many matches
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Bounds")]
    pub count: u64,

    /// Print all matches until the deadline or the end
    #[arg(long, conflicts_with = "count", help_heading = "Bounds")]
    pub all: bool,

    /// How long to wait; 0 looks once
    // Beside --cmd it is not clap that misses it: the command may have taken it for its own.
    #[arg(short, long, value_name = "DURATION", value_parser = duration::parse)]
    #[arg(required_unless_present = "cmd", help_heading = "Bounds")]
    pub timeout: Option<Duration>,

    /// Skip lines that are longer than this, in bytes (K, M, G)
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    #[arg(help_heading = "Bounds")]
    #[arg(hide_short_help = true)]
    pub max_line: usize,

    /// Touch this file while the wait is turning
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub beat: Option<PathBuf>,

    /// How often to touch it
    #[arg(long, value_name = "DURATION", default_value = "5s", requires = "beat")]
    #[arg(value_parser = period, help_heading = "Reports")]
    #[arg(hide_short_help = true)]
    pub beat_every: Duration,

    /// Print this line once the source is armed
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Reports"
    )]
    #[arg(hide_short_help = true)]
    pub ack_line: Option<String>,

    /// Say at the end how it went, on stderr or in a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(help_heading = "Reports")]
    pub summary: Option<Option<PathBuf>>,

    /// Give an end another exit status, such as deadline=0 (repeatable)
    #[arg(long, value_name = "END=N", help_heading = "Reports")]
    #[arg(hide_short_help = true)]
    pub exit_code: Vec<ExitCode>,

    #[command(flatten)]
    pub output: OutputArgs,
}

impl Args {
    /// What clap cannot say, because the sources exclude each other: which options need which.
    ///
    /// # Errors
    /// The text names the option and its source.
    pub fn check(&self) -> Result<(), String> {
        if self.timeout.is_none() {
            let is_end = |word: &OsString| {
                word.to_str()
                    .is_some_and(|word| word.starts_with("--timeout") || word.starts_with("-t"))
            };
            let swallowed = self.cmd.iter().any(is_end);
            let why = match swallowed {
                true => ": --cmd takes all words up to ';', so end the command with \\;",
                false => "",
            };
            return Err(format!("--timeout DURATION is missing{why}"));
        }
        // As a script with an unset variable gives it: no server would be found to run there.
        if self
            .tmux_socket
            .as_ref()
            .is_some_and(|socket| socket.is_empty())
        {
            return Err("--tmux-socket is empty".to_owned());
        }
        let (socket, follow) = (self.socket.is_some(), self.follow.is_some());
        let (herdr, path) = (!self.herdr.is_empty(), !self.path.is_empty());
        let cmd = !self.cmd.is_empty();
        let table = [
            ("--send", !self.send.is_empty(), "--socket", socket),
            ("--ack", self.ack.is_some(), "--socket", socket),
            (
                "--herdr-socket",
                self.herdr_socket.is_some(),
                "--herdr",
                herdr,
            ),
            ("--on", !self.on.is_empty(), "--herdr", herdr),
            ("--no-initial", self.no_initial, "--herdr", herdr),
            ("--pane", !self.pane.is_empty(), "--tmux", self.tmux),
            (
                "--tmux-socket",
                self.tmux_socket.is_some(),
                "--tmux",
                self.tmux,
            ),
            ("--tmux-bin", self.tmux_bin.is_some(), "--tmux", self.tmux),
            ("--from", self.from.is_some(), "--follow", follow),
            ("--gone", self.gone, "--path", path),
            ("--every", self.every.is_some(), "--cmd", cmd),
            ("--full-argv", self.full_argv, "--cmd", cmd),
        ];
        match table.iter().find(|(_, given, _, source)| *given && !source) {
            Some((option, _, source, _)) => Err(format!("{option} needs {source}")),
            None => Ok(()),
        }
    }
}

impl Args {
    /// The keys of the source's own records; `None` where it hands on other people's lines.
    pub fn keys(&self) -> Option<&'static [&'static str]> {
        #[rustfmt::skip]
        const TABLE: [&[&str]; 4] = [
            &["v", "type", "source", "event", "data", "initial", "at"],
            &["v", "type", "source", "pid", "ident", "code", "signal", "at"],
            &["v", "type", "source", "path", "state", "at", "lossy", "argv_cut"],
            &["v", "type", "source", "argv", "runs", "at", "lossy", "argv_cut"],
        ];
        let [pane, exit, path, cmd] = TABLE;
        if self.socket.is_some() || self.follow.is_some() || self.stdin {
            return None;
        }
        Some(match self {
            _ if self.tmux || !self.herdr.is_empty() => pane,
            _ if !self.exit.is_empty() => exit,
            _ if !self.cmd.is_empty() => cmd,
            _ => path,
        })
    }
}

/// Which of herdr's events of a pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Its agent has another status
    Status,
    /// Its process has ended
    Exit,
    /// It was closed
    Close,
}

/// A process. Of a record in a file the identity is meant.
fn operand(word: &str) -> Result<Operand, String> {
    let parsed = word.parse::<Operand>();
    parsed.map_err(|why| {
        why + &process::file_hint(word, "its identity is told by 'pane-ident verify -o ident")
    })
}

fn count(text: &str) -> Result<u64, String> {
    records::number::in_range(text, 1..=u64::MAX)
}

/// A duration after which something is done again. With none in between it is done as often as is
/// good for anything, and does not keep a core busy.
fn period(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(10);
    Ok(duration::parse(text)?.max(SHORTEST))
}

/// A number of bytes, with K, M or G for powers of 1024.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    // More than the memory of any machine is no bound.
    let bytes = records::number::in_range(digits, 1..=(1 << 40) >> shift)? << shift;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// tmux's own id of a pane: a name or an index can come to mean another one during the wait.
fn pane_id(text: &str) -> Result<String, String> {
    match text.strip_prefix('%').map(records::number::parse) {
        Some(Ok(_)) => Ok(text.to_owned()),
        _ => Err("not the id of a pane, such as %3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn parse(line: &str) -> Result<Args, String> {
        let words = std::iter::once("eventwait").chain(line.split_whitespace());
        let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
        args.check().map(|()| args)
    }

    #[test]
    fn exactly_one_source_and_a_deadline() {
        <Args as clap::CommandFactory>::command().debug_assert();
        for good in [
            "--stdin --timeout 1",
            "--path a --path b --gone --timeout 0",
            "--exit 12 --exit 13 --all --timeout 5m",
            "--herdr w1:p1 w1:p2 --on status --no-initial --timeout 1.5",
            "--herdr w1:p1 --herdr w1:p2 --timeout 1",
            "--tmux --pane %3 --timeout 1",
            "--timeout 1 --cmd test -f --timeout x",
            "--cmd test -f x ; --every 1s --timeout 1",
            "--follow f --from 12 --timeout 1 --summary --exit-code deadline=0",
            "--socket s --send {} --ack result.type=x --timeout 1 --summary=f",
        ] {
            assert!(parse(good).is_ok(), "{good}: {}", parse(good).unwrap_err());
        }
        for wrong in [
            "",
            "--timeout 1",
            "--stdin",
            "--stdin --timeout -1",
            "--stdin --timeout 99999999999",
            "--stdin --path x --timeout 1",
            "--stdin --gone --timeout 1",
            "--stdin --from start --timeout 1",
            "--stdin --send x --timeout 1",
            "--stdin --full-argv --timeout 1",
            "--stdin --count 0 --timeout 1",
            "--stdin --count 2 --all --timeout 1",
            "--exit 0 --timeout 1",
            "--exit -1 --timeout 1",
            "--exit 4294967295 --timeout 1",
            "--exit 12abc --timeout 1",
            "--tmux --pane 3 --timeout 1",
            "--follow f --from middle --timeout 1",
            "--herdr w1:p1 --on status,death --timeout 1",
            "--stdin --max-line 0 --timeout 1",
            "--stdin --beat-every 1 --timeout 1",
            "--stdin --exit-code never=1 --timeout 1",
            "--stdin --match x --timeout 1",
            "--stdin --line ( --timeout 1",
            "--stdin --timeout 1 operand",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_beat_is_never_without_a_pause() {
        let every = |text: &str| {
            let args = parse(&format!("--stdin --timeout 1 --beat b --beat-every {text}"));
            args.unwrap().beat_every
        };
        assert_eq!(every("0"), Duration::from_millis(10));
        assert_eq!(every("20ms"), Duration::from_millis(20));
    }

    #[test]
    fn sizes() {
        let table = [("1", 1), ("16M", 16 << 20), ("3k", 3072), ("1G", 1 << 30)];
        for (text, want) in table {
            assert_eq!(size(text), Ok(want));
        }
        for wrong in ["", "M", "-1", "1.5M", "1MB", "99999999999999G", "0K"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
    }
}
