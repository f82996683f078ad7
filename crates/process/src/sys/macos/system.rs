//! What identities on this machine are made of.

use std::path::Path;

use uuid::Uuid;

use super::super::Reach;
use super::{Pin, sysctl};
use crate::entry::{Entry, Start};
use crate::ident::{Identity, MacosIdentity};
use crate::pid::Pid;

/// This boot.
#[derive(Clone, Debug)]
pub(crate) struct System {
    boot: Uuid,
}

impl System {
    /// Reads the boot session. `None` where there is none to be read, so that `ps` has to serve.
    pub(crate) fn read(_proc: &Path) -> Option<System> {
        let boot = sysctl::string(c"kern.bootsessionuuid")?;
        Some(System {
            boot: Uuid::try_parse(boot.trim()).ok()?,
        })
    }

    /// There is one process table, and the kernel itself answers for it.
    pub(crate) fn distrust() -> Option<String> {
        None
    }

    /// The boot session.
    pub(crate) fn boot(&self) -> Uuid {
        self.boot
    }

    /// There is one pid namespace; identities write it as 0.
    pub(crate) fn space(&self) -> String {
        "0".to_owned()
    }

    /// There is one pid namespace, so all processes count alike.
    pub(crate) fn shares_numbers(&self, _pid: Pid) -> Option<bool> {
        Some(true)
    }

    /// The identity of the process `entry`. The start time alone makes it.
    pub(crate) fn identity(&self, entry: &Entry, _pin: &Pin) -> Option<Identity> {
        let Start::Epoch(seconds, micros) = entry.start else {
            return None;
        };
        Some(Identity::Macos(MacosIdentity {
            boot: self.boot,
            pid: entry.pid,
            seconds,
            micros,
        }))
    }

    /// When `recorded` started, if that was in this boot.
    pub(crate) fn started(&self, recorded: &Identity) -> Option<Start> {
        match recorded {
            Identity::Macos(macos) if macos.boot == self.boot => {
                Some(Start::Epoch(macos.seconds, macos.micros))
            }
            _ => None,
        }
    }

    /// Whether `recorded` has its boot and its pid here, so that looking for it here says
    /// something about it.
    pub(crate) fn reach(&self, recorded: &Identity) -> Reach {
        match recorded {
            Identity::Macos(recorded) if recorded.boot == self.boot => Reach::Here,
            Identity::Macos(_) => Reach::OtherBoot,
            _ => Reach::Elsewhere("its identity is of another kind of system"),
        }
    }
}
