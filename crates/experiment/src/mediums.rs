//! Which targets may hold the same blocks: several paths lead to one LUN, and files and partitions lie on one disk. What was read on one
//! of them may lie in a cache for the other. It compares what is known of the targets and looks at nothing.

use rdsk_model::Target;

/// Whether two targets may hold the same blocks: a device of both, or a serial number.
pub(crate) fn share_blocks(one: &Target, other: &Target) -> bool {
    let serial = |target: &Target| target.device.as_ref().and_then(|device| device.serial.clone());
    one.index == other.index
        || one.stack.iter().any(|name| other.stack.contains(name))
        || serial(one).is_some_and(|own| serial(other).is_some_and(|its| its == own))
}

/// How many of the targets before one may hold the same blocks.
pub(crate) fn twins_before(targets: &[Target], target: &Target) -> u32 {
    let before = targets.iter().take_while(|other| other.index != target.index);
    u32::try_from(before.filter(|other| share_blocks(other, target)).count()).unwrap_or(u32::MAX)
}
