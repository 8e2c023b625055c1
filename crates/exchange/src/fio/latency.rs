//! fio's latencies as ours: which of its two clocks they are of, and the percentiles that enough I/Os stand behind.

use super::document::{Direction, Latencies, Syncs};
use rdsk_model::Latency;
use rdsk_stats::Histogram;

/// From where to where fio's latencies go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// From before the submission to the completion, as ours.
    Total,
    /// From the return of the submission on; of engines that submit and wait in one call from before it.
    Completion,
}

/// The latencies of a direction, all figures of one clock: of the total if fio says how it is distributed, else of the
/// completion. `None` where fio took no times.
pub(super) fn of_direction(direction: &Direction) -> Option<(Latency, Clock)> {
    let (total, completion) = (&direction.lat_ns, &direction.clat_ns);
    let count = |latencies: &Latencies| count(latencies, direction);
    let is_shaped = |latencies: &Latencies| !(latencies.percentile.is_empty() && latencies.bins.is_empty());
    let is_total = count(total) > 0 && (is_shaped(total) || count(completion) == 0 || !is_shaped(completion));
    let (chosen, clock) = if is_total { (total, Clock::Total) } else { (completion, Clock::Completion) };
    let count = count(chosen);
    (count > 0).then(|| (latency(chosen, count, |p| Histogram::has_enough(count, p)), clock))
}

/// Syncs that must have taken longer than a percentile of them, so that its range ends within them (95 %, order statistics): each of
/// them is a wait of its own, of which a run has hundreds rather than thousands.
const SYNCS_ABOVE: f64 = 5.0;

/// The latencies of fsync and the like; `None` where there were none.
pub(super) fn of_syncs(syncs: &Syncs) -> Option<Latency> {
    let count = given_count(&syncs.lat_ns).unwrap_or(syncs.total_ios);
    (count > 0).then(|| latency(&syncs.lat_ns, count, |p| above(count, p) >= SYNCS_ABOVE))
}

/// How many of so many lie above a share.
pub(super) fn above(count: u64, p: f64) -> f64 {
    // The share is no exact number, and neither is what is left.
    count as f64 * (1.0 - p) + 1e-6
}

/// How many latencies of a direction fio took. Of a fio that does not say (3.7 and 3.16 have no `N`), those in its bins, or where it
/// gives none all I/Os, if it took any time at all.
pub(super) fn count(from: &Latencies, direction: &Direction) -> u64 {
    given_count(from)
        .unwrap_or_else(|| if from.mean.is_some_and(|mean| mean > 0.0) { direction.total_ios } else { 0 })
}

fn given_count(from: &Latencies) -> Option<u64> {
    let of_bins = || from.bins.values().fold(0, |sum: u64, &count| sum.saturating_add(count));
    from.count.or_else(|| (!from.bins.is_empty()).then(of_bins))
}

/// The figures of so many latencies, with the percentiles for which they are enough.
fn latency(from: &Latencies, count: u64, has_enough: impl Fn(f64) -> bool) -> Latency {
    let histogram = histogram(from, count);
    // fio's own figure where it gives one, so that both programs show the same.
    let percentile = |p: f64| {
        let given = || from.percentile.iter().find(|(key, _)| is_at(key, p)).map(|(_, &ns)| ns);
        let counted = || histogram.as_ref()?.quantile(p);
        has_enough(p).then(|| given().or_else(counted)).flatten()
    };
    Latency {
        count,
        // fio begins with the largest number as the least one.
        min: from.min.filter(|&min| from.max.is_none_or(|max| min <= max)),
        mean: from.mean,
        p50: percentile(0.5),
        p90: percentile(0.9),
        p99: percentile(0.99),
        p999: percentile(0.999),
        p9999: percentile(0.9999),
        max: from.max,
        histogram: histogram.as_ref().map(Histogram::to_base64),
        ranges: None,
        rounds: Vec::new(),
    }
}

/// Whether a key such as `99.900000` is this share.
fn is_at(key: &str, p: f64) -> bool {
    key.trim().parse().is_ok_and(|percent: f64| (percent - p * 100.0).abs() < 1e-6)
}

/// The bins of `json+`; `None` without them, or where they are not those of all I/Os.
fn histogram(from: &Latencies, of_all: u64) -> Option<Histogram> {
    let mut histogram = Histogram::new();
    for (ns, &count) in &from.bins {
        histogram.record_n(ns.trim().parse().ok()?, count);
    }
    (of_all > 0 && histogram.count() == of_all).then_some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn latencies(count: u64, percentile: &[(&str, u64)], bins: &[(&str, u64)]) -> Latencies {
        let map = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
        };
        Latencies {
            count: Some(count),
            min: Some(1),
            max: Some(9),
            mean: Some(5.0),
            percentile: map(percentile),
            bins: map(bins),
        }
    }

    fn of_all(from: &Latencies, count: u64) -> Latency {
        latency(from, count, |p| Histogram::has_enough(count, p))
    }

    fn chosen(total: Latencies, completion: Latencies) -> Option<(Option<u64>, Clock)> {
        let direction = Direction { lat_ns: total, clat_ns: completion, ..Direction::default() };
        of_direction(&direction).map(|(latency, clock)| (latency.p50, clock))
    }

    #[test]
    fn all_figures_are_of_one_clock() {
        let plain = |count| latencies(count, &[], &[]);
        let shaped = |p50| latencies(100, &[("50.000000", p50)], &[]);
        assert_eq!(chosen(plain(100), shaped(7)), Some((Some(7), Clock::Completion)));
        assert_eq!(chosen(shaped(8), shaped(7)), Some((Some(8), Clock::Total)));
        assert_eq!(chosen(shaped(8), plain(100)), Some((Some(8), Clock::Total)));
        assert_eq!(chosen(plain(100), plain(100)), Some((None, Clock::Total)));
        assert_eq!(chosen(plain(0), plain(100)), Some((None, Clock::Completion)));
        assert_eq!(chosen(plain(0), plain(0)), None);
    }

    #[test]
    fn a_number_that_is_not_given_is_that_of_the_bins_or_of_the_ios() {
        let counted = |mean, bins: &[(&str, u64)]| {
            let from = Latencies { count: None, mean: Some(mean), ..latencies(0, &[], bins) };
            count(&from, &Direction { total_ios: 70, ..Direction::default() })
        };
        assert_eq!(counted(5.0, &[("1000", 60), ("2000", 40)]), 100);
        assert_eq!(counted(5.0, &[]), 70);
        assert_eq!(counted(0.0, &[]), 0, "no time was taken");
    }

    #[test]
    fn percentiles_need_their_samples() {
        let shares = [
            ("50.000000", 50),
            ("90.000000", 90),
            ("99.000000", 99),
            ("99.900000", 999),
            ("99.990000", 9999),
            ("x", 1),
        ];
        let latency = |count| {
            super::latency(&latencies(count, &shares, &[]), count, |p| Histogram::has_enough(count, p))
        };
        assert_eq!((latency(19).p50, latency(20).p50), (None, Some(50)));
        assert_eq!((latency(999).p99, latency(1000).p99), (None, Some(99)));
        assert_eq!((latency(99_999).p9999, latency(100_000).p9999), (None, Some(9999)));
        assert_eq!(latency(10_000).p999, Some(999));
    }

    #[test]
    fn a_percentile_of_syncs_needs_five_above_it() {
        let shares = [("50.000000", 50), ("99.000000", 99), ("99.900000", 999)];
        let latency_of = |count| of_syncs(&Syncs { total_ios: 0, lat_ns: latencies(count, &shares, &[]) });
        let shown = |count| latency_of(count).map(|latency| (latency.p50, latency.p99, latency.p999));
        assert_eq!(shown(499), Some((Some(50), None, None)));
        assert_eq!(shown(500), Some((Some(50), Some(99), None)));
        assert_eq!(shown(5000), Some((Some(50), Some(99), Some(999))));
        assert_eq!(latency_of(0), None);
        let uncounted = Latencies { count: None, ..latencies(0, &shares, &[]) };
        let of_old = of_syncs(&Syncs { total_ios: 600, lat_ns: uncounted });
        assert_eq!(of_old.map(|latency| (latency.count, latency.p99)), Some((600, Some(99))));
    }

    #[test]
    fn what_has_no_least_one_has_none() {
        let unset = Latencies { min: Some(u64::from(u32::MAX)), ..latencies(10, &[], &[]) };
        assert_eq!((of_all(&unset, 10).min, of_all(&unset, 10).max), (None, Some(9)));
    }

    #[test]
    fn bins_stand_in_for_percentiles_that_were_left_out() {
        let bins = [("1000", 60), ("2000", 40)];
        let (of_bins, both) = (latencies(100, &[], &bins), latencies(100, &[("50.000000", 1004)], &bins));
        assert_eq!(of_all(&both, 100).p50, Some(1004), "fio's own figure");
        let counted = of_all(&of_bins, 100);
        assert!(counted.p50.is_some_and(|ns| (1000..=1008).contains(&ns)), "{counted:?}");
        let read = Histogram::from_base64(counted.histogram.as_deref().unwrap()).unwrap();
        assert_eq!((read.count(), read.count_up_to(1500)), (100, 60));
        assert_eq!(of_all(&latencies(101, &[], &bins), 101).histogram, None, "one I/O is in no bin");
        assert_eq!(of_all(&latencies(100, &[], &[("many", 100)]), 100).histogram, None);
    }
}
