//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use records::OutputArgs;

use crate::id::SessionId;

/// List the live processes that hold a session id, a file or a socket
#[derive(Clone, Debug, clap::Parser)]
#[group(skip)]
#[command(
    name = "holder-scan",
    version,
    override_usage = "holder-scan WHAT... [--own-*]... [OPTIONS]\n       \
        holder-scan --registry FILE|- [OPTIONS]\n       \
        holder-scan --dump",
    after_long_help = include_str!("../manual.txt"),
    after_help = "\
Examples:
  holder-scan --session-id \"$id\" --own-arg wrapper.js --own-cwd \"$PWD\"
  holder-scan -q --file /var/lib/x/db && echo 'in use'"
)]
pub struct Args {
    #[command(flatten)]
    pub what: WhatArgs,

    #[command(flatten)]
    pub own: OwnArgs,

    #[command(flatten)]
    pub source: SourceArgs,

    /// Show those as well that only name the session, and the children of agents' tools
    #[arg(long)]
    pub mentions: bool,

    /// Show the caller, its ancestors and its pipeline as well
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub include_self: bool,

    /// Exit 0 if somebody holds it, 1 if nobody does, 3 if that could not be found out
    #[arg(short, long)]
    pub exit_status: bool,

    /// Show arguments whole: not cut, and with the values of environment variables in JSON
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub full_argv: bool,

    /// End the scan after this long, incomplete (0: one look, without a limit)
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = records::duration::parse)]
    pub timeout: Duration,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is asked for. Of several, any.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "What (at least one, each as often as wanted)")]
pub struct WhatArgs {
    /// The session of a coding agent
    #[arg(long, value_name = "ID", value_parser = SessionId::new)]
    pub session_id: Vec<SessionId>,

    /// A file that is open, mapped, executed, or a working or root directory
    #[arg(long, value_name = "PATH")]
    pub file: Vec<PathBuf>,

    /// A Unix socket: bound or listening there, or connected to it
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,

    /// A variable of the environment, with its value
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    #[arg(hide_short_help = true)]
    pub env: Vec<Variable>,

    /// A whole argument, or the last part of one that is a path
    #[arg(long, value_name = "TEXT")]
    pub arg: Vec<OsString>,

    /// The working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Vec<PathBuf>,

    /// A directory that the working directory is, or is below
    #[arg(long, value_name = "DIR")]
    pub cwd_under: Vec<PathBuf>,

    /// A TCP port that is listened on
    #[arg(long, value_name = "N", value_parser = port)]
    pub port: Vec<u16>,

    /// The controlling terminal
    #[arg(long, value_name = "TTY")]
    #[arg(hide_short_help = true)]
    pub tty: Vec<PathBuf>,

    /// Only processes of this user
    #[arg(long, value_name = "UID", value_parser = uid)]
    #[arg(hide_short_help = true)]
    pub uid: Option<u32>,

    /// What cannot be read of other users' processes makes the scan incomplete, too
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub all_users: bool,
}

/// What makes a holder the caller's own. All that are given must be confirmed.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Own")]
pub struct OwnArgs {
    /// The program, or the script it runs: whole, or the last part of its path
    #[arg(long, value_name = "TEXT")]
    pub own_arg: Vec<OsString>,

    /// The executable
    #[arg(long, value_name = "PATH")]
    #[arg(hide_short_help = true)]
    pub own_exe: Vec<PathBuf>,

    /// The working directory, or the one in its JSON argument
    #[arg(long, value_name = "DIR")]
    pub own_cwd: Vec<PathBuf>,

    /// A directory that the working directory is, or is below
    #[arg(long, value_name = "DIR")]
    #[arg(hide_short_help = true)]
    pub own_cwd_under: Vec<PathBuf>,

    /// A variable of the environment, or of the one in its JSON argument, with its value
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub own_env: Vec<Variable>,

    /// The user
    #[arg(long, value_name = "UID", value_parser = uid)]
    #[arg(hide_short_help = true)]
    pub own_uid: Option<u32>,

    /// A file with the record of a process of the tree
    #[arg(long, value_name = "FILE")]
    pub own_record: Vec<PathBuf>,
}

/// Where the process table comes from, and goes to.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Tables")]
pub struct SourceArgs {
    /// Join these rows (session_id, ident or pid) with the live processes
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["dump", "from"])]
    pub registry: Option<PathBuf>,

    /// Write the whole process table
    #[arg(long, conflicts_with = "from")]
    pub dump: bool,

    /// Judge this table, as --dump has written it, instead of the live one
    #[arg(long, value_name = "FILE|-")]
    pub from: Option<PathBuf>,
}

/// A variable and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Takes the ids out of a command line that directly follow its first one, and gives both: clap needs
/// half as long for a thousand of them as a short scan takes in all. Where the first is in the place
/// of an option, those are as well.
pub fn apart(words: &[&'static OsStr]) -> (Vec<&'static OsStr>, Vec<SessionId>) {
    let first = (1..words.len()).find_map(|at| next_id(&words[at..]));
    let mut rest = first.map_or(&words[words.len()..], |(_, rest)| rest);
    let before = &words[..words.len() - rest.len()];
    let mut ids = Vec::with_capacity(rest.len() / 2);
    while let Some((id, after)) = next_id(rest) {
        let Ok(id) = SessionId::of(id.into()) else {
            break;
        };
        ids.push(id);
        rest = after;
    }
    ([before, rest].concat(), ids)
}

/// The id that `words` begin with, as an option, and the words behind it.
fn next_id<'w>(words: &'w [&'static OsStr]) -> Option<(&'static str, &'w [&'static OsStr])> {
    let (option, after) = words.split_first()?;
    let option = option.to_str()?.strip_prefix("--session-id")?;
    if option.is_empty() {
        let (id, after) = after.split_first()?;
        let id = id.to_str().filter(|id| !id.starts_with('-'))?;
        return Some((id, after));
    }
    Some((option.strip_prefix('=')?, after))
}

fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("not of the form NAME=VALUE".to_owned()),
    }
}

fn port(text: &str) -> Result<u16, String> {
    number(text)
        .and_then(|number| u16::try_from(number).ok())
        .filter(|&port| port != 0)
        .ok_or_else(|| "not a port (1 to 65535)".to_owned())
}

fn uid(text: &str) -> Result<u32, String> {
    // (uid_t)-1 means "no user" to the kernel.
    number(text)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|&uid| uid != u32::MAX)
        .ok_or_else(|| "not a user's number".to_owned())
}

fn number(text: &str) -> Option<u64> {
    records::number::parse(text).ok()
}

impl OwnArgs {
    /// Whether files are named, which have to be looked up.
    pub fn names_files(&self) -> bool {
        !(self.own_exe.is_empty() && self.own_cwd.is_empty() && self.own_cwd_under.is_empty())
    }
}

impl WhatArgs {
    /// Adds ids that followed the first one.
    pub fn add(&mut self, following: Vec<SessionId>) {
        let later = self.session_id.split_off(self.session_id.len().min(1));
        self.session_id.extend(following);
        self.session_id.extend(later);
    }

    /// Whether files are named, which have to be looked up.
    pub fn names_files(&self) -> bool {
        let paths = [
            &self.file,
            &self.socket,
            &self.cwd,
            &self.cwd_under,
            &self.tty,
        ];
        !paths.iter().all(|paths| paths.is_empty())
    }

    /// Whether anything is asked for.
    pub fn asks(&self) -> bool {
        !(self.session_id.is_empty()
            && self.file.is_empty()
            && self.socket.is_empty()
            && self.env.is_empty()
            && self.arg.is_empty()
            && self.cwd.is_empty()
            && self.cwd_under.is_empty()
            && self.port.is_empty()
            && self.tty.is_empty())
    }
}

impl Args {
    /// What the grammar cannot say.
    ///
    /// # Errors
    ///
    /// A message for people about wrong usage.
    pub fn check(&self) -> Result<(), String> {
        let what = &self.what;
        let asks = what.asks();
        if self.source.dump {
            return if asks {
                Err("--dump writes the whole table and takes no question".to_owned())
            } else {
                Ok(())
            };
        }
        if !asks && self.source.registry.is_none() {
            return Err(
                "nothing to look for: one of --session-id, --file, --socket, --env, \
                        --arg, --cwd, --cwd-under, --port, --tty is needed"
                    .to_owned(),
            );
        }
        let own = &self.own;
        let weak =
            !own.own_cwd.is_empty() || !own.own_cwd_under.is_empty() || own.own_uid.is_some();
        let strong = !own.own_arg.is_empty()
            || !own.own_exe.is_empty()
            || !own.own_env.is_empty()
            || !own.own_record.is_empty();
        if weak && !strong {
            return Err(
                "--own-cwd, --own-cwd-under and --own-uid fit a person's own agent in \
                        that folder as well: give --own-arg, --own-exe, --own-env or \
                        --own-record with them"
                    .to_owned(),
            );
        }
        for text in what.arg.iter().chain(&own.own_arg) {
            if text.is_empty() {
                return Err("an empty argument is nobody's mark".to_owned());
            }
        }
        let paths = [
            &what.file,
            &what.socket,
            &what.cwd,
            &what.cwd_under,
            &what.tty,
        ];
        let own_paths = [
            &own.own_exe,
            &own.own_cwd,
            &own.own_cwd_under,
            &own.own_record,
        ];
        if paths
            .into_iter()
            .chain(own_paths)
            .flatten()
            .any(|path| path.as_os_str().is_empty())
        {
            return Err("a path is not empty".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn asked(line: &'static str) -> Result<Vec<String>, clap::Error> {
        let words: Vec<&OsStr> = line.split(' ').map(OsStr::new).collect();
        let (words, following) = apart(&words);
        let mut args = Args::try_parse_from(words)?;
        args.what.add(following);
        let ids = args.what.session_id.iter();
        Ok(ids.map(|id| id.as_str().to_owned()).collect())
    }

    #[test]
    fn ids_in_a_row_are_read_as_all_others_are() {
        let lines = [
            "holder-scan",
            "holder-scan --session-id",
            "holder-scan --session-id a",
            "holder-scan --session-id a --session-id",
            "holder-scan --session-id a --session-id b --session-id c",
            "holder-scan --session-id a -e --session-id b --session-id c",
            "holder-scan --session-id a --session-id b -e --session-id c",
            "holder-scan --session-id a --session-id=b --session-id c",
            "holder-scan --session-id=a --session-id b --session-id c",
            "holder-scan --session-id=a --session-id=-b --session-id= --session-id=c",
            "holder-scan --session-id=a --session-ids=b --session-id c",
            "holder-scan --session-id=a=b --session-id==c --session-id=d",
            "holder-scan --session-id a --session-id -e --session-id c",
            "holder-scan --session-id a --session-id  --session-id c",
            "holder-scan --session-id --session-id a",
            "--session-id=z --session-id a -e --session-id b",
            "holder-scan --file --session-id a --session-id b",
            "holder-scan --file --session-id --session-id b",
            "holder-scan -- --session-id a --session-id b",
            "holder-scan --session-id a -- --session-id b",
            "holder-scan --session-id a --session-id b x",
        ];
        for line in lines {
            let plain = Args::try_parse_from(line.split(' '));
            let plain = plain.map(|args| args.what.session_id);
            match (asked(line), plain) {
                (Ok(apart), Ok(plain)) => {
                    let plain: Vec<&str> = plain.iter().map(SessionId::as_str).collect();
                    assert_eq!(apart, plain, "{line}");
                }
                (Err(apart), Err(plain)) => assert_eq!(apart.kind(), plain.kind(), "{line}"),
                (apart, plain) => panic!("{line}: {apart:?}, not {plain:?}"),
            }
        }
    }
}
