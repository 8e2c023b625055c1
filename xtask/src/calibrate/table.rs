//! The tables of the campaign's page.

use std::fmt::Write as _;

/// A table; each row may say whether what is wanted holds.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<(Vec<String>, Option<bool>)>,
}

impl Table {
    pub(crate) fn new(title: String, head: Vec<String>) -> Self {
        Self { title, head, rows: Vec::new() }
    }

    /// Adds a row and whether what is wanted of it holds; `None` if it is only reported.
    pub(crate) fn row(&mut self, cells: Vec<String>, holds: Option<bool>) {
        self.rows.push((cells, holds));
    }

    pub(crate) fn last(&self) -> Option<&(Vec<String>, Option<bool>)> {
        self.rows.last()
    }

    /// Rows that fall short.
    pub(crate) fn missed(&self) -> usize {
        self.rows.iter().filter(|(_, holds)| *holds == Some(false)).count()
    }

    /// As Markdown.
    pub(crate) fn draw(&self) -> String {
        let mut text = format!("{}:\n\n", self.title);
        let mut line = |cells: &[String]| {
            writeln!(text, "| {} |", cells.join(" | ")).expect("a String takes everything");
        };
        let mut head = self.head.clone();
        head.push("holds".into());
        line(&head);
        line(&vec!["---".to_owned(); head.len()]);
        for (cells, holds) in &self.rows {
            let mut cells = cells.clone();
            cells.push(match holds {
                Some(true) => "yes".into(),
                Some(false) => "**no**".into(),
                None => "reported".into(),
            });
            line(&cells);
        }
        text
    }
}

/// `part` of `all`; 0 of nothing.
#[allow(clippy::cast_precision_loss, reason = "counts of trials")]
pub(crate) fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

/// A share in percent, with a decimal where it is small: `4.2`, `95`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && percent > 0.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}
