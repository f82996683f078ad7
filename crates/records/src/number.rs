//! Numbers on command lines and in records, read strictly.

use std::ops::RangeInclusive;

/// Reads an unsigned decimal number: digits alone, no sign, no blanks, no
/// leading zero (which other programs take for octal), at most 2^64-1.
///
/// # Errors
/// Says for people what is wrong.
pub fn parse(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("a number is missing".to_owned());
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("not a whole decimal number".to_owned());
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err("a number with a leading zero".to_owned());
    }
    text.parse()
        .map_err(|_| "a number that is too large".to_owned())
}

/// As [`parse`], within a range.
///
/// # Errors
/// Says for people what is wrong, and the range.
pub fn in_range(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = parse(text)?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!("not from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimal_numbers_are_read() {
        for (text, want) in [("0", 0), ("7", 7), ("18446744073709551615", u64::MAX)] {
            assert_eq!(parse(text), Ok(want));
        }
        let wrong = [
            "",
            " ",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1 2",
            "12abc",
            "0x10",
            "007",
            "00",
            "1.0",
            "1e3",
            "١",
            "18446744073709551616",
            "99999999999999999999",
            "1_000",
            "1\n",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_range_includes_its_ends() {
        assert_eq!(in_range("2", 2..=5), Ok(2));
        assert_eq!(in_range("5", 2..=5), Ok(5));
        assert_eq!(in_range("6", 2..=5), Err("not from 2 to 5".to_owned()));
        assert!(in_range("1", 2..=5).is_err());
        assert!(in_range("x", 0..=u64::MAX).is_err());
    }
}
