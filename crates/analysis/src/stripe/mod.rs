//! The geometry of an array from the latencies of chosen requests: which requests to make ([`sweep()`]), what they say
//! ([`infer`]), where to ask next while the members' own counters show what each request reached ([`AdaptiveProbes`]), what they
//! say ([`infer_from_members`]), and whether the kernel's hints agree ([`compare_with_sysfs`]). It issues no I/O, and what latency cannot tell it does not tell.

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
mod sweep;
mod sysfs_hints;
mod unit_members;

pub use adaptive_probes::{AdaptiveProbes, MAX_ADAPTIVE_PROBES};
pub use answer::{Advice, Answer, BoundaryStep, Figure, SURE, Sample, SizePoint, exact};
pub use inference::infer;
pub use layouts::{Level, Rotation};
pub use member_layout::{Declared, MemberLayout};
pub use members::{AdaptiveRun, MemberEvidence, infer_from_members};
pub use result::{StripeResult, stripe};
pub use sweep::{Probe, SITE_BYTES, SweepOptions, sweep};
pub use sysfs_hints::{Agreement, compare_with_sysfs};
