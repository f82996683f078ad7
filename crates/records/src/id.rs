//! Ids that become part of a file's name.

/// The longest id, in bytes.
pub const MAX: usize = 128;

/// Takes an id that may become part of a path: `[A-Za-z0-9._-]{1,128}` without
/// a leading dot, so it can neither leave a directory nor hide in it. A value
/// parser for clap.
///
/// # Errors
/// Says for people what is wrong.
pub fn parse(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an empty id".to_owned());
    }
    if text.len() > MAX {
        return Err(format!("an id longer than {MAX} characters"));
    }
    if text.starts_with('.') {
        return Err("an id with a leading dot".to_owned());
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if !text.bytes().all(fits) {
        return Err("an id has only letters, digits, '.', '_' and '-'".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_file_names() {
        let longest = "a".repeat(MAX);
        for good in ["a", "0", "-", "_.", "a..b", "3f-Ab_c.d", longest.as_str()] {
            assert_eq!(parse(good).as_deref(), Ok(good));
        }
        let too_long = "a".repeat(MAX + 1);
        let bad = [
            "",
            ".",
            "..",
            ".a",
            "a/b",
            "a b",
            "a\nb",
            "a\0",
            "ä",
            "a:b",
            too_long.as_str(),
        ];
        for bad in bad {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
