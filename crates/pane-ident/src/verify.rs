//! `verify`: records, or identities, with a verdict each.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use process::{ENDING, Here, Interrupts, Pid, ProcessRecord};
use records::input::{Input, Lines};
use records::{Deadline, Failure, Output, Record, Status, say, time};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::claim::{Address, Claim, ClaimedIdent};
use crate::notice;
use crate::scene::{LiveProcess, Scene, Wishes};
use crate::servers::{Kind, ServerArgs, ServerKey};
use crate::verdict::{Judgement, Live, State, judge};

/// The part of a call's time that is kept for saying what was found out.
const LAST_PART: u32 = 10;

/// The most of it.
const LAST_MOST: Duration = Duration::from_millis(500);

/// The most of a call's time that reading leaves for the look at servers and processes.
const LOOK_MOST: Duration = Duration::from_secs(1);

/// What is said of one record, below its key `verdict`.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The answer.
    pub state: State,
    /// A token that says why.
    pub reason: &'static str,
    /// The same for people.
    pub message: String,
    /// Whether a match rests on less than an exact identity.
    pub weak: bool,
    /// The pane that was judged.
    pub pane: Option<String>,
    /// The live process that the answer is about.
    pub live: Option<LiveProcess>,
    /// When it was looked at.
    pub checked_at: String,
}

/// How long one look may take where no waiting is wanted (`--timeout 0`): a server is asked by a
/// command of its own.
const ONE_LOOK: Duration = Duration::from_millis(100);

/// When `--timeout` is over.
pub fn deadline_of(timeout: Duration) -> Deadline {
    Deadline::after(if timeout.is_zero() { ONE_LOOK } else { timeout })
}

/// `deadline`, less what it takes to say what was found out.
pub fn for_servers(deadline: Deadline) -> Deadline {
    match deadline.left() {
        Some(left) => Deadline::after(left - (left / LAST_PART).min(LAST_MOST)),
        None => deadline,
    }
}

/// `deadline`, less what it takes to judge what has come.
fn for_reading(deadline: Deadline) -> Deadline {
    match deadline.left() {
        Some(left) => Deadline::after(left - (left / 4).min(LOOK_MOST)),
        None => deadline,
    }
}

/// Judges `claims`, with one look at all that they speak of.
pub fn verdicts(
    here: &Here,
    claims: &[&Claim],
    wishes: &Wishes,
    servers: &ServerArgs,
    deadline: Deadline,
) -> Vec<Verdict> {
    let scene = Scene::survey(here, claims.iter().copied(), servers, deadline);
    let checked_at = time::now();
    let verdict = |claim: &&Claim| {
        let finding = scene.look(claim, wishes);
        let Judgement {
            state,
            reason,
            message,
            weak,
            live,
        } = judge(&finding.facts);
        Verdict {
            state,
            reason,
            message,
            weak,
            pane: finding.facts.pane,
            live: match live {
                Live::None => None,
                Live::InPane => finding.in_pane,
                Live::Bound => finding.bound,
            },
            checked_at: checked_at.clone(),
        }
    };
    claims.iter().map(verdict).collect()
}

/// As [`verdicts`], and looks again, after `settle`, at what seems to be gone: a pane that was
/// just made may not be there for a moment.
fn settled(
    here: &Here,
    claims: &[&Claim],
    args: &VerifyArgs,
    wishes: &Wishes,
    deadline: Deadline,
) -> Vec<Verdict> {
    let mut found = verdicts(here, claims, wishes, &args.servers, deadline);
    let Some(settle) = args.settle else {
        return found;
    };
    let gone: Vec<usize> = (0..found.len())
        .filter(|&i| found.get(i).is_some_and(|v| v.state == State::Gone))
        .collect();
    if gone.is_empty() {
        return found;
    }
    if deadline.left().is_some_and(|left| left < settle) {
        for &i in &gone {
            if let Some(verdict) = found.get_mut(i) {
                verdict.state = State::Unknown;
                verdict.reason = "not_settled";
                verdict.message += ", and there is no time to see whether it stays so";
            }
        }
        return found;
    }
    std::thread::sleep(settle);
    let again: Vec<&Claim> = gone
        .iter()
        .filter_map(|&i| claims.get(i).copied())
        .collect();
    let second = verdicts(here, &again, wishes, &args.servers, deadline);
    for (i, verdict) in gone.into_iter().zip(second) {
        if let Some(first) = found.get_mut(i) {
            *first = verdict;
        }
    }
    found
}

/// Runs `verify`.
///
/// # Errors
///
/// Standard input or output fails.
pub fn run(args: &VerifyArgs) -> Result<Status, Failure> {
    if !args.idents.is_empty() {
        args.output
            .check_keys(&[ProcessRecord::KEYS, &["verdict"]])?;
    }
    let deadline = deadline_of(args.timeout);
    let mut output = Output::new(&args.output, crate::HUMAN);
    output.set_deadline(deadline);
    let mut tally = Tally::default();
    let interrupts = Interrupts::catch(&ENDING)?;
    if args.idents.is_empty() {
        filter(args, deadline, interrupts, &mut output, &mut tally)?;
    } else {
        operands(args, deadline, interrupts, &mut output, &mut tally)?;
    }
    output.finish().map_err(unread)?;
    Ok(tally.status(!args.only.is_empty()))
}

/// Output that nobody reads leaves the question open, as everything does here at the deadline.
fn unread(failure: Failure) -> Failure {
    match failure.status() {
        Status::Deadline => Failure::unknown(failure.message()),
        _ => failure,
    }
}

/// What the exit status is made of.
#[derive(Debug, Default)]
struct Tally {
    judged: usize,
    matched: usize,
    unknown: usize,
    passed: usize,
    /// What became of the input.
    input: Option<Status>,
}

impl Tally {
    fn add(&mut self, state: State) {
        self.judged += 1;
        match state {
            State::Match => self.matched += 1,
            State::Unknown => self.unknown += 1,
            _ => {}
        }
    }

    fn status(&self, only: bool) -> Status {
        let yes = match only {
            true => self.passed > 0,
            false => self.judged > 0 && self.matched == self.judged,
        };
        let status = match yes {
            true => Status::Done,
            false if self.unknown > 0 => Status::Unknown,
            false => Status::No,
        };
        self.input.map_or(status, |input| status.worse(input))
    }
}

/// A record of standard input that is asked about.
struct Asked {
    line: Vec<u8>,
    claim: Option<Claim>,
}

/// Records from standard input. All of them are read first, so that each server is asked once.
fn filter(
    args: &VerifyArgs,
    deadline: Deadline,
    interrupts: Interrupts,
    output: &mut Output,
    tally: &mut Tally,
) -> Result<(), Failure> {
    records::input::announce_terminal();
    let until = for_reading(deadline);
    let lines = notice::during("standard input", until, &interrupts, || {
        read_all(args, until, tally)
    })??;
    let wishes = Wishes {
        legacy: args.legacy.clone(),
        same_argv: args.same_argv,
        ancestor: false,
    };
    let claims: Vec<&Claim> = lines
        .iter()
        .filter_map(|asked| asked.claim.as_ref())
        .collect();
    let deadline = for_servers(deadline);
    let here = Here::new().until(deadline.instant());
    let found = notice::during("the multiplexers", deadline, &interrupts, || {
        settled(&here, &claims, args, &wishes, deadline)
    })?;
    // From here on only output is waited for, which every signal may end.
    notice::release(interrupts);
    let owned = owned(&found);
    let mut found = found.into_iter();
    for Asked { line, claim } in &lines {
        let verdict = match claim {
            Some(_) => found.next(),
            None => None,
        };
        match verdict {
            // A pane has one owner.
            Some(verdict) if !args.only.is_empty() && is_outdone(&verdict, &owned) => {
                tally.add(verdict.state);
            }
            Some(verdict) => {
                let record = Record::parse(line).map_err(Failure::failed)?;
                put(&record, &verdict, args, output, tally)?;
            }
            // It claims nothing, so there is nothing to verify.
            None if args.only.is_empty() => output.pass(line).map_err(unread)?,
            None => {}
        }
    }
    Ok(())
}

/// The panes' processes that a record is bound to.
fn owned(found: &[Verdict]) -> HashSet<Pid> {
    let bound = found.iter();
    let bound = bound.filter(|v| v.reason == "same_process" && v.pane.is_some());
    bound.filter_map(|v| Some(v.live.as_ref()?.pid)).collect()
}

/// Whether a record without identity is like a pane that another record is bound to, as the one
/// that was made of the same folder before.
fn is_outdone(verdict: &Verdict, owned: &HashSet<Pid>) -> bool {
    let live = verdict.live.as_ref();
    verdict.reason == "legacy_equal" && live.is_some_and(|live| owned.contains(&live.pid))
}

/// The records that are asked about.
fn read_all(
    args: &VerifyArgs,
    deadline: Deadline,
    tally: &mut Tally,
) -> Result<Vec<Asked>, Failure> {
    let mut input = Lines::stdin_until(deadline);
    let mut lines = Vec::new();
    loop {
        match input.next_record() {
            Ok(None) => break,
            Ok(Some(Input::Record(record))) => {
                let claim = Claim::of(&record);
                let named = args.pane.as_deref();
                if named.is_none() || claim.as_ref().and_then(Claim::pane) == named {
                    lines.push(Asked {
                        line: record.bytes().to_vec(),
                        claim,
                    });
                }
            }
            Ok(Some(Input::Bad(bad))) => {
                say!("{bad}");
                tally.input = Some(Status::BadInput);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                say!("standard input did not end before the deadline");
                let status = tally.input.unwrap_or(Status::Unknown);
                tally.input = Some(status.worse(Status::Unknown));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(lines)
}

fn put(
    record: &Record<'_>,
    verdict: &Verdict,
    args: &VerifyArgs,
    output: &mut Output,
    tally: &mut Tally,
) -> Result<(), Failure> {
    tally.add(verdict.state);
    if args.only.is_empty() || args.only.contains(&verdict.state) {
        tally.passed += 1;
        let line = record.with("verdict", verdict)?;
        output.pass(&line).map_err(unread)?;
    }
    Ok(())
}

/// Identities on the command line: a `process` record for each.
fn operands(
    args: &VerifyArgs,
    deadline: Deadline,
    interrupts: Interrupts,
    output: &mut Output,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let address = [
        (Kind::Tmux, &args.tmux),
        (Kind::Herdr, &args.herdr),
        (Kind::Kitty, &args.kitty),
    ]
    .into_iter()
    .find_map(|(kind, pane)| {
        Some(Address {
            pane: pane.clone()?,
            server: Ok(ServerKey::default_of(kind)),
        })
    });
    let claim = |ident: &process::Identity| Claim {
        address: address.clone(),
        ident: ClaimedIdent::Known(ident.clone()),
        ..Claim::default()
    };
    let claims: Vec<Claim> = args.idents.iter().map(claim).collect();
    let wishes = Wishes {
        ancestor: args.ancestor,
        ..Wishes::default()
    };
    let deadline = for_servers(deadline);
    let here = Here::new().until(deadline.instant());
    let references: Vec<&Claim> = claims.iter().collect();
    let found = notice::during("the multiplexers", deadline, &interrupts, || {
        settled(&here, &references, args, &wishes, deadline)
    })?;
    notice::release(interrupts);
    for (ident, verdict) in args.idents.iter().zip(&found) {
        let mut record = ProcessRecord::on(here.host());
        record.pid = Some(ident.pid());
        record.ident = Some(ident.clone());
        let line = serde_json::to_vec(&record)?;
        let record = Record::parse(&line).map_err(Failure::failed)?;
        put(&record, verdict, args, output, tally)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status() {
        use State::*;
        let status = |states: &[State], passed: Option<usize>, input: Option<Status>| {
            let mut tally = Tally {
                passed: passed.unwrap_or(0),
                input,
                ..Tally::default()
            };
            states.iter().for_each(|&state| tally.add(state));
            tally.status(passed.is_some()).code()
        };
        let table = [
            (&[Match, Match][..], None, None, 0),
            (&[Match, Foreign], None, None, 1),
            (&[Match, Foreign, Unknown], None, None, 3),
            (&[Gone], None, None, 1),
            (&[Own], None, None, 1),
            // Nothing matched where there was nothing.
            (&[], None, None, 1),
            (&[Match, Foreign, Unknown], Some(1), None, 0),
            (&[Foreign, Unknown], Some(0), None, 3),
            (&[Foreign, Gone], Some(0), None, 1),
            (&[Match], None, Some(Status::BadInput), 65),
            (&[Match], None, Some(Status::Unknown), 3),
            (&[Match], Some(1), Some(Status::BadInput), 65),
        ];
        for (states, passed, input, code) in table {
            assert_eq!(status(states, passed, input), code, "{states:?} {passed:?}");
        }
    }
}
