//! Pages as files: one run with every figure, two runs over each other, and a cloud of 100 000 dots.

use rdsk_analysis::{Analysis, fixtures};
use rdsk_html::{Figure, Subject, page, sections};
use rdsk_model::{Confidence, Finding, Record, Severity};
use std::path::PathBuf;
use tempfile::TempDir;

/// What no device should be called.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// A page with what it was made of.
pub(crate) struct Written {
    pub(crate) directory: TempDir,
    pub(crate) page: PathBuf,
    pub(crate) records: Vec<Record>,
    pub(crate) figures: Vec<Figure>,
}

fn written(records: Vec<Record>, names: &[&str]) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    let analyses: Vec<Analysis<'_>> = records.iter().map(Analysis::of).collect();
    let subjects: Vec<Subject<'_, '_>> =
        names.iter().zip(&analyses).map(|(name, analysis)| Subject { name, analysis }).collect();
    std::fs::write(&path, page(&subjects)).unwrap();
    let figures = sections(&subjects).into_iter().flat_map(|section| section.figures).collect();
    drop(analyses);
    Written { directory, page: path, records, figures }
}

/// A run with every figure, on a device that calls itself what no device should.
fn run() -> Record {
    let mut record = fixtures::run();
    record.copies = vec![fixtures::copies::to_file(&[100_000_000, 120_000_000])];
    record.findings = vec![Finding {
        code: "made-up".into(),
        severity: Severity::Uncertain,
        title: "too few samples: 2 cells".into(),
        text: "These cells ended with a wide interval.".into(),
        evidence: vec!["headline/read/sequential: I/Os = 64".into()],
        confidence: Confidence::Measured,
        advice: Some("give more --budget, or measure fewer cells".into()),
        cells: Vec::new(),
        experiment: None,
        covers_verdicts: false,
        effect: None,
    }];
    record.label = Some(HOSTILE.into());
    record.targets[0].device.as_mut().unwrap().model = Some(HOSTILE.into());
    record
}

/// The page of one run.
pub(crate) fn single() -> Written {
    written(vec![run()], &[""])
}

/// The page of two runs over each other, the second a tenth slower.
pub(crate) fn several() -> Written {
    let mut slower = run();
    for cell in &mut slower.cells {
        let rates = [&mut cell.result.bytes_per_s, &mut cell.result.ops_per_s];
        for rate in rates.into_iter().flatten() {
            rate.mean *= 0.9;
            rate.low = rate.low.map(|low| low * 0.9);
            rate.high = rate.high.map(|high| high * 0.9);
        }
    }
    written(vec![run(), slower], &[HOSTILE, "after"])
}

/// The page of 2000 positions that 50 passes visited.
pub(crate) fn hundred_thousand() -> Written {
    let (record, _) = fixtures::zones::made(2000, 50, |place, pass, number| {
        10_000_000
            + u64::from(place) * 3000
            + (u64::from(pass) * 7919 + u64::from(number) * 104_729) % 2_000_000
    });
    written(vec![record], &[""])
}
