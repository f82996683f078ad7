//! This machine as identities see it: who lives here now, and what became of a recorded process.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::entry::{Start, Unread};
use crate::exit::Exit;
use crate::handle::{Handle, OpenError};
use crate::ident::{Comparison, Identity};
use crate::lstart;
use crate::pid::Pid;
use crate::sys::{Peer, Pin, Reach, Reader, System};

/// How long `ps` may take, where it has to serve.
const PS_LIMIT: Duration = Duration::from_secs(2);

/// How often a process is looked at that ends each time.
const ATTEMPTS: usize = 4;

/// This boot, host and pid namespace.
#[derive(Debug)]
pub struct Here {
    system: Option<System>,
    host: String,
    distrust: Option<String>,
    until: Option<Instant>,
}

/// What is to be seen of one pid.
#[derive(Debug)]
pub enum Sight {
    /// A live process.
    Alive(Handle),
    /// A process that has ended and that its parent has yet to collect.
    Zombie(Identity),
    /// No live process has this number; a thread may, or a zombie that the table hides.
    Absent,
    /// There is, or may be, a process, and it cannot be told which; the text says why.
    Unknown(String),
}

/// What became of a recorded process.
#[derive(Debug)]
pub enum Standing {
    /// It lives, and this is it.
    Same(Handle),
    /// It has ended, and its pid now names another live process: the one of this identity, or one
    /// that the table hides.
    Recycled(Option<Identity>),
    /// It has ended.
    Gone {
        /// Its parent has yet to collect it.
        zombie: bool,
    },
    /// It cannot be told, so it may neither be taken for dead nor for the same; the text says why.
    Unknown(String),
}

impl Standing {
    /// The answer in one word: `same`, `recycled`, `gone` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Standing::Same(_) => "same",
            Standing::Recycled(_) => "recycled",
            Standing::Gone { .. } => "gone",
            Standing::Unknown(_) => "unknown",
        }
    }
}

impl Default for Here {
    fn default() -> Here {
        Here::new()
    }
}

impl Here {
    /// Looks at the machine, once.
    pub fn new() -> Here {
        Here {
            system: System::read(Path::new("/proc")),
            host: hostname(),
            distrust: System::distrust(),
            until: None,
        }
    }

    /// The same, for looks that take no time after `deadline`: what has to be asked of `ps`, one
    /// call a process, is unknown from then on.
    pub fn until(self, deadline: Option<Instant>) -> Here {
        Here {
            until: deadline,
            ..self
        }
    }

    /// The host name, as records and identities carry it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The boot id; `None` where there is none to be read.
    pub fn boot(&self) -> Option<uuid::Uuid> {
        self.system.as_ref().map(System::boot)
    }

    /// The pid namespace (and time namespace), as identities write it; `None` where there is none
    /// to be read.
    pub fn space(&self) -> Option<String> {
        self.system.as_ref().map(System::space)
    }

    /// Whether the process `pid`, a number of here, calls processes by the numbers of here: it lives
    /// in the same pid namespace. `None` where that cannot be told.
    pub fn shares_numbers(&self, pid: Pid) -> Option<bool> {
        self.system.as_ref()?.shares_numbers(pid)
    }

    /// Whether the process at the other end of a socket calls processes by other numbers than those
    /// of here: it lives in another pid namespace.
    pub fn is_foreign(&self, peer: Peer) -> bool {
        match peer.pid {
            Some(pid) => self.shares_numbers(pid) == Some(false),
            // The kernel has no number of here for it.
            None => true,
        }
    }

    /// Why nothing here may be believed: the process table is another namespace's.
    pub fn distrust(&self) -> Option<&str> {
        self.distrust.as_deref()
    }

    /// What is to be seen of `pid`. The handle is opened first and read after, so that what was
    /// read is of the process that the handle holds.
    pub fn look(&self, pid: Pid) -> Sight {
        match self.see(pid, self.system.as_ref()) {
            Seen::Alive(handle) => Sight::Alive(handle),
            Seen::Zombie(ident) => Sight::Zombie(ident),
            Seen::Absent | Seen::HiddenZombie => Sight::Absent,
            Seen::Hidden(_, why) | Seen::Unknown(why) => Sight::Unknown(why),
        }
    }

    /// The handle of `pid` if that is a live process; what else it is otherwise, in words.
    ///
    /// # Errors
    ///
    /// The text says why there is no live process, or why it cannot be told.
    pub fn open(&self, pid: Pid) -> Result<Handle, String> {
        match self.look(pid) {
            Sight::Alive(handle) => Ok(handle),
            Sight::Zombie(_) => Err(format!("process {pid} has ended")),
            Sight::Absent => Err(format!("there is no process {pid}")),
            Sight::Unknown(why) => Err(format!("process {pid}: {why}")),
        }
    }

    /// How the process `zombie` ended, which has and is still a zombie; `None` where the kernel
    /// does not tell, see [`Handle::exit`].
    pub fn exit_of_zombie(&self, zombie: &Identity) -> Option<Exit> {
        let pin = Pin::open(zombie.pid()).ok()?;
        match self.look(zombie.pid()) {
            Sight::Zombie(now) if now.compare(zombie) == Comparison::Same => pin.exit(),
            _ => None,
        }
    }

    /// What became of the process `recorded`. `host` is the one the record was made on, where the
    /// record says so; a bare identity counts as one of here.
    pub fn find(&self, recorded: &Identity, host: Option<&str>) -> Standing {
        if let Some(why) = &self.distrust {
            return Standing::Unknown(why.clone());
        }
        let seen = match (recorded, &self.system) {
            (Identity::Lstart(lstart), _) if lstart.host != self.host => {
                return Standing::Unknown(format!("it was recorded on host {}", lstart.host));
            }
            (Identity::Lstart(_), _) => self.see(recorded.pid(), None),
            (_, None) => return Standing::Unknown("this system has no boot id".to_owned()),
            (_, Some(system)) => match system.reach(recorded) {
                Reach::Here => self.see(recorded.pid(), Some(system)),
                Reach::Elsewhere(why) => return Standing::Unknown(why.to_owned()),
                Reach::OtherBoot => return self.before_this_boot(host),
            },
        };
        match seen {
            Seen::Absent | Seen::HiddenZombie => Standing::Gone { zombie: false },
            Seen::Zombie(ident) => Standing::Gone {
                zombie: ident.compare(recorded) == Comparison::Same,
            },
            Seen::Alive(handle) => match handle.ident().compare(recorded) {
                Comparison::Same => Standing::Same(handle),
                Comparison::Different => Standing::Recycled(Some(handle.ident().clone())),
                Comparison::Unknown(why) => Standing::Unknown(why.to_owned()),
            },
            // The pidfd's inode decides even where the table shows nothing.
            Seen::Hidden(pin, why) => match (pin.inode(), recorded.inode()) {
                (Some(live), Some(then)) if live == then => {
                    Standing::Same(Handle::new(pin, recorded.clone(), None))
                }
                (Some(_), Some(_)) => Standing::Recycled(None),
                _ => Standing::Unknown(why),
            },
            Seen::Unknown(why) => Standing::Unknown(why),
        }
    }

    /// Whether `recorded` was taken in another boot than this one.
    pub fn is_of_another_boot(&self, recorded: &Identity) -> bool {
        self.system
            .as_ref()
            .is_some_and(|system| matches!(system.reach(recorded), Reach::OtherBoot))
    }

    /// When `recorded` started, as the table here counts: `None` where it was taken in another
    /// boot or time namespace, or from `ps`.
    pub(crate) fn started(&self, recorded: &Identity) -> Option<Start> {
        self.system.as_ref()?.started(recorded)
    }

    /// A record of another boot: that process is gone, unless it lives on another machine.
    fn before_this_boot(&self, host: Option<&str>) -> Standing {
        match host {
            Some(host) if host != self.host => {
                Standing::Unknown(format!("it was recorded on host {host}"))
            }
            _ => Standing::Gone { zombie: false },
        }
    }

    fn see(&self, pid: Pid, system: Option<&System>) -> Seen {
        if let Some(why) = &self.distrust {
            return Seen::Unknown(why.clone());
        }
        // Again where the process ended during the look: the number may be another's by now.
        for _ in 0..ATTEMPTS {
            let pin = match Pin::open(pid) {
                Ok(pin) => pin,
                Err(OpenError::Gone) => return Seen::Absent,
            };
            let mut reader = Reader::new();
            let entry = reader.entry(pid);
            if !pin.holds_number() {
                continue;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(_) if pin.has_ended() == Some(true) => return Seen::HiddenZombie,
                Err(why) => {
                    let why = hidden(pid, why);
                    return Seen::Hidden(pin, why);
                }
            };
            let ended = pin.has_ended().unwrap_or_else(|| reader.is_dead(&entry));
            let ident = match system {
                Some(system) => system.identity(&entry, &pin),
                None => match self.lstart(pid) {
                    Ok(ident) => ident,
                    Err(why) => return Seen::Unknown(why),
                },
            };
            return match ident {
                Some(ident) if ended => Seen::Zombie(ident),
                Some(ident) => Seen::Alive(Handle::new(pin, ident, Some(entry))),
                None => continue,
            };
        }
        Seen::Unknown(format!(
            "process {pid} changes faster than it can be looked at"
        ))
    }

    /// What `ps` says; `None` where it knows no such process.
    fn lstart(&self, pid: Pid) -> Result<Option<Identity>, String> {
        let now = Instant::now();
        let limit = now + PS_LIMIT;
        let limit = self.until.map_or(limit, |until| until.min(limit));
        if limit <= now {
            return Err(format!("no time is left to ask ps of process {pid}"));
        }
        lstart::read(pid, &self.host, limit)
    }
}

/// What a look saw, with the handle of a process that the table hides: hidepid, or a sandbox.
enum Seen {
    Alive(Handle),
    Zombie(Identity),
    /// It has ended, and the table hides whose the number is.
    HiddenZombie,
    Absent,
    Hidden(Pin, String),
    Unknown(String),
}

fn hidden(pid: Pid, why: Unread) -> String {
    match why {
        Unread::Gone => format!("process {pid} lives, but the process table hides it"),
        why => format!("process {pid} cannot be read: {why}"),
    }
}

/// The host name as one word that can stand in an identity, and in the `host` of a record: what is
/// neither a letter, a digit, `.`, `_` nor `-` becomes `_`.
fn hostname() -> String {
    word(rustix::system::uname().nodename().to_bytes())
}

fn word(name: &[u8]) -> String {
    if name.is_empty() {
        return "localhost".to_owned();
    }
    name.iter()
        .map(|&byte| match byte {
            b'.' | b'_' | b'-' => char::from(byte),
            _ if byte.is_ascii_alphanumeric() => char::from(byte),
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_one_word() {
        assert_eq!(word(b"build-7.example"), "build-7.example");
        assert_eq!(word(b"my box:\xff'"), "my_box___");
        assert_eq!(word(b""), "localhost");
        assert!(crate::ident::is_host(&word(b"\0 :\"'")));
    }
}
