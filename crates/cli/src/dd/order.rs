//! The order of runs: one line after the other in every round, backwards in every second one (A B B A), so that drift affects
//! both alike.

/// The lines by their numbers, in the order in which they run.
pub(super) fn order(rounds: u32, lines: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..lines).collect();
    (0..rounds).flat_map(|round| rdsk_model::plan::turned(&all, round)).collect()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn two_lines_run_there_and_back() {
        assert_eq!(order(3, 2), [0, 1, 1, 0, 0, 1]);
        assert_eq!(order(3, 1), [0, 0, 0]);
    }
}
