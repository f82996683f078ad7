//! Lists of strings as kernels hand them out.

/// Strings that each end in NUL; the last may lack it, where a process has overwritten it.
pub fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut strings: Vec<Vec<u8>> = bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    if bytes.is_empty() || bytes.ends_with(&[0]) {
        strings.pop();
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_in_nul() {
        let split = |bytes: &[u8]| {
            split(bytes)
                .into_iter()
                .map(|s| String::from_utf8(s).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(split(b""), Vec::<String>::new());
        assert_eq!(split(b"a\0b c\0"), ["a", "b c"]);
        assert_eq!(split(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split(b"\0"), [""]);
        assert_eq!(split(b"title without an end"), ["title without an end"]);
    }
}
