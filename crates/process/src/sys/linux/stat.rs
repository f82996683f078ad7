//! The line of `/proc/PID/stat`, proc_pid_stat(5).

use crate::entry::{Entry, Start, State};
use crate::pid::Pid;

/// `PF_KTHREAD` of the kernel's `task_struct` flags.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads one stat line, or `None` where it is not one.
///
/// The name stands in parentheses and may itself hold blanks, parentheses and newlines, so the
/// other fields are those after the *last* `)`.
pub(crate) fn parse(line: &[u8]) -> Option<Entry> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim_end();
    let name = line.get(open + 1..close)?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();

    let state = fields.next()?; // field 3
    let ppid = number(fields.next()?)?;
    let pgid = number(fields.next()?)?;
    let sid = number(fields.next()?)?;
    let tty = number(fields.next()?)?;
    let tpgid = number(fields.next()?)?;
    let flags: u64 = fields.next()?.parse().ok()?; // field 9
    let threads = number(fields.nth(10)?)?; // field 20
    let ticks: u64 = fields.nth(1)?.parse().ok()?; // field 22
    Some(Entry {
        pid: Pid::new(pid.parse().ok()?)?,
        ppid,
        pgid,
        sid,
        tty: u64::from(tty as u32),
        tpgid,
        state: State(state.chars().next()?),
        threads,
        kernel_thread: flags & KERNEL_THREAD != 0,
        start: Start::Ticks(ticks),
        name: name.to_vec(),
    })
}

fn number(field: &str) -> Option<i32> {
    field.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> Vec<u8> {
        format!(
            "4242 ({name}) S 17 4240 4239 34816 4242 4194304 1 2 3 4 5 6 7 8 20 0 3 0 98765 \
             11111 222 18446744073709551615\n"
        )
        .into_bytes()
    }

    #[test]
    fn names_may_hold_anything() {
        for name in [
            "sleep",
            "a b",
            ") S 1",
            "((",
            "x) R 1 1 1 (y",
            "new\nline",
            "",
        ] {
            let entry = parse(&line(name)).unwrap();
            assert_eq!(entry.name, name.as_bytes());
            assert_eq!(entry.pid.get(), 4242);
            assert_eq!(entry.state, State('S'));
            assert_eq!((entry.ppid, entry.pgid, entry.sid), (17, 4240, 4239));
            assert_eq!((entry.tty, entry.tpgid, entry.threads), (34816, 4242, 3));
            assert_eq!(entry.start, Start::Ticks(98765));
            assert!(!entry.kernel_thread);
        }
    }

    #[test]
    fn a_name_need_not_be_utf8() {
        let mut bytes = line("?");
        let at = bytes.iter().position(|&b| b == b'?').unwrap();
        bytes[at] = 0xff;
        assert_eq!(parse(&bytes).unwrap().name, [0xff]);
    }

    #[test]
    fn half_a_line_is_none() {
        let whole = line("sleep");
        // Up to the end of field 22: the fields behind it are not used.
        let needed = whole.windows(5).position(|w| w == b"98765").unwrap();
        for length in 0..=needed {
            assert!(parse(&whole[..length]).is_none(), "took {length} bytes");
        }
        assert!(parse(b"4242 sleep S 1").is_none());
        assert!(parse(b"x (sleep) S 17 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 9 1\n").is_none());
    }

    #[test]
    fn kernel_threads_are_told_by_their_flag() {
        let kthread = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0\n";
        let entry = parse(kthread).unwrap();
        assert!(entry.kernel_thread);
        assert_eq!((entry.pgid, entry.tpgid), (0, -1));
    }
}
