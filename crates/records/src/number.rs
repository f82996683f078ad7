//! Numbers on command lines and in records, read strictly.

use std::ops::RangeInclusive;

use serde::Serializer;

/// The largest whole number up to which every reader of JSON that keeps numbers
/// as doubles is exact: 2^53.
pub const EXACT: u64 = 1 << 53;

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

/// Writes a whole number of a record: one over [`EXACT`] as a string, so that no
/// reader rounds it. For serde's `serialize_with`.
///
/// # Errors
/// Those of the serializer.
pub fn exact<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    if *number > EXACT {
        serializer.collect_str(number)
    } else {
        serializer.serialize_u64(*number)
    }
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

    #[test]
    fn numbers_that_a_reader_would_round_are_strings() {
        #[derive(serde::Serialize)]
        struct Made(#[serde(serialize_with = "exact")] u64);
        let json = |n| serde_json::to_string(&Made(n)).unwrap();
        assert_eq!(json(0), "0");
        assert_eq!(json(EXACT), "9007199254740992");
        assert_eq!(json(EXACT + 1), "\"9007199254740993\"");
        assert_eq!(json(u64::MAX), "\"18446744073709551615\"");
    }
}
