//! The requests whose cost is measured where the kernel's words give the geometry: whole stripes, parts of them and what crosses their
//! edges; and what each cost, with what the disks below the array did for it. It issues nothing.

use super::described::{Described, members_of};
use super::sweep::MIN_UNIT_BYTES;
use crate::metrics::{first_device, is_of_memory, ran};
use rdsk_model::{CellRecord, DeviceEvidence, Layer, Op, Record, Target, Workload};
use rdsk_units::Bytes;

/// The largest request: that of the sweep. Full stripes beyond it are left out.
pub(super) const MAX_REQUEST_BYTES: u64 = 32 << 20;

/// What a request is to the stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// All chunks of one stripe.
    FullStripe,
    /// As large as a full stripe, and not where one begins.
    Shifted,
    /// As large as a full stripe, at chunks of a target whose first stripe is not known.
    StripeSized,
    /// One chunk.
    Chunk,
    /// The smallest request, within a chunk.
    Small,
}

impl RequestKind {
    /// The end of the ids of its cells.
    pub fn word(self) -> &'static str {
        match self {
            Self::FullStripe => "full-stripe",
            Self::Shifted => "shifted",
            Self::StripeSized => "stripe-sized",
            Self::Chunk => "chunk",
            Self::Small => "small",
        }
    }
}

/// Requests of one kind: at `shift_bytes` behind multiples of `align_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeRequest {
    /// What they are to the stripes.
    pub kind: RequestKind,
    /// Size.
    pub bytes: u64,
    /// Distance of their offsets.
    pub align_bytes: u64,
    /// The first of these offsets.
    pub shift_bytes: u64,
}

impl StripeRequest {
    fn is_of(&self, workload: &Workload) -> bool {
        let asked = (workload.block_bytes, workload.align_bytes, workload.shift_bytes);
        asked == (self.bytes, self.align_bytes, self.shift_bytes)
    }
}

/// The requests that the words about a target call for; the smallest alone where it has no stripes.
pub fn requests(described: &Described, target: &Target) -> Vec<StripeRequest> {
    let grain_bytes = target.direct_align_bytes.unwrap_or(512).max(512);
    let small_bytes = grain_bytes.max(MIN_UNIT_BYTES).next_power_of_two();
    let small = StripeRequest {
        kind: RequestKind::Small,
        bytes: small_bytes,
        align_bytes: small_bytes,
        shift_bytes: 0,
    };
    let Some(chunk_bytes) = described.chunk_bytes else { return vec![small] };
    let start = described.start_offset_bytes;
    // Direct requests cannot begin anywhere: a chunk that does not begin at a multiple of their grain is not hit whole.
    let begins = start.is_none_or(|start| start.is_multiple_of(grain_bytes))
        && chunk_bytes.is_multiple_of(grain_bytes);
    let mut requests = Vec::new();
    if let Some(stripe_bytes) = described.stripe_bytes.filter(|&bytes| bytes <= MAX_REQUEST_BYTES && begins) {
        let like = |kind, align_bytes, shift_bytes: u64| StripeRequest {
            kind,
            bytes: stripe_bytes,
            align_bytes,
            shift_bytes: shift_bytes % align_bytes,
        };
        match start {
            Some(start) => {
                let half_bytes = chunk_bytes / 2 / grain_bytes * grain_bytes;
                let moved_bytes = if half_bytes > 0 { half_bytes } else { chunk_bytes };
                requests.push(like(RequestKind::FullStripe, stripe_bytes, start));
                requests.push(like(RequestKind::Shifted, stripe_bytes, start + moved_bytes));
            }
            None => requests.push(like(RequestKind::StripeSized, chunk_bytes, 0)),
        }
    }
    if begins && chunk_bytes <= MAX_REQUEST_BYTES {
        let (kind, bytes) = (RequestKind::Chunk, chunk_bytes);
        let shift_bytes = start.unwrap_or(0) % chunk_bytes;
        requests.push(StripeRequest { kind, bytes, align_bytes: chunk_bytes, shift_bytes });
    }
    if small_bytes < chunk_bytes || requests.is_empty() {
        requests.push(small);
    }
    requests
}

/// What requests of one kind cost.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestCost {
    /// Which.
    pub request: StripeRequest,
    /// The direction.
    pub op: Op,
    /// How many were made.
    pub count: u64,
    /// The median of their latencies in ns.
    pub median_ns: Option<u64>,
    /// What the disks below the array did for each; `None` if one of them counted nothing.
    pub disks: Option<DiskBytes>,
}

/// Bytes that the disks below an array moved together for one request, until everything was stable: superblocks and bitmaps included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskBytes {
    /// Read.
    pub read_bytes: f64,
    /// Written.
    pub write_bytes: f64,
}

impl RequestCost {
    /// What these requests are, in words.
    pub fn name(&self) -> String {
        let size = Bytes(self.request.bytes);
        match self.request.kind {
            RequestKind::FullStripe => "full stripes".into(),
            RequestKind::Shifted => "as large, across stripes".into(),
            RequestKind::StripeSized => "as large as a stripe".into(),
            RequestKind::Chunk => "single chunks".into(),
            RequestKind::Small => format!("{size} within a chunk"),
        }
    }
}

/// What each kind of request cost, by the cells of one target and direction.
pub(super) fn costs(
    record: &Record,
    target: &Target,
    described: &Described,
    cells: &[&CellRecord],
) -> Vec<RequestCost> {
    let of_request = |request: StripeRequest| {
        let cell =
            cells.iter().find(|cell| request.is_of(&cell.workload)).filter(|cell| !is_of_memory(cell))?;
        let count = cell.result.asked_bytes? / request.bytes.max(1);
        let array = described.levels.first()?.devices.first()?;
        Some(RequestCost {
            request,
            op: cell.workload.op,
            count,
            median_ns: cell.result.latency_ns.as_ref().and_then(|latency| latency.p50),
            disks: disk_bytes(record, cell, array).map(|(read_bytes, write_bytes)| DiskBytes {
                read_bytes: read_bytes as f64 / count.max(1) as f64,
                write_bytes: write_bytes as f64 / count.max(1) as f64,
            }),
        })
    };
    requests(described, target).into_iter().filter_map(of_request).collect()
}

/// The cells of the words' requests that ran, of the same target and direction as a cell.
pub(super) fn beside<'r>(record: &'r Record, cell: &CellRecord) -> Vec<&'r CellRecord> {
    let is_beside = |other: &&CellRecord| {
        let (a, b) = (&other.workload, &cell.workload);
        other.experiment == cell.experiment && (a.op, &a.targets) == (b.op, &b.targets) && ran(other)
    };
    record.cells.iter().filter(is_beside).collect()
}

/// Bytes that the lowest counted devices below an array read and wrote during a cell.
fn disk_bytes(record: &Record, cell: &CellRecord, array: &str) -> Option<(u64, u64)> {
    let mut disks: Vec<&DeviceEvidence> = Vec::new();
    lowest(members_of(first_device(record, cell)?, array)?, cell, &mut disks);
    let sum =
        |bytes: fn(&DeviceEvidence) -> Option<u64>| disks.iter().map(|disk| bytes(disk)).sum::<Option<u64>>();
    let (read, written) = (sum(|disk| disk.read_bytes)?, sum(|disk| disk.write_bytes)?);
    (!disks.is_empty()).then_some((read, written))
}

/// Adds the lowest of these layers that were counted, each once; whether there were any.
fn lowest<'c>(layers: &[Layer], cell: &'c CellRecord, disks: &mut Vec<&'c DeviceEvidence>) -> bool {
    let mut is_counted = false;
    for layer in layers {
        let is_counted_below = lowest(&layer.below, cell, disks);
        let own = cell.evidence.device.iter().find(|device| device.name == layer.name);
        is_counted |= is_counted_below || own.is_some();
        let is_new = |device: &&DeviceEvidence| !disks.iter().any(|other| other.name == device.name);
        if let Some(device) = own.filter(|_| !is_counted_below).filter(is_new) {
            disks.push(device);
        }
    }
    is_counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    const KIB: u64 = 1024;

    fn described(chunk: Option<u64>, stripe: Option<u64>, start: Option<u64>) -> Described {
        Described {
            levels: Vec::new(),
            chunk_bytes: chunk,
            stripe_bytes: stripe,
            start_offset_bytes: start,
            has_parity: false,
            doubts: Vec::new(),
        }
    }

    fn asked(described: &Described) -> Vec<(&'static str, u64, u64, u64)> {
        let target = Target { direct_align_bytes: Some(512), ..fixtures::disk() };
        let requests = requests(described, &target).into_iter();
        requests
            .map(|request| (request.kind.word(), request.bytes, request.align_bytes, request.shift_bytes))
            .collect()
    }

    #[test]
    fn requests_lie_where_the_words_put_the_stripes() {
        let (chunk, stripe) = (64 * KIB, 192 * KIB);
        assert_eq!(
            asked(&described(Some(chunk), Some(stripe), Some(128 * KIB))),
            [
                ("full-stripe", stripe, stripe, 128 * KIB),
                ("shifted", stripe, stripe, 160 * KIB),
                ("chunk", chunk, chunk, 0),
                ("small", 4096, 4096, 0)
            ]
        );
        // A file: its stripes are somewhere.
        assert_eq!(
            asked(&described(Some(chunk), Some(stripe), None)),
            [("stripe-sized", stripe, chunk, 0), ("chunk", chunk, chunk, 0), ("small", 4096, 4096, 0)]
        );
        // A partition at sector 63 of an array: its chunks begin at odd sectors.
        assert_eq!(
            asked(&described(Some(chunk), Some(stripe), Some(stripe - 63 * 512)))[2],
            ("chunk", chunk, chunk, 65 * 512)
        );
    }

    #[test]
    fn what_is_too_large_or_the_same_is_left_out() {
        assert_eq!(asked(&described(None, None, None)), [("small", 4096, 4096, 0)]);
        assert_eq!(
            asked(&described(Some(4 << 20), Some(96 << 20), Some(0))),
            [("chunk", 4 << 20, 4 << 20, 0), ("small", 4096, 4096, 0)]
        );
        let smallest = asked(&described(Some(4096), Some(8192), Some(0)));
        assert_eq!(
            smallest,
            [("full-stripe", 8192, 8192, 0), ("shifted", 8192, 8192, 2048), ("chunk", 4096, 4096, 0)]
        );
        // Blocks of 4096 bytes cannot begin between chunks that begin at odd sectors.
        let target = Target { direct_align_bytes: Some(4096), ..fixtures::disk() };
        let odd = requests(&described(Some(64 * KIB), Some(192 * KIB), Some(512)), &target);
        assert_eq!(odd.iter().map(|one| one.kind).collect::<Vec<_>>(), [RequestKind::Small]);
    }
}
