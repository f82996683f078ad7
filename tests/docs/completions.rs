//! `completions/`: for bash, zsh and fish, by the definitions.

use clap_complete::{Shell, generate};

use crate::{commands, compare};

/// The shells, and what each calls the file of a tool.
pub fn file(shell: Shell, tool: &str) -> String {
    match shell {
        Shell::Bash => format!("completions/{tool}.bash"),
        Shell::Zsh => format!("completions/_{tool}"),
        Shell::Fish => format!("completions/{tool}.fish"),
        other => panic!("no completions for {other}"),
    }
}

#[test]
fn completions_say_what_the_definitions_say() {
    for command in commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let tool = command.get_name().to_owned();
            let mut script = Vec::new();
            generate(shell, &mut command.clone(), &tool, &mut script);
            let mut script = String::from_utf8(script).unwrap();
            if shell == Shell::Bash {
                // It takes the hyphen in a tool's name for the blank before a subcommand, but
                // not everywhere (clap_complete 4.6).
                script = script.replace(&tool.replace('-', "__subcmd__"), &tool.replace('-', "__"));
            }
            compare(&file(shell, &tool), &script);
        }
    }
}
