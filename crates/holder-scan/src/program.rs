//! What program a process runs, as far as its arguments and its executable say.

use agents::signs::Signs;

/// Programs that name things and hold none of them: editors, pagers, searchers, listers.
const READERS: &[&str] = &[
    "ack",
    "ag",
    "awk",
    "bat",
    "batcat",
    "cat",
    "code",
    "cp",
    "diff",
    "du",
    "echo",
    "egrep",
    "emacs",
    "emacsclient",
    "fd",
    "fdfind",
    "fgrep",
    "file",
    "find",
    "fuser",
    "fzf",
    "gawk",
    "gdb",
    "git",
    "grep",
    "head",
    "helix",
    "hx",
    "inotifywait",
    "jq",
    "kak",
    "kate",
    "kill",
    "killall",
    "less",
    "ls",
    "lsof",
    "ltrace",
    "mawk",
    "micro",
    "more",
    "most",
    "nano",
    "nvim",
    "pgrep",
    "pkill",
    "printf",
    "ps",
    "rg",
    "rsync",
    "rview",
    "scp",
    "sed",
    "sort",
    "stat",
    "strace",
    "subl",
    "tac",
    "tail",
    "tar",
    "tee",
    "touch",
    "vi",
    "view",
    "vim",
    "vim.basic",
    "vim.tiny",
    "watch",
    "wc",
    "xdg-open",
    "zgrep",
];

/// Programs that carry others to a terminal or a machine: multiplexers, terminals, ssh and
/// container clients. What they were asked to run is in their arguments and runs elsewhere, and
/// what runs below them is no part of them.
const CARRIERS: &[&str] = &[
    "abduco",
    "alacritty",
    "byobu",
    "docker",
    "dtach",
    "et",
    "foot",
    "ghostty",
    "gnome-terminal",
    "gnome-terminal-server",
    "herdr",
    "incus",
    "kitten",
    "kitty",
    "konsole",
    "kubectl",
    "lxc",
    "mosh",
    "mosh-client",
    "mosh-server",
    "nerdctl",
    "podman",
    "screen",
    "ssh",
    "sshd",
    "tmate",
    "tmux",
    "wezterm",
    "wezterm-gui",
    "wezterm-mux-server",
    "xterm",
    "zellij",
];

/// This suite.
const OWN_TOOLS: &[&str] = &[
    "detach",
    "eventwait",
    "holder-scan",
    "pane-ident",
    "reap",
    "resume-id",
];

/// Those of this suite whose names are nothing else, so that they are known behind any program.
const UNMISTAKABLE: &[&str] = &["eventwait", "holder-scan", "pane-ident", "resume-id"];

/// Programs and shell words that stand before a command and start it.
const LAUNCHERS: &[&str] = &[
    "!",
    "builtin",
    "chrt",
    "command",
    "do",
    "doas",
    "elif",
    "else",
    "env",
    "exec",
    "flock",
    "if",
    "ionice",
    "nice",
    "nohup",
    "nsenter",
    "setpriv",
    "setsid",
    "stdbuf",
    "sudo",
    "systemd-run",
    "taskset",
    "then",
    "time",
    "timeout",
    "unbuffer",
    "unshare",
    "until",
    "while",
    "xargs",
];

const SHELLS: &[&str] = &[
    "ash", "bash", "dash", "fish", "ksh", "ksh93", "mksh", "sh", "yash", "zsh",
];

/// Programs other than shells that hand one argument to a shell after `-c`.
const SHELL_STARTERS: &[&str] = &["runuser", "script", "su"];

/// Interpreters that are no shells, without a version at the end.
const INTERPRETERS: &[&str] = &[
    "bun", "deno", "java", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "ts-node", "tsx",
];

/// Options of interpreters that take the next argument with them.
const WITH_VALUE: &[&str] = &[
    "--conditions",
    "--cwd",
    "--experimental-loader",
    "--import",
    "--init-file",
    "--loader",
    "--rcfile",
    "--require",
    "-C",
    "-W",
    "-X",
    "-o",
    "-r",
];

/// Options of interpreters that are followed by the program's text.
const WITH_TEXT: &[&str] = &["--eval", "--print", "-c", "-e", "-p", "-pe"];

/// What a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    /// argv\[0\].
    pub called: &'a [u8],
    /// The file that is executed, where that can be read.
    pub exe: Option<&'a [u8]>,
    /// The script, if the program is an interpreter that was given one, and its index.
    pub script: Option<(usize, &'a [u8])>,
    /// The coding agent that it is.
    pub agent: Option<&'static Signs>,
    /// What it does with the things that its arguments name.
    pub kind: Kind,
}

/// How the arguments of a program are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It may hold what they name.
    Ordinary,
    /// A shell, or what starts one: the argument after `-c` is shell text.
    Shell,
    /// It only names it.
    Reader,
    /// It only names it, and is no part of what runs below it.
    Carrier,
    /// One of this suite, which only names it.
    OwnTool,
}

impl<'a> Program<'a> {
    /// The program of a process with these arguments and this executable.
    pub fn of<A: AsRef<[u8]>>(argv: &'a [A], exe: Option<&'a [u8]>) -> Program<'a> {
        let called = argv.first().map(AsRef::as_ref).unwrap_or_default();
        let exe = exe.map(|exe| exe.strip_suffix(b" (deleted)").unwrap_or(exe));
        let script = script(argv, exe);
        let names = [Some(called), exe, script.map(|(_, path)| path)];
        let agent = names.into_iter().flatten().find_map(Signs::of_program);
        Program {
            called,
            exe,
            script,
            agent,
            kind: kind(called, exe, script.map(|(_, path)| path), agent),
        }
    }

    /// Whether it only names the things in its arguments.
    pub fn only_names(&self) -> bool {
        matches!(self.kind, Kind::Reader | Kind::Carrier | Kind::OwnTool)
    }

    /// Whether `text` names this program: it is argv\[0\] or the interpreter's script, whole or by
    /// its last part.
    pub fn is_called(&self, text: &[u8]) -> bool {
        let is = |path: &[u8]| path == text || base(path) == text;
        is(self.called) || self.script.is_some_and(|(_, path)| is(path))
    }

    /// Whether it is the command `word`, by the last part of either.
    pub fn is_command(&self, word: &[u8]) -> bool {
        let name = base(word);
        !name.is_empty() && (self.is_called(name) || self.exe.is_some_and(|exe| base(exe) == name))
    }
}

/// The agent that a process with these arguments calls itself.
pub fn agent_of(argv: &[&[u8]]) -> Option<&'static Signs> {
    let called = argv.first().copied().unwrap_or_default();
    let script = || script(argv, None).map(|(_, path)| path);
    Signs::of_program(called).or_else(|| script().and_then(Signs::of_program))
}

/// Whether `called` is an interpreter, so that what it runs has a name of its own.
pub fn runs_scripts(called: &[u8]) -> bool {
    is_interpreter(base(called))
}

fn kind(
    called: &[u8],
    exe: Option<&[u8]>,
    script: Option<&[u8]>,
    agent: Option<&'static Signs>,
) -> Kind {
    // Who calls itself an agent is one, whatever file it executes.
    if agent.is_some() {
        return Kind::Ordinary;
    }
    let of = |name: &[u8]| {
        [
            (OWN_TOOLS, Kind::OwnTool),
            (CARRIERS, Kind::Carrier),
            (READERS, Kind::Reader),
            (SHELLS, Kind::Shell),
            (SHELL_STARTERS, Kind::Shell),
        ]
        .into_iter()
        .find_map(|(names, kind)| is_one_of(names, name).then_some(kind))
    };
    // A server of tmux calls itself `tmux: server`, a login shell `-bash`.
    let called = called.split(|&byte| byte == b':').next().unwrap_or(called);
    let called = base(called);
    let called = called.strip_prefix(b"-").unwrap_or(called);
    script
        .and_then(|script| of(base(script)))
        .or_else(|| of(called))
        .or_else(|| exe.and_then(|exe| of(base(exe))))
        .unwrap_or(Kind::Ordinary)
}

/// What the command word of a simple command in shell text is.
pub fn kind_of_command(word: &[u8]) -> Kind {
    kind(word, None, None, Signs::of_program(word))
}

/// Where the command is among `words`, behind assignments and the programs that start it.
pub fn command_in(words: &[&[u8]]) -> usize {
    let mut launched = false;
    let before = words.iter().take_while(|word| {
        let launches = is_one_of(LAUNCHERS, base(word));
        // `timeout -k 5 20s`, `nice -n 5`.
        let of_launcher = launched && matches!(word.first(), Some(b'-' | b'0'..=b'9'));
        launched |= launches;
        launches || of_launcher || is_assignment(word)
    });
    before.count()
}

/// `NAME=VALUE`.
fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|&byte| byte == b'=').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.len() < word.len() && !name.is_empty() && name.iter().all(is_name)
}

/// Whether `words` run a program that only names things: as their command, or as one of this suite
/// anywhere, as in `cargo run --bin holder-scan -- --session-id ID`.
pub fn run_a_namer(words: &[&[u8]]) -> bool {
    let command = words.get(command_in(words)).copied().unwrap_or_default();
    let kind = kind_of_command(command);
    matches!(kind, Kind::Reader | Kind::Carrier | Kind::OwnTool)
        || words
            .iter()
            // Shell text may end in such a name.
            .filter(|word| !word.contains(&b' '))
            .any(|word| is_one_of(UNMISTAKABLE, base(word)))
}

/// The first argument of an interpreter that is no option: the script that it runs.
fn script<'a, A: AsRef<[u8]>>(argv: &'a [A], exe: Option<&[u8]>) -> Option<(usize, &'a [u8])> {
    let called = argv.first()?.as_ref();
    let mut names = [Some(called), exe].into_iter().flatten().map(base);
    if !names.any(is_interpreter) {
        return None;
    }
    let mut skip = false;
    for (index, argument) in argv.iter().enumerate().skip(1) {
        let argument = argument.as_ref();
        if std::mem::take(&mut skip) {
            continue;
        }
        match argument {
            b"--" => {
                let script = argv.get(index + 1)?;
                return Some((index + 1, script.as_ref()));
            }
            // `deno run script`, `bun run script`.
            b"run" if index == 1 && is_one_of(&["bun", "deno"], base(called)) => {}
            [b'-', ..] if is_one_of(WITH_TEXT, argument) || is_shell_text(called, argument) => {
                return None;
            }
            [b'-', ..] => skip = is_one_of(WITH_VALUE, argument),
            _ => return Some((index, argument)),
        }
    }
    None
}

/// Whether `option` of the shell `called` says that the next argument is shell text: `-c`, also
/// bundled as in `-lc`.
fn is_shell_text(called: &[u8], option: &[u8]) -> bool {
    let called = called.strip_prefix(b"-").unwrap_or(called);
    let takes_text = is_one_of(SHELLS, base(called)) || is_one_of(SHELL_STARTERS, base(called));
    takes_text && !option.starts_with(b"--") && option.contains(&b'c')
}

/// The argument of a shell that is shell text, and its index.
pub fn shell_text<A: AsRef<[u8]>>(argv: &[A]) -> Option<(usize, &[u8])> {
    let called = argv.first()?.as_ref();
    let option = argv.iter().skip(1).position(|argument| {
        argument.as_ref().starts_with(b"-") && is_shell_text(called, argument.as_ref())
    })?;
    // Options may stand between `-c` and the text.
    argv.iter()
        .enumerate()
        .skip(option + 2)
        .map(|(index, argument)| (index, argument.as_ref()))
        .find(|(_, argument)| !argument.starts_with(b"-"))
}

fn is_interpreter(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let version = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let end = name
        .iter()
        .rposition(|byte| !version(byte))
        .map_or(0, |at| at + 1);
    let family = &name[..end];
    is_one_of(SHELLS, name) || is_one_of(INTERPRETERS, family)
}

fn is_one_of(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}

/// The last part of a path.
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script_of(argv: &[&str]) -> Option<String> {
        let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
        let found = Program::of(&argv, None).script?.1;
        Some(String::from_utf8(found.to_vec()).unwrap())
    }

    #[test]
    fn the_script_is_the_first_argument_that_is_no_option() {
        let table: [(&[&str], Option<&str>); 14] = [
            (&["node", "/x/w.js", "{}"], Some("/x/w.js")),
            (
                &["/usr/bin/node", "--inspect", "-r", "m", "w.js"],
                Some("w.js"),
            ),
            (&["python3.11", "-u", "w.py"], Some("w.py")),
            (&["python3", "-m", "pkg", "x"], Some("pkg")),
            (&["python3", "-c", "text", "w.py"], None),
            (&["node-20", "w.js"], Some("w.js")),
            (&["deno", "run", "--allow-net", "w.ts"], Some("w.ts")),
            (&["bash", "-eu", "start.sh"], Some("start.sh")),
            (&["bash", "-o", "pipefail", "start.sh"], Some("start.sh")),
            (&["bash", "-lc", "start.sh"], None),
            (&["-bash"], None),
            (&["vim", "w.js"], None),
            (&["node", "--", "w.js"], Some("w.js")),
            (&[], None),
        ];
        for (argv, want) in table {
            assert_eq!(script_of(argv).as_deref(), want, "{argv:?}");
        }
    }

    #[test]
    fn kinds_of_programs() {
        let table: [(&[&str], Kind); 12] = [
            (&["vim", "x"], Kind::Reader),
            (&["tmux: server (1)", "x"], Kind::Carrier),
            (&["/usr/bin/tmux", "new"], Kind::Carrier),
            (&["ssh", "host"], Kind::Carrier),
            (&["/opt/bin/reap"], Kind::OwnTool),
            (&["-zsh", "-c", "x"], Kind::Shell),
            (&["claude", "x"], Kind::Ordinary),
            (&["node", "/x/w.js"], Kind::Ordinary),
            (&["su", "u", "-c", "x"], Kind::Shell),
            (&["/bin/sh", "/usr/bin/zgrep", "x"], Kind::Reader),
            (&["python3", "/usr/bin/ag"], Kind::Reader),
            (&[""], Kind::Ordinary),
        ];
        for (argv, want) in table {
            let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(Program::of(&argv, None).kind, want, "{argv:?}");
        }
        let argv: [&[u8]; 2] = [b"claude", b"--resume"];
        let program = Program::of(&argv, Some(b"/usr/bin/tail"));
        assert_eq!(program.kind, Kind::Ordinary, "it calls itself an agent");
    }

    #[test]
    fn the_text_after_c() {
        let table: [(&[&str], Option<usize>); 6] = [
            (&["sh", "-c", "text"], Some(2)),
            (&["bash", "-lc", "text", "name"], Some(2)),
            (&["bash", "-c", "-e", "text"], Some(3)),
            (&["bash", "--norc", "-c", "text"], Some(3)),
            (&["su", "-", "user", "-c", "text"], Some(4)),
            (&["python3", "-c", "text"], None),
        ];
        for (argv, want) in table {
            let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(shell_text(&argv).map(|(index, _)| index), want, "{argv:?}");
        }
    }

    #[test]
    fn programs_are_called_by_name() {
        let argv: [&[u8]; 3] = [b"/usr/bin/node", b"/opt/x/wrapper.js", b"{}"];
        let program = Program::of(&argv, None);
        assert!(program.is_called(b"wrapper.js"));
        assert!(program.is_called(b"/opt/x/wrapper.js"));
        assert!(program.is_called(b"node"));
        assert!(!program.is_called(b"wrapper"));
        assert!(!program.is_called(b"{}"));
        let editor: [&[u8]; 2] = [b"vim", b"/opt/x/wrapper.js"];
        assert!(!Program::of(&editor, None).is_called(b"wrapper.js"));
    }
}
