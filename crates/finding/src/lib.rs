//! From numbers to explanation: the findings of a whole Record ([`findings`]), one rule per file, each a pure function of
//! what `rdsk-analysis` derives from it. It does no I/O, reads no clock, draws nothing, and claims nothing that no counter
//! shows.

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod rules;

pub use rules::{Needs, RULES, Rule, findings};
