//! Bands: whether samples fall into several clusters, and into which. A test decides whether, a density where; what makes
//! them the caller must find out.

use crate::dip::{dip, dip_p_value};

/// How bands are searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandOptions {
    /// Probability of finding several in samples of any distribution with one mode, at most; between 0 and 1.
    pub false_alarm: f64,
    /// Smallest share of the samples that is called a band; between 0 and 0.5.
    pub min_share: f64,
    /// Bands whose centres are nearer than this are one, in the samples' unit.
    pub min_distance: f64,
    /// How many samples say as much as one: 1 when all are independent, more when some repeat others.
    pub repeats: f64,
}

impl Default for BandOptions {
    /// One false alarm in a hundred, bands of 2 % of independent samples, however near.
    fn default() -> Self {
        Self { false_alarm: 0.01, min_share: 0.02, min_distance: 0.0, repeats: 1.0 }
    }
}

/// One cluster of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Its median, in the samples' unit.
    pub centre: f64,
    /// Its smallest sample.
    pub low: f64,
    /// Its largest.
    pub high: f64,
    /// How many samples it has.
    pub count: usize,
    /// Its part of all samples, 0 to 1.
    pub share: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// Probability of samples like these, or more divided ones, from a distribution with one mode; 1e-6 to 1.
    pub p_value: f64,
    /// The clusters, by rising centre. Fewer than two mean that there are no bands.
    pub bands: Vec<Band>,
}

/// Fewest samples that can show it.
const MIN_SAMPLES: usize = 20;
/// Points at which the density is computed.
const GRID: usize = 1024;
/// A valley that separates two clusters is at most this part of the lower of the peaks beside it.
const VALLEY: f64 = 0.5;

/// The clusters of finite samples in any order.
///
/// Hartigan's dip test decides whether there is more than one mode: it holds its false-alarm rate for any distribution
/// with one, however skewed, and a smear (a uniform distribution) is its worst case. What is left of a distribution with
/// one mode when it is cut at a quantile has one mode, too, so the halves, quarters and eighths at both ends are tested as
/// well, where a small cluster weighs more, at a bound that allows for so many tests. Then the samples are cut in the
/// valleys of a Gaussian kernel density (bandwidth after Silverman 1986, from the shortest interval that holds a quarter
/// of the samples), shallow valleys first filled up.
pub fn bands(samples: &[f64], options: &BandOptions) -> Bands {
    let sorted = crate::order::sorted(samples);
    if sorted.len() < MIN_SAMPLES || sorted[0] >= sorted[sorted.len() - 1] {
        let bands = band(&sorted, sorted.len()).into_iter().collect();
        return Bands { p_value: 1.0, bands };
    }
    let p_value = divided(&sorted, options.repeats.max(1.0));
    let cuts = if p_value <= options.false_alarm { cuts(&sorted, options) } else { Vec::new() };
    let ends: Vec<usize> = [0].into_iter().chain(cuts).chain([sorted.len()]).collect();
    let bands = ends.windows(2).filter_map(|pair| band(&sorted[pair[0]..pair[1]], sorted.len())).collect();
    Bands { p_value, bands }
}

/// The samples, each known only to a step of `grain`, blurred by up to one step either way: more often by little, as the
/// difference of two readings of a clock is off. Bands that are nothing but the steps are gone then; others stay. The same
/// samples give the same result (the blur is the R2 sequence of Roberts 2018).
pub fn dithered(samples: &[f64], grain: f64) -> Vec<f64> {
    const FIRST: f64 = 0.754_877_666_246_693;
    const SECOND: f64 = 0.569_840_290_998_053_3;
    let blur = |place: usize| {
        let place = place as f64 + 1.0;
        (place * FIRST).fract() + (place * SECOND).fract() - 1.0
    };
    samples.iter().enumerate().map(|(place, sample)| sample + grain * blur(place)).collect()
}

fn band(sorted: &[f64], total: usize) -> Option<Band> {
    let (low, high) = (*sorted.first()?, *sorted.last()?);
    let centre = crate::quantile_sorted(sorted, 0.5)?;
    Some(Band { centre, low, high, count: sorted.len(), share: sorted.len() as f64 / total as f64 })
}

/// Probability that a distribution with one mode gives samples this divided, anywhere.
fn divided(sorted: &[f64], repeats: f64) -> f64 {
    let count = sorted.len() as f64 / repeats;
    let parts = [1, 2, 4, 8].map(|part| sorted.len() / part);
    let ends = parts[1..].iter().flat_map(|&part| [&sorted[..part], &sorted[sorted.len() - part..]]);
    let says_much = |part: &&[f64]| part.len() as f64 / repeats >= MIN_SAMPLES as f64;
    let tests: Vec<&[f64]> = [sorted].into_iter().chain(ends).filter(says_much).collect();
    let p_value = |part: &&[f64]| dip_p_value(dip(part), count * part.len() as f64 / sorted.len() as f64);
    let least = tests.iter().map(p_value).fold(1.0, f64::min);
    (least * tests.len() as f64).min(1.0)
}

/// The places in the sorted samples where a new cluster begins.
fn cuts(sorted: &[f64], options: &BandOptions) -> Vec<usize> {
    // Stray samples beyond these belong to the outermost clusters and shall not spread the grid.
    let stray = options.min_share / 4.0;
    let end = |p: f64| crate::quantile_sorted(sorted, p).unwrap_or(sorted[0]);
    let (from, to) = (end(stray), end(1.0 - stray));
    if to <= from {
        return Vec::new();
    }
    let step = (to - from) / (GRID - 1) as f64;
    let density = density(sorted, from, step);
    let mut valleys = valleys(&density);
    let place = |valley: usize| sorted.partition_point(|&sample| sample < from + valley as f64 * step);
    // The shallowest valley first, and one beside a cluster that is too small or too near.
    while let Some(worst) = worst(&density, &valleys, |[first, valley, last]: [usize; 3]| {
        // The ends of the grid stand for those of the samples, stray ones included.
        let first = if first == 0 { 0 } else { place(first) };
        let last = if last == GRID - 1 { sorted.len() } else { place(last) };
        let cut = place(valley);
        let share = |from: usize, to: usize| (to - from) as f64 / sorted.len() as f64;
        let centre = |from: usize, to: usize| crate::quantile_sorted(&sorted[from..to], 0.5).unwrap_or(0.0);
        share(first, cut).min(share(cut, last)) < options.min_share
            || centre(cut, last) - centre(first, cut) < options.min_distance
    }) {
        valleys.remove(worst);
    }
    valleys.into_iter().map(place).collect()
}

/// The valley that separates least, if it separates too little: by depth, or because `is_nothing` says so of its
/// neighbours' ends.
fn worst(density: &[f64], valleys: &[usize], is_nothing: impl Fn([usize; 3]) -> bool) -> Option<usize> {
    let mut shallowest: Option<(f64, usize)> = None;
    for (index, &valley) in valleys.iter().enumerate() {
        let from = if index == 0 { 0 } else { valleys[index - 1] };
        let to = valleys.get(index + 1).copied().unwrap_or(GRID - 1);
        let peak = |range: &[f64]| range.iter().copied().fold(0.0, f64::max);
        let lower = peak(&density[from..=valley]).min(peak(&density[valley..=to]));
        let depth = if lower > 0.0 { density[valley] / lower } else { 1.0 };
        let ratio = if is_nothing([from, valley, to]) { 1.0 + depth } else { depth };
        if ratio > VALLEY && shallowest.is_none_or(|(most, _)| ratio > most) {
            shallowest = Some((ratio, index));
        }
    }
    shallowest.map(|(_, index)| index)
}

/// Inner minima of the density, the middle of each flat one.
fn valleys(density: &[f64]) -> Vec<usize> {
    let mut valleys = Vec::new();
    let mut fell_at = None;
    for index in 1..density.len() {
        if density[index] < density[index - 1] {
            fell_at = Some(index);
        } else if density[index] > density[index - 1]
            && let Some(begin) = fell_at.take()
        {
            valleys.push(usize::midpoint(begin, index - 1));
        }
    }
    valleys
}

/// A Gaussian kernel density on a grid, up to a factor.
fn density(sorted: &[f64], from: f64, step: f64) -> Vec<f64> {
    let mut counts = vec![0.0; GRID];
    for &sample in sorted {
        let place = (sample - from) / step;
        if (-0.5..GRID as f64 - 0.5).contains(&place) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the grid")]
            let place = place.round() as usize;
            counts[place.min(GRID - 1)] += 1.0;
        }
    }
    let width = bandwidth(sorted) / step;
    // Narrower than the grid shows nothing more, wider than an eighth of it hides everything.
    let width = width.clamp(1.0, GRID as f64 / 8.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most half the grid")]
    let reach = (4.0 * width).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|far| (-0.5 * (far as f64 / width).powi(2)).exp()).collect();
    let at = |centre: usize| {
        let from = centre.saturating_sub(reach);
        let to = (centre + reach).min(GRID - 1);
        (from..=to).map(|place| counts[place] * kernel[place.abs_diff(centre)]).sum()
    };
    (0..GRID).map(at).collect()
}

/// Silverman's rule with the spread of the densest part, which other clusters do not widen.
fn bandwidth(sorted: &[f64]) -> f64 {
    let held = sorted.len().div_ceil(4).max(2);
    let shortest =
        sorted.windows(held).map(|window| window[held - 1] - window[0]).min_by(f64::total_cmp).unwrap_or(0.0);
    // A quarter of a Gaussian lies within 0.319 standard deviations of its middle.
    let spread = shortest / (2.0 * 0.319);
    0.9 * spread * (sorted.len() as f64).powf(-0.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;
    use crate::rng::SplitMix64;

    /// One sample of a distribution.
    type Shape = fn(&mut SplitMix64) -> f64;

    const SHAPES: [(&str, Shape); 6] = [
        ("normal", SplitMix64::normal),
        ("uniform", SplitMix64::uniform),
        ("exponential", |noise| -(1.0 - noise.uniform()).ln()),
        ("lognormal", |noise| noise.normal().exp()),
        ("gamma", |noise| -((1.0 - noise.uniform()) * (1.0 - noise.uniform())).ln()),
        ("heavy tails", |noise| noise.normal() / (0.05 + noise.uniform())),
    ];

    /// The stated false-alarm rate: one in a hundred, for distributions with one mode of any shape.
    #[test]
    fn one_mode_is_one_band() {
        for (name, shape) in SHAPES {
            for count in [200, 2000] {
                let mut alarms = 0;
                for seed in 0..200 {
                    let mut noise = seeded(seed + 1000 * count as u64);
                    let samples: Vec<f64> = (0..count).map(|_| shape(&mut noise)).collect();
                    alarms += usize::from(bands(&samples, &BandOptions::default()).bands.len() > 1);
                }
                assert!(alarms <= 5, "{name}: {alarms} of 200 with {count} samples");
            }
        }
    }

    #[test]
    fn a_tenth_of_the_samples_is_found_with_its_share_and_distance() {
        for count in [400, 2000] {
            let mut found = 0;
            for seed in 0..200 {
                let mut noise = seeded(seed + 77);
                let late = |noise: &mut SplitMix64| if noise.uniform() < 0.1 { 3.0 } else { 0.0 };
                let samples: Vec<f64> =
                    (0..count).map(|_| 10.0 + late(&mut noise) + 0.3 * noise.normal()).collect();
                let truth = samples.iter().filter(|sample| **sample > 11.5).count() as f64 / count as f64;
                let seen = bands(&samples, &BandOptions::default());
                if let [main, band] = seen.bands[..] {
                    found += 1;
                    assert!((band.share / truth - 1.0).abs() < 0.2, "{seen:?}");
                    assert!((band.centre - main.centre - 3.0).abs() < 0.3, "{seen:?}");
                }
            }
            assert!(found >= 196, "{found} of 200 with {count} samples");
        }
    }

    /// Ten times the same says no more than once.
    #[test]
    fn repeated_samples_are_no_more_evidence() {
        let mut alarms = 0;
        for seed in 0..100 {
            let mut noise = seeded(seed + 31);
            let samples: Vec<f64> = (0..100)
                .flat_map(|_| std::iter::repeat_n(noise.uniform(), 10).collect::<Vec<f64>>())
                .collect();
            let options = BandOptions { repeats: 10.0, ..BandOptions::default() };
            alarms += usize::from(bands(&samples, &options).bands.len() > 1);
        }
        assert!(alarms <= 3, "{alarms} of 100");
    }

    #[test]
    fn several_bands_and_stray_samples() {
        let mut noise = seeded(5);
        let mut samples: Vec<f64> =
            (0..1000).map(|index| [0.0, 0.0, 0.0, 5.0, 9.0][index % 5] + 0.2 * noise.normal()).collect();
        samples.extend([400.0, -300.0, 1000.0]);
        let seen = bands(&samples, &BandOptions::default());
        let centres: Vec<f64> = seen.bands.iter().map(|band| band.centre.round()).collect();
        assert_eq!(centres, [0.0, 5.0, 9.0]);
        assert_eq!(seen.bands.iter().map(|band| band.count).sum::<usize>(), samples.len());
        let near = bands(&samples, &BandOptions { min_distance: 20.0, ..BandOptions::default() });
        assert_eq!(near.bands.len(), 1);
    }

    #[test]
    fn values_on_a_lattice_are_bands() {
        let mut noise = seeded(9);
        let samples: Vec<f64> = (0..2000).map(|_| (noise.uniform() * 3.0).floor()).collect();
        assert_eq!(bands(&samples, &BandOptions::default()).bands.len(), 3);
        assert_eq!(bands(&[4.0; 100], &BandOptions::default()).bands.len(), 1);
        assert_eq!(bands(&[], &BandOptions::default()).bands.len(), 0);
    }

    /// Times that two readings of a coarse clock give: the blur takes the clock's bands away and leaves real ones.
    #[test]
    fn a_blur_of_one_step_tells_a_coarse_clock() {
        let (mut gone, mut stay) = (0, 0);
        for seed in 0..100 {
            let mut noise = seeded(seed);
            let mut read = |late: f64| {
                let begin = noise.uniform();
                let end = begin + 2.3 + 0.1 * noise.normal() + if noise.uniform() < 0.1 { late } else { 0.0 };
                end.floor() - begin.floor()
            };
            let clock: Vec<f64> = (0..1000).map(|_| read(0.0)).collect();
            let real: Vec<f64> = (0..1000).map(|_| read(7.0)).collect();
            let options = BandOptions::default();
            assert!(bands(&clock, &options).bands.len() > 1 && bands(&real, &options).bands.len() > 1);
            gone += usize::from(bands(&dithered(&clock, 1.0), &options).bands.len() == 1);
            stay += usize::from(bands(&dithered(&real, 1.0), &options).bands.len() > 1);
        }
        assert!(gone >= 98 && stay >= 98, "{gone} gone, {stay} stay");
    }

    #[test]
    fn many_samples_of_noise_have_one_band() {
        let mut noise = seeded(3);
        let samples: Vec<f64> = (0..800_000).map(|_| noise.normal()).collect();
        // How long that takes is in tests/timing.rs.
        assert_eq!(bands(&samples, &BandOptions::default()).bands.len(), 1);
    }
}
