//! Which targets may hold the same blocks: several paths lead to one LUN, and a partition or an array lies on a disk that is a target,
//! too. What was read on one of them may lie in a cache for the other. It compares what is known of the targets and looks at nothing.

use rdsk_model::{Target, TargetKind};

/// For each target, the first one of those that hold the same blocks, itself or through others.
pub(crate) fn mediums(targets: &[Target]) -> Vec<u32> {
    let mut mediums: Vec<u32> = targets.iter().map(|target| target.index).collect();
    for (here, target) in targets.iter().enumerate() {
        for there in 0..here {
            if share_blocks(target, &targets[there]) {
                let (kept, other) = (mediums[here].min(mediums[there]), mediums[here].max(mediums[there]));
                mediums.iter_mut().filter(|medium| **medium == other).for_each(|medium| *medium = kept);
            }
        }
    }
    mediums
}

/// How many of the targets before the one at a position are of its medium.
pub(crate) fn twins_before(mediums: &[u32], position: usize) -> u32 {
    let twins = mediums[..position].iter().filter(|&&medium| medium == mediums[position]);
    u32::try_from(twins.count()).unwrap_or(u32::MAX)
}

/// Files and partitions share their disk, but no block of it.
fn share_blocks(target: &Target, other: &Target) -> bool {
    let (Some(a), Some(b)) = (&target.device, &other.device) else { return false };
    if (target.kind, other.kind) != (TargetKind::Block, TargetKind::Block) {
        return false;
    }
    if target.stack.contains(&b.name) || other.stack.contains(&a.name) {
        return true;
    }
    let are_of_one_disk = target.stack.last().is_some_and(|disk| other.stack.last() == Some(disk));
    !are_of_one_disk && a.serial.is_some() && a.serial == b.serial && target.size_bytes == other.size_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Device;

    fn target(index: u32, stack: &[&str], serial: Option<&str>, size_bytes: u64) -> Target {
        let device = Device { name: stack[0].into(), serial: serial.map(Into::into), ..Device::default() };
        let stack = stack.iter().copied().map(Into::into).collect();
        let (kind, device) = (TargetKind::Block, Some(device));
        Target { index, kind, device, stack, size_bytes, ..Target::default() }
    }

    #[test]
    fn paths_of_one_lun_are_one_medium_and_luns_and_partitions_of_one_disk_are_not() {
        let targets = [
            target(0, &["sda"], Some("L1"), 10),
            target(1, &["sdb"], Some("L1"), 10),
            target(2, &["sdc"], Some("L2"), 10),
            // A controller's number, which all of its namespaces have.
            target(3, &["nvme0n1"], Some("C"), 10),
            target(4, &["nvme0n2"], Some("C"), 20),
            target(5, &["sdd1", "sdd"], Some("L3"), 5),
            target(6, &["sdd2", "sdd"], Some("L3"), 5),
            target(7, &["sde"], None, 10),
            target(8, &["sdf"], None, 10),
        ];
        let of_targets = mediums(&targets);
        assert_eq!(of_targets, [0, 0, 2, 3, 4, 5, 6, 7, 8]);
        let twins: Vec<u32> =
            (0..targets.len()).map(|position| twins_before(&of_targets, position)).collect();
        assert_eq!(twins, [0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut files = [targets[5].clone(), targets[5].clone()];
        files[1].index = 1;
        files.iter_mut().for_each(|file| file.kind = TargetKind::File);
        assert_eq!(mediums(&files), [5, 1]);
    }

    #[test]
    fn what_lies_on_another_target_shares_its_medium_also_through_a_third() {
        let disk = target(0, &["sda"], None, 10);
        let partition = target(1, &["sda1", "sda"], None, 5);
        assert_eq!(mediums(&[disk, partition]), [0, 0]);
        let [first, second] = [target(0, &["sda1", "sda"], None, 5), target(1, &["sdb1", "sdb"], None, 5)];
        let array = target(2, &["md0", "sda1", "sda", "sdb1", "sdb"], None, 10);
        assert_eq!(mediums(&[first, second, array]), [0, 0, 0]);
    }
}
