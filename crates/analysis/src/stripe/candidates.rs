//! What `infer` fits and `conclude` weighs: the samples, the layouts tried, and what full stripes save.

use rdsk_stats::{median, smaller_p_value};

use super::shape::{Layout, PLAIN, SHAPE};
use super::sweep::Probe;

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
