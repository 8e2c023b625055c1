//! What the programs of util-linux know of every device: serial numbers and names that are not in sysfs, UUIDs and
//! labels. It asks `lsblk`, which asks udev; if udev does not run, `blkid` reads a single device. It never decides what
//! a name is worth.

use crate::machine::{Machine, Node};
use crate::tools::{self, Lsblk};
use std::collections::BTreeMap;

/// The answers, by kernel name as sysfs spells it.
#[derive(Debug)]
pub(crate) struct Inventory<'machine> {
    pub(crate) machine: &'machine Machine<'machine>,
    rows: BTreeMap<String, Lsblk>,
    /// Whether `lsblk` answered at all.
    pub(crate) is_available: bool,
}

impl<'machine> Inventory<'machine> {
    /// Asks `lsblk` once for all devices.
    pub(crate) fn read(machine: &'machine Machine<'_>) -> Self {
        let list = tools::lsblk_all(&machine.roots.tools);
        let is_available = list.is_ok();
        let named = |row: Lsblk| Some((row.name.clone()?.replace('/', "!"), row));
        let rows = list.unwrap_or_default().into_iter().filter_map(named).collect();
        Self { machine, rows, is_available }
    }

    /// Whether a program has looked at the contents of the devices: udev, or `lsblk` itself.
    pub(crate) fn knows_content(&self) -> bool {
        self.rows.values().any(|row| row.fstype.is_some())
    }

    pub(crate) fn row(&self, node: &Node) -> Option<&Lsblk> {
        self.rows.get(&node.name)
    }

    /// The content of a device and its entry in a partition table, read from the device itself if udev reports neither.
    pub(crate) fn content(&self, node: &Node) -> Lsblk {
        let told = self.row(node).filter(|row| row.fstype.is_some() || row.partuuid.is_some());
        told.cloned().unwrap_or_else(|| {
            let path = self.machine.roots.dev.join(node.kernel_name());
            tools::blkid(&self.machine.roots.tools, &path, &node.name).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn the_device_itself_is_read_where_udev_tells_nothing() {
        let list = r#"{"blockdevices":[{"kname":"sda","fstype":"ext4","uuid":"u-1"},{"kname":"sdb"}]}"#;
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sdb", "8:16")
            .answer("lsblk *", list)
            .answer("blkid sda", "TYPE=xfs\n")
            .answer("blkid sdb", "TYPE=xfs\nUUID=u-2\n");
        fake.with(|machine, _| {
            let inventory = Inventory::read(machine);
            let uuid = |name: &str| inventory.content(machine.tree.get(name).unwrap()).uuid;
            assert!(inventory.is_available);
            assert_eq!((uuid("sda").as_deref(), uuid("sdb").as_deref()), (Some("u-1"), Some("u-2")));
        });
        Fake::new().disk("sda", "8:0").with(|machine, _| assert!(!Inventory::read(machine).is_available));
    }
}
