//! Which engine issues the I/O of a visit: the one that the workload names, or the next one that is to be had here, or, where
//! the workload leaves it open and a device takes no requests without waiting, the one that was fastest in a short trial.
//! It decides and issues nothing; the trials are made in `engine_trial`.

use crate::aio::{self, AioSource, Contexts};
use crate::ring::{self, NoRing, RingSource};
use crate::thread_pool;
use rdsk_model::{EngineKind, IoPath, Issuing, Trial, Workload};

/// Whether the workload's engine was asked for, or may give way to a faster one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnginePolicy {
    /// Somebody wants this engine; another one takes over only where it is not to be had.
    #[default]
    Requested,
    /// Any engine of the same depth will do.
    Fastest,
}

/// The engine of a visit and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EngineChoice {
    pub(crate) engine: EngineKind,
    pub(crate) issuing: Issuing,
}

/// What is to be had here: nothing to say, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    ring: Result<(), String>,
    aio: Result<(), String>,
}

impl Available {
    /// Asks for what the workload may need, and for nothing else: AIO only where the ring is not to be had.
    pub(crate) fn of(
        workload: &Workload,
        ring: impl FnOnce() -> Result<(), String>,
        aio: impl FnOnce(usize) -> Result<(), String>,
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

/// Whether rings are to be had, or why not. Another failure than a refusal is met again, and reported, when the stream
/// makes its ring.
pub(crate) fn ring_available(source: RingSource) -> Result<(), String> {
    match ring::probe(source) {
        Ok(()) | Err(NoRing::Failed(_)) => Ok(()),
        Err(NoRing::Forbidden(error)) => Err(ring::forbidden_message(&error)),
    }
}

/// Whether an AIO context of this depth is to be had, or why not.
pub(crate) fn aio_available(contexts: &Contexts, source: AioSource, depth: usize) -> Result<(), String> {
    let context = contexts.take(source, depth).map_err(|error| aio::forbidden_message(&error))?;
    contexts.give_back(depth, context);
    Ok(())
}

/// The engine that the workload gets, before any trial.
pub(crate) fn initial(workload: &Workload, available: &Available) -> EngineChoice {
    let is_direct = workload.path == IoPath::Direct;
    // One at a time needs no thread of its own.
    let threads = if workload.queue_depth == 1 { EngineKind::Sync } else { EngineKind::Threads };
    let (engine, reasons) = match (workload.engine, &available.ring, &available.aio) {
        (EngineKind::Uring, Err(ring), Ok(())) if is_direct => (EngineKind::Aio, vec![ring.clone()]),
        (EngineKind::Uring, Err(ring), Err(aio)) if is_direct => (threads, vec![ring.clone(), aio.clone()]),
        (EngineKind::Uring, Err(ring), _) => (threads, vec![ring.clone()]),
        (EngineKind::Aio, _, _) if !is_direct => {
            (threads, vec!["Linux AIO waits within io_submit for buffered I/O".into()])
        }
        (EngineKind::Aio, _, Err(aio)) => (threads, vec![aio.clone()]),
        (engine, _, _) => (engine, Vec::new()),
    };
    let why = (!reasons.is_empty()).then(|| format!("{}: {}", reasons.join(", and "), issues(engine)));
    EngineChoice { engine, issuing: Issuing { why, ..Issuing::default() } }
}

fn issues(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Sync => "the sync engine issues the I/O, one at a time as asked",
        EngineKind::Threads => "threads issue the I/O, one for each in flight",
        EngineKind::Aio => "Linux AIO issues the I/O",
        EngineKind::Uring => "io_uring issues the I/O",
        EngineKind::Sim => "the simulated host issues the I/O",
    }
}

/// What is to be said where an engine of threads has fewer than the depth asks for.
pub(crate) fn fewer_threads(workload: &Workload) -> Option<String> {
    let (depth, streams) = (workload.queue_depth as usize, workload.streams as usize);
    let size = thread_pool::size(depth, streams);
    (size < depth).then(|| {
        format!(
            "the engine of threads has at most {} threads in all: {} of {depth} I/Os are in flight per stream",
            thread_pool::MAX_THREADS,
            size
        )
    })
}

/// Engines that are tried, in the order in which they are preferred where they are alike.
pub(crate) const TRIAL_ENGINES: [EngineKind; 3] = [EngineKind::Aio, EngineKind::Uring, EngineKind::Threads];

/// Rates and processor times closer than this are alike: a trial of a few milliseconds shows no more.
const ALIKE: f64 = 0.1;

/// The engine that the trials speak for: the fastest; among those that are about as fast the one that takes the least
/// processor time; among those alike in both the first of [`TRIED`]. `None` where nothing completed.
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

/// Why the trials led away from `io_uring`.
pub(crate) fn why_chosen(engine: EngineKind, tried: usize) -> String {
    let lead = "the target takes no requests without waiting (no RWF_NOWAIT)";
    if tried < 2 {
        return format!("{lead} and is slow enough that issuing costs nothing beside it: {}", issues(engine));
    }
    format!("{lead}, and this was the fastest of {tried} engines in a short trial: {}", issues(engine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(engine: EngineKind, path: IoPath, queue_depth: u32) -> Workload {
        Workload { engine, path, queue_depth, ..Workload::sequential_read(1 << 20) }
    }

    #[test]
    fn every_engine_has_one_that_takes_over() {
        use EngineKind::{Aio, Sync, Threads, Uring};
        use IoPath::{Buffered, Direct};
        let yes = || Ok(());
        let no = |text: &str| Err(text.to_owned());
        for (engine, path, depth, ring, aio, expected, why) in [
            (Uring, Direct, 32, yes(), yes(), Uring, None),
            (Uring, Direct, 32, no("r"), yes(), Aio, Some("r: Linux AIO issues the I/O")),
            (
                Uring,
                Buffered,
                32,
                no("r"),
                yes(),
                Threads,
                Some("r: threads issue the I/O, one for each in flight"),
            ),
            (
                Uring,
                Direct,
                32,
                no("r"),
                no("a"),
                Threads,
                Some("r, and a: threads issue the I/O, one for each in flight"),
            ),
            (
                Uring,
                Buffered,
                1,
                no("r"),
                yes(),
                Sync,
                Some("r: the sync engine issues the I/O, one at a time as asked"),
            ),
            (Uring, Direct, 1, no("r"), yes(), Aio, Some("r: Linux AIO issues the I/O")),
            (Aio, Direct, 32, yes(), yes(), Aio, None),
            (
                Aio,
                Direct,
                32,
                yes(),
                no("a"),
                Threads,
                Some("a: threads issue the I/O, one for each in flight"),
            ),
            (
                Aio,
                Buffered,
                8,
                yes(),
                yes(),
                Threads,
                Some(
                    "Linux AIO waits within io_submit for buffered I/O: threads issue the I/O, one for each in flight",
                ),
            ),
            (Threads, Direct, 8, yes(), yes(), Threads, None),
            (Sync, Buffered, 1, yes(), yes(), Sync, None),
        ] {
            let choice = initial(&workload(engine, path, depth), &Available { ring, aio });
            assert_eq!(
                (choice.engine, choice.issuing.why.as_deref()),
                (expected, why),
                "{engine} {path} {depth}"
            );
        }
    }

    #[test]
    fn a_refusal_is_seen_and_named() {
        let contexts = Contexts::default();
        let refused = |workload: &Workload| {
            let aio = |depth| aio_available(&contexts, AioSource::Forbidden, depth);
            Available::of(workload, || ring_available(RingSource::Forbidden), aio)
        };
        let available = refused(&workload(EngineKind::Uring, IoPath::Direct, 4));
        assert_eq!(available.ring, Err("io_uring is forbidden here (Operation not permitted)".into()));
        assert_eq!(available.aio, Err("Linux AIO is forbidden here (Operation not permitted)".into()));
        let sync = workload(EngineKind::Sync, IoPath::Direct, 1);
        assert_eq!(refused(&sync), Available { ring: Ok(()), aio: Ok(()) });
        // Who can have a ring does not ask for AIO.
        let with_ring =
            Available::of(&workload(EngineKind::Uring, IoPath::Direct, 4), || Ok(()), |_| unreachable!());
        assert_eq!(with_ring, Available { ring: Ok(()), aio: Ok(()) });
    }

    #[test]
    fn the_limit_of_threads_is_said() {
        assert_eq!(fewer_threads(&workload(EngineKind::Threads, IoPath::Direct, 1024)), None);
        let said = fewer_threads(&workload(EngineKind::Threads, IoPath::Direct, 4096)).unwrap();
        assert!(said.contains("at most 1024 threads") && said.contains("1024 of 4096"), "{said}");
    }

    fn trial(engine: EngineKind, ops: u64, cpu_ns: u64) -> Trial {
        Trial { engine, ops, elapsed_ns: 4_000_000, cpu_ns: cpu_ns * ops, within_submit: None }
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
