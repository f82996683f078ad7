//! The command line of `resume-id`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use records::{OutputArgs, duration};

use crate::decide::OnMissing;

/// Decide how a coding agent's session is to be launched
///
/// From what it is told (the session's row, who holds it, how its agents have died) and from the
/// agent's own transcripts it decides between: resume, assign the same id again, mint a new one,
/// spawn without one, reclaim what is stale first, or not at all. It says why, and with which
/// command line. It ends nothing and scans nothing.
#[derive(Debug, clap::Parser)]
#[group(skip)]
#[command(
    version,
    override_usage = "resume-id [--agent NAME] [--cwd DIR] [--session-id ID] [OPTIONS] [-- ARG...]\n       \
        resume-id --exec --decision FILE|-\n       \
        resume-id --discover --agent NAME --cwd DIR [--since TIME]\n       \
        resume-id --list-agents",
    after_help = "Examples:\n  \
        eval \"set -- $(resume-id --row row.json --holders scan.jsonl --sh -o argv)\"\n  \
        holder-scan --session-id \"$id\" --own-arg wrapper.js |\n    \
        resume-id --row \"$row\" --holders - | reap | resume-id --exec --decision -",
    after_long_help = include_str!("../manual.txt"),
)]
pub struct Args {
    /// The agent: claude, codex, opencode, gemini, qwen, pi, grok, hermes, copilot, agy,
    /// cursor-agent, or one of your own
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// The directory that the agent is to be launched in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,

    /// The session's id; an empty one means that there is none
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub session_id: Option<String>,

    /// Your own record of the session, or an earlier decision
    #[arg(long, value_name = "FILE|-")]
    pub row: Option<PathBuf>,

    /// What holder-scan said about this id
    #[arg(long, value_name = "FILE|-")]
    pub holders: Option<PathBuf>,

    /// How old a scan or a decision may be
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub max_age: Duration,

    /// Exit records, one a line: detach's announcements, or your own
    #[arg(long, value_name = "FILE|-")]
    pub history: Option<PathBuf>,

    /// So many deaths in a row, each before --min-uptime, and the session is begun anew, once
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = |text: &str| records::number::in_range(text, 1..=1000))]
    #[arg(hide_short_help = true)]
    pub max_failures: u64,

    /// An agent that has lived this long is no crash loop
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub min_uptime: Duration,

    /// What to do where the conversation is lost
    #[arg(long, value_name = "WHAT", default_value = "mint")]
    #[arg(hide_short_help = true)]
    pub on_missing: OnMissing,

    /// Claim the session, so that of two calls at the same moment one launches; claims are in DIR
    #[arg(long, value_name = "DIR", requires = "claimant")]
    pub claim: Option<PathBuf>,

    /// For whom: a process that lives until the agent does; in a script $$
    #[arg(
        long,
        value_name = "PID|IDENT",
        requires = "claim",
        allow_hyphen_values = true
    )]
    #[arg(hide_short_help = true)]
    pub claimant: Option<String>,

    /// A variable of the environment that the agent will have (repeatable); without '=': not set
    #[arg(long, value_name = "NAME=VALUE")]
    #[arg(hide_short_help = true)]
    pub agent_env: Vec<String>,

    /// Your own agents [default: ~/.config/muxutils/agents.json]
    #[arg(long, value_name = "FILE")]
    #[arg(hide_short_help = true)]
    pub agents: Option<PathBuf>,

    /// An argument for a beginning: the full prompt (repeatable)
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    #[arg(hide_short_help = true)]
    pub fresh_arg: Vec<String>,

    /// An argument for a continuation: the nudge (repeatable)
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    #[arg(hide_short_help = true)]
    pub resume_arg: Vec<String>,

    /// Write the decision here, too, whole, before anything is launched
    #[arg(long, value_name = "FILE")]
    #[arg(hide_short_help = true)]
    pub record: Option<PathBuf>,

    /// How long the call may take [default: 5s, and standard input is waited for]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    #[arg(hide_short_help = true)]
    pub timeout: Option<Duration>,

    /// Become the agent, if the decision and what reap said of it allow that
    #[arg(long, requires = "decision", conflicts_with_all = DECIDING)]
    #[arg(conflicts_with_all = ["discover", "list_agents", "agent", "cwd", "agent_env"])]
    // What is printed is the agent's.
    #[arg(conflicts_with_all = ["keys", "sh", "human", "quiet"])]
    pub exec: bool,

    /// The decision to follow
    #[arg(long, value_name = "FILE|-", requires = "exec")]
    pub decision: Option<PathBuf>,

    /// List the agent's sessions of a directory, newest first
    #[arg(long, requires = "agent", requires = "cwd", conflicts_with_all = DECIDING)]
    #[arg(conflicts_with = "list_agents")]
    pub discover: bool,

    /// With --discover: only what was written to since then (RFC 3339, or seconds since 1970)
    #[arg(long, value_name = "TIME", requires = "discover", value_parser = time)]
    #[arg(hide_short_help = true)]
    pub since: Option<SystemTime>,

    /// Print the agents' table
    #[arg(long, conflicts_with_all = DECIDING, conflicts_with_all = ["agent", "cwd"])]
    #[arg(hide_short_help = true)]
    pub list_agents: bool,

    #[command(flatten)]
    pub output: OutputArgs,

    /// Arguments for the agent, whichever way it is launched
    #[arg(last = true, value_name = "ARG")]
    pub args: Vec<String>,
}

/// The options that only a decision has.
const DECIDING: [&str; 13] = [
    "session_id",
    "row",
    "holders",
    "history",
    "max_failures",
    "min_uptime",
    "on_missing",
    "claim",
    "claimant",
    "fresh_arg",
    "resume_arg",
    "record",
    "args",
];

fn time(text: &str) -> Result<SystemTime, String> {
    if let Ok(seconds) = records::number::parse(text) {
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        return time.ok_or_else(|| "a time that is too late".to_owned());
    }
    records::time::parse(text)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_goes_together() {
        let good = [
            "--agent claude --cwd /",
            "--row - --holders FILE",
            "--row FILE --holders - -- --model x",
            "--agent claude --cwd / --session-id= --fresh-arg -x",
            "--exec --decision -",
            "--exec --decision FILE --agents FILE --timeout 1s --max-age 1m",
            "--discover --agent claude --cwd / --since 1795962381",
            "--discover --agent claude --cwd / --agent-env HOME=/h",
            "--list-agents --agents FILE",
            "--agent claude --cwd / --claim D --claimant 5",
        ];
        let bad = [
            "--exec",
            "--decision -",
            "--exec --decision - --session-id x",
            "--exec --decision - -o action",
            "--exec --decision - --sh -o argv",
            "--exec --decision - -H",
            "--exec --decision - -q",
            "--discover --agent claude",
            "--discover --cwd /",
            "--since 1",
            "--agent claude --cwd / --claim D",
            "--agent claude --cwd / --claimant 5",
            "--max-failures 0",
            "--min-uptime -1",
            "--on-missing perhaps",
            "--list-agents --agent x",
        ];
        let parse =
            |line: &str| Args::try_parse_from(std::iter::once("resume-id").chain(line.split(' ')));
        for line in good {
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
        }
        for line in bad {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
