//! A page of docs/reports, read and filled in. A section has a title, the commands that measure it, and a table with a row for each
//! figure of the report:
//!
//! ```text
//! | test | report | rdsk | error | allowed | row is |
//! | w/s | 13006.1 | 13075 | +0.5 % | ±10 % | fitted |
//! ```
//!
//! rdsk's figure and the error are filled in. What is allowed is a share of the report's figure (`±10 %`), a factor (`within 2 ×`), or
//! a statement that was made without one figure: `at most 1`, `at least 2`, `1.27 to 1.33`. `–` is a variant without a statement.

use super::figures::Records;
use anyhow::{Context as _, Result};
use std::ops::RangeInclusive;

/// The figure of a row: of the Records of its section, the section's title and the row's name.
pub(super) type FigureOf = fn(&[&serde_json::Value], &str, &str) -> f64;

/// What stands for something that is not there.
const NONE: &str = "–";

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<'p> {
    /// What it is: the row and the column of the report's table.
    pub(super) what: &'p str,
    /// What the report printed.
    report: Option<f64>,
    printed: &'p str,
    allowed: &'p str,
    /// What its agreement with the report shows: `fitted`, `follows`, `prediction`, or `–`.
    pub(super) basis: &'p str,
}

impl<'p> Row<'p> {
    /// Reads a line; `None` for the head of a table, and for what is none.
    pub(super) fn read(line: &'p str) -> Option<Self> {
        let columns: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [what, printed, _, _, allowed, basis] = columns[..] else { return None };
        (what != "test").then(|| Self { what, report: printed.parse().ok(), printed, allowed, basis })
    }

    /// Whether the report says anything that it is compared with.
    pub(super) fn is_compared(&self) -> bool {
        self.allowed != NONE
    }

    /// From which figure to which one rdsk's may be.
    fn range(&self) -> Result<RangeInclusive<f64>> {
        let number = |text: &str| text.parse::<f64>().with_context(|| format!("{text} is no number"));
        let report = || self.report.with_context(|| format!("{}: the report has no figure", self.what));
        let allowed = self.allowed;
        if !self.is_compared() {
            return Ok(0.0..=f64::INFINITY);
        }
        if let Some(percent) = allowed.strip_prefix('±').and_then(|rest| rest.strip_suffix('%')) {
            let share = number(percent)? / 100.0;
            return Ok(report()? * (1.0 - share)..=report()? * (1.0 + share));
        }
        if let Some(factor) = allowed.strip_prefix("within ").and_then(|rest| rest.strip_suffix('x')) {
            return Ok(report()? / number(factor)?..=report()? * number(factor)?);
        }
        if let Some(most) = allowed.strip_prefix("at most ") {
            return Ok(f64::NEG_INFINITY..=number(most)?);
        }
        if let Some(least) = allowed.strip_prefix("at least ") {
            return Ok(number(least)?..=f64::INFINITY);
        }
        let (low, high) = allowed.split_once(" to ").with_context(|| format!("what is \"{allowed}\"?"))?;
        Ok(number(low)?..=number(high)?)
    }

    /// The line with rdsk's figure in it.
    fn filled(&self, rdsk: f64) -> String {
        let error = match self.report {
            Some(report) if self.allowed.starts_with("within") => format!("{:.2}x", rdsk / report),
            Some(report) if report > 0.0 => format!("{:+.1}%", (rdsk / report - 1.0) * 100.0),
            _ => NONE.to_owned(),
        };
        let Self { what, printed, allowed, basis, .. } = self;
        format!("| {what} | {printed} | {} | {error} | {allowed} | {basis} |", figure(rdsk))
    }
}

/// A figure in four digits, without a trailing fraction of zeros.
fn figure(value: f64) -> String {
    // The sum of nothing is -0.
    let value = value + 0.0;
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The page with rdsk's figures, and the rows that are outside of what is allowed.
pub(super) struct Filled {
    pub(super) text: String,
    pub(super) outside: Vec<String>,
}

/// Runs the commands of each section and fills in its rows.
pub(super) fn filled(page: &str, records: &mut Records<'_>, figure_of: FigureOf) -> Result<Filled> {
    let (mut text, mut outside) = (String::new(), Vec::new());
    let (mut title, mut commands) = ("", Vec::new());
    for line in page.lines() {
        if let Some(section) = line.strip_prefix("## ") {
            (title, commands) = (section, Vec::new());
        }
        commands.extend(line.strip_prefix("    rdsk "));
        let mut line = line.to_owned();
        if let Some(row) = Row::read(&line) {
            let rdsk = figure_of(&records.made_by(&commands)?, title, row.what);
            let filled = row.filled(rdsk);
            // A missing figure is NaN, which no range holds.
            if !row.range()?.contains(&rdsk) {
                outside.push(format!("{title}: {filled}"));
            }
            line = filled;
        }
        text.push_str(&line);
        text.push('\n');
    }
    Ok(Filled { text, outside })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_inside(report: &str, rdsk: f64, allowed: &str) -> bool {
        let line = format!("| x | {report} | 0 | 0 | {allowed} | prediction |");
        Row::read(&line).unwrap().range().unwrap().contains(&rdsk)
    }

    #[test]
    fn a_cell_outside_its_tolerance_is_told() {
        assert!(is_inside("100", 109.0, "±10%") && !is_inside("100", 111.0, "±10%"));
        assert!(is_inside("1.3", 2.59, "within 2x") && !is_inside("1.3", 2.61, "within 2x"));
        assert!(!is_inside("0.9", 1.01, "at most 1") && !is_inside("–", 1.04, "at least 1.05"));
        assert!(is_inside("–", 1.27, "1.27 to 1.33") && !is_inside("–", 1.34, "1.27 to 1.33"));
        assert!(!is_inside("–", f64::NAN, "–"), "no figure is no statement");
        assert!(!is_inside("1", f64::NAN, "±900%"), "no figure is no agreement");
        for bad in ["| x | – | 0 | 0 | ±5% | – |", "| x | 1 | 0 | 0 | about | – |"] {
            assert!(Row::read(bad).unwrap().range().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_row_gets_figure_and_error() {
        let row = Row::read("| x | 15.06 | 1 | +9% | ±5% | prediction |").unwrap();
        assert_eq!(row.filled(14.96), "| x | 15.06 | 14.96 | -0.7% | ±5% | prediction |");
        let row = Row::read("| x | 1.3 | – | – | within 2x | fitted |").unwrap();
        assert_eq!(row.filled(1.291), "| x | 1.3 | 1.291 | 0.99x | within 2x | fitted |");
        for line in
            ["| test | report | rdsk | error | allowed | row is |", "|---|---:|---:|---:|---:|---|", ""]
        {
            assert_eq!(Row::read(line), None);
        }
    }

    #[test]
    fn figures_have_four_digits() {
        let figures = [-0.0, 0.31, 2.591, 15.06, 442.58, 13006.1].map(figure);
        assert_eq!(figures, ["0", "0.31", "2.591", "15.06", "442.6", "13006"]);
    }
}
