//! The sentence that decides between two sides, runs or targets: which is faster, in how many tests, by how much on average, and in
//! which test most. It judges nothing; the answer is that of [`rdsk_analysis::overall`].

use crate::figures::ratio_figure;
use rdsk_analysis::overall::{Average, Decision, Overall};
use rdsk_analysis::words::plural;

/// `b is faster: 36 of 41 tests, none slower; 1.22x on average (1.15–1.29).`
pub(crate) fn sentence(overall: &Overall, base: &str, other: &str) -> String {
    let Overall { tests, faster, slower, average, .. } = *overall;
    let test_count = plural(tests as u64, "test");
    match overall.decision() {
        Decision::Faster => {
            format!("{other} is faster: {faster} of {test_count}, none slower{}.", on_average(average))
        }
        Decision::Slower => {
            let average = average.map(Average::turned);
            format!("{base} is faster: {slower} of {test_count}, none slower{}.", on_average(average))
        }
        Decision::SomeTests => {
            // The one that is faster in more tests is what the sentence is about.
            let (winner, more, fewer, average) = if slower > faster {
                (base, slower, faster, average.map(Average::turned))
            } else {
                (other, faster, slower, average)
            };
            let fewer = none_or(fewer);
            format!("{winner} is faster in {more} of {test_count}, slower in {fewer}{}.", on_average(average))
        }
        Decision::OnAverage => {
            let is_other = average.is_some_and(|average| average.ratio > 1.0);
            let (winner, average) =
                if is_other { (other, average) } else { (base, average.map(Average::turned)) };
            let by = average.map_or_else(String::new, |average| factor(&average));
            format!("{winner} is faster on average, {by}; no clear difference in any one of {test_count}.")
        }
        Decision::NoDifference => {
            let average = average
                .map_or_else(String::new, |average| format!(": {other} {} on average", factor(&average)));
            format!("No clear difference in {test_count}{average}.")
        }
        Decision::TooFewData => format!("No test of {base} and {other} has enough repeats to compare."),
    }
}

/// `Biggest: random write 4K QD32 1.61x (1.48–1.75).`; the factor is that of the faster side where one is faster, else that of the
/// other side over the baseline, which is then named.
pub(crate) fn biggest(overall: &Overall, base: &str, other: &str, test: &str, ratio: Average) -> String {
    match overall.decision() {
        Decision::Faster => format!("Biggest: {test} {}.", factor(&ratio)),
        Decision::Slower => format!("Biggest: {test} {}.", factor(&ratio.turned())),
        _ if ratio.ratio > 1.0 => format!("Biggest: {test}, {other} {}.", factor(&ratio)),
        _ => format!("Biggest: {test}, {base} {}.", factor(&ratio.turned())),
    }
}

fn none_or(count: usize) -> String {
    if count == 0 { "none".into() } else { count.to_string() }
}

/// `; 1.22x on average (1.15–1.29)`.
fn on_average(average: Option<Average>) -> String {
    average.map_or_else(String::new, |Average { ratio, low, high }| {
        format!("; {}x on average ({}–{})", ratio_figure(ratio), ratio_figure(low), ratio_figure(high))
    })
}

/// `1.61x (1.48–1.75)`; of an interval with one end, that.
fn factor(ratio: &Average) -> String {
    let ends = match (ratio.low > 0.0, ratio.high.is_finite()) {
        (true, true) => format!(" ({}–{})", ratio_figure(ratio.low), ratio_figure(ratio.high)),
        (true, false) => format!(" (≥ {})", ratio_figure(ratio.low)),
        (false, true) => format!(" (≤ {})", ratio_figure(ratio.high)),
        (false, false) => String::new(),
    };
    format!("{}x{ends}", ratio_figure(ratio.ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::overall::{TestRatio, overall};

    fn said(ratios: &[(f64, bool)]) -> (String, String) {
        let test = |&(ratio, is_clear): &(f64, bool)| TestRatio {
            ratio,
            interval: (ratio * 0.9, ratio * 1.1),
            is_clear,
        };
        let all: Vec<TestRatio> = ratios.iter().map(test).collect();
        let found = overall(&all);
        let largest = found.biggest.map_or_else(String::new, |position| {
            let TestRatio { ratio, interval: (low, high), .. } = all[position];
            biggest(&found, "before", "after", "random write 4K QD32", Average { ratio, low, high })
        });
        (sentence(&found, "before", "after"), largest)
    }

    #[test]
    fn one_sentence_says_which_is_faster() {
        let (what, largest) = said(&[(1.5, true), (1.25, true), (1.25, false)]);
        assert_eq!(what, "after is faster: 2 of 3 tests, none slower; 1.33x on average (1.20–1.46).");
        assert_eq!(largest, "Biggest: random write 4K QD32 1.50x (1.35–1.65).");
        let (what, largest) = said(&[(0.5, true), (0.8, true)]);
        assert_eq!(what, "before is faster: 2 of 2 tests, none slower; 1.58x on average (1.44–1.76).");
        assert_eq!(largest, "Biggest: random write 4K QD32 2.00x (1.82–2.22).");
    }

    #[test]
    fn what_is_mixed_or_the_same_is_said_to_be() {
        let (what, largest) = said(&[(2.0, true), (0.25, true), (1.0, false)]);
        assert_eq!(what, "after is faster in 1 of 3 tests, slower in 1; 0.79x on average (0.71–0.87).");
        assert_eq!(largest, "Biggest: random write 4K QD32, before 4.00x (3.64–4.44).");
        let (what, _) = said(&[(0.9, true), (1.0, false), (1.0, false), (1.0, false), (1.0, false)]);
        assert!(
            what.starts_with("before is faster in 1 of 5 tests, slower in none; 1.021x on aver"),
            "{what}"
        );
        let (what, _) = said(&[(1.5, true), (1.0, false), (1.0, false), (1.0, false), (1.0, false)]);
        assert_eq!(what, "after is faster in 1 of 5 tests, slower in none; 1.08x on average (0.976–1.19).");
        let (what, largest) = said(&[(1.0, false); 41]);
        assert_eq!(what, "No clear difference in 41 tests: after 1.000x (0.90–1.10) on average.");
        assert_eq!(largest, "");
        let (what, _) = said(&[(1.2, false); 2]);
        assert_eq!(
            what,
            "after is faster on average, 1.20x (1.08–1.32); no clear difference in any one of 2 tests."
        );
        assert_eq!(said(&[]).0, "No test of before and after has enough repeats to compare.");
    }
}
