//! Rates in bytes per second, written for people. Never divides: the code that measured the time does that.

use std::fmt;

/// Prefixes from kilo to giga, with the binary and the decimal size of each.
const SCALES: [(&str, &str, f64, f64); 3] = [
    ("KiB/s", "kB/s", 1024.0, 1e3),
    ("MiB/s", "MB/s", 1_048_576.0, 1e6),
    ("GiB/s", "GB/s", 1_073_741_824.0, 1e9),
];

/// A rate of data. `Display` scales from KiB/s to GiB/s: `123 MiB/s`, `6.71 MiB/s`; not finite: `n/a`.
///
/// ```
/// use rdsk_units::Rate;
/// let rate = Rate { bytes_per_s: 129_394_278.4 };
/// assert_eq!(rate.both(), "123 MiB/s (129 MB/s)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate {
    /// Bytes per second.
    pub bytes_per_s: f64,
}

impl Rate {
    /// The rate in both kinds of unit, under the same prefix to compare: `123 MiB/s (129 MB/s)`.
    pub fn both(self) -> String {
        if !self.bytes_per_s.is_finite() {
            return self.to_string();
        }
        let (_, decimal_name, _, decimal) = SCALES[self.scale()];
        format!("{self} ({} {decimal_name})", digits(self.bytes_per_s / decimal))
    }

    /// The largest scale of which there is at least one, after rounding.
    fn scale(self) -> usize {
        let size = self.bytes_per_s.abs();
        SCALES.iter().rposition(|(_, _, binary, _)| size / binary >= 0.99995).unwrap_or(0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.bytes_per_s.is_finite() {
            return f.pad("n/a");
        }
        let (name, _, binary, _) = SCALES[self.scale()];
        f.pad(&format!("{} {name}", digits(self.bytes_per_s / binary)))
    }
}

/// Three significant digits of a rate of at least one unit, as in a table: `9.04`, `12.3`, `934`, `1027`.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_and_rounds() {
        let cases = [
            (0.0, "0.00 KiB/s", "0.00 KiB/s (0.00 kB/s)"),
            (512.0, "0.50 KiB/s", "0.50 KiB/s (0.51 kB/s)"),
            (1_048_576.0, "1.00 MiB/s", "1.00 MiB/s (1.05 MB/s)"),
            (1_048_575.0, "1.00 MiB/s", "1.00 MiB/s (1.05 MB/s)"),
            (6.714 * 1_048_576.0, "6.71 MiB/s", "6.71 MiB/s (7.04 MB/s)"),
            (980.0 * 1_048_576.0, "980 MiB/s", "980 MiB/s (1028 MB/s)"),
            (38.0 * 1_073_741_824.0, "38.0 GiB/s", "38.0 GiB/s (40.8 GB/s)"),
            (f64::NAN, "n/a", "n/a"),
        ];
        for (bytes_per_s, text, both) in cases {
            assert_eq!(Rate { bytes_per_s }.to_string(), text);
            assert_eq!(Rate { bytes_per_s }.both(), both);
        }
    }
}
