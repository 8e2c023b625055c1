//! What the programs of util-linux know of every device: serial numbers and names that are not in sysfs, UUIDs and
//! labels. It asks `lsblk`, which asks udev; if udev does not run, `blkid` reads a single device. It never decides what
//! a name is worth.

use crate::machine::Machine;
use crate::machine::sysfs::Node;
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

    /// Whether somebody has looked at the contents of the devices: udev, or `lsblk` itself.
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
            tools::blkid(&self.machine.roots.tools, &path, &node.name)
                .map_or_else(|_| Lsblk::default(), |text| parse_blkid(&text))
        })
    }
}

/// The lines that `blkid` prints of one device.
pub(crate) fn parse_blkid(text: &str) -> Lsblk {
    let mut row = Lsblk::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let field = match key {
            "TYPE" => &mut row.fstype,
            "UUID" => &mut row.uuid,
            "LABEL" => &mut row.label,
            "PART_ENTRY_UUID" => &mut row.partuuid,
            "PART_ENTRY_NAME" => &mut row.partlabel,
            _ => continue,
        };
        *field = Some(unescaped(value));
    }
    row
}

/// `my\ disk` is `my disk`: the format is meant for a shell.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn the_answer_of_blkid_is_read() {
        // blkid of util-linux 2.38 on a partition with ext2, 2026-11-21.
        let row = parse_blkid(
            "DEVNAME=/dev/vda2\nLABEL=my\\ label\nUUID=548a6312-5dd2-48d2-ab6b-bc5a28959f61\nVERSION=1.0\n\
             BLOCK_SIZE=1024\nTYPE=ext2\nUSAGE=filesystem\nPART_ENTRY_SCHEME=gpt\n\
             PART_ENTRY_UUID=4a42fe38-c994-5045-8e99-5698dcf16ec0\nPART_ENTRY_NUMBER=2\n",
        );
        assert_eq!(row.label.as_deref(), Some("my label"));
        assert_eq!(row.fstype.as_deref(), Some("ext2"));
        assert_eq!(row.uuid.as_deref(), Some("548a6312-5dd2-48d2-ab6b-bc5a28959f61"));
        assert_eq!(row.partuuid.as_deref(), Some("4a42fe38-c994-5045-8e99-5698dcf16ec0"));
        assert_eq!(row.partlabel, None);
        assert!(parse_blkid("").uuid.is_none());
    }

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
