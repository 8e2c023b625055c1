//! Moments on the command line: a date, a date with a time, or how long ago. All are UTC, as in the Record.

use crate::value::{self, BadValue};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rdsk_units::{Nanos, printable};

const DAY_NS: u64 = 24 * 3_600_000_000_000;
const HINT: &str =
    "write a date such as 2026-11-22, a time such as \"2026-11-22 18:30\" (UTC), or an age such as 7d or 12h";

/// A moment in nanoseconds since 1970; an age counts back from `now_ns`.
pub(crate) fn moment(text: &str, now_ns: i64) -> Result<i64, BadValue> {
    let text = &*value::text(text)?;
    let bad = || BadValue::new(format!("\"{}\" is no date, time or age", printable(text)), HINT);
    if let Ok(age_ns) = age(text) {
        return Ok(now_ns.saturating_sub(i64::try_from(age_ns).unwrap_or(i64::MAX)));
    }
    let utc = |time: DateTime| time.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
    let moment = text.parse::<Timestamp>().or_else(|_| text.parse::<DateTime>().and_then(utc));
    let moment = moment.map_err(|_| bad())?;
    i64::try_from(moment.as_nanosecond()).map_err(|_| bad())
}

/// An age in nanoseconds: as any time, and in days (`d`) and weeks (`w`).
pub(crate) fn age(text: &str) -> Result<u64, BadValue> {
    let text = value::text(text)?;
    let text = text.trim();
    let of_days = |days: u64| text[..text.len() - 1].trim().parse::<u64>().ok()?.checked_mul(days * DAY_NS);
    let long = match text.as_bytes().last() {
        Some(b'd') => of_days(1),
        Some(b'w') => of_days(7),
        // A bare number would mean seconds, and a year of a date.
        Some(last) if last.is_ascii_alphabetic() => Nanos::parse(text).ok().map(|time| time.0),
        _ => None,
    };
    long.ok_or_else(|| {
        BadValue::new(
            format!("\"{}\" is no age", printable(text)),
            "write a number and a unit, such as 90d, 2w or 12h",
        )
    })
}

/// An age whose runs are to be deleted: as [`age`], but for a number of `m`, which may be meant as months.
pub(crate) fn age_to_delete(text: &str) -> Result<u64, BadValue> {
    let number = text.trim().strip_suffix('m').map(str::trim);
    if let Some(number) = number.filter(|number| number.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        return Err(BadValue::new(
            format!("\"{}\" may mean minutes or months", printable(text.trim())),
            format!("write {number}min, or a number of days such as 90d"),
        ));
    }
    age(text)
}

/// Now, in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// `2026-11-22 18:30` in UTC.
pub(crate) fn shown(ns: i64) -> String {
    let moment = Timestamp::from_nanosecond(i128::from(ns));
    moment.map_or_else(|_| "?".into(), |moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_ages_are_moments() {
        let now = moment("2026-11-22T18:30:00Z", 0).unwrap();
        assert_eq!(shown(now), "2026-11-22 18:30");
        for (text, expected) in [
            ("2026-11-22", "2026-11-22 00:00"),
            ("2026-11-22 07:15", "2026-11-22 07:15"),
            ("2026-11-22T07:15:30", "2026-11-22 07:15"),
            ("2026-11-22T07:15:30+02:00", "2026-11-22 05:15"),
            ("1d", "2026-11-21 18:30"),
            ("2w", "2026-11-08 18:30"),
            ("90m", "2026-11-22 17:00"),
        ] {
            assert_eq!(shown(moment(text, now).unwrap()), expected, "{text}");
        }
        for text in ["", "yesterday", "2026", "2026-13-01", "5", "d", "-1d", "99999999999999999999d"] {
            assert!(moment(text, now).is_err(), "{text}");
        }
        assert_eq!(age("90d").unwrap(), 90 * DAY_NS);
        assert!(age("90").is_err());
    }
}
