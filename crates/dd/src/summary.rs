//! The lines that dd prints at the end: counts of blocks, bytes, time and rate. Text only.

use crate::operands::Status;

/// Blocks and bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Input blocks read in full.
    pub full_in: u64,
    /// Input blocks read in part.
    pub partial_in: u64,
    /// Output blocks written in full.
    pub full_out: u64,
    /// Output blocks written in part.
    pub partial_out: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What a status allows of `1+0 records in`, `1+0 records out`, and the line with time and rate; nothing if it allows none.
pub fn lines(status: Status, counts: &Counts, elapsed_ns: u64) -> String {
    let Counts { full_in, partial_in, full_out, partial_out, written_bytes } = counts;
    let records = format!("{full_in}+{partial_in} records in\n{full_out}+{partial_out} records out\n");
    match status {
        Status::None => String::new(),
        Status::NoTransfer => records,
        Status::All | Status::Progress => {
            format!("{records}{}\n", transfer(*written_bytes, elapsed_ns, SECONDS_DIGITS))
        }
    }
}

/// Digits of a time in seconds that says something.
const SECONDS_DIGITS: usize = 6;

/// `1024 bytes (1.0 kB, 1.0 KiB) copied, 0.5 s, 2.0 kB/s`, with so many digits of the time; with none, whole seconds.
#[expect(clippy::cast_precision_loss, reason = "two or three digits are shown")]
pub(crate) fn transfer(bytes: u64, elapsed_ns: u64, digits: usize) -> String {
    let (amount, seconds) = (bytes as f64, elapsed_ns as f64 / 1e9);
    let sizes = match bytes {
        0..1000 => String::new(),
        1000..1024 => format!(" ({})", scaled(amount, DECIMAL, 10.0)),
        _ => format!(" ({}, {})", scaled(amount, DECIMAL, 10.0), scaled(amount, BINARY, 10.0)),
    };
    let noun = if bytes == 1 { "byte" } else { "bytes" };
    let rate = if elapsed_ns == 0 { "Infinity B".into() } else { scaled(amount / seconds, DECIMAL, 100.0) };
    format!("{bytes} {noun}{sizes} copied, {} s, {rate}/s", significant(seconds, digits))
}

type Units = (f64, [&'static str; 7]);
const DECIMAL: Units = (1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]);
const BINARY: Units = (1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);

/// With a decimal below `tenths_below`, rounded to the nearest, halves to the even digit; at least a thousand bytes.
fn scaled(amount: f64, (base, units): Units, tenths_below: f64) -> String {
    let (mut scale, mut unit) = (base, 1);
    while unit + 1 < units.len() && (amount / scale).round_ties_even() >= base {
        (scale, unit) = (scale * base, unit + 1);
    }
    let tenths = (amount * 10.0 / scale).round_ties_even();
    let name = units[unit];
    if tenths < tenths_below * 10.0 {
        format!("{:.1} {name}", tenths / 10.0)
    } else {
        format!("{} {name}", (amount / scale).round_ties_even())
    }
}

/// So many digits that say something, without zeros at the end.
fn significant(value: f64, digits: usize) -> String {
    let Some(more) = digits.checked_sub(1) else { return format!("{value:.0}") };
    // The exponent of what is shown: 9.9999999 s are 10 s.
    let shown = format!("{value:.more$e}");
    let exponent: i32 = shown.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let decimals = usize::try_from(i32::try_from(more).unwrap_or(0) - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn sizes_are_those_of_dd() {
        // Seen with GNU dd 9.1.
        let rows = [
            (0, "0 bytes copied"),
            (1, "1 byte copied"),
            (999, "999 bytes copied"),
            (1000, "1000 bytes (1.0 kB) copied"),
            (1024, "1024 bytes (1.0 kB, 1.0 KiB) copied"),
            (1150, "1150 bytes (1.2 kB, 1.1 KiB) copied"),
            (10_239, "10239 bytes (10 kB, 10 KiB) copied"),
            (10_500, "10500 bytes (10 kB, 10 KiB) copied"),
            (11_500, "11500 bytes (12 kB, 11 KiB) copied"),
            (999_499, "999499 bytes (999 kB, 976 KiB) copied"),
            (999_500, "999500 bytes (1.0 MB, 976 KiB) copied"),
            (1_048_576, "1048576 bytes (1.0 MB, 1.0 MiB) copied"),
            (1_048_575, "1048575 bytes (1.0 MB, 1.0 MiB) copied"),
            (10_737_418_240, "10737418240 bytes (11 GB, 10 GiB) copied"),
        ];
        for (bytes, expected) in rows {
            let line = transfer(bytes, S, 6);
            assert!(line.starts_with(&format!("{expected}, 1 s, ")), "{line}");
        }
    }

    #[test]
    fn times_and_rates_have_the_digits_that_dds_have() {
        let rows = [
            (0, 0, "copied, 0 s, Infinity B/s"),
            (512, 40_321, "copied, 0.000040321 s, 12.7 MB/s"),
            (5_000_000, 1_234_567_891, "copied, 1.23457 s, 4.1 MB/s"),
            (9_960_000, S, "copied, 1 s, 10.0 MB/s"),
            (9_940_000, S, "copied, 1 s, 9.9 MB/s"),
            (0, 51_467, "copied, 0.000051467 s, 0.0 kB/s"),
            (512, S, "copied, 1 s, 0.5 kB/s"),
            (1 << 40, 100 * S, "copied, 100 s, 11.0 GB/s"),
            (100 << 20, 123_456_700_000, "copied, 123.457 s, 849 kB/s"),
        ];
        for (bytes, elapsed_ns, expected) in rows {
            let line = transfer(bytes, elapsed_ns, 6);
            assert!(line.ends_with(expected), "{line}");
        }
        let day = transfer(1 << 40, 123_457 * S, 0);
        assert!(day.ends_with("copied, 123457 s, 8.9 MB/s"), "{day}");
    }

    #[test]
    fn a_status_leaves_out_lines() {
        let counts = Counts { full_in: 2, partial_in: 1, full_out: 3, partial_out: 0, written_bytes: 3 };
        let lines = |status| lines(status, &counts, S).lines().count();
        assert_eq!(
            [Status::All, Status::Progress, Status::NoTransfer, Status::None].map(lines),
            [3, 3, 2, 0]
        );
    }
}
