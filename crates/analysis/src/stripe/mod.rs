//! The chunk and the full stripe of an array, by two methods. From latency: [`sweep()`] lists the requests, [`infer`] fits
//! layouts to their latencies. From the members' own counters: [`AdaptiveProbes`] chooses one request after the other,
//! [`infer_from_members`] finds the layouts that explain which members each one reached. [`StripeResult`] puts both beside the
//! kernel's hints ([`compare_with_sysfs`]). No I/O is issued here, and what the evidence does not show stays open.

mod adaptive_probes;
mod answer;
mod boundary_profile;
mod candidates;
mod conclude;
mod declared;
mod inference;
mod layouts;
mod matching;
mod member_layout;
mod members;
mod result;
mod shape;
mod stacked;
mod sweep;
mod sysfs_hints;
mod unit_members;

pub use adaptive_probes::{AdaptiveProbes, MAX_ADAPTIVE_PROBES};
pub use answer::{Advice, Answer, BoundaryStep, Figure, SURE, Sample, SizePoint, exact};
pub use inference::infer;
pub use layouts::{Level, Rotation};
pub use member_layout::{Declared, MemberLayout};
pub use members::{AdaptiveRun, MemberEvidence, infer_from_members, unrest};
pub use result::StripeResult;
pub(crate) use result::stripe;
pub use sweep::{Probe, SITE_BYTES, SweepOptions, sweep};
pub use sysfs_hints::{Agreement, compare_with_sysfs};
