//! From the latencies of a sweep to the geometry: every layout of the candidates is asked how well it explains them. What
//! a turn, a byte or a read costs is fitted for each layout anew; no property of any device is supposed.

use rdsk_model::Op;
use rdsk_stats::{median, smaller_p_value};

use super::boundary_profile::{BoundaryProfile, boundary_profile, is_triple};
use super::conclude::{Case, conclude, inconclusive};
use super::fit::{Fit, MAX_UNKNOWNS, Sums};
use super::shape::{Layout, PLAIN, Redundancy, SHAPE, plain};
use super::sweep::SITE_BYTES;
use super::{Answer, Probe, Sample};

/// Data disks up to which layouts are considered.
pub(super) const MAX_DATA: u64 = 24;
/// Latencies above this multiple of the median of their size are left out: something else happened.
const OUTLIER: f64 = 4.0;
/// Samples below which nothing is said.
const MIN_SAMPLES: usize = 200;
/// Log odds of the fits are divided by this before those of the small requests, which suppose less, are added.
const FIT_TEMPER: f64 = 3.0;
/// Log odds of the small requests from which on a chunk counts as seen by them.
pub(super) const SEEN_LOG_ODDS: f64 = 6.0;
/// Chunks whose log odds are below the best by no more than this are looked at more closely.
const NEAR_LOG_ODDS: f64 = 5.0;
/// What the log odds of a layout with parity lose when no whole stripe was written.
const UNPROVEN_LOG_ODDS: f64 = 30.0;
/// No difference below this share of a latency is taken for real.
const FLOOR: f64 = 0.01;
/// A chunk whose log odds from the small requests are below the best by more than this is not considered.
const RULED_OUT_LOG_ODDS: f64 = 60.0;

/// A sample, ready for fitting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) probe: Probe,
    /// Offset as a share of the span.
    pub(super) place: f64,
    /// Latency as a share of what requests of this size usually take.
    pub(super) target: f64,
    /// What the figures are multiplied with, the reverse of the usual latency.
    pub(super) weight: f64,
}

impl Row {
    pub(super) fn latency_ns(&self) -> f64 {
        self.target / self.weight
    }
}

/// A layout and how well it explains the samples.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) layout: Layout,
    pub(super) fit: Fit,
    /// Against a device without a stripe, natural logarithm, of the sizes and of the ladder together.
    pub(super) log_odds: f64,
}

/// Chance of a difference between whole stripes and parts from which on it is not believed.
const DOUBTFUL_SAVING: f64 = 0.01;
/// What partial stripes cost at least, as a multiple of whole ones, if reads are to be the reason.
const MIN_SAVING: f64 = 1.03;

/// Chance of such a difference from which on it is beyond doubt, whatever else there is.
const BEYOND_DOUBT: f64 = 1e-4;
/// Part of a stripe's saving from which on a part of it spares as much.
const AS_MUCH: f64 = 0.7;

/// What whole stripes spare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saving {
    pub(super) whole_ns: f64,
    pub(super) partial_ns: f64,
    pub(super) p_value: f64,
}

impl Saving {
    /// Whether whole stripes cost less beyond doubt.
    pub(super) fn is_clear(self) -> bool {
        self.p_value < DOUBTFUL_SAVING && self.partial_ns > MIN_SAVING * self.whole_ns
    }
}

/// Reads the latencies of a sweep, given in the order of issue.
///
/// Chunks are the powers of two between twice the sweep's unit and 4 MiB, full stripes 2 to 24 of them, no larger than
/// the largest request. Latency alone cannot tell a stripe without parity over flash from the dies within one flash
/// device; such steps are named in the evidence and are no stripe. Reads visit all members in turn, parity or not, so
/// from reads the full stripe is told with little confidence.
#[must_use]
pub fn infer(op: Op, samples: &[Sample]) -> Answer {
    let profile = boundary_profile(samples);
    let rows = rows(samples);
    let Some(profile) = profile.filter(|_| rows.len() >= MIN_SAMPLES) else {
        let why = format!("{} of {} samples are too few to tell anything", rows.len(), samples.len());
        return inconclusive(op, &rows, None, why);
    };
    let null = fit(&rows, None);
    let candidates = candidates(op, &rows, &profile, &null);
    conclude(&Case { op, rows: &rows, profile: &profile, null: &null, candidates: &candidates })
}

/// The samples that sizes are judged by: those of no triple, not the first at a site, and no outliers.
fn rows(samples: &[Sample]) -> Vec<Row> {
    let span = samples.iter().map(|sample| sample.offset_bytes + sample.bytes).max().unwrap_or(0).max(1);
    let mut chosen: Vec<&Sample> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let Some(before) = index.checked_sub(1).map(|before| &samples[before]) else { continue };
        let is_near = before.offset_bytes.abs_diff(sample.offset_bytes) <= SITE_BYTES;
        if is_near && sample.latency_ns > 0 && sample.bytes > 0 && !in_triple(samples, index) {
            chosen.push(sample);
        }
    }
    let mut classes: Vec<(i32, Vec<f64>)> = Vec::new();
    for sample in &chosen {
        let class = size_class(sample.bytes);
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, latencies)) => latencies.push(sample.latency_ns as f64),
            None => classes.push((class, vec![sample.latency_ns as f64])),
        }
    }
    let usual: Vec<(i32, f64)> =
        classes.iter().filter_map(|(class, latencies)| Some((*class, median(latencies)?))).collect();
    chosen
        .iter()
        .filter_map(|sample| {
            let class = size_class(sample.bytes);
            let (_, usual_ns) = usual.iter().find(|(known, _)| *known == class)?;
            let target = sample.latency_ns as f64 / usual_ns;
            let probe = Probe { offset_bytes: sample.offset_bytes, bytes: sample.bytes };
            let place = sample.offset_bytes as f64 / span as f64;
            (target <= OUTLIER).then_some(Row { probe, place, target, weight: 1.0 / usual_ns })
        })
        .collect()
}

/// Half octaves.
#[expect(clippy::cast_possible_truncation, reason = "twice the logarithm of a 64-bit number")]
fn size_class(bytes: u64) -> i32 {
    ((bytes as f64).log2() * 2.0).floor() as i32
}

/// Whether a sample is one of three small ones around a boundary.
fn in_triple(samples: &[Sample], index: usize) -> bool {
    let first = index.saturating_sub(2);
    (first..=index).any(|start| samples.get(start..start + 3).is_some_and(is_triple))
}

/// Fits what the samples have in common, with a layout or without.
fn fit(rows: &[Row], layout: Option<&Layout>) -> Fit {
    let mut sums = Sums::new();
    for row in rows {
        let mut figures = [0.0; MAX_UNKNOWNS];
        figures[..PLAIN].copy_from_slice(&plain(row.probe, row.place));
        if let Some(layout) = layout {
            figures[PLAIN..PLAIN + SHAPE].copy_from_slice(&layout.shape(row.probe, row.place));
        }
        // In units of a typical latency, so that the factors are neither huge nor tiny.
        figures.iter_mut().for_each(|figure| *figure *= row.weight * 1e6);
        sums.add(&figures, row.target);
    }
    sums.solve()
}

fn candidates(op: Op, rows: &[Row], profile: &BoundaryProfile, null: &Fit) -> Vec<Candidate> {
    let largest = rows.iter().map(|row| row.probe.bytes).max().unwrap_or(0);
    let chunks = profile.candidates();
    let best_odds = chunks.iter().map(|&chunk| profile.best_case(chunk)).fold(0.0, f64::max);
    let redundancies: &[Redundancy] =
        if op == Op::Write { &[Redundancy::None, Redundancy::Parity] } else { &[Redundancy::None] };
    let mut candidates = Vec::new();
    for chunk_bytes in chunks {
        // What the small requests rule out need not be fitted.
        if profile.best_case(chunk_bytes) < best_odds - RULED_OUT_LOG_ODDS {
            continue;
        }
        for data in (2..=MAX_DATA).filter(|data| data * chunk_bytes < largest) {
            for &redundancy in redundancies {
                let layout = Layout { chunk_bytes, data, redundancy, shift_chunks: 0 };
                candidates.extend(candidate(rows, profile, null, layout));
            }
        }
    }
    candidates.sort_by(|a, b| b.log_odds.total_cmp(&a.log_odds));
    let is_proven = candidates.first().is_some_and(|best| {
        let saving = whole_against_partial(rows, &best.layout);
        best.layout.redundancy == Redundancy::Parity && saving.is_some_and(|saving| saving.p_value < 0.05)
    });
    // Stripes that do not begin at 0 are looked for where no others show themselves; boundaries of chunks must be seen.
    if op == Op::Write && !is_proven && best_odds >= SEEN_LOG_ODDS {
        let near = |chunk: &u64| profile.best_case(*chunk) >= best_odds - NEAR_LOG_ODDS;
        for chunk_bytes in profile.candidates().into_iter().filter(near) {
            for data in (2..=MAX_DATA).filter(|data| data * chunk_bytes < largest) {
                let shifted = (1..data).map(|shift_chunks| Layout {
                    chunk_bytes,
                    data,
                    redundancy: Redundancy::Parity,
                    shift_chunks,
                });
                candidates.extend(shifted.filter_map(|layout| candidate(rows, profile, null, layout)));
            }
        }
    }
    // Nothing without parity spares anything by being whole.
    let is_beyond_doubt = |one: &Candidate| {
        one.layout.redundancy == Redundancy::Parity
            && whole_against_partial(rows, &one.layout)
                .is_some_and(|saving| saving.is_clear() && saving.p_value < BEYOND_DOUBT)
    };
    if candidates.iter().any(is_beyond_doubt) {
        candidates.retain(|one| one.layout.redundancy == Redundancy::Parity);
    }
    candidates.sort_by(|a, b| b.log_odds.total_cmp(&a.log_odds));
    candidates
}

/// `None` where a layout explains the samples only by turns and bytes that cost less than nothing.
fn candidate(rows: &[Row], profile: &BoundaryProfile, null: &Fit, layout: Layout) -> Option<Candidate> {
    let fit = fit(rows, Some(&layout));
    let cost = &fit.factors[PLAIN..];
    let odds = profile.log_odds(layout.chunk_bytes, Some(layout.stripe_bytes()));
    let saving = whole_against_partial(rows, &layout);
    let reads_seen = match layout.redundancy {
        // Without parity a part never costs more than the whole.
        Redundancy::None if saving.is_some_and(Saving::is_clear) => return None,
        Redundancy::None => 0.0,
        // Whole stripes must be the cheaper ones; where none was written, other proof has to be so much stronger.
        Redundancy::Parity => match saving {
            None => -UNPROVEN_LOG_ODDS,
            Some(saving) if saving.whole_ns >= saving.partial_ns => return None,
            Some(saving) if is_several(rows, &layout, saving) => return None,
            Some(saving) if saving.p_value < 0.05 => 0.0,
            Some(_) => -UNPROVEN_LOG_ODDS,
        },
    };
    let log_odds = (fit.score(FLOOR) - null.score(FLOOR)) / FIT_TEMPER + odds + reads_seen;
    (cost[1] > 0.0 || cost[2] + cost[7] > 0.0).then_some(Candidate { layout, fit, log_odds })
}

/// Whether a part of the presumed stripe already is a whole one: it spares as much against parts of its own.
fn is_several(rows: &[Row], layout: &Layout, saving: Saving) -> bool {
    let spares = |saving: Saving| 1.0 - saving.whole_ns / saving.partial_ns;
    (2..layout.data)
        .filter(|&parts| layout.data.is_multiple_of(parts) || layout.chunk_bytes.is_multiple_of(parts))
        .any(|parts| {
            let (data, chunk_bytes) = if layout.data.is_multiple_of(parts) {
                (layout.data / parts, layout.chunk_bytes)
            } else {
                (layout.data, layout.chunk_bytes / parts)
            };
            let part = Layout { chunk_bytes, data, shift_chunks: 0, ..*layout };
            whole_against_partial(rows, &part)
                .is_some_and(|part| part.is_clear() && spares(part) >= AS_MUCH * spares(saving))
        })
}

/// Chance that the layout's figures explain as much as they do if they mean nothing: Wilks' likelihood ratio, ten
/// degrees of freedom (no layout has more figures), times the number of layouts tried.
pub(super) fn chance_of_gain(null: &Fit, fit: &Fit, tried: usize) -> f64 {
    let floor = FLOOR * FLOOR * fit.rows as f64;
    let ratio = (null.squares.max(floor) / fit.squares.max(floor)).ln() * fit.rows as f64 / 2.0;
    let tail =
        (-ratio).exp() * (1.0 + ratio + ratio.powi(2) / 2.0 + ratio.powi(3) / 6.0 + ratio.powi(4) / 24.0);
    (tail * tried as f64).clamp(f64::MIN_POSITIVE, 1.0)
}

/// Whether whole stripes cost less than smaller writes within one stripe, as only spared reads can make them: the
/// medians in ns and the chance of such a difference (Mann and Whitney).
pub(super) fn whole_against_partial(rows: &[Row], layout: &Layout) -> Option<Saving> {
    let stripe = layout.stripe_bytes();
    let shift = layout.shift_chunks * layout.chunk_bytes;
    let begin = |row: &Row| row.probe.offset_bytes + stripe - shift;
    let whole: Vec<f64> = rows
        .iter()
        .filter(|row| row.probe.bytes == stripe && begin(row).is_multiple_of(stripe))
        .map(Row::latency_ns)
        .collect();
    let partial: Vec<f64> = rows
        .iter()
        .filter(|row| row.probe.bytes < stripe && (begin(row) % stripe) + row.probe.bytes <= stripe)
        .filter(|row| row.probe.bytes * 8 >= stripe)
        .map(Row::latency_ns)
        .collect();
    let (whole_ns, partial_ns) = (median(&whole)?, median(&partial)?);
    if whole.len() < 3 {
        return None;
    }
    let p_value = smaller_p_value(&whole, &partial);
    Some(Saving { whole_ns, partial_ns, p_value })
}
