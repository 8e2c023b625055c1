//! Examines, authorizes and claims the targets of a request, and creates the test files. Every target is authorized before the
//! first test file is created, so that a refusal of the last target finds nothing changed.

use crate::experiments::question;
use crate::planner::{check_room, is_pass_of_target, plan};
use crate::question::Targets;
use crate::request::{LoadRuns, Request};
use rdsk_engine::buffers_bytes;
use rdsk_model::{Cell, Event, Experiment, Op, Plan, Problem, ProblemKind, Target, Watch};
use rdsk_observe::available_memory_bytes;
use rdsk_stats::rng::SplitMix64;
use rdsk_targets::{
    Access, Claim, Examined, Overwrite, Place, TestFileOptions, TestFileSize, check_growth, claim,
    create_test_file, each_lun, examine, plan_test_file, remove_orphans, share_space,
};
use rdsk_units::Bytes;
use std::path::Path;

/// Largest test file unless `--size` says otherwise.
const MAX_TEST_FILE_BYTES: u64 = 1 << 30;
/// The size of a test file that was not requested is a multiple of this.
const TEST_FILE_UNIT_BYTES: u64 = 1 << 20;
/// The part of the budget that creating the test files may take: a fifth.
const TEST_FILE_SHARE: u64 = 5;

/// The claims on all targets, and what creating the test files showed.
pub(crate) struct ClaimedTargets {
    pub(crate) claims: Vec<Claim>,
    /// Whether each may be written.
    pub(crate) writable: Vec<bool>,
    /// The lowest rate at which a test file was written.
    pub(crate) target_bytes_per_s: Option<f64>,
}

impl ClaimedTargets {
    pub(crate) fn is_simulated(&self) -> bool {
        self.claims.iter().any(|claim| claim.simulated().is_some())
    }
}

/// A target that may be used in this way.
pub(crate) struct AuthorizedTarget {
    index: u32,
    examined: Examined,
    access: Access,
    /// Of the test file that a directory gets.
    test_file_bytes: Option<u64>,
}

impl AuthorizedTarget {
    pub(crate) fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// The target as a plan sees it; a directory stands for its test file.
    fn planned(&self) -> Target {
        let target = self.examined.target.clone();
        let size_bytes = self.test_file_bytes.unwrap_or(target.size_bytes);
        Target { index: self.index, size_bytes, made_by_rdsk: self.test_file_bytes.is_some(), ..target }
    }

    /// Whether it gets a test file.
    fn is_directory(&self) -> bool {
        matches!(self.examined.place, Place::Directory { .. })
    }
}

/// Examines and authorizes every target, and opens nothing for writing.
pub(crate) fn authorize_all(request: &Request) -> Result<Vec<AuthorizedTarget>, Problem> {
    let mut authorized = Vec::new();
    for (index, name) in (0..).zip(&names(request)?) {
        let examined = examine(name, &request.roots).map_err(|error| error.problem())?;
        let access = access(&examined, request);
        rdsk_targets::authorize(&examined, access, &request.permission).map_err(Problem::from)?;
        if let Place::Directory { .. } = examined.place {
            check_growth(&[&examined]).map_err(Problem::from)?;
        }
        authorized.push(AuthorizedTarget { index, examined, access, test_file_bytes: None });
    }
    crate::backend::refuse_mixed(authorized.iter().map(|target| &target.examined))?;
    refuse_unused_size(&authorized, request)?;
    Ok(authorized)
}

/// Refuses the size of a test file where there will be none: no target is a directory. Of several ranks, one may create a file;
/// what is resumed had its size.
fn refuse_unused_size(targets: &[AuthorizedTarget], request: &Request) -> Result<(), Problem> {
    if request.size_bytes.is_none()
        || request.options.rank.is_some()
        || request.resume.is_some()
        || targets.iter().any(AuthorizedTarget::is_directory)
    {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::Usage,
        "no-test-file",
        "--size is the size of a test file, and no target is a directory that gets one",
        "leave --size out; --bytes of paths, stream and align, or size in a file of jobs, say how much of a device or file is used",
    ))
}

/// Notes how much of each target the run writes, and refuses what would use up the filesystem, memory or pool that they grow in.
///
/// # Errors
/// The refusal; or why there is nothing to plan.
pub(crate) fn check_growths(authorized: &mut [AuthorizedTarget], request: &Request) -> Result<(), Problem> {
    let may_grow = |target: &AuthorizedTarget| target.is_writable() && !target.examined.growths.is_empty();
    if !authorized.iter().any(may_grow) {
        return Ok(());
    }
    // Without directories there is no question of how fast their test files were written; with them, the spans are the largest.
    let plan = whole_plan(authorized, request)?;
    for target in &mut *authorized {
        let again_bytes = written_bytes(&plan, target.index);
        let taken =
            target.test_file_bytes.map(|size_bytes| target.examined.test_file_takes(size_bytes, again_bytes));
        target.examined.write_bytes = Some(taken.unwrap_or(again_bytes));
    }
    let growing: Vec<&Examined> =
        authorized.iter().filter(|target| may_grow(target)).map(|target| &target.examined).collect();
    check_growth(&growing).map_err(Problem::from)
}

/// The plan for these targets, test files as large as planned.
pub(crate) fn whole_plan(authorized: &[AuthorizedTarget], request: &Request) -> Result<Plan, Problem> {
    let targets = planned_targets(authorized);
    let writable: Vec<bool> = authorized.iter().map(AuthorizedTarget::is_writable).collect();
    let (options, budget_ns) = (&request.options, request.options.budget_ns);
    let mut plan = plan(&request.experiments, &targets, &writable, None, options, budget_ns)
        .map_err(|error| error.problem())?;
    if let Some(earlier) = request.resume.as_ref().filter(|_| options.pass_bytes.is_none()) {
        crate::resume::take_spans(&mut plan, earlier);
    }
    Ok(plan)
}

/// The targets as a plan sees them.
pub(crate) fn planned_targets(authorized: &[AuthorizedTarget]) -> Vec<Target> {
    authorized.iter().map(AuthorizedTarget::planned).collect()
}

/// How many bytes of a target the cells of a plan write, each byte counted once.
fn written_bytes(plan: &Plan, target: u32) -> u64 {
    let writes = |cell: &&Cell| {
        let workload = &cell.workload;
        workload.op == Op::Write && cell.not_applicable.is_none() && workload.targets.contains(&target)
    };
    let span = |cell: &Cell| {
        let begin = cell.workload.offset_bytes;
        (begin, begin.saturating_add(cell.workload.span_bytes))
    };
    let mut spans: Vec<(u64, u64)> = plan.cells.iter().filter(writes).map(span).collect();
    spans.sort_unstable();
    let mut covered_to = 0;
    let mut bytes = 0;
    for (begin, end) in spans {
        bytes += end.saturating_sub(begin.max(covered_to));
        covered_to = covered_to.max(end);
    }
    bytes
}

/// Sets the size of the test file of each directory, which a dry run shows and the run creates. Those that take of the same space
/// share it.
///
/// # Errors
/// If they do not fit.
pub(crate) fn size_test_files(authorized: &mut [AuthorizedTarget], request: &Request) -> Result<(), Problem> {
    for position in 0..authorized.len() {
        let examined = &authorized[position].examined;
        if !authorized[position].is_directory() {
            continue;
        }
        let shares = |other: &&AuthorizedTarget| share_space(examined, &other.examined);
        let files = authorized.iter().filter(shares).count() as u64;
        let wish = test_file_size(request, MAX_TEST_FILE_BYTES, 1);
        let planned = plan_test_file(examined, wish, files, is_rewritten(request));
        authorized[position].test_file_bytes = Some(planned.map_err(|error| error.problem())?);
    }
    Ok(())
}

/// Authorizes every target, then creates the test files and claims the rest; `notes` gets what was cleaned up on the way.
pub(crate) fn claim_all(
    request: &Request,
    watch: &mut dyn Watch,
    notes: &mut Vec<String>,
) -> Result<ClaimedTargets, Problem> {
    let mut authorized = authorize_all(request)?;
    let examined = authorized.iter().map(|target| &target.examined);
    crate::backend::refuse_without_bpf(examined, request.options.evidence)?;
    // A lock of another host's rank may not show here.
    if request.options.rank.is_none() && removes_orphans(&authorized, notes)? {
        // Their space is free now.
        authorized = authorize_all(request)?;
    }
    size_test_files(&mut authorized, request)?;
    // What no target can hold is refused before the first test file is created.
    for target in &planned_targets(&authorized) {
        check_room(&request.experiments, target, &request.options).map_err(|error| error.problem())?;
    }
    check_growths(&mut authorized, request)?;
    // What cannot be planned is noted in the plan that is made of the claims.
    if let Ok(plan) = whole_plan(&authorized, request) {
        check_memory(&plan, &request.roots.proc)?;
    }
    let files = authorized.iter().filter(|target| target.is_directory()).count() as u64;
    let mut targets = ClaimedTargets { claims: Vec::new(), writable: Vec::new(), target_bytes_per_s: None };
    for target in authorized {
        let index = target.index;
        targets.writable.push(target.is_writable());
        let mut claimed = if let Some(size_bytes) = target.test_file_bytes {
            let size = test_file_size(request, size_bytes, files);
            let (claim, rate) = create_file(&target.examined, request, (index, size), watch)?;
            targets.target_bytes_per_s =
                Some(targets.target_bytes_per_s.map_or(rate, |min: f64| min.min(rate)));
            claim
        } else {
            claim(target.examined, target.access, &request.permission, &request.roots)
                .map_err(|error| error.problem())?
        };
        claimed.target.index = index;
        targets.claims.push(claimed);
    }
    Ok(targets)
}

/// Removes the test files of killed runs from all directories, and says whether any was removed.
fn removes_orphans(authorized: &[AuthorizedTarget], notes: &mut Vec<String>) -> Result<bool, Problem> {
    let mut has_removed = false;
    for target in authorized {
        let Place::Directory { path, .. } = &target.examined.place else { continue };
        let filesystem = target.examined.target.filesystem.as_ref();
        let orphans = remove_orphans(path, filesystem).map_err(|error| error.problem())?;
        has_removed |= !orphans.removed.is_empty();
        for removed in orphans.removed {
            notes.push(format!("removed a test file left by a killed run: {}", removed.path.display()));
        }
        for left in orphans.left {
            let (path, reason) = (left.path.display(), left.reason);
            notes.push(format!(
                "a test file of a killed run may be left: {path}, which was not removed: {reason}"
            ));
        }
    }
    Ok(has_removed)
}

/// The names of the targets; where streams are dealt round targets, a simulated system stands for all of its LUNs, also beside other
/// experiments.
fn names(request: &Request) -> Result<Vec<String>, Problem> {
    let deals_streams = |&experiment: &Experiment| question(experiment).targets() == Targets::Together;
    if !request.experiments.iter().any(deals_streams) {
        return Ok(request.targets.clone());
    }
    let each = request.targets.iter().map(|name| each_lun(name).map_err(|error| error.problem()));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The claim on a new test file, and the rate at which it was written.
fn create_file(
    directory: &Examined,
    request: &Request,
    (index, size): (u32, TestFileSize),
    watch: &mut dyn Watch,
) -> Result<(Claim, f64), Problem> {
    let options = TestFileOptions {
        size,
        // An array that stores equal blocks once must find none in two files.
        seed: SplitMix64::from_index(request.options.seed(), index.into()).next_u64(),
        is_rewritten: is_rewritten(request),
        stop: request.stop.clone(),
    };
    let (claimed, created) = create_test_file(directory, &options, &request.roots, &mut |progress| {
        watch.event(&Event::Creating {
            done_bytes: progress.done_bytes,
            total_bytes: progress.total_bytes,
            bytes_per_s: progress.bytes_per_s,
        });
    })
    .map_err(|error| error.problem())?;
    Ok((claimed, created.write_bytes_per_s))
}

/// The size of each of `files` test files, which take their time one after the other: as requested, else as large as the
/// requested pass, which nothing may shorten.
fn test_file_size(request: &Request, max_bytes: u64, files: u64) -> TestFileSize {
    let options = &request.options;
    let pass_bytes = options.pass_bytes.filter(|_| is_pass_of_target(&request.experiments));
    let holds_pass = |bytes: u64| {
        let end_bytes = options.offset_bytes.saturating_add(bytes);
        end_bytes.checked_next_multiple_of(TEST_FILE_UNIT_BYTES).unwrap_or(end_bytes)
    };
    let load_bytes =
        Some(options.load_bytes()).filter(|&bytes| bytes > 0 && options.load_runs == LoadRuns::Once);
    match request.size_bytes.or(pass_bytes.or(load_bytes).map(holds_pass)) {
        Some(bytes) => TestFileSize::Fixed(bytes),
        None => TestFileSize::Adaptive {
            max_bytes: max_bytes.max(options.load_bytes()),
            max_elapsed_ns: request.options.budget_ns / TEST_FILE_SHARE / files.max(1),
        },
    }
}

/// Whether test files are overwritten after they were created.
fn is_rewritten(request: &Request) -> bool {
    request.options.end_fsync || request.options.ops.as_ref().is_none_or(|ops| ops.contains(&Op::Write))
}

/// Directories get a test file, which is written, and simulated disks have nothing to lose; everything else is only read
/// unless writing was requested.
fn access(examined: &Examined, request: &Request) -> Access {
    if let Place::Directory { .. } | Place::Sim(_) = examined.place {
        return Access::Write;
    }
    let ops = request.options.ops.as_ref();
    let is_requested = request.options.end_fsync || ops.is_some_and(|ops| ops.contains(&Op::Write));
    // A flag that allows writing requests it, even if it is the flag of another kind of target: the user who typed it meant
    // this target to be written, and must learn that it is not.
    let is_allowed =
        request.permission.overwrite == Overwrite::Allowed || request.permission.destroy.is_some();
    let only_reads = ops.is_some_and(|ops| !ops.contains(&Op::Write));
    if is_requested || (is_allowed && !only_reads) { Access::Write } else { Access::Read }
}

/// The buffers may take one part in this number of the available memory.
const PARTS: u64 = 2;

/// Refuses a plan with a cell whose buffers take more than half of the memory that `proc` (`/proc`) says is available.
///
/// # Errors
/// The refusal. Where the kernel does not say, there is none.
fn check_memory(plan: &Plan, proc: &Path) -> Result<(), Problem> {
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
    use crate::planner::plan;
    use crate::request::PlanOptions;
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
