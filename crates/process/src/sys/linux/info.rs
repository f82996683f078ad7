//! How a process ended that is not our child, as far as the kernel tells.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

use crate::exit::Exit;
use crate::pid::Pid;

/// `struct pidfd_info` of `<linux/pidfd.h>`, in its first version (64 bytes).
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroupid: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: libc::Ioctl = 0xC040_FF0B;

/// `PIDFD_INFO_EXIT`: asked for, and in the answer where `exit_code` holds.
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// How the process of `pidfd`, which has ended, did so: as the kernel tells it of a process that
/// its parent has collected (Linux 6.15), or of one of the same user that is still a zombie.
pub(crate) fn how_it_ended(pid: Pid, pidfd: BorrowedFd<'_>) -> Option<Exit> {
    collected_status(pidfd)
        .or_else(|| zombie_status(pid))
        // It may have been collected between the two.
        .or_else(|| collected_status(pidfd))
        .map(decoded)
}

fn collected_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo {
        mask: PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    // SAFETY: the descriptor is open, and the number of the request carries the size of
    // `PidfdInfo`, so the kernel reads and writes no more than that.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, &mut info) };
    (answer == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// `exit_code`, the last field of `/proc/PID/stat`. To those who may not trace the process the
/// kernel shows a 0 there, so 0 is believed only of a process that is certainly ours, proc(5),
/// ptrace(2).
fn zombie_status(pid: Pid) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let code: i32 = match fields.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        ["Z", .., code] => code.parse().ok()?,
        _ => return None,
    };
    (code != 0 || is_ours(pid)).then_some(code)
}

/// Whether all user and group ids of `pid` are those of this process.
fn is_ours(pid: Pid) -> bool {
    let all_are = |status: &str, key: &str, id: u32| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.is_some_and(|ids| {
            let mut ids = ids.split_ascii_whitespace();
            ids.all(|one| one.parse() == Ok(id))
        })
    };
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| {
        all_are(&status, "Uid:", rustix::process::geteuid().as_raw())
            && all_are(&status, "Gid:", rustix::process::getegid().as_raw())
    })
}

/// A wait status taken apart, wait(2).
fn decoded(status: i32) -> Exit {
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    Exit {
        code,
        signal,
        core: signal.is_some() && libc::WCOREDUMP(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_and_a_collected_process_tell_how_they_ended() {
        for (script, want) in [
            ("exit 7", (Some(7), None)),
            ("exit 0", (Some(0), None)),
            ("kill -KILL $$", (None, Some(9))),
        ] {
            let mut child = std::process::Command::new("/bin/sh")
                .args(["-c", script])
                .spawn()
                .unwrap();
            let pid = Pid::new(child.id().into()).unwrap();
            let pin = super::super::Pin::open(pid).unwrap();
            let pidfd = pin.fd().unwrap();
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                pidfd,
                rustix::event::PollFlags::IN,
            )];
            rustix::event::poll(&mut fds, None).unwrap();
            let told = |exit: Option<Exit>| exit.map(|exit| (exit.code, exit.signal));
            assert_eq!(
                told(how_it_ended(pid, pidfd)),
                Some(want),
                "{script}, a zombie"
            );
            child.wait().unwrap();
            // Kernels before 6.15 keep it to themselves.
            if let Some(status) = collected_status(pidfd) {
                assert_eq!(
                    told(Some(decoded(status))),
                    Some(want),
                    "{script}, collected"
                );
            }
            assert_eq!(zombie_status(pid), None);
        }
    }

    #[test]
    fn the_structure_is_as_large_as_its_request_says() {
        assert_eq!(
            size_of::<PidfdInfo>(),
            (PIDFD_GET_INFO >> 16 & 0x3fff) as usize
        );
    }
}
