//! The words that a job is written with, from the job: what [`JobWords::job`] reads as the same job again. It judges nothing.

use crate::job_words::{JobWords, OPEN_DEPTH};
use rdsk_model::{Arrivals, BlockShare, FlushCall, IoPath, LoadJob, OffsetRule, Requests, StreamRange};

const NS_PER_MS: u64 = 1_000_000;

impl JobWords {
    /// The words of a job of a phase; what has its default is left out.
    pub fn of(job: &LoadJob, phase: u32) -> Self {
        let rule = rule_of(job);
        let is_mix = job.reads.is_some() && job.writes.is_some();
        let flush = |call| job.flush.filter(|flush| flush.call == call).map(|flush| flush.every);
        let default_depth = if job.rate.is_some() { OPEN_DEPTH } else { 1 };
        Self {
            name: Some(job.name.clone()),
            phase: Some(phase),
            rw: Some(kind_words(job)),
            trims: unless(job.trim_percent, 0).filter(|_| job.reads.is_some() || job.writes.is_some()),
            mix: is_mix.then_some(job.read_percent),
            bs: Some(sizes(job)),
            iodepth: unless(job.queue_depth, default_depth),
            streams: unless(job.streams, 1),
            path: unless(job.path, IoPath::Direct).map(|path| path.to_string()),
            rate: job.offered_per_s().map(|per_s| per_s.to_string()),
            arrivals: job
                .rate
                .and_then(|rate| unless(rate.arrivals, Arrivals::Poisson))
                .map(|arrivals| arrivals.to_string()),
            fsync: flush(FlushCall::Fsync),
            fdatasync: flush(FlushCall::Fdatasync),
            dsync: unless(job.dsync, false),
            distribution: rule.and_then(rule_words),
            think: unless(job.think_ns, 0).map(time),
            think_every: unless(job.think_every, 1),
            delay: unless(job.delay_ns, 0).map(time),
            ramp: unless(job.ramp_ns, 0).map(time),
            bytes: job.max_bytes.map(size),
            runtime: job.lasts_ns.map(time),
            offset: unless(job.offset_bytes, 0).map(size),
            size: unless(job.span_bytes, 0).map(size),
            apart: (job.range == StreamRange::Disjoint && job.streams > 1).then_some(true),
            fresh: unless(job.fresh_space, false),
            advise: unless(job.advised, false),
            compress: unless(job.compressible_percent, 0),
            align: alignments(job),
        }
    }
}

fn unless<T: Copy + PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

/// The alignment of each kind of request, where one has any.
fn alignments(job: &LoadJob) -> Option<String> {
    let of = |side: &Option<Requests>| side.as_ref().and_then(|side| side.align_bytes).map(size);
    match (of(&job.reads), of(&job.writes), of(&job.trims)) {
        (None, None, None) => None,
        (Some(reads), Some(writes), _) if reads == writes => Some(reads),
        (Some(each), None, None) if job.writes.is_none() => Some(each),
        (None, Some(each), None) if job.reads.is_none() => Some(each),
        (None, None, Some(each)) => Some(each),
        (reads, writes, _) => Some(format!("{},{}", reads.unwrap_or_default(), writes.unwrap_or_default())),
    }
}

/// The rule of the job's random requests, of which a job has one at most in words.
fn rule_of(job: &LoadJob) -> Option<&OffsetRule> {
    job.kinds().find(|requests| !requests.is_in_order()).map(|side| &side.offsets)
}

fn kind_words(job: &LoadJob) -> String {
    let word = |requests: &Requests, name: &str| match requests.offsets {
        OffsetRule::Sequential => name.to_owned(),
        OffsetRule::Skips { skip_bytes } => format!("{name}:{}", skip(skip_bytes)),
        _ => format!("rand{name}"),
    };
    match (&job.reads, &job.writes) {
        (None, None) => job.trims.iter().map(|trims| word(trims, "trim")).collect(),
        (None, Some(writes)) if job.trims_before_writes => word(writes, "trimwrite"),
        (Some(reads), Some(writes)) if word(reads, "") == word(writes, "") => word(reads, "rw"),
        (reads, writes) => {
            let reads = reads.iter().map(|reads| word(reads, "read"));
            let words: Vec<String> = reads.chain(writes.iter().map(|writes| word(writes, "write"))).collect();
            words.join(",")
        }
    }
}

fn sizes(job: &LoadJob) -> String {
    let of_side = |side: &Option<Requests>| side.as_ref().map(|requests| shares(&requests.blocks));
    match (of_side(&job.reads), of_side(&job.writes)) {
        (Some(reads), Some(writes)) if reads != writes => format!("{reads},{writes}"),
        (reads, writes) => reads.or(writes).or_else(|| of_side(&job.trims)).unwrap_or_default(),
    }
}

fn shares(blocks: &[BlockShare]) -> String {
    let sizes = |share: &BlockShare| match share {
        BlockShare { min_bytes, max_bytes, .. } if min_bytes == max_bytes => size(*min_bytes),
        BlockShare { min_bytes, max_bytes, .. } => format!("{}-{}", size(*min_bytes), size(*max_bytes)),
    };
    match blocks {
        [only] => sizes(only),
        blocks => {
            let share = |share: &BlockShare| format!("{}/{}", sizes(share), share.weight);
            blocks.iter().map(share).collect::<Vec<_>>().join(":")
        }
    }
}

fn rule_words(rule: &OffsetRule) -> Option<String> {
    Some(match rule {
        OffsetRule::Sequential | OffsetRule::Skips { .. } | OffsetRule::Uniform => return None,
        OffsetRule::Once => "once".into(),
        OffsetRule::Zipf { theta } => format!("zipf:{theta}"),
        OffsetRule::Pareto { skew } => format!("pareto:{skew}"),
        OffsetRule::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
        OffsetRule::Zoned { zones } => {
            let zone = |zone: &rdsk_model::Zone| format!("{}/{}", zone.access_percent, zone.span_percent);
            format!("zoned:{}", zones.iter().map(zone).collect::<Vec<_>>().join(":"))
        }
    })
}

/// A size to the byte: `64k` where it is whole, else a number of bytes.
fn size(bytes: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("k", 10)];
    let whole = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    whole.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

/// What a sequence leaves out; negative backwards.
fn skip(bytes: i64) -> String {
    format!("{}{}", if bytes < 0 { "-" } else { "" }, size(bytes.unsigned_abs()))
}

fn time(ns: u64) -> String {
    let units = [("s", 1000 * NS_PER_MS), ("ms", NS_PER_MS), ("us", 1000), ("ns", 1)];
    let (unit, length_ns) =
        units.into_iter().find(|(_, unit_ns)| ns.is_multiple_of(*unit_ns)).unwrap_or(("ns", 1));
    format!("{}{unit}", ns / length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_job_are_read_as_that_job() {
        for text in [
            "rw = \"randread\"\nbs = \"4k\"",
            "rw = \"randread,write\"\nmix = 70\nbs = \"4k,8k-64k\"\nstreams = 4\nrate = \"5k\"\napart = true",
            "rw = \"write\"\nbs = \"2300\"\npath = \"buffered\"\nfdatasync = 1\nsize = \"22M\"\nfresh = true\ncompress = 30",
            "rw = \"randrw\"\nbs = \"4k/70:64k/30\"\ndistribution = \"zoned:60/10:40/90\"\niodepth = 7\nfsync = 3",
            "rw = \"randwrite\"\ndistribution = \"zipf:1.2\"\nthink = \"3ms\"\nthink-every = 4\ndsync = true\nruntime = \"90s\"",
            "rw = \"trim\"\nbs = \"1M\"",
            "rw = \"read:-8k\"\nbs = \"4k\"",
            "rw = \"rw:12k\"\nbs = \"4k\"\nramp = \"2s\"",
            "rw = \"read:4k,randwrite\"\nbs = \"4k,8k\"\nalign = \",16k\"",
            "rw = \"trimwrite:64k\"\nbs = \"64k\"",
            "rw = \"randtrim\"\nbs = \"8k\"\nalign = \"32k\"",
            "rw = \"randrw\"\nbs = \"4k-16k\"\nalign = \"64k\"",
            "rw = \"randtrimwrite\"\nbs = \"8k\"\niodepth = 4\ndistribution = \"once\"",
            "rw = \"randrw\"\ntrims = 10\nmix = 70",
            "rw = \"randread\"\ndistribution = \"once\"\nrate = \"250\"\narrivals = \"constant\"\niodepth = 1\nbytes = \"3G\"",
            "rw = \"randrw\"\ndistribution = \"pareto:0.2\"\nadvise = true\ndelay = \"1500us\"\noffset = \"4097\"\npath = \"dontcache\"",
        ] {
            let read: JobWords = toml::from_str(text).unwrap();
            let job = read.job(1).unwrap();
            let words = JobWords::of(&job, 2);
            let again: JobWords = toml::from_str(&toml::to_string(&words).unwrap()).unwrap();
            assert_eq!((again.job(5).unwrap(), again.phase), (job, Some(2)), "{text}");
        }
    }
}
