//! From a Request to a Record: examine, judge, claim, plan, run, find. It always gives a Record, whatever went wrong,
//! and lets every claim go, and with it every test file, before it returns.

use crate::bench::{Bench, refuse_mixed};
use crate::{PlanError, PlanOptions, Request, Runner, plan};
use rdsk_model::{
    CellRecord, Event, Experiment, Observer as ObserverFacts, Op, Plan, Problem, ProblemKind, Record, Rung,
    SCHEMA, Status, Target, Watch,
};
use rdsk_targets::{
    Access, Claim, Examined, Overwrite, Place, SizeWish, TargetError, TestFileOptions, claim, each_lun,
    examine, make_test_file, remove_orphans, test_files_left,
};
use rdsk_units::Nanos;
use std::time::Instant;

/// Largest test file unless `--size` says otherwise.
const LARGEST_TEST_FILE_BYTES: u64 = 1 << 30;
/// The part of the budget that making the test file may take: a fifth.
const MAKING_SHARE: u64 = 5;

/// Overrun of the budget that is not worth a word.
const LEAST_OVERRUN_NS: u64 = 1_000_000_000;

/// Runs the request and tells everything that was seen.
pub fn conduct(request: &Request, watch: &mut dyn Watch) -> Record {
    let began = Instant::now();
    let mut record = empty_record(request);
    let mut planned_ns = None;
    if let Err(problem) = measure(request, watch, began, &mut record, &mut planned_ns) {
        record.status =
            if problem.kind == ProblemKind::Interrupted { Status::Interrupted } else { Status::Failed };
        record.error = Some(problem);
    }
    // A simulated run's time is the virtual one, which it has already taken.
    if record.elapsed_ns == 0 {
        record.elapsed_ns = elapsed_ns(began);
    }
    note_overrun(request, planned_ns, &mut record);
    for left in test_files_left() {
        let path = left.path.display();
        record.notes.push(format!("the test file {path} could not be removed: {}", left.reason));
    }
    record.findings = rdsk_finding::findings(&rdsk_analysis::Analysis::of(&record));
    record
}

/// Says when the run took much longer than it was given: I/O that was under way when its time ended is waited for.
fn note_overrun(request: &Request, planned_ns: Option<u64>, record: &mut Record) {
    // Complete passes that were asked for by number, and runtimes per cell, have their own end.
    let Some(planned_ns) = planned_ns else { return };
    let budget_ns = request.options.budget_ns.max(planned_ns);
    if request.options.runtime_ns.is_none()
        && record.elapsed_ns > budget_ns + (budget_ns / 4).max(LEAST_OVERRUN_NS)
        && !record.cells.is_empty()
    {
        record.notes.push(format!(
            "the run took {} of a budget of {}: every cell gets some I/O, and what is under way is waited for",
            Nanos(record.elapsed_ns),
            Nanos(budget_ns)
        ));
    }
}

/// What `conduct` would do, found out without opening anything for writing and without making a file.
///
/// # Errors
/// Whatever would refuse or fail the request before the first I/O.
pub fn plan_only(request: &Request) -> Result<(Plan, Vec<Target>), Problem> {
    let mut targets = Vec::new();
    let mut writable = Vec::new();
    let all: Vec<Examined> = names(request)?
        .iter()
        .map(|name| examine(name, &request.roots).map_err(|error| error.problem()))
        .collect::<Result<_, _>>()?;
    refuse_mixed(all.iter())?;
    for (index, examined) in all.into_iter().enumerate() {
        let access = wanted_access(&examined, request);
        rdsk_targets::judge(&examined, access, &request.permission).map_err(Problem::from)?;
        let mut target = examined.target.clone();
        target.index = u32::try_from(index).unwrap_or(u32::MAX);
        if let Place::Directory { .. } = examined.place {
            let planned = rdsk_targets::plan_test_file(&examined, size_wish(request, 1))
                .map_err(|error| error.problem())?;
            target.size_bytes = planned.size_bytes;
            target.made_by_rdsk = true;
        }
        writable.push(access == Access::Write);
        targets.push(target);
    }
    let budget_ns = request.options.budget_ns;
    let plan = plan(&request.experiments, &targets, &writable, None, &request.options, budget_ns)
        .map_err(|error| plan_problem(&error))?;
    Ok((plan, targets))
}

/// The names of the targets; where streams are dealt round targets, a simulated system stands for all of its LUNs.
fn names(request: &Request) -> Result<Vec<String>, Problem> {
    if request.experiments != [Experiment::Scale] {
        return Ok(request.targets.clone());
    }
    let each = request.targets.iter().map(|name| each_lun(name).map_err(|error| error.problem()));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

fn measure(
    request: &Request,
    watch: &mut dyn Watch,
    began: Instant,
    record: &mut Record,
    planned_ns: &mut Option<u64>,
) -> Result<(), Problem> {
    let ground = claim_all(request, watch, record)?;
    record.targets = ground.claims.iter().map(|claim| claim.target.clone()).collect();
    let bench =
        Bench::of(&ground.claims, &request.roots, &request.options).map_err(|error| error.problem())?;
    record.host.clone_from(&bench.host);
    let spent_ns = if ground.is_simulated() { 0 } else { elapsed_ns(began) };
    let budget_ns = request.options.budget_ns.saturating_sub(spent_ns);
    let plan = plan(
        &request.experiments,
        &record.targets,
        &ground.writable,
        ground.made_bytes_per_s,
        &request.options,
        budget_ns,
    )
    .map_err(|error| plan_problem(&error))?;
    *planned_ns = Some(plan.budget_ns);
    record.notes.extend(plan.notes.iter().cloned());
    let earlier = match &request.resume {
        Some(earlier) => crate::resume::cells_of(earlier, &record.targets, &plan, &mut record.notes)?,
        None => Vec::new(),
    };
    run_plan(request, watch, record, &plan, (&ground, &earlier), bench)
}

fn run_plan(
    request: &Request,
    watch: &mut dyn Watch,
    record: &mut Record,
    plan: &Plan,
    (ground, earlier): (&Ground, &[CellRecord]),
    mut bench: Bench,
) -> Result<(), Problem> {
    let targets = record.targets.clone();
    let runner = Runner {
        plan,
        targets: &targets,
        claims: &ground.claims,
        earlier,
        engine: bench.engine.as_mut(),
        clock: bench.clock.as_ref(),
        observer: bench.observer.as_ref(),
        members: bench.members.as_ref(),
        cpu_count: record.host.as_ref().map(|host| host.cpu_count),
        pin_cpus: &request.options.pin_cpus,
        watch,
        stop: &request.stop,
    };
    let outcome = runner.run();
    if ground.is_simulated() {
        record.elapsed_ns = bench.clock.now_ns();
    }
    if let Some(observer) = outcome.observer {
        record.observer = observer;
    }
    record.cells = outcome.cells;
    for error in record.cells.iter_mut().flat_map(|cell| &mut cell.result.errors) {
        if let Some(words) = (bench.places)(error) {
            error.message = format!("{} ({words})", error.message);
        }
    }
    record.notes.extend(outcome.notes);
    record.status = match (outcome.interrupted, &outcome.problem) {
        (true, _) => Status::Interrupted,
        (false, Some(_)) => Status::Failed,
        (false, None) => Status::Complete,
    };
    if outcome.interrupted {
        return Err(interrupted());
    }
    outcome.problem.map_or(Ok(()), Err)
}

/// The claims on all targets, and what making the test file told.
struct Ground {
    claims: Vec<Claim>,
    writable: Vec<bool>,
    made_bytes_per_s: Option<f64>,
}

impl Ground {
    fn is_simulated(&self) -> bool {
        self.claims.iter().any(|claim| claim.simulated().is_some())
    }
}

/// Examines and judges every target before the first test file is made, so that a refusal of the last target finds
/// nothing changed; then makes the files and claims the rest.
fn claim_all(request: &Request, watch: &mut dyn Watch, record: &mut Record) -> Result<Ground, Problem> {
    let mut examined = Vec::new();
    for name in &names(request)? {
        let one = examine(name, &request.roots).map_err(|error| error.problem())?;
        let access = wanted_access(&one, request);
        rdsk_targets::judge(&one, access, &request.permission).map_err(Problem::from)?;
        examined.push((one, access));
    }
    refuse_mixed(examined.iter().map(|(one, _)| one))?;
    let files =
        examined.iter().filter(|(one, _)| matches!(one.place, Place::Directory { .. })).count() as u64;
    let mut ground = Ground { claims: Vec::new(), writable: Vec::new(), made_bytes_per_s: None };
    for (index, (one, access)) in examined.into_iter().enumerate() {
        let mut claimed = if let Place::Directory { path, .. } = &one.place {
            for removed in remove_orphans(path).map_err(|error| error.problem())? {
                record.notes.push(format!(
                    "removed a test file that a killed run had left: {}",
                    removed.path.display()
                ));
            }
            let (claimed, rate) = make_file(&one, request, files, watch)?;
            ground.made_bytes_per_s =
                Some(ground.made_bytes_per_s.map_or(rate, |least: f64| least.min(rate)));
            claimed
        } else {
            claim(one, access, &request.permission, &request.roots).map_err(|error| error.problem())?
        };
        claimed.target.index = u32::try_from(index).unwrap_or(u32::MAX);
        ground.writable.push(access == Access::Write);
        ground.claims.push(claimed);
    }
    Ok(ground)
}

fn make_file(
    directory: &Examined,
    request: &Request,
    files: u64,
    watch: &mut dyn Watch,
) -> Result<(Claim, f64), Problem> {
    let size = size_wish(request, files);
    let options = TestFileOptions { size, seed: request.options.seed, stop: request.stop.clone() };
    let (claimed, made) = make_test_file(directory, &options, &request.roots, &mut |progress| {
        watch.event(&Event::Making {
            done_bytes: progress.done_bytes,
            total_bytes: progress.total_bytes,
            bytes_per_s: progress.bytes_per_s,
        });
    })
    .map_err(|error: TargetError| error.problem())?;
    Ok((claimed, made.write_bytes_per_s))
}

/// How large each of `files` test files is to be.
fn size_wish(request: &Request, files: u64) -> SizeWish {
    match request.size_bytes {
        Some(bytes) => SizeWish::Fixed(bytes),
        None => SizeWish::Adaptive {
            max_bytes: LARGEST_TEST_FILE_BYTES,
            max_elapsed_ns: request.options.budget_ns / MAKING_SHARE / files.max(1),
        },
    }
}

/// Directories get a file of rdsk's own and are written, and simulated disks have nothing to lose; everything else is read, unless writing was asked for.
fn wanted_access(examined: &Examined, request: &Request) -> Access {
    if let Place::Directory { .. } | Place::Sim(_) = examined.place {
        return Access::Write;
    }
    let PlanOptions { ops, .. } = &request.options;
    let asked = ops.as_ref().is_some_and(|ops| ops.contains(&Op::Write));
    // A flag that allows writing asks for it, also where it is the flag of another kind of target: whoever typed it
    // meant this target to be written, and must learn that it is not.
    let meant = request.permission.overwrite == Overwrite::Allowed || request.permission.destroy.is_some();
    let only_reads = ops.as_ref().is_some_and(|ops| !ops.contains(&Op::Write));
    if asked || (meant && !only_reads) { Access::Write } else { Access::Read }
}

fn plan_problem(error: &PlanError) -> Problem {
    let hint = match error {
        PlanError::TooSmall { .. } => "name a larger target, or a smaller --bs",
        PlanError::OffsetBeyondEnd { .. } => "name a smaller --offset",
        PlanError::SimulatedEngine { .. } => "leave --engine out",
        PlanError::Nothing(_) => {
            "writing a device needs --destroy IDENTITY, a file --overwrite; or ask for --rw read"
        }
    };
    let kind = match error {
        PlanError::TooSmall { .. } => ProblemKind::Refused,
        PlanError::OffsetBeyondEnd { .. } | PlanError::SimulatedEngine { .. } | PlanError::Nothing(_) => {
            ProblemKind::Usage
        }
    };
    Problem::new(kind, "no-plan", error, hint)
}

fn interrupted() -> Problem {
    Problem::new(
        ProblemKind::Interrupted,
        "interrupted",
        "a signal ended the run",
        "the record holds what was measured until then",
    )
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn empty_record(request: &Request) -> Record {
    Record {
        schema: SCHEMA.into(),
        id: ulid::Ulid::new().to_string(),
        label: request.label.clone(),
        command: request.command.clone(),
        rdsk_version: env!("CARGO_PKG_VERSION").into(),
        started_at: jiff::Timestamp::now().to_string(),
        elapsed_ns: 0,
        status: Status::Complete,
        error: None,
        host: None,
        targets: Vec::new(),
        observer: ObserverFacts {
            rung: Rung::None,
            why_not_higher: None,
            lost_events: 0,
            cost_ns_per_io: None,
        },
        cells: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
    }
}
