//! Whether the rate of a cell changed over its windows. It decides which cells are compared; how, is the statistics' part.

use crate::metrics;
use rdsk_model::{CellRecord, StopReason, VerdictCode};
pub use rdsk_stats::Trend;

/// The trend of a cell's rate in bytes per second. `None` for a steady or short one, and for cells that memory answered, that
/// failed, or whose positions were chosen.
pub(crate) fn trend(cell: &CellRecord) -> Option<Trend> {
    let of_memory =
        |code| matches!(code, VerdictCode::PageCache | VerdictCode::Hole | VerdictCode::Incomplete);
    if cell.verdict.as_ref().is_some_and(|verdict| of_memory(verdict.code))
        || matches!(cell.result.stop, StopReason::Error)
        // Chosen places lie where the rate differs.
        || cell.workload.points.is_some()
    {
        return None;
    }
    let windows = cell.result.windows.as_ref()?;
    let rates: Vec<f64> =
        windows.bytes.iter().map(|&bytes| bytes as f64 / metrics::seconds(windows.width_ns)).collect();
    rdsk_stats::trend(&rates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::rates::rippled;

    #[test]
    fn tells_the_shapes_apart() {
        let steps = |parts: &[(usize, f64)]| -> Vec<f64> {
            parts.iter().flat_map(|&(count, size)| std::iter::repeat_n(size, count)).collect()
        };
        let of = |parts: &[(usize, f64)]| trend(&rippled(&steps(parts)).cells[0]);
        assert_eq!(of(&[(100, 10.0)]), None);
        assert!(matches!(of(&[(25, 4.0), (75, 10.0)]), Some(Trend::LowStart { .. })));
        assert!(matches!(of(&[(50, 10.0), (50, 6.0)]), Some(Trend::Drift { .. })));
        assert!(matches!(of(&[(50, 6.0), (50, 10.0)]), Some(Trend::Drift { .. })));
        assert_eq!(of(&[(50, 10.0), (50, 8.5)]), None, "a change of 15 % is not worth a word");
        assert_eq!(of(&[(49, 10.0), (49, 6.0)]), None, "too few windows");
        assert_eq!(of(&[(20, 3.3), (20, 6.0)]), None, "two visits on a noisy disk");
        let noisy: Vec<(usize, f64)> =
            [9.0, 12.0, 7.0, 11.0, 10.0, 6.5, 8.0, 5.0, 7.0, 6.0].map(|size| (10, size)).into();
        assert_eq!(of(&noisy), None, "batches of the halves overlap");
        // A rate that swings wildly all the time has no halves that differ.
        assert_eq!(trend(&rippled(&steps(&[(10, 1.0), (10, 19.0)]).repeat(5)).cells[0]), None);
    }
}
