//! Whether the rate of a cell changes within its visits, or over the run with those of other cells of its targets. It decides which
//! cells are judged; how, is the statistics' part.

use crate::metrics;
use crate::rate_series::{self, RateSeries, Segment};
use rdsk_model::{CellRecord, Record};
use rdsk_stats::{Follower, VisitLevel, common_drift, has_visits};
pub use rdsk_stats::{Trend, VisitTrend};

/// Probability of a trend in any cell of a Record of which none has one. Each shape within a visit has a quarter of it, of which each
/// cell has an equal part; the last one is for drifts over the run.
pub const FALSE_ALARM: f64 = 0.01;

/// Whether the visits of a cell are enough to judge it.
pub(crate) fn is_judged(series: Option<&RateSeries>) -> bool {
    series.is_some_and(|series| has_visits(&rates(series)))
}

/// The trend of a cell's rate in bytes per second, when so many cells are judged. `None` for a steady one and one of few
/// or short visits.
pub(crate) fn trend(series: Option<&RateSeries>, judged: usize) -> Option<VisitTrend> {
    rdsk_stats::trend(&rates(series?), FALSE_ALARM / judged.max(1) as f64)
}

/// Share of the false alarms for the drifts that cells have in common: the three shapes that [`rdsk_stats::trend`] asks each cell for
/// have a quarter each, and these the last one, in equal parts.
const COMMON: f64 = 1.0 / 4.0;

/// The trends of those of these cells that drift together over the run, each by its own rates at the first and the last visit of all.
/// The cells are judged ones of the same targets, and there are so many such groups in the Record.
pub(crate) fn over_run<'a>(
    record: &Record,
    cells: &[(&'a CellRecord, &RateSeries)],
    groups: usize,
) -> Vec<(&'a CellRecord, VisitTrend)> {
    let has_times = rate_series::has_times(record);
    let levels: Vec<Vec<VisitLevel>> = cells.iter().map(|(_, series)| levels(series, has_times)).collect();
    let false_alarm = FALSE_ALARM * COMMON / groups.max(1) as f64;
    let Some(drift) = common_drift(&levels, false_alarm) else { return Vec::new() };
    let trend = |Follower { early, late, p_value, visits }: Follower| VisitTrend {
        shape: Trend::OverVisits,
        early,
        late,
        p_value,
        visits,
    };
    let of_cells = cells.iter().zip(drift.followers);
    of_cells.filter_map(|((cell, _), follower)| Some((*cell, trend(follower?)))).collect()
}

/// The middle of each visit with any progress, its rate, and how long it was.
fn levels(series: &RateSeries, has_times: bool) -> Vec<VisitLevel> {
    let level = |segment: &Segment| {
        let lasts = metrics::seconds(series.width_ns) * segment.bytes.len() as f64;
        let begin_ns = if has_times { segment.start_ns } else { segment.before_ns };
        let bytes: u64 = segment.bytes.iter().sum();
        (bytes > 0).then(|| (metrics::seconds(begin_ns) + lasts / 2.0, bytes as f64 / lasts, lasts))
    };
    series.segments.iter().filter_map(level).collect()
}

fn rates(series: &RateSeries) -> Vec<Vec<f64>> {
    let seconds = metrics::seconds(series.width_ns);
    let rate = |&bytes: &u64| bytes as f64 / seconds;
    series.segments.iter().map(|segment| segment.bytes.iter().map(rate).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use crate::fixtures::rates::{laid_out, noisy_rates};
    use crate::fixtures::{disk, record, with};
    use rdsk_model::{CellRecord, Op};
    use rdsk_stats::rng::SplitMix64;

    const VISITS: usize = 6;

    /// A cell whose visits all have this course, in noise of 5 %.
    fn cell(noise: &mut SplitMix64, visits: usize, course: impl Fn(f64) -> f64) -> CellRecord {
        let visits: Vec<Vec<f64>> = (0..visits).map(|_| noisy_rates(noise, &course, 60, 0.05, 0.3)).collect();
        laid_out("r", Op::Read, &visits)
    }

    fn shape(cells: Vec<CellRecord>) -> Option<Trend> {
        let record = record(vec![disk()], cells);
        let analysis = Analysis::of(&record);
        analysis.trend(&record.cells[0]).map(|trend| trend.shape)
    }

    #[test]
    fn tells_the_shapes_apart() {
        let mut noise = SplitMix64::new(1);
        let mut shape_of =
            |visits: usize, course: fn(f64) -> f64| shape(vec![cell(&mut noise, visits, course)]);
        assert_eq!(shape_of(VISITS, |_| 100.0), None);
        assert_eq!(shape_of(VISITS, |x| if x < 0.25 { 40.0 } else { 100.0 }), Some(Trend::LowStart));
        assert_eq!(shape_of(VISITS, |x| if x < 0.5 { 100.0 } else { 60.0 }), Some(Trend::HighStart));
        assert_eq!(shape_of(VISITS, |x| if x < 0.5 { 60.0 } else { 100.0 }), Some(Trend::WithinVisits));
        assert_eq!(shape_of(VISITS, |x| 100.0 - 20.0 * x), Some(Trend::WithinVisits));
        assert_eq!(shape_of(VISITS, |x| 100.0 - 8.0 * x), None, "a change of 8% is not worth a word");
        assert_eq!(shape_of(3, |x| 100.0 - 40.0 * x), None, "too few visits");
    }

    #[test]
    fn a_cell_among_many_needs_more() {
        let mut noise = SplitMix64::new(3);
        let weak = laid_out(
            "w",
            Op::Read,
            &[0.72, 0.86, 0.8, 0.84, 0.82, 0.76]
                .map(|end| noisy_rates(&mut noise, |x| 100.0 * (1.0 - (1.0 - end) * x), 60, 0.0, 0.0)),
        );
        let mut steady = |_: usize| cell(&mut noise, VISITS, |_| 100.0);
        assert_eq!(shape(vec![weak.clone()]), Some(Trend::WithinVisits));
        let many: Vec<CellRecord> = std::iter::once(weak).chain((0..30).map(&mut steady)).collect();
        assert_eq!(shape(many), None);
    }

    /// A fall of 26 % whose visits lie so far from a line that chance gives it in one of a thousand groups of cells.
    #[test]
    fn a_drift_of_one_target_among_many_needs_more() {
        let off: [f64; 6] = [5.0, -1.0, -4.0, -4.0, -1.0, 5.0];
        let visit = |at: usize| vec![100.0 * f64::exp(0.0064 * off[at] - 0.06 * at as f64); 60];
        let weak = laid_out("w", Op::Read, &(0..6).map(visit).collect::<Vec<Vec<f64>>>());
        let mut noise = SplitMix64::new(5);
        let mut other = |target: u32| {
            with(cell(&mut noise, VISITS, |_| 100.0), |cell| cell.workload.targets = vec![target])
        };
        assert_eq!(shape(vec![weak.clone()]), Some(Trend::OverVisits));
        let many: Vec<CellRecord> = std::iter::once(weak).chain((1..10).map(&mut other)).collect();
        assert_eq!(shape(many), None);
    }
}
