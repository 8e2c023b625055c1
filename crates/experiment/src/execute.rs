//! From a Request to a Record: examine, authorize, claim, plan, run, explain. It always gives a Record, whatever went wrong,
//! and releases every claim, and with it every test file, before it returns.

use crate::backend::{Backend, Observers};
use crate::claims::{
    ClaimedTargets, authorize_all, check_growths, claim_all, planned_targets, size_test_files, whole_plan,
};
use crate::experiments::question;
use crate::load_search;
use crate::planner::plan;
use crate::request::Request;
use crate::resume::Resumed;
use crate::run_state::RunOutcome;
use crate::runner::Runner;
use crate::sustained::{self, Time};
use rdsk_engine::{Engine, rough_read_rate};
use rdsk_model::{
    Clock, Event, Experiment, Peers, Plan, Problem, ProblemKind, Promise, Record, SCHEMA, Status, Target,
    Watch,
};
use rdsk_targets::{arrays_at_end, test_files_left};
use rdsk_units::Nanos;
use std::time::Instant;

/// Smallest overrun of the budget that is noted.
const MIN_OVERRUN_NS: u64 = 1_000_000_000;

/// The part of the budget in which a target is read that was there before, to know how fast it is.
const ROUGH_PART: u64 = 100;
/// The least part of their time that the rounds have.
const ROUNDS_LEAST_PART: u64 = 4;

/// Runs the request and returns everything that was seen.
pub fn execute(request: &Request, watch: &mut dyn Watch) -> Record {
    execute_with(request, watch, None)
}

/// As [`execute`], in turns with the other ranks, each of which calls it with the same request but for seeds and parts.
pub fn execute_with(request: &Request, watch: &mut dyn Watch, mut peers: Option<&mut dyn Peers>) -> Record {
    let began = Instant::now();
    let mut record = empty_record(request.command.clone(), request.label.clone());
    let mut planned_ns = None;
    if let Err(problem) = measure(request, watch, &mut peers, began, &mut record, &mut planned_ns) {
        // The others wait for the plan of this rank.
        if let Some(peers) = peers {
            let _ = peers.begin(Err(&problem));
        }
        fail(&mut record, problem);
    }
    record.elapsed_ns = elapsed_ns(began);
    note_overrun(request, planned_ns, &mut record);
    for left in test_files_left() {
        let path = left.path.display();
        record.notes.push(format!("the test file {path} could not be removed: {}", left.reason));
    }
    record.findings = rdsk_finding::findings(&rdsk_analysis::Analysis::of(&record));
    record
}

/// The Record of a run that was killed, or that goes on, with what follows from its cells: what stalls mean for its intervals,
/// and the findings.
pub fn concluded(mut record: Record) -> Record {
    rdsk_analysis::stalls::carry(&mut record.cells);
    rdsk_analysis::read_ahead::carry(&mut record.cells);
    record.findings = rdsk_finding::findings(&rdsk_analysis::Analysis::of(&record));
    record
}

/// The Record of a run that never started, because of a usage error or an environment that does not fit.
pub fn failed_record(command: Vec<String>, label: Option<String>, problem: Problem) -> Record {
    let mut record = empty_record(command, label);
    record.observer.why_not_higher = Some("nothing was measured".into());
    fail(&mut record, problem);
    record
}

fn fail(record: &mut Record, problem: Problem) {
    record.status =
        if problem.kind == ProblemKind::Interrupted { Status::Interrupted } else { Status::Failed };
    record.error = Some(problem);
}

/// A Record without cells and errors.
pub(crate) fn empty_record(command: Vec<String>, label: Option<String>) -> Record {
    Record {
        schema: SCHEMA.into(),
        id: rdsk_targets::new_id().to_string(),
        label,
        command,
        rdsk_version: env!("CARGO_PKG_VERSION").into(),
        started_at: jiff::Timestamp::now().to_string(),
        ..Record::default()
    }
}

/// Notes that the run took much longer than its budget: I/O that is in flight when the time ends is waited for.
fn note_overrun(request: &Request, planned_ns: Option<u64>, record: &mut Record) {
    // A requested number of passes, or a runtime per cell, ends by itself.
    let Some(planned_ns) = planned_ns else { return };
    let budget_ns = request.options.budget_ns.max(planned_ns);
    let took_ns = record.simulated_ns.unwrap_or(record.elapsed_ns);
    if request.options.runtime_ns.is_none()
        && took_ns > budget_ns + (budget_ns / 4).max(MIN_OVERRUN_NS)
        && !record.cells.is_empty()
    {
        record.notes.push(format!(
            "the run took {} of a budget of {}: tests get the I/O that they at least need, and rdsk waits for I/O in flight",
            Nanos(took_ns),
            Nanos(budget_ns)
        ));
    }
}

/// The plan that `execute` would follow, without opening anything for writing and without creating a file.
///
/// # Errors
/// Whatever refuses or fails the request before the first I/O.
pub fn plan_only(request: &Request) -> Result<(Plan, Vec<Target>), Problem> {
    let mut authorized = authorize_all(request)?;
    size_test_files(&mut authorized, request)?;
    check_growths(&mut authorized, request)?;
    Ok((whole_plan(&authorized, request)?, planned_targets(&authorized)))
}

fn measure(
    request: &Request,
    watch: &mut dyn Watch,
    peers: &mut Option<&mut dyn Peers>,
    began: Instant,
    record: &mut Record,
    planned_ns: &mut Option<u64>,
) -> Result<(), Problem> {
    let claimed = claim_all(request, watch, &mut record.notes)?;
    record.targets = claimed.claims.iter().map(|claim| claim.target.clone()).collect();
    let mut backend = Backend::for_claims(&claimed.claims, &request.roots, &request.options)
        .map_err(|error| error.problem())?;
    record.host.clone_from(&backend.host);
    let target_bytes_per_s = claimed.target_bytes_per_s.or_else(|| rough_rate(request, &claimed));
    let spent_ns = if claimed.is_simulated() { 0 } else { elapsed_ns(began) };
    let mut plan = plan(
        &request.experiments,
        &record.targets,
        &claimed.writable,
        target_bytes_per_s,
        &request.options,
        left_ns(rounds_ns(request, claimed.is_simulated()), spent_ns),
    )
    .map_err(|error| error.problem())?;
    *planned_ns = Some(plan.budget_ns);
    record.seed = Some(request.options.seed());
    record.need.clone_from(&request.options.need);
    record.promise = request.options.promise;
    record.notes.extend(plan.notes.iter().cloned());
    let resumed = match &request.resume {
        Some(earlier) => {
            if request.options.pass_bytes.is_none() {
                crate::resume::take_spans(&mut plan, earlier);
            }
            Resumed::find(earlier, record, &plan)?
        }
        None => Resumed::default(),
    };
    record.notes.extend(resumed.note.clone());
    resumed.leave_out(&mut plan);
    let mut peers = peers.take();
    if let Some(peers) = &mut peers {
        peers.begin(Ok(&plan.cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>()))?;
    }
    watch.event(&Event::Planned { record });
    let Backend { engine, clock, observer, .. } = &mut backend;
    let runner = runner(&plan, request, record, &claimed, (engine.as_mut(), clock.as_ref(), observer, watch));
    let earlier = request.resume.as_ref().map_or(&[][..], |earlier| &earlier.cells);
    let peers: Option<&mut dyn Peers> = match &mut peers {
        Some(peers) => Some(&mut **peers),
        None => None,
    };
    let outcome = Runner { resumed: &resumed.continued, earlier, peers, ..runner }.run();
    if claimed.is_simulated() {
        record.simulated_ns = Some(backend.clock.now_ns());
    } else {
        note_arrays(&mut record.targets, request);
    }
    let mut result = take_over(record, outcome, &backend);
    if result.is_ok()
        && let Some(promise) = request.options.promise
    {
        result = search_rate(request, watch, &claimed, &mut backend, &plan, promise, record);
    }
    if result.is_ok() {
        result = sustain_writes(request, watch, &claimed, &mut backend, &plan, began, record);
    }
    resumed.put_back(&mut record.cells);
    result
}

/// What runs a plan on the claimed targets; no earlier run goes on with it.
fn runner<'a>(
    plan: &'a Plan,
    request: &'a Request,
    record: &'a Record,
    claimed: &'a ClaimedTargets,
    (engine, clock, observer, watch): (&'a mut dyn Engine, &'a dyn Clock, &'a Observers, &'a mut dyn Watch),
) -> Runner<'a> {
    Runner {
        plan,
        targets: &record.targets,
        claims: &claimed.claims,
        resumed: &[],
        earlier: &[],
        engine,
        clock,
        observer,
        cpu_count: record.host.as_ref().map(|host| host.cpu_count),
        pin_cpus: &request.options.pin_cpus,
        watch,
        peers: None,
        rank: request.options.rank,
        stop: &request.stop,
    }
}

/// Lets the writes of a plan go on until their rate has settled: those of a simulated system always, on a copy of it that begins as it
/// did, so that nothing else differs by it; those of a real one on request, until its time is over.
fn sustain_writes(
    request: &Request,
    watch: &mut dyn Watch,
    claimed: &ClaimedTargets,
    backend: &mut Backend,
    plan: &Plan,
    began: Instant,
    record: &mut Record,
) -> Result<(), Problem> {
    let cells = sustained::cells(plan);
    let is_simulated = claimed.is_simulated();
    if cells.is_empty() || !(is_simulated || request.options.is_sustained) {
        return Ok(());
    }
    let mut copy = None;
    if is_simulated {
        let made = Backend::for_claims(&claimed.claims, &request.roots, &request.options);
        copy = Some(made.map_err(|error| error.problem())?);
    }
    let Backend { engine, clock, observer, .. } = copy.as_mut().unwrap_or(backend);
    let clock = clock.as_ref();
    let left_ns = request.options.budget_ns.saturating_sub(elapsed_ns(began));
    let time = if is_simulated { Time::Free } else { Time::Until(clock.now_ns().saturating_add(left_ns)) };
    let mut watch = sustained::ProgressOnly(watch);
    let mut run = |plan: &Plan| {
        runner(plan, request, record, claimed, (engine.as_mut(), clock, observer, &mut watch)).run()
    };
    let (sustained, problem) = sustained::sustain(&cells, &record.cells, time, clock, &mut run);
    record.sustained = sustained;
    if request.stop.is_raised() { Err(interrupted()) } else { problem.map_or(Ok(()), Err) }
}

/// Looks for the highest rate of a load at which a promise holds, in what the closed loop has left of the time.
fn search_rate(
    request: &Request,
    watch: &mut dyn Watch,
    claimed: &ClaimedTargets,
    backend: &mut Backend,
    plan: &Plan,
    promise: Promise,
    record: &mut Record,
) -> Result<(), Problem> {
    let Some((closed, measured)) = plan.cells.first().zip(record.cells.first()) else { return Ok(()) };
    let left_ns = request.options.budget_ns - request.options.budget_ns / load_search::CLOSED_PART;
    let step_ns = left_ns / u64::from(load_search::STEPS);
    let Backend { engine, clock, observer, .. } = backend;
    let clock = clock.as_ref();
    let mut watch = sustained::ProgressOnly(watch);
    let mut run = |plan: &Plan| {
        runner(plan, request, record, claimed, (engine.as_mut(), clock, observer, &mut watch)).run()
    };
    let (cells, problem, is_interrupted) = load_search::search(closed, measured, promise, step_ns, &mut run);
    record.cells.extend(cells);
    if is_interrupted { Err(interrupted()) } else { problem.map_or(Ok(()), Err) }
}

/// How fast the slowest of the targets is read that were there before. A whole run, whose questions share their time, has to know, and
/// `zones`, which plans how many positions there is time for.
fn rough_rate(request: &Request, claimed: &ClaimedTargets) -> Option<f64> {
    let longest_ns = request.options.budget_ns / ROUGH_PART;
    let rate = |claim| rough_read_rate(claim, request.options.offset_bytes, longest_ns);
    let is_zones = request.experiments == [Experiment::Zones]
        && !question(Experiment::Zones).has_fixed_passes(&request.options);
    let is_asked = request.experiments.len() > 1 || is_zones;
    claimed.claims.iter().filter(|_| is_asked).filter_map(rate).reduce(f64::min)
}

/// What is left of the time for the rounds. However long it took to look at the targets, they have a part of it.
fn left_ns(rounds_ns: u64, spent_ns: u64) -> u64 {
    rounds_ns.saturating_sub(spent_ns).max(rounds_ns / ROUNDS_LEAST_PART)
}

/// The time for everything but the writes that go on until they have settled.
fn rounds_ns(request: &Request, is_simulated: bool) -> u64 {
    let budget_ns = request.options.budget_ns;
    if request.options.promise.is_some() {
        return budget_ns / load_search::CLOSED_PART;
    }
    if request.options.is_sustained && !is_simulated { sustained::rounds_ns(budget_ns) } else { budget_ns }
}

/// Notes which arrays are in another state than before the first cell.
fn note_arrays(targets: &mut [Target], request: &Request) {
    for target in targets {
        let arrays = arrays_at_end(target, &request.roots);
        if let Some(device) = &mut target.device {
            device.arrays_at_end = arrays;
        }
    }
}

/// Puts what the runner saw into the Record.
fn take_over(record: &mut Record, outcome: RunOutcome, backend: &Backend) -> Result<(), Problem> {
    if let Some(observer) = outcome.observer {
        record.observer = observer;
    }
    record.cells = outcome.cells;
    for error in record.cells.iter_mut().flat_map(|cell| &mut cell.result.errors) {
        if let Some(words) = (backend.error_location)(error) {
            error.message = format!("{} ({words})", error.message);
        }
    }
    record.notes.extend(outcome.notes);
    if outcome.interrupted {
        return Err(interrupted());
    }
    outcome.problem.map_or(Ok(()), Err)
}

fn interrupted() -> Problem {
    Problem::new(
        ProblemKind::Interrupted,
        "interrupted",
        "a signal ended the run",
        "the record holds what was measured until then",
    )
}

/// Nanoseconds since then.
pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
