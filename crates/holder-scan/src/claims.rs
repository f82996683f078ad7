//! Which sessions a process names in its arguments as its own.

use agents::signs::{FORK_SESSION, RESUME, Role, SESSION_ID, Signs};

use crate::evidence::{By, Evidence};
use crate::id;
use crate::json;
use crate::program::{Program, before_own_tool, run_a_namer, shell_text};
use crate::shell;

/// One session that a process says is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The id, or what stands in its place: a title, `latest`.
    pub id: Vec<u8>,
    /// Where it says so.
    pub evidence: Evidence,
    /// Whether the word can be nothing but an id: of another session if it is not the asked one.
    pub is_id: bool,
}

/// All sessions that the arguments of `program` claim.
pub fn of_argv<A: AsRef<[u8]>>(argv: &[A], program: &Program<'_>) -> Vec<Claim> {
    if program.only_names() {
        return Vec::new();
    }
    let words: Vec<&[u8]> = argv.iter().map(AsRef::as_ref).collect();
    let mut words = words.as_slice();
    if program.agent.is_none() {
        words = before_own_tool(words);
        if run_a_namer(words) {
            return Vec::new();
        }
    }
    let title = rewritten(words);
    if !title.is_empty() {
        let agent = title.first().and_then(|word| Signs::of_program(word));
        let found = in_words(&title, agent.or(program.agent));
        let claims = found.into_iter().map(|found| found.claim(By::Argv, 0));
        return claims.collect();
    }
    let mut claims: Vec<Claim> = in_words(words, program.agent)
        .into_iter()
        .map(|found| {
            let index = found.at;
            found.claim(By::Argv, index)
        })
        .collect();
    for (index, word) in words.iter().enumerate().skip(1) {
        let found = json::Argument::parse(word).map(|json| json.claims());
        claims.extend(of_kind(found.unwrap_or_default(), By::ArgvJson, index));
    }
    if let Some((index, text)) = shell_text(words) {
        claims.extend(of_kind(shell::claims(text), By::ArgvShell, index));
    }
    claims
}

fn of_kind(found: Vec<Found>, by: By, index: usize) -> impl Iterator<Item = Claim> {
    found.into_iter().map(move |found| found.claim(by, index))
}

/// The words of a title that a process has written over its arguments: one string with blanks,
/// what was behind it empty. Otherwise nothing.
fn rewritten<'a>(words: &[&'a [u8]]) -> Vec<&'a [u8]> {
    match words {
        [title, rest @ ..] if rest.iter().all(|word| word.is_empty()) && title.contains(&b' ') => {
            title
                .split(|byte| byte.is_ascii_whitespace())
                .filter(|word| !word.is_empty())
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A session named among words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The index of the flag.
    pub at: usize,
    /// The flag or subcommand.
    pub flag: Vec<u8>,
    /// What stands for the session.
    pub id: Vec<u8>,
    /// Whether nothing but an id can follow that flag.
    pub assigns: bool,
}

impl Found {
    fn claim(self, by: By, index: usize) -> Claim {
        Claim {
            is_id: self.assigns || id::looks_like_one(&self.id),
            evidence: Evidence::after_flag(by, index, &self.flag),
            id: self.id,
        }
    }
}

/// The sessions that `words`, the arguments of a program, name as the program's own. `agent` is
/// what the program is: the flags of an agent's own count only there.
///
/// The id that is resumed with a fork flag beside it is not held; the id that is assigned there is.
pub fn in_words(words: &[&[u8]], agent: Option<&'static Signs>) -> Vec<Found> {
    let words = &words[..end_of_options(words, agent)];
    let forked = is_forked(words, agent);
    let operands = match agent {
        Some(agent) if !agent.subcommands.is_empty() && !forked => operands(words),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let next = words.get(at + 1).copied();
        if let Some((flag, role, value)) = flag_and_value(word, next, agent) {
            if role == Role::Assign || !forked {
                found.push(Found {
                    at,
                    flag: flag.as_bytes().to_vec(),
                    id: id_in_value(value).to_vec(),
                    assigns: role == Role::Assign,
                });
            }
        } else if let Some(Some(value)) = operands.get(at)
            && let Some(subcommand) = subcommand(word, agent)
        {
            found.push(Found {
                at,
                flag: subcommand.as_bytes().to_vec(),
                id: id_in_value(value).to_vec(),
                assigns: false,
            });
        }
    }
    found
}

/// Whether `words` ask for a copy of the session that they name. The subcommand for it stands where
/// the one that resumes would; behind that it is a prompt.
fn is_forked(words: &[&[u8]], agent: Option<&'static Signs>) -> bool {
    let is_any = |known: &[&str], word: &[u8]| known.iter().any(|known| known.as_bytes() == word);
    let (forks, resumes) =
        agent.map_or((&[][..], &[][..]), |agent| (agent.forks, agent.subcommands));
    let mut resumed = false;
    words.iter().skip(1).any(|word| {
        resumed |= is_any(resumes, word);
        let is_flag = word.starts_with(b"-");
        *word == FORK_SESSION.as_bytes() || (is_any(forks, word) && (is_flag || !resumed))
    })
}

/// Where the options of a program end. What an agent is given behind `--` is text for it, unless
/// that is an agent's command line again, as behind a host process.
fn end_of_options(words: &[&[u8]], agent: Option<&'static Signs>) -> usize {
    let end = words.iter().position(|word| *word == b"--");
    match end {
        Some(end) if agent.is_some() => {
            let next = words.get(end + 1);
            let goes_on = next.is_some_and(|next| Signs::of_program(next).is_some());
            if goes_on { words.len() } else { end }
        }
        _ => words.len(),
    }
}

/// `FLAG ID`, `FLAG=ID` and, for short flags, `-rID`.
fn flag_and_value<'a>(
    word: &'a [u8],
    next: Option<&'a [u8]>,
    agent: Option<&'static Signs>,
) -> Option<(&'static str, Role, &'a [u8])> {
    if word.first() != Some(&b'-') {
        return None;
    }
    let anywhere = [(SESSION_ID, Role::Assign), (RESUME, Role::Resume)];
    let own = agent.map_or(&[][..], |agent| agent.flags);
    let flags = own
        .iter()
        .map(|flag| (flag.text, flag.role))
        .chain(anywhere);
    for (flag, role) in flags {
        let Some(rest) = word.strip_prefix(flag.as_bytes()) else {
            continue;
        };
        let value = match rest {
            [] => next.filter(|next| !next.starts_with(b"-")),
            [b'=', value @ ..] => Some(value),
            value if flag.len() == 2 => Some(value),
            _ => None,
        };
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            return Some((flag, role, value));
        }
    }
    None
}

/// The subcommand of the agent's that `word` is, if it is one after which an id comes.
fn subcommand(word: &[u8], agent: Option<&'static Signs>) -> Option<&'static str> {
    let known = agent?.subcommands.iter();
    known.copied().find(|known| known.as_bytes() == word)
}

/// For each of `words` what a subcommand in its place would name: the first word behind it that
/// can only be an id, since options may stand between and a prompt behind, else the first that is
/// no option.
fn operands<'a>(words: &[&'a [u8]]) -> Vec<Option<&'a [u8]>> {
    let (mut id, mut operand) = (None, None);
    let from_the_last = words.iter().rev().map(|&word| {
        let behind = id.or(operand);
        if id::looks_like_one(word) {
            id = Some(word);
        }
        if !word.starts_with(b"-") {
            operand = Some(word);
        }
        behind
    });
    let mut operands: Vec<_> = from_the_last.collect();
    operands.reverse();
    operands
}

/// The id that a flag's value names: itself, or the end of the name of a transcript's file.
fn id_in_value(value: &[u8]) -> &[u8] {
    let Some(path) = value.strip_suffix(b".jsonl") else {
        return value;
    };
    let stem = crate::program::base(path);
    let tail = stem.len().checked_sub(36).map(|at| stem.split_at(at));
    match tail {
        Some(([.., b'-' | b'_'], uuid)) if id::is_uuid(uuid) => uuid,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "00000000-0000-4000-8000-0000000000a1";
    const B: &str = "00000000-0000-4000-8000-0000000000b2";

    /// What the arguments claim, as `by:index:flag:id`, in one string.
    fn claims(argv: &[&str]) -> String {
        let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
        let program = Program::of(&argv, None);
        let shown = of_argv(&argv, &program).into_iter().map(|claim| {
            let by = serde_json::to_string(&claim.evidence.by).unwrap();
            let id = String::from_utf8(claim.id).unwrap();
            let id = id.replace(A, "A").replace(B, "B");
            let flag = claim.evidence.flag.unwrap();
            let index = claim.evidence.index.unwrap();
            format!("{}:{index}:{flag}:{id}", by.trim_matches('"'))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_and_their_forms() {
        let joined = format!("-r{A}");
        let equals = format!("--session-id={A}");
        let path = format!("/h/.claude/projects/-w/{A}.jsonl");
        let rollout = format!("/c/rollout-2026-11-29T14-26-21-{A}.jsonl");
        let table: &[(&[&str], &str)] = &[
            (&["claude", "--session-id", A], "argv:1:--session-id:A"),
            (&["claude", &equals], "argv:1:--session-id:A"),
            (&["anything", "--session-id", A], "argv:1:--session-id:A"),
            (&["anything", "--resume", A], "argv:1:--resume:A"),
            (&["claude", "--resume", "--verbose", A], ""),
            (&["claude", "--RESUME", A], ""),
            (&["claude", "-r", A], "argv:1:-r:A"),
            (&["claude", &joined], "argv:1:-r:A"),
            (&["/bin/sh", "/opt/bin/claude", "-r", A], "argv:2:-r:A"),
            (&["screen", "-r", A], ""),
            (&["anything", "-r", A], ""),
            (&["grep", "-r", A, "."], ""),
            (&["rg", "-s", A], ""),
            (&["grep", "--resume", A], ""),
            (&["opencode", "-s", A], "argv:1:-s:A"),
            (&["grok", "-s", A], "argv:1:-s:A"),
            (&["agy", "--conversation", A], "argv:1:--conversation:A"),
            (&["codex", "resume", A], "argv:1:resume:A"),
            (
                &["codex", "exec", "resume", "-c", "x=1", A, "go on"],
                "argv:2:resume:A",
            ),
            (&["codex", "resume", "--last"], ""),
            (&["git", "resume", A], ""),
            (&["claude", "--resume", &path], "argv:1:--resume:A"),
            (&["pi", "--session", &rollout], "argv:1:--session:A"),
            (&["claude", "-p", "--", "--session-id", A], ""),
            (
                &[
                    "claude",
                    "bg-pty-host",
                    "--",
                    "claude.exe",
                    "--session-id",
                    A,
                ],
                "argv:4:--session-id:A",
            ),
            (
                &["wrapper", "--", "claude", "--session-id", A],
                "argv:3:--session-id:A",
            ),
            (&["vim", "--session-id", A], ""),
            (&["tmux: server", "new", "--session-id", A], ""),
            (&["reap", "--session-id", A], ""),
            (
                &[
                    "cargo",
                    "run",
                    "--bin",
                    "holder-scan",
                    "--",
                    "--session-id",
                    A,
                ],
                "",
            ),
            (
                &["w", "--session-id", A, "--then", "/opt/eventwait"],
                "argv:1:--session-id:A",
            ),
            (
                &["timeout", "-k", "1", "20s", "reap", "--session-id", A],
                "",
            ),
            (
                &["sudo", "-u", "u", "/opt/holder-scan", "--session-id", A],
                "",
            ),
            (
                &[
                    "cargo",
                    "run",
                    "--bin",
                    "holder-scan",
                    "--",
                    "--session-id",
                    A,
                ],
                "",
            ),
            (&["env", "A=b", "ssh", "host", "claude", "--resume", A], ""),
            (
                &["timeout", "9", "claude", "--resume", A],
                "argv:3:--resume:A",
            ),
            (&["claude", "--session-id", ""], ""),
            (&["claude --resume"], ""),
        ];
        for (argv, want) in table {
            assert_eq!(claims(argv), *want, "{argv:?}");
        }
    }

    #[test]
    fn a_fork_reads_one_session_and_holds_another() {
        let table: &[(&[&str], &str)] = &[
            (&["claude", "--resume", A, "--fork-session"], ""),
            (&["claude", "--fork-session", "-r", A], ""),
            (
                &["claude", "--resume", A, "--fork-session", "--session-id", B],
                "argv:4:--session-id:B",
            ),
            (&["grok", "-r", A, "--fork-session", "-s", B], "argv:4:-s:B"),
            (&["opencode", "-s", A, "--fork"], ""),
            (&["opencode", "-s", A], "argv:1:-s:A"),
            (&["codex", "fork", A], ""),
            (&["codex", "-m", "x", "fork", A], ""),
            (&["codex", "resume", A, "fork"], "argv:1:resume:A"),
            (&["codex", "exec", "resume", A, "fork"], "argv:2:resume:A"),
            (&["pi", "--fork", A], ""),
            (&["anything", "--resume", A, "--fork"], "argv:1:--resume:A"),
        ];
        for (argv, want) in table {
            assert_eq!(claims(argv), *want, "{argv:?}");
        }
    }

    #[test]
    fn titles_written_over_the_arguments() {
        let title = format!("claude -r {A} (working)");
        assert_eq!(claims(&[&title]), "argv:0:-r:A");
        assert_eq!(claims(&[&title, "", ""]), "argv:0:-r:A");
        assert_eq!(claims(&["pi", "", ""]), "");
    }

    #[test]
    fn wrappers_carry_it_in_json_or_shell_text() {
        let json = format!(r#"{{"command":"claude","args":["--session-id","{A}"]}}"#);
        let short = format!(r#"{{"command":"/opt/claude","args":["-r","{A}"]}}"#);
        let fork = format!(r#"{{"args":["--resume","{A}","--fork-session"]}}"#);
        let shell = format!("cd /w && exec claude --resume {A}");
        let table: &[(&[&str], &str)] = &[
            (&["node", "w.js", &json], "argv-json:2:--session-id:A"),
            (&["node", "w.js", &short], "argv-json:2:-r:A"),
            (&["node", "w.js", &fork], ""),
            (&["vim", &json, "w.js"], ""),
            (&["sh", "-c", &shell], "argv-shell:2:--resume:A"),
            (&["echo", &shell], ""),
            (&["node", "w.js", &shell], ""),
        ];
        for (argv, want) in table {
            assert_eq!(claims(argv), *want, "{argv:?}");
        }
    }

    /// A command line may have two megabytes of subcommands, and each looks for the id behind it.
    #[test]
    fn many_subcommands_take_no_time() {
        let many = |word: &'static str| std::iter::repeat_n(word, 200_000);
        let started = std::time::Instant::now();
        for (last, found) in [("--x", 0), (A, 200_000)] {
            let words = many("resume").flat_map(|word| [word, "--x"]);
            let argv: Vec<&str> = std::iter::once("codex")
                .chain(words)
                .chain([last])
                .collect();
            let program = Program::of(&argv, None);
            let claims = of_argv(&argv, &program);
            assert_eq!(
                claims
                    .iter()
                    .filter(|claim| claim.id == A.as_bytes())
                    .count(),
                found
            );
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
    }
}
