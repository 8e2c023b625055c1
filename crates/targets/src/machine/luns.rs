//! Which disks are the same: the paths of a LUN, by their World Wide Names, or by serial number, model and size if
//! there is no such name. Cheap enclosures and old NVMe give one name to several disks, which both size and serial number then say
//! apart. It reads sysfs and decides nothing.

use super::disk_names;
use crate::machine::sysfs::{Node, Tree};
use rdsk_sys::files::read_text;
use std::collections::BTreeMap;

/// For every whole disk that shares its LUN with others, the first of them by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Luns(BTreeMap<String, String>);

impl Luns {
    /// Compares all disks that are built on nothing else.
    pub(crate) fn read(tree: &Tree) -> Self {
        let mut by_word: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
        let mut first_of: BTreeMap<String, String> = BTreeMap::new();
        for node in tree.nodes().filter(|node| node.parent.is_none() && node.slaves.is_empty()) {
            let words = words(node);
            let same = words.find_by.iter().find_map(|word| same_disks(by_word.get(word)?, node));
            let same = same.unwrap_or_default();
            let joined: Vec<String> =
                same.iter().filter_map(|other| first_of.get(&other.name).cloned()).collect();
            let first = joined.iter().min().unwrap_or(&node.name).clone();
            // Disks that were distinguished are one after all if this one cannot be distinguished from either.
            for other in first_of.values_mut().filter(|other| joined.contains(other)) {
                other.clone_from(&first);
            }
            for word in words.found_by {
                by_word.entry(word).or_default().push(node);
            }
            first_of.insert(node.name.clone(), first);
        }
        first_of.retain(|name, first| name != first);
        Self(first_of)
    }

    /// The name that stands for the LUN of a whole disk.
    pub(crate) fn medium<'name>(&'name self, disk: &'name str) -> &'name str {
        self.0.get(disk).map_or(disk, String::as_str)
    }

    /// Whether two different disks are paths of one LUN.
    pub(crate) fn are_paths(&self, disk: &str, other: &str) -> bool {
        disk != other && self.medium(disk) == self.medium(other)
    }
}

#[derive(Debug, Default)]
struct LookupKeys {
    /// What it looks for among the others.
    find_by: Vec<String>,
    /// What the others can find it by.
    found_by: Vec<String>,
}

/// Those of `others` that have a name in common with `node` and may be the same disk; `None` if there are none.
fn same_disks<'tree>(others: &[&'tree Node], node: &Node) -> Option<Vec<&'tree Node>> {
    let same: Vec<&Node> = others.iter().copied().filter(|other| !are_different(other, node)).collect();
    (!same.is_empty()).then_some(same)
}

/// Whether two disks of one name cannot be paths of one LUN. The sizes of paths differ after a LUN was resized, until each is looked at
/// again; their serial number is that of the LUN (SPC-4, 7.8.15), and of the subsystem of an NVMe namespace. So both must differ.
fn are_different(disk: &Node, other: &Node) -> bool {
    let differ = |left: Option<String>, right: Option<String>| left.zip(right).is_some_and(|(a, b)| a != b);
    let size = |node: &Node| node.size_bytes().map(|bytes| bytes.to_string());
    let serial = |node: &Node| disk_names::serial(&node.directory);
    differ(size(disk), size(other)) && differ(serial(disk), serial(other))
}

/// A serial number alone does not identify a disk, because cheap bridges share them and so do the namespaces of one
/// NVMe controller; only disks of one model and size with one serial number are therefore taken for paths, and no NVMe
/// namespaces. If two disks have World Wide Names, these decide: the logical disks of a controller may all have its
/// serial number and model.
fn words(node: &Node) -> LookupKeys {
    let wwns: Vec<String> = disk_names::wwns(node).iter().map(|wwn| format!("wwn {wwn}")).collect();
    let mut words = LookupKeys { find_by: wwns.clone(), found_by: wwns.clone() };
    let size = read_text(&node.directory.join("size")).unwrap_or_default();
    // Namespaces of one controller and the boot areas of one eMMC have one serial number and often one size.
    let can_have_paths = !node.name.starts_with("nvme") && !node.name.starts_with("mmcblk");
    if let Some(serial) = disk_names::serial(&node.directory).filter(|_| can_have_paths) {
        let model = read_text(&node.directory.join("device/model")).unwrap_or_default();
        let word = format!("serial {serial} {} {}", model.trim(), size.trim());
        let without_wwn = format!("without WWN, {word}");
        words.found_by.push(word.clone());
        if wwns.is_empty() {
            words.find_by.push(word);
            words.found_by.push(without_wwn);
        } else {
            words.find_by.push(without_wwn);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use crate::tests::Fake;

    #[test]
    fn one_wwn_is_one_lun_and_one_serial_of_one_model_and_size_too() {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sdb", "8:16")
            .disk("sdc", "8:32")
            .disk("sdd", "8:48")
            .disk("sde", "8:64")
            .disk("nvme0n1", "259:0")
            .disk("nvme0n2", "259:1")
            .attribute("sda/device/wwid", "naa.5000c500a1b2c3d4\n")
            .attribute("sdb/device/wwid", "naa.5000c500a1b2c3d4\n")
            .attribute("sdc/device/wwid", "naa.5000c500a1b2c3d5\n")
            .attribute("sdd/serial", "ABCD1\n")
            .attribute("sde/serial", "ABCD1\n")
            .attribute("nvme0n1/device/serial", "NV1\n")
            .attribute("nvme0n2/device/serial", "NV1\n");
        fake.with(|machine, _| {
            assert!(machine.luns.are_paths("sda", "sdb") && machine.luns.are_paths("sde", "sdd"));
            assert_eq!(machine.luns.medium("sdb"), "sda");
            for (one, other) in [("sda", "sdc"), ("sda", "sda"), ("sdc", "sdd"), ("nvme0n1", "nvme0n2")] {
                assert!(!machine.luns.are_paths(one, other), "{one} {other}");
            }
        });
        // A controller's logical disks share its serial number and model, and have names of their own.
        let named = fake
            .attribute("sdd/device/wwid", "naa.600508b1001c0001\n")
            .attribute("sde/device/wwid", "naa.600508b1001c0002\n");
        named.with(|machine, _| assert!(!machine.luns.are_paths("sdd", "sde")));
        // A path whose name could not be read is still recognized by the rest.
        let half = named.attribute("sde/device/wwid", "\n");
        half.with(|machine, _| assert!(machine.luns.are_paths("sdd", "sde")));
        let fake = half.attribute("sdd/device/wwid", "\n");
        let other_size = fake.attribute("sde/size", "4096\n");
        other_size.with(|machine, _| assert!(!machine.luns.are_paths("sdd", "sde")));
    }

    #[test]
    fn disks_with_a_name_of_many_are_told_apart_by_size_and_serial_number_together() {
        let disk = |fake: Fake, name: &str, number: &str, size: &str, serial: &str| {
            fake.disk(name, number)
                .attribute(&format!("{name}/device/wwid"), "naa.5000000000000001\n")
                .attribute(&format!("{name}/size"), size)
                .attribute(&format!("{name}/device/serial"), serial)
        };
        let are_paths = |size: &str, serial: &str| {
            let fake = disk(Fake::new(), "sda", "8:0", "4096\n", "WD-1\n");
            disk(fake, "sdb", "8:16", size, serial).with(|machine, _| machine.luns.are_paths("sda", "sdb"))
        };
        assert!(!are_paths("8192\n", "WD-2\n"));
        assert!(are_paths("8192\n", "WD-1\n"), "the LUN was resized");
        assert!(are_paths("8192\n", "\n"), "the serial number is not known");
        assert!(are_paths("4096\n", "WD-2\n"));
        assert!(are_paths("\n", "WD-2\n"), "the size is not known");
        // sdc may be either of two disks that differ.
        let fake = disk(Fake::new(), "sda", "8:0", "4096\n", "WD-1\n");
        let fake = disk(fake, "sdb", "8:16", "8192\n", "WD-2\n");
        let fake = disk(fake, "sdc", "8:32", "8192\n", "WD-1\n");
        fake.with(|machine, _| {
            for (one, other) in [("sda", "sdb"), ("sda", "sdc"), ("sdb", "sdc")] {
                assert!(machine.luns.are_paths(one, other), "{one} {other}");
            }
            assert_eq!(machine.luns.medium("sdc"), "sda");
        });
    }
}
