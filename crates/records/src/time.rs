//! Points in time, as records write them: RFC 3339 in UTC with milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that four digits of a year can write:
/// 9999-12-31T23:59:59Z.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// `time` as in `2026-11-29T14:26:21.123Z`. What lies outside of the years 1970
/// to 9999 is written as the nearest time inside.
pub fn rfc3339_millis(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let within = since.min(LAST);
    humantime::format_rfc3339_millis(UNIX_EPOCH + within).to_string()
}

/// The present time, as [`rfc3339_millis`] writes it.
pub fn now() -> String {
    rfc3339_millis(SystemTime::now())
}

/// Reads an RFC 3339 time, in UTC (`Z`) or with an offset (`+02:00`).
///
/// # Errors
/// Says for people that it is none.
pub fn parse(text: &str) -> Result<SystemTime, String> {
    let wrong = || "not a time such as 2026-11-29T14:26:21Z".to_owned();
    let utc = |text: &str| humantime::parse_rfc3339(text).map_err(|_| wrong());
    if text.ends_with('Z') {
        return utc(text);
    }
    let at = text.len().checked_sub(6).ok_or_else(wrong)?;
    let (local, offset) = text.split_at_checked(at).ok_or_else(wrong)?;
    let (ahead, behind) = match offset.as_bytes() {
        [b'+', ..] => (minutes(&offset[1..]).ok_or_else(wrong)?, 0),
        [b'-', ..] => (0, minutes(&offset[1..]).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    utc(&format!("{local}Z"))?
        .checked_add(Duration::from_secs(behind * 60))
        .and_then(|time| time.checked_sub(Duration::from_secs(ahead * 60)))
        .ok_or_else(wrong)
}

/// The minutes of `HH:MM`.
fn minutes(text: &str) -> Option<u64> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |text: &str, max: u64| {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u64>().ok().filter(|n| digits && *n <= max)
    };
    Some(two(hours, 23)? * 60 + two(minutes, 59)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        let table = [
            (at(0), "1970-01-01T00:00:00.000Z"),
            (at(1_795_962_381_123), "2026-11-29T14:26:21.123Z"),
            (
                UNIX_EPOCH - Duration::from_secs(5),
                "1970-01-01T00:00:00.000Z",
            ),
            (UNIX_EPOCH + LAST * 2, "9999-12-31T23:59:59.000Z"),
        ];
        for (time, want) in table {
            assert_eq!(rfc3339_millis(time), want);
        }
        assert_eq!(now().len(), 24);
    }

    #[test]
    fn times_are_read_with_any_offset() {
        let table = [
            ("2026-11-29T14:26:21.123Z", 1_795_962_381_123),
            ("2026-11-29T16:26:21.123+02:00", 1_795_962_381_123),
            ("2026-11-29T10:56:21.123-03:30", 1_795_962_381_123),
            ("2026-11-29T14:26:21+00:00", 1_795_962_381_000),
            ("1970-01-01T00:00:00Z", 0),
        ];
        for (text, want) in table {
            assert_eq!(parse(text), Ok(at(want)), "{text}");
        }
        let wrong = [
            "",
            "Z",
            "2026-11-29",
            "2026-11-29T14:26:21",
            "2026-11-29T14:26:21+2:00",
            "2026-11-29T14:26:21+0200",
            "2026-13-29T14:26:21Z",
            "1795962381",
            "x+02:00",
            "2026-11-29T14:26:21+24:00",
            "2026-11-29T14:26:21+ä:0",
            "ääääää",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
