//! The job of `resume-id`: to decide how a coding agent's session is to be launched, and to say
//! why; and, with `--exec`, to become the agent.
//!
//! | room | what it knows |
//! |---|---|
//! | `args`, `source` | the command line, and where records come from |
//! | `clock` | how long all of it may take |
//! | `told` | the session, as the options and the user's row describe it |
//! | `holders` | who holds it, and whether that look is worth believing |
//! | `history` | how its agents have died |
//! | `decide` | the decision, as a pure function |
//! | `decision` | the decision as a record, with its command lines |
//! | `claim` | which of two launches at the same moment goes ahead |
//! | `look` | the agent's sessions on disk, within the deadline |
//! | `database` | sessions that are rows, and whether their table is there |
//! | `exec` | whether a decision may be followed, and following it |
//! | `discover` | the sessions of a directory |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod claim;
mod clock;
mod database;
mod decide;
mod decision;
mod discover;
mod exec;
mod history;
mod holders;
mod look;
mod source;
mod told;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agents::{Agent, Environment, Store, Table};
use process::Here;
use records::human::{Column, HumanView};
use records::{Deadline, Failure, Output, Record, Status, files, say};
use serde::Serialize;

use args::Args;
use clock::Clock;
use database::Rows;
use decide::{Action, Claim, Disk, Limits, Told};
use decision::{ClaimNote, Making, Words};
use history::{Deaths, History};
use holders::{Look, Place, Reading};
use source::Trust;
use told::{Given, Row, Session};

/// The `resume-id` command.
pub fn main(words: Vec<&'static OsStr>) -> u8 {
    records::tool::main::<Args>("resume-id", words, run)
}

/// The command line of `resume-id`, for what is made of it: manual page, completions.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

const HUMAN: HumanView = &[
    (
        "decision",
        &[
            column("action", 15),
            column("agent", 8),
            column("session_id", 36),
            column("reason", 0),
        ],
    ),
    (
        "session",
        &[
            column("session_id", 36),
            column("state", 14),
            column("modified_at", 24),
            column("turns", 5),
            column("cwd", 0),
        ],
    ),
    (
        "agent",
        &[
            column("name", 12),
            column("ids", 14),
            column("shape", 8),
            column("resume", 0),
        ],
    ),
];

/// The keys of `--list-agents`.
#[rustfmt::skip]
const AGENT_KEYS: &[&str] = &[
    "v", "type", "name", "command", "ids", "shape", "mint", "assign", "resume", "spawn",
    "session_flags", "unset", "blocks", "daemon_shares", "root", "transcripts",
];

const fn column(key: &'static str, width: usize) -> Column {
    Column { key, width }
}

fn run(args: Args) -> Result<Status, Failure> {
    process::unblock(&process::ENDING);
    let clock = Clock::start(args.timeout);
    let keys = if args.list_agents {
        AGENT_KEYS
    } else if args.discover {
        discover::KEYS
    } else {
        decision::KEYS
    };
    args.output.check_keys(&[keys])?;
    let environment = environment(&args.agent_env)?;
    let table = table(args.agents.as_deref(), &environment)?;
    if args.exec {
        return execute(&args, &table, clock);
    }
    if args.list_agents {
        return list_agents(&table, output(&args, clock)).map_err(undecided);
    }
    if args.discover {
        let given = given(&args);
        let agent = agent(&table, &given, &Row::default())?;
        let cwd = told::session(&given, &Row::default(), agent)?.cwd;
        let output = output(&args, clock);
        let deadline = clock.step();
        return discover::run(agent, &environment, &cwd, args.since, deadline, output)
            .map_err(undecided);
    }
    decide_once(&args, &table, &environment, clock)
}

/// What is printed to; a reader that does not read is waited for no longer than anything else.
fn output(args: &Args, clock: Clock) -> Output {
    let mut output = Output::new(&args.output, HUMAN);
    output.set_deadline(clock.step());
    output
}

/// What nobody has read, nobody may act on: past the deadline it cannot be told.
fn undecided(failure: Failure) -> Failure {
    match failure.status() {
        Status::Deadline => Failure::unknown(failure.message()),
        _ => failure,
    }
}

/// The environment that the agent will have: the caller's own, but for what the options say.
fn environment(changes: &[String]) -> Result<Environment, Failure> {
    let mut environment = Environment::own();
    for change in changes {
        let (name, value) = match change.split_once('=') {
            Some((name, value)) => (name, Some(value.into())),
            None => (change.as_str(), None),
        };
        if name.is_empty() {
            let wrong = format_args!("--agent-env: '{change}' has no name");
            return Err(Failure::usage(wrong));
        }
        environment.set(name, value);
    }
    Ok(environment)
}

/// The agents' table. The user's own file is looked for in the caller's home, not the agent's.
fn table(file: Option<&Path>, environment: &Environment) -> Result<Table, Failure> {
    let home = std::env::var_os("HOME").or_else(|| environment.get("HOME").map(Into::into));
    let default = home.map(|home| PathBuf::from(home).join(".config/muxutils/agents.json"));
    match (file, default) {
        (Some(file), _) => Table::with_file(file),
        (None, Some(default)) if std::fs::symlink_metadata(&default).is_ok() => {
            Table::with_file(&default)
        }
        _ => Table::built_in(),
    }
    .map_err(Failure::failed)
}

fn given(args: &Args) -> Given {
    Given {
        agent: args.agent.clone(),
        cwd: args.cwd.clone(),
        session_id: args.session_id.clone(),
    }
}

fn agent<'a>(table: &'a Table, given: &Given, row: &Row) -> Result<&'a Agent, Failure> {
    let name = told::agent_name(given, row)?;
    table.get(&name).ok_or_else(|| {
        let known: Vec<_> = table
            .agents()
            .iter()
            .map(|agent| agent.name.as_str())
            .collect();
        let known = known.join(", ");
        Failure::usage(format_args!(
            "the agent '{name}' is not known (known are: {known})"
        ))
    })
}

fn list_agents(table: &Table, mut output: Output) -> Result<Status, Failure> {
    #[derive(Serialize)]
    struct Entry<'a> {
        v: u8,
        r#type: &'static str,
        #[serde(flatten)]
        agent: &'a Agent,
    }
    for agent in table.agents() {
        output.emit(&Entry {
            v: 1,
            r#type: "agent",
            agent,
        })?;
    }
    output.finish()?;
    Ok(Status::Done)
}

fn decide_once(
    args: &Args,
    table: &Table,
    environment: &Environment,
    clock: Clock,
) -> Result<Status, Failure> {
    let inputs = [&args.row, &args.holders, &args.history];
    let from_stdin = |path: &&&Option<PathBuf>| path.as_deref().is_some_and(source::is_stdin);
    if inputs.iter().filter(from_stdin).count() > 1 {
        return Err(Failure::usage(
            "only one of --row, --holders and --history can be '-', which is standard input",
        ));
    }
    let row = args.row.as_deref().map(|path| read_row(path, clock));
    let row = row.transpose()?;
    let given = given(args);
    let no_row = Row::default();
    let agent = agent(table, &given, row.as_ref().unwrap_or(&no_row))?;
    let session = told::session(&given, row.as_ref().unwrap_or(&no_row), agent)?;
    for words in [&args.args, &args.fresh_arg, &args.resume_arg] {
        no_contradiction(agent, words)?;
    }
    let here = Here::new();
    let (look, lost) = look_at_holders(args, agent, &session, &here, clock)?;
    let (deaths, bad) = read_history(args, agent, &session, clock)?;
    let mut status = Status::Done;
    if lost + bad > 0 {
        status = Status::BadInput;
    }

    let deadline = clock.step();
    let new_id = decision::new_id(agent);
    let store = Store::new(agent, environment, &session.cwd, deadline);
    let root = store
        .as_ref()
        .map(|store| store.root().to_owned())
        .unwrap_or_default();
    let disk = match agent.transcripts {
        Some(_) => {
            let rows = Rows::of(agent, &root, environment);
            look_at_disk(store, rows, &session, deadline)
        }
        None => Disk::Untold,
    };
    let claimant = args
        .claimant
        .as_deref()
        .map(|word| claim::claimant(word, &here));
    let claimant = claimant.transpose()?;
    let mut locked = None;
    let mut claim = Claim::Free;
    let claimed_id = session.id.as_deref().unwrap_or(&new_id);
    if let (Some(dir), Some(claimant)) = (&args.claim, &claimant)
        && (session.id.is_some() || agent.takes_ids())
    {
        match claim::Locked::open(&claim::path(dir, agent, claimed_id), deadline) {
            Ok(file) => {
                claim = file.judge(claimant, &here)?;
                locked = Some(file);
            }
            Err(failure) if failure.status() == Status::Unknown => {
                claim = Claim::Unclear(failure.message().to_owned());
            }
            Err(failure) => return Err(failure),
        }
    }

    let told = Told {
        agent,
        session: &session,
        look: &look,
        claim: &claim,
        deaths: &deaths,
        limits: Limits {
            min_uptime: args.min_uptime,
            max_failures: args.max_failures,
            on_missing: args.on_missing,
        },
    };
    let choice = decide::decide(&told, &disk);
    let note = match (&locked, &claimant, choice.action.launch()) {
        (Some(file), Some(claimant), Some(_)) if claim == Claim::Free => {
            Some(file.write(&agent.name, claimed_id, claimant, &here)?)
        }
        _ => None,
    };
    let words = Words {
        fresh: args.fresh_arg.clone(),
        resume: args.resume_arg.clone(),
        both: args.args.clone(),
    };
    let others = row.map(Row::into_others);
    let making = Making {
        told: &told,
        disk: &disk,
        root: &root,
        new_id: &new_id,
        words: &words,
        unset: &agent.to_unset(environment),
        row: others.as_deref(),
    };
    let status = status.worse(status_of(choice.action));
    publish(args, &making, &choice, note, clock)?;
    Ok(status)
}

fn status_of(action: Action) -> Status {
    match action {
        Action::Launch(_) | Action::Reclaim(_) => Status::Done,
        Action::AlreadyRunning | Action::GiveUp => Status::No,
        Action::Unknown => Status::Unknown,
    }
}

fn publish(
    args: &Args,
    making: &Making<'_>,
    choice: &decide::Choice<'_>,
    note: Option<ClaimNote>,
    clock: Clock,
) -> Result<(), Failure> {
    let decision = making.decision(choice, note, records::time::now());
    if let Some(file) = &args.record {
        let mut line = serde_json::to_vec(&decision)?;
        line.push(b'\n');
        files::write_whole(file, &line)?;
    }
    let mut output = output(args, clock);
    let printed = output.emit(&decision).and_then(|()| output.finish());
    printed.map_err(undecided)
}

fn read_row(path: &Path, clock: Clock) -> Result<Row, Failure> {
    let name = path.display();
    let text = source::one(path, clock)
        .map_err(|failure| failure.context("the row"))?
        .map_err(|why| Failure::new(Status::BadInput, format_args!("the row {name}: {why}")))?;
    let record = Record::parse(text.as_bytes());
    record
        .and_then(|record| Row::read(&record))
        .map_err(|why| Failure::usage(format_args!("the row {name}: {why}")))
}

/// Arguments that choose a session would fight with those of the decision. What follows `--` is no
/// option any more.
fn no_contradiction(agent: &Agent, words: &[String]) -> Result<(), Failure> {
    let chooses = |word: &&String| {
        let flag = match word.split_once('=') {
            Some((flag, _)) if flag.starts_with('-') => flag,
            _ => word.as_str(),
        };
        // A short flag may have more in the same word: an id, or other short flags.
        let begins = |known: &str| known.len() == 2 && word.starts_with(known);
        let mut flags = agent.choosing_flags();
        flags.any(|known| known == flag || begins(known))
    };
    let mut options = words.iter().take_while(|word| *word != "--");
    match options.find(chooses) {
        None => Ok(()),
        Some(word) => Err(Failure::usage(format_args!(
            "the argument '{word}' chooses a session, which is what is to be decided here"
        ))),
    }
}

fn look_at_holders(
    args: &Args,
    agent: &Agent,
    session: &Session,
    here: &Here,
    clock: Clock,
) -> Result<(Look, u64), Failure> {
    let Some(path) = &args.holders else {
        return Ok((Look::NotConsulted, 0));
    };
    let place = Place {
        boot_id: here.boot().map(|boot| boot.to_string()),
        pidns: here.space(),
        host: here.host().to_owned(),
    };
    let mut reading = Reading::new(session.id.as_deref().unwrap_or_default(), &agent.shape);
    let hear = |record: &Record<'_>| {
        reading.hear(record, &place, SystemTime::now(), args.max_age);
    };
    let bad = match source::each(path, Trust::Any, clock, hear) {
        Err(late) if late.status() == Status::Unknown => {
            let why = format!("what holder-scan says is not all there: {}", late.message());
            return Ok((Look::Bad(why), 0));
        }
        outcome => outcome?,
    };
    if bad > 0 {
        reading.lose(format!("{bad} of its lines cannot be read"));
    }
    Ok((reading.finish(), bad))
}

fn read_history(
    args: &Args,
    agent: &Agent,
    session: &Session,
    clock: Clock,
) -> Result<(Deaths, u64), Failure> {
    let (Some(path), Some(id)) = (&args.history, &session.id) else {
        return Ok((Deaths::default(), 0));
    };
    // Before the first death there need not be a file. With its name misspelt there never is one.
    if !source::is_stdin(path) && source::is_missing(path, clock)? {
        let name = path.display();
        say!("--history {name}: there is no such file, which counts as no death so far");
        return Ok((Deaths::default(), 0));
    }
    let mut history = History::default();
    let hear = |record: &Record<'_>| history.hear(record, id, &agent.shape);
    let bad = source::each(path, Trust::Own, clock, hear)
        .map_err(|failure| failure.context("--history"))?;
    Ok((history.judge(args.min_uptime), bad))
}

fn look_at_disk(
    store: Result<Store, String>,
    rows: Option<Rows>,
    session: &Session,
    deadline: Deadline,
) -> Disk {
    let Some(id) = session.id.clone() else {
        return Disk::Seen(Vec::new());
    };
    let find = move |store: &Store| store.find(&id);
    match store.and_then(|store| look::sessions(store, rows, deadline, find)) {
        Ok(found) => Disk::Seen(found),
        Err(why) => Disk::Unreadable(why),
    }
}

fn execute(args: &Args, table: &Table, clock: Clock) -> Result<Status, Failure> {
    let path = args.decision.as_deref().unwrap_or(Path::new("-"));
    let mut decisions = Vec::new();
    let hear = |record: &Record<'_>| {
        if record.kind().as_deref() == Some("decision") {
            decisions.push(record.text().to_owned());
        }
    };
    let bad = source::each(path, Trust::Own, clock, hear)
        .map_err(|failure| failure.context("not launched"))?;
    if bad > 0 {
        let message = "not launched: what came in is damaged";
        return Err(Failure::new(Status::BadInput, message));
    }
    let [decision] = &decisions[..] else {
        let message = format_args!(
            "not launched: {} decisions came in, not one",
            decisions.len()
        );
        return Err(Failure::unknown(message));
    };
    let decision = Record::parse(decision.as_bytes()).map_err(Failure::unknown)?;
    let from_stdin = source::is_stdin(path);
    exec::run(&decision, table, from_stdin, args.max_age, clock.step())
}
