//! What a page of docs/reports says of its own strength: which figures of its systems were fitted to which of its rows, which
//! rows follow from what was put in, and which are predictions. It reads the marks of the systems, and runs nothing.

use super::page::Row;
use anyhow::{Context as _, Result, ensure};
use rdsk_disk::{Figure, Mark, Tally};
use std::collections::BTreeSet;

/// How the paragraph with the counts begins.
const PARAGRAPH: &str = "How much of this is prediction: ";

/// The page with its counts.
///
/// # Errors
/// When a row is not marked as fitted although a figure names it, or is although none does.
pub(super) fn settled(page: &str) -> Result<String> {
    let figures = figures(page)?;
    let (choices, mut fitted) = fits(&figures);
    let (mut title, mut bases) = ("", Vec::new());
    for line in page.lines() {
        title = line.strip_prefix("## ").unwrap_or(title);
        let Some(row) = Row::read(line).filter(Row::is_compared) else { continue };
        // A figure names a row alone where the page has it once, and else the first one.
        let is_named = fitted.remove(row.what) || fitted.remove(&format!("{title}: {}", row.what));
        ensure!(
            (row.basis == "fitted") == is_named,
            "{title}: \"{}\" is \"{}\", which the marks of the systems contradict",
            row.what,
            row.basis
        );
        bases.push(row.basis);
    }
    ensure!(fitted.is_empty(), "figures are fitted to {fitted:?}, which are no rows");
    let (head, rest) = page.split_once(PARAGRAPH).context("the page has no paragraph with counts")?;
    let (_, rest) = rest.split_once('\n').context("the page ends with its counts")?;
    let count = |basis: &str| bases.iter().filter(|its| **its == basis).count();
    let counts = [count("fitted"), count("follows"), count("prediction")];
    Ok(format!("{head}{PARAGRAPH}{}\n{rest}", sentence(Tally::of(&figures), choices, counts)))
}

/// The figures of the systems that a page's commands name, those that several share once.
fn figures(page: &str) -> Result<Vec<Figure>> {
    let words = page.lines().filter(|line| line.starts_with("    rdsk ")).flat_map(str::split_whitespace);
    let mut figures: Vec<Figure> = Vec::new();
    for name in words.filter_map(|word| word.strip_prefix("sim:")) {
        let text = rdsk_disk::source(name).with_context(|| format!("no system is named {name}"))?;
        for figure in rdsk_disk::figures(name, text)? {
            if !figures.iter().any(|earlier| earlier.key == figure.key && earlier.system == figure.system) {
                figures.push(figure);
            }
        }
    }
    Ok(figures)
}

/// The cells that figures were fitted to, by name. Figures of one key and value that were fitted to the same are one choice:
/// equal LUNs repeat it.
fn fits(figures: &[Figure]) -> (usize, BTreeSet<String>) {
    let mut choices = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for figure in figures {
        let Some(Mark::Fitted { cells: to }) = &figure.mark else { continue };
        choices.insert((figure.key.rsplit('.').next(), &figure.value, to));
        cells.extend(to.iter().cloned());
    }
    (choices.len(), cells)
}

fn sentence(tally: Tally, choices: usize, [fitted, follow, predicted]: [usize; 3]) -> String {
    let Tally { report, data_sheet, typical, fitted: chosen, .. } = tally;
    format!(
        "the systems have {} figures: {report} from the report, {data_sheet} from a data sheet, {typical} typical and {chosen} fitted, \
         which are {choices} choices (`rdsk sim show NAME` has the mark beside each). Of {} rows that are compared, {fitted} were fitted \
         to, {follow} follow from those and from what the report says, and {predicted} are predictions.",
        report + data_sheet + typical + chosen,
        fitted + follow + predicted,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each page's counts are those of its rows and of its systems' marks, and each fitted row is one that a figure names.
    #[test]
    fn the_counts_of_every_page_are_those_of_the_data() {
        for (name, _) in super::super::PAGES {
            let path = crate::root().join("docs/reports").join(name).with_extension("md");
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(super::super::first_difference(&text, &settled(&text).unwrap()), None, "{name}");
        }
        let pages = std::fs::read_dir(crate::root().join("docs/reports")).unwrap();
        assert_eq!(pages.count(), super::super::PAGES.len());
    }

    #[test]
    fn a_fit_to_a_row_that_is_not_there_is_told() {
        let page = |rows: [&str; 3]| {
            let rows = rows.map(|what| format!("| {what} | 1 | 1 | +0.0% | ±5% | fitted |\n")).concat();
            format!("{PARAGRAPH}x\n\n## t\n\n    rdsk paths sim:hpux-k460\n\n{rows}")
        };
        let good = settled(&page(["read, raw", "read, block", "write, raw"])).unwrap();
        assert!(good.contains("Of 3 rows that are compared, 3 were fitted"), "{good}");
        for rows in [["other", "read, block", "write, raw"], ["read, raw", "read, raw", "read, block"]] {
            assert!(settled(&page(rows)).is_err(), "{rows:?}");
        }
    }
}
