//! What a presumed layout does to one request: how many members it occupies, how many requests and bytes the busiest one gets, and whether
//! parity must be read; and what `infer` fits and `conclude` weighs: the samples, the layouts tried, and what full stripes save.

use super::sweep::Probe;
use rdsk_stats::{median, smaller_p_value};

/// Whether members hold parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Redundancy {
    /// All members hold data only.
    None,
    /// A stripe has parity, so that writing a part of it costs reads.
    Parity,
}

/// A presumed layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) chunk_bytes: u64,
    pub(super) data: u64,
    pub(super) redundancy: Redundancy,
    /// Where the first stripe begins: a number of chunks, less than `data`.
    pub(super) shift_chunks: u64,
}

/// Figures that distinguish layouts.
pub(super) const SHAPE: usize = 9;
/// Figures that say nothing of a layout: constant, size, size at this position, square root of the size.
pub(super) const PLAIN: usize = 4;

const MIB: f64 = 1_048_576.0;

impl Layout {
    pub(super) fn stripe_bytes(&self) -> u64 {
        self.chunk_bytes * self.data
    }

    /// A place in a whole number of stripes that begin at 0, as far from the start of one as `offset_bytes` is in this layout.
    pub(super) fn unshifted(&self, offset_bytes: u64) -> u64 {
        offset_bytes + self.stripe_bytes() - self.shift_chunks * self.chunk_bytes
    }

    /// The figures of a request; how much each of them costs is not known here.
    pub(super) fn shape(&self, probe: Probe, place: f64) -> [f64; SHAPE] {
        match self.redundancy {
            Redundancy::None => self.striped(probe, place),
            Redundancy::Parity => self.with_parity(probe),
        }
    }

    fn striped(&self, probe: Probe, place: f64) -> [f64; SHAPE] {
        let chunk = self.chunk_bytes;
        let first = probe.offset_bytes / chunk;
        let last = (probe.end_bytes() - 1) / chunk;
        let count = last - first + 1;
        let turns = count.div_ceil(self.data);
        let missing_first = probe.offset_bytes - first * chunk;
        let missing_last = (last + 1) * chunk - probe.end_bytes();
        // Members that get `turns` requests; the request's first chunk lies on the first of them, its last on the last.
        let busy = count - (turns - 1) * self.data;
        let short = match busy {
            1 => missing_first + missing_last,
            2 => missing_first.min(missing_last),
            _ => 0,
        };
        let busiest = (turns * chunk - short).max(if busy < self.data { (turns - 1) * chunk } else { 0 });
        let bytes = busiest as f64 / MIB;
        let occupied = count.min(self.data) as f64;
        [spread(occupied), (turns - 1) as f64, bytes, bytes * place, 0.0, 0.0, 0.0, 0.0, 0.0]
    }

    fn with_parity(&self, probe: Probe) -> [f64; SHAPE] {
        let stripe = self.stripe_bytes();
        let begin = self.unshifted(probe.offset_bytes);
        let end = begin + probe.bytes;
        let (first, last) = (begin / stripe, (end - 1) / stripe);
        let (mut partial, mut writers, mut readers) = (0_u64, 0_u64, 0_u64);
        let (mut rows, mut read_rows, mut own_rows, mut own_read_rows) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut edge = |from: u64, to: u64| {
            if to - from == stripe {
                rows += self.chunk_bytes;
                own_rows += self.chunk_bytes;
                writers = writers.max(self.data + 1);
                return;
            }
            let chunks = (to - 1) / self.chunk_bytes - from / self.chunk_bytes + 1;
            // Parity is computed for the rows between the least and the greatest byte of any chunk, or for those alone that
            // some chunk has; arrays differ.
            let touched = if chunks == 1 { to - from } else { self.chunk_bytes };
            let own = match chunks {
                1 | 2 => self.chunk_bytes.min(to - from),
                _ => self.chunk_bytes,
            };
            let covered = (to / self.chunk_bytes)
                .saturating_sub(from.div_ceil(self.chunk_bytes))
                .max(u64::from(chunks == 1));
            partial += 1;
            rows += touched;
            read_rows += touched;
            own_rows += own;
            own_read_rows += own;
            writers = writers.max(chunks + 1);
            // The old data and parity, or the rest of the stripe, whichever is less.
            readers = readers.max((chunks + 1).min(self.data - covered));
        };
        if first == last {
            edge(begin, end);
        } else {
            edge(begin, (first + 1) * stripe);
            edge(last * stripe, end);
        }
        let whole_between = (last - first).saturating_sub(1);
        rows += whole_between * self.chunk_bytes;
        own_rows += whole_between * self.chunk_bytes;
        if whole_between > 0 {
            writers = self.data + 1;
        }
        let waits = if partial > 0 { 1.0 } else { 0.0 };
        [
            spread(writers as f64),
            (last - first) as f64,
            rows as f64 / MIB,
            read_rows as f64 / MIB,
            waits,
            partial as f64,
            spread(readers as f64),
            own_rows as f64 / MIB,
            own_read_rows as f64 / MIB,
        ]
    }
}

/// The mean of the longest of so many waits, each equally likely to be anything from 0 to 1.
fn spread(members: f64) -> f64 {
    members / (members + 1.0)
}

/// The figures that any device's latency may depend on.
pub(super) fn plain(probe: Probe, place: f64) -> [f64; PLAIN] {
    let size = probe.bytes as f64 / MIB;
    [1.0, size, size * place, size.sqrt()]
}

/// The unknowns that a fit has at most.
pub(super) const UNKNOWNS: usize = PLAIN + SHAPE;

/// A fit of the samples.
pub(super) type Fit = rdsk_stats::Fit<UNKNOWNS>;

/// Data disks up to which layouts are considered.
pub(super) const MAX_DATA: u64 = 24;
/// Log odds of the small requests from which on a chunk counts as seen by them.
pub(super) const SEEN_LOG_ODDS: f64 = 6.0;
/// No difference below this share of a latency is taken for real.
pub(super) const FLOOR: f64 = 0.01;
/// Chance of a difference between full stripes and parts from which on it is not believed.
const DOUBTFUL_SAVING: f64 = 0.01;
/// What partial stripes cost at least, as a multiple of whole ones, if reads are to be the reason.
const MIN_SAVING: f64 = 1.03;

/// A sample, ready for fitting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) probe: Probe,
    /// Offset as a share of the span.
    pub(super) place: f64,
    /// Latency as a share of what requests of this size usually take.
    pub(super) target: f64,
    /// What the figures are multiplied with, the reverse of the usual latency.
    pub(super) weight: f64,
}

impl Observation {
    pub(super) fn latency_ns(&self) -> f64 {
        self.target / self.weight
    }
}

/// A layout and how well it explains the samples.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) layout: Layout,
    pub(super) fit: Fit,
    /// Against a device without a stripe, natural logarithm, of the sizes and of the boundary profile together.
    pub(super) log_odds: f64,
}

/// What full stripes save.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saving {
    pub(super) whole_ns: f64,
    pub(super) partial_ns: f64,
    pub(super) p_value: f64,
}

impl Saving {
    /// Whether full stripes cost less than smaller writes within one stripe, as only spared reads can make them: the
    /// medians in ns and the chance of such a difference (Mann and Whitney).
    pub(super) fn of(rows: &[Observation], layout: &Layout) -> Option<Saving> {
        let stripe = layout.stripe_bytes();
        let begin = |row: &Observation| layout.unshifted(row.probe.offset_bytes);
        let whole: Vec<f64> = rows
            .iter()
            .filter(|row| row.probe.bytes == stripe && begin(row).is_multiple_of(stripe))
            .map(Observation::latency_ns)
            .collect();
        let partial: Vec<f64> = rows
            .iter()
            .filter(|row| row.probe.bytes < stripe && (begin(row) % stripe) + row.probe.bytes <= stripe)
            .filter(|row| row.probe.bytes * 8 >= stripe)
            .map(Observation::latency_ns)
            .collect();
        let (whole_ns, partial_ns) = (median(&whole)?, median(&partial)?);
        if whole.len() < 3 {
            return None;
        }
        let p_value = smaller_p_value(&whole, &partial);
        Some(Saving { whole_ns, partial_ns, p_value })
    }

    /// Whether full stripes cost less beyond doubt.
    pub(super) fn is_clear(self) -> bool {
        self.p_value < DOUBTFUL_SAVING && self.partial_ns > MIN_SAVING * self.whole_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    fn layout(redundancy: Redundancy) -> Layout {
        Layout { chunk_bytes: 64 * K, data: 3, redundancy, shift_chunks: 0 }
    }

    fn shape(redundancy: Redundancy, offset_bytes: u64, bytes: u64) -> [f64; SHAPE] {
        layout(redundancy).shape(Probe { offset_bytes, bytes }, 0.0)
    }

    #[test]
    fn the_busiest_member_of_a_stripe_without_parity() {
        // Offset and size in KiB; members occupied, further turns, bytes of the busiest in KiB.
        for (offset, size, occupied, turns, busiest) in [
            (0, 8, 1.0, 0.0, 8.0),
            (60, 8, 2.0, 0.0, 4.0),
            (0, 192, 3.0, 0.0, 64.0),
            (0, 256, 3.0, 1.0, 128.0),
            (60, 192, 3.0, 1.0, 64.0),
            (32, 192, 3.0, 1.0, 64.0),
            (48, 272, 3.0, 1.0, 128.0 - 48.0 + 48.0),
        ] {
            let shape_of_rows = shape(Redundancy::None, offset * K, size * K);
            assert!(
                (shape_of_rows[0] - spread(occupied)).abs() < 1e-12,
                "{offset}+{size}: {shape_of_rows:?}"
            );
            assert!((shape_of_rows[1] - turns).abs() < 1e-12, "{offset}+{size}: {shape_of_rows:?}");
            assert!((shape_of_rows[2] * 1024.0 - busiest).abs() < 1e-9, "{offset}+{size}: {shape_of_rows:?}");
        }
    }

    #[test]
    fn whole_stripes_read_nothing_and_others_do() {
        for (offset, size, partial) in [
            (0, 192, 0.0),
            (192, 384, 0.0),
            (0, 188, 1.0),
            (4, 188, 1.0),
            (96, 192, 2.0),
            (96, 480, 1.0),
            (96, 96, 1.0),
        ] {
            let shape_of_rows = shape(Redundancy::Parity, offset * K, size * K);
            assert!((shape_of_rows[5] - partial).abs() < 1e-12, "{offset}+{size}: {shape_of_rows:?}");
            assert!((shape_of_rows[4] - partial.min(1.0)).abs() < 1e-12);
        }
        let shifted = Layout { shift_chunks: 1, ..layout(Redundancy::Parity) };
        assert!(shifted.shape(Probe { offset_bytes: 64 * K, bytes: 192 * K }, 0.0)[5] < 0.5);
    }
}
