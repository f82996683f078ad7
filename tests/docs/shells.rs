//! The completions in the real shells: an option and a value of each tool.

use std::path::Path;
use std::process::{Command, Stdio};

use clap_complete::Shell;

use crate::at_top;
use crate::completions::file;

/// What is typed before the key is pressed, and what it becomes. `notes.txt` is the one file there.
const TYPED: [(&str, &str); 12] = [
    ("detach --ready-t", "detach --ready-timeout"),
    ("detach --log not", "detach --log notes.txt"),
    ("eventwait --beat-", "eventwait --beat-every"),
    ("eventwait --on sta", "eventwait --on status"),
    ("holder-scan --sess", "holder-scan --session-id"),
    ("holder-scan --file not", "holder-scan --file notes.txt"),
    ("pane-ident verify --leg", "pane-ident verify --legacy"),
    (
        "pane-ident verify --only orp",
        "pane-ident verify --only orphaned",
    ),
    ("reap --kill-g", "reap --kill-grace"),
    ("reap --scope pro", "reap --scope process"),
    ("resume-id --on-", "resume-id --on-missing"),
    ("resume-id --on-missing st", "resume-id --on-missing stop"),
];

/// A folder in which `notes.txt` is.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    folder
}

/// Runs a script of a shell and gives what it prints. A shell that is not there is a failure.
fn run(program: &str, words: &[&str], folder: &Path) -> String {
    let output = Command::new("timeout")
        .args(["60", program])
        .args(words)
        .current_dir(folder)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {output:?} {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn tool(typed: &str) -> &str {
    typed.split(' ').next().unwrap()
}

/// The last word is the only candidate.
fn last(line: &str) -> &str {
    line.rsplit(' ').next().unwrap()
}

#[test]
fn in_bash() {
    let folder = folder();
    for (typed, becomes) in TYPED {
        let script = at_top(&file(Shell::Bash, tool(typed)));
        // compopt complains where no completion is going on.
        let line = r#"
            set -- $1
            . "$0" && complete -p "$1" >spec
            function=$(sed 's/.*-F \([^ ]*\) .*/\1/' spec)
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
            "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
            printf '%s\n' "${COMPREPLY[@]}""#;
        let words = ["--norc", "-c", line, script.to_str().unwrap(), typed];
        let candidates = run("bash", &words, folder.path());
        assert_eq!(candidates.trim_end(), last(becomes), "{typed}");
    }
}

#[test]
fn in_fish() {
    let folder = folder();
    for (typed, becomes) in TYPED {
        let script = at_top(&file(Shell::Fish, tool(typed)));
        let line = format!("source {}; complete -C '{typed}'", script.display());
        let candidates = run("fish", &["--no-config", "-c", &line], folder.path());
        let mut words = candidates.lines().map(|line| line.split('\t').next());
        assert_eq!(words.next().flatten(), Some(last(becomes)), "{typed}");
        assert_eq!(words.next(), None, "{typed}: {candidates}");
    }
}

/// zsh completes only in its line editor, so one is run on a pseudo-terminal of zsh's own. It
/// writes the edited line to a file when it gets ^T, and ends after the last one.
#[test]
fn in_zsh() {
    let folder = folder();
    let completions = at_top("completions");
    let rc = format!(
        "unsetopt BEEP; PS1= RPS1= PS2=\n\
         fpath=({} $fpath); autoload -Uz compinit; compinit -u -D\n\
         said() {{ print -r -- $BUFFER >>lines; BUFFER= }}\n\
         ready() {{ print READY; zle -D zle-line-init }}\n\
         zle -N said; bindkey '^T' said; zle -N zle-line-init ready\n",
        completions.display()
    );
    std::fs::write(folder.path().join(".zshrc"), rc).unwrap();
    let typed: String = TYPED
        .iter()
        .map(|(typed, _)| format!("{typed}\t\u{14}"))
        .collect();
    let script = "
        zmodload zsh/zpty
        export TERM=dumb ZDOTDIR=$PWD
        zpty z 'zsh -d -i'
        zpty -r z seen '*READY*'
        zpty -w -n z \"$1\"$'exit\\n'
        while zpty -r z seen; do :; done";
    run("zsh", &["-f", "-c", script, "zsh", &typed], folder.path());
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    let edited = lines.lines().map(|line| line.trim_end_matches([' ', '=']));
    let edited: Vec<&str> = edited.collect();
    let expected: Vec<&str> = TYPED.iter().map(|(_, becomes)| *becomes).collect();
    assert_eq!(edited, expected);
}
