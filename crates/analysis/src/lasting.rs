//! Whether the rate of writes lasts: what a cell's visits in the rounds had, beside one visit that went on until it had settled. It
//! names no cause.

use crate::metrics::seconds;
use rdsk_model::{CellRecord, Op, Record};
use rdsk_stats::sustained;

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
    let seen = sustained(&points)?;
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

/// Bytes that the writing cells of these targets had written in the rounds: whatever caches there are held no more.
pub fn written_bytes<'a>(cells: impl IntoIterator<Item = &'a CellRecord>) -> u64 {
    let writes = cells.into_iter().filter(|cell| cell.workload.op == Op::Write);
    writes.filter_map(|cell| cell.result.bytes).sum()
}
