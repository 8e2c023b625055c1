//! From the latencies of a sweep to the geometry: every candidate layout is fitted to them. What a revolution, a byte or a
//! read costs is fitted for each layout anew; no property of any device is assumed.

use std::collections::BTreeMap;

use rdsk_model::Op;
use rdsk_stats::{LeastSquares, median};

use super::boundary_profile::{BoundaryProfile, boundary_profile, is_triple};
use super::conclude::{Case, conclude, inconclusive};
use super::geometry::{Geometry, Sample};
use super::layouts::{
    Candidate, FLOOR, Fit, Layout, MAX_DATA, Observation, PLAIN, Redundancy, SEEN_LOG_ODDS, SHAPE, Saving,
    UNKNOWNS, plain,
};
use super::sweep::{Probe, SITE_BYTES};

/// Latencies above this multiple of the median of their size are left out: something else happened.
const OUTLIER: f64 = 4.0;
/// Samples below which nothing is said.
const MIN_SAMPLES: usize = 200;
/// Log odds of the fits are divided by this before those of the small requests, which suppose less, are added.
const FIT_TEMPER: f64 = 3.0;
/// Chunks whose log odds are below the best by no more than this are looked at more closely.
const NEAR_LOG_ODDS: f64 = 5.0;
/// What the log odds of a layout with parity lose when no full stripe was written.
const UNPROVEN_LOG_ODDS: f64 = 30.0;
/// A chunk whose log odds from the small requests are below the best by more than this is not considered.
const RULED_OUT_LOG_ODDS: f64 = 60.0;
/// Chance of such a difference from which on it is beyond doubt, whatever else there is.
const BEYOND_DOUBT: f64 = 1e-4;
/// Share of a stripe's saving from which on a part of the stripe counts as saving as much.
const AS_MUCH: f64 = 0.7;

/// Reads the latencies of a sweep, given in the order of issue.
///
/// Chunks are the powers of two between twice the sweep's unit and 4 MiB, full stripes 2 to 24 of them, no larger than
/// the largest request. Latency alone cannot distinguish a stripe without parity over flash from the dies within one flash
/// device; such steps are named in the evidence and are no stripe. Reads visit all members in turn, parity or not, so
/// reads show the full stripe with little confidence.
pub fn infer(op: Op, samples: &[Sample]) -> Geometry {
    let profile = boundary_profile(samples);
    let rows = rows(samples);
    let Some(profile) = profile.filter(|_| rows.len() >= MIN_SAMPLES) else {
        let why = format!("{} of {} samples are too few for a conclusion", rows.len(), samples.len());
        return inconclusive(&rows, None, why);
    };
    let null = fit(&rows, None);
    let candidates = candidates(op, &rows, &profile, &null);
    conclude(&Case { op, rows: &rows, profile: &profile, null: &null, candidates: &candidates })
}

/// The samples that sizes are fitted to: those of no triple, not the first at a site, and no outliers.
fn rows(samples: &[Sample]) -> Vec<Observation> {
    let span = samples.iter().map(|sample| sample.offset_bytes + sample.bytes).max().unwrap_or(0).max(1);
    let mut chosen: Vec<&Sample> = Vec::new();
    for (before, pair) in samples.windows(2).enumerate() {
        let (index, sample) = (before + 1, &pair[1]);
        let is_near = pair[0].offset_bytes.abs_diff(sample.offset_bytes) <= SITE_BYTES;
        if is_near && sample.latency_ns > 0 && sample.bytes > 0 && !in_triple(samples, index) {
            chosen.push(sample);
        }
    }
    let mut classes: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for sample in &chosen {
        classes.entry(size_class(sample.bytes)).or_default().push(sample.latency_ns as f64);
    }
    let usual: BTreeMap<i32, f64> =
        classes.iter().filter_map(|(&class, latencies)| Some((class, median(latencies)?))).collect();
    chosen
        .iter()
        .filter_map(|sample| {
            let usual_ns = usual.get(&size_class(sample.bytes))?;
            let target = sample.latency_ns as f64 / usual_ns;
            let probe = Probe { offset_bytes: sample.offset_bytes, bytes: sample.bytes };
            let place = sample.offset_bytes as f64 / span as f64;
            (target <= OUTLIER).then_some(Observation { probe, place, target, weight: 1.0 / usual_ns })
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
fn fit(rows: &[Observation], layout: Option<&Layout>) -> Fit {
    let mut sums = LeastSquares::default();
    for row in rows {
        let mut figures = [0.0; UNKNOWNS];
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

fn candidates(op: Op, rows: &[Observation], profile: &BoundaryProfile, null: &Fit) -> Vec<Candidate> {
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
    let likeliest_first = |a: &Candidate, b: &Candidate| b.log_odds.total_cmp(&a.log_odds);
    candidates.sort_by(likeliest_first);
    let is_proven = candidates.first().is_some_and(|best| {
        let saving = Saving::of(rows, &best.layout);
        best.layout.redundancy == Redundancy::Parity && saving.is_some_and(|saving| saving.p_value < 0.05)
    });
    // Stripes that do not begin at 0 are looked for if no others show themselves; boundaries of chunks must be seen.
    if op == Op::Write && !is_proven && best_odds >= SEEN_LOG_ODDS {
        let near = |chunk: &u64| profile.best_case(*chunk) >= best_odds - NEAR_LOG_ODDS;
        for chunk_bytes in profile.candidates().into_iter().filter(near) {
            for data in (2..=MAX_DATA).filter(|data| data * chunk_bytes < largest) {
                let redundancy = Redundancy::Parity;
                let shifted =
                    (1..data).map(|shift_chunks| Layout { chunk_bytes, data, redundancy, shift_chunks });
                candidates.extend(shifted.filter_map(|layout| candidate(rows, profile, null, layout)));
            }
        }
    }
    // Without parity, a full stripe saves nothing.
    let is_beyond_doubt = |candidate: &Candidate| {
        candidate.layout.redundancy == Redundancy::Parity
            && Saving::of(rows, &candidate.layout)
                .is_some_and(|saving| saving.is_clear() && saving.p_value < BEYOND_DOUBT)
    };
    if candidates.iter().any(is_beyond_doubt) {
        candidates.retain(|candidate| candidate.layout.redundancy == Redundancy::Parity);
    }
    candidates.sort_by(likeliest_first);
    candidates
}

/// `None` if a layout explains the samples only by revolutions and bytes that cost less than nothing.
fn candidate(
    rows: &[Observation],
    profile: &BoundaryProfile,
    null: &Fit,
    layout: Layout,
) -> Option<Candidate> {
    let fit = fit(rows, Some(&layout));
    let cost = &fit.factors[PLAIN..];
    let odds = profile.log_odds(layout.chunk_bytes, Some(layout.stripe_bytes()));
    let saving = Saving::of(rows, &layout);
    let reads_seen = match layout.redundancy {
        // Without parity a part never costs more than the whole.
        Redundancy::None if saving.is_some_and(Saving::is_clear) => return None,
        Redundancy::None => 0.0,
        // Full stripes must be the cheaper ones; if none was written, other proof has to be so much stronger.
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

/// Whether a part of the presumed stripe already is a whole one: it saves as much against parts of its own.
fn is_several(rows: &[Observation], layout: &Layout, saving: Saving) -> bool {
    let spares = |saving: Saving| 1.0 - saving.whole_ns / saving.partial_ns;
    (2..layout.data)
        .filter(|&parts| layout.data.is_multiple_of(parts) || layout.chunk_bytes.is_multiple_of(parts))
        .any(|parts| {
            let mut part = Layout { shift_chunks: 0, ..*layout };
            if layout.data.is_multiple_of(parts) {
                part.data /= parts;
            } else {
                part.chunk_bytes /= parts;
            }
            Saving::of(rows, &part)
                .is_some_and(|part| part.is_clear() && spares(part) >= AS_MUCH * spares(saving))
        })
}
