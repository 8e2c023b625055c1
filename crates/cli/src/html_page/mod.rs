//! `rdsk report`, and `--report` of every command that measures: Records as a page with figures, or the figures as files. It
//! measures nothing, and replaces nothing but an earlier page.

mod files;
mod open;
mod options;

use crate::cli_args::{ColorWhen, JsonPlace};
use crate::json_file::{PAGE, Sink};
use crate::{compare, out, record_file, screen};
pub(crate) use options::Report;
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words::together;
use rdsk_html::{Figure, Subject};
use rdsk_model::{Problem, ProblemKind, Record, Target, TargetKind};
use rdsk_report::Charset;
use rdsk_units::printable;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Letters of an id that name a file.
const SHORT_ID: usize = 10;

/// Writes the page and the figures of the runs.
///
/// # Errors
/// When a run cannot be read, has no figures, or a file cannot be written.
pub(crate) fn report(report: &Report) -> Result<(), Problem> {
    report.check()?;
    report.history.choose();
    if report.is_fleet() {
        let style = screen::style_on(&std::io::stdout(), ColorWhen::Auto, Charset::Unicode);
        return out::data(&compare::fleet::page(&report.runs, "report", style)?);
    }
    let prepare = |place: &JsonPlace| Sink::prepare(PAGE, place, &report.runs);
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
    if report.has_page() {
        let named = default_name(&report.runs, records.first().map_or("", |record| &record.id));
        let path = match &report.output {
            Some(JsonPlace::File(path)) => Some(path),
            Some(JsonPlace::Stdout) => None,
            None => Some(&named),
        };
        let sink = sink.map_or_else(|| prepare(&JsonPlace::File(named.clone())), Ok)?;
        sink.write(&rdsk_html::page(&subjects))?;
        if report.output.is_none() {
            out::data(&printable(&named.to_string_lossy()))?;
        }
        if let Some(path) = path.filter(|_| report.open) {
            open::open(path)?;
        }
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

/// Where a page goes that has no name: into the current directory, under the name of the first run's file, else under the
/// beginning of its id.
fn default_name(words: &[String], id: &str) -> PathBuf {
    // What names a run of the history is no name of a file; an id that another program made may be any text.
    let of_file = words.first().map(Path::new).filter(|path| path.is_file()).and_then(Path::file_stem);
    let id: String = id.chars().filter(char::is_ascii_alphanumeric).take(SHORT_ID).collect();
    let mut name = of_file.map_or_else(|| OsString::from(format!("rdsk-{id}")), OsString::from);
    if words.len() > 1 {
        name.push(format!("-and-{}-more", words.len() - 1));
    }
    name.push(".html");
    name.into()
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
        record.label.clone().or_else(|| target_names(&record.targets)).unwrap_or_else(|| word.clone())
    };
    told_apart(words.iter().zip(records).map(plain))
}

/// The targets of a Record; of one simulated system its name, whatever number of LUNs it has.
fn target_names(targets: &[Target]) -> Option<String> {
    let system = |target: &Target| {
        let name = target.name.split('/').next().unwrap_or_default().to_owned();
        (target.kind == TargetKind::Sim).then_some(name)
    };
    let systems: Option<Vec<String>> = targets.iter().map(system).collect();
    match systems.map(distinct).as_deref() {
        Some([system]) => Some(system.clone()),
        _ if targets.is_empty() => None,
        _ => Some(together(&targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>())),
    }
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
    use super::{default_name, target_names, told_apart};
    use rdsk_model::{Target, TargetKind};
    use std::path::Path;

    #[test]
    fn a_page_is_named_after_its_first_run() {
        let named = |words: &[&str], id: &str| {
            default_name(&words.iter().copied().map(String::from).collect::<Vec<_>>(), id)
        };
        assert_eq!(named(&["last"], "01KAP3XM2CZZZZ"), Path::new("rdsk-01KAP3XM2C.html"));
        assert_eq!(named(&["last", "01KA", "old"], "01KAP"), Path::new("rdsk-01KAP-and-2-more.html"));
        assert_eq!(named(&["last"], "../../etc/x"), Path::new("rdsk-etcx.html"), "an id may be any text");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sdb.json");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(named(&[file.to_str().unwrap()], "01"), Path::new("sdb.html"), "in the current directory");
    }

    #[test]
    fn a_simulated_system_of_several_luns_has_one_name() {
        let name = |names: &[&str], kind: TargetKind| {
            let target = |name: &&str| Target { name: (*name).into(), kind, ..Target::default() };
            target_names(&names.iter().map(target).collect::<Vec<_>>())
        };
        let luns = ["sim:tms-ramsan-3/0", "sim:tms-ramsan-3/1", "sim:tms-ramsan-3/2"];
        assert_eq!(name(&luns, TargetKind::Sim).as_deref(), Some("sim:tms-ramsan-3"));
        let systems = ["sim:wd2500", "sim:raid5"];
        assert_eq!(name(&systems, TargetKind::Sim).as_deref(), Some("sim:wd2500 + sim:raid5"));
        assert_eq!(name(&["/mnt/a/x"], TargetKind::File).as_deref(), Some("/mnt/a/x"));
        assert_eq!(name(&[], TargetKind::File), None);
    }

    #[test]
    fn no_two_runs_have_one_name() {
        let named = |names: &[&str]| told_apart(names.iter().copied().map(String::from));
        assert_eq!(named(&["a", "b", "a (2)"]), ["a", "b", "a (2)"]);
        assert_eq!(named(&["a", "a", "a (2)"]), ["a (1)", "a (2)", "a (2) (3)"]);
        assert_eq!(named(&["\u{1b}", "\\x1b"]), ["\\x1b (1)", "\\x1b (2)"], "alike on the page");
    }
}
