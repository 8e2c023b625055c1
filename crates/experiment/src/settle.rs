//! Follows the rate of a visit that goes on until it has settled, and says when that is. It decides from numbers and issues nothing.

use rdsk_engine::Progress;
use rdsk_model::{Cell, Endurance, Extent};
use rdsk_stats::{Sustained, sustained};

/// Shortest time after which a rate may be called settled.
const MIN_NS: u64 = 10_000_000_000;
/// Points that are kept at most; every second one is dropped when there are more.
const MAX_POINTS: usize = 4096;
/// From one look at the whole series to the next, the time grows by one part in so many.
const LOOK_GROWS: u64 = 20;
/// A level of at most this share of the rate that shorter visits had has fallen from there.
pub(crate) const FALLEN: f64 = 0.8;

/// The progress of such a visit.
#[derive(Debug)]
pub(crate) struct SettleWatch {
    endurance: Endurance,
    /// Seconds and bytes.
    points: Vec<(f64, f64)>,
    /// Windows that stand for one point, and those since the last one.
    every: u32,
    since: u32,
    next_look_ns: u64,
}

impl SettleWatch {
    /// For a visit of this cell; `None` where its end does not depend on its rate.
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        let Extent::Sustained(endurance) = cell.extent else { return None };
        Some(Self { endurance, points: Vec::new(), every: 1, since: 0, next_look_ns: MIN_NS })
    }

    /// Takes the progress at the end of a window; whether the visit has gone on for long enough.
    pub(crate) fn is_over(&mut self, progress: &Progress) -> bool {
        self.since += 1;
        if self.since >= self.every {
            self.since = 0;
            self.points.push((progress.elapsed_ns as f64 / 1e9, progress.bytes as f64));
        }
        if self.points.len() > MAX_POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.every *= 2;
        }
        if progress.elapsed_ns < self.next_look_ns || progress.bytes < self.endurance.least_bytes {
            return false;
        }
        self.next_look_ns = progress.elapsed_ns + progress.elapsed_ns / LOOK_GROWS;
        let Some(settled) = sustained(&self.points).filter(Sustained::is_clearly_settled) else {
            return false;
        };
        let expected = self.endurance.expected_bytes_per_s as f64;
        let has_fallen = settled.fall.is_some() || settled.rate <= FALLEN * expected;
        let has_held =
            progress.elapsed_ns >= self.endurance.least_ns || progress.ops >= self.endurance.least_ops;
        has_fallen || has_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Experiment, Workload};

    const FOREVER: Endurance = Endurance {
        least_bytes: 0,
        least_ns: u64::MAX,
        least_ops: u64::MAX,
        most_ops: u64::MAX,
        expected_bytes_per_s: 0,
    };

    /// When a visit is over that has done so much after so many seconds; `None` for not within 1000 s.
    fn over_s(endurance: Endurance, done: impl Fn(f64) -> f64) -> Option<f64> {
        let cell = Cell {
            id: "c".into(),
            experiment: Experiment::Headline,
            workload: Workload::sequential_read(1 << 30),
            extent: Extent::Sustained(endurance),
            weight: 1.0,
            not_applicable: None,
        };
        let mut watch = SettleWatch::of(&cell).unwrap();
        assert!(SettleWatch::of(&Cell { extent: Extent::Timed, ..cell }).is_none());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a test")]
        let progress = |window: u64| {
            let bytes = done(window as f64 * 0.05) as u64;
            Progress { elapsed_ns: window * 50_000_000, bytes, ops: bytes / 4096 }
        };
        (1..20_000).find(|&window| watch.is_over(&progress(window))).map(|window| window as f64 * 0.05)
    }

    #[test]
    fn a_burst_is_over_when_the_level_after_it_lasted_as_long() {
        let burst = |s: f64| (900e6 * s).min(18e9 + 30e6 * s);
        let over = over_s(FOREVER, burst).unwrap();
        assert!((40.0..50.0).contains(&over), "the burst is over after 20.7 s: {over}");
        // One that ends at once is followed for as long as anything.
        assert_eq!(over_s(FOREVER, |s| (900e6 * s).min(1e8 + 30e6 * s)), Some(10.0));
    }

    #[test]
    fn a_level_goes_on_for_as_long_as_it_must() {
        assert_eq!(over_s(FOREVER, |s| 1e8 * s), None, "until its time is over");
        let held = |endurance: Endurance| over_s(endurance, |s| 1e8 * s).unwrap();
        assert!((60.0..63.1).contains(&held(Endurance { least_ns: 60_000_000_000, ..FOREVER })));
        assert!((20.0..21.1).contains(&held(Endurance { least_ops: 488_000, ..FOREVER })));
        // Far below what shorter visits had, it has fallen before.
        let below = Endurance { expected_bytes_per_s: 200_000_000, ..FOREVER };
        assert_eq!(over_s(below, |s| 1e8 * s), Some(10.0));
        let more = Endurance { least_bytes: 5_000_000_000, ..below };
        assert!((50.0..50.1).contains(&over_s(more, |s| 1e8 * s).unwrap()));
        assert_eq!(over_s(Endurance { least_ns: 0, ..FOREVER }, |s| 1e8 * s * s), None, "it never settles");
    }
}
