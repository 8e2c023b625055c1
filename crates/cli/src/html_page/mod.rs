//! `rdsk report`, and `--report` of every command that measures: Records as a page with figures, or the figures as files. It
//! measures nothing, and replaces nothing but an earlier page.

mod files;
mod options;

use crate::json_file::{PAGE, Sink};
use crate::record_file;
pub(crate) use options::Report;
use rdsk_analysis::Analysis;
use rdsk_analysis::words::together;
use rdsk_html::{Figure, Subject};
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_units::printable;
use std::collections::HashSet;

/// Writes the page and the figures of the runs.
///
/// # Errors
/// When a run cannot be read, has no figures, or a file cannot be written.
pub(crate) fn report(report: &Report) -> Result<(), Problem> {
    report.check()?;
    report.history.choose();
    let sink = Sink::wanted(PAGE, report.output.as_ref(), &report.runs)?;
    let read = |word: &String| record_file::named(word, "report", "no-record");
    let records: Vec<Record> = report.runs.iter().map(read).collect::<Result<_, _>>()?;
    let analyses: Vec<Analysis<'_>> = records.iter().map(Analysis::of).collect();
    let names = names(&report.runs, &records);
    let subjects: Vec<Subject<'_, '_>> =
        names.iter().zip(&analyses).map(|(name, analysis)| Subject { name, analysis }).collect();
    if records.iter().all(|record| record.cells.is_empty() && record.copies.is_empty()) {
        return Err(Problem::new(
            ProblemKind::Usage,
            "nothing-measured",
            "nothing was measured in what is to be shown",
            "rdsk show RUN says why the run has no figures",
        ));
    }
    if let Some(sink) = &sink {
        sink.write(&rdsk_html::page(&subjects))?;
    }
    let figures = figures(&subjects);
    if let Some(directory) = &report.svg {
        files::write_all(directory, "svg", &figures, |figure| {
            Ok(rdsk_html::svg(figure).map(String::into_bytes))
        })?;
    }
    if let Some(directory) = &report.png {
        files::write_all(directory, "png", &figures, |figure| {
            rdsk_html::svg(figure).map(files::png).transpose()
        })?;
    }
    Ok(())
}

/// The page of Records that were not named on the command line: of a run that has just ended.
pub(crate) fn page_of(records: &[&Record]) -> String {
    let analyses: Vec<Analysis<'_>> = records.iter().map(|record| Analysis::of(record)).collect();
    let subjects: Vec<Subject<'_, '_>> =
        analyses.iter().map(|analysis| Subject { name: "", analysis }).collect();
    rdsk_html::page(&subjects)
}

fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    rdsk_html::sections(subjects).into_iter().flat_map(|section| section.figures).collect()
}

/// A name for each Record that no other has: its label, else its targets; each with its number if two have the same.
fn names(words: &[String], records: &[Record]) -> Vec<String> {
    let plain = |(word, record): (&String, &Record)| {
        let targets: Vec<&str> = record.targets.iter().map(|target| target.name.as_str()).collect();
        record
            .label
            .clone()
            .unwrap_or_else(|| if targets.is_empty() { word.clone() } else { together(&targets) })
    };
    told_apart(words.iter().zip(records).map(plain))
}

/// Names as they are drawn. A number behind some of them only could make the name of another run.
fn told_apart(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> = names.map(|name| printable(&name)).collect();
    if names.iter().collect::<HashSet<_>>().len() == names.len() {
        return names;
    }
    (1..).zip(names).map(|(number, name)| format!("{name} ({number})")).collect()
}

#[cfg(test)]
mod tests {
    use super::told_apart;

    #[test]
    fn no_two_runs_have_one_name() {
        let named = |names: &[&str]| told_apart(names.iter().copied().map(String::from));
        assert_eq!(named(&["a", "b", "a (2)"]), ["a", "b", "a (2)"]);
        assert_eq!(named(&["a", "a", "a (2)"]), ["a (1)", "a (2)", "a (2) (3)"]);
        assert_eq!(named(&["\u{1b}", "\\x1b"]), ["\\x1b (1)", "\\x1b (2)"], "alike on the page");
    }
}
