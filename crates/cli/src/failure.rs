//! Records of runs that never started: what `--json` writes after a usage error or in an environment that does not fit.
//! It prints nothing.

use rdsk_model::{Problem, ProblemKind, Record, Status};

/// A Record without cells that carries the problem. Its status is `interrupted` for an interruption, else `failed`.
pub(crate) fn failed_record(command: Vec<String>, label: Option<String>, problem: Problem) -> Record {
    let status = match problem.kind {
        ProblemKind::Interrupted => Status::Interrupted,
        _ => Status::Failed,
    };
    let mut record = rdsk_experiment::empty_record(command, label);
    record.status = status;
    record.error = Some(problem);
    record.observer.why_not_higher = Some("nothing was measured".to_owned());
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_parses_back_and_says_why() {
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
