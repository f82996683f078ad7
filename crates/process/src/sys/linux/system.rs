//! What identities on this machine are made of.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uuid::Uuid;

use super::super::Reach;
use super::pin::Pin;
use crate::entry::{Entry, Start};
use crate::ident::{Identity, LinuxIdentity};
use crate::pid::Pid;

/// The inode of the initial time namespace, `PROC_TIME_INIT_INO` of the kernel.
const INITIAL_TIMENS: u64 = 0xEFFF_FFFA;

/// This boot, seen from this process's namespaces.
#[derive(Clone, Debug)]
pub(crate) struct System {
    boot: Uuid,
    pidns: u64,
    timens: Option<u64>,
}

impl System {
    /// Reads boot id and namespaces below `proc`. `None` where there is no such thing to read, so
    /// that `ps` has to serve.
    pub(crate) fn read(proc: &Path) -> Option<System> {
        let boot = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).ok()?;
        // Older kernels have no time namespaces; everything then counts from the initial one.
        let timens = namespace(&proc.join("self/ns/time"));
        Some(System {
            boot: Uuid::try_parse(boot.trim_end()).ok()?,
            pidns: namespace(&proc.join("self/ns/pid"))?,
            timens: timens.filter(|&inode| inode != INITIAL_TIMENS),
        })
    }

    /// Why `/proc` may not be believed, if it is not this process's own. Where it is another
    /// namespace's, its numbers are other processes than the ones that system calls reach.
    pub(crate) fn distrust() -> Option<String> {
        let own = std::process::id();
        match fs::read_link("/proc/self") {
            Ok(target) if target.as_os_str() != own.to_string().as_str() => Some(format!(
                "/proc belongs to another pid namespace (it calls this process {}, which is {own})",
                target.display()
            )),
            // The two numbers may be alike by chance.
            Ok(_) if is_seen_from_outside() => {
                Some("/proc belongs to a pid namespace around this one".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(format!("/proc/self cannot be read: {error}")),
        }
    }

    /// The boot id.
    pub(crate) fn boot(&self) -> Uuid {
        self.boot
    }

    /// The pid namespace and, if it is not the initial one, the time namespace, as identities
    /// write them.
    pub(crate) fn space(&self) -> String {
        match self.timens {
            Some(timens) => format!("{}+{timens}", self.pidns),
            None => self.pidns.to_string(),
        }
    }

    /// Whether `pid` counts processes as this process does: it lives in the same pid namespace.
    /// `None` where that cannot be read.
    pub(crate) fn shares_numbers(&self, pid: Pid) -> Option<bool> {
        Some(namespace(Path::new(&format!("/proc/{pid}/ns/pid")))? == self.pidns)
    }

    /// The identity of the process `entry`, which `pin` pins.
    pub(crate) fn identity(&self, entry: &Entry, pin: &Pin) -> Option<Identity> {
        let Start::Ticks(ticks) = entry.start else {
            return None;
        };
        Some(Identity::Linux(LinuxIdentity {
            boot: self.boot,
            pidns: self.pidns,
            timens: self.timens,
            pid: entry.pid,
            ticks,
            inode: pin.inode(),
        }))
    }

    /// When `recorded` started, if its ticks were counted as those of here are.
    pub(crate) fn started(&self, recorded: &Identity) -> Option<Start> {
        match recorded {
            Identity::Linux(linux) if linux.boot == self.boot && linux.timens == self.timens => {
                Some(Start::Ticks(linux.ticks))
            }
            _ => None,
        }
    }

    /// Whether `recorded` has its boot and its pid here, so that looking for it here says
    /// something about it.
    pub(crate) fn reach(&self, recorded: &Identity) -> Reach {
        let Identity::Linux(recorded) = recorded else {
            return Reach::Elsewhere("its identity is of another kind of system");
        };
        if recorded.boot != self.boot {
            Reach::OtherBoot
        } else if recorded.pidns != self.pidns {
            Reach::Elsewhere("its pid is a number of another pid namespace")
        } else {
            Reach::Here
        }
    }
}

/// Whether `/proc` knows this process by more than one number: `NSpid` counts from the namespace
/// of that `/proc` inwards, proc_pid_status(5), Linux 4.1.
fn is_seen_from_outside() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .map(|numbers| numbers.split_ascii_whitespace().count());
    numbers.is_some_and(|count| count > 1)
}

fn namespace(link: &Path) -> Option<u64> {
    // The inode of the namespace itself, without parsing the link's text, ioctl_ns(2).
    fs::metadata(link).ok().map(|meta| meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_and_namespaces_are_read_below_any_root() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path();
        assert!(System::read(proc).is_none(), "nothing there");
        fs::create_dir_all(proc.join("sys/kernel/random")).unwrap();
        fs::create_dir_all(proc.join("self/ns")).unwrap();
        fs::write(proc.join("self/ns/pid"), "").unwrap();
        fs::write(proc.join("sys/kernel/random/boot_id"), "not-a-uuid\n").unwrap();
        assert!(System::read(proc).is_none(), "a malformed boot id");
        let boot = "0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e";
        fs::write(proc.join("sys/kernel/random/boot_id"), format!("{boot}\n")).unwrap();
        let system = System::read(proc).unwrap();
        assert_eq!(system.boot().to_string(), boot);
        assert_eq!(system.timens, None, "a kernel without time namespaces");
        fs::write(proc.join("self/ns/time"), "").unwrap();
        assert!(System::read(proc).unwrap().space().contains('+'));
    }
}
