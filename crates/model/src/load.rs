//! A load: jobs that run at once on one target, each with its mix of reads and writes, its block sizes, offsets, rate and flushes. Pure
//! data; it decides nothing but whether a job contradicts itself.

use crate::contradiction::Contradiction;
use crate::requests::{BlockShare, OffsetRule, Requests};
use crate::workload_words::{IoPath, StreamRange, words};
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// How the requests of a job with a rate are spread in time.
    Arrivals {
        /// Equal gaps.
        Constant = "constant",
        /// Independent of each other: exponential gaps, of which the mean is that of the rate.
        Poisson = "poisson",
    }
);
words!(
    /// The call that makes what was written durable.
    FlushCall {
        /// `fdatasync(2)`.
        Fdatasync = "fdatasync",
        /// `fsync(2)`.
        Fsync = "fsync",
    }
);

/// The highest rate of a stream: ten times what any loop issues.
const MAX_PER_S: f64 = 1e7;

/// A rate that requests arrive at, whether or not earlier ones are done: an open loop. Latencies count from the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Requests per second of each stream; positive.
    pub per_s: f64,
    /// How they are spread in time.
    pub arrivals: Arrivals,
}

/// A flush after so many writes of a stream, when all of these are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flush {
    /// Writes from one flush to the next, at least 1.
    pub every: u32,
    /// The call.
    pub call: FlushCall,
}

/// One job of a load. All jobs of a load begin at once, but for their delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadJob {
    /// Its name, unique in the load.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub name: String,
    /// Its reads; `None` without any.
    pub reads: Option<Requests>,
    /// Its writes; `None` without any.
    pub writes: Option<Requests>,
    /// Its trims, which discard what the target holds; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trims: Option<Requests>,
    /// Percent of the requests that are reads, drawn for each anew, where it has both.
    pub read_percent: u32,
    /// Percent of the requests that are trims, drawn for each anew; reads and writes share the rest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_percent: u32,
    /// Whether each write follows a trim of the blocks that it goes to.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trims_before_writes: bool,
    /// Threads, at least 1.
    pub streams: u32,
    /// Requests in flight per stream, at least 1.
    pub queue_depth: u32,
    /// Past the page cache or through it.
    pub path: IoPath,
    /// Whether each write returns only when it is durable (`O_DSYNC`).
    pub dsync: bool,
    /// Flushes between writes; `None` without any.
    pub flush: Option<Flush>,
    /// `None` issues the next request when one completes: a closed loop.
    pub rate: Option<Rate>,
    /// Rest of a stream after every `think_every` requests.
    pub think_ns: u64,
    /// Requests from one rest to the next, at least 1.
    pub think_every: u32,
    /// When its streams begin, from the start of the load.
    pub delay_ns: u64,
    /// Time from the start of the load in which its requests are not counted, in a cell's first visit; the same for all jobs of a load.
    #[serde(default, skip_serializing_if = "is_zero_ns")]
    pub ramp_ns: u64,
    /// Bytes after which a stream ends, those of the ramp included; `None` for as long as the load goes on.
    pub max_bytes: Option<u64>,
    /// Time after which a stream ends, from its own start or the end of the ramp; `None` for as long as the load goes on.
    pub lasts_ns: Option<u64>,
    /// First byte of its span on the target.
    pub offset_bytes: u64,
    /// Length of its span.
    pub span_bytes: u64,
    /// Whether each of its streams has a part of the span.
    pub range: StreamRange,
    /// Whether its writes are the first to their blocks: before each repeat, the space of its span in the test file is given back and
    /// allocated anew, as logs and fio allocate theirs. A sequence then ends with the span.
    pub fresh_space: bool,
    /// Whether the kernel is given the order of the reads (`posix_fadvise(2)`), by which it reads ahead: further in sequences, not at all
    /// otherwise.
    pub advised: bool,
    /// Percent of the bytes of each write that a compressing device or filesystem saves, below 100.
    pub compressible_percent: u32,
}

impl LoadJob {
    /// A job to start from: random direct reads of 4 KiB over the span, one stream with one request in flight.
    pub fn random_reads(name: impl Into<String>, span_bytes: u64) -> Self {
        Self {
            name: name.into(),
            reads: Some(Requests::new(vec![BlockShare::fixed(4096)], OffsetRule::Uniform)),
            writes: None,
            trims: None,
            read_percent: 100,
            trim_percent: 0,
            trims_before_writes: false,
            streams: 1,
            queue_depth: 1,
            path: IoPath::Direct,
            dsync: false,
            flush: None,
            rate: None,
            think_ns: 0,
            think_every: 1,
            delay_ns: 0,
            ramp_ns: 0,
            max_bytes: None,
            lasts_ns: None,
            offset_bytes: 0,
            span_bytes,
            range: StreamRange::Shared,
            fresh_space: false,
            advised: false,
            compressible_percent: 0,
        }
    }

    /// Whether it changes what the target holds.
    pub fn changes_data(&self) -> bool {
        self.writes.is_some() || self.trims.is_some()
    }

    /// Whether it discards what the target holds.
    pub fn has_trims(&self) -> bool {
        self.trims.is_some() || self.trims_before_writes
    }

    /// What its requests are like, kind by kind.
    pub fn kinds(&self) -> impl Iterator<Item = &Requests> {
        self.reads.iter().chain(&self.writes).chain(&self.trims)
    }

    /// The largest request in bytes.
    pub fn max_block_bytes(&self) -> u64 {
        self.kinds().map(Requests::max_bytes).max().unwrap_or(1)
    }

    /// The smallest request in bytes.
    pub fn min_block_bytes(&self) -> u64 {
        self.kinds().map(Requests::min_bytes).min().unwrap_or(1)
    }

    /// When a stream that began at a time ends, at the latest, in a load that ends at another.
    pub fn deadline_ns(&self, began_ns: u64, load_ends_ns: u64) -> u64 {
        self.lasts_ns.map_or(load_ends_ns, |lasts_ns| load_ends_ns.min(began_ns.saturating_add(lasts_ns)))
    }

    /// Requests per second of all its streams; `None` in a closed loop.
    pub fn offered_per_s(&self) -> Option<f64> {
        self.rate.map(|rate| rate.per_s * f64::from(self.streams))
    }

    /// The job without the kinds that have none of its requests.
    #[must_use]
    pub fn without_empty_side(mut self) -> Self {
        match self.trim_percent {
            100 => (self.reads, self.writes) = (None, None),
            0 => self.trims = None,
            _ => {}
        }
        if self.trim_percent == 100 && self.trims.is_some() {
            (self.flush, self.dsync, self.fresh_space) = (None, false, false);
        } else if self.read_percent == 100 && self.reads.is_some() {
            self.writes = None;
            (self.flush, self.dsync, self.fresh_space) = (None, false, false);
        } else if self.read_percent == 0 && self.writes.is_some() {
            self.reads = None;
        }
        self
    }

    /// Whether it has as many requests in flight as it may, all the time: its depth is no limit of a rate, and it neither flushes nor rests.
    pub fn keeps_its_depth(&self) -> bool {
        let is_whole = self.max_bytes.is_none() && self.lasts_ns.is_none() && self.delay_ns == 0;
        self.rate.is_none() && self.flush.is_none() && self.think_ns == 0 && is_whole
    }

    /// Whether the threads of a stream may issue its requests: a flush would have to wait for all that the others have in flight.
    pub fn may_be_shared_by_threads(&self) -> bool {
        self.flush.is_none()
    }

    /// Why it contradicts itself, in words.
    ///
    /// # Errors
    /// The first contradiction, as the end of a sentence that names the job.
    pub fn check(&self) -> Result<(), Contradiction> {
        let sides: Vec<&Requests> = self.kinds().collect();
        let shares = || sides.iter().flat_map(|side| &side.blocks);
        if sides.is_empty() || sides.iter().any(|side| side.blocks.is_empty()) {
            return Err("asks for no requests".into());
        }
        if self.read_percent > 100 || self.trim_percent > 100 || self.compressible_percent >= 100 {
            return Err("has a percentage out of range".into());
        }
        if self.streams == 0 || self.queue_depth == 0 {
            return Err("has no streams or nothing in flight".into());
        }
        if shares().any(|share| share.min_bytes == 0 || share.max_bytes < share.min_bytes) {
            return Err("has block sizes of 0, or a range that ends before it begins".into());
        }
        if shares().any(|share| !(share.weight > 0.0 && share.weight.is_finite())) {
            return Err("has a block size without requests".into());
        }
        if let Some(rate) = self.rate
            && !(rate.per_s > 0.0 && rate.per_s <= MAX_PER_S)
        {
            let range = format!("between 0 and {MAX_PER_S:e} requests per second of a stream");
            return Err(Contradiction(format!("has a rate that is not {range}")));
        }
        if self.flush.is_some_and(|flush| flush.every == 0) {
            return Err("flushes after 0 writes".into());
        }
        if self.think_every == 0 || self.lasts_ns == Some(0) {
            return Err("rests after 0 requests, or ends when it begins".into());
        }
        if self.think_ns > 0 && self.queue_depth > 1 {
            return Err("rests between requests, of which then only one can be in flight".into());
        }
        if self.writes.is_none() && (self.flush.is_some() || self.dsync || self.fresh_space) {
            return Err("writes nothing, which leaves nothing to flush and needs no space".into());
        }
        if self.has_trims() && self.queue_depth > 1 && self.flush.is_some() {
            return Err("trims with several requests in flight, which no flush waits for".into());
        }
        if self.trims_before_writes && self.writes.is_none() {
            return Err("trims before writes, and has no writes".into());
        }
        if self.ramp_ns > 0 && self.delay_ns > 0 {
            return Err("begins late and has a ramp, which begins with the load".into());
        }
        sides.iter().try_for_each(|side| side.check())
    }
}

/// Why jobs cannot run at once, in words.
///
/// # Errors
/// When only some of them have a ramp, or another one.
pub fn check_together(jobs: &[LoadJob]) -> Result<(), Contradiction> {
    let mut ramps = jobs.iter().map(|job| job.ramp_ns);
    let first = ramps.next();
    if ramps.all(|ramp| Some(ramp) == first) {
        Ok(())
    } else {
        Err("jobs that run at once have the same ramp, after which all of them are counted".into())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(switch: &bool) -> bool {
    !*switch
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero_ns(ns: &u64) -> bool {
    *ns == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Zone;

    fn writes(blocks: Vec<BlockShare>, offsets: OffsetRule) -> LoadJob {
        let writes = Some(Requests::new(blocks, offsets));
        LoadJob { reads: None, writes, read_percent: 0, ..LoadJob::random_reads("log", 1 << 20) }
    }

    #[test]
    fn a_job_that_contradicts_itself_is_refused() {
        let fits = writes(vec![BlockShare::fixed(2300)], OffsetRule::Sequential);
        assert_eq!(fits.check(), Ok(()));
        let says = |job: LoadJob, words: &str| {
            let why = job.check().expect_err(words);
            assert!(why.to_string().contains(words), "{why}");
        };
        says(LoadJob { writes: None, ..fits.clone() }, "no requests");
        says(LoadJob { read_percent: 101, ..fits.clone() }, "percentage");
        says(LoadJob { queue_depth: 0, ..fits.clone() }, "in flight");
        says(
            writes(vec![BlockShare { max_bytes: 511, ..BlockShare::fixed(512) }], OffsetRule::Once),
            "range",
        );
        says(
            LoadJob { rate: Some(Rate { per_s: f64::NAN, arrivals: Arrivals::Poisson }), ..fits.clone() },
            "rate",
        );
        says(LoadJob { flush: Some(Flush { every: 0, call: FlushCall::Fsync }), ..fits }, "after 0 writes");
        let deep = LoadJob { queue_depth: 2, think_ns: 1, ..LoadJob::random_reads("r", 4096) };
        says(deep.clone(), "only one can be in flight");
        says(LoadJob { queue_depth: 1, think_every: 0, ..deep.clone() }, "after 0 requests");
        says(LoadJob { think_ns: 0, lasts_ns: Some(0), ..deep }, "ends when it begins");
        says(LoadJob { fresh_space: true, ..LoadJob::random_reads("r", 4096) }, "writes nothing");
        says(LoadJob { trims_before_writes: true, ..LoadJob::random_reads("r", 4096) }, "has no writes");
        let zones = |parts: &[(f64, f64)]| {
            let zone = |&(access_percent, span_percent)| Zone { access_percent, span_percent };
            writes(
                vec![BlockShare::fixed(512)],
                OffsetRule::Zoned { zones: parts.iter().map(zone).collect() },
            )
        };
        assert_eq!(zones(&[(90.0, 10.0), (10.0, 90.0)]).check(), Ok(()));
        says(zones(&[(90.0, 10.0), (20.0, 90.0)]), "100%");
        says(
            writes(vec![BlockShare::fixed(512)], OffsetRule::Normal { deviation_percent: 1e12 }),
            "deviation",
        );
        let fast = Some(Rate { per_s: 1e12, arrivals: Arrivals::Constant });
        says(LoadJob { rate: fast, ..LoadJob::random_reads("r", 4096) }, "a rate that is not between");
        says(writes(vec![BlockShare::fixed(512)], OffsetRule::Pareto { skew: 0.5 }), "skew");
        let skips = |bytes: &[u64], skip_bytes| {
            writes(
                bytes.iter().map(|&bytes| BlockShare::fixed(bytes)).collect(),
                OffsetRule::Skips { skip_bytes },
            )
        };
        assert_eq!((skips(&[512], 512).check(), skips(&[512], -1024).check()), (Ok(()), Ok(())));
        says(skips(&[512, 1024], 512), "several sizes");
        says(skips(&[512], -511), "less than a request");
        let late = LoadJob { ramp_ns: 1, delay_ns: 1, ..LoadJob::random_reads("r", 4096) };
        says(late.clone(), "has a ramp");
        let ramped = LoadJob { delay_ns: 0, ..late };
        assert_eq!(check_together(&[ramped.clone(), ramped.clone()]), Ok(()));
        assert!(check_together(&[ramped, LoadJob::random_reads("r", 4096)]).is_err());
    }

    #[test]
    fn a_job_keeps_its_words_in_json() {
        let job = LoadJob {
            rate: Some(Rate { per_s: 12.5, arrivals: Arrivals::Poisson }),
            flush: Some(Flush { every: 1, call: FlushCall::Fdatasync }),
            ..writes(vec![BlockShare::fixed(2300)], OffsetRule::Zipf { theta: 1.2 })
        };
        let json = serde_json::to_value(&job).unwrap();
        assert_eq!(json["writes"]["offsets"], serde_json::json!({"kind": "zipf", "theta": 1.2}));
        assert_eq!(serde_json::from_value::<LoadJob>(json).unwrap(), job);
    }
}
