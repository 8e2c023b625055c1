//! Whether the rate of writes lasts: what a cell's visits in the rounds had, beside one visit that went on until it had settled. It
//! names no cause.

use crate::metrics::seconds;
use rdsk_model::{CellRecord, Op, Record};
use rdsk_stats::{Sustained, sustained};

/// A rate that lasts is at least this share of that of shorter visits.
const LASTS: f64 = 0.8;
/// Below this share it does not, however unsure the rate of the shorter visits is.
const FAR_BELOW: f64 = 0.5;
/// Of rounds that cross the fall, the slow visits are at the lasting rate or at most this much above it.
const AT_LASTING: f64 = 1.25;

/// What a visit that went on showed of a cell's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lasting {
    /// Bytes that it wrote.
    pub bytes: u64,
    /// Its time, in ns.
    pub elapsed_ns: u64,
    /// Bytes per second in the later half of it.
    pub bytes_per_s: f64,
    /// Whether that half is one level.
    pub is_settled: bool,
    /// Bytes per second before: that of the rounds, of their first visit where they cross the fall, or of the start of this
    /// visit if that was higher.
    pub burst_bytes_per_s: f64,
    /// Bytes of this visit until its rate fell; `None` where it did not fall within it.
    pub fall_bytes: Option<u64>,
    /// Whether the rate of the rounds is clearly above the one that lasts.
    pub is_burst: bool,
}

/// What the Record shows of a writing cell; `None` where no visit of it went on.
pub fn lasting_of(record: &Record, cell: &CellRecord) -> Option<Lasting> {
    let went_on = record.sustained.iter().find(|other| other.id == cell.id)?;
    lasting(cell, went_on)
}

/// Of a cell, and its visit that went on.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes far below 2^63")]
pub fn lasting(cell: &CellRecord, went_on: &CellRecord) -> Option<Lasting> {
    let windows = went_on.result.windows.as_ref()?;
    let width = seconds(windows.width_ns);
    // The last window is cut off by the end.
    let (_, full) = windows.bytes.split_last()?;
    let mut done = 0;
    let points: Vec<(f64, f64)> = (1..)
        .zip(full)
        .map(|(count, bytes): (u32, &u64)| {
            done += bytes;
            (f64::from(count) * width, done as f64)
        })
        .collect();
    let lasting = evened(went_on, sustained(&points)?, points.last()?.0);
    let rate = cell.result.bytes_per_s?;
    let fall = lasting.fall;
    let is_unsure = rate.low.is_none_or(|low| lasting.rate >= low);
    let most = if fall.is_none() && is_unsure { FAR_BELOW } else { LASTS };
    let crossed = burst_of_rounds(cell, lasting.rate).filter(|_| is_unsure);
    let in_rounds = crossed.unwrap_or(rate.mean);
    Some(Lasting {
        bytes: went_on.result.bytes?,
        elapsed_ns: went_on.result.elapsed_ns?,
        bytes_per_s: lasting.rate,
        is_settled: lasting.is_settled(),
        burst_bytes_per_s: fall.map_or(in_rounds, |fall| fall.before.max(in_rounds)),
        fall_bytes: fall.map(|fall| fall.amount as u64),
        is_burst: lasting.rate < most * rate.mean || crossed.is_some(),
    })
}

/// The rate of the first visit, where the rounds themselves cross the fall: their mean is then of both levels and says nothing.
///
/// Of visits at 1200, 290, 500 and 290 MiB/s beside a lasting rate of 277, the first is far above it and the slowest is at it:
/// 1200. Of visits at 1200, 1150 and 1210 none is at the lasting rate: their mean is the burst. Of 290, 1200 and 290 the first
/// is not above: the others may have had help.
fn burst_of_rounds(cell: &CellRecord, lasting: f64) -> Option<f64> {
    let rates: Vec<f64> = cell
        .result
        .visits
        .iter()
        .filter(|visit| visit.elapsed_ns > 0)
        .map(|visit| visit.bytes as f64 / seconds(visit.elapsed_ns))
        .collect();
    let first = *rates.first()?;
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    (lasting < FAR_BELOW * first && slowest <= AT_LASTING * lasting).then_some(first)
}

/// What is in flight at once may complete in one quarter of the time or the next, which changes no rate.
fn evened(went_on: &CellRecord, sustained: Sustained, end_s: f64) -> Sustained {
    let workload = &went_on.workload;
    let in_flight = u64::from(workload.queue_depth) * u64::from(workload.streams) * workload.block_bytes;
    let of_quarter = in_flight as f64 / (sustained.rate * end_s / 4.0);
    Sustained { change: (sustained.change - of_quarter).max(0.0), ..sustained }
}

/// Bytes that the writing cells of these targets had written in the rounds: whatever caches there are held no more.
pub fn written_bytes<'a>(cells: impl IntoIterator<Item = &'a CellRecord>) -> u64 {
    let writes = cells.into_iter().filter(|cell| cell.workload.op == Op::Write);
    writes.filter_map(|cell| cell.result.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::rates::{falling, laid_out, steady};
    use crate::fixtures::with;
    use rdsk_model::Estimate;

    fn write(course: Vec<f64>) -> CellRecord {
        laid_out("w", Op::Write, &[course])
    }

    #[test]
    fn a_figure_is_a_burst_if_what_lasts_is_clearly_lower() {
        let rounds = write(steady(60, 800.0));
        let fallen = lasting(&rounds, &write(falling(200, 400, 800.0, 100.0))).unwrap();
        assert!(fallen.is_burst && fallen.is_settled && fallen.fall_bytes.is_some(), "{fallen:?}");
        for lasts in [steady(600, 800.0), steady(600, 700.0), steady(600, 900.0)] {
            let lasting = lasting(&rounds, &write(lasts)).unwrap();
            assert!(!lasting.is_burst && lasting.is_settled, "{lasting:?}");
        }
        // A wide interval needs a fall that is seen, or a rate below half.
        let unsure = with(rounds, |cell| {
            cell.result.bytes_per_s =
                cell.result.bytes_per_s.map(|rate| Estimate { low: Some(0.0), high: Some(2e9), ..rate });
        });
        let is_burst = |rate| lasting(&unsure, &write(steady(600, rate))).unwrap().is_burst;
        assert!(!is_burst(500.0) && is_burst(390.0));
        assert!(lasting(&unsure, &write(steady(10, 1.0))).is_none(), "too short to say");
    }

    #[test]
    fn rounds_that_cross_the_fall_are_a_burst_and_what_comes_after() {
        let rounds = |levels: &[f64]| {
            let visits: Vec<Vec<f64>> = levels.iter().map(|level| steady(50, *level)).collect();
            with(laid_out("w", Op::Write, &visits), |cell| {
                let mean = 1048576.0 * levels.iter().sum::<f64>() / levels.len() as f64;
                cell.result.bytes_per_s = Some(Estimate { mean, low: Some(0.0), high: Some(3.0 * mean) });
            })
        };
        let went_on = write(steady(600, 277.0));
        let settled = lasting(&rounds(&[1200.0, 290.0, 500.0, 290.0]), &went_on).unwrap();
        assert!(settled.is_burst && settled.fall_bytes.is_none(), "{settled:?}");
        assert!((1190.0..1210.0).contains(&(settled.burst_bytes_per_s / 1048576.0)), "{settled:?}");
        for levels in
            [[290.0, 500.0, 290.0, 290.0], [300.0, 280.0, 900.0, 290.0], [450.0, 280.0, 270.0, 290.0]]
        {
            assert!(!lasting(&rounds(&levels), &went_on).unwrap().is_burst, "{levels:?}");
        }
    }
}
