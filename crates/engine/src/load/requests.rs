//! The requests of one stream of a job, one after the other: direction, place, size and when each is due. Deterministic for a workload, a
//! visit and a stream. It issues nothing.

use super::places::Chooser;
use crate::error::EngineError;
use crate::job_run::JobRun;
use crate::random::{WyRand, mix};
use rdsk_model::{Arrivals, BlockShare, LoadJob, OffsetRule, Op, Rate, Requests, StreamRange};

const NS_PER_S: f64 = 1e9;
/// The golden ratio less 1: fractions of its multiples lie as far apart as can be.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// What a request discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trim {
    /// Its blocks, and that is all.
    Only,
    /// Its blocks, before it writes them.
    Before,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// A trim changes data, as a write does.
    pub(crate) op: Op,
    pub(crate) trim: Option<Trim>,
    /// First byte on the target.
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
    /// When it arrives, from the start of the stream; 0 in a closed loop.
    pub(crate) due_ns: u64,
}

/// The requests of one stream.
#[derive(Clone, Debug)]
pub(crate) struct RequestSource {
    reads: Option<Side>,
    writes: Option<Side>,
    trims: Option<Side>,
    read_percent: u64,
    trim_percent: u64,
    before_writes: Option<Trim>,
    arrivals: Option<ArrivalClock>,
    random: WyRand,
    left_bytes: u64,
    /// Whether a sequence in fresh space has come to its end.
    is_full: bool,
}

impl RequestSource {
    /// Of stream `stream` of the job, in this visit.
    ///
    /// # Errors
    /// [`EngineError::Span`] when the span has no room for every stream, [`EngineError::Workload`] for a job that contradicts itself.
    pub(crate) fn new(job: &LoadJob, seed: u64, visit: u32, stream: u32) -> Result<Self, EngineError> {
        job.check().map_err(|why| EngineError::Workload(format!("job {} {why}", job.name)))?;
        let shared_key = mix(seed, u64::from(visit));
        let key = mix(shared_key, u64::from(stream) + 1);
        let (begin_bytes, span_bytes) = part_of(job, stream);
        // What fills fresh space or moves so many bytes begins at the start of its span in every repeat.
        let restarts = job.fresh_space || job.max_bytes.is_some();
        let side = |requests: &Option<Requests>, salt| {
            let made = requests.as_ref().map(|requests| {
                let made =
                    Side::new(requests, begin_bytes, span_bytes, mix(shared_key, salt), mix(key, salt));
                let begun = made.map(|side| if restarts { side } else { side.begun_for(visit) });
                begun.ok_or(EngineError::Span {
                    offset_bytes: begin_bytes,
                    span_bytes,
                    block_bytes: requests.max_bytes(),
                    streams: u64::from(job.streams),
                })
            });
            made.transpose()
        };
        let (mut reads, writes, trims) = (side(&job.reads, 1)?, side(&job.writes, 2)?, side(&job.trims, 5)?);
        if let (Some(reads), Some(writes)) = (&mut reads, &writes)
            && job.reads == job.writes
            && matches!(reads.chooser, Some(Chooser::Once { .. }))
        {
            // Each place once, by a read or by a write: the writes' order serves both.
            debug_assert_eq!(reads.places, writes.places);
            reads.chooser = None;
            reads.shares_order = true;
        }
        let read_percent = match (&reads, &writes) {
            (Some(_), None) => 100,
            (None, _) => 0,
            (Some(_), Some(_)) => u64::from(job.read_percent),
        };
        let arrivals = job.rate.map(|rate| ArrivalClock::new(rate, visit, stream, job.streams, mix(key, 3)));
        let random = WyRand::new(mix(key, 4));
        let left_bytes = job.max_bytes.unwrap_or(u64::MAX);
        Ok(Self {
            reads,
            writes,
            trims,
            read_percent,
            trim_percent: u64::from(job.trim_percent),
            before_writes: job.trims_before_writes.then_some(Trim::Before),
            arrivals,
            random,
            left_bytes,
            is_full: false,
        })
    }

    /// The next request; `None` when the stream has done all of its bytes, or its space is full.
    pub(crate) fn next(&mut self, fresh_space: bool) -> Option<Request> {
        if self.is_over() {
            return None;
        }
        let is_trim = self.trims.is_some()
            && match self.trim_percent {
                100 => true,
                percent => self.random.below(100) < percent,
            };
        let is_read = match self.read_percent {
            _ if is_trim => false,
            0 => false,
            100 => true,
            percent => self.random.below(100) < percent,
        };
        let is_in_order_of_writes = self.reads.as_ref().is_some_and(|reads| reads.shares_order);
        let (op, side) = match is_read {
            false if is_trim => (Op::Write, &mut self.trims),
            true if is_in_order_of_writes => (Op::Read, &mut self.writes),
            true => (Op::Read, &mut self.reads),
            false => (Op::Write, &mut self.writes),
        };
        let Some((offset_bytes, bytes)) = side.as_mut()?.next(&mut self.random, fresh_space) else {
            self.is_full = true;
            return None;
        };
        let bytes = bytes.min(self.left_bytes);
        self.left_bytes -= bytes;
        let due_ns = self.arrivals.as_mut().map_or(0, ArrivalClock::next);
        let trim = match op {
            Op::Write if is_trim => Some(Trim::Only),
            Op::Write => self.before_writes,
            Op::Read => None,
        };
        Some(Request { op, trim, offset_bytes, bytes, due_ns })
    }

    /// When the request after the last one is due, in an open loop.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.arrivals.as_ref().map(|arrivals| arrivals.due_ns)
    }

    /// Whether the next request arrives before a time.
    pub(crate) fn is_owed(&self, until_ns: u64) -> bool {
        self.left_bytes > 0 && self.next_due_ns().is_some_and(|due_ns| due_ns < until_ns)
    }

    /// Whether the stream has done all that it was to do, whatever time it has left.
    pub(crate) fn is_over(&self) -> bool {
        self.left_bytes == 0 || self.is_full
    }

    /// Ends what a stream did that began, and is counted from, these times; its last request ended at `last_ns`, and it was to end at
    /// `until_ns`: a rate goes on until then, whether or not anything arrives. What was due until then and never taken is counted.
    pub(crate) fn end(
        &mut self,
        run: &mut JobRun,
        (begin_ns, counts_from_ns): (u64, u64),
        last_ns: u64,
        until_ns: u64,
    ) {
        run.unsent = self.due_before(until_ns.saturating_sub(begin_ns));
        let over_ns = if self.has_rate() && !self.is_over() { last_ns.max(until_ns) } else { last_ns };
        run.elapsed_ns = over_ns.saturating_sub(counts_from_ns);
        run.from_ns = Some(counts_from_ns);
        run.over_ns = if self.has_rate() { over_ns } else { 0 };
    }

    /// Whether requests arrive at a rate of their own.
    pub(crate) const fn has_rate(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Counts the requests that are due before a time and were never taken; none of a stream that has done all that it was to do.
    pub(crate) fn due_before(&mut self, until_ns: u64) -> u64 {
        let is_over = self.is_over();
        let Some(arrivals) = self.arrivals.as_mut().filter(|_| !is_over) else { return 0 };
        let mut count = 0;
        while arrivals.due_ns < until_ns {
            arrivals.next();
            count += 1;
        }
        count
    }
}

/// First byte and length of a stream's part of the job's span.
fn part_of(job: &LoadJob, stream: u32) -> (u64, u64) {
    match job.range {
        StreamRange::Shared => (job.offset_bytes, job.span_bytes),
        StreamRange::Disjoint => {
            let step = job.max_block_bytes().max(1);
            let part = job.span_bytes / u64::from(job.streams.max(1)) / step * step;
            (job.offset_bytes + part * u64::from(stream), part)
        }
    }
}

/// The requests of one direction.
#[derive(Clone, Debug)]
struct Side {
    begin_bytes: u64,
    span_bytes: u64,
    step_bytes: u64,
    /// Places where the smallest request has room.
    places: u64,
    /// `None` for a sequence.
    chooser: Option<Chooser>,
    /// Whether the other direction has the order of both.
    shares_order: bool,
    /// Where a sequence goes on, from the start of the span.
    next_bytes: u64,
    /// From the end of a request of a sequence to the start of the next.
    skip_bytes: i64,
    sizes: Sizes,
}

impl Side {
    /// `None` where the span has no room for the largest request.
    fn new(
        requests: &Requests,
        begin_bytes: u64,
        span_bytes: u64,
        shared_key: u64,
        key: u64,
    ) -> Option<Self> {
        let step_bytes = requests.step_bytes();
        if requests.max_bytes() > span_bytes {
            return None;
        }
        let places = (span_bytes - requests.min_bytes()) / step_bytes + 1;
        let chooser = Chooser::new(&requests.offsets, places, shared_key, key);
        debug_assert_eq!(chooser.is_none(), requests.is_in_order());
        let sizes = Sizes::new(&requests.blocks);
        let skip_bytes = match requests.offsets {
            OffsetRule::Skips { skip_bytes } => skip_bytes,
            _ => 0,
        };
        Some(Self {
            begin_bytes,
            span_bytes,
            step_bytes,
            places,
            chooser,
            shares_order: false,
            next_bytes: 0,
            skip_bytes,
            sizes,
        })
    }

    /// The same with a sequence that begins elsewhere in each visit, far from where those before it began: what is written again and again
    /// may stay in a cache. The first begins at the start of the span.
    fn begun_for(mut self, visit: u32) -> Self {
        // Multiples of the golden ratio, whose fractions lie as far apart as can be.
        let share = u128::from(u64::from(visit).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let place = u64::try_from((share * u128::from(self.places)) >> 64).unwrap_or(0);
        self.next_bytes = place * self.step_bytes;
        self
    }

    /// Offset on the target and size; `None` where a sequence in fresh space has come to the end of the span.
    fn next(&mut self, random: &mut WyRand, fresh_space: bool) -> Option<(u64, u64)> {
        let is_at_end = self.next_bytes.saturating_add(self.sizes.least) > self.span_bytes;
        let at_bytes = match &mut self.chooser {
            Some(chooser) => chooser.next(self.places, random) * self.step_bytes,
            None if is_at_end && fresh_space => return None,
            None if is_at_end => 0,
            None => self.next_bytes,
        };
        let bytes = self.sizes.next(self.span_bytes - at_bytes, random);
        self.next_bytes = self.after(at_bytes + bytes);
        Some((self.begin_bytes + at_bytes, bytes))
    }

    /// Where a sequence goes on behind a request that ended here. With 4 KiB of each 8 KiB left out: 0, 8 KiB, 16 KiB, … up to the last that
    /// has room; backwards by 8 KiB in 64 KiB, in requests of 4 KiB: 0, 56 KiB, 52 KiB, … 0, 56 KiB, …, as fio does it.
    fn after(&self, end_bytes: u64) -> u64 {
        let skipped_bytes = self.skip_bytes.unsigned_abs();
        match end_bytes.checked_sub(skipped_bytes) {
            _ if self.skip_bytes >= 0 => end_bytes.saturating_add(skipped_bytes),
            Some(next_bytes) => next_bytes,
            None => self.span_bytes.saturating_sub(skipped_bytes),
        }
    }
}

/// How often a size that has no room is drawn again, before the smallest is taken.
const DRAWS: usize = 64;

/// Sizes with their shares.
#[derive(Clone, Debug)]
struct Sizes {
    /// The smallest.
    least: u64,
    /// Share of the requests up to each size or range, the first of them, the step between them and their number.
    shares: Vec<(f64, u64, u64, u64)>,
}

impl Sizes {
    fn new(blocks: &[BlockShare]) -> Self {
        let whole: f64 = blocks.iter().map(|share| share.weight).sum();
        let mut sum = 0.0;
        let share = |&BlockShare { min_bytes, max_bytes, weight }: &BlockShare| {
            sum += weight / whole;
            (sum, min_bytes, min_bytes, (max_bytes - min_bytes) / min_bytes + 1)
        };
        let least = blocks.iter().map(|share| share.min_bytes).min().unwrap_or(1);
        Self { least, shares: blocks.iter().map(share).collect() }
    }

    /// A size that has room in these bytes.
    fn next(&self, room_bytes: u64, random: &mut WyRand) -> u64 {
        let mut draws = (0..DRAWS).map(|_| self.draw(random));
        draws.find(|bytes| *bytes <= room_bytes).unwrap_or(self.least)
    }

    fn draw(&self, random: &mut WyRand) -> u64 {
        let chosen = match self.shares.as_slice() {
            [only] => *only,
            shares => {
                let draw = random.unit();
                shares
                    .iter()
                    .find(|(end, ..)| draw < *end)
                    .or(shares.last())
                    .copied()
                    .unwrap_or((1.0, 1, 1, 1))
            }
        };
        let (_, first, step, count) = chosen;
        if count == 1 { first } else { first + step * random.below(count) }
    }
}

/// When requests arrive.
#[derive(Clone, Debug)]
struct ArrivalClock {
    gap_ns: f64,
    arrivals: Arrivals,
    random: WyRand,
    /// The exact time, of which [`ArrivalClock::due_ns`] is the whole part.
    at_ns: f64,
    due_ns: u64,
}

impl ArrivalClock {
    /// Of one of `streams` streams, whose equal gaps lie between each other. Where in a gap a visit begins differs from visit to visit, so
    /// that short ones have as many arrivals as long ones.
    fn new(rate: Rate, visit: u32, stream: u32, streams: u32, key: u64) -> Self {
        let gap_ns = NS_PER_S / rate.per_s;
        let random = WyRand::new(key);
        let mut clock = Self { gap_ns, arrivals: rate.arrivals, random, at_ns: 0.0, due_ns: 0 };
        match rate.arrivals {
            Arrivals::Constant => {
                let share = f64::from(stream) / f64::from(streams.max(1)) + f64::from(visit) * GOLDEN;
                clock.at_ns = gap_ns * share.fract();
            }
            Arrivals::Poisson => clock.at_ns = clock.gap(),
        }
        clock.due_ns = whole(clock.at_ns);
        clock
    }

    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Constant => self.gap_ns,
            // Of 0 there is no logarithm.
            Arrivals::Poisson => -(1.0 - self.random.unit()).ln() * self.gap_ns,
        }
    }

    /// When this request is due; goes on to the next one.
    fn next(&mut self) -> u64 {
        let due_ns = self.due_ns;
        self.at_ns += self.gap();
        self.due_ns = whole(self.at_ns);
        due_ns
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive time far below 2^53 ns"
)]
fn whole(ns: f64) -> u64 {
    ns as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> LoadJob {
        let requests = |bytes, offsets| Requests::new(vec![BlockShare::fixed(bytes)], offsets);
        LoadJob {
            reads: Some(requests(4096, OffsetRule::Uniform)),
            writes: Some(requests(8192, OffsetRule::Sequential)),
            read_percent: 70,
            offset_bytes: 1 << 20,
            ..LoadJob::random_reads("mix", 1 << 20)
        }
    }

    fn some(job: &LoadJob, stream: u32, count: usize) -> Vec<Request> {
        let mut source = RequestSource::new(job, 5, 0, stream).unwrap();
        std::iter::from_fn(|| source.next(job.fresh_space)).take(count).collect()
    }

    #[test]
    fn a_mix_has_its_ratio_and_stays_inside_its_span() {
        let requests = some(&job(), 0, 100_000);
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        // 70 % of 100,000: standard deviation 145.
        assert!((70_000 - 600..70_000 + 600).contains(&reads), "{reads}");
        let inside = |request: &Request| {
            request.offset_bytes >= 1 << 20 && request.offset_bytes + request.bytes <= 2 << 20
        };
        assert!(requests.iter().all(inside));
        let writes: Vec<u64> = requests
            .iter()
            .filter(|request| request.op == Op::Write)
            .map(|request| request.offset_bytes)
            .collect();
        let expected = (0..).map(|index| (1 << 20) + index % 128 * 8192);
        assert!(
            writes.iter().copied().eq(expected.take(writes.len())),
            "a sequence of its own that goes round"
        );
        assert_eq!(some(&job(), 0, 100), requests[..100], "deterministic");
        assert_ne!(some(&job(), 1, 100), requests[..100]);
    }

    #[test]
    fn reads_and_writes_share_an_order_in_which_each_place_comes_once() {
        let once = Requests::new(vec![BlockShare::fixed(4096)], OffsetRule::Once);
        let job = LoadJob { reads: Some(once.clone()), writes: Some(once), ..job() };
        let requests = some(&job, 0, 256);
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        assert!(reads > 100 && reads < 256, "{reads}");
        let mut offsets: Vec<u64> = requests.iter().map(|request| request.offset_bytes).collect();
        offsets.sort_unstable();
        assert!(offsets.into_iter().eq((0..256).map(|place| (1 << 20) + place * 4096)));
    }

    #[test]
    fn sizes_have_their_shares_and_offsets_the_smallest_step() {
        let blocks = vec![
            BlockShare { weight: 10.0, ..BlockShare::fixed(4096) },
            BlockShare { min_bytes: 8192, max_bytes: 32_768, weight: 30.0 },
        ];
        let reads = Some(Requests::new(blocks, OffsetRule::Uniform));
        let requests = some(&LoadJob { reads, writes: None, ..job() }, 0, 40_000);
        let count = |bytes| requests.iter().filter(|request| request.bytes == bytes).count();
        // A quarter each of the four sizes: standard deviation 87.
        for bytes in [4096, 8192, 16_384, 24_576, 32_768] {
            let expected = if bytes == 4096 { 10_000 } else { 7_500 };
            assert!(count(bytes).abs_diff(expected) < 400, "{bytes}: {}", count(bytes));
        }
        assert!(requests.iter().all(|request| request.offset_bytes % 4096 == 0));
        assert!(requests.iter().all(|request| request.offset_bytes + request.bytes <= 2 << 20));
    }

    #[test]
    fn each_place_of_the_span_is_met_by_sizes_that_have_room_there() {
        let blocks = vec![BlockShare { min_bytes: 4096, max_bytes: 65_536, weight: 1.0 }];
        let reads = Some(Requests::new(blocks, OffsetRule::Uniform));
        let requests = some(&LoadJob { reads, writes: None, span_bytes: 128 << 10, ..job() }, 0, 32_000);
        let mut met = [0; 32];
        for request in &requests {
            met[usize::try_from(request.offset_bytes - (1 << 20)).unwrap() / 4096] += 1;
            assert!(request.offset_bytes + request.bytes <= (1 << 20) + (128 << 10));
        }
        // 1,000 each: standard deviation 31.
        assert!(met.iter().all(|met: &i32| met.abs_diff(1000) < 130), "{met:?}");
    }

    #[test]
    fn random_offsets_have_the_alignment_that_was_asked() {
        let align_bytes = Some(16_384);
        let reads = Some(Requests {
            blocks: vec![BlockShare::fixed(4096)],
            offsets: OffsetRule::Uniform,
            align_bytes,
        });
        let requests = some(&LoadJob { reads, writes: None, ..job() }, 0, 1000);
        assert!(requests.iter().all(|request| request.offset_bytes.is_multiple_of(16_384)));
        assert!(requests.iter().any(|request| request.offset_bytes == (2 << 20) - 16_384));
    }

    #[test]
    fn sequences_leave_out_what_was_asked() {
        let offsets = |skip_bytes, count| {
            let offsets = OffsetRule::Skips { skip_bytes };
            let reads = Some(Requests::new(vec![BlockShare::fixed(4096)], offsets));
            let job = LoadJob {
                reads,
                writes: None,
                offset_bytes: 0,
                span_bytes: 32_768,
                max_bytes: Some(1 << 20),
                ..job()
            };
            some(&job, 0, count).iter().map(|request| request.offset_bytes / 4096).collect::<Vec<_>>()
        };
        assert_eq!(offsets(4096, 6), [0, 2, 4, 6, 0, 2]);
        assert_eq!(offsets(8192, 5), [0, 3, 6, 0, 3]);
        assert_eq!(offsets(-8192, 10), [0, 6, 5, 4, 3, 2, 1, 0, 6, 5], "what fio's backwards is");
        assert_eq!(offsets(-4096, 3), [0, 0, 0]);
    }

    #[test]
    fn a_log_ends_with_its_space_and_a_limit_with_its_bytes() {
        let log = LoadJob {
            reads: None,
            writes: Some(Requests::new(vec![BlockShare::fixed(2300)], OffsetRule::Sequential)),
            fresh_space: true,
            span_bytes: 23_500,
            offset_bytes: 0,
            ..job()
        };
        let offsets: Vec<u64> = some(&log, 0, 1000).iter().map(|request| request.offset_bytes).collect();
        assert_eq!(offsets, (0..10).map(|index| index * 2300).collect::<Vec<_>>());
        let limited = some(&LoadJob { max_bytes: Some(5000), fresh_space: false, ..log.clone() }, 0, 1000);
        assert_eq!(limited.iter().map(|request| request.bytes).collect::<Vec<_>>(), [2300, 2300, 400]);
        let split = LoadJob { streams: 2, range: StreamRange::Disjoint, ..log.clone() };
        assert_eq!(some(&split, 1, 1000).first().map(|request| request.offset_bytes), Some(11_500));
        assert!(RequestSource::new(&LoadJob { span_bytes: 2299, ..log }, 1, 0, 0).is_err(), "no room");
    }

    #[test]
    fn arrivals_have_the_rate_and_the_spread_that_was_asked() {
        let due = |arrivals, stream| {
            let rated = LoadJob { rate: Some(Rate { per_s: 1000.0, arrivals }), streams: 2, ..job() };
            some(&rated, stream, 50_001).iter().map(|request| request.due_ns).collect::<Vec<_>>()
        };
        assert_eq!(due(Arrivals::Constant, 0)[..3], [0, 1_000_000, 2_000_000]);
        assert_eq!(
            due(Arrivals::Constant, 1)[..3],
            [500_000, 1_500_000, 2_500_000],
            "between those of the other"
        );
        let times = due(Arrivals::Poisson, 0);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The mean of 50,000 exponential gaps of 1 ms: standard deviation 0.45 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        // Kolmogorov and Smirnov against the exponential distribution: 1.95 / sqrt(n) at 0.1 %.
        let mut sorted = gaps.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let distance = (0u32..).zip(&sorted).map(|(rank, gap)| {
            let expected = 1.0 - (-gap / 1e6).exp();
            (expected - f64::from(rank) / sorted.len() as f64).abs()
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / (sorted.len() as f64).sqrt(), "{distance}");
    }

    #[test]
    fn what_was_due_and_never_taken_is_counted() {
        let rate = Some(Rate { per_s: 1000.0, arrivals: Arrivals::Constant });
        let mut source = RequestSource::new(&LoadJob { rate, ..job() }, 1, 0, 0).unwrap();
        for _ in 0..10 {
            source.next(false);
        }
        assert_eq!(source.next_due_ns(), Some(10_000_000));
        assert_eq!(source.due_before(15_000_000), 5);
        assert_eq!(source.due_before(15_000_000), 0);
    }
}
