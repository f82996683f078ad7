//! How a process ended.

use nix::sys::signal::Signal;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};

use crate::pid::Pid;

/// How a process ended: with a code of its own, or by a signal. Both are `None` where the kernel
/// does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exit {
    /// The code it left with.
    pub code: Option<i32>,
    /// The signal that ended it, by its name without SIG.
    #[serde(serialize_with = "by_name")]
    pub signal: Option<i32>,
    /// Whether it left a core image.
    pub core: bool,
}

impl Exit {
    /// The status that a shell gives this end: the code, or 128 + the signal.
    pub fn shell_status(&self) -> Option<u8> {
        let status = self.code.or(self.signal.map(|signal| 128 + signal))?;
        u8::try_from(status).ok()
    }

    /// Collects the child `pid` if it has ended, or, with `block`, once it has.
    pub(crate) fn collect(pid: Pid, block: bool) -> Option<Exit> {
        let mut options = WaitIdOptions::EXITED;
        if !block {
            options |= WaitIdOptions::NOHANG;
        }
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid.raw()), options));
        match status {
            Ok(status) => status.map(|status| Exit::of(&status)),
            // Somebody has collected it before us (SIGCHLD ignored at the start): it has ended,
            // and nobody can tell how.
            Err(_) => Some(Exit::default()),
        }
    }

    /// How the child `pid` ended, if it has. It stays a zombie.
    pub(crate) fn peek(pid: Pid) -> Option<Exit> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid.raw()), options)) {
            Ok(status) => status.map(|status| Exit::of(&status)),
            Err(_) => Some(Exit::default()),
        }
    }

    fn of(status: &WaitIdStatus) -> Exit {
        Exit {
            code: status.exit_status(),
            signal: status.terminating_signal(),
            core: status.dumped(),
        }
    }
}

/// The name of a signal without SIG; real-time ones count from RTMIN, as `kill -l` prints them.
pub fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(known) => known.as_str().trim_start_matches("SIG").to_owned(),
        Err(_) if (34..=64).contains(&signal) => format!("RTMIN+{}", signal - 34),
        Err(_) => signal.to_string(),
    }
}

fn by_name<S: serde::Serializer>(signal: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
    match signal {
        Some(signal) => serializer.serialize_some(&signal_name(*signal)),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_without_sig() {
        assert_eq!(signal_name(15), "TERM");
        assert_eq!(signal_name(9), "KILL");
        assert_eq!(signal_name(34), "RTMIN+0");
    }

    #[test]
    fn statuses_of_the_shell() {
        let code = |code| Exit {
            code: Some(code),
            ..Exit::default()
        };
        let signal = |signal| Exit {
            signal: Some(signal),
            ..Exit::default()
        };
        assert_eq!(code(7).shell_status(), Some(7));
        assert_eq!(signal(9).shell_status(), Some(137));
        assert_eq!(Exit::default().shell_status(), None);
    }
}
