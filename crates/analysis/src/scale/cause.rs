//! What limits a rate, and what stands behind it: data and their words. It decides nothing.

use rdsk_model::Confidence;

/// What is said of busy devices that may have had room. Since Linux 5.0 `io_ticks` holds a whole jiffy for each in which an I/O began.
const NOT_PROVEN: &str =
    " (inferred: a device that serves several requests at once counts as busy with one of them, too)";

/// What limits, with the counters that show it.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A control group holds every target at its rate.
    Throttled(Cause),
    /// Every target's device is busy nearly all the time.
    DeviceBusy(Cause),
    /// More targets give no more together, although each of them is busy: they share a controller, a bus or a link.
    SharedPath(Cause),
    /// Some targets are busy or held, while the others have time left.
    SomeTargets(Cause),
    /// The devices' queues hold no more.
    QueueFull(Cause),
    /// The processors.
    Cpu(Cause),
    /// Generating the data to write.
    Source(Cause),
    /// No counter shows it.
    Unknown,
}

/// What stands behind a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Indices of the targets that are the limit; empty if none in particular is.
    pub targets: Vec<u32>,
    /// One clause: `/dev/sdb was busy 99.1 % of the time`.
    pub text: String,
    /// The counters, each `cell: name = value`.
    pub evidence: Vec<String>,
    /// Whether the counters show it by themselves.
    pub confidence: Confidence,
}

impl Cause {
    /// A clause about busy devices; the counters prove it of a disk with one arm, and of a model's.
    pub(super) fn of_busy(
        targets: Vec<u32>,
        text: String,
        evidence: Vec<String>,
        confidence: Confidence,
    ) -> Self {
        let text = if confidence == Confidence::Measured { text } else { text + NOT_PROVEN };
        Self { targets, text, evidence, confidence }
    }

    /// The same, proven by something else.
    pub(super) fn proven(self) -> Self {
        let text = self.text.strip_suffix(NOT_PROVEN).map_or_else(|| self.text.clone(), str::to_owned);
        Self { text, confidence: Confidence::Measured, ..self }
    }
}

impl Limit {
    /// One or two words for a table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Throttled(_) => "throttled",
            Self::DeviceBusy(_) => "device busy",
            Self::SharedPath(_) => "shared path",
            Self::SomeTargets(_) => "one target",
            Self::QueueFull(_) => "queue full",
            Self::Cpu(_) => "processor",
            Self::Source(_) => "data generation",
            Self::Unknown => "not known",
        }
    }

    /// What stands behind it; `None` if it is not known.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Throttled(cause)
            | Self::DeviceBusy(cause)
            | Self::SharedPath(cause)
            | Self::SomeTargets(cause)
            | Self::QueueFull(cause)
            | Self::Cpu(cause)
            | Self::Source(cause) => Some(cause),
            Self::Unknown => None,
        }
    }
}
