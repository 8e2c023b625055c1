//! Which engine issues the I/O of a visit: the one that the workload names; the next available one; or, if the user
//! requested none and `io_uring` may be slow on the target, the fastest in a short trial. It decides and issues
//! nothing; the trials are in `engine_trial`.

use crate::aio::{self, Contexts};
use crate::error::Unavailable;
use crate::ring::{self, NoRing, QueueSource};
use crate::thread_pool;
use rdsk_model::{EngineKind, IoPath, Issuing, Trial, Workload};

/// Whether the user requested the workload's engine, or a faster one may replace it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnginePolicy {
    /// This engine was requested; another one takes over only if it is not available.
    #[default]
    Requested,
    /// Any engine of the same depth will do.
    Fastest,
}

/// The engine of a visit and how it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EngineChoice {
    pub(crate) engine: EngineKind,
    pub(crate) issuing: Issuing,
}

/// Which engines are available here, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    ring: Result<(), Unavailable>,
    aio: Result<(), Unavailable>,
}

impl Available {
    /// Probes only what the workload may need: AIO only if the ring is not available.
    pub(crate) fn probe(
        workload: &Workload,
        ring: impl FnOnce() -> Result<(), Unavailable>,
        aio: impl FnOnce(usize) -> Result<(), Unavailable>,
    ) -> Self {
        let ring = if workload.engine == EngineKind::Uring { ring() } else { Ok(()) };
        let wants_aio = workload.engine == EngineKind::Aio || ring.is_err();
        let aio = if wants_aio && workload.path == IoPath::Direct {
            aio(usize::try_from(workload.queue_depth).unwrap_or(usize::MAX))
        } else {
            Ok(())
        };
        Self { ring, aio }
    }
}

/// Whether rings are available, or why not. A failure other than a refusal happens again, and is reported, when the stream
/// creates its ring.
pub(crate) fn ring_available(source: QueueSource) -> Result<(), Unavailable> {
    match ring::probe(source) {
        Ok(()) | Err(NoRing::Failed(_)) => Ok(()),
        Err(NoRing::Forbidden(why)) => Err(Unavailable(why)),
    }
}

/// Whether an AIO context of this depth is available, or why not.
pub(crate) fn aio_available(
    contexts: &Contexts,
    source: QueueSource,
    depth: usize,
) -> Result<(), Unavailable> {
    let context =
        contexts.take(source, depth).map_err(|error| Unavailable(aio::forbidden_message(&error)))?;
    contexts.give_back(depth, context);
    Ok(())
}

/// The engine for the workload, before any trial.
pub(crate) fn initial(workload: &Workload, available: &Available) -> EngineChoice {
    let is_direct = workload.path == IoPath::Direct;
    // A queue depth of 1 needs no thread of its own.
    let threads = if workload.queue_depth == 1 { EngineKind::Sync } else { EngineKind::Threads };
    let (engine, reasons) = match (workload.engine, &available.ring, &available.aio) {
        (EngineKind::Uring, Err(ring), Ok(())) if is_direct => (EngineKind::Aio, vec![ring.clone()]),
        (EngineKind::Uring, Err(ring), Err(aio)) if is_direct => (threads, vec![ring.clone(), aio.clone()]),
        (EngineKind::Uring, Err(ring), _) => (threads, vec![ring.clone()]),
        (EngineKind::Aio, _, _) if !is_direct => {
            (threads, vec![Unavailable("io_submit blocks on buffered I/O".into())])
        }
        (EngineKind::Aio, _, Err(aio)) => (threads, vec![aio.clone()]),
        (engine, _, _) => (engine, Vec::new()),
    };
    let why = (!reasons.is_empty()).then(|| {
        let reasons: Vec<String> = reasons.iter().map(Unavailable::to_string).collect();
        format!("{}: {}", reasons.join(", and "), issues(engine))
    });
    EngineChoice { engine, issuing: Issuing { why, ..Issuing::default() } }
}

fn issues(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Sync => "the sync engine issues the I/O, one at a time as requested",
        EngineKind::Threads => "threads issue the I/O, one per I/O in flight",
        EngineKind::Aio => "Linux AIO issues the I/O",
        EngineKind::Uring => "io_uring issues the I/O",
        EngineKind::Sim => "the simulated host issues the I/O",
    }
}

/// The note if the threads engine has fewer threads than the queue depth requires.
pub(crate) fn fewer_threads(workload: &Workload) -> Option<String> {
    let (depth, streams) = (workload.queue_depth as usize, workload.streams as usize);
    let size = thread_pool::size(depth, streams);
    (size < depth).then(|| {
        format!(
            "the threads engine has at most {} threads in total: {} of {depth} I/Os are in flight per stream",
            thread_pool::MAX_THREADS,
            size
        )
    })
}

/// The engines of a trial, in order of preference if they perform alike.
pub(crate) const TRIAL_ENGINES: [EngineKind; 3] = [EngineKind::Aio, EngineKind::Uring, EngineKind::Threads];

/// Rates and processor times that differ by less are alike: a trial of some milliseconds resolves no more.
const ALIKE: f64 = 0.1;

/// The best engine of the trials: the fastest; of those about as fast the one with the least processor time; of those alike
/// in both the first of [`TRIAL_ENGINES`]. `None` if nothing completed.
pub(crate) fn fastest(trials: &[Trial]) -> Option<EngineKind> {
    let rate = |trial: &Trial| trial.ops as f64 / trial.elapsed_ns.max(1) as f64;
    let cost = |trial: &Trial| trial.cpu_ns as f64 / trial.ops.max(1) as f64;
    let best_rate = trials.iter().map(rate).fold(0.0, f64::max);
    let fast = || trials.iter().filter(|trial| trial.ops > 0 && rate(trial) >= best_rate * (1.0 - ALIKE));
    let least_cost = fast().map(cost).fold(f64::INFINITY, f64::min);
    let is_cheap = |trial: &&Trial| cost(trial) <= least_cost * (1.0 + ALIKE);
    let rank = |trial: &&Trial| {
        TRIAL_ENGINES.iter().position(|&engine| engine == trial.engine).unwrap_or(usize::MAX)
    };
    fast().filter(is_cheap).min_by_key(rank).map(|trial| trial.engine)
}

/// The best engine of the trials that were made because `io_uring` kept a processor busy: another one only where it is faster by more than
/// they resolve.
pub(crate) fn fastest_beside_ring(trials: &[Trial]) -> Option<EngineKind> {
    let rate = |trial: &Trial| trial.ops as f64 / trial.elapsed_ns.max(1) as f64;
    let ring = trials.iter().find(|trial| trial.engine == EngineKind::Uring).map_or(0.0, rate);
    let is_faster = |trial: &&Trial| rate(trial) * (1.0 - ALIKE) > ring;
    let faster: Vec<Trial> = trials.iter().filter(is_faster).cloned().collect();
    if faster.is_empty() { fastest(trials).map(|_| EngineKind::Uring) } else { fastest(&faster) }
}

/// Why trims have no queue.
pub(crate) const WHY_NOT_QUEUED: &str = "a trim is a call that a thread waits for";

/// Why engines are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The target does not support `RWF_NOWAIT`.
    NoNowait,
    /// A ring may write to this file one I/O at a time.
    OneAtATime,
    /// The requests of a mix may keep the one processor of a ring busy where the device would take more of them.
    BusyProcessor,
}

impl Reason {
    const fn words(self) -> &'static str {
        match self {
            Self::NoNowait => "the target does not support RWF_NOWAIT",
            Self::OneAtATime => "the target is a file that io_uring may write to one I/O at a time",
            Self::BusyProcessor => "one processor is busy with the io_uring of this mix",
        }
    }
}

/// What the trials said.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    /// The better trial of each engine that issued anything.
    pub(crate) best: Vec<Trial>,
    /// Whether others had the processor in every run of one of these.
    pub(crate) is_disturbed: bool,
}

/// On a device that completes less than one I/O per 50 µs, the cost of issuing does not show.
const SLOW_NS: u64 = 50_000;

/// Whether the device was so slow in a trial that the cost of issuing does not show.
pub(crate) fn is_slow(trial: &Trial) -> bool {
    trial.elapsed_ns > trial.ops.saturating_mul(SLOW_NS)
}

/// Why the trials, which were made for this `reason`, chose another engine than `io_uring`. A single one shows a slow device, unless it
/// was the machine that was busy.
pub(crate) fn why_chosen(
    engine: EngineKind,
    reason: Reason,
    Trials { best, is_disturbed }: &Trials,
) -> String {
    let because = match &best[..] {
        [trial] if is_slow(trial) && !is_disturbed => {
            " and is so slow that the cost of issuing does not matter".to_owned()
        }
        [_] => ", and no other engine issued anything in a short trial".to_owned(),
        _ => format!(", and this was the fastest of {} engines in a short trial", best.len()),
    };
    format!("{}{because}: {}", reason.words(), issues(engine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(engine: EngineKind, path: IoPath, queue_depth: u32) -> Workload {
        Workload { engine, path, queue_depth, ..Workload::sequential_read(1 << 20) }
    }

    #[test]
    fn only_a_slow_trial_says_that_the_target_is_slow() {
        let trial = |engine: EngineKind, ops: u64| Trial {
            engine,
            ops,
            elapsed_ns: 4_000_000,
            cpu_ns: 1,
            within_submit: None,
        };
        let why = |best: &[Trial], is_disturbed: bool| {
            why_chosen(EngineKind::Aio, Reason::NoNowait, &Trials { best: best.to_vec(), is_disturbed })
        };
        let (slow, fast) = (trial(EngineKind::Aio, 10), trial(EngineKind::Aio, 4000));
        assert!(why(&[slow], false).contains("so slow that the cost of issuing does not matter"));
        for (best, is_disturbed) in [(&[fast], false), (&[fast], true), (&[slow], true)] {
            assert!(why(best, is_disturbed).contains("no other engine issued anything"), "{best:?}");
        }
        assert!(why(&[slow], false).starts_with("the target does not support RWF_NOWAIT and is so slow"));
        let two = why(&[fast, trial(EngineKind::Threads, 3000)], true);
        assert!(two.contains("the fastest of 2 engines"), "{two}");
    }

    #[test]
    fn every_engine_has_a_fallback() {
        use EngineKind::{Aio, Sync, Threads, Uring};
        use IoPath::{Buffered, Direct};
        let yes = || Ok(());
        let no = |text: &str| Err(Unavailable(text.to_owned()));
        let by = |reason: &str, issuer: &str| Some(format!("{reason}: {issuer}"));
        let threads = "threads issue the I/O, one per I/O in flight";
        let aio_issues = "Linux AIO issues the I/O";
        let sync = "the sync engine issues the I/O, one at a time as requested";
        for (engine, path, depth, ring, aio, expected, why) in [
            (Uring, Direct, 32, yes(), yes(), Uring, None),
            (Uring, Direct, 32, no("r"), yes(), Aio, by("r", aio_issues)),
            (Uring, Buffered, 32, no("r"), yes(), Threads, by("r", threads)),
            (Uring, Direct, 32, no("r"), no("a"), Threads, by("r, and a", threads)),
            (Uring, Buffered, 1, no("r"), yes(), Sync, by("r", sync)),
            (Uring, Direct, 1, no("r"), yes(), Aio, by("r", aio_issues)),
            (Aio, Direct, 32, yes(), yes(), Aio, None),
            (Aio, Direct, 32, yes(), no("a"), Threads, by("a", threads)),
            (Aio, Buffered, 8, yes(), yes(), Threads, by("io_submit blocks on buffered I/O", threads)),
            (Threads, Direct, 8, yes(), yes(), Threads, None),
            (Sync, Buffered, 1, yes(), yes(), Sync, None),
        ] {
            let choice = initial(&workload(engine, path, depth), &Available { ring, aio });
            assert_eq!((choice.engine, choice.issuing.why), (expected, why), "{engine} {path} {depth}");
        }
    }

    #[test]
    fn a_refusal_is_seen_and_named() {
        let contexts = Contexts::default();
        let refused = |workload: &Workload| {
            let aio = |depth| aio_available(&contexts, QueueSource::Forbidden, depth);
            Available::probe(workload, || ring_available(QueueSource::Forbidden), aio)
        };
        let available = refused(&workload(EngineKind::Uring, IoPath::Direct, 4));
        let forbidden =
            |engine| Err(Unavailable(format!("{engine} is forbidden here (Operation not permitted)")));
        assert_eq!((available.ring, available.aio), (forbidden("io_uring"), forbidden("Linux AIO")));
        let sync = workload(EngineKind::Sync, IoPath::Direct, 1);
        assert_eq!(refused(&sync), Available { ring: Ok(()), aio: Ok(()) });
        // If a ring is available, AIO is not probed.
        let with_ring =
            Available::probe(&workload(EngineKind::Uring, IoPath::Direct, 4), || Ok(()), |_| unreachable!());
        assert_eq!(with_ring, Available { ring: Ok(()), aio: Ok(()) });
    }

    #[test]
    fn the_limit_of_threads_is_reported() {
        assert_eq!(fewer_threads(&workload(EngineKind::Threads, IoPath::Direct, 1024)), None);
        let said = fewer_threads(&workload(EngineKind::Threads, IoPath::Direct, 4096)).unwrap();
        assert!(said.contains("at most 1024 threads") && said.contains("1024 of 4096"), "{said}");
    }

    fn trial(engine: EngineKind, ops: u64, cpu_ns: u64) -> Trial {
        Trial { engine, ops, elapsed_ns: 4_000_000, cpu_ns: cpu_ns * ops, within_submit: None }
    }

    #[test]
    fn a_busy_ring_gives_way_only_to_what_is_clearly_faster() {
        use EngineKind::{Aio, Threads, Uring};
        let of = |aio, threads| {
            fastest_beside_ring(&[
                trial(Aio, aio, 1000),
                trial(Uring, 2000, 3000),
                trial(Threads, threads, 5000),
            ])
        };
        assert_eq!(of(2000, 1800), Some(Uring), "alike, however cheap");
        assert_eq!(of(1900, 3000), Some(Threads));
        assert_eq!(of(2900, 3000), Some(Aio), "of those that are faster the cheaper one");
        assert_eq!(fastest_beside_ring(&[]), None);
    }

    #[test]
    fn the_fastest_wins_then_the_cheapest_then_the_order() {
        use EngineKind::{Aio, Threads, Uring};
        for (trials, expected) in [
            (vec![trial(Aio, 1000, 2000), trial(Uring, 2000, 4000), trial(Threads, 500, 4000)], Some(Uring)),
            (vec![trial(Aio, 1900, 2000), trial(Uring, 2000, 4000)], Some(Aio)),
            (vec![trial(Aio, 2000, 4000), trial(Uring, 1900, 2000)], Some(Uring)),
            (vec![trial(Threads, 2000, 2000), trial(Uring, 1990, 2050), trial(Aio, 1950, 2100)], Some(Aio)),
            (vec![trial(Aio, 0, 0), trial(Uring, 3, 1000)], Some(Uring)),
            (vec![trial(Aio, 0, 0)], None),
            (Vec::new(), None),
        ] {
            assert_eq!(fastest(&trials), expected, "{trials:?}");
        }
    }
}
