//! Process identity: the word that names one process for good, where a pid names it only while
//! it lives.
//!
//! Everything here is pure. Reading a live process is the business of [`crate::Here`].

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::pid::{Pid, decimal};

/// The identity of one process: a single word without blanks or quotes.
///
/// An identity survives exec(2): it says "the same process", not "the same program".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Taken from `/proc` and, where the kernel has pidfs, from a pidfd.
    Linux(LinuxIdentity),
    /// Taken from `sysctl KERN_PROC_PID`.
    Macos(MacosIdentity),
    /// Taken from `ps -o lstart`, where neither of the others can be had.
    Lstart(LstartIdentity),
}

/// `linux:BOOT_ID:PIDNS[+TIMENS]:PID:START_TICKS:PIDFD_INODE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinuxIdentity {
    /// `/proc/sys/kernel/random/boot_id`: the ticks below count from this boot.
    pub boot: Uuid,
    /// The inode of the pid namespace in which [`LinuxIdentity::pid`] is the number.
    pub pidns: u64,
    /// The inode of the time namespace the ticks were read in, unless it is the initial one: the
    /// kernel shifts the start time by that namespace's boot-time offset.
    pub timens: Option<u64>,
    /// The process id.
    pub pid: Pid,
    /// Field 22 of `/proc/PID/stat`, in clock ticks since boot.
    pub ticks: u64,
    /// The inode of the process on pidfs (Linux 6.9), unique for the boot; `None` on older kernels.
    pub inode: Option<u64>,
}

/// `macos:BOOT_SESSION_UUID:0:PID:START_SECONDS.MICROSECONDS:0`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MacosIdentity {
    /// `sysctl kern.bootsessionuuid`.
    pub boot: Uuid,
    /// The process id.
    pub pid: Pid,
    /// Start time, whole seconds.
    pub seconds: u64,
    /// Start time, microseconds below the second.
    pub micros: u32,
}

/// `lstart:HOST:0:PID:START_EPOCH_SECONDS:0`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LstartIdentity {
    /// The host name, for want of a boot id.
    pub host: String,
    /// The process id.
    pub pid: Pid,
    /// Start time in seconds since the epoch, as `ps` derives it from a clock that drifts.
    pub seconds: u64,
}

/// Whether two identities name one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They do.
    Same,
    /// They name two.
    Different,
    /// It cannot be told from these two words; the text says why.
    Unknown(&'static str),
}

impl Identity {
    /// The pid that the identity was taken of.
    pub fn pid(&self) -> Pid {
        match self {
            Identity::Linux(linux) => linux.pid,
            Identity::Macos(macos) => macos.pid,
            Identity::Lstart(lstart) => lstart.pid,
        }
    }

    /// The inode of the process on pidfs, where the identity has one.
    pub fn inode(&self) -> Option<u64> {
        match self {
            Identity::Linux(linux) => linux.inode,
            Identity::Macos(_) | Identity::Lstart(_) => None,
        }
    }

    /// Whether the identity may decide who takes over a claim or sweeps a marker. One from
    /// `ps` may not: it is enough to refuse a signal, and no more.
    pub fn is_exact(&self) -> bool {
        !matches!(self, Identity::Lstart(_))
    }

    /// Whether `self` and `other` name one process.
    ///
    /// Two pidfs inodes decide (they are unique for a boot, whatever the namespace); without
    /// both, the start ticks do, within one time namespace. Identities from `ps` are equal within
    /// one second either way; exact ones are never compared with that tolerance.
    pub fn compare(&self, other: &Identity) -> Comparison {
        match (self, other) {
            (Identity::Linux(a), Identity::Linux(b)) => a.compare(b),
            (Identity::Macos(a), Identity::Macos(b)) => same_if(a == b),
            (Identity::Lstart(a), Identity::Lstart(b)) if a.host == b.host => {
                same_if(a.pid == b.pid && a.seconds.abs_diff(b.seconds) <= 1)
            }
            (Identity::Lstart(_), Identity::Lstart(_)) => Comparison::Unknown("other host"),
            _ => Comparison::Unknown("identities of different kinds"),
        }
    }
}

impl LinuxIdentity {
    fn compare(&self, other: &LinuxIdentity) -> Comparison {
        if self.boot != other.boot {
            return Comparison::Different;
        }
        if let (Some(a), Some(b)) = (self.inode, other.inode) {
            return same_if(a == b);
        }
        if self.timens != other.timens {
            return Comparison::Unknown("start times of two time namespaces");
        }
        if self.ticks != other.ticks {
            return Comparison::Different;
        }
        if self.pidns != other.pidns {
            return Comparison::Unknown("pids of two namespaces");
        }
        same_if(self.pid == other.pid)
    }
}

fn same_if(equal: bool) -> Comparison {
    if equal {
        Comparison::Same
    } else {
        Comparison::Different
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Linux(id) => {
                write!(f, "linux:{}:{}", id.boot, id.pidns)?;
                if let Some(timens) = id.timens {
                    write!(f, "+{timens}")?;
                }
                write!(f, ":{}:{}:{}", id.pid, id.ticks, id.inode.unwrap_or(0))
            }
            Identity::Macos(id) => {
                let (boot, pid) = (id.boot, id.pid);
                write!(f, "macos:{boot}:0:{pid}:{}.{:06}:0", id.seconds, id.micros)
            }
            Identity::Lstart(id) => {
                write!(f, "lstart:{}:0:{}:{}:0", id.host, id.pid, id.seconds)
            }
        }
    }
}

/// Why a word is not an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnIdentity {
    word: String,
    why: &'static str,
}

impl fmt::Display for NotAnIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a process identity: {}", self.word, self.why)
    }
}

impl std::error::Error for NotAnIdentity {}

impl FromStr for Identity {
    type Err = NotAnIdentity;

    /// Strict: every field as it is printed, nothing before, between or after. A UUID alone may
    /// also have its digits in upper case, as macOS has them.
    fn from_str(word: &str) -> Result<Identity, NotAnIdentity> {
        parse(word).map_err(|why| NotAnIdentity {
            word: word.chars().take(200).collect(),
            why,
        })
    }
}

fn parse(word: &str) -> Result<Identity, &'static str> {
    let fields: Vec<&str> = word.split(':').collect();
    let [kind, origin, space, pid, start, inode] = fields[..] else {
        return Err("it needs six fields, separated by colons");
    };
    let pid: Pid = pid.parse().map_err(|_| "its fourth field is no pid")?;
    match kind {
        "linux" => {
            let (pidns, timens) = match space.split_once('+') {
                Some((pidns, timens)) => (pidns, Some(namespace(timens)?)),
                None => (space, None),
            };
            Ok(Identity::Linux(LinuxIdentity {
                boot: boot(origin)?,
                pidns: namespace(pidns)?,
                timens,
                pid,
                ticks: decimal(start).ok_or("its start ticks are no number")?,
                inode: match decimal(inode).ok_or("its inode is no number")? {
                    0 => None,
                    inode => Some(inode),
                },
            }))
        }
        "macos" => {
            zero(space)?;
            zero(inode)?;
            let (seconds, micros) = start
                .split_once('.')
                .ok_or("its start time has no microseconds")?;
            let six_digits = micros.len() == 6 && micros.bytes().all(|b| b.is_ascii_digit());
            Ok(Identity::Macos(MacosIdentity {
                boot: boot(origin)?,
                pid,
                seconds: decimal(seconds).ok_or("its start time is no number")?,
                micros: micros
                    .parse()
                    .ok()
                    .filter(|_| six_digits)
                    .ok_or("its microseconds are not six digits")?,
            }))
        }
        "lstart" => {
            zero(space)?;
            zero(inode)?;
            if !is_host(origin) {
                return Err("its host is no host name");
            }
            Ok(Identity::Lstart(LstartIdentity {
                host: origin.to_owned(),
                pid,
                seconds: decimal(start).ok_or("its start time is no number")?,
            }))
        }
        _ => Err("it begins with neither linux, macos nor lstart"),
    }
}

fn boot(word: &str) -> Result<Uuid, &'static str> {
    if word.len() != 36 {
        return Err("its boot id is no UUID");
    }
    Uuid::try_parse(word).map_err(|_| "its boot id is no UUID")
}

fn namespace(word: &str) -> Result<u64, &'static str> {
    decimal(word)
        .filter(|&inode| inode != 0)
        .ok_or("its namespace is no inode number")
}

fn zero(word: &str) -> Result<(), &'static str> {
    if word == "0" {
        Ok(())
    } else {
        Err("a field that is always 0 is not")
    }
}

/// Whether `word` can stand as the host of an identity: printable, one word, no quotes or colons.
pub(crate) fn is_host(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b':' | b'"' | b'\'' | b'`' | b'\\'))
}

impl serde::Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Identity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Identity, D::Error> {
        let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e";
    const OTHER_BOOT: &str = "ffffffff-1f6b-4f0f-9d55-0b1b5a6c7d8e";

    fn id(word: &str) -> Identity {
        word.parse().unwrap()
    }

    #[test]
    fn words_are_printed_as_they_are_read() {
        for word in [
            format!("linux:{BOOT}:4026531836:4242:981234:5531"),
            format!("linux:{BOOT}:4026531836:4242:981234:0"),
            format!("linux:{BOOT}:4026532000+4026532001:2:0:77"),
            format!("macos:{BOOT}:0:99999:1764426381.000042:0"),
            "lstart:build-7.example:0:4242:1764426381:0".to_owned(),
        ] {
            assert_eq!(id(&word).to_string(), word);
        }
    }

    #[test]
    fn words_that_are_no_identity() {
        for word in [
            String::new(),
            "linux".to_owned(),
            format!("linux:{BOOT}:4026531836:4242:981234"),
            format!("linux:{BOOT}:4026531836:4242:981234:0:"),
            format!("linux:{BOOT}:4026531836:4242:981234:0\n"),
            format!(" linux:{BOOT}:4026531836:4242:981234:0"),
            format!("linux:{BOOT}:4026531836:0:981234:0"),
            format!("linux:{BOOT}:4026531836:-1:981234:0"),
            format!("linux:{BOOT}:4026531836:4294967295:981234:0"),
            format!("linux:{BOOT}:0:4242:981234:0"),
            format!("linux:{BOOT}:4026531836+:4242:981234:0"),
            format!("linux:{BOOT}:4026531836:4242:+5:0"),
            format!("linux:{BOOT}:4026531836:4242:99999999999999999999:0"),
            "linux:0c8f4a2e1f6b4f0f9d550b1b5a6c7d8e:4026531836:4242:1:0".to_owned(),
            format!("macos:{BOOT}:0:42:17.42:0"),
            format!("macos:{BOOT}:1:42:17.000042:0"),
            "lstart::0:42:17:0".to_owned(),
            "lstart:a b:0:42:17:0".to_owned(),
            format!("windows:{BOOT}:0:42:17:0"),
        ] {
            assert!(word.parse::<Identity>().is_err(), "{word:?} was taken");
        }
    }

    #[test]
    fn which_two_are_one_process() {
        use Comparison::{Different, Same, Unknown};
        let linux = |boot: &str, space: &str, pid: i32, ticks: u64, inode: u64| {
            id(&format!("linux:{boot}:{space}:{pid}:{ticks}:{inode}"))
        };
        let table = [
            // Two inodes decide, whatever the namespace and the number.
            (linux(BOOT, "1", 5, 10, 7), linux(BOOT, "1", 5, 10, 7), Same),
            (linux(BOOT, "1", 5, 10, 7), linux(BOOT, "2", 9, 10, 7), Same),
            (
                linux(BOOT, "1", 5, 10, 7),
                linux(BOOT, "1+3", 5, 99, 7),
                Same,
            ),
            (
                linux(BOOT, "1", 5, 10, 7),
                linux(BOOT, "1", 5, 10, 8),
                Different,
            ),
            // Without both, the ticks, within one time namespace.
            (linux(BOOT, "1", 5, 10, 0), linux(BOOT, "1", 5, 10, 8), Same),
            (
                linux(BOOT, "1", 5, 10, 0),
                linux(BOOT, "1", 5, 11, 0),
                Different,
            ),
            (
                linux(BOOT, "1", 5, 10, 0),
                linux(BOOT, "1", 6, 10, 0),
                Different,
            ),
            (
                linux(BOOT, "1", 5, 10, 0),
                linux(BOOT, "2", 5, 11, 0),
                Different,
            ),
            (
                linux(BOOT, "1", 5, 10, 0),
                linux(BOOT, "2", 5, 10, 0),
                Unknown("pids of two namespaces"),
            ),
            (
                linux(BOOT, "1", 5, 10, 0),
                linux(BOOT, "1+4", 5, 10, 0),
                Unknown("start times of two time namespaces"),
            ),
            // Another boot is another process.
            (
                linux(BOOT, "1", 5, 10, 7),
                linux(OTHER_BOOT, "1", 5, 10, 7),
                Different,
            ),
            // Exact start times have no tolerance, those of ps one second.
            (
                id(&format!("macos:{BOOT}:0:5:17.000001:0")),
                id(&format!("macos:{BOOT}:0:5:17.000002:0")),
                Different,
            ),
            (id("lstart:a:0:5:17:0"), id("lstart:a:0:5:18:0"), Same),
            (id("lstart:a:0:5:17:0"), id("lstart:a:0:5:19:0"), Different),
            (
                id("lstart:a:0:5:17:0"),
                id("lstart:b:0:5:17:0"),
                Unknown("other host"),
            ),
            (
                id("lstart:a:0:5:17:0"),
                linux(BOOT, "1", 5, 10, 7),
                Unknown("identities of different kinds"),
            ),
        ];
        for (a, b, expected) in table {
            assert_eq!(a.compare(&b), expected, "{a} and {b}");
            assert_eq!(b.compare(&a), expected, "{b} and {a}");
        }
    }
}
