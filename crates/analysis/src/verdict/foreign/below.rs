//! Requests of others on the disk below partitions, or on the members of an array, that the cell did not issue through them. What
//! all targets of the cell read and wrote through their devices is the cell's own.

use super::{Moved, is_much};
use crate::metrics;
use crate::verdict::facts::{Facts, are_foreign};
use crate::words;
use rdsk_model::{Device, DeviceEvidence, Layer, Op};
use rdsk_units::{grouped, printable};

/// Mapped devices over one other that read from it what they are asked for, and nothing else.
const READS_ONCE: [&str; 6] =
    ["dm LVM", "dm CRYPT-LUKS1", "dm CRYPT-LUKS2", "dm CRYPT-PLAIN", "dm CRYPT-TCRYPT", "dm CRYPT-BITLK"];

/// Others on the disk of a partition, or on the members of an array that was read.
pub(super) fn judge(facts: &Facts<'_>) -> Option<String> {
    let top = |device: &Device| {
        let (name, kind) = (device.name.clone(), device.kind.clone().unwrap_or_default());
        Layer { name, kind, below: device.below.clone(), ..Layer::default() }
    };
    let tops: Vec<Layer> = facts.devices().map(top).collect();
    let mut layers = Vec::new();
    tops.iter().for_each(|top| add_layers(top, &mut layers));
    layers.iter().find_map(|upper| of_layer(facts, &tops, &layers, upper))
}

/// Adds a layer and those below it, each device once.
fn add_layers<'a>(layer: &'a Layer, layers: &mut Vec<&'a Layer>) {
    if !layers.iter().any(|earlier| earlier.name == layer.name) {
        layers.push(layer);
    }
    layer.below.iter().for_each(|lower| add_layers(lower, layers));
}

/// Whether each byte that is read from a device is read once from those below it, and nothing else is. Members write copies,
/// parity and metadata besides; missing members, hashes, snapshots and caches are more reads than were asked for.
fn reads_once(upper: &Layer) -> bool {
    let is_plain_array =
        matches!(upper.kind.as_str(), "md linear" | "md raid0" | "md raid1" | "md raid10" | "dm mpath");
    // What made a mapped device says that it reads no more than it was asked for: hash trees (verity), tags (integrity) and
    // larger blocks (ebs) do, so does VDO (`LVM-vpool`), and a device without a maker may be any of these.
    let is_mapped = READS_ONCE.contains(&upper.kind.as_str()) || is_mapped_partition(&upper.kind);
    is_plain_array || (is_mapped && upper.below.len() == 1)
}

/// `dm part1`, as kpartx and multipath-tools make.
fn is_mapped_partition(kind: &str) -> bool {
    let number = kind.strip_prefix("dm part");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_partition(layer: &Layer) -> bool {
    layer.kind == "partition"
}

/// The devices of the cell's targets that lie on what is below `upper`, itself among them; `None` if what they move there cannot
/// be distinguished from what others do: one takes more from it than it was asked for, has other devices below it besides, or the cell
/// uses a device below by itself.
fn sharers<'a>(op: Op, tops: &[Layer], layers: &[&'a Layer], upper: &Layer) -> Option<Vec<&'a Layer>> {
    let is_below = |layer: &Layer, name: &str| layer.below.iter().any(|lower| lower.name == name);
    let shares = |layer: &&&Layer| upper.below.iter().any(|lower| is_below(layer, &lower.name));
    let sharers: Vec<&Layer> = layers.iter().filter(shares).copied().collect();
    let is_comparable = |layer: &&Layer| {
        let has_same = layer.below.len() == upper.below.len()
            && layer.below.iter().all(|lower| is_below(upper, &lower.name));
        has_same && (is_partition(layer) || (op == Op::Read && reads_once(layer)))
    };
    let is_used_itself = tops.iter().any(|top| is_below(upper, &top.name));
    (!sharers.is_empty() && !is_used_itself && sharers.iter().all(is_comparable)).then_some(sharers)
}

fn of_layer(facts: &Facts<'_>, tops: &[Layer], layers: &[&Layer], upper: &Layer) -> Option<String> {
    let workload = &facts.cell.workload;
    let find = |layer: &Layer| {
        let mut devices = facts.cell.evidence.device.iter();
        devices.find(|device| workload.targets.contains(&device.target) && device.name == layer.name)
    };
    let uppers = sharers(workload.op, tops, layers, upper)?;
    let above: Vec<&DeviceEvidence> = uppers.iter().map(|layer| find(layer)).collect::<Option<_>>()?;
    let lower: Vec<&DeviceEvidence> = upper.below.iter().map(find).collect::<Option<_>>()?;
    let are_partitions = uppers.iter().all(|layer| is_partition(layer));
    let ops: &[Op] = if are_partitions { &[Op::Read, Op::Write] } else { &[Op::Read] };
    ops.iter().find_map(|&op| {
        let (sum, own) = (Moved::of_all(facts, &lower, op)?, Moved::of_all(facts, &above, op)?);
        let bytes = sum.bytes.saturating_sub(own.bytes);
        // A partition's requests are requests of its disk, one for one.
        let requests = if are_partitions {
            sum.requests.saturating_sub(own.requests) as f64
        } else {
            sum.of_others(own.bytes)
        };
        let is_foreign = is_much(facts, requests) || are_foreign(bytes, facts.bytes);
        is_foreign.then(|| {
            format!(
                "{}, below {}, did about {} {op} requests of {} for others besides the {} I/Os of this test",
                names(&lower),
                names(&above),
                grouped(metrics::whole(requests)),
                words::bytes(bytes),
                grouped(facts.ops)
            )
        })
    })
}

fn names(devices: &[&DeviceEvidence]) -> String {
    words::list(&devices.iter().map(|device| printable(&device.name)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::is_disturbed;
    use super::*;
    use crate::fixtures::{self, cell, with};
    use crate::verdict::verdict;
    use rdsk_model::{CellRecord, Device, IoPath, Target, VerdictCode};

    const SECOND: u64 = 1_000_000_000;

    /// A partition `sda1` of `sda`.
    fn partition() -> Target {
        let mut target = fixtures::disk();
        let disk = Layer { name: "sda".into(), kind: "disk".into(), ..Layer::default() };
        let own = Device {
            name: "sda1".into(),
            kind: Some("partition".into()),
            below: vec![disk],
            ..Device::default()
        };
        target.device = Some(own);
        target
    }

    #[test]
    fn others_on_another_partition_are_seen_on_the_disk() {
        let read = |requests: u64| {
            with(cell("p", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
                let mut disk = cell.evidence.device[0].clone();
                cell.evidence.device[0].name = "sda1".into();
                disk.reads = Some(10_000 + requests);
                disk.read_bytes = Some((10_000 + requests) * 4096);
                cell.evidence.device.push(disk);
            })
        };
        assert_eq!(is_disturbed(&read(0), partition()), None);
        let text = is_disturbed(&read(3000), partition()).unwrap();
        assert_eq!(
            text,
            "sda, below sda1, did about 3,000 read requests of 11.7 MiB for others besides the 10,000 I/Os of this test"
        );
        assert_eq!(is_disturbed(&read(100), partition()), None);
    }

    #[test]
    fn others_on_one_member_are_seen() {
        let mut target = fixtures::disk();
        let member = |name: &str| Layer { name: name.into(), kind: "disk".into(), ..Layer::default() };
        let device = target.device.as_mut().unwrap();
        device.name = "md0".into();
        device.kind = Some("md raid0".into());
        device.below = vec![member("sda"), member("sdb")];
        let read = |requests: u64| {
            with(cell("m", Op::Read, IoPath::Direct, 64 << 10, 10_000, SECOND), |cell| {
                let mut member = cell.evidence.device[0].clone();
                cell.evidence.device[0].name = "md0".into();
                (member.reads, member.read_bytes) = (Some(5_000), Some(5_000 * (64 << 10)));
                let mut other = member.clone();
                other.name = "sdb".into();
                (other.reads, other.read_bytes) =
                    (Some(5_000 + requests), Some(5_000 * (64 << 10) + requests * (64 << 10)));
                cell.evidence.device.extend([member, other]);
            })
        };
        assert_eq!(is_disturbed(&read(0), target.clone()), None);
        let text = is_disturbed(&read(4_000), target.clone()).unwrap();
        assert!(text.starts_with("sda and sdb, below md0, did about 4,000 read requests"), "{text}");
        // Of RAID 5 without one member, of a cache or a snapshot, more is read than was asked for.
        for kind in ["md raid5", "dm LVM", "dm CRYPT-VERITY", "md"] {
            let mut other = target.clone();
            other.device.as_mut().unwrap().kind = Some(kind.into());
            assert_eq!(is_disturbed(&read(4_000), other), None, "{kind}");
        }
    }

    /// dm-verity reads hashes from the device that holds the data, dm-integrity tags, VDO its block map, and nothing says which target a device without
    /// a maker has.
    #[test]
    fn hashes_and_tags_beside_the_data_are_not_others() {
        let beside = |kind: &str| {
            let mut target = fixtures::disk();
            let device = target.device.as_mut().unwrap();
            (device.name, device.kind) = ("dm-0".into(), Some(kind.into()));
            device.below = vec![Layer { name: "sdb".into(), kind: "disk".into(), ..Layer::default() }];
            let cell = with(cell("v", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
                let mut disk = cell.evidence.device[0].clone();
                cell.evidence.device[0].name = "dm-0".into();
                disk.name = "sdb".into();
                (disk.reads, disk.read_bytes) = (Some(15_000), Some(15_000 * 4096));
                cell.evidence.device.push(disk);
            });
            is_disturbed(&cell, target)
        };
        for kind in ["dm CRYPT-VERITY", "dm CRYPT-INTEGRITY", "dm LVM-vpool", "dm partition", "dm"] {
            assert_eq!(beside(kind), None, "{kind}");
        }
        for kind in ["dm CRYPT-LUKS2", "dm LVM", "dm part1"] {
            assert!(beside(kind).is_some(), "{kind}");
        }
    }

    /// Two targets, each on a device of its own over `disk`, or both on the same one, that together read 10 000 blocks.
    fn two_over(kind: &str, names: [&str; 2], of_others: u64) -> (CellRecord, Vec<Target>) {
        let mut targets = [partition(), partition()];
        for (index, (target, name)) in (0..).zip(targets.iter_mut().zip(names)) {
            target.index = index;
            let device = target.device.as_mut().unwrap();
            (device.name, device.kind) = (name.into(), Some(kind.into()));
        }
        let cell = with(cell("s", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
            cell.workload.targets = vec![0, 1];
            let base = cell.evidence.device[0].clone();
            let counted = |target: u32, name: &str, reads: u64| {
                let mut device = base.clone();
                (device.target, device.name) = (target, name.into());
                (device.reads, device.read_bytes) = (Some(reads), Some(reads * 4096));
                device
            };
            let both = if names[0] == names[1] { 10_000 + of_others } else { 5_000 };
            let disk = |target: u32| counted(target, "sda", 10_000 + of_others);
            cell.evidence.device =
                vec![counted(0, names[0], both), counted(1, names[1], both), disk(0), disk(1)];
        });
        (cell, targets.into())
    }

    /// `rdsk scale FILE FILE` on one filesystem, `rdsk scale / /home` on two partitions, and two volumes of a group: what the other
    /// target of the cell does is not of others.
    #[test]
    fn targets_that_share_a_disk_do_not_disturb_each_other() {
        let shared =
            [("partition", ["sda1", "sda1"]), ("partition", ["sda1", "sda2"]), ("dm LVM", ["dm-0", "dm-1"])];
        for (kind, names) in shared {
            let (cell, targets) = two_over(kind, names, 0);
            let judged = verdict(&cell, &targets, Some(8));
            assert_eq!(judged.code, VerdictCode::Device, "{kind} {names:?}: {}", judged.text);
            let (cell, targets) = two_over(kind, names, 8_000);
            let judged = verdict(&cell, &targets, Some(8));
            assert_eq!(judged.code, VerdictCode::Disturbed, "{kind} {names:?}: {}", judged.text);
        }
        let (cell, targets) = two_over("partition", ["sda1", "sda2"], 8_000);
        assert!(verdict(&cell, &targets, Some(8)).text.starts_with("sda, below sda1 and sda2, did about"));
    }

    /// What a cache reads from a disk beside a volume of the same disk may be any program's.
    #[test]
    fn a_device_that_reads_more_than_it_is_asked_for_hides_others() {
        let (cell, mut targets) = two_over("dm LVM", ["dm-0", "dm-1"], 3_000);
        targets[1].device.as_mut().unwrap().kind = Some("dm CRYPT-VERITY".into());
        let judged = verdict(&cell, &targets, Some(8));
        assert!(!judged.text.contains("below dm-0"), "{}", judged.text);
    }
}
