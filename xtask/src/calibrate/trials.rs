//! Runs the program's own questions on simulated systems, many times with other seeds, on all processors at once. It judges
//! nothing.

use super::systems::Luns;
use anyhow::{Result, ensure};
use rdsk_experiment::{IN_RUN, PlanOptions, Request, execute};
use rdsk_model::{Event, Experiment, Record, StopFlag, Watch};
use rdsk_targets::{Permission, Roots};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What all trials share: a directory for their systems, which goes away with it, and the signal that ends them.
pub(crate) struct Campaign {
    directory: TempDir,
    interrupted: Arc<AtomicBool>,
}

impl Campaign {
    pub(crate) fn new(interrupted: Arc<AtomicBool>) -> Result<Self> {
        Ok(Self { directory: TempDir::with_prefix("rdsk-calibrate-")?, interrupted })
    }

    /// The target that a system is.
    pub(crate) fn system(&self, name: &str, luns: &Luns) -> Result<String> {
        luns.write(self.directory.path(), name)
    }

    /// # Errors
    /// At an interruption.
    pub(crate) fn go_on(&self) -> Result<()> {
        ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }

    /// What `run` gives for each seed, in their order, as many at once as there are processors.
    ///
    /// # Errors
    /// At an interruption, and when a run fails.
    pub(crate) fn each<T: Send>(
        &self,
        seeds: &Range<u64>,
        run: impl Fn(u64) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let next = AtomicU64::new(seeds.start);
        let results: Mutex<BTreeMap<u64, Result<T>>> = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end || self.go_on().is_err() {
                    return;
                }
                let result = run(seed);
                results.lock().expect("no trial panics while it holds the lock").insert(seed, result);
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        self.go_on()?;
        let results = results.into_inner().expect("all workers have ended");
        results.into_values().collect()
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

    /// What `read` sees in the Record of each seed.
    pub(crate) fn each<T: Send>(
        &self,
        campaign: &Campaign,
        seeds: &Range<u64>,
        read: impl Fn(&Record) -> T + Sync,
    ) -> Result<Vec<T>> {
        campaign.each(seeds, |seed| self.record(seed).map(|record| read(&record)))
    }
}

struct Silent;

impl Watch for Silent {
    fn event(&mut self, _: &Event<'_>) {}
}

/// The middle value; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    rdsk_stats::median(values).unwrap_or(f64::NAN)
}
