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
    pub(crate) fn new<T: Into<String>>(title: &str, head: impl IntoIterator<Item = T>) -> Self {
        Self { title: title.to_owned(), head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row and whether what is wanted of it holds, `None` if it is only reported; and prints it, since the next takes minutes.
    pub(crate) fn row(&mut self, cells: Vec<String>, holds: Option<bool>) {
        println!("{}", row_line(&cells, holds));
        self.rows.push((cells, holds));
    }

    /// Rows that fall short.
    pub(crate) fn missed(&self) -> usize {
        self.rows.iter().filter(|(_, holds)| *holds == Some(false)).count()
    }

    /// As Markdown.
    pub(crate) fn draw(&self) -> String {
        let mut text = format!("{}:\n\n", self.title);
        let mut head = self.head.clone();
        head.push("holds".into());
        let rule = vec!["---".to_owned(); head.len()];
        let rows = self.rows.iter().map(|(cells, holds)| row_line(cells, *holds));
        for line in [line(&head), line(&rule)].into_iter().chain(rows) {
            writeln!(text, "{line}").expect("a String takes everything");
        }
        text
    }
}

/// A row, and behind it whether it holds.
fn row_line(cells: &[String], holds: Option<bool>) -> String {
    let verdict = match holds {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "reported",
    };
    line(&[cells, &[verdict.to_owned()]].concat())
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// `part` of `whole`; 0 of nothing.
#[allow(clippy::cast_precision_loss, reason = "counts of trials")]
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A share in percent, with a decimal where it is small: `4.2`, `95`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && percent > 0.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_says_whether_it_holds() {
        let mut table = Table::new("Title", ["noise", "found, %"]);
        for (holds, word) in [(Some(true), "yes"), (Some(false), "**no**"), (None, "reported")] {
            table.row(vec!["none".into(), "4.2".into()], holds);
            assert!(table.draw().ends_with(&format!("| none | 4.2 | {word} |\n")), "{}", table.draw());
        }
        assert!(table.draw().starts_with("Title:\n\n| noise | found, % | holds |\n| --- | --- | --- |\n"));
        assert_eq!(table.missed(), 1);
    }
}
