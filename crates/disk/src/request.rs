//! A request to a device and its completion: plain data, shared by every model. It decides nothing.

/// Bytes of a sector.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Writes everything accepted so far to stable media; offset and size are ignored.
    Flush,
}

/// Whether a write may rest in a volatile cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Force {
    /// It may.
    #[default]
    Cached,
    /// It completes only on stable media (FUA).
    Media,
}

/// One request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether a write must reach the media.
    pub force: Force,
}

impl Request {
    /// A read.
    pub fn read(offset_bytes: u64, bytes: u64) -> Request {
        Request { op: Op::Read, offset_bytes, bytes, force: Force::Cached }
    }

    /// A write that may rest in a volatile cache.
    pub fn write(offset_bytes: u64, bytes: u64) -> Request {
        Request { op: Op::Write, offset_bytes, bytes, force: Force::Cached }
    }

    /// A flush of the whole device.
    pub fn flush() -> Request {
        Request { op: Op::Flush, offset_bytes: 0, bytes: 0, force: Force::Cached }
    }

    /// The byte after the last.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.bytes)
    }
}

/// Why a device failed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what the messages above them say")]
pub enum Fault {
    /// The media could not be read or written (EIO): the first byte of the request that is bad.
    #[error("input/output error at byte {offset_bytes}")]
    Media { offset_bytes: u64 },
    /// The request reaches past the end of the device: its end, and that of the device.
    #[error("byte {end_bytes} is past the end of the device ({capacity_bytes} bytes)")]
    PastEnd { end_bytes: u64, capacity_bytes: u64 },
}

/// When and how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the device started it, in ns; never before its arrival.
    pub start_ns: u64,
    /// When it completed, in ns; never before `start_ns`.
    pub end_ns: u64,
    /// Success, or why it failed.
    pub outcome: Result<(), Fault>,
}
