//! Whether two samples come from the same distribution. Only their order counts, not the shape of their scatter.

/// Asymptotic chance of the distance of two sorted samples' distributions if they are the same; 1 if one is empty.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let share = |sample: &[f64], at: f64| sample.partition_point(|x| *x <= at) as f64 / sample.len() as f64;
    let distance = a.iter().chain(b).map(|&at| (share(a, at) - share(b, at)).abs()).fold(0.0_f64, f64::max);
    let effective = (a.len() * b.len()) as f64 / (a.len() + b.len()) as f64;
    let lambda = (effective.sqrt() + 0.12 + 0.11 / effective.sqrt()) * distance;
    if lambda < 0.2 {
        return 1.0;
    }
    let sum: f64 = (1..=20)
        .map(|k| {
            let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
            sign * (-2.0 * f64::from(k * k) * lambda * lambda).exp()
        })
        .sum();
    (2.0 * sum).clamp(f64::MIN_POSITIVE, 1.0)
}

/// Chance, in the normal approximation, that the first of two samples is as much the smaller one as it is if both come from
/// the same distribution (Mann and Whitney 1947, one-sided): an upper bound of the tail, within a third of it from two
/// deviations on, and 1 if the first is hardly smaller. Both must have samples.
pub fn smaller_p_value(first: &[f64], second: &[f64]) -> f64 {
    let won = |a: f64, b: f64| match a.total_cmp(&b) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    };
    let wins: f64 = first.iter().flat_map(|&a| second.iter().map(move |&b| won(a, b))).sum();
    let (n, m) = (first.len() as f64, second.len() as f64);
    let z = (wins - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
    if z > 0.5 { ((-z * z / 2.0).exp() / (z * 2.506_628)).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;

    fn samples(count: usize, shift: f64, seed: u64) -> Vec<f64> {
        let mut noise = seeded(seed);
        let mut all: Vec<f64> = (0..count).map(|_| shift + noise.normal()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn samples_of_one_distribution_are_seldom_apart() {
        let pairs: Vec<_> =
            (0..400).map(|n| (samples(60, 0.0, 2 * n), samples(80, 0.0, 2 * n + 1))).collect();
        let apart = pairs.iter().filter(|(a, b)| kolmogorov_smirnov(a, b) < 0.05).count();
        let smaller = pairs.iter().filter(|(a, b)| smaller_p_value(a, b) < 0.05).count();
        // 20 are expected of each; 35 is more than three deviations above.
        assert!(apart <= 35 && smaller <= 35, "{apart} and {smaller} of 400");
    }

    #[test]
    fn shifted_samples_are_apart_and_only_the_smaller_one_is_smaller() {
        let (low, high) = (samples(60, 0.0, 1), samples(60, 2.0, 2));
        assert!(kolmogorov_smirnov(&low, &high) < 1e-6);
        assert!(smaller_p_value(&low, &high) < 1e-6);
        assert!((smaller_p_value(&high, &low) - 1.0).abs() < 1e-12);
        assert!((kolmogorov_smirnov(&low, &[]) - 1.0).abs() < 1e-12);
    }
}
