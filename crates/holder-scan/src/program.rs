//! What program a process runs, as far as its arguments and its executable say.

use agents::signs::Signs;

use crate::names::{
    CARRIERS, INTERPRETERS, LAUNCHERS, OPTIONS, OWN_TOOLS, READERS, SHELL_STARTERS, SHELLS,
    UNMISTAKABLE,
};

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

/// Whether a process with these arguments only starts another, as `timeout` does.
pub fn launches(argv: &[Vec<u8>]) -> bool {
    let called = argv.first().map(Vec::as_slice).unwrap_or_default();
    let script = script(argv, None).map(|(_, path)| path);
    let is = |path: &[u8]| is_one_of(LAUNCHERS, base(path));
    is(called) || script.is_some_and(is)
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

/// Whether `words` run a program that only names things.
pub fn run_a_namer(words: &[&[u8]]) -> bool {
    let command = words.get(command_in(words)).copied().unwrap_or_default();
    let kind = kind_of_command(command);
    matches!(kind, Kind::Reader | Kind::Carrier | Kind::OwnTool)
}

/// `words` up to one that is a program of this suite, which what is behind is said to, as in
/// `cargo run --bin holder-scan -- --session-id ID`.
pub fn before_own_tool<'w, 'a>(words: &'w [&'a [u8]]) -> &'w [&'a [u8]] {
    // Shell text may end in such a name.
    let is_tool = |word: &&[u8]| !word.contains(&b' ') && is_one_of(UNMISTAKABLE, base(word));
    let end = words.iter().position(is_tool).unwrap_or(words.len());
    &words[..end]
}

/// The first argument of an interpreter that is no option: the script that it runs.
fn script<'a, A: AsRef<[u8]>>(argv: &'a [A], exe: Option<&[u8]>) -> Option<(usize, &'a [u8])> {
    let called = argv.first()?.as_ref();
    let names = || [Some(called), exe].into_iter().flatten().map(base);
    let family = family(names().find(|name| is_interpreter(name))?);
    let is_shell = names().any(is_shell);
    let known = OPTIONS.iter().find(|(names, ..)| is_one_of(names, family));
    let option = |argument: &[u8]| match known {
        _ if is_shell => option_of_shell(argument),
        Some((_, _, with_text)) if is_one_of(with_text, argument) => Opt::Text,
        Some((_, with_value, _)) if is_one_of(with_value, argument) => Opt::Value,
        _ => Opt::Alone,
    };
    // `deno run script`, `bun run script`.
    let mut may_run = is_one_of("bun deno", family);
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
            b"run" if std::mem::take(&mut may_run) => {}
            [b'-', ..] => match option(argument) {
                Opt::Text => return None,
                followed => skip = followed == Opt::Value,
            },
            [b'+', _, ..] if is_shell => skip = option(argument) == Opt::Value,
            _ => return Some((index, argument)),
        }
    }
    None
}

/// What follows an option of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opt {
    /// The program's text, there or on stdin, so that there is no script.
    Text,
    /// A value.
    Value,
    /// The next argument, which has nothing to do with it.
    Alone,
}

/// The options of shells, also bundled (`-euo pipefail`) and with `+`.
fn option_of_shell(option: &[u8]) -> Opt {
    let has = |letters: &[u8]| option.iter().any(|letter| letters.contains(letter));
    match option {
        b"--rcfile" | b"--init-file" => Opt::Value,
        [b'-', b'-', ..] => Opt::Alone,
        [b'-', ..] if has(b"cs") => Opt::Text,
        _ if has(b"oO") => Opt::Value,
        _ => Opt::Alone,
    }
}

/// Whether `option` of the shell `called` says that the next argument is shell text: `-c`, also
/// bundled as in `-lc`.
fn is_shell_text(called: &[u8], option: &[u8]) -> bool {
    takes_text(called) && !option.starts_with(b"--") && option.contains(&b'c')
}

/// Whether `called` is a shell or what starts one, so that it may be given shell text.
pub fn takes_text(called: &[u8]) -> bool {
    is_shell(base(called)) || is_one_of(SHELL_STARTERS, base(called))
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

/// Whether a program of this name is a shell; a login shell is called `-bash`.
fn is_shell(name: &[u8]) -> bool {
    is_one_of(SHELLS, name.strip_prefix(b"-").unwrap_or(name))
}

fn is_interpreter(name: &[u8]) -> bool {
    is_shell(name) || is_one_of(INTERPRETERS, family(name))
}

/// `name` without a version at its end.
fn family(name: &[u8]) -> &[u8] {
    let version = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let end = name.iter().rposition(|byte| !version(byte));
    &name[..end.map_or(0, |at| at + 1)]
}

/// Whether `name` is a word of `words`, one of the lists of `names`.
fn is_one_of(words: &str, name: &[u8]) -> bool {
    let mut words = words.as_bytes().split(|&byte| byte == b' ');
    !name.is_empty() && words.any(|word| word == name)
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
        let table: [(&[&str], Option<&str>); 22] = [
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
            (&["bash", "-euo", "pipefail", "start.sh"], Some("start.sh")),
            (&["bash", "+o", "posix", "start.sh"], Some("start.sh")),
            (&["/bin/sh", "-e", "start.sh"], Some("start.sh")),
            (&["-bash", "-p", "start.sh"], Some("start.sh")),
            (&["bash", "--norc", "start.sh"], Some("start.sh")),
            (&["bash", "-s", "start.sh"], None),
            (&["node", "-e", "text", "w.js"], None),
            (&["perl", "-w", "w.pl"], Some("w.pl")),
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
    fn the_value_of_an_option_is_no_script() {
        for line in [
            "node --env-file e.env w {}",
            "node --disable-warning X w {}",
            "node --unhandled-rejections strict w {}",
            "node --watch-path . --watch w {}",
            "node -r mod --require mod --import mod --loader x -C cond w {}",
            "/usr/bin/node-20 --env-file=e.env w {}",
            "tsx --tsconfig t.json w {}",
            "python3.11 -X dev -W ignore w {}",
            "ruby3.1 -I lib -r json -W w {}",
            "perl -W -I lib w {}",
            "java -cp x -Da=b w {}",
            "java -p mods -jar w {}",
            "deno run --config c -A w {}",
            "deno --log-level debug run -c x w {}",
            "bun --cwd /x run w {}",
            "bun run --env-file e w {}",
            "php -d a=b -f w {}",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(script_of(&words).as_deref(), Some("w"), "{line}");
        }
        assert_eq!(script_of(&["php", "-r", "text", "w"]), None);
        assert_eq!(script_of(&["bun", "run", "run"]).as_deref(), Some("run"));
    }

    #[test]
    fn kinds_of_programs() {
        let table: [(&[&str], Kind); 14] = [
            (&["vim", "x"], Kind::Reader),
            (&["tmux: server (1)", "x"], Kind::Carrier),
            (&["/usr/bin/tmux", "new"], Kind::Carrier),
            (&["ssh", "host"], Kind::Carrier),
            (&["sshpass", "-e", "ssh", "host"], Kind::Carrier),
            (&["SCREEN", "-dmS", "x"], Kind::Carrier),
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
