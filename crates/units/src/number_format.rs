//! Counts and shares in few characters, for tables. Never hides that a number is not zero: `<0.1 %` is not `0 %`.

/// A count in three significant digits: `256`, `12.5`, `1.59M`, `410k`. Whole numbers below 1000 stay as they
/// are; above come `k`, `M`, `G` and `T`, powers of 1000. Not finite: `n/a`.
///
/// ```
/// assert_eq!(rdsk_units::count(410_321.0), "410k");
/// ```
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    let mut scaled = value;
    let mut suffix = "";
    for next in ["k", "M", "G", "T"] {
        // 999.5 would be written 1000, which belongs to the next suffix.
        if scaled.abs() < 999.5 {
            break;
        }
        scaled /= 1000.0;
        suffix = next;
    }
    let decimals = match scaled.abs() {
        _ if suffix.is_empty() && scaled.fract() == 0.0 => 0,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{suffix}")
}

/// A share of one as a percentage with one decimal: `2.0 %`. A share above 0 is never written as 0 (`<0.1 %`), and one
/// below 1 never as 100 (`>99.9 %`). Not finite: `n/a`.
///
/// ```
/// assert_eq!(rdsk_units::percent(0.02), "2.0%");
/// ```
pub fn percent(fraction: f64) -> String {
    if !fraction.is_finite() {
        return "n/a".to_owned();
    }
    match fraction * 100.0 {
        0.0 => "0%".to_owned(),
        p if p > 0.0 && p < 0.1 => "<0.1%".to_owned(),
        p if p < 0.0 && p > -0.1 => ">-0.1%".to_owned(),
        p if p > 99.9 && p < 100.0 => ">99.9%".to_owned(),
        100.0 => "100%".to_owned(),
        p => format!("{p:.1}%"),
    }
}

/// A whole number with a comma at every third digit: `104,857,600`.
///
/// ```
/// assert_eq!(rdsk_units::grouped(104_857_600), "104,857,600");
/// ```
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (256.0, "256"),
            (12.54, "12.5"),
            (0.254, "0.25"),
            (999.0, "999"),
            (999.7, "1.00k"),
            (1000.0, "1.00k"),
            (410_000.0, "410k"),
            (999_600.0, "1.00M"),
            (1_590_000.0, "1.59M"),
            (2.5e15, "2500T"),
            (-1500.0, "-1.50k"),
            (f64::INFINITY, "n/a"),
        ];
        for (value, text) in cases {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn percentages() {
        let cases = [
            (0.0, "0%"),
            (0.0005, "<0.1%"),
            (0.02, "2.0%"),
            (0.9, "90.0%"),
            (0.9999, ">99.9%"),
            (1.0, "100%"),
            (1.234, "123.4%"),
            (-0.03, "-3.0%"),
            (-0.0001, ">-0.1%"),
            (f64::NAN, "n/a"),
        ];
        for (fraction, text) in cases {
            assert_eq!(percent(fraction), text);
        }
    }

    #[test]
    fn groups() {
        for (value, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")]
        {
            assert_eq!(grouped(value), text);
        }
    }
}
