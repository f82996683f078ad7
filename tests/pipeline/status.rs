//! Several records, one exit status: the worst, in the order 125, 65, 124, 3, 1, 0.

use serde_json::{Value, json};

use crate::stage::{Ran, command, run};
use crate::support::{Sandbox, until_dead};

/// Records of a process that is dead, of one that is another now, and of one in another namespace.
struct Cast {
    sandbox: Sandbox,
    dead: Value,
    recycled: Value,
    elsewhere: Value,
    alive: Value,
    _child: crate::support::Killed,
}

impl Cast {
    fn new() -> Cast {
        let sandbox = Sandbox::new();
        let (child, ident) = sandbox.sleeper();
        let (mut short, dead) = sandbox.sleeper();
        short.0.kill().unwrap();
        until_dead(dead.pid().get());
        short.0.wait().unwrap();
        let with = |field: usize, value: &str| {
            let text = ident.to_string();
            let mut fields: Vec<&str> = text.split(':').collect();
            fields[field] = value;
            fields.join(":")
        };
        let other = with(4, "1").rsplit_once(':').unwrap().0.to_owned() + ":1";
        let process = |ident: String| json!({"type": "process", "pid": 2, "ident": ident});
        let mut elsewhere = with(2, "4026539999");
        elsewhere.truncate(elsewhere.rfind(':').unwrap());
        let record = |mut record: Value| {
            let ident = record["ident"].as_str().unwrap().to_owned();
            let pid: i32 = ident.split(':').nth(3).unwrap().parse().unwrap();
            record["pid"] = json!(pid);
            record
        };
        Cast {
            dead: record(process(dead.to_string())),
            recycled: record(process(other)),
            elsewhere: record(process(elsewhere + ":0")),
            alive: record(process(ident.to_string())),
            sandbox,
            _child: child,
        }
    }
}

/// All selections of the lines of a table, forwards and backwards, and the status of each.
fn selections<'a>(table: &'a [(i32, String)], order: &'a [i32]) -> Vec<(Vec<&'a str>, i32)> {
    let mut all = Vec::new();
    for mask in 0..1_u32 << table.len() {
        let chosen = table
            .iter()
            .enumerate()
            .filter(|(at, _)| mask & (1 << at) != 0);
        let chosen: Vec<_> = chosen.map(|(_, entry)| entry).collect();
        let worst = order
            .iter()
            .find(|code| chosen.iter().any(|(of, _)| of == *code));
        let mut lines: Vec<&str> = chosen.iter().map(|(_, line)| line.as_str()).collect();
        all.push((lines.clone(), *worst.unwrap_or(&0)));
        lines.reverse();
        all.push((lines, *worst.unwrap_or(&0)));
    }
    all
}

const ORDER: [i32; 6] = [125, 65, 124, 3, 1, 0];

#[test]
fn of_reap() {
    let cast = Cast::new();
    let table = [
        (0, cast.dead.to_string()),
        (1, cast.recycled.to_string()),
        (3, cast.elsewhere.to_string()),
        (65, "no record".to_owned()),
    ];
    for (lines, expected) in selections(&table, &ORDER) {
        let input = lines.join("\n") + "\n";
        let input = if lines.is_empty() { "" } else { &input };
        let ran = run(&cast.sandbox, ("reap", &[]), input.as_bytes());
        assert_eq!(ran.code, Some(expected), "{lines:#?}: {ran:?}");
        // Output that cannot be written is worse than all of it.
        if lines.iter().any(|line| *line != "no record") {
            std::fs::write(cast.sandbox.path("in"), input).unwrap();
            let output = command(&cast.sandbox, ("reap", &[]))
                .stdin(std::fs::File::open(cast.sandbox.path("in")).unwrap())
                .stdout(
                    std::fs::File::options()
                        .write(true)
                        .open("/dev/full")
                        .unwrap(),
                )
                .output()
                .unwrap();
            assert_eq!(Ran::of(output).code, Some(125), "{lines:#?}");
        }
    }
}

#[test]
fn of_verify() {
    let cast = Cast::new();
    let table = [
        (0, cast.alive.to_string()),
        (1, cast.dead.to_string()),
        (1, cast.recycled.to_string()),
        (3, cast.elsewhere.to_string()),
        (65, "no record".to_owned()),
    ];
    for (lines, expected) in selections(&table, &ORDER) {
        let input = lines.join("\n") + "\n";
        let input = if lines.is_empty() { "" } else { &input };
        // Nothing is not "all of them match".
        let expected = if lines.is_empty() { 1 } else { expected };
        let ran = run(&cast.sandbox, ("pane-ident", &["verify"]), input.as_bytes());
        assert_eq!(ran.code, Some(expected), "{lines:#?}: {ran:?}");
    }
}

/// The states of rows are answers; only a look that was not complete, or no row, is none.
#[test]
fn of_a_registry() {
    let cast = Cast::new();
    let rows = [&cast.alive, &cast.dead, &cast.recycled, &cast.elsewhere];
    let input: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let job: (&str, &[&str]) = ("holder-scan", &["--registry", "-", "-o", "holding.state"]);
    let ran = run(&cast.sandbox, job, input.as_bytes());
    assert_eq!(
        ran.lines(),
        ["alive", "dead", "recycled", "unknown"],
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = run(&cast.sandbox, job, (input + "no row\n").as_bytes());
    assert_eq!(ran.code, Some(65), "{ran:?}");
}
