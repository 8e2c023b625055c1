//! Whether the machine can spare the memory that a plan's buffers take: more would have it swap, or end another user's program. It only reads
//! what the kernel says is available.

use rdsk_engine::buffers_bytes;
use rdsk_model::{Plan, Problem, ProblemKind};
use rdsk_observe::available_memory_bytes;
use rdsk_units::Bytes;
use std::path::Path;

/// Of so many parts of what is available, the buffers may take one.
const PARTS: u64 = 2;

/// Refuses a plan with a cell whose buffers take more than half of the memory that `proc` (`/proc`) says is available.
///
/// # Errors
/// The refusal. Where the kernel does not say, there is none.
pub(crate) fn check_memory(plan: &Plan, proc: &Path) -> Result<(), Problem> {
    let applicable = plan.cells.iter().filter(|cell| cell.not_applicable.is_none());
    let needs = applicable.map(|cell| (buffers_bytes(&cell.workload), &cell.id));
    let Some((bytes, id)) = needs.max_by_key(|&(bytes, _)| bytes) else { return Ok(()) };
    let Some(available_bytes) = available_memory_bytes(proc) else { return Ok(()) };
    if bytes <= available_bytes / PARTS {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::Refused,
        "memory",
        format!(
            "the buffers of {id} take {} of memory, more than half of the {} that are available",
            Bytes(bytes),
            Bytes(available_bytes)
        ),
        "make --streams, --iodepth or --bs smaller, or end other programs",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PlanOptions;
    use crate::planner::plan;
    use rdsk_model::{Experiment, Target};

    #[test]
    fn buffers_take_half_of_what_is_available_at_most() {
        let target = Target {
            path: Some("/t".into()),
            size_bytes: 1 << 40,
            made_by_rdsk: true,
            direct_io: Some(true),
            ..Target::default()
        };
        let options = PlanOptions { stream_counts: Some(vec![1024]), ..PlanOptions::default() };
        let plan = plan(&[Experiment::Scale], &[target], &[false], None, &options, 60_000_000_000).unwrap();
        let largest = plan.cells.iter().map(|cell| buffers_bytes(&cell.workload)).max().unwrap();
        assert!(largest >= 4 << 20 && largest.is_multiple_of(1024), "{largest}");
        let proc = tempfile::tempdir().unwrap();
        assert!(check_memory(&plan, proc.path()).is_ok(), "the kernel does not say");
        let twice_kib = largest / 1024 * 2;
        let check = |available_kib: u64| {
            let text = format!("MemTotal: 99999999999 kB\nMemAvailable: {available_kib} kB\n");
            std::fs::write(proc.path().join("meminfo"), text).unwrap();
            check_memory(&plan, proc.path())
        };
        assert!(check(twice_kib).is_ok());
        let problem = check(twice_kib - 2).unwrap_err();
        assert_eq!((problem.kind, problem.code.as_str()), (ProblemKind::Refused, "memory"));
        assert!(problem.message.starts_with("the buffers of scale/"), "{}", problem.message);
        assert!(problem.message.contains("more than half of the"), "{}", problem.message);
    }
}
