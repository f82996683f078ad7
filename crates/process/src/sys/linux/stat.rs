//! The line of `/proc/PID/stat`, proc_pid_stat(5).

use crate::entry::{Entry, Start, State};
use crate::pid::Pid;

/// `PF_KTHREAD` of the kernel's `task_struct` flags.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads one stat line, or `None` where it is not one.
///
/// The name stands in parentheses and may itself hold blanks, parentheses and newlines, so the
/// other fields are those after the *last* `)`.
pub fn parse(line: &[u8]) -> Option<Entry> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = line.get(open + 1..close)?;
    let mut before = Fields(line.get(..open)?);
    let mut fields = Fields(line.get(close + 1..)?);

    let state = fields.next()?.first().filter(|byte| byte.is_ascii())?; // field 3
    let ppid = fields.number()?;
    let pgid = fields.number()?;
    let sid = fields.number()?;
    let tty: i32 = fields.number()?;
    let tpgid = fields.number()?;
    let flags: u64 = fields.number()?; // field 9
    fields.nth(9)?;
    let threads = fields.number()?; // field 20
    fields.next()?;
    let ticks = fields.number()?; // field 22
    Some(Entry {
        pid: Pid::new(before.number()?)?,
        ppid,
        pgid,
        sid,
        tty: u64::from(tty as u32),
        tpgid,
        state: State(char::from(*state)),
        threads,
        kernel_thread: flags & KERNEL_THREAD != 0,
        start: Start::Ticks(ticks),
        name: name.to_vec(),
    })
}

/// What stands between blanks. A scan of the table reads these lines more than anything else, so
/// they are gone through byte by byte, once.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n');
        let start = self.0.iter().position(|byte| !is_blank(byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(is_blank).unwrap_or(rest.len());
        let (field, rest) = rest.split_at(end);
        self.0 = rest;
        Some(field)
    }
}

impl Fields<'_> {
    fn number<T: TryFrom<i64>>(&mut self) -> Option<T> {
        let field = self.next()?;
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        let mut value: i64 = 0;
        for byte in digits {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            value = value.checked_mul(10)?.checked_add(digit.into())?;
        }
        let negative = digits.len() < field.len();
        let value = if negative { -value } else { value };
        T::try_from(value).ok().filter(|_| !digits.is_empty())
    }
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
        let state: Vec<u8> = whole
            .iter()
            .map(|&b| if b == b'S' { 0xff } else { b })
            .collect();
        assert!(parse(&state).is_none());
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
