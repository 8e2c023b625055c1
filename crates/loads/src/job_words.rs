//! One job as people write it: the words of flags and of TOML keys, which are fio's where fio has one, and the job that they mean.

use crate::error::LoadError;
use rdsk_model::{
    Arrivals, BlockShare, Flush, FlushCall, IoPath, LoadJob, OffsetRule, Rate, Requests, StreamRange, Zone,
};
use rdsk_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Requests in flight per stream where they arrive at a rate: an open loop waits for nothing but the end of this queue.
pub(crate) const OPEN_DEPTH: u32 = 128;

/// A job in words; what is absent has its default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JobWords {
    /// Its name.
    pub name: Option<String>,
    /// The jobs of a phase run at once, and phases one after the other; by default 1.
    pub phase: Option<u32>,
    /// `read`, `write`, `randread`, `randwrite`, `rw`, `randrw`, or `randread,write` where the two directions differ; `trim`, `randtrim`,
    /// `trimwrite`, `randtrimwrite`; by default randread. `read:4k` leaves 4 KiB out between two reads, `read:-8k` goes backwards.
    pub rw: Option<String>,
    /// Percent of the requests that are trims, beside reads and writes.
    pub trims: Option<u32>,
    /// Percent of the requests that are reads, where there are both; by default 50.
    pub mix: Option<u32>,
    /// A size, a range `4k-64k`, or shares `4k/70:64k/30`; `READS,WRITES` where the two differ; by default 4k.
    pub bs: Option<String>,
    /// Requests in flight per stream; by default 1; 128 with a rate.
    pub iodepth: Option<u32>,
    /// Streams; by default 1.
    pub streams: Option<u32>,
    /// `direct`, `buffered` or `dontcache`; by default direct.
    pub path: Option<String>,
    /// Requests per second of all streams together.
    pub rate: Option<String>,
    /// `constant` or `poisson`; by default poisson.
    pub arrivals: Option<String>,
    /// fsync after so many writes.
    pub fsync: Option<u32>,
    /// fdatasync after so many writes.
    pub fdatasync: Option<u32>,
    /// Whether each write is durable when it returns.
    pub dsync: Option<bool>,
    /// `uniform`, `once`, `zipf:1.2`, `pareto:0.2`, `normal:10` or `zoned:60/10:30/20:10/70`; by default uniform.
    pub distribution: Option<String>,
    /// Rest after each request, or after each `think_every`.
    pub think: Option<String>,
    /// Requests from one rest to the next; by default 1.
    pub think_every: Option<u32>,
    /// When it begins.
    pub delay: Option<String>,
    /// Time from the start of the load in which nothing is counted.
    pub ramp: Option<String>,
    /// Bytes of each stream.
    pub bytes: Option<String>,
    /// Time after which each stream ends, from its start.
    pub runtime: Option<String>,
    /// Where its span begins.
    pub offset: Option<String>,
    /// Length of its span; by default all that is left.
    pub size: Option<String>,
    /// Whether each stream has its own part of the span.
    pub apart: Option<bool>,
    /// Whether it writes into newly allocated space.
    pub fresh: Option<bool>,
    /// Whether the kernel is given the order of its reads.
    pub advise: Option<bool>,
    /// Percent of its data that compression saves.
    pub compress: Option<u32>,
    /// What random offsets are multiples of, `READS,WRITES` where the two differ; by default the smallest size.
    pub align: Option<String>,
}

impl JobWords {
    /// The job that the words mean; `number` names it where it has no name.
    ///
    /// # Errors
    /// The first word that means nothing, or a contradiction.
    pub fn job(&self, number: usize) -> Result<LoadJob, LoadError> {
        let name = self.name.clone().unwrap_or_else(|| format!("job{number}"));
        let kind = self.rw.as_deref().unwrap_or("randread");
        let (is_trim, before_writes, kind) = trims(kind);
        let (read_order, write_order) = orders(&kind)?;
        let rule = distribution(self.distribution.as_deref().unwrap_or("uniform"))?;
        if rule != OffsetRule::Uniform && ![read_order, write_order].contains(&Some(Order::Random)) {
            return Err(value("distribution", "only fits random offsets, such as rw = \"randread\""));
        }
        let (read_blocks, write_blocks) = blocks(self.bs.as_deref().unwrap_or("4k"))?;
        let [align_reads, align_writes] = self.alignments()?;
        let side = |order: Option<Order>, blocks: Vec<BlockShare>, align_bytes: Option<u64>| {
            let (offsets, align_bytes) = match order? {
                Order::Sequential(0) => (OffsetRule::Sequential, None),
                Order::Sequential(skip_bytes) => (OffsetRule::Skips { skip_bytes }, None),
                Order::Random => (rule.clone(), align_bytes),
            };
            Some(Requests { blocks, offsets, align_bytes })
        };
        let (reads, writes) =
            (side(read_order, read_blocks, align_reads), side(write_order, write_blocks, align_writes));
        self.check_shares(reads.is_some() && writes.is_some(), is_trim || before_writes)?;
        let trim_percent = if is_trim { 100 } else { self.trims.unwrap_or(0) };
        // Trims go where writes go, in the same sizes.
        let trims = (trim_percent > 0).then(|| writes.clone().or_else(|| reads.clone())).flatten();
        let read_percent = match (&reads, &writes) {
            (Some(_), None) => 100,
            (None, _) => 0,
            (Some(_), Some(_)) => self.mix.unwrap_or(50),
        };
        let streams = self.streams.unwrap_or(1);
        let rate = self.rate(streams)?;
        let job = LoadJob {
            reads: reads.filter(|_| !is_trim),
            writes: writes.filter(|_| !is_trim),
            trims,
            trim_percent,
            trims_before_writes: before_writes,
            read_percent: if is_trim { 0 } else { read_percent },
            streams,
            queue_depth: self.iodepth.unwrap_or(if rate.is_some() { OPEN_DEPTH } else { 1 }),
            path: match &self.path {
                Some(word) => word.parse::<IoPath>().map_err(|why| value("path", why.to_string()))?,
                None => IoPath::Direct,
            },
            dsync: self.dsync.unwrap_or(false),
            flush: self.flush()?,
            rate,
            think_ns: time("think", self.think.as_deref())?,
            think_every: self.think_every.unwrap_or(1),
            delay_ns: time("delay", self.delay.as_deref())?,
            ramp_ns: time("ramp", self.ramp.as_deref())?,
            max_bytes: match &self.bytes {
                Some(text) => Some(size("bytes", text)?),
                None => None,
            },
            lasts_ns: match &self.runtime {
                Some(text) => Some(time("runtime", Some(text))?),
                None => None,
            },
            offset_bytes: self.offset.as_deref().map_or(Ok(0), |text| size("offset", text))?,
            span_bytes: self.size.as_deref().map_or(Ok(0), |text| size("size", text))?,
            range: if self.apart.unwrap_or(false) { StreamRange::Disjoint } else { StreamRange::Shared },
            fresh_space: self.fresh.unwrap_or(false),
            advised: self.advise.unwrap_or(false),
            compressible_percent: self.compress.unwrap_or(0),
            ..LoadJob::random_reads(name.clone(), 0)
        };
        job.check().map_err(|why| LoadError::Job { job: name, why: why.to_string() })?;
        check_room(&job)?;
        Ok(job.without_empty_side())
    }

    /// Whether the shares of reads and of trims fit the kind of a job.
    fn check_shares(&self, is_mix: bool, has_trims: bool) -> Result<(), LoadError> {
        if self.trims.is_some_and(|percent| percent > 100) {
            return Err(value("trims", "must be a percentage of trims, from 0 to 100"));
        }
        if self.trims.is_some() && has_trims {
            return Err(value("trims", "must not stand beside this rw, which has its trims already"));
        }
        if self.mix.is_some_and(|mix| mix > 100) {
            return Err(value("mix", "must be a percentage of reads, from 0 to 100"));
        }
        if self.mix.is_some() && !is_mix {
            return Err(value("mix", "only fits reads and writes together, such as rw = \"randrw\""));
        }
        Ok(())
    }

    /// What the offsets of reads and of writes are multiples of.
    fn alignments(&self) -> Result<[Option<u64>; 2], LoadError> {
        let Some(text) = &self.align else { return Ok([None; 2]) };
        let (reads, writes) = text.split_once(',').unwrap_or((text, text));
        let of_side = |text: &str| {
            let text = text.trim();
            if text.is_empty() { Ok(None) } else { size("align", text).map(Some) }
        };
        Ok([of_side(reads)?, of_side(writes)?])
    }

    fn flush(&self) -> Result<Option<Flush>, LoadError> {
        match (self.fsync, self.fdatasync) {
            (None, None) => Ok(None),
            (Some(every), None) => Ok(Some(Flush { every, call: FlushCall::Fsync })),
            (None, Some(every)) => Ok(Some(Flush { every, call: FlushCall::Fdatasync })),
            (Some(_), Some(_)) => {
                Err(value("fsync", "cannot be combined with fdatasync: a job has one of them"))
            }
        }
    }

    fn rate(&self, streams: u32) -> Result<Option<Rate>, LoadError> {
        let Some(text) = &self.rate else {
            return match self.arrivals {
                Some(_) => Err(value("arrivals", "only fits a job with a rate")),
                None => Ok(None),
            };
        };
        let per_s = per_second("rate", text)?;
        let arrivals = match &self.arrivals {
            Some(word) => word.parse::<Arrivals>().map_err(|why| value("arrivals", why.to_string()))?,
            None => Arrivals::Poisson,
        };
        Ok(Some(Rate { per_s: per_s / f64::from(streams.max(1)), arrivals }))
    }
}

/// Whether a stream may move as much as one request before it ends.
fn check_room(job: &LoadJob) -> Result<(), LoadError> {
    let least_bytes = job.min_block_bytes();
    match job.max_bytes {
        Some(bytes) if bytes < least_bytes => {
            Err(value("bytes", format!("has no room for one request of {}", Bytes(least_bytes))))
        }
        _ => Ok(()),
    }
}

fn value(key: &'static str, why: impl Into<String>) -> LoadError {
    LoadError::Value { key, why: why.into() }
}

fn size(key: &'static str, text: &str) -> Result<u64, LoadError> {
    Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| LoadError::quantity(key, &error))
}

fn time(key: &'static str, text: Option<&str>) -> Result<u64, LoadError> {
    text.map_or(Ok(0), |text| {
        Nanos::parse(text).map(|time| time.0).map_err(|error| LoadError::quantity(key, &error))
    })
}

/// Requests per second: `5000`, `5k` (thousand) or `1.5M` (million).
pub(crate) fn per_second(key: &'static str, text: &str) -> Result<f64, LoadError> {
    let (number, factor) = match text.trim().strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.trim().strip_suffix('M').map_or((text.trim(), 1.0), |number| (number, 1e6)),
    };
    let parsed = number.trim().parse::<f64>().ok().map(|number| number * factor);
    parsed.filter(|rate| *rate > 0.0 && rate.is_finite()).ok_or_else(|| {
        value(
            key,
            format!("\"{text}\" is no number of requests per second, such as 5k (in bytes: divide by bs)"),
        )
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// With so many bytes from the end of a request to the start of the next.
    Sequential(i64),
    Random,
}

/// Whether a kind is trims, whether it trims before it writes, and the kind of reads and writes whose order it has.
fn trims(text: &str) -> (bool, bool, String) {
    let (word, skip) = text.split_at(text.find(':').unwrap_or(text.len()));
    match word.trim() {
        "trim" => (true, false, format!("write{skip}")),
        "randtrim" => (true, false, format!("randwrite{skip}")),
        "trimwrite" => (false, true, format!("write{skip}")),
        "randtrimwrite" => (false, true, format!("randwrite{skip}")),
        _ => (false, false, text.to_owned()),
    }
}

/// What a sequence leaves out: `4k`, or `-8k` backwards.
fn skip(text: &str) -> Result<i64, LoadError> {
    let text = text.trim();
    let bytes = size("rw", text.strip_prefix('-').unwrap_or(text))?;
    let bytes = i64::try_from(bytes).map_err(|_| value("rw", format!("\"{text}\" is too large")))?;
    Ok(if text.starts_with('-') { -bytes } else { bytes })
}

/// The order of reads and of writes, by fio's words.
fn orders(text: &str) -> Result<(Option<Order>, Option<Order>), LoadError> {
    use Order::{Random, Sequential};
    let one_word = |text: &str| {
        let (word, skipped) = text.split_once(':').map_or((text, None), |(word, skip)| (word, Some(skip)));
        let in_order = Sequential(skipped.map_or(Ok(0), skip)?);
        Ok(match word.trim() {
            "read" => (Some(in_order), None),
            "write" => (None, Some(in_order)),
            _ if skipped.is_some() && word.contains("rand") => {
                return Err(value("rw", format!("\"{text}\": only sequences leave something out")));
            }
            "randread" => (Some(Random), None),
            "randwrite" => (None, Some(Random)),
            "rw" | "readwrite" => (Some(in_order), Some(in_order)),
            "randrw" => (Some(Random), Some(Random)),
            _ => {
                let words = "read, write, randread, randwrite, rw, randrw, trim, randtrim, trimwrite or randtrimwrite";
                return Err(value("rw", format!("\"{word}\" is none of {words}")));
            }
        })
    };
    let Some((reads, writes)) = text.split_once(',') else { return one_word(text.trim()) };
    match (one_word(reads.trim())?, one_word(writes.trim())?) {
        ((Some(reads), None), (None, Some(writes))) => Ok((Some(reads), Some(writes))),
        _ => Err(value(
            "rw",
            format!("\"{text}\" names a kind of reads and a kind of writes, such as randread,write"),
        )),
    }
}

/// The sizes of reads and of writes.
fn blocks(text: &str) -> Result<(Vec<BlockShare>, Vec<BlockShare>), LoadError> {
    let (reads, writes) = text.split_once(',').unwrap_or((text, text));
    Ok((shares(reads)?, shares(writes)?))
}

fn shares(text: &str) -> Result<Vec<BlockShare>, LoadError> {
    let mut shares = Vec::new();
    for part in text.split(':') {
        let (sizes, weight) = match part.split_once('/') {
            Some((sizes, weight)) => {
                let weight = weight.trim().parse::<f64>().ok().filter(|weight| *weight > 0.0);
                (sizes, weight.ok_or_else(|| value("bs", format!("\"{part}\" has no share after the /")))?)
            }
            None => (part, 1.0),
        };
        let (min, max) = sizes.split_once('-').unwrap_or((sizes, sizes));
        let min_bytes = size("bs", min.trim())?;
        let max_bytes = size("bs", max.trim())?;
        shares.push(BlockShare { min_bytes, max_bytes, weight });
    }
    Ok(shares)
}

fn distribution(text: &str) -> Result<OffsetRule, LoadError> {
    let wrong = || {
        let forms = "uniform, once, zipf:1.2, pareto:0.2, normal:10 or zoned:60/10:30/20:10/70";
        value("distribution", format!("\"{text}\" is none of {forms}"))
    };
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let number = || rest.trim().parse::<f64>().map_err(|_| wrong());
    Ok(match word.trim() {
        "uniform" => OffsetRule::Uniform,
        "once" => OffsetRule::Once,
        "zipf" => OffsetRule::Zipf { theta: number()? },
        "pareto" => OffsetRule::Pareto { skew: number()? },
        "normal" => OffsetRule::Normal { deviation_percent: number()? },
        "zoned" => {
            let zone = |part: &str| {
                let (access, span) = part.split_once('/')?;
                let access_percent = access.trim().parse().ok()?;
                Some(Zone { access_percent, span_percent: span.trim().parse().ok()? })
            };
            let zones: Option<Vec<Zone>> = rest.split(':').map(zone).collect();
            OffsetRule::Zoned { zones: zones.ok_or_else(wrong)? }
        }
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<LoadJob, LoadError> {
        toml::from_str::<JobWords>(text).unwrap().job(1)
    }

    #[test]
    fn words_mean_what_fio_means_by_them() {
        let etcd = words(
            "rw = \"write\"\nbs = \"2300\"\npath = \"buffered\"\nfdatasync = 1\nsize = \"22M\"\nfresh = true",
        )
        .unwrap();
        assert_eq!(etcd.writes.as_ref().unwrap().blocks, [BlockShare::fixed(2300)]);
        assert_eq!(etcd.writes.as_ref().unwrap().offsets, OffsetRule::Sequential);
        assert_eq!(etcd.flush, Some(Flush { every: 1, call: FlushCall::Fdatasync }));
        assert_eq!((etcd.reads, etcd.span_bytes, etcd.path), (None, 22 << 20, IoPath::Buffered));
        let mix = words("rw = \"randread,write\"\nmix = 70\nbs = \"4k,8k-64k\"\nstreams = 4\nrate = \"5k\"")
            .unwrap();
        assert_eq!(mix.reads.unwrap().offsets, OffsetRule::Uniform);
        let writes = mix.writes.unwrap();
        assert_eq!(
            (writes.min_bytes(), writes.max_bytes(), writes.offsets),
            (8192, 65_536, OffsetRule::Sequential)
        );
        assert_eq!(mix.rate, Some(Rate { per_s: 1250.0, arrivals: Arrivals::Poisson }), "of each stream");
        let shares = words("bs = \"4k/70:64k/30\"").unwrap().reads.unwrap().blocks;
        assert_eq!(shares.iter().map(|share| share.weight).collect::<Vec<_>>(), [70.0, 30.0]);
    }

    #[test]
    fn what_means_nothing_is_named() {
        for (text, expected) in [
            ("rw = \"sideways\"", "rw: \"sideways\" is none of read, write"),
            ("rw = \"read,read\"", "names a kind of reads and a kind of writes"),
            ("mix = 70", "mix: only fits reads and writes"),
            ("rate = \"fast\"", "no number of requests per second"),
            ("rate = \"-5\"", "no number of requests per second"),
            ("arrivals = \"poisson\"", "arrivals: only fits a job with a rate"),
            ("rw = \"write\"\ndistribution = \"zipf:1.2\"", "distribution: only fits random offsets"),
            ("bs = \"64k-4k\"", "job job1 has block sizes of 0, or a range"),
            ("bs = \"4k/0\"", "no share after the /"),
            ("distribution = \"zipf:x\"", "is none of uniform"),
            ("fsync = 1\nfdatasync = 1\nrw = \"write\"", "one of them"),
            ("fsync = 1", "writes nothing"),
            ("bs = \"4k\"\nbytes = \"1k\"", "bytes: has no room for one request of 4 KiB"),
            ("bs = \"4k-64k\"\nbytes = \"2k\"", "bytes: has no room for one request of 4 KiB"),
            ("trims = 101", "trims: must be a percentage"),
            ("rw = \"randtrim\"\ntrims = 10", "has its trims"),
            ("rw = \"randread:4k\"", "only sequences leave something out"),
            ("rw = \"read:x\"", "rw: "),
            ("rw = \"read:4k\"\nbs = \"4k-8k\"", "between requests of several sizes"),
            ("align = \"0\"", "multiples of 0"),
            ("ramp = \"1s\"\ndelay = \"1s\"", "has a ramp"),
            ("rw = \"randtrimwrite\"\niodepth = 4\nfsync = 1", "which no flush waits for"),
        ] {
            let why = words(text).expect_err(text).to_string();
            assert!(why.contains(expected), "{text}: {why}");
        }
        assert!(toml::from_str::<JobWords>("blocksize = 4").is_err(), "unknown keys are errors");
    }
}
