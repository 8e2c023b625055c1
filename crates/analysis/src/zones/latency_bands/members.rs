//! Which I/Os lie beside the main mode, and whether their passes, their positions or a slow change put them there. It looks for no
//! bands.

use super::{LatencyBand, Lates};
use rdsk_stats::{Band, median};

/// The part of the distance of two bands that a change of speed takes at once.
const JUMP: f64 = 0.5;
/// The share of the samples beside the main mode that lie at positions where all are beside it, from which on the positions make
/// them.
const OF_POSITIONS: f64 = 0.9;
/// The same for passes, and the share of the samples of a pass that must be beside it.
const OF_PASSES: f64 = 0.9;
const OF_PASS: f64 = 0.9;

/// Whether the latency jumps where one sample is beside the main mode and the next of the same pass is not, or the other way
/// round: by more than half the distance of the nearest band, in the median. Passes are moments apart: levels of their own are
/// scatter of the passes. Two samples in different zones show nothing, since what they are late by jumps with the main mode there.
pub(super) fn jumps(lates: &Lates, beside: &[LatencyBand], main: &Band) -> bool {
    let is_beside = beside_main(lates, main);
    let mut begin = 0;
    let within = lates.passes.iter().flat_map(|&length| {
        begin += length;
        begin - length + 1..begin
    });
    let steps: Vec<f64> = within
        .filter(|&index| is_beside[index] != is_beside[index - 1])
        .filter(|&index| lates.line_ns[index] == lates.line_ns[index - 1])
        .map(|index| (lates.late_ns[index] - lates.late_ns[index - 1]).abs())
        .collect();
    let nearest = beside.iter().map(|band| band.offset_ns.abs()).fold(f64::INFINITY, f64::min);
    median(&steps).is_some_and(|step| step > JUMP * nearest)
}

/// Whether nearly all samples beside the main mode lie in passes that were beside it as a whole: passes are moments apart, each has
/// the level of its moment, and few levels look like modes. One late I/O in another pass makes no second speed.
pub(super) fn is_of_passes(lates: &Lates, main: &Band) -> bool {
    let is_beside = beside_main(lates, main);
    let (mut begin, mut of_whole) = (0, 0);
    for &length in &lates.passes {
        let beside = is_beside[begin..begin + length].iter().filter(|is_beside| **is_beside).count();
        of_whole += if beside as f64 >= OF_PASS * length as f64 { beside } else { 0 };
        begin += length;
    }
    let of_all = is_beside.iter().filter(|is_beside| **is_beside).count();
    lates.passes.len() > 1 && of_whole as f64 >= OF_PASSES * of_all as f64
}

/// Whether nearly all samples beside the main mode lie at positions where every sample is: these positions are faster or slower,
/// such as those that begin within a page of flash.
pub(super) fn is_of_positions(lates: &Lates, main: &Band) -> bool {
    let positions = lates.position.iter().map(|&position| position as usize + 1).max().unwrap_or(0);
    // All samples and those beside the main mode.
    let mut counts = vec![(0_usize, 0_usize); positions];
    for (&position, is_beside) in lates.position.iter().zip(beside_main(lates, main)) {
        let (samples, beside) = &mut counts[position as usize];
        *samples += 1;
        *beside += usize::from(is_beside);
    }
    let of_all: usize = counts.iter().map(|(_, beside)| beside).sum();
    let whole = counts.iter().filter(|(samples, beside)| samples == beside && *samples > 1);
    whole.map(|(_, beside)| beside).sum::<usize>() as f64 >= OF_POSITIONS * of_all as f64
}

/// Each value less the mean of those at its position.
pub(super) fn beside_position(lates: &Lates, values: &[f64]) -> Vec<f64> {
    let positions = lates.position.iter().map(|&position| position as usize + 1).max().unwrap_or(0);
    let mut sums = vec![(0.0, 0.0); positions];
    for (&position, value) in lates.position.iter().zip(values) {
        let (sum, count) = &mut sums[position as usize];
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    let mean = |position: u32| {
        let (sum, count) = sums[position as usize];
        sum / count
    };
    lates.position.iter().zip(values).map(|(&position, value)| value - mean(position)).collect()
}

/// Whether each sample is beside the main mode, in the order of issue.
pub(super) fn beside_main(lates: &Lates, main: &Band) -> Vec<bool> {
    lates.late_ns.iter().map(|late_ns| !(main.low..=main.high).contains(late_ns)).collect()
}
