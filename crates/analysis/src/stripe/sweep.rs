//! The choice of requests: where and how large, decided before anything is measured. It issues nothing, and every list
//! is the same for the same seed.

use rdsk_stats::rng::SplitMix64;

/// Requests near each other: the arms of mechanical members then stay near each other too, and what a request costs is
/// not drowned by long seeks.
pub const SITE_BYTES: u64 = 256 << 20;
/// Boundaries are tried up to multiples of this.
pub(super) const MAX_BOUNDARY_LOG2: u32 = 22;
/// Requests at one site.
const SITE_PROBES: usize = 60;
/// Odd parts of a full stripe: those of 1 to 16 data disks.
const ODD_PARTS: [u64; 8] = [1, 3, 5, 7, 9, 11, 13, 15];
/// The smallest request, where the device allows it.
pub(super) const MIN_UNIT_BYTES: u64 = 4096;
/// The smallest full-stripe candidate.
const MIN_WHOLE_BYTES: u64 = 32 << 10;

/// One request of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl Probe {
    /// The byte after the last.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.bytes
    }
}

/// What a sweep is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// Size of the span that may be used.
    pub capacity_bytes: u64,
    /// Offsets and sizes are multiples of this, and of no less than 4096.
    pub align_bytes: u64,
    /// The largest request. A full stripe above half of it is not found; if the host splits requests, no more than
    /// the largest it leaves whole.
    pub largest_bytes: u64,
    /// Decides places, sizes and order.
    pub seed: u64,
    /// Requests in all, about.
    pub probes: usize,
}

impl SweepOptions {
    /// The usual sweep: 1500 requests of at most 32 MiB.
    pub fn new(capacity_bytes: u64, align_bytes: u64, seed: u64) -> SweepOptions {
        SweepOptions { capacity_bytes, align_bytes, largest_bytes: 32 << 20, seed, probes: 1500 }
    }

    /// The unit of small requests: offsets and sizes are multiples of it.
    pub fn unit_bytes(&self) -> u64 {
        self.align_bytes.max(MIN_UNIT_BYTES).next_power_of_two()
    }
}

/// What is decided of a request before its place.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Three small requests around an odd multiple of 2 to this power: up to it, from it on, and across it.
    Edge(u32),
    /// A request of this size at a multiple of its size.
    Whole(u64),
    /// A request of any size anywhere.
    Any(u64),
}

/// The requests, to be issued one after the other in this very order (the triples depend on it) with little time between,
/// each durable before the next. An empty list if the span has no room for a sweep.
///
/// Three families, mixed at random: triples of small requests around multiples of each candidate chunk (two neighbours
/// follow each other on one member, or go to two); requests of q·2^m bytes at multiples of their size (full stripes,
/// if the data disks are 2^n·q); and requests of any size anywhere. They are dealt to sites over the whole span; every
/// site begins with one large request that brings all members there.
pub fn sweep(options: &SweepOptions) -> Vec<Probe> {
    let unit = options.unit_bytes();
    let span = options.capacity_bytes / unit * unit;
    let largest = options.largest_bytes.min(span / 4) / unit * unit;
    if largest < 16 * unit {
        return Vec::new();
    }
    let mut rng = SplitMix64::new(options.seed);
    let mut kinds = kinds(options.probes, unit, largest, &mut rng);
    rng.shuffle(&mut kinds);
    let site_bytes = SITE_BYTES.min(span);
    let mut probes = Vec::with_capacity(options.probes);
    let (mut site, mut left) = (0, 0);
    for kind in kinds {
        if left == 0 {
            site = rng.below((span - site_bytes) / unit + 1) * unit;
            let offset_bytes = site + (site_bytes - largest) / 2 / unit * unit;
            probes.push(Probe { offset_bytes, bytes: largest });
            left = SITE_PROBES;
        }
        let before = probes.len();
        place(kind, site..site + site_bytes, unit, &mut rng, &mut probes);
        left = left.saturating_sub(probes.len() - before);
    }
    probes
}

fn kinds(probes: usize, unit: u64, largest: u64, rng: &mut SplitMix64) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let highest = MAX_BOUNDARY_LOG2.min((largest / 2).ilog2());
    let levels: Vec<u32> = (unit.ilog2()..=highest).collect();
    let whole: Vec<u64> = ODD_PARTS
        .iter()
        .flat_map(|odd| (0..40).map(move |power| odd << power))
        .filter(|&bytes| bytes >= MIN_WHOLE_BYTES.max(unit) && bytes <= largest && bytes.is_multiple_of(unit))
        .collect();
    // Nine of twenty requests belong to triples, six are whole candidates, five are anything.
    let triples = (probes * 9 / 60).max(levels.len());
    kinds.extend((0..triples).map(|n| Kind::Edge(levels[n % levels.len()])));
    kinds.extend((0..probes * 6 / 20).map(|n| Kind::Whole(whole[n % whole.len()])));
    let widest = (largest as f64 / unit as f64).ln();
    for _ in 0..probes * 5 / 20 {
        kinds.push(Kind::Any(log_uniform(widest, rng) * unit));
    }
    kinds
}

/// A whole number from 1 to e^`widest`, each octave as likely as any other.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the largest request in units"
)]
fn log_uniform(widest: f64, rng: &mut SplitMix64) -> u64 {
    ((rng.uniform() * widest).exp() as u64).max(1)
}

fn place(kind: Kind, site: std::ops::Range<u64>, unit: u64, rng: &mut SplitMix64, probes: &mut Vec<Probe>) {
    match kind {
        Kind::Edge(level) => {
            let boundary = 1_u64 << level;
            // Odd multiples in the site, but for its very ends.
            let first = (site.start + unit).div_ceil(boundary);
            let last = (site.end - unit) / boundary;
            let (first, last) =
                (first | 1, if last.is_multiple_of(2) { last.saturating_sub(1) } else { last });
            if first > last {
                return;
            }
            let at = (first + 2 * rng.below((last - first) / 2 + 1)) * boundary;
            probes.push(Probe { offset_bytes: at - unit, bytes: unit });
            probes.push(Probe { offset_bytes: at, bytes: unit });
            probes.push(Probe { offset_bytes: at - unit, bytes: 2 * unit });
        }
        Kind::Whole(bytes) => {
            let first = site.start.div_ceil(bytes);
            let last = site.end / bytes;
            if first < last {
                probes.push(Probe { offset_bytes: (first + rng.below(last - first)) * bytes, bytes });
            }
        }
        Kind::Any(bytes) => {
            let places = (site.end - site.start - bytes) / unit + 1;
            probes.push(Probe { offset_bytes: site.start + rng.below(places) * unit, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_stays_inside_and_aligned_and_within_its_number() {
        for (capacity_bytes, align_bytes) in
            [(80_026_361_856, 512), (1 << 30, 4096), (64 << 20, 512), (300 << 20, 16384)]
        {
            let options = SweepOptions::new(capacity_bytes, align_bytes, 7);
            let probes = sweep(&options);
            assert!((1300..=1600).contains(&probes.len()), "{} probes", probes.len());
            for probe in &probes {
                assert!(probe.bytes > 0 && probe.end_bytes() <= capacity_bytes, "{probe:?}");
                assert_eq!((probe.offset_bytes % align_bytes, probe.bytes % align_bytes), (0, 0));
                assert!(probe.bytes <= options.largest_bytes);
            }
            assert_eq!(probes, sweep(&options), "the same seed gives the same list");
            assert_ne!(probes, sweep(&SweepOptions { seed: 8, ..options }));
        }
    }

    #[test]
    fn a_span_without_room_gives_no_sweep() {
        assert!(sweep(&SweepOptions::new(128 << 10, 512, 1)).is_empty());
    }

    #[test]
    fn places_lie_over_the_whole_span() {
        let probes = sweep(&SweepOptions::new(1 << 40, 512, 3));
        for quarter in 0..4_u64 {
            assert!(probes.iter().any(|probe| probe.offset_bytes >> 38 == quarter));
        }
    }
}
