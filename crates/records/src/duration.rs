//! Durations on command lines.

use std::time::Duration;

/// The longest duration that is taken: 2^32-1 seconds, about 136 years. It
/// keeps every sum of a clock and a duration within the clock's range.
pub const MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// Reads a duration: `1500ms`, `30s`, `5m`, `1h 30m`; a bare number (also with a
/// fraction, `0.5`) is seconds, as in `sleep(1)` and `timeout(1)`. `0` is
/// "look once, do not wait". A value parser for clap.
///
/// # Errors
/// Says for people what is wrong: empty, negative, no duration, over [`MAX`].
pub fn parse(text: &str) -> Result<Duration, String> {
    let number = |b: u8| b.is_ascii_digit() || b == b'.';
    let duration = match text {
        "" => return Err("an empty duration".to_owned()),
        _ if text.starts_with('-') => return Err("a negative duration".to_owned()),
        _ if text.bytes().all(number) => seconds(text)?,
        _ => humantime::parse_duration(text)
            .map_err(|error| format!("not a duration such as 1500ms, 30s or 5m: {error}"))?,
    };
    if duration > MAX {
        return Err(too_long());
    }
    Ok(duration)
}

/// Digits, with a fraction or without, as exact nanoseconds (what is finer is
/// dropped).
fn seconds(text: &str) -> Result<Duration, String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(fraction) || !(whole.is_empty() || digits(whole)) {
        return Err("not a number of seconds".to_owned());
    }
    let whole = match whole.trim_start_matches('0') {
        "" => 0,
        whole => whole.parse().map_err(|_| too_long())?,
    };
    let nanos = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Ok(Duration::new(whole, nanos))
}

fn too_long() -> String {
    format!("longer than {} seconds", MAX.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_sleep_and_humantime() {
        let table = [
            ("0", Duration::ZERO),
            ("0.0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("1", Duration::from_secs(1)),
            ("007", Duration::from_secs(7)),
            ("0.5", Duration::from_millis(500)),
            (".25", Duration::from_millis(250)),
            ("1.0000000019", Duration::new(1, 1)),
            ("1500ms", Duration::from_millis(1500)),
            ("30s", Duration::from_secs(30)),
            ("5m", Duration::from_secs(300)),
            ("1h 30m", Duration::from_secs(5400)),
            ("1h30m", Duration::from_secs(5400)),
            ("4294967295", MAX),
        ];
        for (text, want) in table {
            assert_eq!(parse(text), Ok(want), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let wrong = [
            "",
            " ",
            "-1",
            "-1s",
            "+1",
            "1e3",
            "nan",
            "inf",
            "infinity",
            "1 2",
            "s",
            ".",
            "1.",
            "1..2",
            "1.2.3",
            "0x1",
            "12abc",
            "4294967296",
            "99999999999999999999",
            "9999999999999999999999999999s",
            "200years",
            "5m -3s",
            "1,5",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text:?} gave {:?}", parse(text));
        }
    }

    #[test]
    fn the_longest_can_be_added_to_the_clock() {
        assert!(std::time::Instant::now().checked_add(MAX).is_some());
    }
}
