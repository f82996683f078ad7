//! `-h` and `--help`.

use crate::commands;

/// The lines and columns of a terminal that is not small; the columns are also what help is
/// printed in where there is no terminal.
const SCREENFUL: (usize, usize) = (50, 100);

fn help(mut command: clap::Command, long: bool) -> String {
    let help = match long {
        true => command.render_long_help(),
        false => command.render_help(),
    };
    help.to_string()
}

#[test]
fn the_short_help_is_a_screenful_with_two_examples() {
    for command in commands() {
        let name = command.get_name().to_owned();
        let help = help(command.term_width(SCREENFUL.1), false);
        let lines = help.lines().count();
        assert!(lines <= SCREENFUL.0, "{name} -h has {lines} lines");
        let (_, examples) = help.split_once("Examples:").expect("examples");
        let examples = examples.lines().filter(|line| line.contains(&name));
        assert!(examples.count() >= 2, "{name} -h has no two examples");
    }
}

#[test]
fn the_long_help_has_the_text_of_the_manual() {
    for command in commands() {
        let text = command.get_after_long_help().unwrap().to_string();
        let help = help(command.term_width(80), true);
        assert!(help.contains(text.trim_end()), "lines are broken: {help}");
        assert!(help.contains("Usage: "));
    }
}
