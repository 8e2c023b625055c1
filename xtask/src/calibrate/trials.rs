//! Runs the program's own questions on simulated systems, many times with other seeds, on all processors at once. It judges
//! nothing.

use super::systems::Luns;
use anyhow::{Result, ensure};
use rdsk_experiment::{IN_RUN, PlanOptions, Request, execute};
use rdsk_model::{Event, Experiment, Record, StopFlag, Watch};
use rdsk_targets::{Permission, Roots};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What all trials share: a directory for their systems, which goes away with it, and the signal that ends them.
pub(crate) struct Campaign {
    directory: TempDir,
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl Campaign {
    pub(crate) fn new(interrupted: Arc<AtomicBool>) -> Result<Self> {
        Ok(Self { directory: TempDir::with_prefix("rdsk-calibrate-")?, interrupted })
    }

    /// The target that a system is.
    pub(crate) fn system(&self, name: &str, luns: &Luns) -> Result<String> {
        luns.write(self.directory.path(), name)
    }

    /// A file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// One request, repeated.
pub(crate) struct Trial {
    /// Names of targets, as on the command line.
    pub(crate) targets: Vec<String>,
    pub(crate) experiments: &'static [Experiment],
    pub(crate) options: PlanOptions,
}

impl Trial {
    /// `rdsk run TARGET`.
    pub(crate) fn run(target: &str) -> Self {
        Self { targets: vec![target.to_owned()], experiments: IN_RUN, options: PlanOptions::default() }
    }

    /// The Record of one seed.
    pub(crate) fn record(&self, seed: u64) -> Result<Record> {
        let request = Request {
            command: vec!["rdsk".into()],
            label: None,
            experiments: self.experiments.to_vec(),
            targets: self.targets.clone(),
            permission: Permission::default(),
            size_bytes: None,
            resume: None,
            options: PlanOptions { seed: Some(seed), ..self.options.clone() },
            roots: Roots::default(),
            stop: StopFlag::new(),
        };
        let record = execute(&request, &mut Silent);
        ensure!(record.error.is_none(), "{:?}: {:?}", self.targets, record.error);
        Ok(record)
    }

    /// What `read` sees in the Record of each seed, in their order; fewer after an interruption.
    pub(crate) fn each<T: Send>(
        &self,
        seeds: Range<u64>,
        interrupted: &AtomicBool,
        read: impl Fn(&Record) -> T + Sync,
    ) -> Result<Vec<T>> {
        on_all_processors(seeds, interrupted, |seed| self.record(seed).map(|record| read(&record)))
    }

    /// The same of pairs of runs: this one with the seed, and each of the others with a seed of its own.
    pub(crate) fn each_pair<T: Send>(
        &self,
        others: &[Self],
        seeds: Range<u64>,
        interrupted: &AtomicBool,
        read: impl Fn(&Record, &Record) -> T + Sync,
    ) -> Result<Vec<Vec<T>>> {
        on_all_processors(seeds, interrupted, |seed| {
            let one = self.record(seed)?;
            let second = seed.saturating_add(OTHER_SEED);
            others.iter().map(|other| Ok(read(&one, &other.record(second)?))).collect()
        })
    }

    /// What `read` sees in so many runs of two command lines in turn, both of them this one, for each seed; each run has a seed of its
    /// own, and begins a minute after the one before it.
    pub(crate) fn each_in_turn<T: Send>(
        &self,
        pairs: usize,
        seeds: Range<u64>,
        interrupted: &AtomicBool,
        read: impl Fn(&[Record], &[Record]) -> T + Sync,
    ) -> Result<Vec<T>> {
        let run = |seed: u64, pair: usize, side: usize| -> Result<Record> {
            let place = 2 * pair + side;
            let mut record = self.record(seed.saturating_add(OTHER_SEED.saturating_mul(place as u64)))?;
            record.started_at = format!("2026-01-01T10:{place:02}:00Z");
            Ok(record)
        };
        on_all_processors(seeds, interrupted, |seed| {
            let side = |side| (0..pairs).map(|pair| run(seed, pair, side)).collect::<Result<Vec<_>>>();
            Ok(read(&side(0)?, &side(1)?))
        })
    }
}

/// What each further run of a trial adds to the seed; no campaign has so many runs.
const OTHER_SEED: u64 = 1_000_000;

fn on_all_processors<T: Send>(
    seeds: Range<u64>,
    interrupted: &AtomicBool,
    one: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicU64::new(seeds.start);
    let seen: Mutex<BTreeMap<u64, Result<T>>> = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || interrupted.load(Ordering::Relaxed) {
                return;
            }
            let found = one(seed);
            seen.lock().expect("no trial panics while it holds the lock").insert(seed, found);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let seen = seen.into_inner().expect("all workers have ended");
    seen.into_values().collect()
}

struct Silent;

impl Watch for Silent {
    fn event(&mut self, _: &Event<'_>) {}
}

/// The middle value; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    rdsk_stats::median(values).unwrap_or(f64::NAN)
}
