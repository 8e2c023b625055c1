//! Which arrays below a target are in another state after a run than before it. What an array says of itself is in `array`; nothing
//! is judged here.

use crate::facts::array::{facts, facts_below};
use crate::machine::{Machine, Mapper, Node, Tree};
use crate::roots::Roots;
use crate::uses::InUse;
use rdsk_model::{ArrayFacts, Device, Target};

/// The arrays below a target that are in another state than when it was examined; none for a device that is not here any more.
pub fn arrays_at_end(target: &Target, roots: &Roots) -> Vec<ArrayFacts> {
    let Some(device) = target.device.as_ref().filter(|_| target.stack.len() > 1) else { return Vec::new() };
    let machine = Machine::read(roots, &mut InUse::default());
    let node = machine.tree.nodes().find(|node| node.number.to_string() == device.major_minor);
    node.map(|node| in_another_state(&machine.tree, node, &machine.mapper, device)).unwrap_or_default()
}

fn in_another_state(tree: &Tree, node: &Node, mapper: &Mapper<'_>, before: &Device) -> Vec<ArrayFacts> {
    let first = facts(tree, node, mapper);
    let below = facts_below(tree, node, first.as_ref(), mapper);
    let is_as_before = |now: &ArrayFacts| {
        let then = before.arrays().find(|then| then.device == now.device);
        then.is_some_and(|then| (&then.activity, then.degraded) == (&now.activity, now.degraded))
    };
    first.into_iter().chain(below).filter(|now| !is_as_before(now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};
    use std::collections::BTreeMap;

    const GIB: u64 = 1 << 30;

    #[test]
    fn an_array_that_is_in_another_state_is_told_with_its_new_one() {
        let fake =
            FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::md("md0", "raid1", 2, 0, 8 * GIB));
        let fake = fake.holder("sda", "md0");
        let tree = Tree::read(&fake.sys()).unwrap();
        let (node, answers) = (tree.get("md0").unwrap(), BTreeMap::new());
        let mapper = Mapper::Answers(&answers);
        let before = crate::facts::device(&tree, node, &mapper);
        assert_eq!(in_another_state(&tree, node, &mapper, &before), []);
        std::fs::write(fake.sys().join("block/md0/md/sync_action"), "check\n").unwrap();
        let now = in_another_state(&tree, node, &mapper, &before);
        let states: Vec<_> = now.iter().map(|one| (one.device.as_str(), one.activity.as_deref())).collect();
        assert_eq!(states, [("md0", Some("check"))]);
    }
}
