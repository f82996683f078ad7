//! `man/`: what clap knows of a tool, and the sections of its own text, which `--help` prints too.

use clap_mangen::Man;

use crate::manual::{self, Section};
use crate::{at_top, commands, compare};

/// When what the pages say was last gone through. Part of every page's head.
const DATE: &str = "2026-11-29";

#[test]
fn pages_say_what_the_definitions_say() {
    for command in commands() {
        let path = format!("man/{}.1", command.get_name());
        compare(&path, &page(command));
    }
}

#[test]
fn the_common_page_says_what_its_text_says() {
    let text = std::fs::read_to_string(at_top("man/muxutils.txt")).unwrap();
    let sections = manual::sections(&text);
    let body: String = sections.iter().map(Section::roff).collect();
    let head = head("MUXUTILS", "7");
    compare("man/muxutils.7", &format!("{head}{body}"));
}

#[test]
fn every_page_has_the_sections_that_readers_look_for() {
    for command in commands() {
        let text = text_of(&command);
        let titles: Vec<&str> = manual::sections(&text)
            .iter()
            .map(|section| section.title)
            .collect();
        for title in [
            "DESCRIPTION",
            "RECORDS",
            "EXIT STATUS",
            "EXAMPLES",
            "SEE ALSO",
            "BUGS",
        ] {
            let name = command.get_name();
            assert!(titles.contains(&title), "{name} has no {title}");
        }
        let long = text.lines().find(|line| line.len() > 80);
        assert_eq!(long, None, "a line that breaks on a terminal");
    }
}

fn head(title: &str, section: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {title} {section} {DATE} \"muxutils {version}\" \"muxutils manual\"\n")
}

/// The text that follows the options in `--help`.
fn text_of(command: &clap::Command) -> String {
    let text = command.get_after_long_help();
    text.unwrap_or_else(|| panic!("{} has no manual", command.get_name()))
        .to_string()
}

fn page(mut command: clap::Command) -> String {
    // clap_mangen leaves out what is told only in the long help.
    let told = |arg: clap::Arg| arg.hide_short_help(false);
    command = command
        .mut_args(told)
        .mut_subcommands(move |job| job.mut_args(told));
    let text = text_of(&command);
    command.build();
    let name = command.get_name().to_owned();
    let mut page = head(&name.to_uppercase(), "1");
    let man = Man::new(command.clone());
    page.push_str(&part(|out| man.render_name_section(out)));
    page.push_str(&synopsis(&command));
    let description = description(&command);
    page.push_str(&description);
    let mut own = manual::sections(&text).into_iter();
    let more = own.next().unwrap();
    assert_eq!(more.title, "DESCRIPTION");
    page.push_str(&more.body(description.lines().count() == 1));
    page.push_str(&options(&command));
    own.for_each(|section| page.push_str(&section.roff()));
    page
}

/// What clap_mangen writes, without the macro for apostrophes that it puts before every part: the
/// plain escape takes its place.
fn part(render: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with(".ie ") && !line.starts_with(".el "));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    // One break is what it means by a break, an empty line, and a break.
    let lines = lines.replace(".br\n\n.br\n", ".br\n");
    lines.replace("\\*(Aq", "\\(aq")
}

/// The description, without the first sentence: the page's name has it already.
fn description(command: &clap::Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let long = command.get_long_about().map(ToString::to_string);
    let (about, long) = (about.unwrap_or_default(), long.unwrap_or_default());
    let rest = long.strip_prefix(&about).unwrap_or(&long).trim_start();
    if rest.is_empty() {
        return ".SH DESCRIPTION\n".to_owned();
    }
    let rest = clap::Command::new("").long_about(rest.to_owned());
    part(|out| Man::new(rest).render_description_section(out))
}

/// The subcommands that a tool has of its own; or the tool itself.
fn jobs(command: &clap::Command) -> Vec<clap::Command> {
    let jobs: Vec<_> = command.get_subcommands().cloned().collect();
    match jobs.is_empty() {
        true => vec![command.clone()],
        false => jobs,
    }
}

fn synopsis(command: &clap::Command) -> String {
    let name = command.get_name();
    let mut lines = Vec::new();
    for mut job in jobs(command) {
        let usage = job.render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
        for line in usage.lines().map(str::trim) {
            let rest = line.strip_prefix(name).unwrap_or(line).replace('-', "\\-");
            let name = name.replace('-', "\\-");
            lines.push(format!("\\fB{name}\\fR{rest}\n"));
        }
    }
    format!(".SH SYNOPSIS\n{}", lines.join(".br\n"))
}

fn options(command: &clap::Command) -> String {
    let mut page = ".SH OPTIONS\n".to_owned();
    for job in jobs(command) {
        let rendered = part(|out| Man::new(job.clone()).render_options_section(out));
        let headings: Vec<_> = job
            .get_arguments()
            .filter_map(|arg| arg.get_help_heading())
            .collect();
        let of_the_tool = job.get_name() == command.get_name();
        if !of_the_tool {
            page.push_str(&format!(".SS {}\n", job.get_name()));
        }
        for line in rendered.lines() {
            let Some(title) = line.strip_prefix(".SH ") else {
                page.push_str(&format!("{line}\n"));
                continue;
            };
            let title = title.trim_matches('"');
            let heading = headings
                .iter()
                .find(|heading| heading.to_uppercase() == title);
            if let (Some(heading), true) = (heading, of_the_tool) {
                page.push_str(&format!(".SS \"{heading}\"\n"));
            }
        }
    }
    page
}
