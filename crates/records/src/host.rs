//! This machine's name.

/// The name of this host, as `gethostname(2)` gives it, made fit for a single
/// word: what is neither a letter, a digit, `.`, `_` nor `-` becomes `_`.
pub fn hostname() -> String {
    word(rustix::system::uname().nodename().to_bytes())
}

fn word(name: &[u8]) -> String {
    if name.is_empty() {
        return "localhost".to_owned();
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let shown = |&b: &u8| if fits(b) { char::from(b) } else { '_' };
    name.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_one_word() {
        let table: [(&[u8], &str); 4] = [
            (b"box-1.example", "box-1.example"),
            (b"my box:\xff\n", "my_box___"),
            (b"", "localhost"),
            ("bücher".as_bytes(), "b__cher"),
        ];
        for (name, want) in table {
            assert_eq!(word(name), want);
        }
        assert!(!hostname().is_empty());
    }
}
