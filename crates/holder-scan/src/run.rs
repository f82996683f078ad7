//! One call, from the command line to the exit status.

use std::path::{Path, PathBuf};
use std::time::Instant;

use process::{Here, Identity};
use records::human::{Column, HumanView};
use records::{Deadline, Failure, Output, Record, Status};

use crate::args::{Args, OwnArgs, WhatArgs};
use crate::bounded::bounded;
use crate::criteria::Criteria;
use crate::judge::{self, Judgement, Question};
use crate::live::{self, Request, Scope};
use crate::look::Look;
use crate::path;
use crate::record::{Holder, Scan, What, millis};
use crate::snapshot::Snapshot;
use crate::targets::{self, Targets};

/// What is read of a file that holds the record of a process.
const MAX_RECORD: usize = 16 << 20;

const HUMAN: HumanView = &[
    (
        "holder",
        &[
            Column {
                key: "pid",
                width: 7,
            },
            Column {
                key: "class",
                width: 10,
            },
            Column {
                key: "active",
                width: 5,
            },
            Column {
                key: "name",
                width: 15,
            },
            Column {
                key: "evidence.0.by",
                width: 10,
            },
            Column {
                key: "session_id",
                width: 36,
            },
            Column {
                key: "argv",
                width: 0,
            },
        ],
    ),
    (
        "scan",
        &[
            Column {
                key: "verdict",
                width: 10,
            },
            Column {
                key: "holders",
                width: 5,
            },
            Column {
                key: "processes",
                width: 7,
            },
            Column {
                key: "complete",
                width: 5,
            },
        ],
    ),
];

/// Runs the tool.
pub fn run(args: Args) -> Result<Status, Failure> {
    let started = Instant::now();
    args.check().map_err(Failure::usage)?;
    // Zero is one look, which waits for nothing and so needs no end.
    let deadline = Deadline::after_or_never(Some(args.timeout).filter(|wait| !wait.is_zero()));
    let mut output = Output::new(&args.output, HUMAN);
    output.set_deadline(deadline);
    let call = Call {
        here: Here::new(),
        started,
        deadline,
        args,
    };
    let status = call.answer(&mut output)?;
    output.finish().map_err(late_is_unknown)?;
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
    args: Args,
}

impl Call {
    fn answer(&self, output: &mut Output) -> Result<Status, Failure> {
        let (question, targets) = self.ask()?;
        let resolve = |path: &[u8]| self.resolve(path);
        let (snapshot, look) = live::scan(
            &self.here,
            &Request {
                question: &question,
                targets: &targets,
                scope: Scope::Asked,
                uid: self.args.what.uid,
                deadline: self.deadline,
                resolve: &resolve,
            },
        );
        let mut look = look;
        targets
            .problems
            .iter()
            .for_each(|problem| look.fail(problem.as_str()));
        let judgement = judge::judge(&snapshot, &question, &resolve);
        self.tell(output, &snapshot, &question, &judgement)?;
        self.conclude(output, &judgement, &look)
    }

    /// What is asked, with everything looked up that it names.
    fn ask(&self) -> Result<(Question, Targets), Failure> {
        let records = own_records(&self.args.own)?;
        let what = self.args.what.clone();
        let own = self.args.own.clone();
        let looked = bounded(self.deadline, move || {
            (Targets::look(&what), criteria(&own, records))
        });
        let Some((targets, criteria)) = looked else {
            return Err(Failure::unknown("a named file does not answer in time"));
        };
        let question = Question {
            ids: self.args.what.session_id.clone(),
            criteria,
            mentions: self.args.mentions,
            include_self: self.args.include_self,
        };
        Ok((question, targets))
    }

    fn resolve(&self, path: &[u8]) -> Option<Vec<u8>> {
        let path = path::to_path(path);
        let resolved = bounded(self.deadline, move || process::kernel_path(&path).ok())??;
        Some(path::bytes_of(&resolved))
    }

    fn tell(
        &self,
        output: &mut Output,
        snapshot: &Snapshot,
        question: &Question,
        judgement: &Judgement,
    ) -> Result<(), Failure> {
        for finding in &judgement.findings {
            let full = self.args.full_argv;
            let holder = Holder::new(snapshot, question, finding, None, full);
            output.emit(&holder).map_err(late_is_unknown)?;
        }
        Ok(())
    }

    /// The `scan` record and the exit status.
    fn conclude(
        &self,
        output: &mut Output,
        judgement: &Judgement,
        look: &Look,
    ) -> Result<Status, Failure> {
        let all_users = self.args.what.all_users;
        let complete = look.is_complete(all_users);
        look.explain(all_users);
        let scan = Scan {
            v: 1,
            r#type: "scan",
            what: what(&self.args.what),
            verdict: Some(judgement.verdict(complete)),
            holders: judgement.holders(),
            processes: look.processes,
            unreadable: look.unreadable,
            others_unseen: look.others_unseen,
            complete,
            host: self.here.host().to_owned(),
            boot_id: self.here.boot().map(|boot| boot.to_string()),
            pidns: self.here.space(),
            took_ms: millis(self.started.elapsed()),
            at: records::time::now(),
        };
        output.emit(&scan).map_err(late_is_unknown)?;
        Ok(self.status(judgement.holders() > 0, complete))
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

/// The caller's criteria, with everything looked up that they name.
fn criteria(own: &OwnArgs, records: Option<Vec<Identity>>) -> Criteria {
    let places = |paths: &[PathBuf]| paths.iter().map(|path| targets::place(path)).collect();
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
fn what(args: &WhatArgs) -> What {
    let mut what = What::default();
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| shown(path)).collect::<Vec<_>>();
    let ids = args.session_id.iter().map(|id| id.as_str().to_owned());
    let lists = [
        ("session_id", ids.collect()),
        ("file", paths(&args.file)),
        ("socket", paths(&args.socket)),
        ("env", args.env.iter().map(|env| env.name.clone()).collect()),
        (
            "arg",
            args.arg.iter().map(|arg| shown(Path::new(arg))).collect(),
        ),
        ("cwd", paths(&args.cwd)),
        ("cwd_under", paths(&args.cwd_under)),
        ("port", args.port.iter().map(u16::to_string).collect()),
        ("tty", paths(&args.tty)),
        ("uid", args.uid.iter().map(u32::to_string).collect()),
    ];
    what.0
        .extend(lists.into_iter().filter(|(_, list)| !list.is_empty()));
    what
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
