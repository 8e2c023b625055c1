//! From a Request to a Record: examine, judge, claim, plan, run, find. It always gives a Record, whatever went wrong,
//! and releases every claim, and with it every test file, before it returns.

use crate::backend::Backend;
use crate::claims::{ClaimedTargets, JudgedTarget, claim_all, judge_all};
use crate::planner::{PlanError, plan};
use crate::request::Request;
use crate::runner::Runner;
use rdsk_model::{
    CellRecord, EvidenceSource, Observer, Plan, Problem, ProblemKind, Record, SCHEMA, Status, Target, Watch,
};
use rdsk_targets::test_files_left;
use rdsk_units::Nanos;
use std::time::Instant;

/// Smallest overrun of the budget that is noted.
const MIN_OVERRUN_NS: u64 = 1_000_000_000;

/// Runs the request and returns everything that was seen.
pub fn execute(request: &Request, watch: &mut dyn Watch) -> Record {
    let began = Instant::now();
    let mut record = empty_record(request.command.clone(), request.label.clone());
    let mut planned_ns = None;
    if let Err(problem) = measure(request, watch, began, &mut record, &mut planned_ns) {
        record.status =
            if problem.kind == ProblemKind::Interrupted { Status::Interrupted } else { Status::Failed };
        record.error = Some(problem);
    }
    // A simulated run has already set its virtual time.
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

/// A Record without cells and errors, for runs that have measured nothing yet or ended before they could.
#[must_use]
pub fn empty_record(command: Vec<String>, label: Option<String>) -> Record {
    Record {
        schema: SCHEMA.into(),
        id: ulid::Ulid::new().to_string(),
        label,
        command,
        rdsk_version: env!("CARGO_PKG_VERSION").into(),
        started_at: jiff::Timestamp::now().to_string(),
        elapsed_ns: 0,
        status: Status::Complete,
        error: None,
        host: None,
        targets: Vec::new(),
        observer: Observer {
            source: EvidenceSource::None,
            why_not_higher: None,
            lost_events: 0,
            cost_ns_per_io: None,
        },
        cells: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
    }
}

/// Notes that the run took much longer than its budget: I/O that is in flight when the time ends is waited for.
fn note_overrun(request: &Request, planned_ns: Option<u64>, record: &mut Record) {
    // A requested number of passes, or a runtime per cell, ends by itself.
    let Some(planned_ns) = planned_ns else { return };
    let budget_ns = request.options.budget_ns.max(planned_ns);
    if request.options.runtime_ns.is_none()
        && record.elapsed_ns > budget_ns + (budget_ns / 4).max(MIN_OVERRUN_NS)
        && !record.cells.is_empty()
    {
        record.notes.push(format!(
            "the run took {} of a budget of {}: every cell gets some I/O, and I/O in flight is waited for",
            Nanos(record.elapsed_ns),
            Nanos(budget_ns)
        ));
    }
}

/// The plan that `execute` would follow, without opening anything for writing and without creating a file.
///
/// # Errors
/// Whatever refuses or fails the request before the first I/O.
pub fn plan_only(request: &Request) -> Result<(Plan, Vec<Target>), Problem> {
    let judged = judge_all(request)?;
    let planned = (0..).zip(&judged).map(|(index, one)| one.planned(index, request));
    let targets = planned.collect::<Result<Vec<_>, _>>()?;
    let writable: Vec<bool> = judged.iter().map(JudgedTarget::is_writable).collect();
    let budget_ns = request.options.budget_ns;
    let plan = plan(&request.experiments, &targets, &writable, None, &request.options, budget_ns)
        .map_err(|error| plan_problem(&error))?;
    Ok((plan, targets))
}

fn measure(
    request: &Request,
    watch: &mut dyn Watch,
    began: Instant,
    record: &mut Record,
    planned_ns: &mut Option<u64>,
) -> Result<(), Problem> {
    let claimed = claim_all(request, watch, &mut record.notes)?;
    record.targets = claimed.claims.iter().map(|claim| claim.target.clone()).collect();
    let backend =
        Backend::of(&claimed.claims, &request.roots, &request.options).map_err(|error| error.problem())?;
    record.host.clone_from(&backend.host);
    let spent_ns = if claimed.is_simulated() { 0 } else { elapsed_ns(began) };
    let plan = plan(
        &request.experiments,
        &record.targets,
        &claimed.writable,
        claimed.test_file_bytes_per_s,
        &request.options,
        request.options.budget_ns.saturating_sub(spent_ns),
    )
    .map_err(|error| plan_problem(&error))?;
    *planned_ns = Some(plan.budget_ns);
    record.notes.extend(plan.notes.iter().cloned());
    let resumed = match &request.resume {
        Some(earlier) => crate::resume::cells_of(earlier, &record.targets, &plan, &mut record.notes)?,
        None => Vec::new(),
    };
    Measurement { plan, claimed, resumed, backend }.run(request, watch, record)
}

/// Everything that is known before the first I/O.
struct Measurement {
    plan: Plan,
    claimed: ClaimedTargets,
    resumed: Vec<CellRecord>,
    backend: Backend,
}

impl Measurement {
    fn run(mut self, request: &Request, watch: &mut dyn Watch, record: &mut Record) -> Result<(), Problem> {
        let runner = Runner {
            plan: &self.plan,
            targets: &record.targets,
            claims: &self.claimed.claims,
            resumed: &self.resumed,
            engine: self.backend.engine.as_mut(),
            clock: self.backend.clock.as_ref(),
            observer: self.backend.observer.as_ref(),
            members: self.backend.members.as_ref(),
            cpu_count: record.host.as_ref().map(|host| host.cpu_count),
            pin_cpus: &request.options.pin_cpus,
            watch,
            stop: &request.stop,
        };
        let outcome = runner.run();
        if self.claimed.is_simulated() {
            record.elapsed_ns = self.backend.clock.now_ns();
        }
        if let Some(observer) = outcome.observer {
            record.observer = observer;
        }
        record.cells = outcome.cells;
        for error in record.cells.iter_mut().flat_map(|cell| &mut cell.result.errors) {
            if let Some(words) = (self.backend.error_location)(error) {
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
}

fn plan_problem(error: &PlanError) -> Problem {
    let hint = match error {
        PlanError::TooSmall { .. } => "name a larger target, or a smaller --bs",
        PlanError::OffsetBeyondEnd { .. } => "name a smaller --offset",
        PlanError::SimulatedEngine { .. } => "leave --engine out",
        PlanError::Nothing(_) => {
            "writing a device needs --destroy IDENTITY, a file --overwrite; or --rw read measures reads only"
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
