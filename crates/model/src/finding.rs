//! What a rule says about a Record: the explanation of evidence, how far to trust it and how much it matters. It is data;
//! `rdsk-finding` fills it and a page draws it.

use crate::cell::CellRecord;
use crate::plan::Experiment;
use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// Whether a finding was measured or inferred.
    Confidence {
        /// The counters show it.
        Measured = "measured",
        /// It follows from figures that fit no other cause we know.
        Inferred = "inferred",
    }
);
words!(
    /// What a finding does to the figures of its cells, the gravest first.
    Severity {
        /// The figure is not that of the device.
        Invalid = "invalid",
        /// The figure is not one steady figure, or not a sure one.
        Uncertain = "uncertain",
        /// It says what makes the figure what it is.
        Cause = "cause",
        /// It says what a way of writing costs.
        Cost = "cost",
        /// It explains how storage works and warns of nothing: a title is enough.
        Remark = "remark",
    }
);

words!(
    /// What a reader who decides by the figures would get wrong without a finding, the worst first.
    Stake {
        /// A figure would be quoted that is not the device's, or not its steady one.
        Figure = "figure",
        /// Data would be taken for safe that a power failure may lose.
        Data = "data",
        /// Time would be lost, or precision: the factor says how much.
        Cost = "cost",
    }
);

impl Severity {
    /// What Records count as that do not say: drawn in full, and no warning.
    fn unknown() -> Self {
        Self::Cause
    }
}

/// What a finding is worth to a decision: pages rank findings by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// What is at stake.
    pub stake: Stake,
    /// How far a figure or a time is off, as a factor of at least 1; `None` where the evidence gives none.
    pub factor: Option<f64>,
    /// Lower end of the 95 % interval of the factor; `None` without an interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What is the case, as one clause with its figure: `misaligned writes take up to 32.3 × as long`.
    pub text: String,
}

/// Evidence explained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable code, also the name of its page in docs/findings/.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = crate::CODE_PATTERN)))]
    pub code: String,
    /// How much it matters.
    #[serde(default = "Severity::unknown")]
    pub severity: Severity,
    /// One line.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub title: String,
    /// The explanation in plain words.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub text: String,
    /// The counters that it rests on, each a `name = value` in words.
    pub evidence: Vec<String>,
    /// Measured or inferred.
    pub confidence: Confidence,
    /// What to do about it, where something can be done.
    pub advice: Option<String>,
    /// Ids of the cells.
    pub cells: Vec<String>,
    /// The experiment whose page shows it beside the table; `None` where it stands among the findings only.
    #[serde(default)]
    pub experiment: Option<Experiment>,
    /// Whether it says all that the verdicts of its cells say, so that no page has to repeat them.
    #[serde(default)]
    pub covers_verdicts: bool,
    /// What it is worth to a decision; `None` where the title says all, and in older Records.
    #[serde(default)]
    pub effect: Option<Effect>,
}

impl Finding {
    /// What is at stake: as its effect says, otherwise by its severity.
    pub fn stake(&self) -> Stake {
        match (&self.effect, self.severity) {
            (Some(effect), _) => effect.stake,
            (None, Severity::Invalid | Severity::Uncertain) => Stake::Figure,
            (None, Severity::Cause | Severity::Cost | Severity::Remark) => Stake::Cost,
        }
    }
}

/// A finding is put together step by step: it is measured and has no advice unless one of these says otherwise.
impl Finding {
    /// The counters that it rests on.
    pub fn evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence = lines.into_iter().collect();
        self
    }

    /// What to do about it.
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// It follows from figures that fit no other cause.
    pub fn inferred(self) -> Self {
        self.confidence(Confidence::Inferred)
    }

    /// Measured or inferred.
    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    /// The cells it speaks of, each once.
    pub fn cells<'a>(mut self, cells: impl IntoIterator<Item = &'a CellRecord>) -> Self {
        for cell in cells {
            if !self.cells.contains(&cell.id) {
                self.cells.push(cell.id.clone());
            }
        }
        self
    }

    /// The page that shows it, where that depends on the cells.
    pub fn shown_on(mut self, experiment: Experiment) -> Self {
        self.experiment = Some(experiment);
        self
    }

    /// What it is worth to a decision, by a clause that has the figure.
    pub fn effect(mut self, stake: Stake, factor: Option<f64>, text: impl Into<String>) -> Self {
        let factor = factor.filter(|factor| factor.is_finite()).map(|factor| factor.max(1.0));
        self.effect = Some(Effect { stake, factor, low: None, high: None, text: text.into() });
        self
    }

    /// The 95 % interval of the factor of its effect.
    pub fn within(mut self, low: f64, high: f64) -> Self {
        if let Some(effect) = &mut self.effect {
            (effect.low, effect.high) = (Some(low), Some(high));
        }
        self
    }

    /// It says all that the verdicts of its cells say.
    pub fn covering_verdicts(mut self) -> Self {
        self.covers_verdicts = true;
        self
    }
}
