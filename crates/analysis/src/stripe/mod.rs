//! The chunk and the full stripe of an array. Where the kernel describes it, by its words ([`Described`]), beside what requests of the sizes
//! and at the places that follow from them cost ([`requests`]). Where there are no words, from latency alone: [`sweep()`] lists the requests,
//! [`infer`] fits layouts to their latencies. [`StripeResult`] is what either shows, beside the kernel's hints ([`compare_with_sysfs`]). No
//! I/O is issued here, and what the evidence does not show stays open.

mod boundary_profile;
mod conclude;
mod described;
mod geometry;
mod inference;
mod layouts;
mod level;
mod requests;
mod result;
mod sweep;

pub use described::{ArrayLayout, Described, unrest};
pub use geometry::{BoundaryStep, Figure, Geometry, SURE, Sample, SizePoint, exact};
pub use inference::infer;
pub use level::Level;
pub use requests::{DiskBytes, RequestCost, RequestKind, StripeRequest, requests};
pub(crate) use result::stripe;
pub use result::{Agreement, StripeResult, compare_with_sysfs};
pub use sweep::{Probe, SITE_BYTES, SweepOptions, sweep};
