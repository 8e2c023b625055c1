//! Figures as they stand in tables: three significant digits, one unit per row or column, `–` for what was not
//! measured. It computes no statistics.

use rdsk_analysis::comparison::Ratio;
use rdsk_analysis::words;
pub(crate) use rdsk_analysis::words::{fio_size, rate, rate_of};
use rdsk_model::Estimate;
use rdsk_units::grouped;

/// What stands where nothing was measured.
pub const MISSING: &str = "–";

/// At least three significant digits, four decimals at most: `0.0123`, `5.89`, `25.0`, `8306`.
pub fn significant(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => MISSING.into(),
        0.0 => "0".into(),
        size if size < 0.09995 => format!("{value:.4}"),
        size if size < 0.9995 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The text, or `–`.
pub fn or_missing(value: Option<String>) -> String {
    value.unwrap_or_else(|| MISSING.into())
}

/// `±1.2 %`, `±>100 %`, or `–` without an interval.
pub fn plus_minus(estimate: Option<Estimate>) -> String {
    or_missing(estimate.and_then(|estimate| estimate.margin()).map(words::plus_minus))
}

/// `1.88 × (1.16–3.06)`.
pub(crate) fn times(ratio: Ratio) -> String {
    format!("{} ({})", words::times(ratio.mean), range(ratio.low, ratio.high))
}

/// `1.16–3.06`.
pub(crate) fn range(low: f64, high: f64) -> String {
    format!("{}–{}", number(low), number(high))
}

/// A figure, or `n/a` for what is none.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { words::figure(value) } else { "n/a".into() }
}

/// A whole number with commas, or `–`.
pub(crate) fn whole(value: Option<u64>) -> String {
    or_missing(value.map(grouped))
}

/// I/Os per second: whole with commas from 100 on.
pub(crate) fn iops(value: f64) -> String {
    if value < 99.95 || !value.is_finite() {
        return significant(value);
    }
    grouped(rdsk_analysis::metrics::whole(value.round()))
}

/// A unit and how much of the base unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its name; empty for a plain number.
    pub name: &'static str,
    size: f64,
}

impl Unit {
    /// A number without a unit.
    pub const ONE: Self = Self { name: "", size: 1.0 };
    /// Of rates of I/Os.
    pub const IOPS: Self = Self { name: "IOPS", size: 1.0 };
    /// Of rates in bytes per second.
    pub const MIB_PER_S: Self = Self { name: "MiB/s", size: 1_048_576.0 };
    pub(crate) const MB_PER_S: Self = Self { name: "MB/s", size: 1e6 };
    /// Of times in nanoseconds.
    pub const MICROSECONDS: Self = Self { name: "µs", size: 1e3 };
    /// Of times in nanoseconds, the largest first.
    pub const TIMES: [Self; 4] = [
        Self { name: "s", size: 1e9 },
        Self { name: "ms", size: 1e6 },
        Self::MICROSECONDS,
        Self { name: "ns", size: 1.0 },
    ];
    /// Of bytes.
    pub const SIZES: [Self; 4] = [
        Self { name: "GiB", size: 1_073_741_824.0 },
        Self { name: "MiB", size: 1_048_576.0 },
        Self { name: "KiB", size: 1024.0 },
        Self { name: "B", size: 1.0 },
    ];
    /// Of bytes per second.
    pub const RATES: [Self; 3] = [
        Self { name: "GiB/s", size: 1_073_741_824.0 },
        Self::MIB_PER_S,
        Self { name: "KiB/s", size: 1024.0 },
    ];

    /// The largest of the units in which the smallest of the values that are not 0 is at least 1.
    pub fn fit(units: &[Self], values: impl IntoIterator<Item = f64>) -> Self {
        let smallest = values.into_iter().filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
        let fits = units.iter().copied().find(|unit| smallest / unit.size >= 0.9995);
        fits.filter(|_| smallest.is_finite()).unwrap_or(units[units.len() - 1])
    }

    /// How many of this unit a value in the base unit is.
    pub fn scaled(self, value: f64) -> f64 {
        value / self.size
    }

    /// The value in this unit, without its name.
    pub fn figure(self, value: f64) -> String {
        significant(self.scaled(value))
    }

    /// The value with the unit's name: `2.35 GiB/s`.
    pub fn text(self, value: f64) -> String {
        format!("{} {}", self.figure(value), self.name)
    }

    /// The value in this unit, or `–`.
    pub fn figure_or_missing(self, value: Option<f64>) -> String {
        or_missing(value.map(|value| self.figure(value)))
    }
}

/// `10 % slower than`, `27 to 33 % faster than`: how much faster something is, in percent, at least and at most.
pub(crate) fn compared(low: f64, high: f64) -> String {
    let word = |percent: f64| if percent < 0.0 { "slower" } else { "faster" };
    let size = |percent: f64| format!("{:.0}", percent.abs());
    let (least, most) = if high < 0.0 { (size(high), size(low)) } else { (size(low), size(high)) };
    if least == "0" && most == "0" {
        "as fast as".into()
    } else if word(low) != word(high) {
        format!("between {least}% slower and {most}% faster than")
    } else if least == most {
        format!("{most}% {} than", word(low))
    } else {
        format!("{least} to {most}% {} than", word(low))
    }
}

/// A ratio: `0.0158`, `0.947`, `12.3`.
pub(crate) fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.09995 => format!("{ratio:.4}"),
        ratio if ratio < 9.995 => format!("{ratio:.3}"),
        ratio if ratio < 99.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

/// The ratio of two rates, or an end of its interval. Near 1 it has three decimals, as where runs are compared: two would say `1.00 ×` of
/// targets that differ.
pub(crate) fn ratio_figure(ratio: f64) -> String {
    const NEAR: f64 = 0.05;
    match ratio {
        ratio if (ratio - 1.0).abs() < NEAR => factor(ratio),
        ratio if ratio.is_finite() => rdsk_analysis::words::figure(ratio),
        _ => "n/a".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_words_without_signs() {
        for (low, high, text) in [
            (-10.2, -9.8, "10% slower than"),
            (-97.0, -80.0, "80 to 97% slower than"),
            (27.0, 33.0, "27 to 33% faster than"),
            (-25.0, 43.0, "between 25% slower and 43% faster than"),
            (-0.3, 0.4, "as fast as"),
        ] {
            assert_eq!(compared(low, high), text);
        }
    }

    #[test]
    fn three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.0123, "0.0123"),
            (0.123_4, "0.123"),
            (5.887, "5.89"),
            (25.04, "25.0"),
            (442.58, "443"),
            (8306.4, "8306"),
            (9.996, "10.0"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn one_unit_for_all() {
        assert_eq!(Unit::fit(&Unit::TIMES, [720e6, 42e6]).name, "ms");
        assert_eq!(Unit::fit(&Unit::TIMES, [2.9e9, 1.0e9]).name, "s");
        assert_eq!(Unit::fit(&Unit::TIMES, []).name, "ns");
        assert_eq!(Unit::fit(&Unit::SIZES, [0.0, 2048.0]).name, "KiB");
        assert_eq!(Unit::fit(&Unit::RATES, [100.0]).name, "KiB/s");
        assert_eq!(Unit::MIB_PER_S.figure(1_048_576.0), "1.00");
        assert_eq!(Unit::MB_PER_S.figure_or_missing(None), "–");
    }

    #[test]
    fn intervals_and_counts() {
        let estimate = Estimate { mean: 100.0, low: Some(98.8), high: Some(101.2) };
        assert_eq!(plus_minus(Some(estimate)), "±1.2%");
        assert_eq!(plus_minus(Some(Estimate { low: None, ..estimate })), "–");
        assert_eq!(plus_minus(Some(Estimate { high: Some(350.0), ..estimate })), "±>100%");
        assert_eq!(plus_minus(None), "–");
        assert_eq!(iops(124_853.4), "124,853");
        assert_eq!(iops(59.96), "60.0");
        assert_eq!(whole(None), "–");
    }
}
