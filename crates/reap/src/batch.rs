//! All input of one call: what each line asks for, before anything is looked at.

use std::time::{Duration, SystemTime};

use process::{Identity, Operand};
use records::{Record, Status};

use crate::guarded::Keepers;
use crate::judge::{Claim, Judgement, Rules, judge};
use crate::verdict::Verdict;

/// Everything that was asked for, in order.
#[derive(Debug, Default)]
pub struct Batch {
    /// What is printed in the end, line by line.
    pub lines: Vec<Line>,
    /// What is to be done, each with its place in a line.
    pub jobs: Vec<Job>,
    /// What `exit` records say of processes that have ended.
    pub evidence: Vec<Evidence>,
    /// What the records themselves mean for the exit status.
    status: Option<Status>,
    /// A holder has come, and no `scan` record after it.
    unscanned: bool,
}

/// A line of output.
#[derive(Debug)]
pub enum Line {
    /// A record of the input, with the jobs that it gave.
    Record(Vec<u8>, Vec<(Place, usize)>),
    /// A bare operand, which gets a record of its own.
    Operand(usize),
}

/// Where in a record a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the record.
    Whole,
    /// It is this element of the record's `stale`.
    Stale(usize),
}

/// One target, or why it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// To be ended.
    End {
        /// Who.
        claim: Box<Claim>,
        /// The process must not have started after this: a file names it by its pid alone.
        not_after: Option<SystemTime>,
    },
    /// Not to be touched.
    Refuse(Verdict),
}

/// What an `exit` record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Who has ended.
    pub ident: Identity,
    /// How long it had lived.
    pub uptime: Option<Duration>,
    /// Who outlived it.
    pub stranded: Vec<Identity>,
}

impl Batch {
    /// Takes one record of the input.
    pub fn take(&mut self, record: &Record<'_>, rules: Rules) {
        let kind = record.kind();
        let jobs = match kind.as_deref() {
            // A row may have any type of its own; one that was answered is not for us.
            _ if record.get("holding").is_some() => Vec::new(),
            Some("decision") => self.take_decision(record, rules),
            _ => self.take_plain(record, kind.as_deref(), rules),
        };
        self.lines.push(Line::Record(record.bytes().to_vec(), jobs));
    }

    fn take_plain(
        &mut self,
        record: &Record<'_>,
        kind: Option<&str>,
        rules: Rules,
    ) -> Vec<(Place, usize)> {
        match kind {
            Some("exit") => self.evidence.extend(evidence(record)),
            Some("holder") => self.unscanned = true,
            Some("scan") => {
                self.unscanned = false;
                if record.bool("complete") != Some(true) {
                    self.worsen(Status::Unknown);
                }
            }
            _ => {}
        }
        let job = match judge(record, rules) {
            Judgement::Pass => return Vec::new(),
            Judgement::Refused(verdict) => Job::Refuse(verdict),
            Judgement::Target(claim) => Job::End {
                claim: Box::new(claim),
                not_after: None,
            },
        };
        vec![(Place::Whole, self.push(job))]
    }

    /// All of a decision's stale holders are ended, or none.
    fn take_decision(&mut self, record: &Record<'_>, rules: Rules) -> Vec<(Place, usize)> {
        let action = record.str("action");
        let status = decided(action.as_deref());
        self.worsen(status);
        let stale = record.array("stale");
        // Whom it means cannot be told: nobody is ended for it, and nothing may follow from that.
        if stale.is_none() && (action.as_deref() == Some("reclaim") || record.has("stale")) {
            self.worsen(Status::Unknown);
        }
        let rules = Rules {
            active: true,
            ..rules
        };
        let mut verdicts = Vec::new();
        for element in stale.unwrap_or_default() {
            verdicts.push(match Record::parse(element.get().as_bytes()) {
                Ok(stale) => judge(&stale, rules),
                Err(_) => Judgement::Pass,
            });
        }
        let veto = if status == Status::Unknown {
            Some(Verdict::UNKNOWN)
        } else {
            verdicts.iter().find_map(|judgement| match judgement {
                Judgement::Pass => Some(Verdict::Foreign),
                Judgement::Refused(verdict) => Some(*verdict),
                Judgement::Target(_) => None,
            })
        };
        let jobs = verdicts
            .into_iter()
            .map(|judgement| match (judgement, veto) {
                (Judgement::Refused(own), _) => Job::Refuse(own),
                (_, Some(veto)) => Job::Refuse(veto),
                (Judgement::Pass, None) => Job::Refuse(Verdict::Foreign),
                (Judgement::Target(claim), None) => Job::End {
                    claim: Box::new(claim),
                    not_after: None,
                },
            });
        let places = jobs.enumerate();
        places
            .map(|(index, job)| (Place::Stale(index), self.push(job)))
            .collect()
    }

    /// Takes one target of the command line.
    pub fn take_operand(&mut self, operand: &Operand) {
        let claim = match operand {
            Operand::Pid(pid) => Claim {
                pid: *pid,
                ident: None,
                host: None,
                keepers: Keepers::default(),
            },
            Operand::Ident(ident) => Claim {
                pid: ident.pid(),
                ident: Some(ident.clone()),
                host: None,
                keepers: Keepers::default(),
            },
        };
        self.take_claim(claim, None);
    }

    /// Takes one target that has no record.
    pub fn take_claim(&mut self, claim: Claim, not_after: Option<SystemTime>) {
        let job = self.push(Job::End {
            claim: Box::new(claim),
            not_after,
        });
        self.lines.push(Line::Operand(job));
    }

    /// What the input alone means for the exit status.
    pub fn status(&self) -> Status {
        let status = self.status.unwrap_or(Status::Done);
        if self.unscanned {
            // Somebody looked, and did not say that he had seen everything.
            status.worse(Status::Unknown)
        } else {
            status
        }
    }

    /// Makes the exit status no better than `status`.
    pub fn worsen(&mut self, status: Status) {
        self.status = Some(self.status.unwrap_or(Status::Done).worse(status));
    }

    fn push(&mut self, job: Job) -> usize {
        self.jobs.push(job);
        self.jobs.len() - 1
    }
}

/// The exit status of a decision: launch it, do not, or it is not known.
fn decided(action: Option<&str>) -> Status {
    match action {
        Some("resume" | "assign" | "spawn" | "mint" | "reclaim") => Status::Done,
        Some("already_running" | "give_up") => Status::No,
        _ => Status::Unknown,
    }
}

fn evidence(record: &Record<'_>) -> Option<Evidence> {
    let stranded = record.array("stranded").unwrap_or_default();
    Some(Evidence {
        ident: record.str("ident")?.parse().ok()?,
        uptime: record.u64("uptime_ms").map(Duration::from_millis),
        stranded: stranded
            .into_iter()
            .filter_map(|member| {
                let member = Record::parse(member.get().as_bytes()).ok()?;
                member.str("ident")?.parse().ok()
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENT: &str = "linux:0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e:4026531836:10:981234:5531";

    fn batch(lines: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for line in lines {
            let line = line.replace("IDENT", IDENT);
            batch.take(&Record::parse(line.as_bytes()).unwrap(), Rules::default());
        }
        batch
    }

    fn words(batch: &Batch) -> Vec<&'static str> {
        let word = |job: &Job| match job {
            Job::End { .. } => "end",
            Job::Refuse(verdict) => verdict.word(),
        };
        batch.jobs.iter().map(word).collect()
    }

    const OWN: &str =
        r#"{"type":"holder","class":"own","active":true,"root":10,"root_ident":"IDENT"}"#;
    const FOREIGN: &str = r#"{"type":"holder","class":"foreign","root":10,"root_ident":"IDENT"}"#;
    const BARE: &str = r#"{"type":"process","pid":10}"#;

    #[test]
    fn a_decision_is_taken_whole_or_not_at_all() {
        let table: [(&[&str], &[&str]); 7] = [
            (&[], &[]),
            (&[OWN], &["end"]),
            (&[OWN, OWN], &["end", "end"]),
            (&[OWN, FOREIGN, OWN], &["foreign", "foreign", "foreign"]),
            (&[OWN, BARE], &["no_identity", "no_identity"]),
            (&[OWN, "7"], &["foreign", "foreign"]),
            (&[OWN, r#"{"type":"session"}"#], &["foreign", "foreign"]),
        ];
        for (stale, expected) in table {
            let stale = stale.join(",");
            let line = format!(r#"{{"type":"decision","action":"reclaim","stale":[{stale}]}}"#);
            assert_eq!(words(&batch(&[&line])), expected, "{line}");
        }
        let line = format!(r#"{{"type":"decision","action":"unknown","stale":[{OWN}]}}"#);
        assert_eq!(words(&batch(&[&line])), ["unknown"]);
        let line = r#"{"type":"decision","action":"mint"}"#;
        assert_eq!(words(&batch(&[line])), [] as [&str; 0]);
    }

    #[test]
    fn a_decision_that_does_not_say_who_is_stale() {
        let table = [
            (r#""action":"mint""#, 0),
            (r#""action":"mint","stale":null"#, 0),
            (r#""action":"reclaim","stale":[]"#, 0),
            (r#""action":"reclaim""#, 3),
            (r#""action":"reclaim","stale":null"#, 3),
            (r#""action":"reclaim","stale":{"0":{}}"#, 3),
            (r#""action":"mint","stale":"x""#, 3),
            (r#""action":"give_up","stale":7"#, 3),
        ];
        for (keys, code) in table {
            let line = format!(r#"{{"type":"decision",{keys}}}"#);
            let batch = batch(&[&line]);
            assert_eq!(batch.status().code(), code, "{line}");
            assert!(batch.jobs.is_empty());
        }
    }

    #[test]
    fn what_the_look_was_worth() {
        let whole = r#"{"type":"scan","complete":true}"#;
        let half = r#"{"type":"scan","complete":false}"#;
        let table: [(&[&str], u8); 8] = [
            (&[], 0),
            (&[OWN, whole], 0),
            (&[OWN], 3),
            (&[whole, OWN], 3),
            (&[OWN, half], 3),
            (&[half], 3),
            (&[OWN, half, OWN, whole], 3),
            (&[OWN, r#"{"type":"scan"}"#], 3),
        ];
        for (lines, code) in table {
            assert_eq!(batch(lines).status().code(), code, "{lines:?}");
        }
    }

    #[test]
    fn what_an_announcement_proves() {
        let exit = r#"{"type":"exit","ident":"IDENT","uptime_ms":1500,
            "stranded":[{"pid":10,"ident":"IDENT"},{"pid":11},7]}"#;
        let batch = batch(&[exit, r#"{"type":"exit","ident":"x"}"#, r#"{"type":"exit"}"#]);
        let ident: Identity = IDENT.parse().unwrap();
        let proof = Evidence {
            ident: ident.clone(),
            uptime: Some(Duration::from_millis(1500)),
            stranded: vec![ident],
        };
        assert_eq!(batch.evidence, [proof]);
        assert_eq!(batch.lines.len(), 3, "they are passed on");
        assert!(batch.jobs.is_empty());
    }
}
