//! Exit codes, in one place. It never exits.

use rdsk_analysis::need::{self, Outcome};
use rdsk_model::{CellRecord, Experiment, ProblemKind, Record, Status, StopReason};

/// Everything was done.
pub(crate) const DONE: u8 = 0;
/// A condition on a comparison is met.
pub(crate) const CONDITION_MET: u8 = 1;
/// A need is not met.
pub(crate) const NOT_MET: u8 = 1;
/// Whether a need is met is not sure.
pub(crate) const UNSURE: u8 = 5;
/// I/O failed, or rdsk itself did.
pub(crate) const FAILED: u8 = 4;
/// A signal ended the run.
pub(crate) const INTERRUPTED: u8 = 130;

/// The code for a problem that ended a command.
pub(crate) const fn code_of(kind: ProblemKind) -> u8 {
    match kind {
        ProblemKind::Usage => 2,
        ProblemKind::Refused => 3,
        ProblemKind::Io => FAILED,
        ProblemKind::Interrupted => INTERRUPTED,
    }
}

/// The code for a run: an interruption first, then the problem that ended it, then cells that failed.
pub(crate) fn of_record(record: &Record) -> u8 {
    match (record.status, &record.error) {
        (Status::Interrupted, _) => INTERRUPTED,
        (_, Some(problem)) => code_of(problem.kind),
        (Status::Failed, None) => FAILED,
        (Status::Complete, None) if record.cells.iter().any(|cell| !cell.result.errors.is_empty()) => FAILED,
        (Status::Complete, None) if is_load_without_result(record) => code_of(ProblemKind::Refused),
        (Status::Complete, None) if record.need.is_some() => of_need(record),
        (Status::Complete, None) => DONE,
    }
}

/// Whether nothing of a load that was described could run here, or no request of it completed, which is as much as a refusal.
fn is_load_without_result(record: &Record) -> bool {
    let is_empty = |cell: &CellRecord| {
        let completed = cell.result.jobs.iter().any(|job| job.kinds().next().is_some());
        cell.result.stop == StopReason::NotApplicable || (!cell.result.jobs.is_empty() && !completed)
    };
    let mut cells = record.cells.iter();
    !record.cells.is_empty() && cells.all(|cell| cell.experiment == Experiment::Load && is_empty(cell))
}

/// The code for the answer to a need.
fn of_need(record: &Record) -> u8 {
    match need::outcome(&need::judge(record)) {
        Outcome::Pass => DONE,
        Outcome::Fail => NOT_MET,
        Outcome::Unsure | Outcome::Exempt => UNSURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_experiment::failed_record;
    use rdsk_model::Problem;

    #[test]
    fn codes_follow_the_way_a_run_ended() {
        for (kind, code) in [
            (ProblemKind::Usage, 2),
            (ProblemKind::Refused, 3),
            (ProblemKind::Io, 4),
            (ProblemKind::Interrupted, 130),
        ] {
            let record = failed_record(vec![], None, Problem::plain(kind, "x", "x"));
            assert_eq!(of_record(&record), code);
        }
        let mut record = failed_record(vec![], None, Problem::plain(ProblemKind::Io, "x", "x"));
        record.error = None;
        assert_eq!(of_record(&record), 4);
        record.status = Status::Complete;
        assert_eq!(of_record(&record), 0);
    }

    #[test]
    fn a_failed_record_parses_back_and_says_why() {
        let problem = Problem::new(ProblemKind::Refused, "mounted", "no", "yes");
        let record = failed_record(vec!["rdsk".into()], Some("l".into()), problem.clone());
        let text = serde_json::to_string(&record).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back.error, Some(problem));
        assert_eq!(back.status, Status::Failed);
        let stopped = Problem::plain(ProblemKind::Interrupted, "interrupted", "x");
        assert_eq!(failed_record(vec![], None, stopped).status, Status::Interrupted);
    }
}
