//! fio's latencies as ours: which of its two clocks they are of, and the percentiles that enough I/Os stand behind.

use super::document::{Direction, Latencies};
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

/// The latencies of a direction, all figures of one clock: of the total if fio tells how it is distributed, else of the
/// completion. `None` where fio took no times.
pub(super) fn of(direction: &Direction) -> Option<(Latency, Clock)> {
    let (total, completion) = (&direction.lat_ns, &direction.clat_ns);
    let count = |one: &Latencies| count(one, direction);
    let is_shaped = |one: &Latencies| !(one.percentile.is_empty() && one.bins.is_empty());
    let is_total = count(total) > 0 && (is_shaped(total) || count(completion) == 0 || !is_shaped(completion));
    let (chosen, clock) = if is_total { (total, Clock::Total) } else { (completion, Clock::Completion) };
    let count = count(chosen);
    (count > 0).then(|| (latency(chosen, count), clock))
}

/// How many latencies of a direction fio took. Of a fio that does not say (3.7 and 3.16 have no `N`), those in its bins, or where it
/// gives none all I/Os, if it took any time at all.
pub(super) fn count(from: &Latencies, direction: &Direction) -> u64 {
    from.count.unwrap_or_else(|| {
        if !from.bins.is_empty() {
            from.bins.values().fold(0, |sum: u64, &count| sum.saturating_add(count))
        } else if from.mean > 0.0 {
            direction.total_ios
        } else {
            0
        }
    })
}

fn latency(from: &Latencies, count: u64) -> Latency {
    let histogram = histogram(from, count);
    // fio's own figure where it gives one, so that both programs show the same.
    let percentile = |p: f64| {
        let given = || from.percentile.iter().find(|(key, _)| is_at(key, p)).map(|(_, &ns)| ns);
        let counted = || histogram.as_ref()?.quantile(p);
        Histogram::has_enough(count, p).then(|| given().or_else(counted)).flatten()
    };
    Latency {
        count,
        min: Some(from.min),
        mean: Some(from.mean).filter(|mean| mean.is_finite()),
        p50: percentile(0.5),
        p90: percentile(0.9),
        p99: percentile(0.99),
        p999: percentile(0.999),
        p9999: percentile(0.9999),
        max: Some(from.max),
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
            min: 1,
            max: 9,
            mean: 5.0,
            percentile: map(percentile),
            bins: map(bins),
        }
    }

    fn chosen(total: Latencies, completion: Latencies) -> Option<(Option<u64>, Clock)> {
        let direction = Direction { lat_ns: total, clat_ns: completion, ..Direction::default() };
        of(&direction).map(|(latency, clock)| (latency.p50, clock))
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
            let from = Latencies { count: None, mean, ..latencies(0, &[], bins) };
            count(&from, &Direction { total_ios: 70, ..Direction::default() })
        };
        assert_eq!(counted(5.0, &[("1000", 60), ("2000", 40)]), 100);
        assert_eq!(counted(5.0, &[]), 70);
        assert_eq!(counted(0.0, &[]), 0, "no time was taken");
    }

    #[test]
    fn percentiles_need_their_samples() {
        let all = [
            ("50.000000", 50),
            ("90.000000", 90),
            ("99.000000", 99),
            ("99.900000", 999),
            ("99.990000", 9999),
            ("x", 1),
        ];
        let latency = |count| super::latency(&latencies(count, &all, &[]), count);
        assert_eq!((latency(19).p50, latency(20).p50), (None, Some(50)));
        assert_eq!((latency(999).p99, latency(1000).p99), (None, Some(99)));
        assert_eq!((latency(99_999).p9999, latency(100_000).p9999), (None, Some(9999)));
        assert_eq!(latency(10_000).p999, Some(999));
    }

    #[test]
    fn bins_stand_in_for_percentiles_that_were_left_out() {
        let bins = [("1000", 60), ("2000", 40)];
        let (of_bins, both) = (latencies(100, &[], &bins), latencies(100, &[("50.000000", 1004)], &bins));
        assert_eq!(super::latency(&both, 100).p50, Some(1004), "fio's own figure");
        let counted = super::latency(&of_bins, 100);
        assert!(counted.p50.is_some_and(|ns| (1000..=1008).contains(&ns)), "{counted:?}");
        let read = Histogram::from_base64(counted.histogram.as_deref().unwrap()).unwrap();
        assert_eq!((read.count(), read.count_up_to(1500)), (100, 60));
        assert_eq!(super::latency(&latencies(101, &[], &bins), 101).histogram, None, "one I/O is in no bin");
        assert_eq!(super::latency(&latencies(100, &[], &[("many", 100)]), 100).histogram, None);
    }
}
