//! One call, from the command line to the exit status.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use process::{Here, Identity};
use records::input::{BadLine, Input, Lines, Timed};
use records::{Deadline, Failure, Output, Record, Status, say};

use crate::args::{Args, OwnArgs, WhatArgs};
use crate::criteria::{Criteria, Place};
use crate::id::Ids;
use crate::join::{Join, Named};
use crate::judge::{self, Finding, Judgement, Question, Verdict};
use crate::live::{self, Request, Scope};
use crate::look::{Look, in_time};
use crate::path;
use crate::record::{HUMAN, Holder, KEYS, ProcessEntry, Scan, What, millis};
use crate::snapshot::Snapshot;
use crate::table::{Origin, Written};
use crate::targets::{self, Targets};

/// What is read of a file that holds the record of a process.
const MAX_RECORD: usize = 16 << 20;

/// Runs the tool.
pub fn run(mut args: Args) -> Result<Status, Failure> {
    let started = Instant::now();
    process::unblock(&process::ENDING);
    args.check().map_err(Failure::usage)?;
    // The rows of --registry are the caller's own.
    if args.source.registry.is_none() {
        args.output.check_keys(&[KEYS])?;
    }
    // Zero is one look, which waits for nothing and so needs no end.
    let deadline = Deadline::after_or_never(Some(args.timeout).filter(|wait| !wait.is_zero()));
    let mut output = Output::new(&args.output, HUMAN);
    output.set_deadline(deadline);
    let call = Call {
        here: Here::new(),
        started,
        deadline,
        ids: Arc::new(Ids::new(mem::take(&mut args.what.session_id))),
        args,
    };
    let status = call.answer(&mut output)?;
    output.finish().map_err(late_is_unknown)?;
    // The process ends here, and the kernel takes it all in one piece.
    mem::forget(call);
    Ok(status)
}

/// Output that nobody reads in time leaves the reader without an answer: 3, not 124.
fn late_is_unknown(failure: Failure) -> Failure {
    if failure.status() == Status::Deadline {
        Failure::unknown(failure.message())
    } else {
        failure
    }
}

struct Call {
    here: Here,
    started: Instant,
    deadline: Deadline,
    /// Which sessions are asked for.
    ids: Arc<Ids>,
    /// The rest of the command line: its `session_id` is empty.
    args: Args,
}

impl Call {
    fn answer(&self, output: &mut Output) -> Result<Status, Failure> {
        let source = &self.args.source;
        if source.dump {
            self.dump(output)
        } else if let Some(path) = &source.from {
            self.judge_table(path, output)
        } else if let Some(path) = &source.registry {
            self.join(path, output)
        } else {
            let (question, targets) = self.ask()?;
            let (snapshot, look) = self.scan(&question, &targets, Scope::Asked);
            let judgement = self.judge(&snapshot, &question);
            if judgement.holders() == 0 {
                tell_missing(&targets);
            }
            self.answer_with(output, &snapshot, &judgement, &look, None)
        }
    }

    /// Takes a snapshot of the live table.
    fn scan(&self, question: &Question, targets: &Targets, scope: Scope) -> (Snapshot, Look) {
        let resolve = |path: &[u8]| self.resolve(path);
        let (snapshot, mut look) = live::scan(
            &self.here,
            &Request {
                question,
                targets,
                scope,
                deadline: self.deadline,
                resolve: &resolve,
            },
        );
        for problem in &targets.problems {
            look.fail(problem.as_str());
        }
        (snapshot, look)
    }

    fn judge(&self, snapshot: &Snapshot, question: &Question) -> Judgement {
        judge::judge(snapshot, question, &|path| self.resolve(path))
    }

    /// Prints the holders and what the look was worth.
    fn answer_with(
        &self,
        output: &mut Output,
        snapshot: &Snapshot,
        judgement: &Judgement,
        look: &Look,
        origin: Option<&Origin>,
    ) -> Result<Status, Failure> {
        self.tell(output, snapshot, &judgement.findings, |_| None)?;
        let complete = self.is_complete(look);
        let verdict = Some(judgement.verdict(complete));
        self.conclude(output, look, verdict, judgement.holders(), origin)
    }

    /// `--dump`.
    fn dump(&self, output: &mut Output) -> Result<Status, Failure> {
        let (question, targets) = (Question::default(), Targets::default());
        let (snapshot, look) = self.scan(&question, &targets, Scope::All);
        for row in &snapshot.rows {
            let entry = ProcessEntry::new(row, self.args.full_argv);
            output.emit(&entry).map_err(late_is_unknown)?;
        }
        self.conclude(output, &look, None, 0, None)
    }

    /// `--from`.
    fn judge_table(&self, path: &Path, output: &mut Output) -> Result<Status, Failure> {
        let (question, targets) = self.ask()?;
        let mut table = Written::default();
        let mut status = Status::Done;
        let mut number = 0;
        self.read_records(path, |input| {
            number += 1;
            let bad = match input {
                Input::Record(record) => table.take(&record).err().map(|why| BadLine {
                    input: name_of(path).into(),
                    number,
                    why,
                    is_number: false,
                }),
                Input::Bad(bad) => Some(bad),
            };
            if let Some(bad) = bad {
                say!("{bad}");
                status = Status::BadInput;
            }
        })?;
        let origin = table.origin.clone();
        let (snapshot, mut look) = table.into_snapshot(&targets, &question);
        if status == Status::BadInput {
            look.fail("some lines of the table could not be read");
        }
        let judgement = self.judge(&snapshot, &question);
        let judged = self.answer_with(output, &snapshot, &judgement, &look, origin.as_ref())?;
        Ok(status.worse(judged))
    }

    /// `--registry`.
    fn join(&self, path: &Path, output: &mut Output) -> Result<Status, Failure> {
        let (question, targets) = self.ask()?;
        let mut rows: Vec<(Vec<u8>, Option<Named>)> = Vec::new();
        let mut status = Status::Done;
        self.read_records(path, |input| match input {
            Input::Record(record) => rows.push((record.bytes().to_vec(), Named::of(&record))),
            Input::Bad(bad) => {
                say!("{bad}");
                status = Status::BadInput;
            }
        })?;
        let (snapshot, look) = self.scan(&question, &targets, Scope::Holding);
        let complete = self.is_complete(&look);
        let mut join = Join::new(&self.here, &snapshot, complete);
        for (line, named) in &rows {
            let joined = match (named, Record::parse(line)) {
                (Some(named), Ok(record)) => record.with("holding", &join.holding(named))?,
                _ => line.clone(),
            };
            output.pass(&joined).map_err(late_is_unknown)?;
        }
        let known = |finding: &Finding| Some(join.knows(finding.tree.root));
        let asks = !self.ids.is_empty() || self.args.what.asks();
        let judgement = if asks {
            self.judge(&snapshot, &question)
        } else {
            let resolve = |path: &[u8]| self.resolve(path);
            let mut findings = judge::own(&snapshot, &question, &resolve);
            findings.retain(|finding| known(finding) == Some(false));
            Judgement { findings }
        };
        self.tell(output, &snapshot, &judgement.findings, known)?;
        let verdict = asks.then(|| judgement.verdict(complete));
        let concluded = self.conclude(output, &look, verdict, judgement.holders(), None)?;
        Ok(status.worse(concluded))
    }

    /// Hands each line of the file `path`, or of stdin where that is `-`, to `take`.
    fn read_records(&self, path: &Path, mut take: impl FnMut(Input<'_>)) -> Result<(), Failure> {
        let late = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::TimedOut => Failure::unknown(error),
            _ => Failure::from(error),
        };
        if path == Path::new("-") {
            records::input::announce_terminal();
            let mut lines = Lines::stdin_until(self.deadline);
            while let Some(input) = lines.next_record().map_err(late)? {
                take(input);
            }
            return Ok(());
        }
        let name = name_of(path);
        let path = path.to_owned();
        let file = in_time(self.deadline, move || std::fs::File::open(path))
            .ok_or_else(|| Failure::unknown(format_args!("{name}: does not answer in time")))?
            .map_err(|error| Failure::unknown(format_args!("{name}: {error}")))?;
        let mut lines = Lines::new(name, Timed::new(file, self.deadline));
        while let Some(input) = lines.next_record().map_err(late)? {
            take(input);
        }
        Ok(())
    }

    /// What is asked, with everything looked up that it names.
    fn ask(&self) -> Result<(Question, Targets), Failure> {
        let records = own_records(&self.args.own)?;
        let (what, own) = (&self.args.what, &self.args.own);
        let (targets, criteria) = if what.names_files() || own.names_files() {
            let (what, own, known) = (what.clone(), own.clone(), records.clone());
            let look = move || (Targets::look(&what), criteria(&own, known, targets::place));
            in_time(self.deadline, look).unwrap_or_else(|| {
                let late = "a file that is asked for does not answer in time";
                let targets = Targets {
                    problems: vec![late.to_owned()],
                    ..Targets::default()
                };
                let criteria = criteria(&self.args.own, records, targets::place_as_given);
                (targets, criteria)
            })
        } else {
            (Targets::look(what), criteria(own, records, targets::place))
        };
        let question = Question {
            ids: Arc::clone(&self.ids),
            criteria,
            mentions: self.args.mentions,
            include_self: self.args.include_self,
            uid: self.args.what.uid,
        };
        Ok((question, targets))
    }

    fn resolve(&self, path: &[u8]) -> Option<Vec<u8>> {
        let path = path::to_path(path);
        let resolved = in_time(self.deadline, move || process::kernel_path(&path).ok())??;
        Some(path::bytes_of(&resolved))
    }

    fn tell(
        &self,
        output: &mut Output,
        snapshot: &Snapshot,
        findings: &[Finding],
        registered: impl Fn(&Finding) -> Option<bool>,
    ) -> Result<(), Failure> {
        for finding in findings {
            let full = self.args.full_argv;
            let holder = Holder::new(snapshot, finding, registered(finding), full);
            output.emit(&holder).map_err(late_is_unknown)?;
        }
        Ok(())
    }

    fn is_complete(&self, look: &Look) -> bool {
        look.is_complete(self.args.what.all_users)
    }

    /// The `scan` record and the exit status. A table that was written down says itself when and
    /// where it was taken.
    fn conclude(
        &self,
        output: &mut Output,
        look: &Look,
        verdict: Option<Verdict>,
        holders: usize,
        origin: Option<&Origin>,
    ) -> Result<Status, Failure> {
        let complete = self.is_complete(look);
        look.explain(self.args.what.all_users);
        let live = self.args.source.from.is_none();
        let here = Origin {
            complete,
            host: Some(self.here.host().to_owned()),
            boot_id: self.here.boot().map(|boot| boot.to_string()),
            pidns: self.here.space(),
            at: None,
        };
        let origin = if live {
            here
        } else {
            origin.cloned().unwrap_or_default()
        };
        let scan = Scan {
            v: 1,
            r#type: "scan",
            what: what(&self.args.what, &self.ids),
            verdict,
            holders,
            processes: look.processes,
            unreadable: look.unreadable,
            others_unseen: look.others_unseen,
            complete,
            host: origin.host,
            boot_id: origin.boot_id,
            pidns: origin.pidns,
            took_ms: millis(self.started.elapsed()),
            at: origin.at.unwrap_or_else(records::time::now),
        };
        output.emit(&scan).map_err(late_is_unknown)?;
        Ok(self.status(holders > 0, complete))
    }

    fn status(&self, held: bool, complete: bool) -> Status {
        let asks = self.args.exit_status || self.args.output.quiet;
        match (asks, held, complete) {
            (true, true, _) | (false, _, true) => Status::Done,
            (true, false, true) => Status::No,
            _ => Status::Unknown,
        }
    }
}

/// Nobody holds what is not there: that is said, since a slip of the pen has the same answer.
fn tell_missing(targets: &Targets) {
    for (path, why) in &targets.missing {
        say!("{}: {why}", path.display());
    }
}

/// What messages call the input `path`.
fn name_of(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The caller's criteria, with `place` looking up what they name.
fn criteria(own: &OwnArgs, records: Option<Vec<Identity>>, place: fn(&Path) -> Place) -> Criteria {
    let places = |paths: &[PathBuf]| paths.iter().map(|path| place(path)).collect();
    Criteria {
        args: targets::bytes(&own.own_arg),
        exes: places(&own.own_exe),
        cwds: places(&own.own_cwd),
        cwds_under: places(&own.own_cwd_under),
        envs: own.own_env.iter().map(targets::pair).collect(),
        uid: own.own_uid,
        records,
    }
}

/// The identities in the files of `--own-record`.
fn own_records(own: &OwnArgs) -> Result<Option<Vec<Identity>>, Failure> {
    if own.own_record.is_empty() {
        return Ok(None);
    }
    let mut identities = Vec::new();
    for path in &own.own_record {
        let before = identities.len();
        let bytes = records::files::read_trusted(path, MAX_RECORD)?;
        for line in bytes.split(|&byte| byte == b'\n') {
            let record = Record::parse(line).ok();
            let word = record.as_ref().and_then(|record| record.str("ident"));
            identities.extend(word.and_then(|word| word.parse::<Identity>().ok()));
        }
        if identities.len() == before {
            return Err(Failure::failed(format_args!(
                "{}: no record with an identity",
                path.display()
            )));
        }
    }
    Ok(Some(identities))
}

/// What was asked, for the scan record.
fn what<'a>(args: &'a WhatArgs, ids: &'a Ids) -> What<'a> {
    let paths = |paths: &'a [PathBuf]| paths.iter().map(|path| path.to_string_lossy()).collect();
    What {
        arg: args.arg.iter().map(|arg| arg.to_string_lossy()).collect(),
        cwd: paths(&args.cwd),
        cwd_under: paths(&args.cwd_under),
        env: args.env.iter().map(|env| (&*env.name).into()).collect(),
        file: paths(&args.file),
        port: &args.port,
        session_id: ids,
        socket: paths(&args.socket),
        tty: paths(&args.tty),
        uid: args.uid,
    }
}
