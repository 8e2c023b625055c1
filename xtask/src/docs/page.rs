//! A page of docs/reports: cells with the report's figure, rdsk's, the error and what is allowed. It draws and runs nothing.

use std::fmt::Write as _;

/// The allowed difference between a report's figure and rdsk's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Allowed {
    /// A share of the report's figure.
    Share(f64),
    /// A factor in either direction.
    Factor(f64),
    /// At most this much, whatever the report printed: queue depths that are a bound, counts that must be 0.
    AtMost(f64),
    /// At least this much: a statement that was made without a figure.
    AtLeast(f64),
    /// From the one to the other: a statement that was made with two figures.
    Range(f64, f64),
}

/// What a row's agreement with the report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A figure of the system was chosen so that this row agrees: nothing.
    Fitted,
    /// It follows by arithmetic from fitted rows and from what the report says of the system: nothing more than those.
    Follows,
    /// Nothing was chosen for it: that the model holds.
    Predicted,
}

/// One cell of a report's table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// What it is: the row and the column.
    pub(crate) what: String,
    /// What the report printed; `None` for a variant without a figure in the report.
    pub(crate) report: Option<f64>,
    /// What rdsk gives.
    pub(crate) rdsk: f64,
    /// How far apart they may be.
    pub(crate) allowed: Allowed,
    /// What its agreement shows.
    pub(crate) basis: Basis,
}

impl Cell {
    pub(crate) fn new(
        what: impl Into<String>,
        report: impl Into<Option<f64>>,
        rdsk: f64,
        allowed: Allowed,
    ) -> Self {
        Self { what: what.into(), report: report.into(), rdsk, allowed, basis: Basis::Predicted }
    }

    /// The same, of a row that follows from others.
    pub(crate) fn following(self) -> Self {
        Self { basis: Basis::Follows, ..self }
    }

    /// Whether the report says anything that it is compared with.
    pub(crate) fn is_compared(&self) -> bool {
        self.report.is_some()
            || !matches!(self.allowed, Allowed::Share(_) | Allowed::Factor(_) | Allowed::AtLeast(0.0))
    }

    /// Whether rdsk's figure is within the tolerance.
    fn is_inside(&self) -> bool {
        match (self.report, self.allowed) {
            (_, Allowed::AtMost(most)) => self.rdsk <= most,
            (_, Allowed::AtLeast(least)) => self.rdsk >= least,
            (_, Allowed::Range(low, high)) => (low..=high).contains(&self.rdsk),
            (None, _) => true,
            (Some(report), Allowed::Share(share)) => (self.rdsk / report - 1.0).abs() <= share,
            (Some(report), Allowed::Factor(factor)) => {
                (1.0 / factor..=factor).contains(&(self.rdsk / report))
            }
        }
    }

    fn row(&self) -> String {
        let report = self.report.map_or_else(|| "–".to_owned(), figure);
        let error = match (self.report, self.allowed) {
            (Some(report), Allowed::Factor(_)) => format!("{:.2} ×", self.rdsk / report),
            (Some(report), _) if report > 0.0 => format!("{:+.1} %", (self.rdsk / report - 1.0) * 100.0),
            _ => "–".to_owned(),
        };
        let allowed = match (self.report, self.allowed) {
            (_, Allowed::AtMost(most)) => format!("at most {}", figure(most)),
            (_, Allowed::AtLeast(0.0)) => "–".to_owned(),
            (_, Allowed::AtLeast(least)) => format!("at least {}", figure(least)),
            (_, Allowed::Range(low, high)) => format!("{} to {}", figure(low), figure(high)),
            (None, _) => "–".to_owned(),
            (_, Allowed::Share(share)) => format!("±{:.0} %", share * 100.0),
            (_, Allowed::Factor(factor)) => format!("within {factor:.0} ×"),
        };
        let basis = match self.basis {
            _ if !self.is_compared() => "–",
            Basis::Fitted => "fitted",
            Basis::Follows => "follows",
            Basis::Predicted => "prediction",
        };
        format!("| {} | {report} | {} | {error} | {allowed} | {basis} |", self.what, figure(self.rdsk))
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

/// A table with the command that gives it again.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What is compared, with its unit.
    pub(crate) title: String,
    /// The command line, without the program's name.
    pub(crate) command: String,
    pub(crate) cells: Vec<Cell>,
}

/// A page.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Name of the file, without its ending.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// What was asked then, and what the table shows; paragraphs.
    pub(crate) text: &'static str,
    /// The paragraph on what was fitted and what is predicted; [`super::counts::settle`] makes it.
    pub(crate) counts: String,
    pub(crate) tables: Vec<Table>,
}

impl Report {
    /// The page as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n<!-- made by `cargo xtask docs`; edit xtask/src/docs instead -->\n\n{}\n\n{}\n",
            self.title, self.text, self.counts
        );
        for table in &self.tables {
            write!(text, "\n## {}\n\n    rdsk {}\n\n", table.title, table.command)
                .expect("writing to a String cannot fail");
            text.push_str(
                "| cell | report | rdsk | error | allowed | row is |\n|---|---:|---:|---:|---:|---|\n",
            );
            for cell in &table.cells {
                text.push_str(&cell.row());
                text.push('\n');
            }
        }
        text
    }

    /// The cells that are too far from the report's, in words.
    pub(crate) fn outside(&self) -> Vec<String> {
        let cells = self.tables.iter().flat_map(|table| table.cells.iter().map(move |cell| (table, cell)));
        cells
            .filter(|(_, cell)| !cell.is_inside())
            .map(|(table, cell)| format!("{}: {}: {}", self.name, table.title, cell.row()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(report: Option<f64>, rdsk: f64, allowed: Allowed) -> Cell {
        Cell::new("x", report, rdsk, allowed)
    }

    #[test]
    fn a_cell_outside_its_tolerance_is_told() {
        assert!(cell(Some(100.0), 109.0, Allowed::Share(0.1)).is_inside());
        assert!(!cell(Some(100.0), 111.0, Allowed::Share(0.1)).is_inside());
        assert!(cell(Some(1.3), 2.59, Allowed::Factor(2.0)).is_inside());
        assert!(!cell(Some(1.3), 2.61, Allowed::Factor(2.0)).is_inside());
        assert!(!cell(Some(0.9), 1.01, Allowed::AtMost(1.0)).is_inside());
        assert!(!cell(None, 1.04, Allowed::AtLeast(1.05)).is_inside());
        assert!(cell(None, 1.27, Allowed::Range(1.27, 1.33)).is_inside());
        assert!(!cell(None, 1.34, Allowed::Range(1.27, 1.33)).is_inside());
        assert!(!cell(None, f64::NAN, Allowed::AtLeast(0.0)).is_inside(), "no figure is no statement");
        assert!(!cell(Some(1.0), f64::NAN, Allowed::Share(9.0)).is_inside(), "no figure is no agreement");
        assert_eq!(
            cell(Some(15.06), 14.96, Allowed::Share(0.05)).row(),
            "| x | 15.06 | 14.96 | -0.7 % | ±5 % | prediction |"
        );
    }

    #[test]
    fn figures_have_four_digits() {
        let all = [-0.0, 0.31, 2.591, 15.06, 442.58, 13006.1].map(figure);
        assert_eq!(all, ["0", "0.31", "2.591", "15.06", "442.6", "13006"]);
    }
}
