//! How the session's agents have died before.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use records::Record;
use serde::Serialize;
use serde_json::value::RawValue;

use agents::Shape;

/// One death.
#[derive(Clone, Debug)]
pub struct Death {
    /// How long the agent had lived; `None` where nobody knows.
    uptime: Option<Duration>,
    /// Whether it was stopped on purpose.
    deliberate: bool,
    at: Option<SystemTime>,
    exit: Exit,
}

/// How it ended, for people.
#[derive(Clone, Debug, Serialize)]
pub struct Exit {
    code: Option<Box<RawValue>>,
    signal: Option<Box<RawValue>>,
    uptime_ms: Option<u64>,
    at: Option<Box<RawValue>>,
    log_tail: Option<String>,
}

impl Exit {
    /// The end of its log, where there is one.
    pub fn log_tail(&self) -> Option<&str> {
        self.log_tail.as_deref()
    }

    /// In words: `exit code 1 after 0.2 s`.
    pub fn describe(&self) -> String {
        // A caller's own record may have the number of a signal, and a code of 0 beside it.
        let signal = self.signal.as_deref().map(|value| {
            let name = records::record::string(value);
            name.unwrap_or_else(|| value.get().into())
        });
        let code = self.code.as_deref().map(RawValue::get);
        let how = match (signal, code) {
            (Some(signal), _) if !["", "0", "null"].contains(&&*signal) => {
                format!("killed by signal {signal}")
            }
            (_, Some(code)) if code != "null" => format!("exit code {code}"),
            _ => "in a way that nobody saw".to_owned(),
        };
        match self.uptime_ms {
            Some(ms) => format!("{how} after {}.{} s", ms / 1000, ms % 1000 / 100),
            None => how,
        }
    }
}

/// All deaths of one id, in the order in which they are told.
#[derive(Debug, Default)]
pub struct History {
    deaths: Vec<Death>,
    seen: HashSet<String>,
}

impl History {
    /// Takes a record of a history: a death of this id, or something else, which is left aside. One
    /// that a rotated file repeats counts once.
    pub fn hear(&mut self, record: &Record<'_>, id: &str, shape: &Shape) {
        let is_exit = match record.kind() {
            Some(kind) => kind == "exit",
            None => record.get("code").is_some() || record.get("signal").is_some(),
        };
        if !is_exit || !is_of(record, id, shape) {
            return;
        }
        if let Some(death_id) = record.str("death_id")
            && !self.seen.insert(death_id.into_owned())
        {
            return;
        }
        let own = |key: &str| record.get(key).map(ToOwned::to_owned);
        let uptime_ms = milliseconds(record, "uptime_ms");
        self.deaths.push(Death {
            uptime: uptime_ms.map(Duration::from_millis),
            deliberate: record.bool("deliberate") == Some(true),
            at: at(record),
            exit: Exit {
                code: own("code"),
                signal: own("signal"),
                uptime_ms,
                at: own("at"),
                log_tail: record.str("log_tail").map(|tail| tail.into_owned()),
            },
        });
    }

    /// How often in a row the newest deaths came within `min_uptime`, and the newest of all.
    ///
    /// Exit code 0 is no excuse: an agent that cannot start may leave with it. A quick stop on
    /// purpose says nothing, neither does a death of which nobody knows the uptime; whatever lived
    /// long enough ends the row.
    pub fn judge(mut self, min_uptime: Duration) -> Deaths {
        if self.deaths.iter().all(|death| death.at.is_some()) {
            self.deaths.sort_by_key(|death| death.at);
        }
        let newest_first = self.deaths.iter().rev();
        let long = |death: &Death| death.uptime.is_some_and(|uptime| uptime >= min_uptime);
        let failures = newest_first
            .take_while(|death| !long(death))
            .filter(|death| !death.deliberate && death.uptime.is_some())
            .count();
        Deaths {
            failures: u64::try_from(failures).unwrap_or(u64::MAX),
            last: self.deaths.pop().map(|death| death.exit),
        }
    }
}

/// What a history comes to.
#[derive(Clone, Debug, Default)]
pub struct Deaths {
    /// Quick deaths in a row, up to now.
    pub failures: u64,
    /// The newest death.
    pub last: Option<Exit>,
}

fn is_of(record: &Record<'_>, id: &str, shape: &Shape) -> bool {
    if let Some(of) = record.str("session_id") {
        return shape.same(&of, id);
    }
    let mut words: Vec<String> = record
        .str("tag")
        .map(|tag| tag.into_owned())
        .into_iter()
        .collect();
    let argv = record.array("argv").unwrap_or_default().into_iter();
    words.extend(
        argv.filter_map(records::record::string)
            .map(|word| word.into_owned()),
    );
    words.iter().any(|word| has_word(word, id, shape))
}

/// Whether `text` has the id in it, not as a part of a longer word; `-rID` is a flag with the id.
fn has_word(text: &str, id: &str, shape: &Shape) -> bool {
    let (text, id) = if shape.ignores_case() {
        (text.to_ascii_lowercase(), id.to_ascii_lowercase())
    } else {
        (text.to_owned(), id.to_owned())
    };
    if text.strip_prefix("-r") == Some(&id) {
        return true;
    }
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(&id).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + id.len()..].chars().next();
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    })
}

/// A duration: whole milliseconds, or what a clock of fractions gives.
fn milliseconds(record: &Record<'_>, key: &str) -> Option<u64> {
    let fraction = || u64::try_from(seconds(record, key, 1000.0)?.as_millis()).ok();
    record.u64(key).or_else(fraction)
}

/// The time of a death: RFC 3339, or seconds since 1970.
fn at(record: &Record<'_>) -> Option<SystemTime> {
    if let Some(text) = record.str("at") {
        return records::time::parse(&text).ok();
    }
    UNIX_EPOCH.checked_add(seconds(record, "at", 1.0)?)
}

/// A number of which so many are a second.
fn seconds(record: &Record<'_>, key: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = serde_json::from_str(record.get(key)?.get()).ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A1: &str = "00000000-0000-4000-8000-0000000000a1";

    fn deaths(lines: &[&str]) -> Deaths {
        let shape = Shape::try_from("uuid".to_owned()).unwrap();
        let mut history = History::default();
        for line in lines {
            history.hear(&Record::parse(line.as_bytes()).unwrap(), A1, &shape);
        }
        history.judge(Duration::from_secs(8))
    }

    fn death(rest: &str) -> String {
        format!(r#"{{"session_id":"{A1}",{rest}}}"#)
    }

    #[test]
    fn which_deaths_count() {
        let crash = death(r#""code":1,"uptime_ms":200"#);
        let zero = death(r#""code":0,"signal":null,"uptime_ms":10"#);
        let edge = death(r#""code":1,"uptime_ms":8000"#);
        let killed = death(r#""code":null,"signal":"KILL","uptime_ms":7999"#);
        let stopped = death(r#""code":143,"uptime_ms":100,"deliberate":true"#);
        let stopped_late = death(r#""code":143,"uptime_ms":90000,"deliberate":true"#);
        let unseen = death(r#""code":null,"signal":null,"uptime_ms":null"#);
        let fraction = death(r#""code":1,"uptime_ms":199.7"#);
        let negative = death(r#""code":1,"uptime_ms":-1"#);
        let table: [(&str, &[&str], u64); 12] = [
            ("none", &[], 0),
            ("a clock of fractions", &[&fraction, &fraction], 2),
            ("no time at all", &[&negative, &fraction], 1),
            ("crashes", &[&crash, &crash, &crash], 3),
            ("code 0 is no excuse", &[&zero, &zero, &zero], 3),
            ("a signal", &[&killed], 1),
            ("eight seconds are enough", &[&crash, &crash, &edge], 0),
            ("only the newest count", &[&crash, &crash, &edge, &crash], 1),
            (
                "a quick stop says nothing",
                &[&crash, &crash, &stopped, &crash],
                3,
            ),
            (
                "a late stop shows health",
                &[&crash, &crash, &stopped_late, &crash],
                1,
            ),
            ("a death that nobody timed", &[&crash, &unseen, &crash], 2),
            (
                "a hundred crashes, healthy days between",
                &[&crash, &edge, &crash],
                1,
            ),
        ];
        for (name, lines, want) in table {
            assert_eq!(deaths(lines).failures, want, "{name}");
        }
    }

    #[test]
    fn which_records_are_deaths_of_this_id() {
        let quick = r#""code":1,"uptime_ms":1"#;
        let upper = A1.to_uppercase();
        let table = [
            (
                format!(r#"{{"type":"exit","session_id":"{upper}",{quick}}}"#),
                1,
            ),
            (format!(r#"{{"type":"exit","tag":"{A1}",{quick}}}"#), 1),
            (
                format!(r#"{{"type":"exit","tag":"claude:{A1}",{quick}}}"#),
                1,
            ),
            (
                format!(r#"{{"type":"exit","argv":["claude","--resume","{A1}"],{quick}}}"#),
                1,
            ),
            (
                format!(r#"{{"type":"exit","argv":["claude","--resume={A1}"],{quick}}}"#),
                1,
            ),
            (
                format!(r#"{{"type":"exit","argv":["claude","-r{A1}"],{quick}}}"#),
                1,
            ),
            (
                format!(r#"{{"type":"exit","argv":["node","{{\"id\":\"{A1}\"}}"],{quick}}}"#),
                1,
            ),
            (
                format!(r#"{{"type":"exit","argv":["claude","{A1}0"],{quick}}}"#),
                0,
            ),
            (
                format!(r#"{{"type":"exit","session_id":"other","tag":"{A1}",{quick}}}"#),
                0,
            ),
            (format!(r#"{{"type":"exit",{quick}}}"#), 0),
            (format!(r#"{{"type":"give_up","tag":"{A1}",{quick}}}"#), 0),
            (
                format!(r#"{{"type":"process","tag":"{A1}","uptime_ms":1}}"#),
                0,
            ),
            (format!(r#"{{"session_id":"{A1}","uptime_ms":1}}"#), 0),
            (
                format!(r#"{{"session_id":"{A1}","uptime_ms":1,"signal":"TERM"}}"#),
                1,
            ),
        ];
        for (line, want) in table {
            assert_eq!(deaths(&[&line]).failures, want, "{line}");
        }
        let twice = death(r#""code":1,"uptime_ms":1,"death_id":"d""#);
        assert_eq!(deaths(&[&twice, &twice]).failures, 1);
    }

    #[test]
    fn a_signal_is_said_whatever_the_code_beside_it() {
        let table = [
            (r#""code":0,"signal":"9""#, "killed by signal 9"),
            (r#""code":0,"signal":9"#, "killed by signal 9"),
            (r#""code":null,"signal":"KILL""#, "killed by signal KILL"),
            (r#""code":0,"signal":"0""#, "exit code 0"),
            (r#""code":0,"signal":0"#, "exit code 0"),
            (r#""code":130,"signal":null"#, "exit code 130"),
            (r#""code":1"#, "exit code 1"),
            (r#""code":null,"signal":null"#, "in a way that nobody saw"),
        ];
        for (how, want) in table {
            let told = deaths(&[&death(&format!("{how},\"uptime_ms\":500"))]);
            assert_eq!(told.failures, 1, "{how}");
            assert_eq!(told.last.unwrap().describe(), format!("{want} after 0.5 s"));
        }
    }

    #[test]
    fn the_newest_is_told_by_its_time() {
        let at = |at: &str, uptime: u32| {
            death(&format!(
                r#""code":{uptime},"uptime_ms":{uptime},"at":{at}"#
            ))
        };
        let shuffled = deaths(&[
            &at("1795962381.5", 1),
            &at("\"2026-11-29T14:26:20Z\"", 9000),
            &at("\"2026-11-29T14:26:23.123Z\"", 2),
        ]);
        assert_eq!(shuffled.failures, 2);
        assert_eq!(shuffled.last.unwrap().describe(), "exit code 2 after 0.0 s");
        // Where one has no time, the order is that of the file.
        let untimed = death(r#""code":1,"signal":"KILL","uptime_ms":9000,"log_tail":"boom""#);
        let last = deaths(&[&at("1795962381", 1), &untimed]);
        assert_eq!(last.failures, 0);
        let last = last.last.unwrap();
        assert_eq!(last.describe(), "killed by signal KILL after 9.0 s");
        assert_eq!(last.log_tail(), Some("boom"));
    }
}
