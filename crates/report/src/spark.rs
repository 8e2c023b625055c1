//! Small curves in one line. They show a shape, never a figure.

/// Eight heights, from nothing to all.
pub(crate) const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
pub(crate) const ASCII_BARS: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

/// The values as at most `width` bars, each the mean of its part, the largest part as the full bar. Empty without
/// values.
pub(crate) fn line(values: &[u64], width: usize) -> String {
    let parts = parts(values, width);
    let largest = parts.iter().copied().fold(0.0, f64::max);
    parts.iter().map(|&value| if largest > 0.0 { BARS[level(value / largest)] } else { BARS[0] }).collect()
}

/// Means of at most `width` parts of nearly equal length.
fn parts(values: &[u64], width: usize) -> Vec<f64> {
    let count = values.len().min(width);
    (0..count)
        .map(|part| {
            let (from, to) = (part * values.len() / count, (part + 1) * values.len() / count);
            let sum: f64 = values[from..to].iter().map(|&value| value as f64).sum();
            sum / (to - from) as f64
        })
        .collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1 times seven")]
fn level(share: f64) -> usize {
    (share.clamp(0.0, 1.0) * 7.0).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves() {
        assert_eq!(line(&[], 8), "");
        assert_eq!(line(&[0, 0], 8), "▁▁");
        assert_eq!(line(&[0, 5, 10], 8), "▁▅█");
        assert_eq!(line(&[0, 0, 10, 10], 2), "▁█");
        assert_eq!(line(&(0..100).collect::<Vec<u64>>(), 10).chars().count(), 10);
        assert_eq!(line(&[u64::MAX; 3], 2), "██");
    }
}
