//! What a device is built on, as a tree with the members of an array side by side. It reads only sysfs.

use crate::machine::{Node, Tree, logical_volume};
use rdsk_model::Layer;
use rdsk_sys::files::{is_numbered, read_text};

/// Limits of a tree; what is below them is left out. A disk appears in it once for each of its partitions.
const MAX_LEVELS: usize = 16;
const MAX_LAYERS: usize = 512;

/// Drivers that keep the data of their devices elsewhere: on the devices below, on another host, in memory, in a program or a pool. Each by
/// what their names begin with, and as people call it.
const DRIVERS: [(&str, &str); 7] = [
    ("bcache", "bcache"),
    ("drbd", "drbd"),
    ("rbd", "rbd"),
    ("nbd", "nbd"),
    ("zram", "zram"),
    ("ublkb", "ublk"),
    ("zd", "zvol"),
];

/// What a device is built on, each with what that is built on.
pub(crate) fn below(tree: &Tree, node: &Node) -> Vec<Layer> {
    let mut left = MAX_LAYERS;
    layers_below(tree, node, MAX_LEVELS, &mut left)
}

fn layers_below(tree: &Tree, node: &Node, levels: usize, left: &mut usize) -> Vec<Layer> {
    let mut layers = Vec::new();
    for member in node.slaves.iter().chain(&node.parent).filter_map(|name| tree.get(name)) {
        if levels == 0 || *left == 0 {
            break;
        }
        *left -= 1;
        layers.push(Layer { below: layers_below(tree, member, levels - 1, left), ..alone(member, member) });
    }
    layers
}

/// A device by itself; the queue that it has, or that its disk has for it.
fn alone(node: &Node, queue: &Node) -> Layer {
    let write_cache = read_text(&queue.directory.join("queue/write_cache"));
    Layer {
        name: node.kernel_name(),
        mapped_name: mapped_name(node),
        kind: kind(node),
        size_bytes: node.size_bytes(),
        write_cache: write_cache.filter(|text| !text.is_empty()),
        below: Vec::new(),
    }
}

/// A device of a filesystem that lies on several, with what it is built on.
pub(crate) fn layer(tree: &Tree, node: &Node) -> Layer {
    Layer { below: below(tree, node), ..alone(node, tree.whole(node)) }
}

/// `disk`, `partition`, `loop`, `null_blk`, `zram`, `bcache`, `md raid5`, `dm LVM`, `dm`.
pub(crate) fn kind(node: &Node) -> String {
    let read = |file: &str| read_text(&node.directory.join(file)).filter(|text| !text.is_empty());
    let with = |kind: &str, detail: Option<String>| {
        detail.map_or_else(|| kind.to_owned(), |detail| format!("{kind} {}", rdsk_units::printable(&detail)))
    };
    if node.parent.is_some() {
        "partition".to_owned()
    } else if node.directory.join("md").is_dir() {
        with("md", read("md/level"))
    } else if node.mapped_name.is_some() || node.directory.join("dm").is_dir() {
        with("dm", read("dm/uuid").and_then(|uuid| maker(&uuid)))
    } else if node.name.starts_with("loop") {
        "loop".to_owned()
    } else if node.is_null {
        "null_blk".to_owned()
    } else {
        let driver = DRIVERS.iter().find(|(name, _)| is_numbered(&node.name, name));
        driver.map_or("disk", |&(_, kind)| kind).to_owned()
    }
}

/// Who created a device-mapper device, from the prefix of its UUID, as sysfs has no targets: `LVM`, `CRYPT-LUKS2`, `mpath`. LVM
/// marks its VDO device, which keeps tables of its own, at the end: `LVM-vpool`.
fn maker(uuid: &str) -> Option<String> {
    if uuid.starts_with("LVM-") && uuid.ends_with("-vpool") {
        return Some("LVM-vpool".to_owned());
    }
    let mut parts = uuid.split('-');
    let first = parts.next()?;
    let rest = parts.next()?;
    Some(if first == "CRYPT" { format!("{first}-{rest}") } else { first.to_owned() })
}

/// `vg/lv`, or the name in `/dev/mapper`.
pub(crate) fn mapped_name(node: &Node) -> Option<String> {
    logical_volume(node).or_else(|| node.mapped_name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};

    /// A logical volume on an array of two partitions and a disk.
    #[test]
    fn a_stack_has_a_layer_for_each_member() {
        const GIB: u64 = 1 << 30;
        let uuid = format!("LVM-{}", "a".repeat(64));
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .partition("sda", 1, 1 << 20, 8 * GIB)
            .disk(FakeDisk::scsi("sdb"))
            .partition("sdb", 1, 1 << 20, 8 * GIB)
            .disk(FakeDisk::nvme("nvme0n1"))
            .disk(FakeDisk::md("md0", "raid5", 3, 64 << 10, 16 * GIB))
            .disk(FakeDisk::dm("dm-3", "v--g-home", &uuid, 4 * GIB))
            .holder("sda1", "md0")
            .holder("sdb1", "md0")
            .holder("nvme0n1", "md0")
            .holder("md0", "dm-3");
        let tree = Tree::read(&fake.sys()).unwrap();
        let answers = std::collections::BTreeMap::new();
        let mapper = crate::machine::device_mapper::Mapper::Answers(&answers);
        let device = facts::device(&tree, tree.get("dm-3").unwrap(), &mapper);
        assert_eq!(device.kind.as_deref(), Some("dm LVM"));
        assert_eq!(device.mapped_name.as_deref(), Some("v-g/home"));
        let [md] = &device.below[..] else { panic!("{:?}", device.below) };
        assert_eq!((md.name.as_str(), md.kind.as_str(), md.size_bytes), ("md0", "md raid5", Some(16 * GIB)));
        let members: Vec<(&str, &str)> =
            md.below.iter().map(|member| (member.name.as_str(), member.kind.as_str())).collect();
        assert_eq!(members, [("nvme0n1", "disk"), ("sda1", "partition"), ("sdb1", "partition")]);
        assert_eq!(md.below[2].below[0].name, "sdb");
        assert!(md.below[2].below[0].below.is_empty() && md.below[0].below.is_empty());
        let disk = facts::device(&tree, tree.get("sda").unwrap(), &mapper);
        assert_eq!((disk.kind.as_deref(), disk.mapped_name, disk.below), (Some("disk"), None, Vec::new()));
    }

    #[test]
    fn what_keeps_its_data_elsewhere_is_no_disk() {
        for (name, wanted) in [
            ("bcache0", "bcache"),
            ("drbd12", "drbd"),
            ("rbd0", "rbd"),
            ("nbd3", "nbd"),
            ("zram0", "zram"),
            ("ublkb1", "ublk"),
            ("zd16", "zvol"),
            ("zda", "disk"),
            ("bcache", "disk"),
            ("sda", "disk"),
            ("nvme0n1", "disk"),
        ] {
            let fake = crate::tests::Fake::new().disk(name, "240:0");
            let fake = fake.disk(&format!("{name}/{name}p1"), "240:1");
            fake.with(|machine, _| {
                assert_eq!(kind(machine.tree.get(name).unwrap()), wanted);
                assert_eq!(kind(machine.tree.get(&format!("{name}p1")).unwrap()), "partition");
            });
        }
    }

    /// Each level is built on two partitions of the one below it, so that paths double with each.
    #[test]
    fn a_tree_that_would_never_end_is_cut() {
        let mut fake = crate::tests::Fake::new();
        for level in 0..14 {
            fake = fake.disk(&format!("md{level}"), &format!("9:{level}"));
            for part in 1..=2 {
                fake = fake.disk(&format!("md{level}/md{level}p{part}"), &format!("25{part}:{level}"));
                if level > 0 {
                    let lower = level - 1;
                    fake = fake.stack(&format!("md{level}"), &format!("md{lower}/md{lower}p{part}"));
                }
            }
        }
        fake.with(|machine, _| {
            fn count(layers: &[Layer]) -> usize {
                layers.iter().map(|layer| 1 + count(&layer.below)).sum()
            }
            let layers = below(&machine.tree, machine.tree.get("md13").unwrap());
            assert_eq!(count(&layers), MAX_LAYERS);
        });
    }

    #[test]
    fn the_maker_of_a_mapped_device_is_in_its_uuid() {
        for (uuid, wanted) in [
            ("LVM-vXB1x8EI3nR8", Some("LVM")),
            ("LVM-vXB1x8EI3nR8-vpool", Some("LVM-vpool")),
            ("LVM-vXB1x8EI3nR8-tpool", Some("LVM")),
            ("CRYPT-LUKS2-b3a-secret", Some("CRYPT-LUKS2")),
            ("mpath-3600508b4000156d7", Some("mpath")),
            ("part1-mpath-3600508b4", Some("part1")),
            ("", None),
            ("mine", None),
        ] {
            assert_eq!(maker(uuid).as_deref(), wanted, "{uuid}");
        }
    }
}
