//! The dip test of unimodality: how far a distribution is from any with one mode. It says that there are several modes,
//! not where they are.

/// Samples that the dip is computed of; more are thinned to so many order statistics, which keeps the shape.
const MAX_SAMPLES: usize = 20_000;

/// The dip of a sample: the largest distance between its distribution and the nearest one with a single mode, from
/// 1/(2n) to 1/4 (Hartigan and Hartigan 1985). `sorted` must be ascending and finite; 0 when it is empty.
///
/// The nearest distribution is convex up to its mode and concave from there. The greatest convex minorant and the least
/// concave majorant of the empirical steps bound it; where they are farthest apart lies the mode, and what they leave open
/// outside of it is searched again within it, until nothing larger is found.
pub fn dip(sorted: &[f64]) -> f64 {
    let thinned: Vec<f64>;
    let sorted = if sorted.len() > MAX_SAMPLES {
        thinned = (0..MAX_SAMPLES)
            .map(|place| sorted[(2 * place + 1) * sorted.len() / (2 * MAX_SAMPLES)])
            .collect();
        &thinned
    } else {
        sorted
    };
    let Some(steps) = Steps::new(sorted) else { return 0.0 };
    let (mut low, mut high) = (0, steps.at.len() - 1);
    let mut most: f64 = 1.0;
    loop {
        let minorant = steps.hull(low, high, Side::Below);
        let majorant = steps.hull(low, high, Side::Above);
        let (distance, left, right) = steps.farthest(&minorant, &majorant);
        if distance <= most {
            break;
        }
        // What the two leave open outside of the mode, left of it and right of it.
        let outside = steps.open(&minorant, left, Side::Below).max(steps.open(&majorant, right, Side::Above));
        most = most.max(outside);
        if (left, right) == (low, high) {
            break;
        }
        (low, high) = (left, right);
    }
    most / (2.0 * sorted.len() as f64)
}

/// Probability of a dip at least as large from as many independent samples of a uniform distribution, which of all with one mode has
/// the largest dips; from 1e-6 to 1.
///
/// The tail of √n · dip is that of a table made by simulation (see the test that makes it again): its logarithm is
/// interpolated in the square, as it falls like that of a Gaussian.
pub fn dip_p_value(dip: f64, samples: f64) -> f64 {
    let scaled = dip * samples.clamp(1.0, MAX_SAMPLES as f64).sqrt();
    let square = scaled * scaled;
    let Some(above) = TAIL.iter().position(|&(limit, _)| scaled < limit) else {
        return extrapolate(square);
    };
    let (from, to) = (if above == 0 { (0.0, 1.0) } else { TAIL[above - 1] }, TAIL[above]);
    let part = (square - from.0 * from.0) / (to.0 * to.0 - from.0 * from.0);
    (from.1.ln() + part * (to.1 / from.1).ln()).exp().clamp(1e-6, 1.0)
}

/// √n · dip of uniform samples, and the share of samples beyond it.
const TAIL: [(f64, f64); 9] = [
    (0.30, 0.88),
    (0.35, 0.64),
    (0.40, 0.39),
    (0.45, 0.21),
    (0.50, 0.105),
    (0.57, 0.035),
    (0.66, 0.0055),
    (0.75, 0.0007),
    (0.82, 0.0001),
];

fn extrapolate(square: f64) -> f64 {
    let ((limit_1, p_1), (limit_2, p_2)) = (TAIL[TAIL.len() - 2], TAIL[TAIL.len() - 1]);
    let slope = (p_2 / p_1).ln() / (limit_2 * limit_2 - limit_1 * limit_1);
    (p_2.ln() + slope * (square - limit_2 * limit_2)).exp().clamp(1e-6, 1.0)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// The empirical distribution in counts: at each distinct value it jumps from `below` to `above`.
struct Steps {
    at: Vec<f64>,
    below: Vec<f64>,
    above: Vec<f64>,
}

impl Steps {
    fn new(sorted: &[f64]) -> Option<Steps> {
        sorted.first()?;
        let mut steps = Steps { at: Vec::new(), below: Vec::new(), above: Vec::new() };
        for (count, &value) in sorted.iter().enumerate() {
            if steps.at.last() == Some(&value) {
                steps.above.pop();
            } else {
                steps.at.push(value);
                steps.below.push(count as f64);
            }
            steps.above.push(count as f64 + 1.0);
        }
        Some(steps)
    }

    fn height(&self, index: usize, side: Side) -> f64 {
        match side {
            Side::Below => self.below[index],
            Side::Above => self.above[index],
        }
    }

    /// The vertices of the convex minorant of the lower corners, or of the concave majorant of the upper ones.
    fn hull(&self, low: usize, high: usize, side: Side) -> Vec<usize> {
        let mut hull: Vec<usize> = Vec::new();
        for index in low..=high {
            while let [.., first, second] = hull[..] {
                let slope = |from: usize, to: usize| {
                    (self.height(to, side) - self.height(from, side)) / (self.at[to] - self.at[from])
                };
                let (before, after) = (slope(first, second), slope(second, index));
                let is_bent = if side == Side::Below { before < after } else { before > after };
                if is_bent {
                    break;
                }
                hull.pop();
            }
            hull.push(index);
        }
        hull
    }

    /// The height of a hull at a value.
    fn on(&self, hull: &[usize], index: usize, side: Side) -> f64 {
        match hull.binary_search(&index) {
            Ok(_) => self.height(index, side),
            Err(0) => self.height(hull[0], side),
            Err(place) if place == hull.len() => self.height(hull[place - 1], side),
            Err(place) => {
                let (from, to) = (hull[place - 1], hull[place]);
                let part = (self.at[index] - self.at[from]) / (self.at[to] - self.at[from]);
                self.height(from, side) + part * (self.height(to, side) - self.height(from, side))
            }
        }
    }

    /// Where the two hulls are farthest apart: the distance, and the ends of the mode there.
    fn farthest(&self, minorant: &[usize], majorant: &[usize]) -> (f64, usize, usize) {
        let mut best = (0.0, minorant[0], minorant[minorant.len() - 1]);
        for &index in minorant {
            let distance = self.on(majorant, index, Side::Above) - self.below[index];
            if distance > best.0 {
                let place = majorant.partition_point(|&vertex| vertex < index).min(majorant.len() - 1);
                best = (distance, index, majorant[place].max(index));
            }
        }
        for &index in majorant {
            let distance = self.above[index] - self.on(minorant, index, Side::Below);
            if distance > best.0 {
                let place = minorant.partition_point(|&vertex| vertex <= index).max(1) - 1;
                best = (distance, minorant[place].min(index), index);
            }
        }
        best
    }

    /// The largest distance between a hull and the far corners of the steps: of the minorant before `end`, of the majorant
    /// behind it. At `end` itself is the mode, where the distribution may jump.
    fn open(&self, hull: &[usize], end: usize, side: Side) -> f64 {
        let range = if side == Side::Below { hull[0]..end } else { end + 1..hull[hull.len() - 1] + 1 };
        let mut most: f64 = 0.0;
        for index in range {
            let on = self.on(hull, index, side);
            most = most.max(match side {
                Side::Below => self.above[index] - on,
                Side::Above => on - self.below[index],
            });
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;

    fn dip_of(mut samples: Vec<f64>) -> f64 {
        samples.sort_by(f64::total_cmp);
        dip(&samples)
    }

    /// Cases that can be worked out by hand.
    #[test]
    fn known_dips() {
        assert!((dip(&[3.0]) - 0.5).abs() < 1e-12);
        // Evenly spaced values are uniform: nothing but the half step.
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        assert!((dip(&even) - 1.0 / 200.0).abs() < 1e-12, "{}", dip(&even));
        // Two far points of half the samples each: the dip has its largest value, a quarter.
        let two: Vec<f64> = (0..100).map(|index| if index < 50 { 0.0 } else { 1.0 }).collect();
        assert!((dip(&two) - 0.25).abs() < 0.01, "{}", dip(&two));
        let tenth: Vec<f64> = (0..1000).map(|index| if index < 900 { 0.0 } else { 1.0 }).collect();
        assert!((dip(&tenth) - 0.05).abs() < 0.005, "{}", dip(&tenth));
        assert!(dip(&[]).abs() < f64::EPSILON);
    }

    /// The table of the tail, made again.
    #[test]
    fn p_values_are_those_of_uniform_samples() {
        for (count, runs) in [(50_u32, 2000), (200, 2000), (1000, 1000)] {
            let mut noise = seeded(u64::from(count));
            let mut p_values: Vec<f64> = (0..runs)
                .map(|_| dip_p_value(dip_of((0..count).map(|_| noise.uniform()).collect()), f64::from(count)))
                .collect();
            p_values.sort_by(f64::total_cmp);
            for share in [0.01, 0.05, 0.25, 0.5] {
                let seen = p_values.iter().filter(|p| **p <= share).count() as f64 / f64::from(runs);
                println!("{count} samples: {seen} at or below {share}");
                assert!(seen <= share * 1.6 + 0.002, "{count} samples: {seen} at or below {share}");
            }
        }
    }

    #[test]
    #[ignore = "prints the table of the tail; a minute"]
    fn make_the_table() {
        for count in [200_usize, 1000, 5000] {
            let runs = 200_000_000 / count.max(1000);
            let mut noise = seeded(7);
            let mut scaled: Vec<f64> = (0..runs)
                .map(|_| dip_of((0..count).map(|_| noise.uniform()).collect()) * (count as f64).sqrt())
                .collect();
            scaled.sort_by(f64::total_cmp);
            for limit in TAIL.iter().map(|&(limit, _)| limit) {
                let beyond = scaled.len() - scaled.partition_point(|value| *value <= limit);
                println!("{count} {limit} {}", beyond as f64 / scaled.len() as f64);
            }
        }
    }
}
