//! The samples of a sweep, and what they or the kernel's words say of the geometry: plain data.

use rdsk_units::Bytes;

/// Confidence from which on a size is said without a "perhaps".
pub const SURE: f64 = 0.9;

/// A size to its last byte: what is to be written in multiples must not be rounded.
pub fn exact(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// One request of a sweep and what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// From submission to completion, in ns.
    pub latency_ns: u64,
}

/// A size that was inferred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The size.
    pub bytes: u64,
    /// How likely it is, among all layouts that were considered, 0 … 1; exact evidence gives 1.
    pub confidence: f64,
}

/// What the small requests around the odd multiples of one power of two took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundaryStep {
    /// The power of two.
    pub boundary_bytes: u64,
    /// Boundaries visited.
    pub count: usize,
    /// Median of the requests that began at the boundary, after their neighbour before it, in ns.
    pub after_median_ns: f64,
    /// From the first to the last decile of them.
    pub after_spread_ns: f64,
    /// Median of the requests across the boundary, in ns.
    pub across_median_ns: f64,
}

/// What requests of about one size took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizePoint {
    /// The smallest of the sizes.
    pub bytes: u64,
    /// Requests of full stripes only; without a stripe, those at a multiple of their size.
    pub aligned_count: usize,
    /// Their median in ns.
    pub aligned_median_ns: Option<f64>,
    /// The other requests.
    pub other_count: usize,
    /// Their median in ns.
    pub other_median_ns: Option<f64>,
}

/// What the latencies, or the kernel's words, say of the geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Bytes that lie on one member before the next begins; `None` when no stripe is seen.
    pub chunk: Option<Figure>,
    /// Data of one full stripe: chunk times data disks. `None` when it is not seen or cannot be known.
    pub stripe: Option<Figure>,
    /// Whether writing a part of a stripe costs reads; `None` when it cannot be known.
    pub parity: Option<bool>,
    /// Where the first full stripe begins; `None` when it makes no difference or is not seen.
    pub start_offset_bytes: Option<u64>,
    /// How likely it is that there is no stripe to be seen at all, 0 … 1.
    pub none_confidence: f64,
    /// The reasons, one sentence each.
    pub evidence: Vec<String>,
    /// Cost over offset: by the largest power of two that the boundary is a multiple of.
    pub boundary_profile: Vec<BoundaryStep>,
    /// Cost over size.
    pub sizes: Vec<SizePoint>,
    /// What to write, and where, as a sentence.
    pub advice: String,
}
