//! Least squares with a handful of unknowns, row by row, for callers that try thousands of models.

/// The sums that a fit of at most `N` unknowns needs.
#[derive(Clone, Debug)]
pub struct LeastSquares<const N: usize> {
    products: [[f64; N]; N],
    with_target: [f64; N],
    squares: f64,
    rows: usize,
}

/// A fit.
#[derive(Clone, Debug)]
pub struct Fit<const N: usize> {
    /// The unknowns; 0 for one that others determine.
    pub factors: [f64; N],
    /// Sum of the squared deviations.
    pub squares: f64,
    /// Rows that were added.
    pub rows: usize,
    /// Unknowns that the rows determine.
    pub rank: usize,
}

impl<const N: usize> Default for LeastSquares<N> {
    fn default() -> Self {
        Self { products: [[0.0; N]; N], with_target: [0.0; N], squares: 0.0, rows: 0 }
    }
}

impl<const N: usize> LeastSquares<N> {
    /// Adds a row, already multiplied with its weight.
    pub fn add(&mut self, row: &[f64; N], target: f64) {
        add_products(self.products.as_flattened_mut(), &mut self.with_target, row, target);
        self.squares += target * target;
        self.rows += 1;
    }

    /// Solves by elimination with the largest remaining diagonal first; an unknown that others determine stays 0.
    pub fn solve(&self) -> Fit<N> {
        let (mut m, mut targets) = ([[0.0; N]; N], [0.0; N]);
        let scale: [f64; N] = std::array::from_fn(|i| self.products[i][i].sqrt().max(1e-300));
        for i in 0..N {
            for j in 0..N {
                let product = if i <= j { self.products[i][j] } else { self.products[j][i] };
                m[i][j] = product / scale[i] / scale[j];
            }
            targets[i] = self.with_target[i] / scale[i];
        }
        let mut used = [false; N];
        let mut squares = self.squares;
        let mut rank = 0;
        loop {
            let free = (0..N).filter(|&i| !used[i]);
            let Some(pivot) = free.max_by(|&a, &b| m[a][a].total_cmp(&m[b][b])) else { break };
            if m[pivot][pivot] < 1e-8 {
                break;
            }
            used[pivot] = true;
            rank += 1;
            squares -= targets[pivot] * targets[pivot] / m[pivot][pivot];
            let (row, target) = (m[pivot], targets[pivot]);
            for (i, other) in m.iter_mut().enumerate() {
                if i != pivot {
                    let factor = other[pivot] / row[pivot];
                    other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
                    targets[i] -= factor * target;
                }
            }
        }
        let factors = std::array::from_fn(|i| if used[i] { targets[i] / m[i][i] / scale[i] } else { 0.0 });
        Fit { factors, squares: squares.max(0.0), rows: self.rows, rank }
    }
}

/// Adds a row to the products, line by line from the diagonal on. It is not generic, so that it is compiled with this crate, which is
/// optimised, and not with that of a caller, which need not be: `infer` of the stripes comes here some million times.
#[inline(never)]
fn add_products(products: &mut [f64], with_target: &mut [f64], row: &[f64], target: f64) {
    let lines = products.chunks_exact_mut(row.len()).zip(with_target);
    for (at, (line, sum)) in lines.enumerate().filter(|(at, _)| row[*at] != 0.0) {
        line[at..].iter_mut().zip(&row[at..]).for_each(|(product, other)| *product += row[at] * other);
        *sum += row[at] * target;
    }
}

impl<const N: usize> Fit<N> {
    /// Logarithm of the likelihood for normal deviations of unknown size, less what further unknowns gain by chance
    /// (Schwarz 1978). Deviations are not taken to be smaller than `floor`, in units of the weighted target.
    pub fn score(&self, floor: f64) -> f64 {
        let rows = self.rows as f64;
        let variance = (self.squares / rows).max(floor * floor);
        -rows / 2.0 * variance.ln() - self.rank as f64 / 2.0 * rows.ln()
    }

    /// Chance that up to ten further unknowns explain as much more than `null` does if they mean nothing: Wilks' likelihood
    /// ratio, ten degrees of freedom. `floor` as for [`Self::score`].
    pub fn gain_p_value(&self, null: &Fit<N>, floor: f64) -> f64 {
        let floor = floor * floor * self.rows as f64;
        let ratio = (null.squares.max(floor) / self.squares.max(floor)).ln() * self.rows as f64 / 2.0;
        (-ratio).exp() * (1.0 + ratio + ratio.powi(2) / 2.0 + ratio.powi(3) / 6.0 + ratio.powi(4) / 24.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_a_repeated_column_is_no_harm() {
        let mut sums = LeastSquares::<3>::default();
        for n in 0..20 {
            let x = f64::from(n);
            sums.add(&[1.0, x, 3.0 * x], 5.0 + 2.0 * x);
        }
        let fit = sums.solve();
        assert_eq!(fit.rank, 2);
        assert!((fit.factors[0] - 5.0).abs() < 1e-6);
        assert!((fit.factors[1] + 3.0 * fit.factors[2] - 2.0).abs() < 1e-6);
        assert!(fit.squares < 1e-6);
    }

    #[test]
    fn what_explains_nothing_gains_nothing() {
        let (mut null, mut line) = (LeastSquares::<2>::default(), LeastSquares::<2>::default());
        for n in 0..50 {
            let (x, target) = (f64::from(n), 5.0 + f64::from(n % 7));
            null.add(&[1.0, 0.0], target);
            line.add(&[1.0, x], target);
        }
        let (null, line) = (null.solve(), line.solve());
        assert!(line.gain_p_value(&null, 0.01) > 0.5 && line.score(0.01) < null.score(0.01));
    }
}
