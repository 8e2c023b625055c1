//! What the kernel reports about the array that a device is or lies on: md's files in sysfs, and device mapper's table
//! if it may be read. It opens no disk, compares nothing and decides nothing.

use crate::machine::{Mapper, Node, Part, Row, Span, Tree};
use rdsk_model::{ArrayFacts, SECTOR_BYTES};
use rdsk_sys::dm::{DmLine, DmQuestion, has_paths, only_describes};
use rdsk_sys::files::{read_number, read_text};

/// Stacked devices that are followed down to the one with several below it.
const MAX_LEVELS: usize = 8;
/// Arrays below an array; more are left out.
const MAX_ARRAYS: usize = 64;

/// The facts of the first device at or below `node` whose data lie on several others, and where `node` begins on it; `None` if there
/// is none.
pub(crate) fn facts(tree: &Tree, node: &Node, mapper: &Mapper<'_>) -> Option<ArrayFacts> {
    let mut at = tree.whole(node);
    let mut target_offset_bytes = start_bytes(node);
    for _ in 0..MAX_LEVELS {
        if at.directory.join("md").is_dir() && !at.slaves.is_empty() {
            return Some(ArrayFacts { target_offset_bytes, ..of_md(at) });
        }
        // Several paths lead to one device, whose members cannot be seen.
        if has_paths(at.dm_uuid().trim()) {
            return None;
        }
        let lower = at.slaves.iter().filter_map(|name| tree.get(name));
        let data: Vec<&Node> = lower.filter(|node| holds_data(node)).collect();
        match data.as_slice() {
            [] => return None,
            [only] => {
                let on_it = begins_on(at, only, mapper);
                let of_it = start_bytes(only);
                target_offset_bytes = target_offset_bytes.zip(on_it).zip(of_it).map(|((a, b), c)| a + b + c);
                at = tree.whole(only);
            }
            _ if is_bcache(at) => return Some(of_bcache(at)),
            _ => return Some(ArrayFacts { target_offset_bytes, ..of_dm(at, mapper) }),
        }
    }
    None
}

/// Where a partition begins on its disk; 0 for a whole device.
fn start_bytes(node: &Node) -> Option<u64> {
    if node.parent.is_none() {
        return Some(0);
    }
    read_number::<u64>(&node.directory.join("start"))?.checked_mul(SECTOR_BYTES)
}

/// Where a device of device mapper begins on the only one below it, if it lies there in one piece.
fn begins_on(above: &Node, below: &Node, mapper: &Mapper<'_>) -> Option<u64> {
    let table = mapper.table(above).ok()?;
    let piece = |row: &Row| match row.parts.as_slice() {
        [Part { device, span: Span::Linear { offset }, .. }] if *device == below.number => {
            offset.checked_sub(row.begin)
        }
        _ => None,
    };
    let first = piece(table.first()?)?;
    table.iter().all(|row| piece(row) == Some(first)).then_some(first)
}

/// The facts of the other arrays below `node`, top down, each once: RAID 1 below RAID 0, the arrays that carry the volumes of a group;
/// and those of a multipath device of which a path has failed, at `node` or below. Device mapper's words count for dm-raid, stripes and these only.
pub(crate) fn facts_below(
    tree: &Tree,
    node: &Node,
    first: Option<&ArrayFacts>,
    mapper: &Mapper<'_>,
) -> Vec<ArrayFacts> {
    let below = tree.stack(node).into_iter().filter_map(|name| tree.get(&name).cloned());
    let others = below.filter(|node| first.is_none_or(|first| first.device != node.kernel_name()));
    let arrays = others.filter_map(|node| {
        if node.directory.join("md").is_dir() && !node.slaves.is_empty() {
            return first.map(|_| of_md(&node));
        }
        let is_mapped = node.slaves.len() > 1 && node.directory.join("dm").is_dir();
        let facts = is_mapped.then(|| of_dm(&node, mapper))?;
        let has_lost_a_path = facts.degraded.is_some_and(|failed| failed > 0);
        match facts.level.as_deref() {
            Some("multipath") => has_lost_a_path.then_some(facts),
            Some(level) => {
                let has_layout = level.starts_with("raid") || level == "striped";
                (first.is_some() && has_layout).then_some(facts)
            }
            None => None,
        }
    });
    arrays.take(MAX_ARRAYS).collect()
}

fn holds_data(node: &Node) -> bool {
    let mapped_name = node.mapped_name.as_deref().unwrap_or_default();
    !only_describes(mapped_name.trim(), node.dm_uuid().trim())
}

/// The files of `Documentation/admin-guide/md.rst`; a file that does not exist at an array's level gives no value.
fn of_md(node: &Node) -> ArrayFacts {
    let md = node.directory.join("md");
    let word = |name: &str| read_text(&md.join(name)).map(|text| text.trim().to_owned());
    ArrayFacts {
        device: node.kernel_name(),
        source: "md".into(),
        level: word("level").filter(|level| !level.is_empty()),
        chunk_bytes: read_number::<u64>(&md.join("chunk_size")).filter(|&bytes| bytes > 0),
        layout: word("layout").filter(|layout| !layout.is_empty()),
        members: word("raid_disks").and_then(|text| text.split_whitespace().next()?.parse().ok()),
        activity: word("sync_action"),
        degraded: read_number(&md.join("degraded")),
        target_offset_bytes: None,
    }
}

/// A cached device of bcache, which has the directory of its backing device (Documentation/admin-guide/bcache.rst). The backing device
/// itself may be md's or device mapper's.
fn is_bcache(node: &Node) -> bool {
    let has = |name: &str| node.directory.join(name).is_dir();
    has("bcache") && !has("md") && !has("dm")
}

/// Its devices are the one behind it and the caches: no array.
fn of_bcache(node: &Node) -> ArrayFacts {
    ArrayFacts {
        device: node.kernel_name(),
        source: "bcache".into(),
        level: Some("bcache".into()),
        ..ArrayFacts::default()
    }
}

fn of_dm(node: &Node, mapper: &Mapper<'_>) -> ArrayFacts {
    let silent = ArrayFacts { device: node.kernel_name(), source: "dm".into(), ..ArrayFacts::default() };
    let ask = |question| mapper.ask(node, question).unwrap_or_default();
    worded(silent, &ask(DmQuestion::Table), &ask(DmQuestion::Status))
}

/// The facts from a table of one line (`Documentation/admin-guide/device-mapper`: striped, dm-raid); several lines are several devices, one
/// after the other, and stripes throughout where a striped volume grew.
fn worded(silent: ArrayFacts, table: &[DmLine], status: &[DmLine]) -> ArrayFacts {
    let has_only = |kind: &str| table.iter().all(|line| line.kind == kind);
    let stripes = |line: &DmLine| -> Vec<String> {
        line.parameters.split_whitespace().take(2).map(str::to_owned).collect()
    };
    let (line, rest) = match table {
        [line, rest @ ..] if rest.is_empty() || has_only("striped") => (line, rest),
        [_, ..] if has_only("linear") => return ArrayFacts { level: Some("linear".to_owned()), ..silent },
        _ => return silent,
    };
    if rest.iter().any(|other| stripes(other) != stripes(line)) {
        return silent;
    }
    let words: Vec<&str> = line.parameters.split_whitespace().collect();
    let sectors = |word: Option<&&str>| word.and_then(|word| word.parse::<u64>().ok());
    match line.kind.as_str() {
        "striped" => ArrayFacts {
            level: Some("striped".into()),
            members: sectors(words.first()),
            chunk_bytes: sectors(words.get(1)).map(|sectors| sectors * SECTOR_BYTES),
            ..silent
        },
        // <type> <#parameters> <chunk in sectors> … <#members> <metadata data>…
        "raid" => {
            let count = sectors(words.get(1)).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            let states: Vec<&str> =
                status.first().map_or_else(Vec::new, |line| line.parameters.split_whitespace().collect());
            // <type> <#members> <health> <sync ratio> <sync action> <mismatches> …
            // `D` has failed, `-` is missing.
            let is_missing = |state: &char| ['D', '-'].contains(state);
            let missing = states.get(2).map(|health| health.chars().filter(is_missing).count() as u64);
            let kind = words.first().map(|word| (*word).to_owned()).unwrap_or_default();
            let (level, layout) = kind.split_once('_').map_or((kind.as_str(), None), |(a, b)| (a, Some(b)));
            let copies = || copies_of_raid10(&words[..words.len().min(2 + count)], layout);
            ArrayFacts {
                level: Some(level.to_owned()).filter(|level| !level.is_empty()),
                layout: if level == "raid10" { Some(copies()) } else { layout.map(str::to_owned) },
                chunk_bytes: sectors(words.get(2)).filter(|&n| n > 0).map(|sectors| sectors * SECTOR_BYTES),
                members: sectors(words.get(2 + count)),
                activity: states.get(4).map(|&word| word.to_owned()),
                degraded: missing,
                ..silent
            }
        }
        // Paths are no members.
        "multipath" => ArrayFacts {
            level: Some("multipath".into()),
            degraded: status.first().map(|line| failed_paths(&line.parameters)),
            ..silent
        },
        kind => ArrayFacts { level: Some(kind.to_owned()), ..silent },
    }
}

/// The copies of RAID 10 as `mdadm --detail` writes them: `near=2`, which dm-raid has unless its parameters name others.
fn copies_of_raid10(parameters: &[&str], format: Option<&str>) -> String {
    let named = |name: &str| parameters.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    let format = format.or_else(|| named("raid10_format")).unwrap_or("near");
    format!("{format}={}", named("raid10_copies").unwrap_or("2"))
}

/// The paths that the status of a multipath device calls failed: `… 8:16 F 1 …`, where `A` is one that works
/// (drivers/md/dm-mpath.c, `multipath_status`).
fn failed_paths(status: &str) -> u64 {
    let words: Vec<&str> = status.split_whitespace().collect();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_device =
        |word: &str| word.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    words.windows(2).filter(|pair| is_device(pair[0]) && pair[1] == "F").count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};
    use std::collections::BTreeMap;

    fn line(kind: &str, parameters: &str) -> DmLine {
        DmLine { start_sectors: 0, length_sectors: 8, kind: kind.into(), parameters: parameters.into() }
    }

    fn read(table: &[DmLine], status: &[DmLine]) -> ArrayFacts {
        worded(ArrayFacts { source: "dm".into(), ..ArrayFacts::default() }, table, status)
    }

    /// The array below the device `name` of a tree, if device mapper gives no answers.
    fn found(fake: &FakeSys, name: &str) -> Option<(String, Option<String>)> {
        let tree = Tree::read(&fake.sys()).unwrap();
        let facts = facts(&tree, tree.get(name).unwrap(), &Mapper::Answers(&BTreeMap::new()))?;
        Some((facts.device, facts.level))
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_pool_of_thin_volumes_is_no_array_but_what_its_data_lie_on() {
        let uuid = |suffix: &str| format!("LVM-{}{suffix}", "a".repeat(64));
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::scsi("sdc"))
            .disk(FakeDisk::md("md0", "raid5", 3, 64 << 10, 16 * GIB))
            .disk(FakeDisk::dm("dm-0", "vg-pool_tmeta", &uuid("-tmeta"), GIB))
            .disk(FakeDisk::dm("dm-1", "vg-pool_tdata", &uuid("-tdata"), 8 * GIB))
            .disk(FakeDisk::dm("dm-2", "vg-pool-tpool", &uuid("-tpool"), 8 * GIB))
            .disk(FakeDisk::dm("dm-3", "vg-thin", &uuid(""), 4 * GIB))
            .holder("sda", "md0")
            .holder("sdb", "md0")
            .holder("sdc", "md0")
            .holder("md0", "dm-0")
            .holder("md0", "dm-1")
            .holder("dm-0", "dm-2")
            .holder("dm-1", "dm-2")
            .holder("dm-2", "dm-3");
        assert_eq!(found(&fake, "dm-3"), Some(("md0".into(), Some("raid5".into()))));
    }

    /// A volume over two mirrors of two disks each, one of which lacks a disk.
    #[test]
    fn arrays_below_the_first_one_are_told_too() {
        let uuid = format!("LVM-{}", "a".repeat(64));
        let mirror = |name: &str| FakeDisk::md(name, "raid1", 2, 0, 8 * GIB);
        let mut fake = FakeSys::new();
        for disk in ["sda", "sdb", "sdc", "sdd"] {
            fake = fake.disk(FakeDisk::scsi(disk));
        }
        let fake =
            fake.disk(mirror("md0")).disk(mirror("md1")).disk(FakeDisk::dm("dm-0", "vg-lv", &uuid, 16 * GIB));
        let fake = fake.holder("sda", "md0").holder("sdb", "md0").holder("sdc", "md1").holder("sdd", "md1");
        let fake = fake.holder("md0", "dm-0").holder("md1", "dm-0");
        std::fs::write(fake.sys().join("block/md1/md/degraded"), "1\n").unwrap();
        let tree = Tree::read(&fake.sys()).unwrap();
        let device = |name: &str| {
            crate::facts::device(&tree, tree.get(name).unwrap(), &Mapper::Answers(&BTreeMap::new()))
        };
        let told = |name: &str| -> Vec<(String, Option<u64>)> {
            device(name).arrays_below.into_iter().map(|array| (array.device, array.degraded)).collect()
        };
        let volume = told("dm-0");
        assert_eq!(volume.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["md0", "md1"]);
        assert_eq!(volume[1].1, Some(1));
        assert!(told("md1").is_empty(), "it is the first one itself");
        assert!(told("sda").is_empty(), "a disk lies on none");
    }

    /// LVM's volume with stripes over mirrors of device mapper, and a mirror over stripes.
    #[test]
    fn stripes_below_the_first_array_are_told_too() {
        let mut fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
        fake = fake.disk(FakeDisk::md("md0", "raid1", 2, 0, 8 * GIB));
        for number in 0..2 {
            let name = format!("dm-{number}");
            let striped = FakeDisk::dm(&name, &format!("stripes{number}"), "", 8 * GIB);
            fake = fake.disk(striped).holder("sda", &name).holder("sdb", &name).holder(&name, "md0");
        }
        let tree = Tree::read(&fake.sys()).unwrap();
        let table =
            |name: &str| (format!("table {name}"), "0 16777216 striped 2 128 8:0 0 8:16 0\n".to_owned());
        let answers = BTreeMap::from([table("dm-0"), table("dm-1")]);
        let device = crate::facts::device(&tree, tree.get("md0").unwrap(), &Mapper::Answers(&answers));
        assert_eq!(device.array.unwrap().device, "md0");
        let told = device.arrays_below.iter().map(|array| (array.device.as_str(), array.chunk_bytes));
        assert_eq!(told.collect::<Vec<_>>(), [("dm-0", Some(64 << 10)), ("dm-1", Some(64 << 10))]);
    }

    #[test]
    fn a_device_with_a_cache_of_bcache_is_known_as_one_and_what_is_below_it_too() {
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::scsi("sdc"))
            .disk(FakeDisk::md("md0", "raid5", 2, 64 << 10, 8 * GIB))
            .disk(FakeDisk::virtual_disk("bcache0", (252, 0), 8 * GIB))
            .holder("sda", "md0")
            .holder("sdb", "md0")
            .holder("md0", "bcache0")
            .holder("sdc", "bcache0");
        for name in ["bcache0", "md0"] {
            std::fs::create_dir(fake.sys().join("block").join(name).join("bcache")).unwrap();
        }
        let tree = Tree::read(&fake.sys()).unwrap();
        let device =
            crate::facts::device(&tree, tree.get("bcache0").unwrap(), &Mapper::Answers(&BTreeMap::new()));
        let array = device.array.unwrap();
        assert_eq!((array.source.as_str(), array.level.as_deref()), ("bcache", Some("bcache")));
        assert_eq!(device.arrays_below.len(), 1);
        assert_eq!(found(&fake, "md0"), Some(("md0".into(), Some("raid5".into()))));
    }

    #[test]
    fn paths_of_one_device_are_no_array() {
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::dm("dm-0", "mpatha", "mpath-3600508b4000156d7", 8 * GIB))
            .holder("sda", "dm-0")
            .holder("sdb", "dm-0");
        assert_eq!(found(&fake, "dm-0"), None);
    }

    #[test]
    fn a_path_that_has_failed_is_counted() {
        let table = [line("multipath", "0 0 2 1 round-robin 0 1 1 8:16 10 round-robin 0 1 1 8:0 10")];
        let failed = |status: &str| read(&table, &[line("multipath", status)]);
        let one = failed("2 0 0 0 2 2 E 0 1 0 8:16 F 1 A 0 1 0 8:0 A 0 ");
        assert_eq!((one.level.as_deref(), one.members, one.degraded), (Some("multipath"), None, Some(1)));
        assert_eq!(failed("2 0 0 0 1 1 A 0 2 2 8:16 A 0 0 1 8:32 A 0 0 1").degraded, Some(0));
        assert_eq!(read(&table, &[]).degraded, None, "without the right to ask the table is unknown");
    }

    /// Devices of multipath-tools are no array, so that this is all that is said of them.
    #[test]
    fn a_failed_path_is_told_at_the_device_and_above_it() {
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::dm("dm-0", "mpatha", "mpath-3600508b4000156d7", 8 * GIB))
            .disk(FakeDisk::dm("dm-1", "vg-lv", &format!("LVM-{}", "a".repeat(64)), 4 * GIB))
            .holder("sda", "dm-0")
            .holder("sdb", "dm-0")
            .holder("dm-0", "dm-1");
        let tree = Tree::read(&fake.sys()).unwrap();
        let told = |state: &str, name: &str| -> Vec<(String, Option<u64>)> {
            let row = |words: &str| format!("0 16777216 multipath {words}\n");
            let answers = BTreeMap::from([
                ("table dm-0".to_owned(), row("0 0 1 1 service-time 0 2 2 8:0 1 1 8:16 1 1")),
                (
                    "status dm-0".to_owned(),
                    row(&format!("2 0 0 0 1 1 A 0 2 2 8:0 {state} 1 0 1 8:16 A 0 0 1")),
                ),
            ]);
            let device = crate::facts::device(&tree, tree.get(name).unwrap(), &Mapper::Answers(&answers));
            assert_eq!(device.array, None);
            device.arrays_below.into_iter().map(|array| (array.device, array.degraded)).collect()
        };
        assert_eq!(told("F", "dm-0"), [("dm-0".to_owned(), Some(1))]);
        assert_eq!(told("F", "dm-1"), [("dm-0".to_owned(), Some(1))]);
        assert!(told("A", "dm-1").is_empty());
    }

    #[test]
    fn tables_are_read_as_their_documents_say() {
        let striped = read(&[line("striped", "3 128 8:0 0 8:16 0 8:32 0")], &[]);
        assert_eq!((striped.level.as_deref(), striped.members), (Some("striped"), Some(3)));
        assert_eq!(striped.chunk_bytes, Some(65_536));
        let raid = read(
            &[line("raid", "raid5_ls 3 128 region_size 1024 3 254:0 254:1 254:2 254:3 254:4 254:5")],
            &[line("raid", "raid5_ls 3 AAa 32/128 resync 0 0 -")],
        );
        assert_eq!((raid.level.as_deref(), raid.layout.as_deref()), (Some("raid5"), Some("ls")));
        assert_eq!((raid.chunk_bytes, raid.members), (Some(65_536), Some(3)));
        assert_eq!((raid.activity.as_deref(), raid.degraded), (Some("resync"), Some(0)));
        let status = |health: &str| line("raid", &format!("raid5_ls 3 {health} 128/128 idle 0 0 -"));
        for (health, degraded) in [("AAA", 0), ("ADA", 1), ("A-A", 1), ("-AD", 2)] {
            assert_eq!(read(&[line("raid", "raid5_ls 1 128 3")], &[status(health)]).degraded, Some(degraded));
        }
        let linear = read(&[line("linear", "8:0 0"), line("linear", "8:16 0")], &[]);
        assert_eq!((linear.level.as_deref(), linear.chunk_bytes), (Some("linear"), None));
        // A striped volume that grew where it could not go on.
        let grown = |second: &str| {
            let table = [line("striped", "2 128 8:0 2048 8:16 2048"), line("striped", second)];
            let facts = read(&table, &[]);
            (facts.level, facts.members, facts.chunk_bytes)
        };
        assert_eq!(grown("2 128 8:32 2048 8:48 2048"), (Some("striped".into()), Some(2), Some(65_536)));
        assert_eq!(grown("3 128 8:32 0 8:48 0 8:64 0"), (None, None, None));
        let mixed = read(&[line("striped", "2 128 8:0 0 8:16 0"), line("linear", "8:32 0")], &[]);
        assert_eq!(mixed.level, None);
        assert_eq!(read(&[], &[]).level, None, "without the right to ask the table is unknown");
        assert_eq!(read(&[line("raid", "")], &[]).chunk_bytes, None);
    }

    /// A volume in two pieces that follow each other, on a partition at 1 MiB of an array; and volumes that lie otherwise.
    #[test]
    fn where_a_volume_begins_on_the_array_is_the_sum_of_what_lies_between() {
        let uuid = format!("LVM-{}", "a".repeat(64));
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::md("md0", "raid5", 3, 64 << 10, 16 * GIB))
            .partition("md0", 1, 1 << 20, 8 * GIB)
            .disk(FakeDisk::dm("dm-0", "vg-lv", &uuid, 2 * GIB))
            .holder("sda", "md0")
            .holder("sdb", "md0")
            .holder("md0p1", "dm-0");
        let tree = Tree::read(&fake.sys()).unwrap();
        let below = tree.get("md0p1").unwrap().number;
        let begins = |table: &str| {
            let answers =
                BTreeMap::from([("table dm-0".to_owned(), table.replace("LOWER", &below.to_string()))]);
            facts(&tree, tree.get("dm-0").unwrap(), &Mapper::Answers(&answers)).unwrap().target_offset_bytes
        };
        let table = "0 2048 linear LOWER 640\n2048 2048 linear LOWER 2688\n";
        assert_eq!(begins(table), Some((1 << 20) + 640 * 512));
        assert_eq!(begins("0 4096 crypt aes-xts-plain64 - 0 LOWER 4096\n"), Some((1 << 20) + 4096 * 512));
        for table in [
            "0 2048 linear LOWER 640\n2048 2048 linear LOWER 9000\n",
            "0 4096 thin LOWER 1\n",
            "0 4096 linear 8:99 0\n",
            "",
        ] {
            assert_eq!(begins(table), None, "{table}");
        }
        let answers = BTreeMap::new();
        let of = |name: &str| facts(&tree, tree.get(name).unwrap(), &Mapper::Answers(&answers)).unwrap();
        assert_eq!(
            (of("md0").target_offset_bytes, of("md0p1").target_offset_bytes),
            (Some(0), Some(1 << 20))
        );
    }

    #[test]
    fn raid10_of_device_mapper_has_its_copies_in_the_words_of_mdadm() {
        for (parameters, layout) in [
            ("raid10 3 128 region_size 1024 4 - 8:16 - 8:32 - 8:48 - 8:64", "near=2"),
            ("raid10 5 128 raid10_copies 3 raid10_format far 4 - 8:16 - 8:32 - 8:48 - 8:64", "far=3"),
            ("raid10_offset 1 128 4 - 8:16 - 8:32 - 8:48 - 8:64", "offset=2"),
        ] {
            let facts = read(&[line("raid", parameters)], &[]);
            assert_eq!((facts.layout.as_deref(), facts.members), (Some(layout), Some(4)), "{parameters}");
        }
    }
}
