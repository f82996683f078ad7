//! The number of a process, as a type that cannot hold a number which means something else.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::sys;

/// The number of one process.
///
/// `kill(2)` reads 0 as "my own group", -1 as "everybody" and other negative numbers as groups.
/// None of them can be held here, so no arithmetic or missing field elsewhere can turn a signal
/// for one process into a signal for many. Init (1) can be held, since it is a process like others
/// in a table; it is never parsed from an operand and never signalled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pid(rustix::process::Pid);

impl Pid {
    /// The smallest number of a process other than init.
    pub const MIN: i32 = 2;
    /// The largest: `PID_MAX_LIMIT` on Linux (64-bit, proc(5)), `PID_MAX` on macOS.
    pub const MAX: i32 = sys::PID_MAX;

    /// The process `raw`, or `None` where no process can have that number.
    pub fn new(raw: i64) -> Option<Pid> {
        let raw = i32::try_from(raw).ok()?;
        if (1..=Pid::MAX).contains(&raw) {
            rustix::process::Pid::from_raw(raw).map(Pid)
        } else {
            None
        }
    }

    /// The calling process.
    pub fn own() -> Pid {
        Pid(rustix::process::getpid())
    }

    /// The number, for printing and for system calls.
    pub fn get(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Whether this is pid 1, which adopts orphans and is nobody's target.
    pub fn is_init(self) -> bool {
        self.get() == 1
    }

    /// The number as the system-call library wants it.
    pub(crate) fn raw(self) -> rustix::process::Pid {
        self.0
    }
}

impl Ord for Pid {
    fn cmp(&self, other: &Pid) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl PartialOrd for Pid {
    fn partial_cmp(&self, other: &Pid) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl serde::Serialize for Pid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.get())
    }
}

/// Why a word is not a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPid(String);

impl fmt::Display for NotAPid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a process id (a decimal number from {} to {})",
            self.0,
            Pid::MIN,
            Pid::MAX
        )
    }
}

impl std::error::Error for NotAPid {}

impl FromStr for Pid {
    type Err = NotAPid;

    /// Strict: decimal digits only, no sign, no blanks, no leading zero, in range.
    fn from_str(word: &str) -> Result<Pid, NotAPid> {
        decimal(word)
            .and_then(|number| i64::try_from(number).ok())
            .and_then(Pid::new)
            .filter(|pid| !pid.is_init())
            .ok_or_else(|| NotAPid(word.to_owned()))
    }
}

/// An unsigned decimal number written as a kernel prints one: digits, without a leading zero.
pub(crate) fn decimal(word: &str) -> Option<u64> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = word.len() == 1 || !word.starts_with('0');
    if digits && canonical {
        word.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_targets() {
        for word in [
            "",
            "0",
            "1",
            "-1",
            "-2",
            "+5",
            " 5",
            "5 ",
            "1 2",
            "12abc",
            "abc",
            "0x10",
            "007",
            "4194305",
            "4294967295",
            "4294967296",
            "4294967297",
            "-4294967297",
            "99999999999999999999",
            "1e3",
            "5.0",
            "٣",
            "5\n",
        ] {
            assert!(word.parse::<Pid>().is_err(), "{word:?} was taken for a pid");
        }
    }

    #[test]
    fn the_range_is_whole() {
        assert_eq!("2".parse::<Pid>().unwrap().get(), 2);
        let largest = Pid::MAX.to_string();
        assert_eq!(largest.parse::<Pid>().unwrap().get(), Pid::MAX);
        assert_eq!(Pid::new(i64::from(Pid::MAX) + 1), None);
        assert_eq!(Pid::new(0), None);
        assert_eq!(Pid::new(-1), None);
        assert_eq!(Pid::new(i64::MIN), None);
        assert_eq!(Pid::new((1 << 32) + 5), None);
    }
}
