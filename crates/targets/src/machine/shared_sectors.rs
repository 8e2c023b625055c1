//! Which bytes of which disks a device is built on, through partitions, device mapper, md and loop devices, and whether
//! two devices share any. It works on what `Machine` has read.

use crate::machine::Machine;
use crate::machine::device_mapper::{Part, Role, Row, Span};
use crate::machine::md_container;
use crate::machine::sysfs::Node;
use rdsk_model::SECTOR_BYTES;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{is_numbered, read_number};

/// Layers of a stack, and ranges of a device; beyond them nothing is proven.
const MAX_DEPTH: usize = 32;
const MAX_EXTENTS: usize = 1 << 16;

/// Which bytes of a device are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The bytes that writes to it change.
    Writes,
    /// The bytes that its content depends on.
    DependsOn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Extent {
    /// The disk, or the name that stands for all paths of its LUN.
    medium: String,
    begin: u64,
    end: u64,
    /// The layers on the way down that do not report where exactly they put data, from above.
    opaque_ranges: Vec<OpaqueRange>,
}

/// A range of a layer below which positions are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpaqueRange {
    device: String,
    begin: u64,
    end: u64,
    volume: Option<Volume>,
}

/// What a layer keeps apart from everything else that it keeps for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Volume {
    /// A volume of a thin pool, by its number there.
    Thin(u64),
    /// What a driver keeps for one of its devices in a layer that it shares out among them.
    SharedOut(DeviceNumber),
}

impl Volume {
    fn is_apart_from(self, other: Self) -> bool {
        match (self, other) {
            (Self::Thin(volume), Self::Thin(other)) => volume != other,
            (Self::SharedOut(volume), Self::SharedOut(other)) => volume != other,
            _ => false,
        }
    }
}

/// The ranges of disks that a device is built on.
///
/// A worked example: `sda1` has the bytes of `sda` from 1 MiB to 10 GiB, `sda2` those from 10 GiB to 100 GiB, and `dm-0` is `linear` over
/// 20 GiB of `sda2` from 1 MiB on. Down from `dm-0`, bytes 0 to 20 GiB become 1 MiB to 20 GiB + 1 MiB of `sda2`, and 10 GiB + 1 MiB to
/// 30 GiB + 1 MiB of `sda`. `sda1` ends at 10 GiB, so that the two share nothing; another volume from byte 15 GiB of `sda2` on begins at
/// 25 GiB of `sda`, and shares 5 GiB + 1 MiB. Volume 7 of a thin pool reaches all of the pool's disk, and so does volume 8; both go through
/// the opaque pool, which keeps them apart: [`Sharing::No`]. The pool itself and volume 7 are [`Sharing::ByPool`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    list: Vec<Extent>,
    /// Why the list may name more than the device reaches, or may lack some of it.
    guessed: Option<String>,
    /// Whether the list ends before everything is named.
    is_cut: bool,
}

/// Whether two devices share bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    No,
    Yes,
    /// The first is a volume of a pool, and the other spans the whole pool.
    ByPool,
    /// They may; why that is not known.
    Perhaps(String),
}

impl Extents {
    pub(crate) fn of(machine: &Machine<'_>, node: &Node, reach: Reach) -> Self {
        let mut descent = Descent { machine, reach, extents: Self::default() };
        let whole = ByteRange { begin: 0, end: size_of(node), opaque_ranges: Vec::new(), depth: 0 };
        descent.down(node, &whole);
        descent.extents
    }

    pub(crate) fn share(&self, other: &Self) -> Sharing {
        if self.is_cut || other.is_cut {
            let why = self.guessed.iter().chain(&other.guessed).next();
            return Sharing::Perhaps(why.cloned().unwrap_or_else(|| "the stack is too large".to_owned()));
        }
        let pairs =
            self.list.iter().flat_map(|mine| other.list.iter().map(move |theirs| overlap_of(mine, theirs)));
        let closest = pairs.max().unwrap_or(Overlap::No);
        match (closest, self.guessed.as_ref().or(other.guessed.as_ref())) {
            (Overlap::No, _) => Sharing::No,
            (_, Some(why)) => Sharing::Perhaps(why.clone()),
            (Overlap::ByPool, None) => Sharing::ByPool,
            (Overlap::Yes, None) => Sharing::Yes,
        }
    }

    /// Whether they reach a pool otherwise than as one of its volumes.
    pub(crate) fn span_pool(&self, pool: &Node) -> bool {
        let first = |extent: &Extent| {
            extent.opaque_ranges.iter().find(|range| range.device == pool.name).map(|range| range.volume)
        };
        self.list.iter().any(|extent| first(extent) == Some(None))
    }
}

/// Whether two ranges overlap; the closest relation comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Overlap {
    No,
    ByPool,
    Yes,
}

/// If both pass through the same layer, that layer keeps them apart or does not; below it nothing can be compared.
fn overlap_of(left: &Extent, right: &Extent) -> Overlap {
    let overlap = |begin: u64, end: u64, other_begin: u64, other_end: u64| {
        if begin < other_end && other_begin < end { Overlap::Yes } else { Overlap::No }
    };
    for range in &left.opaque_ranges {
        if let Some(same) = right.opaque_ranges.iter().find(|other| other.device == range.device) {
            return match (range.volume, same.volume) {
                (Some(volume), Some(other)) if volume.is_apart_from(other) => Overlap::No,
                (Some(Volume::Thin(_)), None) => Overlap::ByPool,
                (volume, other) if volume == other => overlap(range.begin, range.end, same.begin, same.end),
                // Any block of the layer may be one of the volume.
                _ => Overlap::Yes,
            };
        }
    }
    if left.medium == right.medium {
        overlap(left.begin, left.end, right.begin, right.end)
    } else {
        Overlap::No
    }
}

#[derive(Clone)]
struct ByteRange {
    begin: u64,
    end: u64,
    /// The opaque layers on the way here, from above.
    opaque_ranges: Vec<OpaqueRange>,
    depth: usize,
}

impl ByteRange {
    /// The bytes from `begin` to `end` of the next device down.
    fn below(&self, begin: u64, end: u64) -> Self {
        Self { begin, end, opaque_ranges: self.opaque_ranges.clone(), depth: self.depth + 1 }
    }

    /// The same bytes on the next device down, where they start `offset` bytes later.
    fn shifted(&self, offset: u64) -> Self {
        self.below(self.begin.saturating_add(offset), self.end.saturating_add(offset))
    }

    /// The same bytes of `node`, which does not report where below it they lie.
    fn through(&self, node: &Node, volume: Option<Volume>) -> Self {
        let mut slice = self.clone();
        let range = OpaqueRange { device: node.name.clone(), begin: self.begin, end: self.end, volume };
        slice.opaque_ranges.push(range);
        slice
    }
}

struct Descent<'machine, 'roots> {
    machine: &'machine Machine<'roots>,
    reach: Reach,
    extents: Extents,
}

impl Descent<'_, '_> {
    fn down(&mut self, node: &Node, slice: &ByteRange) {
        if slice.depth > MAX_DEPTH || self.extents.list.len() >= MAX_EXTENTS {
            self.extents.guessed = Some(format!("the stack below {} is too large", node.shown()));
            self.extents.is_cut = true;
            return;
        }
        if let Some(parent) = node.parent.as_deref().and_then(|parent| self.machine.tree.get(parent)) {
            let start = read_number::<u64>(&node.directory.join("start")).unwrap_or(0);
            return self.down(parent, &slice.shifted(start.saturating_mul(SECTOR_BYTES)));
        }
        if let Some(below) = self.machine.device_below_loop(node) {
            let offset = read_number::<u64>(&node.directory.join("loop/offset")).unwrap_or(0);
            return self.down(below, &slice.shifted(offset));
        }
        if node.slaves.is_empty() {
            let medium = self.machine.luns.medium(&node.name).to_owned();
            let ByteRange { begin, end, opaque_ranges, .. } = slice.clone();
            self.extents.list.push(Extent { medium, begin, end, opaque_ranges });
            return;
        }
        match self.machine.table(node) {
            Some(Ok(rows)) => {
                for row in rows.iter().filter(|row| row.begin < slice.end && slice.begin < row.end) {
                    let (begin, end) = (slice.begin.max(row.begin), slice.end.min(row.end));
                    let slice = ByteRange { begin, end, ..slice.clone() };
                    for part in &row.parts {
                        self.part(node, row, part, &slice);
                    }
                }
                self.anywhere(node, rows, slice);
            }
            Some(Err(reason)) => {
                self.extents.guessed =
                    Some(format!("the table of {} cannot be read ({reason})", node.shown()));
                self.anywhere(node, &[], slice);
            }
            // md, bcache and others report what they are made of, but not where they put what.
            None => self.anywhere(node, &[], slice),
        }
    }

    fn part(&mut self, node: &Node, row: &Row, part: &Part, slice: &ByteRange) {
        if part.role == Role::Origin && self.reach == Reach::Writes {
            return;
        }
        let Some(below) = self.machine.tree.by_number(part.device) else {
            self.extents.guessed =
                Some(format!("sysfs does not know {}, a part of {}", part.device, node.shown()));
            return;
        };
        let size = size_of(below);
        let next = match part.span {
            Span::Linear { offset } => {
                let shift = |at: u64| (at - row.begin).saturating_add(offset);
                slice.below(shift(slice.begin), shift(slice.end))
            }
            Span::Within { begin, end } => slice.through(node, None).below(begin, end),
            Span::Anywhere => slice.through(node, None).below(0, size),
            Span::Volume { id } => {
                slice.through(node, None).below(0, size).through(below, Some(Volume::Thin(id)))
            }
        };
        self.down(below, &next);
    }

    /// What sysfs shows below a device and its table does not name: some targets write a path or put a word before the
    /// number, and some devices have no table.
    fn anywhere(&mut self, node: &Node, rows: &[Row], slice: &ByteRange) {
        let is_named =
            |below: &Node| rows.iter().flat_map(|row| &row.parts).any(|part| part.device == below.number);
        for below in node.slaves.iter().filter_map(|name| self.machine.tree.get(name)) {
            if !is_named(below) {
                let (begin, end) = md_container::range_on(node, below).unwrap_or((0, size_of(below)));
                let next = slice.through(node, None).below(begin, end);
                match shared_out(node, below) {
                    None => self.down(below, &next),
                    volume => self.down(below, &next.through(below, volume)),
                }
            }
        }
    }
}

/// What the driver of `node` keeps for it alone in `below`, if it shares that out among several of its devices: the cache of a set of
/// bcache, whose keys have the number of their device, and a disk with metadata of DRBD, where each device has its place (`meta-disk`
/// of drbd.conf). Both claim what has the data of a device for this device alone, so that no second one is built on it
/// (drivers/md/bcache/super.c; drivers/block/drbd/drbd_nl.c, `drbd_m_holder`).
fn shared_out(node: &Node, below: &Node) -> Option<Volume> {
    const DRIVERS: [&str; 2] = ["bcache", "drbd"];
    let driver = DRIVERS.into_iter().find(|driver| is_numbered(&node.name, driver))?;
    let users = below.holders.iter().filter(|holder| is_numbered(holder, driver)).count();
    (users > 1).then_some(Volume::SharedOut(node.number))
}

/// Size in bytes; a device that does not report it reaches everything.
fn size_of(node: &Node) -> u64 {
    node.size_bytes().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    fn sharing(fake: &Fake, writes: &str, rests: &str) -> Sharing {
        fake.with(|machine, _| {
            let of = |name, reach| Extents::of(machine, machine.tree.get(name).unwrap(), reach);
            of(writes, Reach::Writes).share(&of(rests, Reach::DependsOn))
        })
    }

    /// Two linear devices on one disk.
    fn linear(second_offset: u64) -> Fake {
        Fake::new()
            .disk("sda", "8:0")
            .disk("dm-0", "253:0")
            .disk("dm-1", "253:1")
            .stack("dm-0", "sda")
            .stack("dm-1", "sda")
            .answer("table dm-0", "0 2048 linear 8:0 0")
            .answer("table dm-1", &format!("0 2048 linear 8:0 {second_offset}"))
    }

    #[test]
    fn neighbours_share_nothing_and_overlaps_do() {
        assert_eq!(sharing(&linear(2048), "dm-0", "dm-1"), Sharing::No);
        assert_eq!(sharing(&linear(2047), "dm-0", "dm-1"), Sharing::Yes);
        assert_eq!(sharing(&linear(2048), "sda", "dm-1"), Sharing::Yes);
    }

    #[test]
    fn without_tables_nothing_is_sure() {
        let fake = Fake::new().disk("sda", "8:0").disk("dm-0", "253:0").disk("dm-1", "253:1");
        let fake = fake.stack("dm-0", "sda").stack("dm-1", "sda").without_answer("table dm-0");
        let Sharing::Perhaps(why) = sharing(&fake, "dm-0", "dm-1") else { panic!("sure without a table") };
        assert!(why.contains("the table of dm-0 cannot be read"), "{why}");
    }

    #[test]
    fn partitions_lie_where_they_start() {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sda/sda1", "8:1")
            .disk("sda/sda2", "8:2")
            .disk("sdb", "8:16")
            .attribute("sda/sda1/start", "0\n")
            .attribute("sda/sda1/size", "1024\n")
            .attribute("sda/sda2/start", "1024\n");
        assert_eq!(sharing(&fake, "sda1", "sda2"), Sharing::No);
        assert_eq!(sharing(&fake, "sda", "sda2"), Sharing::Yes);
        assert_eq!(sharing(&fake, "sda", "sdb"), Sharing::No);
        let overlapping = fake.attribute("sda/sda2/start", "1023\n");
        assert_eq!(sharing(&overlapping, "sda1", "sda2"), Sharing::Yes);
    }

    #[test]
    fn partitions_of_an_array_are_kept_apart_by_the_array() {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sdb", "8:16")
            .disk("md0", "9:0")
            .disk("md0/md0p1", "259:0")
            .disk("md0/md0p2", "259:1")
            .attribute("md0/md0p1/start", "0\n")
            .attribute("md0/md0p1/size", "1024\n")
            .attribute("md0/md0p2/start", "1024\n")
            .attribute("md0/md0p2/size", "1024\n")
            .stack("md0", "sda")
            .stack("md0", "sdb");
        assert_eq!(sharing(&fake, "md0p1", "md0p2"), Sharing::No);
        assert_eq!(sharing(&fake, "md0", "md0p2"), Sharing::Yes);
        assert_eq!(sharing(&fake, "md0p1", "sdb"), Sharing::Yes);
    }

    /// An LVM thin pool with two volumes, its data on sda and its metadata on sdb.
    #[test]
    fn volumes_of_a_pool_are_kept_apart_by_the_pool() {
        let mut fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16");
        for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2"), ("dm-3", "253:3")] {
            fake = fake.disk(name, number);
        }
        let fake = fake
            .stack("dm-0", "sda")
            .stack("dm-0", "sdb")
            .stack("dm-1", "dm-0")
            .stack("dm-2", "dm-0")
            .stack("dm-3", "dm-0")
            .answer("table dm-0", "0 2048 thin-pool 8:16 8:0 128 0 0")
            .answer("table dm-1", "0 2048 thin 253:0 1")
            .answer("table dm-2", "0 2048 thin 253:0 2");
        assert_eq!(sharing(&fake, "dm-1", "dm-2"), Sharing::No);
        assert_eq!(sharing(&fake, "dm-1", "dm-1"), Sharing::Yes);
        for (writes, rests) in [("sda", "dm-2"), ("dm-1", "sda")] {
            assert_eq!(sharing(&fake, writes, rests), Sharing::Yes, "{writes} {rests}");
        }
        for pool in ["dm-0", "dm-3"] {
            assert_eq!(sharing(&fake, "dm-2", pool), Sharing::ByPool, "{pool} has other blocks for it");
            assert_eq!(sharing(&fake, pool, "dm-2"), Sharing::Yes, "{pool} is what the volume lies in");
        }
        fake.with(|machine, _| {
            let node = |name| machine.tree.get(name).unwrap();
            let spans = |name| Extents::of(machine, node(name), Reach::Writes).span_pool(node("dm-0"));
            assert!(spans("dm-0") && spans("dm-3") && !spans("dm-2") && !spans("sda"));
        });
    }

    /// Two devices with data of their own on sda and sdb, each built on a third one, too, on which another one is linear.
    fn sharing_a_third(name: &str) -> Fake {
        let (one, other) = (format!("{name}0"), format!("{name}1"));
        Fake::new()
            .disk("sda", "8:0")
            .disk("sdb", "8:16")
            .disk("sdc", "8:32")
            .disk("md0", "9:0")
            .disk("md0/md0p1", "259:0")
            .disk("dm-0", "253:0")
            .disk(&one, "240:0")
            .disk(&other, "240:1")
            .stack("md0", "sdc")
            .stack("dm-0", "md0")
            .stack(&one, "sda")
            .stack(&one, "md0")
            .stack(&other, "sdb")
            .stack(&other, "md0")
    }

    #[test]
    fn what_bcache_and_drbd_share_out_is_kept_apart_by_them() {
        for driver in ["bcache", "drbd"] {
            let (one, other) = (format!("{driver}0"), format!("{driver}1"));
            let fake = sharing_a_third(driver);
            assert_eq!(sharing(&fake, &one, &other), Sharing::No, "{driver}");
            assert_eq!(sharing(&fake, &one, &one), Sharing::Yes, "{driver}");
            for past in ["sda", "sdc", "md0", "md0p1", "dm-0"] {
                assert_eq!(sharing(&fake, past, &one), Sharing::Yes, "{past} {driver}");
                assert_eq!(sharing(&fake, &one, past), Sharing::Yes, "{driver} {past}");
            }
        }
        for unknown in ["zloop", "bcached"] {
            let fake = sharing_a_third(unknown);
            let (one, other) = (format!("{unknown}0"), format!("{unknown}1"));
            assert_eq!(sharing(&fake, &one, &other), Sharing::Yes, "{unknown}");
        }
    }

    /// As mdadm assembles IMSM: two arrays lie side by side on the disks of the container md127.
    #[test]
    fn arrays_in_a_container_lie_where_they_say() {
        let mut fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16");
        for (name, version, offset) in
            [("md126", "external:/md127/0\n", 0), ("md125", "external:-md127/1\n", 2048)]
        {
            fake = fake
                .disk(name, &format!("9:{}", &name[2..]))
                .attribute(&format!("{name}/md/metadata_version"), version)
                .attribute(&format!("{name}/md/reshape_position"), "none\n");
            for disk in ["sda", "sdb"] {
                let place = format!("{name}/md/dev-{disk}");
                fake = fake
                    .attribute(&format!("{place}/offset"), &format!("{offset}\n"))
                    .attribute(&format!("{place}/size"), "1024\n")
                    .stack(name, disk);
            }
        }
        assert_eq!(sharing(&fake, "md126", "md125"), Sharing::No);
        assert_eq!(sharing(&fake, "md125", "sda"), Sharing::Yes);
        let overlapping = fake.attribute("md125/md/dev-sdb/offset", "2047\n");
        assert_eq!(sharing(&overlapping, "md126", "md125"), Sharing::Yes);
        let silent = overlapping.attribute("md125/md/reshape_position", "8\n");
        assert_eq!(sharing(&silent, "md126", "md125"), Sharing::Yes, "it may lie anywhere");
    }

    #[test]
    fn what_sysfs_names_below_is_not_lost_because_a_table_writes_it_otherwise() {
        let fake = |table| {
            Fake::new()
                .disk("sda", "8:0")
                .disk("dm-0", "253:0")
                .disk("dm-1", "253:1")
                .disk("dm-2", "253:2")
                .stack("dm-0", "sda")
                .stack("dm-1", "dm-0")
                .stack("dm-2", "sda")
                .answer("table dm-0", "0 2048 linear 8:0 0")
                .answer("table dm-1", table)
                .answer("table dm-2", "0 2048 linear 8:0 1024")
        };
        for table in
            ["0 2048 vdo V4 /dev/mapper/data 512 on", "0 2048 integrity 8:0 0 4 J 1 meta_device:253:0"]
        {
            let fake = fake(table);
            assert_eq!(sharing(&fake, "dm-2", "dm-1"), Sharing::Yes, "{table}");
        }
    }

    #[test]
    fn a_list_that_was_cut_off_proves_nothing() {
        let cut = Extents { list: Vec::new(), guessed: None, is_cut: true };
        assert!(matches!(cut.share(&Extents::default()), Sharing::Perhaps(_)));
        assert!(matches!(Extents::default().share(&cut), Sharing::Perhaps(_)));
    }

    /// As LVM creates them: origin, its real volume, and a snapshot with a store of its own.
    #[test]
    fn a_snapshot_rests_on_its_origin_and_writes_beside_it() {
        let mut fake = Fake::new().disk("sda", "8:0");
        for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2"), ("dm-3", "253:3")] {
            fake = fake.disk(name, number);
        }
        let fake = fake
            .stack("dm-0", "sda")
            .stack("dm-1", "sda")
            .stack("dm-2", "dm-0")
            .stack("dm-3", "dm-0")
            .stack("dm-3", "dm-1")
            .answer("table dm-0", "0 1024 linear 8:0 0")
            .answer("table dm-1", "0 1024 linear 8:0 1024")
            .answer("table dm-2", "0 1024 snapshot-origin 253:0")
            .answer("table dm-3", "0 1024 snapshot 253:0 253:1 P 8");
        assert_eq!(sharing(&fake, "dm-2", "dm-3"), Sharing::Yes, "the origin below a snapshot");
        assert_eq!(sharing(&fake, "dm-3", "dm-2"), Sharing::No, "a snapshot beside its origin");
        assert_eq!(sharing(&fake, "dm-1", "dm-3"), Sharing::Yes);
    }
}
