//! The portable fallback: a start time in whole seconds, from `ps`.

use std::process::Command;
use std::time::{Instant, SystemTime};

use crate::helper;
use crate::ident::{Identity, LstartIdentity};
use crate::pid::Pid;

/// `ps` by its full path, since one that PATH names first could say anything.
const PS: [&str; 2] = ["/bin/ps", "/usr/bin/ps"];

/// More than `ps` prints of one process.
const LIMIT: usize = 4096;

/// The identity of `pid` from `ps`, be it a zombie; `None` where `ps` knows no such process.
///
/// # Errors
///
/// `ps` is missing, too slow, or of another kind; the text says so.
pub(crate) fn read(pid: Pid, host: &str, deadline: Instant) -> Result<Option<Identity>, String> {
    let ps = PS
        .iter()
        .find(|path| std::path::Path::new(path).exists())
        .ok_or("there is neither /proc nor ps to read its start time from")?;
    let mut command = Command::new(ps);
    // POSIX lists lstart in no locale but this, and daylight saving time would shift it.
    command.args(["-o", "stat=", "-o", "lstart=", "-p", &pid.to_string()]);
    command.env_clear().env("TZ", "UTC0").env("LC_ALL", "C");
    let ran = helper::run(&mut command, deadline, LIMIT).map_err(|why| format!("{ps}: {why}"))?;
    let line = String::from_utf8_lossy(&ran.stdout);
    match parse(&line) {
        Some(seconds) => Ok(Some(Identity::Lstart(LstartIdentity {
            host: host.to_owned(),
            pid,
            seconds,
        }))),
        // POSIX leaves open how `ps` says that there is no such process: it prints no line of it.
        None if line.trim().is_empty() && ran.stderr.is_empty() => Ok(None),
        None => Err(format!(
            "{ps} does not tell the start time of process {pid}"
        )),
    }
}

/// Reads `Ss   Sun Nov 29 14:26:21 2026`; seconds since the epoch.
fn parse(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_state, _weekday, month, day, time, year] = words[..] else {
        return None;
    };
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let stamp = format!("{year}-{month:02}-{day:0>2}T{time}Z");
    let at = humantime::parse_rfc3339(&stamp).ok()?;
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ps() {
        let table = [
            ("Ss   Sun Nov 29 14:26:21 2026\n", Some(1_795_962_381)),
            ("R+   Thu Jan  1 00:00:59 1970", Some(59)),
            ("Z    Sun Nov 29 14:26:21 2026", Some(1_795_962_381)),
            ("", None),
            ("S    So Nov 29 14:26:21", None),
            ("S    So 29. Nov 14:26:21 2026", None),
            ("S    Sun Nov 31 25:26:21 2026", None),
        ];
        for (line, expected) in table {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn ps_agrees_with_itself() {
        let deadline = Instant::now() + std::time::Duration::from_secs(10);
        let own = read(Pid::own(), "here", deadline).unwrap().unwrap();
        let again = read(Pid::own(), "here", deadline).unwrap().unwrap();
        assert_eq!(own.compare(&again), crate::Comparison::Same);
        assert!(!own.is_exact());
    }
}
