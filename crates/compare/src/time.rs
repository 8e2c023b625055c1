//! When runs began, from the text in their Records. It reads no clock.

use jiff::Timestamp;
use rdsk_model::Record;

/// When a run began; `None` if the Record's text is no time.
pub(crate) fn began(record: &Record) -> Option<Timestamp> {
    record.started_at.parse().ok()
}

/// Seconds between the beginnings of two runs; `None` if one of them is not known.
pub(crate) fn between_s(one: &Record, other: &Record) -> Option<f64> {
    let (one, other) = (began(one)?, began(other)?);
    Some(one.duration_until(other).as_secs_f64().abs())
}

/// How long the run lasted, in seconds of the target's own time.
pub(crate) fn lasted_s(record: &Record) -> f64 {
    record.simulated_ns.unwrap_or(record.elapsed_ns) as f64 / 1e9
}
