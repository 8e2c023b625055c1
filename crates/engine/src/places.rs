//! Which places of each target the run has accessed so far, and what the first I/O at each cost beside the others: a volume that is
//! fetched from a snapshot, or a thin disk that allocates, takes longer for it. It keeps one bit per place and direction, and
//! issues nothing.

use crate::job::Run;
use rdsk_model::{FirstAccess, Op, Workload};
use rdsk_stats::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Smallest size of a place, as a power of two: 1 MiB. Volumes are fetched and allocated in units of 64 KiB to some MiB.
const LEAST_SHIFT: u32 = 20;
/// Most places of a target, so that their bits stay in the processor's cache; larger targets have larger places.
const MAX_PLACES: u64 = 1 << 22;

/// The places of one target.
#[derive(Debug)]
pub(crate) struct Places {
    /// Size of a place, as a power of two.
    shift: u32,
    /// A bit for each place that was read or written.
    accessed: Box<[AtomicU64]>,
    /// A bit for each place that was written.
    written: Box<[AtomicU64]>,
}

impl Places {
    /// Of a target of so many bytes that nothing has accessed yet.
    fn new(size_bytes: u64) -> Self {
        let mut shift = LEAST_SHIFT;
        while size_bytes >> shift > MAX_PLACES {
            shift += 1;
        }
        let places = usize::try_from(size_bytes.div_ceil(1 << shift)).unwrap_or(0);
        let bits = || (0..places.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { shift, accessed: bits(), written: bits() }
    }

    /// Notes an I/O; how many of its places are accessed for the first time. A write is the first of its place if nothing was written
    /// there, a read if nothing was read or written.
    #[inline]
    pub(crate) fn touch(&self, op: Op, offset_bytes: u64, len: usize) -> u64 {
        let (first, last) = self.range(offset_bytes, len as u64);
        (first..=last).filter(|&place| self.is_new(op, place)).count() as u64
    }

    #[inline]
    fn is_new(&self, op: Op, place: u64) -> bool {
        let (word, bit) = (usize::try_from(place / 64).unwrap_or(usize::MAX), 1 << (place % 64));
        let bits = if op == Op::Read { &self.accessed } else { &self.written };
        let Some(touched) = bits.get(word) else { return false };
        if touched.load(Ordering::Relaxed) & bit != 0 {
            return false;
        }
        if op == Op::Write {
            self.accessed[word].fetch_or(bit, Ordering::Relaxed);
        }
        touched.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    fn range(&self, offset_bytes: u64, bytes: u64) -> (u64, u64) {
        (offset_bytes >> self.shift, (offset_bytes + bytes.max(1) - 1) >> self.shift)
    }

    /// Whether a part of the target has any place left that I/O of this direction did not reach.
    fn has_new(&self, op: Op, offset_bytes: u64, bytes: u64) -> bool {
        let bits = if op == Op::Read { &self.accessed } else { &self.written };
        let (first, last) = self.range(offset_bytes, bytes);
        let is_left = |place: u64| {
            let word = usize::try_from(place / 64).ok().and_then(|word| bits.get(word));
            word.is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (place % 64)) == 0)
        };
        (first..=last).any(is_left)
    }

    fn place_bytes(&self) -> u64 {
        1 << self.shift
    }
}

/// The places of all targets of a run, by their index.
#[derive(Clone, Debug, Default)]
pub struct AllPlaces(BTreeMap<u32, Arc<Places>>);

impl AllPlaces {
    /// The places of a target for a visit; `None` where the run has accessed all that the visit can reach, so that its loop need not look.
    pub(crate) fn of_visit(
        &mut self,
        index: u32,
        size_bytes: u64,
        workload: &Workload,
    ) -> Option<Arc<Places>> {
        let places = self.0.entry(index).or_insert_with(|| Arc::new(Places::new(size_bytes)));
        let (begin, bytes) = match &workload.points {
            Some(_) => (0, size_bytes),
            None => (workload.offset_bytes, workload.span_bytes),
        };
        places.has_new(workload.op, begin, bytes).then(|| Arc::clone(places))
    }
}

/// The I/Os of a stream, or of a visit, that were the first at a place.
#[derive(Debug, Default)]
pub(crate) struct Firsts {
    latencies: Histogram,
    sum_ns: u64,
    places: u64,
    bytes: u64,
}

impl Firsts {
    /// Counts an I/O by the number of new places that it reached.
    #[inline]
    pub(crate) fn count(&mut self, new_places: u64, latency_ns: u64, bytes: u64) {
        if new_places > 0 {
            self.places += new_places;
            self.bytes += bytes;
            self.sum_ns += latency_ns;
            self.latencies.record(latency_ns);
        }
    }

    fn add(&mut self, more: &Self) {
        self.places += more.places;
        self.bytes += more.bytes;
        self.sum_ns += more.sum_ns;
        self.latencies.merge(&more.latencies);
    }

    /// What all streams of a visit had, beside the latencies of all of its I/Os; `None` where no I/O was the first of a place.
    pub(crate) fn of_visit<'a>(
        streams: impl Iterator<Item = &'a Self>,
        run: &Run,
        place_bytes: Option<u64>,
    ) -> Option<FirstAccess> {
        let mut sum = Self::default();
        streams.for_each(|firsts| sum.add(firsts));
        let mut latencies = run.histogram.clone();
        run.warm_up.iter().for_each(|warm_up| latencies.merge(&warm_up.histogram));
        (sum.places > 0).then(|| FirstAccess {
            place_bytes: place_bytes.unwrap_or(1 << LEAST_SHIFT),
            places: sum.places,
            ops: sum.latencies.count(),
            bytes: sum.bytes,
            latency_ns: sum.sum_ns,
            p50_ns: sum.latencies.quantile_unchecked(0.5).unwrap_or(0),
            later_p50_ns: latencies.without(&sum.latencies).quantile_unchecked(0.5),
        })
    }
}

/// The largest places among those of a visit's targets.
pub(crate) fn largest<'a>(places: impl Iterator<Item = &'a Places>) -> Option<u64> {
    places.map(Places::place_bytes).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn each_place_has_one_first_access_per_direction() {
        let places = Places::new(100 * MIB);
        assert_eq!(places.touch(Op::Read, 0, 4096), 1);
        assert_eq!(places.touch(Op::Read, 4096, 4096), 0);
        assert_eq!(places.touch(Op::Read, MIB - 512, 1024), 1, "it reaches into the next place");
        assert_eq!(places.touch(Op::Read, 10 * MIB, 4 << 20), 4);
        assert_eq!(places.touch(Op::Write, 0, 4096), 1, "it was only read");
        assert_eq!(places.touch(Op::Write, 0, 4096), 0);
        assert_eq!(places.touch(Op::Write, 50 * MIB, 4096), 1);
        assert_eq!(places.touch(Op::Read, 50 * MIB, 4096), 0, "what was written is there");
        assert_eq!(places.touch(Op::Read, 100 * MIB + 64 * 64 * MIB, 4096), 0, "beyond the end");
    }

    #[test]
    fn a_visit_whose_places_were_all_accessed_does_not_look() {
        let mut all = AllPlaces::default();
        let workload = Workload { offset_bytes: 2 * MIB, ..Workload::sequential_read(3 * MIB) };
        let places = all.of_visit(7, 100 * MIB, &workload).unwrap();
        places.touch(Op::Read, 2 * MIB, 2 << 20);
        assert!(all.of_visit(7, 100 * MIB, &workload).is_some());
        places.touch(Op::Read, 4 * MIB, 4096);
        assert!(all.of_visit(7, 100 * MIB, &workload).is_none());
        assert!(all.of_visit(7, 100 * MIB, &Workload { op: Op::Write, ..workload }).is_some());
    }

    #[test]
    fn large_targets_have_large_places() {
        assert_eq!(Places::new(1 << 40).place_bytes(), MIB);
        assert_eq!(Places::new(64 << 40).place_bytes(), 16 * MIB);
    }
}
