//! What a page of docs/reports says of its own strength: which figures of its systems were fitted to which of its rows, which
//! rows follow from what was put in, and which are predictions. It reads the marks of the systems, and runs nothing.

use super::page::{Basis, Cell, Report, Table};
use rdsk_disk::{Figure, Mark, Tally};
use std::collections::BTreeSet;

/// The systems that a page's commands name, each once, in their order.
fn systems(tables: &[Table]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let words = tables.iter().flat_map(|table| table.command.split_whitespace());
    for name in words.filter_map(|word| word.strip_prefix("sim:")) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The figures of systems, those that several share once.
///
/// # Errors
/// When there is no such system.
pub(super) fn figures_of(names: &[String]) -> anyhow::Result<Vec<Figure>> {
    let mut all: Vec<Figure> = Vec::new();
    for name in names {
        let text = rdsk_disk::source(name).ok_or_else(|| anyhow::anyhow!("no system is named {name}"))?;
        for figure in rdsk_disk::figures(name, text)? {
            if !all.iter().any(|known| known.key == figure.key && known.system == figure.system) {
                all.push(figure);
            }
        }
    }
    Ok(all)
}

/// The cells that figures were fitted to, by name. Figures of one key and value that were fitted to the same are one choice:
/// equal LUNs repeat it.
pub(super) fn fits(figures: &[Figure]) -> (usize, BTreeSet<String>) {
    let mut choices = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for figure in figures {
        let Some(Mark::Fitted { cells: to }) = &figure.mark else { continue };
        choices.insert((figure.key.rsplit('.').next(), &figure.value, to));
        cells.extend(to.iter().cloned());
    }
    (choices.len(), cells)
}

/// Marks the rows that figures were fitted to, and gives the paragraph with the counts.
///
/// # Errors
/// When a figure was fitted to a row that the page does not have, or to one that is said to follow from others.
pub(super) fn settle(report: &mut Report) -> anyhow::Result<()> {
    let figures = figures_of(&systems(&report.tables))?;
    let (choices, cells) = fits(&figures);
    for name in &cells {
        let row = find(&mut report.tables, name).ok_or_else(|| {
            anyhow::anyhow!("{}: a figure is fitted to \"{name}\", which is no row", report.name)
        })?;
        anyhow::ensure!(row.basis == Basis::Predicted, "{}: \"{name}\" is fitted and follows", report.name);
        row.basis = Basis::Fitted;
    }
    let rows = || report.tables.iter().flat_map(|table| &table.cells).filter(|cell| cell.is_compared());
    let count = |basis: Basis| rows().filter(|cell| cell.basis == basis).count();
    report.counts = sentence(
        Tally::of(&figures),
        choices,
        [count(Basis::Fitted), count(Basis::Follows), count(Basis::Predicted)],
    );
    Ok(())
}

/// The row of a name: `cell`, or `table: cell`.
fn find<'t>(tables: &'t mut [Table], name: &str) -> Option<&'t mut Cell> {
    let mut rows =
        tables.iter_mut().flat_map(|table| table.cells.iter_mut().map(|cell| (table.title.clone(), cell)));
    rows.find(|(title, cell)| cell.what == name || format!("{title}: {}", cell.what) == name)
        .map(|(_, cell)| cell)
}

/// The paragraph on the counts.
fn sentence(tally: Tally, choices: usize, [fitted, follow, predicted]: [usize; 3]) -> String {
    let all = tally.report + tally.data_sheet + tally.typical + tally.fitted;
    let Tally { report, data_sheet, typical, .. } = tally;
    format!(
        "How much of this is prediction: the systems have {all} figures: {report} from the report, {data_sheet} from a data sheet, \
         {typical} typical and {} fitted, which are {choices} choices (`rdsk sim show NAME` has the mark beside each). Of {} rows \
         that are compared, {fitted} were fitted to, {follow} follow from those and from what the report says, and {predicted} are \
         predictions.",
        tally.fitted,
        fitted + follow + predicted,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a page as it is in docs/reports: table, cell and the word of the last column.
    fn rows(text: &str) -> Vec<(String, String, String)> {
        let mut title = "";
        let mut rows = Vec::new();
        for line in text.lines() {
            title = line.strip_prefix("## ").unwrap_or(title);
            let columns: Vec<&str> = line.split(" | ").collect();
            if let (true, [what, .., word]) = (line.starts_with("| "), columns.as_slice()) {
                let what = what.trim_start_matches("| ");
                if what != "cell" {
                    rows.push((title.to_owned(), what.to_owned(), word.trim_end_matches(" |").to_owned()));
                }
            }
        }
        rows
    }

    /// Each page's counts are those of its rows and of its systems' marks, and each fitted row is one that a figure names.
    #[test]
    fn the_counts_of_every_page_are_those_of_the_data() {
        let directory = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reports"));
        let mut pages = 0;
        for page in std::fs::read_dir(directory).unwrap() {
            let path = page.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let commands: String = text.lines().filter(|line| line.starts_with("    rdsk ")).collect();
            let table = Table { title: String::new(), command: commands, cells: Vec::new() };
            let figures = figures_of(&systems(&[table])).unwrap();
            let (choices, cells) = fits(&figures);
            let rows = rows(&text);
            for (title, what, word) in &rows {
                let first = rows.iter().find(|(_, other, _)| other == what).map(|(title, ..)| title);
                let is_named = cells.contains(&format!("{title}: {what}"))
                    || (cells.contains(what) && first == Some(title));
                assert_eq!(word == "fitted", is_named, "{}: {title}: {what}", path.display());
            }
            let count = |word: &str| rows.iter().filter(|row| row.2 == word).count();
            let counts = [count("fitted"), count("follows"), count("prediction")];
            let wanted = sentence(Tally::of(&figures), choices, counts);
            assert!(text.contains(&wanted), "{}: it should say:\n{wanted}", path.display());
            assert!(counts[0] >= cells.len().min(1) && choices > 0, "{}", path.display());
            pages += 1;
        }
        assert_eq!(pages, 5);
    }

    #[test]
    fn a_fit_to_a_row_that_is_not_there_is_told() {
        let report = |what: &str| Report {
            name: "x",
            title: "",
            text: "",
            counts: String::new(),
            tables: vec![Table {
                title: "t".into(),
                command: "paths sim:hpux-k460".into(),
                cells: [what, "read, block", "write, raw"]
                    .map(|what| Cell::new(what, 1.0, 1.0, super::super::page::Allowed::Share(0.1)))
                    .to_vec(),
            }],
        };
        let mut good = report("read, raw");
        settle(&mut good).unwrap();
        assert!(good.tables[0].cells.iter().all(|cell| cell.basis == Basis::Fitted));
        let error = settle(&mut report("other")).unwrap_err().to_string();
        assert!(error.contains("\"read, raw\", which is no row"), "{error}");
    }
}
