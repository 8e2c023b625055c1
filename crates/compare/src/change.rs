//! How one cell changed from one run to another: the ratio of each figure, how sure it is, and the answer in a word. It words
//! no page.

use crate::ALPHA;
use crate::figure::{MIN_ROUNDS, Metric};
use rdsk_analysis::words;
use rdsk_model::{CellRecord, Untold, VerdictCode, Workload};
use rdsk_stats::MIN_PAIRS;
use rdsk_units::Bytes;

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The other run was faster than the baseline, surely.
    Faster,
    /// It was slower.
    Slower,
    /// What was seen may be chance.
    NoDifferenceSeen,
    /// Nothing can be said.
    TooFewData,
}

impl Answer {
    /// The words on pages and in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceSeen => "no difference seen",
            Self::TooFewData => "too few data",
        }
    }
}

/// How sure a ratio is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certainty {
    /// The 95 % interval of this ratio alone; an end that is not known is 0 or infinite.
    pub interval: (f64, f64),
    /// The interval that holds for all ratios of the comparison together at 95 % (Bonferroni).
    pub corrected: (f64, f64),
    /// Chance of a ratio as far from 1 if nothing has changed.
    pub p_value: f64,
    /// The same, corrected for all ratios of the comparison (Holm).
    pub p_adjusted: f64,
}

/// Why nothing can be said of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// One of the runs has so few rounds.
    Rounds(usize),
    /// One of the runs does not say how sure its figure is.
    NoInterval,
    /// So few pairs of runs were completed.
    Pairs(usize),
    /// Nothing was measured in one of the runs: a hole, or a cell that was cut off.
    Nothing,
}

impl Unknown {
    /// The end of a sentence.
    pub fn words(self) -> String {
        match self {
            Self::Rounds(count) => {
                format!(
                    "{} in one of the runs, {MIN_ROUNDS} are needed",
                    words::plural(count as u64, "repeat")
                )
            }
            Self::NoInterval => "one of the runs does not say how sure it is".into(),
            Self::Pairs(count) => {
                format!("{} of runs, {MIN_PAIRS} are needed", words::plural(count as u64, "pair"))
            }
            Self::Nothing => "one of the runs has no figure of anything".into(),
        }
    }
}

/// One figure in both runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Which figure.
    pub metric: Metric,
    /// In the baseline: bytes per second, or nanoseconds; over several runs their geometric mean.
    pub base: f64,
    /// In the other run.
    pub other: f64,
    /// Of several runs of each: in how many pairs both runs have the figure, and how many pairs there are.
    pub pairs: Option<(usize, usize)>,
    /// How sure their ratio is, or why nothing is known of that.
    pub certainty: Result<Certainty, Unknown>,
}

impl Change {
    /// The other run's figure over the baseline's.
    pub fn ratio(&self) -> f64 {
        self.other / self.base
    }

    /// What it says.
    pub fn answer(&self) -> Answer {
        match self.certainty {
            Err(_) => Answer::TooFewData,
            Ok(certainty) if certainty.p_adjusted >= ALPHA => Answer::NoDifferenceSeen,
            Ok(_) if (self.ratio() > 1.0) == self.metric.grows_with_speed() => Answer::Faster,
            Ok(_) => Answer::Slower,
        }
    }

    /// How far the figure may be off in either direction unnoticed, as a share: half of the corrected interval.
    /// `None` where an end is not known.
    pub fn blind_within(&self) -> Option<f64> {
        let (low, high) = self.certainty.ok()?.corrected;
        (low > 0.0 && high.is_finite()).then(|| (high / low).sqrt() - 1.0)
    }
}

/// One cell in both runs.
#[derive(Clone, Debug)]
pub struct CellChange<'a> {
    /// The cell of the baseline.
    pub base: &'a CellRecord,
    /// The cell of the other run.
    pub other: &'a CellRecord,
    /// Its figures that both runs have, in the order of [`Metric::ALL`].
    pub changes: Vec<Change>,
}

impl CellChange<'_> {
    /// The change of one figure.
    pub fn change(&self, metric: Metric) -> Option<&Change> {
        self.changes.iter().find(|change| change.metric == metric)
    }

    /// What has to be known beside the figures: what is asked otherwise on purpose, a verdict that is not `device`, verdicts that differ, another engine.
    pub fn remarks(&self) -> Vec<String> {
        let code = |cell: &CellRecord| cell.verdict.as_ref().map(|verdict| verdict.code);
        let mut remarks = asked(&self.base.workload, &self.other.workload);
        match (code(self.base), code(self.other)) {
            (Some(VerdictCode::Device), Some(VerdictCode::Device)) => {}
            (base, other) if base == other => remarks.extend(base.map(|code| format!("{code} in both"))),
            (base, other) => {
                let word = |code: Option<VerdictCode>| code.map_or("no judgement", VerdictCode::as_str);
                remarks.push(format!("{} → {}", word(base), word(other)));
            }
        }
        if let (Some(base), Some(other)) = (self.base.result.engine, self.other.result.engine)
            && base != other
        {
            remarks.push(format!("issued by {base} → {other}"));
        }
        remarks
    }
}

/// What two workloads ask otherwise, of what makes cells alike.
fn asked(base: &Workload, other: &Workload) -> Vec<String> {
    let (a, b) = (base, other);
    let bytes = |bytes: u64| Bytes(bytes).approx();
    let word = |workload: &Workload, word: Untold| workload.word(word).unwrap_or("unknown").to_owned();
    let count = |count: u32| if count > 0 { count.to_string() } else { "unknown".to_owned() };
    let words = [
        ("", a.op.to_string(), b.op.to_string()),
        ("", word(a, Untold::Pattern), word(b, Untold::Pattern)),
        ("", word(a, Untold::Path), word(b, Untold::Path)),
        ("sync ", word(a, Untold::Sync), word(b, Untold::Sync)),
        ("cache ", a.cache.to_string(), b.cache.to_string()),
        ("block ", bytes(a.block_bytes), bytes(b.block_bytes)),
        ("depth ", count(a.queue_depth), count(b.queue_depth)),
        ("streams ", count(a.streams), count(b.streams)),
        ("range ", a.range.to_string(), b.range.to_string()),
    ];
    let differing = words.into_iter().filter(|(_, before, after)| before != after);
    differing.map(|(what, before, after)| format!("{what}{before} → {after}")).collect()
}
