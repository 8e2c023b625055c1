//! The lines that dd prints at the end: counts of blocks, bytes, time and rate. Text only.

use crate::operands::Status;
use std::fmt::Write;
use std::time::Duration;

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

/// Whether a line of progress is meant, which gives whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsProgress {
    Yes,
    No,
}

/// What a status allows of `1+0 records in`, `1+0 records out`, and the line with time and rate; nothing if it allows none.
pub(crate) fn lines(status: Status, counts: &Counts, elapsed: Duration) -> String {
    let Counts { full_in, partial_in, full_out, partial_out, written_bytes } = counts;
    let records = format!("{full_in}+{partial_in} records in\n{full_out}+{partial_out} records out\n");
    match status {
        Status::None => String::new(),
        Status::NoTransfer => records,
        Status::All | Status::Progress => {
            format!("{records}{}\n", transfer(*written_bytes, elapsed, IsProgress::No))
        }
    }
}

/// `1024 bytes (1.0 kB, 1.0 KiB) copied, 0.5 s, 2.0 kB/s`.
pub(crate) fn transfer(bytes: u64, elapsed: Duration, is_progress: IsProgress) -> String {
    let (decimal, binary) = (scaled(bytes, Base::Decimal), scaled(bytes, Base::Binary));
    let has_prefix = |size: &str| !size.ends_with(" B");
    let sizes = match (has_prefix(&decimal), has_prefix(&binary)) {
        (false, _) => String::new(),
        (true, false) => format!(" ({decimal})"),
        (true, true) => format!(" ({decimal}, {binary})"),
    };
    let seconds = elapsed.as_secs_f64();
    let time = if is_progress == IsProgress::Yes { format!("{seconds:.0}") } else { six_digits(seconds) };
    #[allow(clippy::cast_precision_loss, reason = "dd prints two digits")]
    let rate = if elapsed.is_zero() { "Infinity B".into() } else { scaled_rate(bytes as f64 / seconds) };
    let noun = if bytes == 1 { "byte" } else { "bytes" };
    format!("{bytes} {noun}{sizes} copied, {time} s, {rate}/s")
}

/// `8.9 PiB`: powers of 1024.
pub(crate) fn binary_size(bytes: u64) -> String {
    scaled(bytes, Base::Binary)
}

#[derive(Clone, Copy)]
enum Base {
    Decimal = 1000,
    Binary = 1024,
}

/// Two digits and a unit, rounded to the nearest, halves to the even digit.
fn scaled(bytes: u64, base: Base) -> String {
    let (amount, exponent) = {
        let (mut scale, mut exponent) = (1_u128, 0);
        while u128::from(bytes) >= scale * base as u128 {
            scale *= base as u128;
            exponent += 1;
        }
        (Ratio { over: u128::from(bytes), under: scale }, exponent)
    };
    if exponent == 0 {
        return format!("{bytes} B");
    }
    let tenths = amount.rounded(10);
    let whole = amount.rounded(1);
    let unit = unit(exponent, base);
    if tenths < 100 {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    } else if whole == base as u128 {
        format!("1.0 {}", self::unit(exponent + 1, base))
    } else {
        format!("{whole} {unit}")
    }
}

struct Ratio {
    over: u128,
    under: u128,
}

impl Ratio {
    /// So many times the ratio, rounded to the nearest, a half to the even one.
    fn rounded(&self, times: u128) -> u128 {
        let (quotient, twice) = (self.over * times / self.under, self.over * times % self.under * 2);
        quotient + u128::from(twice > self.under || (twice == self.under && quotient % 2 == 1))
    }
}

/// The same for a rate, which is no whole number; dd begins with kB.
fn scaled_rate(rate: f64) -> String {
    let (mut amount, mut exponent) = (rate / 1000.0, 1);
    while amount >= 1000.0 && exponent < 8 {
        amount /= 1000.0;
        exponent += 1;
    }
    let unit = unit(exponent, Base::Decimal);
    let text = format!("{amount:.1}");
    // dd gives the decimal up to 99.9.
    if text.len() > 4 { format!("{amount:.0} {unit}") } else { format!("{text} {unit}") }
}

fn unit(exponent: usize, base: Base) -> String {
    let letter = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"][exponent.min(8)];
    match base {
        Base::Decimal => format!("{letter}B"),
        Base::Binary if letter == "k" => "KiB".into(),
        Base::Binary if letter.is_empty() => "B".into(),
        Base::Binary => format!("{letter}iB"),
    }
}

/// A number as `%g` of printf(3) writes it: six significant digits without zeros at the end.
fn six_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.to_owned()
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    let mut text = trimmed(digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a String cannot fail.
    let _ = write!(text, "e{sign}{:02}", exponent.abs());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_dd() {
        // Seen with GNU dd 9.1.
        let rows = [
            (0, "0 bytes copied"),
            (1, "1 byte copied"),
            (999, "999 bytes copied"),
            (1000, "1000 bytes (1.0 kB) copied"),
            (1024, "1024 bytes (1.0 kB, 1.0 KiB) copied"),
            (1050, "1050 bytes (1.0 kB, 1.0 KiB) copied"),
            (10_239, "10239 bytes (10 kB, 10 KiB) copied"),
            (999_499, "999499 bytes (999 kB, 976 KiB) copied"),
            (999_500, "999500 bytes (1.0 MB, 976 KiB) copied"),
            (1_048_576, "1048576 bytes (1.0 MB, 1.0 MiB) copied"),
            (1_048_575, "1048575 bytes (1.0 MB, 1.0 MiB) copied"),
            (10_737_418_240, "10737418240 bytes (11 GB, 10 GiB) copied"),
        ];
        for (bytes, expected) in rows {
            let line = transfer(bytes, Duration::from_secs(1), IsProgress::No);
            assert!(line.starts_with(&format!("{expected}, 1 s, ")), "{line}");
        }
    }

    #[test]
    fn halves_go_to_the_even_digit() {
        assert_eq!(scaled(10_500, Base::Decimal), "10 kB");
        assert_eq!(scaled(11_500, Base::Decimal), "12 kB");
        assert_eq!(scaled(1_150, Base::Decimal), "1.2 kB");
    }

    #[test]
    fn times_and_rates_are_those_of_dd() {
        // Seen with GNU dd 9.1.
        let rows = [
            (0, 0, "copied, 0 s, Infinity B/s"),
            (512, 40_321, "copied, 4.0321e-05 s, 12.7 MB/s"),
            (5_000_000, 1_234_567_891, "copied, 1.23457 s, 4.1 MB/s"),
            (9_960_000, 1_000_000_000, "copied, 1 s, 10.0 MB/s"),
            (9_940_000, 1_000_000_000, "copied, 1 s, 9.9 MB/s"),
            (0, 51_467, "copied, 5.1467e-05 s, 0.0 kB/s"),
            (512, 1_000_000_000, "copied, 1 s, 0.5 kB/s"),
        ];
        for (bytes, elapsed_ns, expected) in rows {
            let line = transfer(bytes, Duration::from_nanos(elapsed_ns), IsProgress::No);
            assert!(line.ends_with(expected), "{line}");
        }
        let day = transfer(1 << 40, Duration::from_secs(123_457), IsProgress::Yes);
        assert!(day.ends_with("copied, 123457 s, 8.9 MB/s"), "{day}");
        assert_eq!(six_digits(0.000_123_456_78), "0.000123457");
        assert_eq!(six_digits(1_234_567.0), "1.23457e+06");
        assert_eq!(six_digits(100.0), "100");
    }

    #[test]
    fn a_status_leaves_out_lines() {
        let counts = Counts { full_in: 2, partial_in: 1, full_out: 3, partial_out: 0, written_bytes: 3 };
        let lines = |status| lines(status, &counts, Duration::from_secs(1)).lines().count();
        assert_eq!(
            [Status::All, Status::Progress, Status::NoTransfer, Status::None].map(lines),
            [3, 3, 2, 0]
        );
    }
}
