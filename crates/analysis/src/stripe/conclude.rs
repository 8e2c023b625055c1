//! What follows from the fitted layouts, and the sentences that say so. It fits nothing.

use std::collections::BTreeSet;

use rdsk_model::Op;
use rdsk_stats::median;

use super::boundary_profile::BoundaryProfile;
use super::geometry::{Figure, Geometry, SURE, SizePoint, exact as bytes};
use super::layouts::{
    Candidate, FLOOR, Fit, Layout, MAX_DATA, Observation, Redundancy, SEEN_LOG_ODDS, Saving,
};
use crate::metrics::whole;
use crate::words::{nanos, plural};

/// Log odds are divided by this before they become a probability: deviations are neither normal nor independent.
const TEMPER: f64 = 1.5;
/// Chance from which on a difference is not believed.
const DOUBTFUL: f64 = 1e-4;
/// The same if it is one of several reasons.
const UNLIKELY: f64 = 0.01;
/// Log odds that leave no doubt, once divided for what fits suppose.
const CLEAR: f64 = 10.0;
/// The most confidence in parity that no full stripe proved.
const INDIRECT: f64 = 0.95;
/// A probability too small to print: no model of scatter holds so far out.
const NEGLIGIBLE: f64 = 1e-12;
/// Times that the longest request must go round all members.
const ROUNDS: u64 = 3;
/// No inference is surer.
const SUREST: f64 = 0.999;
/// The most confidence in what other devices would show as well.
const AMBIGUOUS: f64 = 0.5;
/// The same if only an unusual device would.
const UNUSUAL: f64 = 0.8;

/// Everything that the conclusion rests on.
pub(super) struct Case<'a> {
    pub(super) op: Op,
    pub(super) rows: &'a [Observation],
    pub(super) profile: &'a BoundaryProfile,
    pub(super) null: &'a Fit,
    /// Likeliest first.
    pub(super) candidates: &'a [Candidate],
}

/// Confidence in the parts of a layout, 0 … 1.
#[derive(Clone, Copy, Debug)]
struct Shares {
    chunk: f64,
    stripe: f64,
    none: f64,
}

/// What speaks for a layout.
#[derive(Clone, Copy, Debug)]
struct Proof {
    /// Chance that sizes fit it as well by accident.
    gain_p: f64,
    /// The small requests change at its chunk.
    is_seen: bool,
    /// They change as those of several devices do.
    is_striped: bool,
    /// Full stripes cost less than parts.
    saving: Option<Saving>,
    /// Log odds of the best layout with parity against the best without; 0 if that one is ahead.
    reads_margin: f64,
}

/// Draws the conclusion from the candidates.
pub(super) fn conclude(case: &Case<'_>) -> Geometry {
    let none = |why: &str| inconclusive(case.rows, Some(case.profile), why.to_owned());
    let Some(best) = case.candidates.first() else {
        return none("none of the candidate layouts explains the latencies");
    };
    let shares = shares(case, &best.layout);
    let gain_p = gain_p_value(case, best);
    let chunk_bytes = best.layout.chunk_bytes;
    let odds = case.profile.log_odds(chunk_bytes, Some(best.layout.stripe_bytes()));
    let is_seen = odds >= SEEN_LOG_ODDS && case.profile.p_value(chunk_bytes) < UNLIKELY;
    let saving = match best.layout.redundancy {
        Redundancy::None => None,
        Redundancy::Parity => Saving::of(case.rows, &best.layout),
    };
    if shares.none >= 0.5 || (!is_seen && gain_p > DOUBTFUL) {
        let why = "latency has none of the steps by size or offset that a stripe would cause";
        return Geometry { none_confidence: shares.none.clamp(AMBIGUOUS, SUREST), ..none(why) };
    }
    let reads_margin = reads_margin(case, &best.layout);
    let is_striped =
        is_seen && (case.profile.has_mechanical_delay(chunk_bytes) || case.profile.shares_work(chunk_bytes));
    let proof = Proof { gain_p, is_seen, is_striped, saving, reads_margin };
    let is_proven = proof.is_whole_cheaper() && gain_p < DOUBTFUL;
    // What fits and boundaries say together may lean on a weaker proof by full stripes, but not on none.
    let enough = if reads_margin > CLEAR { 0.3 } else { 0.1 };
    let is_hinted = is_seen && gain_p < DOUBTFUL && saving.is_some_and(|saving| saving.p_value < enough);
    if !is_striped && !is_proven && !is_hinted {
        let why = format!(
            "the cost steps with the size, best explained by {} units of {}, but crossing from one to the next \
             costs nothing or simply more, and whole multiples save nothing: pages and parallel parts inside one \
             device look the same",
            best.layout.data,
            bytes(chunk_bytes)
        );
        return Geometry { none_confidence: AMBIGUOUS, ..none(&why) };
    }
    claim(case, best, shares, &proof)
}

/// Chance that the layout's figures explain as much as they do if they mean nothing, over all layouts that were tried.
fn gain_p_value(case: &Case<'_>, best: &Candidate) -> f64 {
    let tried = case.candidates.len() as f64;
    (best.fit.gain_p_value(case.null, FLOOR) * tried).clamp(f64::MIN_POSITIVE, 1.0)
}

fn reads_margin(case: &Case<'_>, best: &Layout) -> f64 {
    if best.redundancy == Redundancy::None {
        return 0.0;
    }
    let plain = case.candidates.iter().find(|candidate| candidate.layout.redundancy == Redundancy::None);
    case.candidates.first().map_or(0.0, |best| best.log_odds)
        - plain.map_or(0.0, |plain| plain.log_odds.max(0.0))
}

fn shares(case: &Case<'_>, layout: &Layout) -> Shares {
    let top = case.candidates.first().map_or(0.0, |best| best.log_odds.max(0.0));
    let weight = |log_odds: f64| ((log_odds - top) / TEMPER).exp();
    // Before the measurement, a stripe of any layout is as likely as none.
    let none = weight(0.0) * case.candidates.len() as f64;
    let total = none + case.candidates.iter().map(|candidate| weight(candidate.log_odds)).sum::<f64>();
    let sum = |is: &dyn Fn(&Layout) -> bool| {
        let chosen = case.candidates.iter().filter(|candidate| is(&candidate.layout));
        (chosen.map(|candidate| weight(candidate.log_odds)).sum::<f64>() / total).min(SUREST)
    };
    Shares {
        chunk: sum(&|other| other.chunk_bytes == layout.chunk_bytes),
        stripe: sum(&|other| other.stripe_bytes() == layout.stripe_bytes()),
        none: none / total,
    }
}

/// An answer that names what was seen, each part with the confidence it deserves.
fn claim(case: &Case<'_>, best: &Candidate, shares: Shares, proof: &Proof) -> Geometry {
    let layout = best.layout;
    let has_parity = layout.redundancy == Redundancy::Parity;
    let has_reads = proof.is_whole_cheaper() || proof.reads_margin > CLEAR;
    let parity = match case.op {
        Op::Write if has_parity => has_reads.then_some(true),
        Op::Write => (proof.gain_p <= DOUBTFUL && goes_round(case, &layout)).then_some(false),
        Op::Read => None,
    };
    let stripe_confidence = shares.stripe.min(limit(case, &layout, proof));
    Geometry {
        chunk: Some(Figure {
            bytes: layout.chunk_bytes,
            confidence: shares.chunk.min(chunk_limit(case, &layout, proof)),
        }),
        stripe: Some(Figure { bytes: layout.stripe_bytes(), confidence: stripe_confidence }),
        parity,
        start_offset_bytes: (has_parity && has_reads).then_some(layout.shift_chunks * layout.chunk_bytes),
        none_confidence: shares.none,
        evidence: reasons(case, &layout, proof),
        boundary_profile: case.profile.steps(),
        sizes: sizes(case.rows, Some(&layout)),
        advice: advice_of(&layout, parity, stripe_confidence),
    }
}

impl Proof {
    fn is_whole_cheaper(&self) -> bool {
        self.saving.is_some_and(Saving::is_clear)
    }
}

/// The most confidence that the chunk deserves: many chunks make the same full stripe, so the small requests must show it.
fn chunk_limit(case: &Case<'_>, layout: &Layout, proof: &Proof) -> f64 {
    let odds = case.profile.log_odds(layout.chunk_bytes, Some(layout.stripe_bytes()));
    let best_odds =
        case.profile.candidates().into_iter().map(|chunk| case.profile.best_case(chunk)).fold(odds, f64::max);
    // Where the boundaries of stripes alone explain as much, those of smaller chunks were not seen.
    let of_stripes = 1_u64 << layout.stripe_bytes().trailing_zeros();
    let is_owed =
        of_stripes > layout.chunk_bytes && odds - case.profile.log_odds(of_stripes, None) < SEEN_LOG_ODDS;
    let is_odd = case.profile.odd_part(layout.chunk_bytes).is_some();
    if is_owed || is_odd || !proof.is_seen || !(proof.is_striped || proof.is_whole_cheaper()) {
        AMBIGUOUS
    } else if best_odds > odds + CLEAR || case.op == Op::Read {
        UNUSUAL
    } else {
        SUREST
    }
}

/// Whether requests were long enough to visit the members of a layout without parity several times. Shorter ones look the
/// same on a part of a larger stripe, with parity or without.
fn goes_round(case: &Case<'_>, layout: &Layout) -> bool {
    let largest = case.rows.iter().map(|row| row.probe.bytes).max().unwrap_or(0);
    layout.stripe_bytes().saturating_mul(ROUNDS) <= largest
}

/// The most confidence that the full stripe deserves.
fn limit(case: &Case<'_>, layout: &Layout, proof: &Proof) -> f64 {
    let has_parity = layout.redundancy == Redundancy::Parity;
    if case.op == Op::Read || proof.gain_p > DOUBTFUL || layout.data == MAX_DATA {
        AMBIGUOUS
    } else if has_parity && !proof.is_whole_cheaper() {
        if proof.is_striped && proof.reads_margin > CLEAR { INDIRECT } else { AMBIGUOUS }
    } else if !has_parity && !goes_round(case, layout) {
        AMBIGUOUS
    } else if !has_parity && !case.profile.has_mechanical_delay(layout.chunk_bytes) {
        UNUSUAL
    } else {
        SUREST
    }
}

/// The evidence in sentences.
fn reasons(case: &Case<'_>, layout: &Layout, proof: &Proof) -> Vec<String> {
    let mut reasons = Vec::new();
    let has_parity = layout.redundancy == Redundancy::Parity;
    if proof.is_seen {
        reasons.push(format!(
            "small requests at multiples of {} differ in latency from those at smaller multiples ({})",
            bytes(layout.chunk_bytes),
            chance(case.profile.p_value(layout.chunk_bytes))
        ));
    }
    if let Some(saving) = proof.saving {
        reasons.push(format!(
            "full stripes of {} take {}, smaller writes within one {} ({}): partial stripes cost reads",
            bytes(layout.stripe_bytes()),
            nanos(whole(saving.whole_ns)),
            nanos(whole(saving.partial_ns)),
            chance(saving.p_value)
        ));
    } else if has_parity && proof.reads_margin > CLEAR {
        reasons.push(
            "no full stripe was written, but only reads before partial writes explain the latency by size"
                .to_owned(),
        );
    }
    if proof.gain_p <= DOUBTFUL {
        reasons.push(format!(
            "{} of {} explain the latency by size best of {} ({})",
            plural(layout.data, "data member"),
            bytes(layout.chunk_bytes),
            plural(case.candidates.len() as u64, "layout"),
            chance(proof.gain_p)
        ));
    } else {
        reasons.push(
            "the number of data members is uncertain: it explains the latency by size no better than chance"
                .to_owned(),
        );
    }
    if case.op == Op::Read {
        reasons.push("reads go to all members in turn, so they do not show parity".to_owned());
    } else if !has_parity && !case.profile.has_mechanical_delay(layout.chunk_bytes) {
        reasons.push(
            "there is no mechanical delay, so this may be a single device with internal parallelism"
                .to_owned(),
        );
    }
    reasons
}

/// A chance as a word; what is smaller than any doubt is only called so.
fn chance(p_value: f64) -> String {
    if p_value < NEGLIGIBLE { format!("p < {NEGLIGIBLE:.0e}") } else { format!("p {p_value:.1e}") }
}

fn advice_of(layout: &Layout, parity: Option<bool>, confidence: f64) -> String {
    if confidence < SURE {
        return chunk_advice(layout.chunk_bytes);
    }
    advice(layout.chunk_bytes, layout.stripe_bytes(), parity == Some(true), Some(0))
}

/// What is left to say without a stripe.
pub(super) const NO_ADVICE: &str =
    "no stripe was seen that request size or alignment should follow; see `rdsk align` for sectors and pages";

/// What follows from the chunk alone.
pub(super) fn chunk_advice(chunk_bytes: u64) -> String {
    format!(
        "align writes to {}, so that small ones touch one member; the full stripe is too uncertain to recommend",
        bytes(chunk_bytes)
    )
}

/// What to write, and where, for a layout that is sure.
pub(super) fn advice(chunk_bytes: u64, stripe_bytes: u64, has_parity: bool, start: Option<u64>) -> String {
    let stripe = bytes(stripe_bytes);
    let Some(start_bytes) = start.or((!has_parity).then_some(0)) else {
        return format!(
            "write multiples of {stripe}, because full stripes need no reads; where a stripe begins is not known"
        );
    };
    let (align_bytes, why) = match has_parity {
        true => (stripe_bytes, "full stripes need no reads"),
        false => (chunk_bytes, "all members then share the work equally"),
    };
    let (first_bytes, align) = (start_bytes % align_bytes.max(1), bytes(align_bytes));
    match first_bytes {
        0 => format!("write multiples of {stripe} at multiples of {align}: {why}"),
        first => {
            format!(
                "write multiples of {stripe} at {} and then at multiples of {align} from there: {why}",
                bytes(first)
            )
        }
    }
}

/// An answer that names no stripe.
pub(super) fn inconclusive(rows: &[Observation], profile: Option<&BoundaryProfile>, why: String) -> Geometry {
    Geometry {
        chunk: None,
        stripe: None,
        parity: None,
        start_offset_bytes: None,
        none_confidence: 0.0,
        evidence: vec![why],
        boundary_profile: profile.map(BoundaryProfile::steps).unwrap_or_default(),
        sizes: sizes(rows, None),
        advice: NO_ADVICE.to_owned(),
    }
}

/// Cost over size, by octaves.
fn sizes(rows: &[Observation], layout: Option<&Layout>) -> Vec<SizePoint> {
    let is_aligned = |row: &Observation| match layout {
        Some(layout) => {
            let stripe = layout.stripe_bytes();
            layout.unshifted(row.probe.offset_bytes).is_multiple_of(stripe)
                && row.probe.bytes.is_multiple_of(stripe)
        }
        None => row.probe.offset_bytes.is_multiple_of(row.probe.bytes),
    };
    let octaves: BTreeSet<u32> = rows.iter().map(|row| row.probe.bytes.ilog2()).collect();
    let point = |octave: u32| {
        let in_it = |row: &&Observation| row.probe.bytes.ilog2() == octave;
        let taken = |aligned: bool| -> Vec<f64> {
            let chosen = rows.iter().filter(in_it).filter(|row| is_aligned(row) == aligned);
            chosen.map(Observation::latency_ns).collect()
        };
        let (aligned, other) = (taken(true), taken(false));
        SizePoint {
            bytes: 1 << octave,
            aligned_count: aligned.len(),
            aligned_median_ns: median(&aligned),
            other_count: other.len(),
            other_median_ns: median(&other),
        }
    };
    octaves.into_iter().map(point).collect()
}
