//! Whether the rate of writes lasts: what a cell's visits in the rounds had, beside one visit that went on until it had settled. It
//! names no cause.

use crate::metrics::seconds;
use rdsk_model::{CellRecord, Op, Record};
use rdsk_stats::{Sustained, sustained};

/// A rate that lasts is at least this share of that of shorter visits.
const LASTS: f64 = 0.8;
/// Below this share it does not, however unsure the rate of the shorter visits is.
const FAR_BELOW: f64 = 0.5;

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
    /// Bytes per second before: that of the rounds, or of the start of this visit if that was higher.
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
    let seen = evened(went_on, sustained(&points)?, points.last()?.0);
    let rate = cell.result.bytes_per_s?;
    let fall = seen.fall;
    let is_unsure = rate.low.is_none_or(|low| seen.rate >= low);
    let most = if fall.is_none() && is_unsure { FAR_BELOW } else { LASTS };
    Some(Lasting {
        bytes: went_on.result.bytes?,
        elapsed_ns: went_on.result.elapsed_ns?,
        bytes_per_s: seen.rate,
        is_settled: seen.is_settled(),
        burst_bytes_per_s: fall.map_or(rate.mean, |fall| fall.before.max(rate.mean)),
        fall_bytes: fall.map(|fall| fall.amount as u64),
        is_burst: seen.rate < most * rate.mean,
    })
}

/// What is in flight at once may complete in one quarter of the time or the next, which changes no rate.
fn evened(went_on: &CellRecord, seen: Sustained, end_s: f64) -> Sustained {
    let workload = &went_on.workload;
    let in_flight = u64::from(workload.queue_depth) * u64::from(workload.streams) * workload.block_bytes;
    let of_quarter = in_flight as f64 / (seen.rate * end_s / 4.0);
    Sustained { change: (seen.change - of_quarter).max(0.0), ..seen }
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
            let seen = lasting(&rounds, &write(lasts)).unwrap();
            assert!(!seen.is_burst && seen.is_settled, "{seen:?}");
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
}
