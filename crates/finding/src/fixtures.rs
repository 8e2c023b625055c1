//! The invented Records of `rdsk-analysis`, and the whole run with its findings. The figures are made up.

pub use rdsk_analysis::fixtures::*;

/// The run: every experiment, with verdicts and findings.
pub fn run() -> rdsk_model::Record {
    let mut record = rdsk_analysis::fixtures::run();
    record.findings = crate::findings(&rdsk_analysis::Analysis::of(&record));
    record
}
