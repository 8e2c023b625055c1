//! A real device with three zones: a loop device over a disk that is programmed. It judges nothing.

use super::{MIB, rdsk, record_of};
use rdsk_analysis::Analysis;
use rdsk_analysis::zones::Zones;
use rdsk_model::{CellRecord, Record};
use rdsk_testkit::{Behaviour, Extra, FuseDisk, LoopDevice, Need};
use serde_json::Value;

/// What the device needs.
pub(crate) const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
/// Size of the reads.
pub(crate) const BLOCK: u64 = 64 << 10;
/// Places that are read.
pub(crate) const PLACES: u64 = 41;
/// Where the zones end.
pub(crate) const ENDS: [u64; 3] = [20 * MIB, 44 * MIB, 64 * MIB];
/// What a zone gives, in bytes per second: 64 KiB take 7 to 10 ms.
pub(crate) const RATES: [f64; 3] = [9.0e6, 7.5e6, 6.5e6];

/// A disk of three zones and the loop device over it. A block is one request.
pub(crate) fn three_zones(extra: Option<Extra>) -> (FuseDisk, LoopDevice) {
    let mut behaviour = Behaviour { extra, ..Behaviour::default() };
    let mut begin = 0;
    for (end, rate) in ENDS.into_iter().zip(RATES) {
        behaviour = behaviour.zone_rate(begin..end, rate);
        begin = end;
    }
    let disk =
        FuseDisk::builder().capacity(64 * MIB).device(behaviour).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    (disk, device)
}

/// A Record of `rdsk zones` on the device, and what it says.
pub(crate) fn real_zones(device: &LoopDevice, runs: u32) -> (Record, Zones) {
    let record = record_of(rdsk(&[
        &"zones",
        &device.path(),
        &"--bs",
        &"64k",
        &"--points",
        &PLACES.to_string(),
        &"--runs",
        &runs.to_string(),
    ]));
    let (record, mut all) = read(record);
    (record, all.remove(0))
}

/// A Record with what its cells say.
pub(crate) fn read(record: Value) -> (Record, Vec<Zones>) {
    let record: Record = serde_json::from_value(record).expect("rdsk reads its own Records");
    let analysis = Analysis::of(&record);
    let zones = |cell: &CellRecord| analysis.zones(cell).cloned().expect("every position was visited");
    let of_sizes = record.cells.iter().map(zones).collect();
    (record, of_sizes)
}
