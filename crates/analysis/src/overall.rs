//! Many ratios of rates in one answer: in how many tests one side is clearly faster, the geometric mean of all, and the test that
//! differs most. It judges no single ratio and words nothing.

/// The ratio of one test: the rate of the other side over that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestRatio {
    /// The ratio, above 0.
    pub ratio: f64,
    /// Its 95% interval; an end that is not known is 0 or infinite.
    pub interval: (f64, f64),
    /// Whether chance is excluded for all tests together.
    pub is_clear: bool,
}

/// A geometric mean of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// The mean.
    pub ratio: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the ratios say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The other side is faster: in some tests, in none slower, and on average.
    Faster,
    /// The other way round.
    Slower,
    /// Some tests differ, and either their directions do, too, or the mean of all tests does not follow them.
    SomeTests,
    /// No single test differs clearly, but their mean does.
    OnAverage,
    /// Nothing differs clearly.
    NoDifference,
    /// No test has an interval.
    TooFewData,
}

/// The answer of many ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// Tests that have a ratio with an interval.
    pub tests: usize,
    /// Tests in which the other side is clearly faster.
    pub faster: usize,
    /// Tests in which it is clearly slower.
    pub slower: usize,
    /// The geometric mean; `None` where no interval has both ends.
    pub average: Option<Average>,
    /// The clear ratio that is farthest from 1, as its position among the ratios.
    pub biggest: Option<usize>,
}

/// Puts ratios together, in any order.
pub fn overall(ratios: &[TestRatio]) -> Overall {
    let clear = || ratios.iter().enumerate().filter(|(_, test)| test.is_clear);
    let biggest = clear().max_by(|(_, left), (_, right)| distance(left).total_cmp(&distance(right)));
    Overall {
        tests: ratios.len(),
        faster: clear().filter(|(_, test)| test.ratio > 1.0).count(),
        slower: clear().filter(|(_, test)| test.ratio < 1.0).count(),
        average: average(ratios),
        biggest: biggest.map(|(position, _)| position),
    }
}

fn distance(test: &TestRatio) -> f64 {
    test.ratio.ln().abs()
}

/// The geometric mean of the ratios that have both ends, and the geometric means of their lower and of their upper ends as its ends.
/// The tests of a run share the state of the disk, so that their errors may all go the same way: then the error of the mean is the
/// mean of the errors, and never more. Averaged out as if they were independent, the interval would be too narrow. It is about
/// these tests, not about others that might have been chosen.
///
/// Worked example: 1.10 (1.00–1.21) and 1.21 (1.10–1.331) give √(1.10 · 1.21) = 1.154, from √(1.00 · 1.10) = 1.049 to
/// √(1.21 · 1.331) = 1.269.
pub fn average(ratios: &[TestRatio]) -> Option<Average> {
    let is_whole = |test: &&TestRatio| test.interval.0 > 0.0 && test.interval.1.is_finite();
    let whole: Vec<&TestRatio> = ratios.iter().filter(is_whole).collect();
    let mean = |value: fn(&TestRatio) -> f64| {
        let logs: Vec<f64> = whole.iter().map(|test| value(test).ln()).collect();
        rdsk_stats::mean(&logs).map(f64::exp)
    };
    Some(Average {
        ratio: mean(|test| test.ratio)?,
        low: mean(|test| test.interval.0)?,
        high: mean(|test| test.interval.1)?,
    })
}

impl Average {
    /// Whether the interval leaves out 1.
    pub fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// The same of the baseline over the other side.
    pub fn turned(self) -> Self {
        Self { ratio: 1.0 / self.ratio, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

impl Overall {
    /// What the ratios say together.
    pub fn decision(&self) -> Decision {
        let is_clear = self.average.is_some_and(|average| average.is_clear());
        let (may_be_faster, may_be_slower) =
            self.average.map_or((true, true), |average| (average.low > 1.0, average.high < 1.0));
        match (self.tests, self.faster, self.slower) {
            (0, ..) => Decision::TooFewData,
            (_, 0, 0) if is_clear => Decision::OnAverage,
            (_, 0, 0) => Decision::NoDifference,
            (_, _, 0) if may_be_faster => Decision::Faster,
            (_, 0, _) if may_be_slower => Decision::Slower,
            _ => Decision::SomeTests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(ratio: f64, low: f64, high: f64, is_clear: bool) -> TestRatio {
        TestRatio { ratio, interval: (low, high), is_clear }
    }

    #[test]
    fn the_mean_is_geometric_and_errors_do_not_cancel() {
        let two = [ratio(1.10, 1.00, 1.21, false), ratio(1.21, 1.10, 1.331, true)];
        let Average { ratio: mean, low, high } = average(&two).unwrap();
        // √1.331, √1.1 and √1.61051, by hand.
        for (found, expected) in [(mean, 1.153_69), (low, 1.048_81), (high, 1.269_06)] {
            assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
        }
        // Twice as fast and half as fast is no change, however many of each.
        let evened = average(&[ratio(2.0, 1.9, 2.1, true), ratio(0.5, 0.47, 0.53, true)]).unwrap();
        assert!((evened.ratio - 1.0).abs() < 1e-12 && evened.low < 1.0 && evened.high > 1.0);
        // Ten tests with the same error are no surer than one.
        let alike = average(&[ratio(1.1, 1.0, 1.21, false); 10]).unwrap();
        assert!((alike.low - 1.0).abs() < 1e-12 && (alike.high - 1.21).abs() < 1e-12, "{alike:?}");
    }

    #[test]
    fn a_test_with_an_open_end_counts_and_has_no_part_in_the_mean() {
        let open = ratio(60.0, 50.0, f64::INFINITY, true);
        let found = overall(&[open, ratio(1.1, 1.05, 1.15, true)]);
        assert_eq!((found.tests, found.faster, found.biggest), (2, 2, Some(0)));
        assert!((found.average.unwrap().ratio - 1.1).abs() < 1e-12);
        assert_eq!(overall(&[open]).average, None);
    }

    #[test]
    fn the_counts_decide_and_then_the_mean() {
        let (up, down) = (ratio(1.5, 1.4, 1.6, true), ratio(0.5, 0.4, 0.6, true));
        let small = ratio(1.1, 1.05, 1.15, true);
        let (same, little) = (ratio(1.0, 0.9, 1.1, false), ratio(1.03, 1.01, 1.05, false));
        for (ratios, decision) in [
            (&[][..], Decision::TooFewData),
            (&[same, same], Decision::NoDifference),
            (&[little, little], Decision::OnAverage),
            (&[up, same], Decision::Faster),
            (&[down, same], Decision::Slower),
            (&[up, down, same], Decision::SomeTests),
            // One of many that is faster makes no faster disk.
            (&[small, same, same, same, same], Decision::SomeTests),
        ] {
            assert_eq!(overall(ratios).decision(), decision, "{ratios:?}");
        }
        assert_eq!(overall(&[up, down]).biggest, Some(1), "a half is farther from 1 than one and a half");
    }

    #[test]
    fn the_other_way_round_is_the_reciprocal() {
        let turned = Average { ratio: 0.5, low: 0.4, high: 0.8 }.turned();
        assert_eq!((turned.ratio, turned.low, turned.high), (2.0, 1.25, 2.5));
        assert!(turned.is_clear());
    }
}
