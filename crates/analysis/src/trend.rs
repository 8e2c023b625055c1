//! How the rate of a cell changed over its windows: parts compared by means and 95 % intervals. It explains nothing.

use crate::metrics;
use rdsk_model::{CellRecord, StopReason, VerdictCode};

/// Windows below which parts are too short to compare: on a noisy disk two visits of 20 windows each differ by chance.
const MIN_WINDOWS: usize = 100;
/// Batches per part: few enough that neighbouring windows, which resemble each other, fall into one batch.
const BATCHES: usize = 5;
/// Student's t for 95 % and `BATCHES - 1` degrees of freedom (any table of the distribution).
const T95: f64 = 2.776;
/// A change smaller than this is not worth a word even when it is significant.
const WORTH: f64 = 0.2;

/// Mean rate of a part in bytes per second, with the half-width of its interval and the extremes of its batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Mean rate in bytes per second.
    pub mean: f64,
    half_width: f64,
    slowest: f64,
    fastest: f64,
}

/// What the windows show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trend {
    /// The first quarter was slower than the rest, and the rest held steady.
    SlowStart {
        /// The first quarter.
        first: Part,
        /// What came after it.
        rest: Part,
    },
    /// The second half differs from the first.
    Drift {
        /// The first half.
        first: Part,
        /// The second half.
        second: Part,
    },
}

/// The change of a cell's rate, when there is one beyond both intervals, beyond every batch of the other part, and of
/// more than 20 %.
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
    let windows = cell.result.windows.as_ref().filter(|windows| windows.bytes.len() >= MIN_WINDOWS)?;
    let rates: Vec<f64> =
        windows.bytes.iter().map(|&bytes| bytes as f64 / metrics::seconds(windows.width_ns)).collect();
    let (quarter, half) = (rates.len() / 4, rates.len() / 2);
    let first = part(&rates[..quarter])?;
    let rest = part(&rates[quarter..])?;
    let rest_middle = quarter + (rates.len() - quarter) / 2;
    let is_steady_later = !differ(part(&rates[quarter..rest_middle])?, part(&rates[rest_middle..])?);
    if first.mean < rest.mean && differ(first, rest) && is_steady_later {
        return Some(Trend::SlowStart { first, rest });
    }
    let (first, second) = (part(&rates[..half])?, part(&rates[half..])?);
    differ(first, second).then_some(Trend::Drift { first, second })
}

fn differ(a: Part, b: Part) -> bool {
    let distance = (a.mean - b.mean).abs();
    let is_apart = a.fastest < b.slowest || b.fastest < a.slowest;
    is_apart && distance > a.half_width + b.half_width && distance > WORTH * a.mean.max(b.mean)
}

/// Mean and interval from the means of equal batches; a remainder at the end is left out of them.
fn part(rates: &[f64]) -> Option<Part> {
    let size = rates.len() / BATCHES;
    if size == 0 {
        return None;
    }
    let means: Vec<f64> =
        rates.chunks_exact(size).take(BATCHES).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let count = BATCHES as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(Part {
        mean,
        half_width: T95 * (variance / count).sqrt(),
        slowest: means.iter().copied().fold(f64::INFINITY, f64::min),
        fastest: means.iter().copied().fold(0.0, f64::max),
    })
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
        assert!(matches!(of(&[(25, 4.0), (75, 10.0)]), Some(Trend::SlowStart { .. })));
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
