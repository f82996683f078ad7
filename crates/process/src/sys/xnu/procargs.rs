//! The answer of `sysctl KERN_PROCARGS2`: the strings that exec(2) put on a program's stack.

use std::ops::Range;

use super::word;

/// Where the two lists stand among the bytes; each string in them ends in NUL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) argv: Range<usize>,
    pub(crate) environ: Range<usize>,
}

/// Finds the lists, or `None` where `bytes` do not hold as many arguments as they say.
///
/// The layout: the number of arguments, the path that was executed, NULs up to a boundary, the
/// arguments, the environment, and behind an empty string what the kernel adds for the loader.
/// The NULs of the boundary cannot be told from a first argument that is empty.
pub(crate) fn parse(bytes: &[u8]) -> Option<Lists> {
    let count = usize::try_from(word(bytes, 0)?).ok()?;
    let path_end = end_of_string(bytes, 4)?;
    let padding = bytes.get(path_end..)?.iter().take_while(|&&b| b == 0);
    let first = path_end + padding.count();
    let mut argv_end = first;
    for _ in 0..count {
        argv_end = end_of_string(bytes, argv_end)?;
    }
    let mut environ_end = argv_end;
    while let Some(end) = end_of_string(bytes, environ_end).filter(|&end| end > environ_end + 1) {
        environ_end = end;
    }
    Some(Lists {
        argv: first..argv_end,
        environ: argv_end..environ_end,
    })
}

/// The place behind the NUL of the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let length = bytes.get(start..)?.iter().position(|&byte| byte == 0)?;
    Some(start + length + 1)
}

#[cfg(test)]
mod tests {
    use super::super::super::strings;
    use super::*;

    fn read(count: i32, rest: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
        let mut bytes = count.to_ne_bytes().to_vec();
        bytes.extend_from_slice(rest);
        let lists = parse(&bytes)?;
        let list = |range: Range<usize>| {
            strings::split(&bytes[range])
                .into_iter()
                .map(|s| String::from_utf8(s).unwrap())
                .collect()
        };
        Some((list(lists.argv), list(lists.environ)))
    }

    #[test]
    fn arguments_and_environment() {
        let (argv, environ) = read(
            4,
            b"/bin/sh\0\0\0\0\0sh\0-c\0\0a b\0HOME=/\0EMPTY=\0\0executable_path=/bin/sh\0",
        )
        .unwrap();
        assert_eq!(argv, ["sh", "-c", "", "a b"]);
        assert_eq!(environ, ["HOME=/", "EMPTY="]);
    }

    #[test]
    fn a_list_may_be_empty() {
        assert_eq!(read(0, b"/x\0\0\0").unwrap(), (vec![], vec![]));
        assert_eq!(read(1, b"/x\0x\0").unwrap(), (vec!["x".into()], vec![]));
        // Protected programs show no environment.
        assert_eq!(
            read(1, b"/x\0\0x\0\0\0\0").unwrap(),
            (vec!["x".into()], vec![])
        );
    }

    #[test]
    fn what_is_cut_off_is_none() {
        assert!(read(2, b"/x\0\0x\0").is_none(), "one argument of two");
        assert!(read(1, b"/x\0\0x").is_none(), "an argument without an end");
        assert!(read(1, b"/x").is_none());
        assert!(read(-1, b"/x\0x\0").is_none());
        assert!(read(i32::MAX, b"/x\0x\0").is_none());
        assert!(parse(b"\x01\0").is_none());
        assert!(parse(b"").is_none());
    }
}
