//! `--exec`: becoming the agent, if a decision and what became of it allow that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agents::{Agent, Environment, State, Store, Table};
use process::{Here, Refusal};
use records::{Deadline, Failure, Record, Status};

use crate::database::Rows;
use crate::{claim, look};

/// How far ahead of ours the clock of a decision may be.
const SKEW: Duration = Duration::from_secs(5);

/// What a decision says to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The way of launching.
    pub launch: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The directory.
    pub cwd: String,
    /// Variables that must go.
    pub unset: Vec<String>,
    /// The way of the other command line, and that line.
    pub fallback: Option<(String, Vec<String>)>,
}

/// What a decision orders, if it may be followed now.
///
/// # Errors
///
/// No (1), it cannot be told (3), or the record is not understood (3), and why.
pub fn order(decision: &Record<'_>, now: SystemTime, max_age: Duration) -> Result<Order, Failure> {
    let launch = launch(decision)?;
    is_recent(decision, now, max_age)?;
    let reclaims = decision.str("action").as_deref() == Some("reclaim");
    is_cleared(decision, reclaims)?;
    let order: Order = Order {
        launch,
        argv: words(decision, "argv")?,
        cwd: decision
            .str("cwd")
            .ok_or_else(|| Failure::unknown("the decision has no cwd"))?
            .into_owned(),
        unset: words(decision, "env_unset").unwrap_or_default(),
        fallback: match decision.has("fallback") {
            true => {
                let launch = decision.str("fallback.action").unwrap_or_default();
                Some((launch.into_owned(), words(decision, "fallback.argv")?))
            }
            false => None,
        },
    };
    if order.argv.is_empty() || order.argv[0].is_empty() {
        return Err(Failure::unknown("the decision has no command to run"));
    }
    Ok(order)
}

/// In which way the decision launches.
fn launch(decision: &Record<'_>) -> Result<String, Failure> {
    let action = decision.str("action").unwrap_or_default();
    let reason = decision.str("reason").unwrap_or_default();
    let reclaims = action == "reclaim";
    let way = match reclaims {
        true => decision.str("then").unwrap_or_default(),
        false => action.clone(),
    };
    match way.as_ref() {
        "resume" | "assign" | "mint" | "spawn" => Ok(way.into_owned()),
        _ if reclaims => Err(Failure::unknown(
            "not launched: the decision does not say what follows",
        )),
        "already_running" | "give_up" => Err(Failure::no(format_args!(
            "not launched: {action}: {reason}"
        ))),
        _ => Err(Failure::unknown(format_args!(
            "not launched: {action}: {reason}"
        ))),
    }
}

fn is_recent(decision: &Record<'_>, now: SystemTime, max_age: Duration) -> Result<(), Failure> {
    let at = decision
        .str("at")
        .and_then(|at| records::time::parse(&at).ok());
    let at = at.ok_or_else(|| Failure::unknown("the decision does not say when it was made"))?;
    let too_old = now.duration_since(at).is_ok_and(|age| age > max_age);
    let ahead = at.duration_since(now).is_ok_and(|ahead| ahead > SKEW);
    if too_old || ahead {
        let at = records::time::rfc3339_millis(at);
        return Err(Failure::unknown(format_args!(
            "not launched: the decision is not of now: it was made at {at}"
        )));
    }
    Ok(())
}

/// Everything stale must be dead for certain.
fn is_cleared(decision: &Record<'_>, needed: bool) -> Result<(), Failure> {
    let unclear = |why: String| Err(Failure::unknown(format!("not launched: {why}")));
    let Some(stale) = decision.array("stale") else {
        return unclear("the decision does not say what is stale".to_owned());
    };
    if needed && stale.is_empty() {
        return unclear("the decision reclaims, and names nothing".to_owned());
    }
    let mut survivor = None;
    for one in stale {
        let one = Record::parse(one.get().as_bytes()).map_err(Failure::unknown)?;
        let pid = one.u64("root").or(one.u64("pid")).unwrap_or_default();
        match one.str("reap.outcome").as_deref() {
            Some("gone" | "terminated" | "killed") => {}
            None => {
                return unclear(format!(
                    "nobody has ended process {pid}, which is in the way"
                ));
            }
            Some(outcome @ ("unknown" | "interrupted")) => {
                return unclear(format!(
                    "whether process {pid} has ended is not known ({outcome})"
                ));
            }
            Some(outcome) => {
                survivor.get_or_insert(format!("process {pid} is still in the way ({outcome})"));
            }
        }
    }
    match survivor {
        Some(why) => Err(Failure::no(format_args!("not launched: {why}"))),
        None => Ok(()),
    }
}

fn words(decision: &Record<'_>, path: &str) -> Result<Vec<String>, Failure> {
    let wrong = || Failure::unknown(format_args!("the decision's {path} is no list of words"));
    let words: Vec<String> = decision.decode_at(path).ok().flatten().ok_or_else(wrong)?;
    if words.iter().any(|word| word.contains('\0')) {
        return Err(wrong());
    }
    Ok(words)
}

/// Becomes the agent. It returns only to say why not.
///
/// # Errors
///
/// As [`order`]; the claim is another's (1); the program is not found (127) or cannot be run (126).
pub fn run(
    decision: &Record<'_>,
    table: &Table,
    from_stdin: bool,
    max_age: Duration,
    deadline: Deadline,
) -> Result<Status, Failure> {
    let mut order = order(decision, SystemTime::now(), max_age)?;
    let name = decision.str("agent").unwrap_or_default();
    let agent = table.get(&name).ok_or_else(|| {
        Failure::unknown(format_args!(
            "not launched: the agent '{name}' is not known here"
        ))
    })?;
    last_look(&mut order, decision, agent, deadline)?;
    if decision.has("claim") {
        claim::pass_on(decision, &Here::new(), deadline)?;
    }
    if from_stdin {
        take_terminal();
    }
    let cannot_run = |why: String| Failure::new(Status::CannotRun, why);
    std::env::set_current_dir(&order.cwd)
        .map_err(|error| cannot_run(format!("{}: {error}", order.cwd)))?;
    let (gone, words) = without_env(&order.argv);
    let argv: Vec<OsString> = words.iter().map(OsString::from).collect();
    // What has been set since the decision was made must not be inherited either.
    let unset = agent.unset.iter().chain(&order.unset).map(String::as_str);
    let unset: Vec<&str> = unset.chain(gone).collect();
    Err(match process::become_command(&argv, &unset) {
        Refusal::NotFound(why) => Failure::new(Status::NotFound, why),
        Refusal::CannotRun(why) => cannot_run(why),
        Refusal::Failed(why) => Failure::failed(why),
    })
}

/// The variables that `env -u NAME ...` takes away in front of a command, and that command. It is done
/// here, as env(1) would do it, but for its search: that one gives a file without an executable format
/// to a shell.
fn without_env(argv: &[String]) -> (Vec<&str>, &[String]) {
    let mut unset = Vec::new();
    let mut rest = argv.strip_prefix(&["env".to_owned()]).unwrap_or_default();
    while let [flag, name, others @ ..] = rest
        && flag == "-u"
    {
        unset.push(name.as_str());
        rest = others;
    }
    match rest.first() {
        Some(command) if !command.starts_with('-') && !command.contains('=') => (unset, rest),
        // Whatever else it is: env(1) knows.
        _ => (Vec::new(), argv),
    }
}

/// The transcript decides which flag the agent takes, and it may have come or gone since.
fn last_look(
    order: &mut Order,
    decision: &Record<'_>,
    agent: &Agent,
    deadline: Deadline,
) -> Result<(), Failure> {
    let is_resume = match order.launch.as_str() {
        "resume" => true,
        "assign" => false,
        _ => return Ok(()),
    };
    if agent.transcripts.is_none() {
        return Ok(());
    }
    let (Some(id), Some(root)) = (decision.str("session_id"), decision.str("artifact.root")) else {
        return Err(Failure::unknown(
            "not launched: the decision does not say which transcript it is about",
        ));
    };
    let database = decision
        .str("artifact.path")
        .map(|path| PathBuf::from(path.into_owned()));
    let root = Path::new(&*root);
    let rows = Rows::of(agent, root, &Environment::default());
    let rows = rows.map(|rows| rows.in_database(database.clone()));
    let store = store(agent, root, &order.cwd, deadline).with_database(database);
    let id = id.into_owned();
    let found = look::sessions(store, rows, deadline, move |store| store.find(&id))
        .map_err(|why| Failure::unknown(format_args!("not launched: {why}")))?;
    let ours = found.iter().filter(|one| one.cwd_matches != Some(false));
    let state = ours
        .map(|one| one.state)
        .max_by_key(|state| *state == State::Conversational);
    let fits = match state {
        Some(State::Conversational) => is_resume,
        None => !is_resume,
        Some(State::Unusable) => !is_resume && agent.ids == agents::Ids::OpenOrCreate,
    };
    if fits {
        return Ok(());
    }
    // A fallback that begins anew works whatever is there; one that resumes needs a conversation.
    let works = |launch: &str| launch != "resume" || state == Some(State::Conversational);
    match order.fallback.take().filter(|(launch, _)| works(launch)) {
        Some((launch, argv)) if !argv.is_empty() => {
            records::say!("the transcript is another than it was; {launch} instead");
            order.launch = launch;
            order.argv = argv;
            Ok(())
        }
        _ => Err(Failure::unknown(
            "not launched: the transcript is another than it was, so decide again",
        )),
    }
}

/// The agent's sessions below the root that the decision has seen them at. Where that is where the
/// agent will look for itself, so are its variables' other wishes.
fn store(agent: &Agent, root: &Path, cwd: &str, deadline: Deadline) -> Store {
    match Store::new(agent, &Environment::own(), cwd, deadline) {
        Ok(store) if store.root() == root => store,
        _ => Store::at(agent, root.to_owned(), cwd, deadline),
    }
}

/// After a pipeline stdin is a pipe at its end; an agent wants the terminal.
fn take_terminal() {
    let Ok(terminal) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
    else {
        return;
    };
    let _ = rustix::stdio::dup2_stdin(terminal);
}

#[cfg(test)]
mod tests;
