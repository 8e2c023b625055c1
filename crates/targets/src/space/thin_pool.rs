//! Thin pools and VDO pools below a target and the stores of snapshots beside it: how much they can still provide, so that a run
//! never fills one up. A full pool breaks every volume in it, and a full store its snapshot. It asks device mapper and
//! changes nothing.

use crate::machine::{Extents, Machine, Node, Part, PoolKind, PoolSpace, Reach, Span};
use crate::space::growth::{Growth, GrowthKind, Taking};
use crate::uses::{InUse, UseKind};

/// Metadata of a pool that may be in use, in percent.
const MAX_METADATA_PERCENT: u64 = 90;
/// Filesystems that write a changed block to another position: overwriting a file allocates new blocks of a pool.
const COPY_ON_WRITE: [&str; 5] = ["btrfs", "bcachefs", "zfs", "f2fs", "nilfs2"];

/// What fills up, for messages.
#[derive(Clone, Copy, Debug)]
struct Resource {
    noun: &'static str,
    loss: &'static str,
}

const POOL: Resource = Resource { noun: "the thin pool", loss: "its volumes break" };
const VDO: Resource = Resource { noun: "the VDO pool", loss: "nothing can be written to its volumes" };
const STORE: Resource = Resource { noun: "the store of the snapshot", loss: "the snapshot is lost" };

/// Devices that fill up, each with how full it is.
type Filling<'machine> = Vec<(Resource, &'machine Node, PoolSpace)>;

/// What a thin pool can provide: a tenth of it stays free.
pub(crate) fn spare_bytes(space: PoolSpace) -> u64 {
    if space.metadata_percent > MAX_METADATA_PERCENT {
        return 0;
    }
    space.free_bytes.saturating_sub(space.total_bytes.div_ceil(10))
}

/// The pools below `node` and the stores beside it that can be asked how full they are, of which a file that grows takes at most
/// so many bytes.
pub(crate) fn below_file(machine: &Machine<'_>, node: &Node, at_most_bytes: u64) -> Vec<Growth> {
    let filling = resources(machine, node, &mut InUse::default()).into_iter();
    filling.map(|(what, device, space)| growth(what, device, space, at_most_bytes, Taking::Written)).collect()
}

/// What a filesystem of this kind newly allocates on its device when a file of which `file_bytes` may be allocated anew, or
/// without it a test file, is written where `free_bytes` are free; and how many bytes that are at most.
pub(crate) fn allocated_by_filesystem(kind: &str, file_bytes: Option<u64>, free_bytes: u64) -> (Taking, u64) {
    match (file_bytes, COPY_ON_WRITE.contains(&kind)) {
        (_, true) => (Taking::Always(free_bytes), free_bytes),
        (Some(bytes), false) => (Taking::Written, bytes),
        // The test file is created as large as the pool allows.
        (None, false) => (Taking::TestFile { unknown_bytes: 1 << 20 }, u64::MAX),
    }
}

/// What writing a file of `file_bytes`, or without it a test file where `free_bytes` are free, on the filesystem `kind` of `node`
/// takes of pools and stores. A pool that may not be queried counts as a use.
pub(crate) fn of_filesystem(
    machine: &Machine<'_>,
    node: &Node,
    kind: &str,
    file_bytes: Option<u64>,
    free_bytes: u64,
    usage: &mut InUse,
) -> Vec<Growth> {
    let (taking, most_bytes) = allocated_by_filesystem(kind, file_bytes, free_bytes);
    // A pool provides whole blocks, and the parts of a file may lie in many of them.
    let taking = if taking == Taking::Written { Taking::Always(most_bytes) } else { taking };
    let filling = resources(machine, node, usage).into_iter();
    filling.map(|(what, device, space)| growth(what, device, space, most_bytes, taking)).collect()
}

/// Every pool below `node` and every store beside it.
fn resources<'machine>(machine: &'machine Machine<'_>, node: &Node, usage: &mut InUse) -> Filling<'machine> {
    let mut list = pools(machine, node, usage);
    list.extend(snapshots(machine, node, usage));
    list
}

/// What writing the whole device `node` takes of pools. One that may not be queried counts as a use, and so does what a thin pool
/// has given to its volumes, if `node` is none of them: a thin pool passes what is written to itself on to its data
/// (drivers/md/dm-thin.c, `pool_map`), whether the volumes there are active or not.
pub(crate) fn of_device(machine: &Machine<'_>, node: &Node, usage: &mut InUse) -> Vec<Growth> {
    let size_bytes = node.size_bytes().unwrap_or(0);
    let own = Extents::of(machine, node, Reach::Writes);
    let filling = pools(machine, node, usage).into_iter();
    filling
        .map(|(what, pool, space)| {
            if what.noun == POOL.noun && space.free_bytes < space.total_bytes && own.span_pool(pool) {
                let volumes = format!("volumes of {} {}, active or not", what.noun, pool.shown());
                usage.add(UseKind::SharedSectors, &volumes);
            }
            if what.noun == VDO.noun {
                // It stores each block that is written for itself, and frees the one that was there.
                return growth(what, pool, space, size_bytes, Taking::Written);
            }
            let bytes = unmapped_bytes(machine, node, pool, space).unwrap_or(size_bytes);
            growth(what, pool, space, bytes, Taking::Always(bytes))
        })
        .collect()
}

fn growth(what: Resource, node: &Node, space: PoolSpace, at_most_bytes: u64, taking: Taking) -> Growth {
    Growth {
        key: format!("{} {}", what.noun, node.name),
        kind: GrowthKind::Pool,
        name: format!("{} {}", what.noun, node.shown()),
        loss: what.loss,
        free_bytes: space.free_bytes,
        total_bytes: space.total_bytes,
        spare_bytes: spare_bytes(space),
        at_most_bytes,
        taking,
    }
}

/// What a volume may still allocate in its pool: what is not mapped yet. Blocks that it shares with a snapshot are
/// allocated anew when they are written, so this is known only if the active volumes account for all blocks in use,
/// each once; else `None`.
fn unmapped_bytes(machine: &Machine<'_>, node: &Node, pool: &Node, space: PoolSpace) -> Option<u64> {
    let is_volume_of = |node: &Node| {
        let rows = machine.table(node)?.as_ref().ok()?;
        let part = rows.first()?.parts.first()?;
        Some(matches!(part.span, Span::Volume { .. }) && part.device == pool.number)
    };
    let mut mapped_bytes = 0;
    let mut own_bytes = None;
    for volume in machine.tree.nodes().filter(|node| is_volume_of(node) == Some(true)) {
        let mapped = machine.mapper.mapped_bytes(volume)?;
        mapped_bytes += mapped;
        if volume.name == node.name {
            own_bytes = Some(node.size_bytes()?.saturating_sub(mapped));
        }
    }
    own_bytes.filter(|_| space.total_bytes - space.free_bytes == mapped_bytes)
}

/// The pools in the stack of a device.
fn pools<'machine>(machine: &'machine Machine<'_>, node: &Node, usage: &mut InUse) -> Filling<'machine> {
    let mut list = Vec::new();
    for below in machine.tree.stack(node).iter().filter_map(|name| machine.tree.get(name)) {
        if machine.table(below).is_none() || below.name == node.name && below.slaves.is_empty() {
            continue;
        }
        match machine.mapper.pool_space(below) {
            Ok(Some((PoolKind::Thin, space))) => list.push((POOL, below, space)),
            Ok(Some((PoolKind::Vdo, space))) => list.push((VDO, below, space)),
            Ok(None) => {}
            // LVM's names identify a pool even to those who may not read its table.
            Err(reason) => {
                let uuid = below.dm_uuid();
                let noun = if uuid.ends_with("-vpool") { VDO.noun } else { POOL.noun };
                if ["-tpool", "-pool", "-vpool"].iter().any(|end| uuid.ends_with(end)) {
                    let pool = below.shown();
                    let text = format!("the fill level of {noun} {pool} below it is not known ({reason})");
                    usage.add(UseKind::ThinPool, &text);
                }
            }
        }
    }
    list
}

/// The snapshots that keep what a write to `node` replaces or adds, each with its store: those of an origin in the
/// stack, and a snapshot in the stack. One that is already lost has nothing more to lose.
fn snapshots<'machine>(machine: &'machine Machine<'_>, node: &Node, usage: &mut InUse) -> Filling<'machine> {
    let row = |node: &Node| machine.table(node)?.as_ref().ok()?.first();
    let mut list = Vec::new();
    for below in machine.tree.stack(node).iter().filter_map(|name| machine.tree.get(name)) {
        let keeps_old_data =
            |name: &String| machine.tree.get(name).is_some_and(|node| node.dm_uuid().ends_with("-real"));
        // LVM's names identify an origin even to those who may not read its table.
        if let Some(Err(reason)) = machine.table(below)
            && below.slaves.iter().any(keeps_old_data)
        {
            let text =
                format!("the fill level of the snapshots of {} is not known ({reason})", below.shown());
            usage.add(UseKind::ThinPool, &text);
        }
        let Some(own) = row(below) else { continue };
        let origin =
            own.parts.first().filter(|_| matches!(own.kind.as_str(), "snapshot-origin" | "snapshot-merge"));
        let is_kept_by = |other: &Node| {
            let is_of = |part: &Part| origin.is_some_and(|origin| origin.device == part.device);
            row(other).is_some_and(|row| row.kind == "snapshot" && row.parts.first().is_some_and(is_of))
        };
        let keepers = machine
            .tree
            .nodes()
            .filter(|other| is_kept_by(other) || other.name == below.name && own.kind == "snapshot");
        list.extend(keepers.filter_map(|keeper| Some((STORE, keeper, machine.mapper.store_space(keeper)?))));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examined::{Examined, Place};
    use crate::space::fills_up::check_growth;
    use crate::space::growth;
    use crate::tests::Fake;
    use rdsk_model::Target;

    /// Why these may not be taken, each for itself, after the uses.
    fn texts(growths: Vec<Growth>, usage: &InUse) -> Vec<String> {
        let message = |growth: Growth| {
            let place = Place::File { dev: 1, ino: 2 };
            let one = Examined::new(Target::default(), "/t".into(), place, InUse::default());
            let one = Examined { growths: vec![growth], ..one };
            check_growth(&[&one]).err().map(|refusal| refusal.message)
        };
        let uses = usage.uses.iter().map(|used| used.text.clone());
        uses.chain(growths.into_iter().filter_map(message)).collect()
    }

    /// A pool of 1024 blocks of 64 KiB with two volumes of 32 MiB.
    fn fake(used_blocks: u64, mapped_sectors: (u64, u64)) -> Fake {
        let mut fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16");
        for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2")] {
            fake = fake.disk(name, number).attribute(&format!("{name}/size"), "65536\n");
        }
        fake.stack("dm-0", "sda")
            .stack("dm-0", "sdb")
            .stack("dm-1", "dm-0")
            .stack("dm-2", "dm-0")
            .answer("table dm-0", "0 131072 thin-pool 8:16 8:0 128 0 0")
            .answer("status dm-0", &format!("0 131072 thin-pool 1 10/1024 {used_blocks}/1024 - rw discard_passdown queue_if_no_space - 1024"))
            .answer("table dm-1", "0 65536 thin 253:0 1")
            .answer("status dm-1", &format!("0 65536 thin {} 65535", mapped_sectors.0))
            .answer("table dm-2", "0 65536 thin 253:0 2")
            .answer("status dm-2", &format!("0 65536 thin {} -", mapped_sectors.1))
    }

    fn device(fake: &Fake) -> Vec<String> {
        fake.with(|machine, usage| {
            let growths = of_device(machine, machine.tree.get("dm-1").unwrap(), usage);
            texts(growths, usage)
        })
    }

    #[test]
    fn a_tenth_of_the_pool_stays_free() {
        let spare = |used| {
            fake(used, (0, 0)).with(|machine, usage| {
                let node = machine.tree.get("dm-1").unwrap();
                growth::spare_bytes(&of_filesystem(machine, node, "ext4", None, 1 << 30, usage))
            })
        };
        assert_eq!(spare(0), Some((1024 - 103) * 65536 + 65536 * 103 - (64 << 20) / 10 - 1));
        assert_eq!(spare(1000), Some(0));
        fake(0, (0, 0)).with(|machine, usage| {
            let node = machine.tree.get("sda").unwrap();
            assert_eq!(of_filesystem(machine, node, "ext4", None, 1 << 30, usage), []);
        });
    }

    #[test]
    fn a_volume_takes_what_it_has_not_got() {
        // 512 blocks fill 32 MiB.
        assert_eq!(device(&fake(0, (0, 0))), Vec::<String>::new());
        assert_eq!(device(&fake(1000, (65536, 62464))), Vec::<String>::new(), "it has all of its blocks");
        let said = device(&fake(600, (0, 76800)));
        assert!(
            said[0].contains("32 MiB more of the thin pool dm-0") && said[0].contains("of 64 MiB free"),
            "{said:?}"
        );
    }

    #[test]
    fn blocks_that_may_be_shared_are_taken_anew() {
        let said = device(&fake(600, (65536, 65536)));
        assert_eq!(said.len(), 1, "more blocks are mapped than are in use: {said:?}");
    }

    #[test]
    fn what_a_pool_has_given_to_volumes_is_in_use_whether_they_are_active_or_not() {
        let said = |used_blocks, name: &str| {
            let fake = fake(used_blocks, (0, 0)).disk("dm-3", "253:3").attribute("dm-3/size", "2048\n");
            fake.stack("dm-3", "dm-0").with(|machine, usage| {
                let growths = of_device(machine, machine.tree.get(name).unwrap(), usage);
                let uses: Vec<String> =
                    usage.uses.iter().map(|used| format!("{:?}: {}", used.kind, used.text)).collect();
                (uses, growths.len())
            })
        };
        let volumes = "SharedSectors: volumes of the thin pool dm-0, active or not".to_owned();
        assert_eq!(said(1, "dm-3"), (vec![volumes.clone()], 1), "a part of the pool");
        assert_eq!(said(1, "dm-0"), (vec![volumes], 1), "the pool itself");
        assert_eq!(said(1, "dm-1"), (vec![], 1), "a volume");
        assert_eq!(said(0, "dm-3"), (vec![], 1), "no volume has anything");
    }

    /// As LVM makes a snapshot of vg/home: dm-0 keeps the origin's data, dm-1 the store, dm-2 is the origin, dm-3 the snapshot.
    fn snapshot(status: &str) -> Fake {
        let mut fake = Fake::new().disk("sda", "8:0");
        for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2"), ("dm-3", "253:3")] {
            fake = fake.disk(name, number);
        }
        fake.stack("dm-0", "sda")
            .stack("dm-1", "sda")
            .stack("dm-2", "dm-0")
            .stack("dm-3", "dm-0")
            .stack("dm-3", "dm-1")
            .attribute("dm-0/dm/uuid", "LVM-abc-real\n")
            .answer("table dm-2", "0 2097152 snapshot-origin 253:0")
            .answer("status dm-2", "0 2097152 snapshot-origin ")
            .answer("table dm-3", "0 2097152 snapshot 253:0 253:1 P 8")
            .answer("status dm-3", &format!("0 2097152 snapshot {status}"))
    }

    #[test]
    fn a_file_on_an_origin_or_a_snapshot_takes_of_the_store_of_the_snapshot() {
        let checked = |fake: &Fake, name: &str, file_bytes| {
            fake.with(|machine, usage| {
                let node = machine.tree.get(name).unwrap();
                let growths = of_filesystem(machine, node, "ext4", file_bytes, 1 << 30, usage);
                let spare = growths.iter().map(|growth| growth.spare_bytes).min();
                (spare, texts(growths, usage))
            })
        };
        // 50 of 100 MiB are free, a tenth stays.
        let half = snapshot("102400/204800 16");
        for name in ["dm-2", "dm-3"] {
            assert_eq!(checked(&half, name, None), (Some(40 << 20), vec![]), "{name}");
            assert_eq!(checked(&half, name, Some(40 << 20)).1, Vec::<String>::new(), "{name}");
            let said = checked(&half, name, Some(41 << 20)).1;
            assert!(said[0].contains("41 MiB more of the store of the snapshot dm-3"), "{said:?}");
        }
        assert_eq!(
            checked(&half, "sda", Some(1 << 30)),
            (None, vec![]),
            "nothing is copied for what lies below"
        );
        assert_eq!(checked(&snapshot("200000/204800 16"), "dm-2", None).1.len(), 1, "nearly full");
        for lost in ["Invalid", "Overflow"] {
            assert_eq!(checked(&snapshot(lost), "dm-2", Some(1 << 30)), (None, vec![]), "{lost}");
        }
        let unasked = snapshot("102400/204800 16").without_answer("table dm-2").without_answer("table dm-3");
        let said = checked(&unasked, "dm-2", None).1;
        assert!(said[0].contains("the fill level of the snapshots of dm-2 is not known"), "{said:?}");
    }

    /// As LVM makes it: dm-0 keeps the blocks, dm-1 is the pool, dm-2 the volume of 1 GiB in it. The status is that of vdo.rst.
    fn vdo(used_blocks: u64) -> Fake {
        let mut fake = Fake::new().disk("sda", "8:0");
        for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2")] {
            fake = fake.disk(name, number);
        }
        fake.stack("dm-0", "sda")
            .stack("dm-1", "dm-0")
            .stack("dm-2", "dm-1")
            .attribute("dm-1/dm/uuid", "LVM-abc-vpool\n")
            .answer("table dm-1", "0 2097152 vdo V4 253:0 262144 4096 32768 16380 deduplication on")
            .answer(
                "status dm-1",
                &format!("0 2097152 vdo /dev/dm-0 normal - online online {used_blocks} 262144"),
            )
    }

    #[test]
    fn a_vdo_pool_fills_up_with_what_is_written() {
        let said = |fake: &Fake, name: &str, write_bytes| {
            fake.with(|machine, usage| {
                let growths = of_device(machine, machine.tree.get(name).unwrap(), usage);
                let place = Place::File { dev: 1, ino: 2 };
                let one = Examined::new(Target::default(), "/t".into(), place, InUse::default());
                let one = Examined { growths, write_bytes, ..one };
                let refusal = check_growth(&[&one]).err();
                let said = refusal.map(|refusal| (refusal.code, refusal.message));
                (said, usage.uses.first().map(|used| used.text.clone()))
            })
        };
        // 1 GiB of blocks, of which a tenth stays free.
        for name in ["dm-1", "dm-2"] {
            let (Some((code, message)), None) = said(&vdo(131_072), name, None) else { panic!("{name}") };
            assert_eq!(code, "thin-pool");
            assert!(
                message.contains("1 GiB more of the VDO pool dm-1, which has 512 MiB of 1 GiB free"),
                "{message}"
            );
            assert_eq!(said(&vdo(131_072), name, Some(64 << 20)), (None, None), "little is taken");
        }
        assert_eq!(said(&vdo(131_072), "dm-0", None), (None, None), "what lies below it does not grow");
        let odd = vdo(0).answer("status dm-1", "0 2097152 vdo /dev/dm-0 normal - online");
        for fake in [vdo(0).without_answer("table dm-1"), odd] {
            let (_, used) = said(&fake, "dm-2", None);
            let text = used.expect("its fill level is not known");
            assert!(text.starts_with("the fill level of the VDO pool dm-1 below it is not known"), "{text}");
        }
        vdo(131_072).with(|machine, usage| {
            let node = machine.tree.get("dm-2").unwrap();
            let test_file = of_filesystem(machine, node, "ext4", None, 1 << 30, usage);
            assert_eq!(growth::spare_bytes(&test_file), Some((512 << 20) - (1_u64 << 30).div_ceil(10)));
        });
    }

    #[test]
    fn a_file_takes_its_size_and_a_copy_on_write_filesystem_all_that_is_free() {
        let said = |kind: &str, file_bytes, free_bytes| {
            fake(600, (65536, 11264)).with(|machine, usage| {
                let node = machine.tree.get("dm-1").unwrap();
                let growths = of_filesystem(machine, node, kind, file_bytes, free_bytes, usage);
                texts(growths, usage).len()
            })
        };
        assert_eq!(said("ext4", Some(1 << 20), 1 << 30), 0);
        assert_eq!(said("ext4", Some(24 << 20), 1 << 30), 1);
        assert_eq!(said("ext4", None, 1 << 30), 0);
        assert_eq!(said("btrfs", None, 1 << 30), 1);
        assert_eq!(said("btrfs", None, 1 << 20), 0);
    }
}
