//! The figures of one cell of the headline as text: its rate with the margin, its marks and two percentiles. Each has its unit.

use super::marks;
use crate::cells::{is_wide, margin_of};
use crate::figures::{MISSING, Unit};
use crate::style::{Charset, ascii};
use rdsk_analysis::Analysis;
use rdsk_model::CellRecord;
use unicode_width::UnicodeWidthStr as _;

/// The texts of one cell, column by column, each with its unit.
#[derive(Clone, Debug, Default)]
pub struct RateTexts {
    /// `2.35 GiB/s` of sequential I/O, `30.6k IOPS` of other; `–` where nothing was measured.
    pub rate: String,
    /// `±4%`, `unstable`; empty without an interval.
    pub margin: String,
    /// `c`, `bc`: a letter for each thing that the figure is beside the device's; [`crate::remark_of`] says what they mean.
    pub marks: String,
    /// `62 µs`, or `–`; empty where no latency was recorded.
    pub p50: String,
    /// The same of the slowest hundredth.
    pub p99: String,
}

impl RateTexts {
    /// Those of a cell.
    pub fn of(analysis: &Analysis<'_>, cell: &CellRecord) -> Self {
        let percentiles = cell.result.latency_ns.as_ref();
        let time = |ns: Option<u64>| ns.map_or_else(|| MISSING.to_owned(), brief_time);
        Self {
            rate: rdsk_analysis::words::mean_rate(cell).unwrap_or_else(|| MISSING.into()),
            margin: margin_of(cell).map_or_else(String::new, margin),
            marks: marks::of_cell(analysis, cell),
            p50: percentiles.map_or_else(String::new, |latency| time(latency.p50)),
            p99: percentiles.map_or_else(String::new, |latency| time(latency.p99)),
        }
    }

    /// The same in these characters, which decide how wide a column is.
    pub(super) fn in_charset(self, charset: Charset) -> Self {
        if charset == Charset::Unicode {
            return self;
        }
        let [rate, margin, marks, p50, p99] =
            [self.rate, self.margin, self.marks, self.p50, self.p99].map(|text| ascii(&text));
        Self { rate, margin, marks, p50, p99 }
    }
}

/// `±4%`; a margin above one half is a word.
fn margin(half: f64) -> String {
    match half {
        half if is_wide(half) => "unstable".into(),
        half if half < 0.005 => "±<1%".into(),
        half => format!("±{:.0}%", half * 100.0),
    }
}

/// Two digits: `62 µs`, `2.4 ms`, `140 µs`.
fn brief_time(ns: u64) -> String {
    let ns = ns as f64;
    let unit = Unit::fit(&Unit::TIMES, [ns]);
    let value = unit.scaled(ns);
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {}", unit.name)
}

pub(super) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

pub(super) fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits_and_their_unit() {
        for (ns, text) in [
            (62_400, "62 µs"),
            (2_440_000, "2.4 ms"),
            (9_960_000, "10 ms"),
            (140_000, "140 µs"),
            (999, "999 ns"),
        ] {
            assert_eq!(brief_time(ns), text);
        }
    }

    #[test]
    fn a_wide_margin_is_a_word() {
        for (half, text) in
            [(0.001, "±<1%"), (0.042, "±4%"), (0.5, "±50%"), (0.51, "unstable"), (f64::NAN, "unstable")]
        {
            assert_eq!(margin(half), text);
        }
    }
}
