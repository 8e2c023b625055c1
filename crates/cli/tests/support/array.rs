//! What the tests of `rdsk stripe` share: a Record as it is read, and a real device over a disk that answers as an array. It
//! judges nothing.

use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::{SURE, StripeResult};
use rdsk_disk::{ArrayParams, Device, DeviceParams, RaidLevel, RamParams};
use rdsk_model::Record;
use rdsk_testkit::{FuseDisk, Need};
use serde_json::Value;

use super::MIB;

/// What a real device needs.
pub(crate) const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
/// One kibibyte.
pub(crate) const KIB: u64 = 1024;

/// A Record's first cell, read.
pub(crate) fn read(record: Value) -> (Record, StripeResult) {
    let record: Record = serde_json::from_value(record).expect("rdsk reads its own Records");
    let result = Analysis::of(&record).stripe(&record.cells[0]).cloned();
    (record, result.expect("its requests were made"))
}

/// The bytes of a figure.
pub(crate) fn bytes_of(figure: Option<(u64, f64)>) -> Option<u64> {
    figure.map(|(bytes, _)| bytes)
}

/// The codes of the findings.
pub(crate) fn codes(record: &Record) -> Vec<&str> {
    record.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// Whether a figure is said for sure and is another one.
pub(crate) fn is_surely_not(figure: Option<(u64, f64)>, bytes: u64) -> bool {
    figure.is_some_and(|(size, confidence)| size != bytes && confidence >= SURE)
}

/// RAID 5 of four members of 2 ms each, chunk 32 KiB.
fn slow_array() -> ArrayParams {
    let member = RamParams {
        capacity_bytes: 64 * MIB,
        read_command_ns: 2_000_000,
        write_command_ns: 2_000_000,
        read_bytes_per_s: 50e6,
        write_bytes_per_s: 50e6,
        servers: 1,
        write_buffer_bytes: 0,
    };
    ArrayParams {
        level: RaidLevel::Raid5,
        members: 4,
        chunk_bytes: 32 * KIB,
        command_ns: 10_000,
        interface_bytes_per_s: 2e9,
        write_back_bytes: 0,
        gather_ns: 0,
        member: Box::new(DeviceParams::Ram(member)),
    }
}

/// A disk that answers as that array would.
pub(crate) fn slow_disk() -> FuseDisk {
    let model = Device::new(&DeviceParams::Array(slow_array()), 1);
    FuseDisk::builder().device(model).mount().expect("requires() found FUSE")
}
