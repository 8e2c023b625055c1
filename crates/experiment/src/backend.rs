//! The backend that a plan runs on: an engine, its clock and an observer. Real targets get the kernel's, simulated ones
//! those of their lab; nothing above knows the difference.

use crate::request::{EvidenceChoice, PlanOptions};
use rdsk_engine::{Engine, EngineError, EnginePolicy, MonotonicClock, RealEngine, SimEngine, measure_clock};
use rdsk_model::{Clock, Host, IoError, Problem, ProblemKind, Target};
use rdsk_observe::bpf::{Attachment, available};
use rdsk_observe::{KernelObserver, Observer, SimObserver};
use rdsk_targets::{Claim, Examined, Place, REMOVAL_TAKES, Roots};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Creates the observer of the targets with the given indices.
pub(crate) type Observers = Box<dyn Fn(&[u32]) -> Box<dyn Observer>>;

/// Names the disk and position behind a failed I/O, if they are known.
pub(crate) type ErrorLocation = Box<dyn Fn(&IoError) -> Option<String>>;

pub(crate) struct Backend {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) observer: Observers,
    pub(crate) error_location: ErrorLocation,
    /// The machine that is measured.
    pub(crate) host: Option<Host>,
}

impl Backend {
    /// The backend for these claims, all real or all simulated.
    ///
    /// # Errors
    /// If they are mixed.
    pub(crate) fn for_claims(
        claims: &[Claim],
        roots: &Roots,
        options: &PlanOptions,
    ) -> Result<Self, EngineError> {
        if claims.iter().any(|claim| claim.simulated().is_some()) {
            simulated(claims, options.seed())
        } else {
            // Unless an engine was requested, a faster one of the same depth may replace it.
            let policy =
                if options.engine.is_some() { EnginePolicy::Requested } else { EnginePolicy::Fastest };
            Ok(real(claims, roots, policy, options.evidence))
        }
    }
}

fn real(claims: &[Claim], roots: &Roots, policy: EnginePolicy, evidence: EvidenceChoice) -> Backend {
    let targets: Vec<Target> = claims.iter().map(|claim| claim.target.clone()).collect();
    let (sys, proc) = (roots.sys.clone(), roots.proc.clone());
    let host = rdsk_observe::host(&proc, &sys, measure_clock());
    let (run_targets, sys_for_errors) = (targets.clone(), sys.clone());
    // All errors of a run wait together.
    let patience_ends = OnceCell::new();
    let error_location = move |error: &IoError| {
        let target = run_targets.iter().find(|target| target.index == error.target)?;
        let until = *patience_ends.get_or_init(|| Instant::now() + REMOVAL_TAKES);
        rdsk_observe::place::words_of(error, target, &sys_for_errors, until)
    };
    let observer = move |indices: &[u32]| -> Box<dyn Observer> {
        let mine: Vec<Target> =
            targets.iter().filter(|target| indices.contains(&target.index)).cloned().collect();
        let observer = KernelObserver::new(&mine, &sys, &proc, Arc::new(MonotonicClock));
        // A tree that stands for /sys says nothing about the devices of the running kernel.
        let attachment = (sys == Path::new("/sys")).then_some(evidence).and_then(attachment);
        Box::new(match attachment {
            Some(attachment) => observer.with_bpf(attachment),
            None => observer,
        })
    };
    Backend {
        engine: Box::new(RealEngine { policy, ..RealEngine::default() }),
        clock: Box::new(MonotonicClock),
        observer: Box::new(observer),
        error_location: Box::new(error_location),
        host: Some(host),
    }
}

/// How long BPF programs are attached; `None` without them.
fn attachment(evidence: EvidenceChoice) -> Option<Attachment> {
    match evidence {
        EvidenceChoice::Auto => Some(Attachment::Windowed),
        EvidenceChoice::Bpf => Some(Attachment::Throughout),
        EvidenceChoice::Sysfs => None,
    }
}

fn simulated(claims: &[Claim], seed: u64) -> Result<Backend, EngineError> {
    let engine = SimEngine::new(claims, seed)?;
    let (lab, luns) = (engine.lab(), engine.luns().to_vec());
    let observer = move |indices: &[u32]| -> Box<dyn Observer> {
        let watched: Vec<_> =
            indices.iter().filter_map(|&index| Some((index, *luns.get(index as usize)?))).collect();
        Box::new(SimObserver::new(lab.clone(), &watched))
    };
    Ok(Backend {
        clock: Box::new(engine.clock()),
        host: engine.host(),
        observer: Box::new(observer),
        // A simulated disk has no other below it.
        error_location: Box::new(|_: &IoError| None),
        engine: Box::new(engine),
    })
}

/// Refuses real and simulated targets in one run: they have no clock in common.
pub(crate) fn refuse_mixed<'a>(examined: impl Iterator<Item = &'a Examined>) -> Result<(), Problem> {
    let mut kinds = examined.map(|target| matches!(target.place, Place::Sim(_)));
    let first = kinds.next();
    if kinds.all(|kind| Some(kind) == first) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::Usage,
        "mixed-targets",
        "real and simulated targets cannot be measured in one run: the time of the simulated ones is virtual",
        "run rdsk once for each, and compare the records",
    ))
}

/// Refuses a run that is to count by BPF where that cannot be, before anything is written.
pub(crate) fn refuse_without_bpf<'a>(
    examined: impl Iterator<Item = &'a Examined>,
    evidence: EvidenceChoice,
) -> Result<(), Problem> {
    let real: Vec<&Examined> = examined.filter(|target| !matches!(target.place, Place::Sim(_))).collect();
    if evidence != EvidenceChoice::Bpf || real.is_empty() {
        return Ok(());
    }
    const OTHERWISE: &str = "--evidence auto takes the counters of sysfs instead";
    let refused = |why: String, hint: String| Problem::new(ProblemKind::Refused, "no-bpf", why, hint);
    if let Some(target) = real.iter().find(|target| target.target.device.is_none()) {
        let why = format!("--evidence bpf: no block device is known under {}", target.target.name);
        return Err(refused(why, OTHERWISE.into()));
    }
    available().map_err(|no| {
        let hint = no.hint().map_or_else(|| OTHERWISE.into(), |hint| format!("{hint}; {OTHERWISE}"));
        refused(format!("--evidence bpf: {}", no.words()), hint)
    })
}
