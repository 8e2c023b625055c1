//! Least squares with a handful of unknowns. It knows nothing of disks.

/// The unknowns that a fit has at most.
pub(super) const MAX_UNKNOWNS: usize = 13;

/// The sums that a fit needs, row by row.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    products: [[f64; MAX_UNKNOWNS]; MAX_UNKNOWNS],
    with_target: [f64; MAX_UNKNOWNS],
    squares: f64,
    rows: usize,
}

/// A fit.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) factors: [f64; MAX_UNKNOWNS],
    /// Sum of the squared deviations.
    pub(super) squares: f64,
    pub(super) rows: usize,
    /// Unknowns that the rows determine.
    pub(super) rank: usize,
}

impl Sums {
    pub(super) fn new() -> Sums {
        Sums {
            products: [[0.0; MAX_UNKNOWNS]; MAX_UNKNOWNS],
            with_target: [0.0; MAX_UNKNOWNS],
            squares: 0.0,
            rows: 0,
        }
    }

    /// Adds a row, already multiplied with its weight.
    pub(super) fn add(&mut self, row: &[f64; MAX_UNKNOWNS], target: f64) {
        for i in 0..MAX_UNKNOWNS {
            if row[i] == 0.0 {
                continue;
            }
            for j in i..MAX_UNKNOWNS {
                self.products[i][j] += row[i] * row[j];
            }
            self.with_target[i] += row[i] * target;
        }
        self.squares += target * target;
        self.rows += 1;
    }

    /// Solves by elimination with the largest remaining diagonal first; an unknown that others determine stays 0.
    pub(super) fn solve(&self) -> Fit {
        let mut m = [[0.0; MAX_UNKNOWNS + 1]; MAX_UNKNOWNS];
        let scale: Vec<f64> = (0..MAX_UNKNOWNS).map(|i| self.products[i][i].sqrt().max(1e-300)).collect();
        for i in 0..MAX_UNKNOWNS {
            for j in 0..MAX_UNKNOWNS {
                let product = if i <= j { self.products[i][j] } else { self.products[j][i] };
                m[i][j] = product / scale[i] / scale[j];
            }
            m[i][MAX_UNKNOWNS] = self.with_target[i] / scale[i];
        }
        let mut used = [false; MAX_UNKNOWNS];
        let mut squares = self.squares;
        let mut rank = 0;
        loop {
            let free = (0..MAX_UNKNOWNS).filter(|&i| !used[i]);
            let Some(pivot) = free.max_by(|&a, &b| m[a][a].total_cmp(&m[b][b])) else { break };
            if m[pivot][pivot] < 1e-8 {
                break;
            }
            used[pivot] = true;
            rank += 1;
            squares -= m[pivot][MAX_UNKNOWNS] * m[pivot][MAX_UNKNOWNS] / m[pivot][pivot];
            let row = m[pivot];
            for (i, other) in m.iter_mut().enumerate() {
                if i != pivot {
                    let factor = other[pivot] / row[pivot];
                    other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
                }
            }
        }
        let mut factors = [0.0; MAX_UNKNOWNS];
        for i in (0..MAX_UNKNOWNS).filter(|&i| used[i]) {
            factors[i] = m[i][MAX_UNKNOWNS] / m[i][i] / scale[i];
        }
        Fit { factors, squares: squares.max(0.0), rows: self.rows, rank }
    }
}

impl Fit {
    /// Logarithm of the likelihood for normal deviations of unknown size, less what further unknowns gain by chance
    /// (Schwarz 1978). Deviations are not taken to be smaller than `floor`, in units of the weighted target.
    pub(super) fn score(&self, floor: f64) -> f64 {
        let rows = self.rows as f64;
        let variance = (self.squares / rows).max(floor * floor);
        -rows / 2.0 * variance.ln() - self.rank as f64 / 2.0 * rows.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_a_repeated_column_is_no_harm() {
        let mut sums = Sums::new();
        for n in 0..20 {
            let x = f64::from(n);
            let mut row = [0.0; MAX_UNKNOWNS];
            (row[0], row[1], row[2]) = (1.0, x, 3.0 * x);
            sums.add(&row, 5.0 + 2.0 * x);
        }
        let fit = sums.solve();
        assert_eq!(fit.rank, 2);
        assert!((fit.factors[0] - 5.0).abs() < 1e-6);
        assert!((fit.factors[1] + 3.0 * fit.factors[2] - 2.0).abs() < 1e-6);
        assert!(fit.squares < 1e-6);
    }
}
