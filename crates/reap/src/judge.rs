//! The judgement of a record by itself: whether it names a target, which one, and what forbids it.
//! Pure; nothing here looks at a process.

use process::end::{Outcome, Refusal};
use process::{Identity, Pid};
use records::{Record, number};

use crate::guarded::Keepers;
use crate::verdict::Verdict;

/// What the caller allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// A pid alone will do (`--allow-bare-pid`).
    pub bare_pid: bool,
    /// An own holder may be active: `--active`, or a decision names it.
    pub active: bool,
}

/// What a record is to `reap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing; it is passed on as it is.
    Pass,
    /// A target that is refused for what the record says.
    Refused(Verdict),
    /// A target.
    Target(Claim),
}

/// What a record claims to be its process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The number.
    pub pid: Pid,
    /// Who had that number when the record was made; `None` only where a pid alone will do.
    pub ident: Option<Identity>,
    /// The host the record was made on, where it says so.
    pub host: Option<String>,
    /// Who has to know of its end.
    pub keepers: Keepers,
}

/// Judges one record.
pub fn judge(record: &Record<'_>, rules: Rules) -> Judgement {
    // A row of a registry that holder-scan has answered: it is for whoever keeps the registry.
    if record.get("holding").is_some() {
        return Judgement::Pass;
    }
    let kind = record.kind();
    let judged = match kind.as_deref() {
        Some("process") if record.str("status").as_deref() == Some("occupied") => {
            // It names who serves the socket instead of the command.
            Err(Verdict::Foreign)
        }
        Some("process" | "binding" | "marker") => target(record, rules, "pid", "ident"),
        Some("holder") => holder(record, rules),
        None if !record.has("type") && (record.has("pid") || record.has("ident")) => {
            target(record, rules, "pid", "ident")
        }
        _ => return Judgement::Pass,
    };
    judged.map_or_else(Judgement::Refused, Judgement::Target)
}

/// A holder is judged as a tree, by its root. What is not certainly our own is foreign, and a
/// shared daemon never is our own.
fn holder(record: &Record<'_>, rules: Rules) -> Result<Claim, Verdict> {
    if record.str("class").as_deref() != Some("own") || may_be(record, "shared") {
        return Err(Verdict::Foreign);
    }
    if may_be(record, "active") && !rules.active {
        return Err(Verdict::Active);
    }
    target(record, rules, "root", "root_ident")
}

/// Whether the record says so, or says something else than that it is not so.
fn may_be(record: &Record<'_>, key: &str) -> bool {
    record.has(key) && record.bool(key) != Some(false)
}

/// A word that a record may leave out, but not have anything else for: who is meant, or who has to
/// know of it, could not be told then.
fn word(record: &Record<'_>, key: &str) -> Result<Option<String>, Verdict> {
    match record.str(key) {
        Some(word) => Ok(Some(word.into_owned())),
        None if record.has(key) => Err(Verdict::NoIdentity),
        None => Ok(None),
    }
}

fn keepers(record: &Record<'_>) -> Result<Keepers, Verdict> {
    let guard = word(record, "guard.ident")?.map(|guard| guard.parse());
    let guard = guard.transpose().map_err(|_| Verdict::NoIdentity)?;
    if guard.is_none() && record.has("guard") {
        return Err(Verdict::NoIdentity);
    }
    Ok(Keepers {
        marker: word(record, "marker")?.map(Into::into),
        guard,
    })
}

fn target(
    record: &Record<'_>,
    rules: Rules,
    pid_key: &str,
    ident_key: &str,
) -> Result<Claim, Verdict> {
    if record.has("verdict") {
        let state = record.str("verdict.state");
        if !matches!(state.as_deref(), Some("match" | "orphaned" | "gone")) {
            return Err(Verdict::NotVerified);
        }
    }
    let pid = record.get(pid_key).map(|value| value.get());
    let pid = pid.and_then(|text| number::parse(text).ok());
    let pid = pid.and_then(|pid| Pid::new(i64::try_from(pid).ok()?));
    let pid = pid.ok_or(Verdict::BadPid)?;
    if pid.is_init() {
        return Err(Verdict::Of(Outcome::Refused(Refusal::Init)));
    }
    let ident = if record.has(ident_key) {
        let word = record.str(ident_key).ok_or(Verdict::NoIdentity)?;
        let ident: Identity = word.parse().map_err(|_| Verdict::NoIdentity)?;
        if ident.pid() != pid {
            return Err(Verdict::BadPid);
        }
        Some(ident)
    } else if rules.bare_pid {
        None
    } else {
        return Err(Verdict::NoIdentity);
    };
    Ok(Claim {
        pid,
        ident,
        host: word(record, "host")?,
        keepers: keepers(record)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENT: &str = "linux:0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e:4026531836:10:981234:5531";

    fn judged(line: &str, rules: Rules) -> String {
        let line = line.replace("IDENT", IDENT);
        match judge(&Record::parse(line.as_bytes()).unwrap(), rules) {
            Judgement::Pass => "pass".to_owned(),
            Judgement::Refused(verdict) => verdict.word().to_owned(),
            Judgement::Target(claim) => match claim.ident {
                Some(_) => format!("target {}", claim.pid),
                None => format!("bare {}", claim.pid),
            },
        }
    }

    #[test]
    fn which_records_are_targets() {
        let strict = Rules::default();
        let table = [
            (
                r#"{"type":"process","pid":10,"ident":"IDENT"}"#,
                "target 10",
            ),
            (
                r#"{"type":"binding","pid":10,"ident":"IDENT"}"#,
                "target 10",
            ),
            (r#"{"type":"marker","pid":10,"ident":"IDENT"}"#, "target 10"),
            (r#"{"pid":10,"ident":"IDENT","task":"a"}"#, "target 10"),
            (r#"{"type":null,"pid":10,"ident":"IDENT"}"#, "target 10"),
            (
                r#"{"type":"holder","class":"own","root":10,"root_ident":"IDENT","pid":99}"#,
                "target 10",
            ),
            (r#"{"task":"a"}"#, "pass"),
            (r#"{}"#, "pass"),
            (r#"{"type":"scan","pid":10,"ident":"IDENT"}"#, "pass"),
            (
                r#"{"type":"process_entry","pid":10,"ident":"IDENT"}"#,
                "pass",
            ),
            (r#"{"type":"exit","pid":10,"ident":"IDENT"}"#, "pass"),
            (r#"{"type":"session","pid":10,"ident":"IDENT"}"#, "pass"),
            (r#"{"type":7,"pid":10,"ident":"IDENT"}"#, "pass"),
            (
                r#"{"pid":10,"ident":"IDENT","holding":{"state":"alive"}}"#,
                "pass",
            ),
            (
                r#"{"type":"process","status":"occupied","pid":10,"ident":"IDENT"}"#,
                "foreign",
            ),
        ];
        for (line, expected) in table {
            assert_eq!(judged(line, strict), expected, "{line}");
        }
    }

    #[test]
    fn numbers_that_are_no_targets() {
        for pid in [
            "0",
            "-1",
            "-5",
            "null",
            "\"10\"",
            "10.0",
            "1e1",
            "4294967295",
            "4294967296",
            "4294967306",
            "4194305",
            "99999999999999999999",
            "[10]",
            "true",
            "\"\"",
            "\"1 2\"",
        ] {
            let line = format!(r#"{{"type":"process","pid":{pid},"ident":"IDENT"}}"#);
            assert_eq!(judged(&line, Rules::default()), "bad_pid", "{pid}");
            let line = format!(r#"{{"type":"process","pid":{pid}}}"#);
            let bare = Rules {
                bare_pid: true,
                ..Rules::default()
            };
            assert_eq!(judged(&line, bare), "bad_pid", "{pid}");
        }
        assert_eq!(
            judged(r#"{"type":"process","pid":1}"#, Rules::default()),
            "init"
        );
        assert_eq!(judged(r#"{"type":"process"}"#, Rules::default()), "bad_pid");
        let other = r#"{"type":"process","pid":11,"ident":"IDENT"}"#;
        assert_eq!(
            judged(other, Rules::default()),
            "bad_pid",
            "pid and identity differ"
        );
    }

    #[test]
    fn an_identity_is_wanted() {
        let bare = Rules {
            bare_pid: true,
            ..Rules::default()
        };
        let table = [
            (r#"{"type":"process","pid":10}"#, "no_identity", "bare 10"),
            (
                r#"{"type":"process","pid":10,"ident":null}"#,
                "no_identity",
                "bare 10",
            ),
            (
                r#"{"type":"process","pid":10,"ident":"x"}"#,
                "no_identity",
                "no_identity",
            ),
            (
                r#"{"type":"process","pid":10,"ident":7}"#,
                "no_identity",
                "no_identity",
            ),
            (r#"{"pid":10}"#, "no_identity", "bare 10"),
            (r#"{"ident":"IDENT"}"#, "bad_pid", "bad_pid"),
            (
                r#"{"type":"holder","class":"own","root":10,"ident":"IDENT"}"#,
                "no_identity",
                "bare 10",
            ),
        ];
        for (line, strict, allowed) in table {
            assert_eq!(judged(line, Rules::default()), strict, "{line}");
            assert_eq!(judged(line, bare), allowed, "{line}");
        }
    }

    #[test]
    fn what_is_said_of_its_surroundings_is_a_word_or_nothing() {
        let table = [
            (r#""host":"h","marker":"/m""#, "target 10"),
            (r#""host":null,"marker":null,"guard":null"#, "target 10"),
            (r#""guard":{"pid":9,"ident":"IDENT"}"#, "target 10"),
            (r#""host":7"#, "no_identity"),
            (r#""marker":["/m"]"#, "no_identity"),
            (r#""guard":{"pid":9,"ident":"x"}"#, "no_identity"),
            (r#""guard":{"pid":9,"ident":7}"#, "no_identity"),
            (r#""guard":{"pid":9}"#, "no_identity"),
            (r#""guard":9"#, "no_identity"),
        ];
        for (keys, expected) in table {
            let line = format!(r#"{{"type":"process","pid":10,"ident":"IDENT",{keys}}}"#);
            assert_eq!(judged(&line, Rules::default()), expected, "{line}");
        }
    }

    #[test]
    fn whose_holder_and_how_active() {
        let active = Rules {
            active: true,
            ..Rules::default()
        };
        let table = [
            ("\"class\":\"own\"", "target 10", "target 10"),
            (
                "\"class\":\"own\",\"active\":false",
                "target 10",
                "target 10",
            ),
            ("\"class\":\"own\",\"active\":true", "active", "target 10"),
            ("\"class\":\"own\",\"shared\":true", "foreign", "foreign"),
            (
                "\"class\":\"own\",\"shared\":false",
                "target 10",
                "target 10",
            ),
            ("\"class\":\"own\",\"shared\":\"no\"", "foreign", "foreign"),
            (
                "\"class\":\"own\",\"active\":\"true\"",
                "active",
                "target 10",
            ),
            ("\"class\":\"own\",\"active\":1", "active", "target 10"),
            ("\"class\":\"foreign\"", "foreign", "foreign"),
            ("\"class\":\"self\"", "foreign", "foreign"),
            ("\"class\":\"mention\"", "foreign", "foreign"),
            ("\"class\":null", "foreign", "foreign"),
            ("\"x\":0", "foreign", "foreign"),
        ];
        for (keys, plain, allowed) in table {
            let line = format!(r#"{{"type":"holder",{keys},"root":10,"root_ident":"IDENT"}}"#);
            assert_eq!(judged(&line, Rules::default()), plain, "{line}");
            assert_eq!(judged(&line, active), allowed, "{line}");
        }
    }

    #[test]
    fn what_was_verified() {
        let table = [
            (r#"{"state":"match"}"#, "target 10"),
            (r#"{"state":"orphaned"}"#, "target 10"),
            (r#"{"state":"gone"}"#, "target 10"),
            (r#"{"state":"foreign"}"#, "not_verified"),
            (r#"{"state":"moved"}"#, "not_verified"),
            (r#"{"state":"self"}"#, "not_verified"),
            (r#"{"state":"unknown"}"#, "not_verified"),
            (r#"{"state":"unbound"}"#, "not_verified"),
            (r#"{"state":null}"#, "not_verified"),
            (r#"{}"#, "not_verified"),
            (r#""match""#, "not_verified"),
            ("null", "target 10"),
        ];
        for (verdict, expected) in table {
            let line =
                format!(r#"{{"type":"binding","pid":10,"ident":"IDENT","verdict":{verdict}}}"#);
            assert_eq!(judged(&line, Rules::default()), expected, "{line}");
        }
    }
}
