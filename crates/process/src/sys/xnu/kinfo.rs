//! `struct kinfo_proc` of `sysctl KERN_PROC`, sysctl(3), which also answers for zombies.
//!
//! Only the fields that are used are located. Their places follow from `<sys/sysctl.h>` and
//! `<sys/proc.h>` for 64-bit systems, and have not moved since Mac OS X 10.5.

use super::{long, string, word};
use crate::entry::{Entry, Start, State};
use crate::pid::Pid;

/// `sizeof(struct kinfo_proc)`.
pub(crate) const SIZE: usize = 648;

/// Where `struct eproc` begins, behind `struct extern_proc`.
const EPROC: usize = 296;

const START_SECONDS: usize = 0;
const START_MICROS: usize = 8;
const FLAGS: usize = 32;
const STATE: usize = 36;
const PID: usize = 40;
const NAME: usize = 243;
/// `MAXCOMLEN + 1`.
const NAME_SIZE: usize = 17;
const UID: usize = EPROC + 124;
const PPID: usize = EPROC + 264;
const PGID: usize = EPROC + 268;
const TTY: usize = EPROC + 276;
const TPGID: usize = EPROC + 280;

/// `NODEV`: no controlling terminal.
const NO_DEVICE: i32 = -1;

/// `P_SYSTEM`: the kernel's own, which takes no signals.
const SYSTEM: i32 = 0x200;

/// What one `struct kinfo_proc` says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kinfo {
    /// The process, with no session: the kernel leaves that out here.
    pub(crate) entry: Entry,
    /// Its effective user id.
    pub(crate) uid: u32,
}

/// Reads one `struct kinfo_proc`, or `None` where `bytes` are not one of a process.
pub(crate) fn parse(bytes: &[u8]) -> Option<Kinfo> {
    if bytes.len() != SIZE {
        return None;
    }
    let tty = word(bytes, TTY)?;
    Some(Kinfo {
        entry: Entry {
            pid: pid(bytes)?,
            ppid: word(bytes, PPID)?,
            pgid: word(bytes, PGID)?,
            sid: 0,
            tty: if tty == NO_DEVICE {
                0
            } else {
                u64::from(tty as u32)
            },
            tpgid: if tty == NO_DEVICE {
                -1
            } else {
                word(bytes, TPGID)?
            },
            state: state(*bytes.get(STATE)?)?,
            threads: 1,
            kernel_thread: word(bytes, FLAGS)? & SYSTEM != 0,
            start: Start::Epoch(
                long(bytes, START_SECONDS)?,
                u32::try_from(word(bytes, START_MICROS)?)
                    .ok()
                    .filter(|&micros| micros < 1_000_000)?,
            ),
            name: string(bytes, NAME, NAME_SIZE)?.to_vec(),
        },
        uid: word(bytes, UID)? as u32,
    })
}

/// The number of the process that one `struct kinfo_proc` is of; `None` for the kernel's own 0.
pub(crate) fn pid(bytes: &[u8]) -> Option<Pid> {
    Pid::new(word(bytes, PID)?.into())
}

/// `SIDL`, `SRUN`, `SSLEEP`, `SSTOP` and `SZOMB` of `<sys/proc.h>`, by the letters of ps(1).
fn state(stat: u8) -> Option<State> {
    let letter = match stat {
        1 => 'I',
        2 => 'R',
        3 => 'S',
        4 => 'T',
        5 => 'Z',
        _ => return None,
    };
    Some(State(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process as the kernel would lay it out.
    fn kinfo() -> Vec<u8> {
        let mut bytes = vec![0xA5; SIZE];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &1_764_426_381_i64.to_ne_bytes());
        put(8, &42_i32.to_ne_bytes());
        put(32, &0x4004_i32.to_ne_bytes());
        put(36, &[2]);
        put(40, &4242_i32.to_ne_bytes());
        put(243, b"a) b\nc\0");
        put(420, &501_u32.to_ne_bytes());
        put(560, &17_i32.to_ne_bytes());
        put(564, &4240_i32.to_ne_bytes());
        put(572, &0x1000_0003_i32.to_ne_bytes());
        put(576, &4241_i32.to_ne_bytes());
        bytes
    }

    #[test]
    fn the_fields_are_where_the_kernel_puts_them() {
        let Kinfo { entry, uid } = parse(&kinfo()).unwrap();
        assert_eq!(uid, 501);
        assert_eq!(
            entry,
            Entry {
                pid: Pid::new(4242).unwrap(),
                ppid: 17,
                pgid: 4240,
                sid: 0,
                tty: 0x1000_0003,
                tpgid: 4241,
                state: State('R'),
                threads: 1,
                kernel_thread: false,
                start: Start::Epoch(1_764_426_381, 42),
                name: b"a) b\nc".to_vec(),
            }
        );
    }

    #[test]
    fn zombies_have_no_terminal() {
        let mut bytes = kinfo();
        bytes[36] = 5;
        bytes[572..576].copy_from_slice(&[0xff; 4]);
        let Kinfo { entry, .. } = parse(&bytes).unwrap();
        assert!(entry.state.is_zombie());
        assert_eq!((entry.tty, entry.tpgid), (0, -1));
    }

    #[test]
    fn what_is_no_process_is_none() {
        let change = |at: usize, field: &[u8]| {
            let mut bytes = kinfo();
            bytes[at..at + field.len()].copy_from_slice(field);
            parse(&bytes)
        };
        assert!(change(40, &4242_i32.to_ne_bytes()).is_some());
        assert!(change(40, &0_i32.to_ne_bytes()).is_none());
        assert!(change(40, &(-1_i32).to_ne_bytes()).is_none());
        assert!(change(36, &[0]).is_none(), "a state of no process");
        assert!(change(8, &1_000_000_i32.to_ne_bytes()).is_none());
        assert!(parse(&[]).is_none());
        assert!(parse(&kinfo()[..SIZE - 1]).is_none());
    }
}
