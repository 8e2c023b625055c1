//! `rdsk load`, and the words of one job as flags.

use super::Measurement;
use super::common::{Common, MAX_TIME};
use super::fio::{self, FioArgs};
use super::job_text::{refuse_as_targets, text_of};
use crate::grammar::{COMMON, EXPERT, WHAT};
use crate::usage::usage;
use crate::value;
use clap::Args;
use rdsk_experiment::LoadRuns;
use rdsk_loads::{JobWords, LoadError};
use rdsk_model::{Experiment, LoadJob, Op, Problem, ProblemKind, Promise};
use rdsk_units::Nanos;

/// Requests in flight per stream at most while the highest rate is looked for.
const OPEN_DEPTH: u32 = 128;
/// No rate of a load is so precise that its time is cut: percentiles want all of it.
const PRECISION: f64 = 1e-6;

const EXAMPLES: &str = "Examples:
  rdsk load --rw randrw --mix 70 --bs 4k --iodepth 8 --streams 4
      seven reads for three writes, 32 in flight
  rdsk load --rw randread --rate 5k
      5,000 reads per second, whether or not the disk keeps up
  rdsk load --rw randread --p99 1ms
      the most reads per second of which 99% take 1 ms at most
  rdsk load --rw write --bs 2300 --path buffered --fdatasync 1 --fresh
      a log: each append is on disk before the next
  rdsk load ./jobs.toml /mnt/data
      several jobs at once, described in a file
  rdsk load --fio ./jobs.fio /mnt/data
      the jobs of a file of fio, there";

/// Run a load that you describe: a mix, sizes, a rate, flushes; one job or several at once.
///
/// Without a rate, the next request is issued when one completes (a closed loop), so that a slow moment is seen by few
/// requests. With --rate, requests arrive whether or not earlier ones are done (an open loop), and latencies count from
/// the arrival, as users of a service see them. A TOML file holds [[job]] tables with the same words as the flags.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("targets", |arg| arg.help("A file of jobs (.toml), then directories, files, devices or sim:NAME [default: .]"))
)]
pub(crate) struct Load {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    fio: FioArgs,
}

/// The words of one job.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = WHAT)]
pub(super) struct JobArgs {
    /// read, write, randread, randwrite, rw or randrw; randread,write where the two differ; trim, randtrim, trimwrite or randtrimwrite [default: randread]
    #[arg(long, value_name = "KIND", help_heading = COMMON)]
    rw: Option<String>,
    /// Percent of the requests that are trims, which discard what is there; reads and writes share the rest
    #[arg(long, value_name = "PERCENT")]
    trims: Option<u32>,
    /// Percent of the requests that are reads [default: 50]
    #[arg(long, value_name = "PERCENT", help_heading = COMMON)]
    mix: Option<u32>,
    /// Size of the requests: 4k, a range 4k-64k, or shares 4k/70:64k/30; READS,WRITES where the two differ [default: 4k]
    #[arg(long, value_name = "SIZES", help_heading = COMMON)]
    bs: Option<String>,
    /// Requests in flight per stream [default: 1]
    #[arg(long, value_name = "N", help_heading = COMMON)]
    iodepth: Option<u32>,
    /// Threads that issue requests [default: 1]
    #[arg(long, value_name = "N", help_heading = COMMON)]
    streams: Option<u32>,
    /// Requests per second of all streams together, such as 5k: an open loop
    #[arg(long, value_name = "RATE", help_heading = COMMON)]
    rate: Option<String>,
    /// Find the highest rate at which 99% of the requests take no longer than this
    #[arg(long, value_name = "TIME", help_heading = COMMON, conflicts_with = "rate", value_parser = value::time(Nanos(1), MAX_TIME))]
    p99: Option<u64>,
    /// As --p99, for 99.9% of the requests
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "p99"], value_parser = value::time(Nanos(1), MAX_TIME))]
    p999: Option<u64>,
    /// How the requests of a rate arrive: poisson or constant [default: poisson]
    #[arg(long, value_name = "WORD", conflicts_with_all = ["p99", "p999"])]
    arrivals: Option<String>,
    /// direct, buffered or dontcache [default: direct]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Call fsync after so many writes
    #[arg(long, value_name = "N", conflicts_with = "fdatasync")]
    fsync: Option<u32>,
    /// Call fdatasync after so many writes
    #[arg(long, value_name = "N")]
    fdatasync: Option<u32>,
    /// Open with O_DSYNC: each write returns when it is on disk
    #[arg(long)]
    dsync: bool,
    /// Offsets: uniform, once, zipf:1.2, pareto:0.2, normal:10 or zoned:60/10:40/90 [default: uniform]
    #[arg(long, value_name = "RULE")]
    distribution: Option<String>,
    /// Count nothing in the first so much of the load: requests before it are in no rate and no latency
    #[arg(long, value_name = "TIME", conflicts_with_all = ["p99", "p999"])]
    ramp: Option<String>,
    /// Rest of a stream after each request
    #[arg(long, value_name = "TIME", help_heading = EXPERT)]
    think: Option<String>,
    /// Write into newly allocated space, as logs do
    #[arg(long)]
    fresh: bool,
    /// Give each stream its own part of the target
    #[arg(long, help_heading = EXPERT)]
    apart: bool,
}

impl JobArgs {
    fn words(&self) -> JobWords {
        let Self { rw, mix, bs, iodepth, streams, rate, arrivals, path, .. } = self.clone();
        JobWords {
            name: Some("load".into()),
            rw,
            mix,
            trims: self.trims,
            bs,
            iodepth: iodepth.or(self.promise().map(|_| OPEN_DEPTH)),
            streams,
            rate,
            arrivals,
            path,
            fsync: self.fsync,
            fdatasync: self.fdatasync,
            dsync: Some(self.dsync),
            distribution: self.distribution.clone(),
            think: self.think.clone(),
            ramp: self.ramp.clone(),
            fresh: Some(self.fresh),
            apart: Some(self.apart),
            ..JobWords::default()
        }
    }

    /// What is held while the highest rate is looked for.
    fn promise(&self) -> Option<Promise> {
        let held = |percent, at_most_ns| Promise { percent, at_most_ns };
        self.p99.map(|ns| held(99.0, ns)).or_else(|| self.p999.map(|ns| held(99.9, ns)))
    }

    /// Whether the line describes no job.
    fn is_empty(&self) -> bool {
        self.words() == Self::default().words()
    }
}

impl Load {
    /// # Errors
    /// When a word of a job means nothing, or a file describes none.
    pub(super) fn measurement(mut self) -> Result<Measurement, Problem> {
        if let Some(name) = self.fio.fio.clone() {
            return self.of_job_file(&name);
        }
        let is_document = |name: &String| name.ends_with(".toml") && !name.starts_with("sim:");
        let mut load_runs = LoadRuns::Repeated;
        let phases = match self.common.targets.first().filter(|name| is_document(name)) {
            Some(_) if !self.job.is_empty() => {
                return Err(usage(
                    "a file of jobs and flags of a job conflict",
                    "describe all jobs in the file, or the one job by flags",
                ));
            }
            Some(_) => {
                let name = self.common.targets.remove(0);
                let document = rdsk_loads::load(&text_of(&name)?).map_err(|error| problem(&name, &error))?;
                load_runs = if document.is_repeated { LoadRuns::Repeated } else { LoadRuns::Once };
                document.phases
            }
            None => vec![vec![self.job.words().job(1).map_err(|error| flag_problem(&error))?]],
        };
        refuse_as_targets(&self.common.targets, order)?;
        let promise = self.job.promise();
        if promise.is_some() && self.common.targets.len() > 1 {
            return Err(usage(
                "the highest rate is looked for on one target",
                "run rdsk load for each target by itself",
            ));
        }
        let mut asked = Measurement::new(Experiment::Load, self.common);
        set(&mut asked, phases);
        asked.options.promise = promise;
        asked.options.load_runs = load_runs;
        Ok(asked)
    }

    fn of_job_file(mut self, name: &str) -> Result<Measurement, Problem> {
        self.refuse_both()?;
        refuse_as_targets(&self.common.targets, order)?;
        let (load, target) = fio::load(name, &self.common.targets)?;
        self.common.targets = vec![target];
        let mut asked = Measurement::new(Experiment::Load, self.common);
        set(&mut asked, load.phases);
        asked.options.load_runs = LoadRuns::Once;
        asked.options.load_notes = load.notes;
        Ok(asked)
    }

    fn refuse_both(&self) -> Result<(), Problem> {
        if self.job.is_empty() && self.job.promise().is_none() {
            return Ok(());
        }
        let hint = "describe all jobs in the file, or the one job by flags";
        Err(usage("a job file of fio and flags of a job conflict", hint))
    }

    /// What is understood of a job file, where that is asked.
    ///
    /// # Errors
    /// As [`Load::measurement`].
    pub(super) fn listing(&self) -> Result<Option<String>, Problem> {
        let Some(name) = self.fio.fio.as_ref().filter(|_| self.fio.showcmd) else { return Ok(None) };
        self.refuse_both()?;
        let (load, _) = fio::load(name, &self.common.targets)?;
        let text = load.to_toml().map_err(|error| problem(name, &LoadError::Document(error.to_string())))?;
        Ok(Some(text))
    }
}

/// Where the file of this name stands on a line.
fn order(name: &str) -> String {
    if name.ends_with(".fio") {
        format!("a job file of fio stands behind --fio: rdsk load --fio {name} TARGET")
    } else {
        format!("a file of jobs stands before the targets: rdsk load {name} TARGET")
    }
}

/// Sets what a load plans.
pub(super) fn set(asked: &mut Measurement, phases: Vec<Vec<LoadJob>>) {
    let writes = phases.iter().flatten().any(LoadJob::changes_data);
    asked.options.ops = Some(if writes { vec![Op::Read, Op::Write] } else { vec![Op::Read] });
    asked.options.phases = phases;
    asked.options.precision = PRECISION;
}

/// What is wrong with a file.
pub(super) fn problem(name: &str, error: &LoadError) -> Problem {
    let text = format!("{name}: {error}");
    Problem::new(ProblemKind::Usage, "bad-load", text, "rdsk load --help names the words of a job")
}

fn flag_problem(error: &LoadError) -> Problem {
    let text = match error {
        LoadError::Value { key, why } => format!("--{key}: {why}"),
        LoadError::Job { why, .. } => format!("this job {why}"),
        LoadError::Document(why) => why.clone(),
    };
    Problem::new(ProblemKind::Usage, "bad-load", text, "rdsk load --help explains the flags of a job")
}
