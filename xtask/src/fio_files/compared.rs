//! What a disk saw of two programs that ran the same jobs: bytes, requests, mix, sizes and offsets. Pure; it reads nothing.

use rdsk_model::{LoadJob, OffsetRule, Requests, StreamRange};
use rdsk_testkit::fusedisk::{Op, Served};
use rdsk_testkit::same_io::{self, chi_square_of_two};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bins of offsets at most.
const BINS: u64 = 64;
/// Requests of both programs in a bin at least, so that chi-square holds.
const LEAST: u64 = 10;
/// Larger requests reach the disk in parts, in any order.
const WHOLE_BYTES: u64 = 128 << 10;
/// By how much two programs may differ, in percent.
const MOST_PERCENT: f64 = 2.0;
/// By how much the shares of popular places may.
const MOST_POINTS: f64 = 3.0;

/// A request that moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// Whether it reads.
    pub(super) is_read: bool,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
}

/// The requests of a log that move data.
pub(super) fn data_requests(log: &[Served]) -> Vec<Seen> {
    let request = |served: &Served| {
        let &Served { op, offset_bytes, bytes, .. } = served;
        (op != Op::Flush).then_some(Seen { is_read: op == Op::Read, offset_bytes, bytes })
    };
    log.iter().filter_map(request).collect()
}

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) text: String,
    pub(super) is_alike: bool,
}

/// How offsets of jobs that run at once can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offsets {
    /// Each request in its place.
    InOrder,
    /// The same requests in any order.
    SameSet,
    /// Reads and writes are drawn, and each stream goes through the same sequences, as far as it comes.
    Prefixes,
    /// How often each part of the span is met.
    Drawn,
    /// How often the most popular places are met, wherever they lie.
    Popularity,
}

impl Offsets {
    fn of(jobs: &[LoadJob]) -> Self {
        let kinds = || jobs.iter().flat_map(LoadJob::kinds);
        let is_fixed = kinds().all(|kind| kind.is_in_order() && is_of_one_size(kind));
        let is_mix = jobs.iter().any(|job| job.reads.is_some() && job.writes.is_some());
        let is_alone = jobs.len() == 1 && jobs[0].streams == 1;
        let is_one_by_one = is_alone && jobs[0].queue_depth == 1 && jobs[0].max_block_bytes() <= WHOLE_BYTES;
        let is_scattered =
            |kind: &Requests| matches!(kind.offsets, OffsetRule::Zipf { .. } | OffsetRule::Pareto { .. });
        match () {
            () if is_fixed && !is_mix && is_one_by_one => Self::InOrder,
            () if is_fixed && !is_mix => Self::SameSet,
            () if is_fixed && jobs.len() == 1 && jobs[0].range == StreamRange::Shared => Self::Prefixes,
            () if is_alone && kinds().all(is_scattered) => Self::Popularity,
            () => Self::Drawn,
        }
    }
}

fn is_of_one_size(requests: &Requests) -> bool {
    requests.min_bytes() == requests.max_bytes()
}

/// The size of all requests and what their offsets are multiples of, where each is one and they reach the disk in parts.
fn unit_and_step_bytes(jobs: &[LoadJob]) -> Option<(u64, u64)> {
    let of_kind = |kind: &Requests| match kind.offsets {
        OffsetRule::Skips { skip_bytes } if skip_bytes > 0 => {
            (kind.max_bytes(), kind.max_bytes() + skip_bytes.unsigned_abs())
        }
        _ => (kind.max_bytes(), kind.max_bytes()),
    };
    let mut kinds = jobs.iter().flat_map(LoadJob::kinds).map(of_kind);
    let first = kinds.next()?;
    (first.0 > WHOLE_BYTES && kinds.all(|kind| kind == first)).then_some(first)
}

/// Requests of one size that the kernel cut, how depending on their memory, as those that they were; in no order.
fn whole(parts: &[Seen], unit_bytes: u64, step_bytes: u64) -> Vec<Seen> {
    let first_bytes = parts.iter().map(|part| part.offset_bytes).min().unwrap_or(0);
    let mut bytes_of: BTreeMap<(bool, u64), u64> = BTreeMap::new();
    for part in parts {
        let place = (part.offset_bytes - first_bytes) / step_bytes;
        *bytes_of.entry((part.is_read, place)).or_default() += part.bytes;
    }
    let request = |((is_read, place), bytes): ((bool, u64), u64)| {
        let offset_bytes = first_bytes + place * step_bytes;
        let count = usize::try_from(bytes.div_ceil(unit_bytes)).unwrap_or(usize::MAX);
        std::iter::repeat_n(Seen { is_read, offset_bytes, bytes: bytes / count as u64 }, count)
    };
    bytes_of.into_iter().flat_map(request).collect()
}

/// Compares the requests of rdsk with those of fio.
pub(super) fn compared(jobs: &[LoadJob], ours: &[Seen], theirs: &[Seen]) -> Compared {
    if let Some((unit_bytes, step_bytes)) = unit_and_step_bytes(jobs) {
        let [ours, theirs] = [ours, theirs].map(|requests| whole(requests, unit_bytes, step_bytes));
        return compared_whole(jobs, &ours, &theirs);
    }
    compared_whole(jobs, ours, theirs)
}

fn compared_whole(jobs: &[LoadJob], ours: &[Seen], theirs: &[Seen]) -> Compared {
    let bytes = |requests: &[Seen]| requests.iter().map(|request| request.bytes).sum::<u64>() as f64;
    let reads = |requests: &[Seen]| {
        let reads = requests.iter().filter(|request| request.is_read).map(|request| request.bytes);
        100.0 * reads.sum::<u64>() as f64 / bytes(requests).max(1.0)
    };
    let off = |ours: f64, theirs: f64| 100.0 * (ours / theirs.max(1.0) - 1.0);
    let of_bytes = off(bytes(ours), bytes(theirs));
    let of_requests = off(ours.len() as f64, theirs.len() as f64);
    let of_mix = reads(ours) - reads(theirs);
    let mut text = format!(
        "{} requests, bytes {of_bytes:+.1}%, requests {of_requests:+.1}%, mix {of_mix:+.1} points",
        theirs.len()
    );
    let mut is_alike = [of_bytes, of_requests, of_mix].iter().all(|off| off.abs() <= MOST_PERCENT);
    let mut note = |name: &str, (what, holds): (String, bool)| {
        write!(text, ", {name} {what}").expect("a String takes everything");
        is_alike &= holds;
    };
    if jobs.iter().flat_map(LoadJob::kinds).any(|kind| !is_of_one_size(kind)) {
        note("sizes", by_chance(&tables(ours, theirs, |request| request.bytes)));
    }
    note("offsets", offsets(Offsets::of(jobs), ours, theirs));
    Compared { text, is_alike }
}

fn offsets(how: Offsets, ours: &[Seen], theirs: &[Seen]) -> (String, bool) {
    let exact = |is_same: bool, where_not: String| {
        if is_same { ("exact".to_owned(), true) } else { (where_not, false) }
    };
    match how {
        Offsets::InOrder => {
            let other = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
            exact(
                ours == theirs,
                format!("differ from request {} on", other.unwrap_or(ours.len().min(theirs.len()))),
            )
        }
        Offsets::SameSet => {
            let [mut ours, mut theirs] = [ours.to_vec(), theirs.to_vec()];
            ours.sort_unstable();
            theirs.sort_unstable();
            exact(ours == theirs, "are not the same set".into())
        }
        Offsets::Prefixes => {
            let is_same = [true, false].into_iter().all(|reads| is_same_sequence(reads, ours, theirs));
            exact(is_same, "are not the same sequence".into())
        }
        Offsets::Drawn => {
            let end = ours.iter().chain(theirs).map(|request| request.offset_bytes + 1).max().unwrap_or(1);
            by_chance(&tables(ours, theirs, |request| request.offset_bytes / end.div_ceil(BINS)))
        }
        Offsets::Popularity => by_popularity(ours, theirs),
    }
}

/// Whether streams that share a span go through it from the same place on, in the same steps, each as far as it comes: no place is met more
/// often than the one before it.
fn is_same_sequence(reads: bool, ours: &[Seen], theirs: &[Seen]) -> bool {
    let counts = |requests: &[Seen]| {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let side = requests.iter().filter(|request| request.is_read == reads);
        side.for_each(|request| *counts.entry(request.offset_bytes).or_default() += 1);
        counts.into_iter().collect::<Vec<(u64, u64)>>()
    };
    let (ours, theirs) = (counts(ours), counts(theirs));
    let falls = |counts: &[(u64, u64)]| counts.windows(2).all(|pair| pair[1].1 <= pair[0].1);
    let is_same_place = ours.iter().zip(&theirs).all(|(ours, theirs)| ours.0 == theirs.0);
    let same_first = ours.first().map(|first| first.1) == theirs.first().map(|first| first.1);
    is_same_place && same_first && falls(&ours) && falls(&theirs)
}

/// How often each value is met by the writes and by the reads of both programs.
fn tables(ours: &[Seen], theirs: &[Seen], value: impl Fn(&Seen) -> u64) -> [Vec<[u64; 2]>; 2] {
    let mut of_kind = [BTreeMap::new(), BTreeMap::new()];
    for (program, requests) in [ours, theirs].into_iter().enumerate() {
        for request in requests {
            of_kind[usize::from(request.is_read)].entry(value(request)).or_insert([0; 2])[program] += 1;
        }
    }
    of_kind.map(|table: BTreeMap<u64, [u64; 2]>| table.into_values().collect())
}

/// Whether both columns of both tables can be draws of the same shares; the table that is less likely says so.
fn by_chance(tables: &[Vec<[u64; 2]>; 2]) -> (String, bool) {
    let of_table = |table: &Vec<[u64; 2]>| {
        let rows = filled(table);
        let column = |program: usize| rows.iter().map(|row| row[program]).collect::<Vec<u64>>();
        chi_square_of_two(&column(0), &column(1))
    };
    let is_in_both =
        |table: &&Vec<[u64; 2]>| [0, 1].iter().all(|program| table.iter().any(|row| row[*program] > 0));
    // A kind of request that one program lacks is a matter of the mix.
    let worst = tables
        .iter()
        .filter(is_in_both)
        .map(of_table)
        .max_by(|(left, of_left), (right, of_right)| (left / of_left).total_cmp(&(right / of_right)));
    let (statistic, limit) = worst.unwrap_or((0.0, 0.0));
    (format!("chi-square {statistic:.0} of {limit:.0}"), statistic <= limit)
}

/// Rows with enough in each: the next ones are added to those that have too little.
fn filled(table: &[[u64; 2]]) -> Vec<[u64; 2]> {
    let mut rows: Vec<[u64; 2]> = Vec::new();
    for row in table {
        match rows.last_mut() {
            Some(last) if last[0] + last[1] < LEAST => *last = [last[0] + row[0], last[1] + row[1]],
            _ => rows.push(*row),
        }
    }
    if let [.., before, last] = rows.as_mut_slice()
        && last[0] + last[1] < LEAST
    {
        *before = [before[0] + last[0], before[1] + last[1]];
        rows.pop();
    }
    rows
}

/// Whether places are as popular with both programs, by the shares of the most popular 1, 2, 4, 8, … places: fio approximates the law of
/// Zipf, by up to two points of these (lib/zipf.c has a formula for all ranks behind the second).
fn by_popularity(ours: &[Seen], theirs: &[Seen]) -> (String, bool) {
    let shares = |requests: &[Seen]| {
        let places: Vec<(u64, u64)> =
            requests.iter().map(|request| (request.offset_bytes, request.bytes)).collect();
        let mut sum = 0;
        let mut share = |class: u64| {
            sum += class;
            100.0 * sum as f64 / requests.len().max(1) as f64
        };
        same_io::by_popularity(&places).into_iter().map(&mut share).collect::<Vec<f64>>()
    };
    let off = shares(ours).into_iter().zip(shares(theirs)).map(|(ours, theirs)| (ours - theirs).abs());
    let off = off.fold(0.0, f64::max);
    (format!("by popularity {off:.1} points"), off <= MOST_POINTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::BlockShare;
    use std::slice::from_ref;

    fn reads(offsets: impl Iterator<Item = u64>) -> Vec<Seen> {
        offsets.map(|offset_bytes| Seen { is_read: true, offset_bytes, bytes: 4096 }).collect()
    }

    fn job(offsets: OffsetRule) -> LoadJob {
        let reads = Some(Requests::new(vec![BlockShare::fixed(4096)], offsets));
        LoadJob { reads, ..LoadJob::random_reads("r", 1 << 30) }
    }

    #[test]
    fn sequences_are_compared_request_by_request() {
        let sequence = || (0..1000).map(|block| block * 4096);
        let one_by_one = job(OffsetRule::Sequential);
        let alike = compared(from_ref(&one_by_one), &reads(sequence()), &reads(sequence()));
        assert!(alike.is_alike && alike.text.ends_with("offsets exact"), "{alike:?}");
        let turned = compared(from_ref(&one_by_one), &reads(sequence().rev()), &reads(sequence()));
        assert!(!turned.is_alike && turned.text.ends_with("differ from request 0 on"), "{turned:?}");
        let deep = LoadJob { queue_depth: 4, ..one_by_one.clone() };
        assert!(compared(from_ref(&deep), &reads(sequence().rev()), &reads(sequence())).is_alike);
        let moved = sequence().map(|offset| offset + 4096 * u64::from(offset == 40_960));
        assert!(!compared(&[deep], &reads(moved), &reads(sequence())).is_alike);
        let fewer = compared(&[one_by_one], &reads(sequence().take(970)), &reads(sequence()));
        assert!(fewer.text.contains("bytes -3.0%, requests -3.0%") && !fewer.is_alike, "{fewer:?}");
    }

    #[test]
    fn reads_and_writes_of_a_mix_go_through_the_same_sequences() {
        let mixed = |reads: u64| {
            let request = |block, is_read| Seen { is_read, offset_bytes: block * 4096, bytes: 4096 };
            (0..reads)
                .map(|block| request(block, true))
                .chain((0..2000 - reads).map(|block| request(block, false)))
                .collect::<Vec<_>>()
        };
        let mix = LoadJob {
            writes: job(OffsetRule::Sequential).reads,
            read_percent: 50,
            ..job(OffsetRule::Sequential)
        };
        assert!(compared(from_ref(&mix), &mixed(1010), &mixed(990)).is_alike);
        assert!(!compared(from_ref(&mix), &mixed(1060), &mixed(990)).is_alike, "3.5 points");
        let twice = |seen: Vec<Seen>| [seen.clone(), seen].concat();
        let two = LoadJob { streams: 2, ..mix.clone() };
        assert!(compared(from_ref(&two), &[mixed(1010), mixed(990)].concat(), &twice(mixed(1000))).is_alike);
        assert!(
            !compared(from_ref(&two), &mixed(1010), &twice(mixed(1000))).is_alike,
            "one stream is missing"
        );
        let mut other = mixed(1010);
        other[3].offset_bytes += 512;
        assert!(!compared(&[mix], &other, &mixed(990)).is_alike);
    }

    #[test]
    fn drawn_offsets_are_compared_by_chi_square() {
        let mut random = rdsk_stats::rng::SplitMix64::new(7);
        let mut uniform = |count: u64| {
            reads((0..count).map(|_| random.below(16_384) * 4096).collect::<Vec<_>>().into_iter())
        };
        let (first, second) = (uniform(10_000), uniform(10_000));
        let alike = compared(&[job(OffsetRule::Uniform)], &first, &second);
        assert!(alike.is_alike, "{alike:?}");
        // The last part of the span is never met, as where the largest of several sizes has no room.
        let shorter: Vec<Seen> = second.iter().copied().filter(|read| read.offset_bytes < 63 << 20).collect();
        let other = compared(&[job(OffsetRule::Uniform)], &first, &shorter);
        assert!(!other.is_alike && other.text.contains("offsets chi-square"), "{other:?}");
    }

    #[test]
    fn requests_that_the_kernel_cut_are_put_together() {
        let large = LoadJob {
            reads: Some(Requests::new(vec![BlockShare::fixed(1 << 20)], OffsetRule::Sequential)),
            ..job(OffsetRule::Sequential)
        };
        let cut = |bytes: u64| {
            let part = |part| Seen { is_read: true, offset_bytes: part * bytes, bytes };
            (0..(8 << 20) / bytes).map(part).collect::<Vec<_>>()
        };
        let alike = compared(from_ref(&large), &cut(512 << 10), &cut(256 << 10));
        assert!(alike.is_alike && alike.text.starts_with("8 requests"), "{alike:?}");
        assert!(!compared(from_ref(&large), &cut(512 << 10)[..14], &cut(256 << 10)).is_alike);
        let mut holes = large;
        holes.reads.as_mut().expect("it reads").offsets = OffsetRule::Skips { skip_bytes: 512 << 10 };
        let in_three =
            |bytes: u64| cut(bytes).into_iter().filter(|part| part.offset_bytes % (3 << 19) < 1 << 20);
        let [ours, theirs] = [512 << 10, 256 << 10].map(|bytes| in_three(bytes).collect::<Vec<_>>());
        let alike = compared(&[holes], &ours, &theirs);
        assert!(alike.is_alike && alike.text.starts_with("6 requests"), "{alike:?}");
    }

    #[test]
    fn popular_places_may_lie_anywhere() {
        let popular = |key: u64, most: u64| {
            reads((0..8192u64).map(move |draw| if draw % 100 < most { key } else { draw * 4096 }))
        };
        let zipf = job(OffsetRule::Zipf { theta: 1.1 });
        assert!(compared(from_ref(&zipf), &popular(7, 20), &popular(4096, 21)).is_alike);
        assert!(!compared(&[zipf], &popular(7, 20), &popular(4096, 30)).is_alike);
    }
}
