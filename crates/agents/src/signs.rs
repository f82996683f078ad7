//! How an agent shows itself from outside while it runs: its names, the arguments and files that
//! carry a session id, and what it writes down about its live sessions.
//!
//! The facts were measured on the released programs, on Linux; where none could be run they are
//! from its public documentation. Formats that are not documented change within months, so every
//! reader of them takes less where it finds less.

/// What one agent shows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// The agent's name in records and options.
    pub name: &'static str,
    /// Names of its executable or its script, without folder and without `.js`, `.py`, `.exe`.
    pub programs: &'static [&'static str],
    /// What the path of its executable or script holds where it is installed under a name that
    /// says nothing (`…/claude/versions/2.1.332`, `…/index.js`).
    pub places: &'static [&'static str],
    /// Flags of its own that are followed by a session id, beside [`SESSION_ID`] and [`RESUME`].
    pub flags: &'static [Flag],
    /// Words that begin a resumption: the id is an argument after them (`codex resume ID`).
    pub subcommands: &'static [&'static str],
    /// Flags and subcommands that make a copy of the session: the id that is resumed with one of
    /// them beside it is read once and not held.
    pub forks: &'static [&'static str],
    /// Subcommands that make it a daemon which serves several sessions.
    pub daemons: &'static [&'static str],
    /// Where its files are.
    pub home: Home,
    /// Files that a live session has locked by the kernel, below the home; see [`matches_path`].
    pub locks: &'static [&'static str],
    /// Files that a live session writes its conversation to, below the home.
    pub transcripts: &'static [&'static str],
    /// Its own tables of live sessions, below the home.
    pub registries: &'static [Registry],
    /// Variables that it gives the id to what its tools start. It has none of them itself.
    pub variables: &'static [&'static str],
}

/// A flag that is followed by a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag, with its dashes.
    pub text: &'static str,
    /// What the id after it means.
    pub role: Role,
}

/// What a flag does with the id after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It gives the session this id.
    Assign,
    /// It goes on with the session of this id, or copies it where a fork flag is beside it.
    Resume,
}

/// The folder that an agent keeps its files in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The variables that name it, the first that is set wins.
    pub variables: &'static [&'static str],
    /// Its place below the user's own home otherwise; empty if it has none that is known.
    pub default: &'static str,
}

/// A table of live sessions that an agent keeps itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registry {
    /// The file below the home, with `{pid}` where there is one for each process.
    pub path: &'static str,
    /// The key of the session id in a row.
    pub id_key: &'static str,
    /// How a row says which process it means.
    pub start: RowStart,
}

/// How a row of a registry tells the process that it means from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowStart {
    /// Field 22 of `/proc/PID/stat` in the key, with or without `BOOT_ID:` before it.
    Ticks(&'static str),
    /// The time at which the session was opened, RFC 3339 or epoch milliseconds: the process
    /// cannot be younger.
    NotAfter(&'static str),
}

/// The flag that gives a session its id, in whatever program.
pub const SESSION_ID: &str = "--session-id";
/// The flag that resumes a session, in whatever program.
pub const RESUME: &str = "--resume";
/// The flag that makes a resumption a copy, in whatever program.
pub const FORK_SESSION: &str = "--fork-session";

const fn assign(text: &'static str) -> Flag {
    Flag {
        text,
        role: Role::Assign,
    }
}

const fn resume(text: &'static str) -> Flag {
    Flag {
        text,
        role: Role::Resume,
    }
}

const NOTHING: Signs = Signs {
    name: "",
    programs: &[],
    places: &[],
    flags: &[],
    subcommands: &[],
    forks: &[],
    daemons: &[],
    home: Home {
        variables: &[],
        default: "",
    },
    locks: &[],
    transcripts: &[],
    registries: &[],
    variables: &[],
};

/// All agents that are known.
pub static AGENTS: &[Signs] = &[
    Signs {
        name: "claude",
        programs: &["claude", "claude-code"],
        places: &["/@anthropic-ai/claude-code/", "/claude/versions/"],
        flags: &[resume("-r")],
        daemons: &["bg-pty-host", "daemon"],
        home: Home {
            variables: &["CLAUDE_CONFIG_DIR"],
            default: ".claude",
        },
        transcripts: &["projects/*/{id}.jsonl"],
        registries: &[Registry {
            path: "sessions/{pid}.json",
            id_key: "sessionId",
            start: RowStart::Ticks("procStart"),
        }],
        variables: &["CLAUDE_CODE_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "codex",
        programs: &["codex"],
        places: &["/@openai/codex/"],
        subcommands: &["resume"],
        forks: &["fork"],
        daemons: &["app-server", "mcp-server"],
        home: Home {
            variables: &["CODEX_HOME"],
            default: ".codex",
        },
        locks: &["thread-writer-locks/{id}.lock"],
        transcripts: &["sessions/*/*/*/rollout-*-{id}.jsonl"],
        variables: &["CODEX_THREAD_ID", "CODEX_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "opencode",
        programs: &["opencode"],
        places: &["/opencode-ai/"],
        flags: &[resume("-s"), resume("--session")],
        forks: &["--fork"],
        daemons: &["serve", "web", "acp"],
        home: Home {
            variables: &[],
            default: ".local/share/opencode",
        },
        ..NOTHING
    },
    Signs {
        name: "gemini",
        programs: &["gemini"],
        places: &["/@google/gemini-cli/"],
        flags: &[resume("-r")],
        home: Home {
            variables: &[],
            default: ".gemini",
        },
        ..NOTHING
    },
    Signs {
        name: "qwen",
        programs: &["qwen"],
        places: &["/@qwen-code/qwen-code/"],
        flags: &[resume("-r")],
        daemons: &["serve"],
        home: Home {
            variables: &["QWEN_RUNTIME_DIR", "QWEN_HOME"],
            default: ".qwen",
        },
        transcripts: &["projects/*/chats/{id}.jsonl"],
        registries: &[Registry {
            path: "sessions/{pid}.json",
            id_key: "sessionId",
            start: RowStart::Ticks("procStart"),
        }],
        variables: &["QWEN_CODE_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "pi",
        programs: &["pi"],
        places: &["/pi-coding-agent/"],
        flags: &[resume("--session")],
        // `--fork ID` needs no mention here: its id follows a flag that holds nothing.
        home: Home {
            variables: &["PI_CODING_AGENT_DIR"],
            default: ".pi/agent",
        },
        transcripts: &["sessions/*/*_{id}.jsonl"],
        variables: &["PI_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "grok",
        programs: &["grok"],
        places: &["/grok-cli-bin/"],
        flags: &[assign("-s"), resume("-r")],
        daemons: &["leader", "serve"],
        home: Home {
            variables: &["GROK_HOME"],
            default: ".grok",
        },
        transcripts: &["sessions/*/{id}/events.jsonl"],
        registries: &[Registry {
            path: "active_sessions.json",
            id_key: "session_id",
            start: RowStart::NotAfter("opened_at"),
        }],
        variables: &["GROK_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "hermes",
        programs: &["hermes"],
        places: &["/hermes-agent/"],
        flags: &[resume("-r")],
        daemons: &["gateway"],
        home: Home {
            variables: &["HERMES_HOME"],
            default: ".hermes",
        },
        variables: &["HERMES_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "copilot",
        programs: &["copilot"],
        places: &["/@github/copilot"],
        home: Home {
            variables: &["COPILOT_HOME"],
            default: ".copilot",
        },
        locks: &["session-state/{id}/inuse.{pid}.hold"],
        transcripts: &["session-state/{id}/events.jsonl"],
        variables: &["COPILOT_AGENT_SESSION_ID"],
        ..NOTHING
    },
    Signs {
        name: "agy",
        programs: &["agy", "antigravity"],
        flags: &[resume("--conversation")],
        home: Home {
            variables: &[],
            default: ".gemini/antigravity-cli",
        },
        transcripts: &["conversations/{id}.db"],
        ..NOTHING
    },
    Signs {
        name: "cursor-agent",
        programs: &["cursor-agent"],
        home: Home {
            variables: &["CURSOR_CONFIG_DIR"],
            default: ".cursor",
        },
        ..NOTHING
    },
    Signs {
        name: "droid",
        programs: &["droid"],
        flags: &[resume("-r"), resume("-s")],
        ..NOTHING
    },
    Signs {
        name: "cline",
        programs: &["cline"],
        flags: &[resume("--id")],
        ..NOTHING
    },
    Signs {
        name: "amp",
        programs: &["amp"],
        subcommands: &["continue"],
        ..NOTHING
    },
];

impl Signs {
    /// The agent whose executable or script `path` is: argv\[0\], the target of `/proc/PID/exe`, or
    /// the script that an interpreter runs. Not the short name of a process (`comm`), which is
    /// `node` or `MainThread` for half of them.
    pub fn of_program(path: &[u8]) -> Option<&'static Signs> {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let stem = [".js", ".mjs", ".cjs", ".py", ".exe"]
            .iter()
            .find_map(|suffix| file.strip_suffix(suffix.as_bytes()))
            .unwrap_or(file);
        let lies_in = |place: &str| {
            // A place begins with a slash, of which a path has few.
            let mut folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            folders.any(|(at, _)| path[at..].starts_with(place.as_bytes()))
        };
        AGENTS.iter().find(|agent| {
            agent.programs.iter().any(|name| name.as_bytes() == stem)
                || agent.places.iter().any(|place| lies_in(place))
        })
    }
}

/// Whether the end of `path` has the form of `pattern`, for the session `id` (without regard to
/// case). In a pattern `*` stands for anything within one folder's or file's name, `{id}` for the
/// id, `{pid}` for digits.
pub fn matches_path(pattern: &str, path: &[u8], id: &[u8]) -> bool {
    let mut parts = path.rsplit(|&byte| byte == b'/');
    pattern.rsplit('/').all(|form| {
        parts
            .next()
            .is_some_and(|part| part_matches(form, part, id))
    })
}

/// The session id in `path` where its end has the form of `pattern`.
pub fn id_in_path<'a>(pattern: &str, path: &'a [u8]) -> Option<&'a [u8]> {
    let mut found = None;
    let mut parts = path.rsplit(|&byte| byte == b'/');
    for form in pattern.rsplit('/') {
        let part = parts.next()?;
        match form.split_once("{id}") {
            None if part_matches(form, part, b"") => {}
            None => return None,
            Some((before, after)) => {
                let after_fits = |part: &[u8]| part_matches(after, part, b"");
                // An id is a UUID where something of any length stands before it.
                let id = if before.ends_with('*') || before.contains("*") {
                    let end = part.len().checked_sub(after.len())?;
                    part.get(end.checked_sub(UUID_LENGTH)?..end)?
                } else {
                    part.strip_prefix(before.as_bytes())?
                        .strip_suffix(after.as_bytes())?
                };
                let start = id.as_ptr() as usize - part.as_ptr() as usize;
                let fits = part_matches(before, &part[..start], b"")
                    && after_fits(&part[start + id.len()..]);
                found = Some(id).filter(|id| fits && !id.is_empty());
                found?;
            }
        }
    }
    found
}

/// The characters of a UUID in its usual form.
const UUID_LENGTH: usize = 36;

fn part_matches(form: &str, part: &[u8], id: &[u8]) -> bool {
    if form.is_empty() {
        return part.is_empty();
    }
    if let Some(rest) = form.strip_prefix("{id}") {
        let (head, tail) = part.split_at(id.len().min(part.len()));
        return head.eq_ignore_ascii_case(id) && part_matches(rest, tail, id);
    }
    if let Some(rest) = form.strip_prefix("{pid}") {
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
        return digits > 0 && part_matches(rest, &part[digits..], id);
    }
    if let Some(rest) = form.strip_prefix('*') {
        return (0..=part.len()).any(|skip| part_matches(rest, &part[skip..], id));
    }
    let literal = form.find(['*', '{']).unwrap_or(form.len());
    let (literal, rest) = form.split_at(literal.max(1));
    part.strip_prefix(literal.as_bytes())
        .is_some_and(|tail| part_matches(rest, tail, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &[u8] = b"00000000-0000-4000-8000-0000000000a1";

    #[test]
    fn programs_are_known_by_name_or_place() {
        let table = [
            ("claude", Some("claude")),
            ("/usr/local/bin/claude", Some("claude")),
            ("/opt/claude.exe", Some("claude")),
            (
                "/home/u/.local/share/claude/versions/2.1.332",
                Some("claude"),
            ),
            (
                "/home/u/.local/share/claude/versions/2.1.332 (deleted)",
                Some("claude"),
            ),
            (
                "/usr/lib/node_modules/@google/gemini-cli/dist/index.js",
                Some("gemini"),
            ),
            ("/x/qwen.js", Some("qwen")),
            ("pi", Some("pi")),
            ("claudette", None),
            ("/home/claude/run.sh", None),
            ("/usr/bin/node", None),
            ("", None),
        ];
        for (path, agent) in table {
            let found = Signs::of_program(path.as_bytes()).map(|signs| signs.name);
            assert_eq!(found, agent, "{path}");
        }
    }

    #[test]
    fn names_and_flags_are_well_formed() {
        for agent in AGENTS {
            assert!(!agent.name.is_empty() && !agent.programs.is_empty());
            for flag in agent.flags {
                assert!(flag.text.starts_with('-'), "{}", flag.text);
                assert!(
                    ![SESSION_ID, RESUME].contains(&flag.text),
                    "counts anywhere"
                );
            }
            for path in agent.locks.iter().chain(agent.transcripts) {
                assert!(path.contains("{id}"), "{path}");
            }
        }
        let mut names: Vec<_> = AGENTS.iter().map(|agent| agent.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), AGENTS.len());
    }

    #[test]
    fn files_of_a_session_are_known_by_their_path() {
        let id = str::from_utf8(ID).unwrap();
        let table = [
            (
                "projects/*/{id}.jsonl",
                format!("/h/.claude/projects/-w/{id}.jsonl"),
                true,
            ),
            (
                "projects/*/{id}.jsonl",
                format!("/h/.claude/projects/-w/{id}.jsonl.bak"),
                false,
            ),
            (
                "projects/*/{id}.jsonl",
                format!("/h/.claude/projects/{id}.jsonl"),
                false,
            ),
            (
                "projects/*/{id}.jsonl",
                format!("/h/.claude/projects/-w/x{id}.jsonl"),
                false,
            ),
            (
                "sessions/*/*/*/rollout-*-{id}.jsonl",
                format!("/c/sessions/2026/11/29/rollout-2026-11-29T14-26-21-{id}.jsonl"),
                true,
            ),
            (
                "sessions/*/*_{id}.jsonl",
                format!("/p/sessions/--w--/2026_{id}.jsonl"),
                true,
            ),
            (
                "session-state/{id}/inuse.{pid}.hold",
                format!("/c/session-state/{id}/inuse.123.hold"),
                true,
            ),
            (
                "session-state/{id}/inuse.{pid}.hold",
                format!("/c/session-state/{id}/inuse..hold"),
                false,
            ),
            (
                "thread-writer-locks/{id}.lock",
                format!("/c/thread-writer-locks/{}.lock", id.to_uppercase()),
                true,
            ),
        ];
        for (pattern, path, fits) in table {
            assert_eq!(matches_path(pattern, path.as_bytes(), ID), fits, "{path}");
            let found = id_in_path(pattern, path.as_bytes());
            let same = found.is_some_and(|found| found.eq_ignore_ascii_case(ID));
            assert_eq!(same, fits, "{path}: {found:?}");
        }
    }
}
