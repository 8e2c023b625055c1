//! The invented Records of `rdsk-analysis`, and the whole run with its findings. The figures are made up.

pub use rdsk_analysis::fixtures::*;

use rdsk_model::{Experiment, Record};

/// The run: every experiment, with verdicts and findings.
pub fn run() -> Record {
    with_findings(rdsk_analysis::fixtures::run())
}

/// The same with the path `dontcache` wherever it is asked, with verdicts and findings.
pub fn run_on_three_paths() -> Record {
    with_findings(rdsk_analysis::fixtures::run_on_three_paths())
}

/// A Record with all that the page of an experiment shows.
pub fn of_experiment(experiment: Experiment) -> Record {
    if experiment == Experiment::Load { with_findings(load()) } else { run_on_three_paths() }
}

fn with_findings(mut record: Record) -> Record {
    record.findings = crate::findings(&rdsk_analysis::Analysis::of(&record));
    record
}
