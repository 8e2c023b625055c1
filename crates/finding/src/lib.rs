//! From evidence to explanation: the verdict of one cell ([`verdict()`]) and the findings of a whole Record
//! ([`findings`]), each a pure function of what was counted. It does no I/O, reads no clock, draws nothing, and claims
//! nothing that no counter shows.

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod reading;
mod rules;
pub mod scale;
pub mod stripe;
mod verdict;
mod words;
pub mod zones;

pub use rules::{REMARKS, RULES, Rule, findings};
pub use verdict::{verdict, verdict_with_cpus};
pub use words::plus_minus;
