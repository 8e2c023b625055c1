//! Devices that belong to something larger without a label of their own that util-linux knows: further devices of f2fs, realtime
//! devices of XFS, metadata of DRBD and of device-mapper targets that are not active. What says so are the first blocks of the device, or of
//! the one that has the label. It reads these blocks and decides nothing.

use crate::identity::Inventory;
use crate::labels::signature::Signature;
use crate::labels::{self, Label};
use crate::machine::{Machine, Node};
use crate::space::growing;
use crate::tools;
use crate::uses::{InUse, Labelled, Use, UseKind};
use crate::within::{NoAnswer, within};
use rdsk_sys::device_number::DeviceNumber;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Up to the end of the superblock of btrfs, at 64 KiB.
const BEGINNING_BYTES: u64 = 68 << 10;
/// Other devices that are read.
const MAX_DEVICES: usize = 1 << 10;
/// Another device that has not answered by then says nothing: one that hangs must not hang us, nor keep a device that has nothing to do
/// with it from being written.
const TIMEOUT_OF_OTHERS: Duration = Duration::from_secs(5);

/// The first bytes of a device, and what ended them too early.
#[derive(Default)]
struct Beginning {
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

/// How devices are read, and how long that may take.
struct Reading {
    read: fn(&Path) -> Beginning,
    /// The device itself, its partitions and its disk: what they do not say by then is not proven.
    own: Duration,
    others: Duration,
}

/// Adds a use for each reason why `node`, its partitions or its disk belong to something larger. `labels` are theirs.
pub(crate) fn find(inventory: &Inventory<'_>, node: &Node, labels: &[(&Node, Signature)], usage: &mut InUse) {
    let reading = Reading { read: read_beginning, own: tools::TIMEOUT, others: TIMEOUT_OF_OTHERS };
    find_by(&reading, inventory, node, labels, usage);
}

fn find_by(
    reading: &Reading,
    inventory: &Inventory<'_>,
    node: &Node,
    labels: &[(&Node, Signature)],
    usage: &mut InUse,
) {
    let machine = inventory.machine;
    let around = node.partitions.iter().chain(&node.parent).filter_map(|name| machine.tree.get(name));
    let parts: Vec<&Node> = std::iter::once(node).chain(around).collect();
    for part in &parts {
        let blocks = format!("{}: its first blocks", part.kernel_name());
        let beginning = beginning_of(machine, part, reading.read, reading.own).unwrap_or_else(|silent| {
            usage.doubt(format_args!("{blocks} {silent}"));
            Beginning::default()
        });
        // The programs that look for labels take what they cannot read for blank.
        if let Some(error) = &beginning.failed {
            usage.doubt(format_args!("{blocks} cannot be read ({error})"));
        }
        let beginning = beginning.bytes;
        if let Some(what) = mapper_metadata(&beginning).or_else(|| drbd_metadata(&beginning)) {
            let text = format!("{what}{}", labels::on(node, part));
            // The first block of the disk around a partition has the table, too.
            let is_around = node.parent.as_ref() == Some(&part.name);
            let place = machine.roots.dev.join(part.kernel_name());
            let labelled = (!is_around).then(|| Labelled::Device { node: place, kind: what.to_owned() });
            usage.uses.push(Use { labelled, ..Use::new(UseKind::Metadata, &text) });
        }
        let is_known = usage.uses.iter().any(|used| used.kind == UseKind::Member);
        let mut own = labels.iter().filter(|(labelled, _)| labelled.name == part.name && !is_known);
        let several = own.find_map(|(_, label)| Some((label, over_several(&label.kind, &beginning)?)));
        if let Some((signature, why)) = several {
            let place = machine.roots.dev.join(part.kernel_name());
            labels::add(machine, node, Label { device: part, place, signature }, &why, usage);
        }
    }
    let unlabelled = |part: &&&Node| labels.iter().all(|(labelled, _)| labelled.name != part.name);
    for (other, filesystem) in filesystems(reading, inventory, &parts) {
        let has = |part: &&&Node| match &filesystem {
            Filesystem::F2fs { devices } => devices.contains(&part.number),
            Filesystem::Xfs(realtime) => !is_mounted(machine, other) && realtime.fills(part),
        };
        if parts.iter().filter(unlabelled).any(|part| has(&part)) {
            usage.add(UseKind::PartOf, &format!("{} on {}", filesystem.shown(), other.shown()));
        }
    }
}

/// A filesystem that lies on more than the device that has its label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Filesystem {
    F2fs {
        /// The further ones.
        devices: Vec<DeviceNumber>,
    },
    Xfs(Realtime),
}

/// The realtime device of an XFS. No UUID links the two, and mkfs.xfs takes the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Realtime {
    block_bytes: u64,
    blocks: u64,
    extent_blocks: u64,
}

impl Filesystem {
    const fn shown(&self) -> &'static str {
        match self {
            Self::F2fs { .. } => "f2fs",
            Self::Xfs(_) => "a realtime device, of this size, of the XFS",
        }
    }
}

impl Realtime {
    fn fills(self, node: &Node) -> bool {
        let has_blocks = node.size_bytes().and_then(|bytes| bytes.checked_div(self.block_bytes));
        has_blocks.is_some_and(|has| self.blocks <= has && has - self.blocks < self.extent_blocks.max(1))
    }
}

/// The kernel holds all devices of a mounted filesystem.
fn is_mounted(machine: &Machine<'_>, node: &Node) -> bool {
    let is_here = |device: &Node| device.number == node.number;
    machine.mounts.iter().any(|mount| machine.device_of_mount(mount).is_some_and(is_here))
}

/// Such filesystems on other devices. Where udev has looked at the devices, only those are read on which it saw one.
fn filesystems<'machine>(
    reading: &Reading,
    inventory: &Inventory<'machine>,
    parts: &[&Node],
) -> Vec<(&'machine Node, Filesystem)> {
    let machine = inventory.machine;
    let is_likely = |node: &&Node| match inventory.row(node).and_then(|row| row.fstype.as_deref()) {
        Some(kind) => matches!(kind, "f2fs" | "xfs"),
        None => !inventory.knows_content() && !is_of_this_machine(node),
    };
    let others = machine.tree.nodes().filter(|node| parts.iter().all(|part| part.name != node.name));
    let others = others.filter(|node| node.size_bytes().is_some_and(|bytes| bytes > 0));
    let read = |node: &'machine Node| {
        let beginning = beginning_of(machine, node, reading.read, reading.others).ok()?.bytes;
        Some((node, f2fs(machine, &beginning).or_else(|| xfs(&beginning))?))
    };
    others.filter(is_likely).take(MAX_DEVICES).filter_map(read).collect()
}

/// Memory and files as devices: a filesystem over them and a disk is mounted, or of no use.
fn is_of_this_machine(node: &Node) -> bool {
    ["loop", "zram", "ram"].iter().any(|driver| node.kernel_name().starts_with(driver))
}

/// The first bytes of a device; none if it cannot be opened, which the programs that look for labels say, or is suspended. The error
/// says that it does not answer.
fn beginning_of(
    machine: &Machine<'_>,
    node: &Node,
    read: fn(&Path) -> Beginning,
    timeout: Duration,
) -> Result<Beginning, NoAnswer> {
    // The node may lead to another device, and a suspended one would not answer.
    let there = machine.tree.by_path(&Path::new("/dev").join(node.kernel_name()), &machine.roots.dev);
    if there.is_none_or(|there| there.number != node.number) || growing::suspended(machine, node).is_some() {
        return Ok(Beginning::default());
    }
    let place = machine.roots.dev.join(node.kernel_name());
    within(timeout, move || read(&place))
}

fn read_beginning(place: &Path) -> Beginning {
    let mut options = File::options();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC);
    let mut bytes = Vec::new();
    // What could be read before an error may say enough.
    let read = |file: File| file.take(BEGINNING_BYTES).read_to_end(&mut bytes).err();
    let failed = options.open(place).ok().and_then(read);
    Beginning { bytes, failed }
}

/// Which metadata of device mapper a device begins with (drivers/md: `*_SUPERBLOCK_MAGIC` of dm-thin, dm-cache, dm-era and
/// dm-clone, whose superblocks begin alike; `MEMORY_SUPERBLOCK_MAGIC` of dm-writecache; `DMZ_MAGIC` of dm-zoned).
fn mapper_metadata(beginning: &[u8]) -> Option<&'static str> {
    match little(beginning, 32) {
        // The number in the source begins with 0: it is octal.
        Some(0o6_142_003) => return Some("metadata of a cache of device mapper"),
        Some(27_022_010) => return Some("metadata of a thin pool"),
        Some(2_126_579_579) => return Some("metadata of dm-era"),
        Some(0x8af2_7f64) => return Some("metadata of dm-clone"),
        _ => {}
    }
    match little(beginning, 0)? & 0xffff_ffff {
        0x2348_9321 => Some("a cache of dm-writecache"),
        0x445a_4244 => Some("zones of dm-zoned"),
        _ => None,
    }
}

/// Whether a device begins with DRBD's metadata of another device (`meta-disk` of drbd.conf; drivers/block/drbd, `struct
/// meta_data_on_disk`: `magic`, of 8.3, of 8.4 while it is or was attached, and of 9). Those behind the data of the device itself have a
/// label that util-linux knows.
fn drbd_metadata(beginning: &[u8]) -> Option<&'static str> {
    let magic = u32::from_be_bytes(beginning.get(60..64)?.try_into().ok()?);
    matches!(magic, 0x8374_026b..=0x8374_026d).then_some("metadata of DRBD")
}

/// Why a filesystem is more than the device that begins so and has its label.
fn over_several(kind: &str, beginning: &[u8]) -> Option<String> {
    match kind {
        "btrfs" => btrfs(beginning),
        "f2fs" => {
            let paths = f2fs_paths(beginning);
            (!paths.is_empty())
                .then(|| format!("f2fs, which lies on {} too", crate::display::listed(&paths, 3)))
        }
        "xfs" => xfs(beginning).map(|_| "xfs, with files on a realtime device".to_owned()),
        _ => None,
    }
}

/// Why a btrfs is more than this device (fs/btrfs, `struct btrfs_super_block` at 64 KiB: `flags`, `magic`, `num_devices`).
fn btrfs(beginning: &[u8]) -> Option<String> {
    const AT: usize = 64 << 10;
    const SEEDING: u64 = 1 << 32;
    let devices = little(beginning, AT + 0x88)?;
    if beginning.get(AT + 0x40..AT + 0x48)? != b"_BHRfS_M" {
        return None;
    }
    if little(beginning, AT + 0x38)? & SEEDING != 0 {
        return Some("btrfs, a seed on which others may be built".to_owned());
    }
    (devices > 1).then(|| format!("btrfs, which lies on {devices} devices"))
}

/// The further devices of an f2fs (fs/f2fs, `struct f2fs_super_block` at 1 KiB: eight `devs`, of which the first is the device
/// itself, each a path and a count of segments). It finds them by these paths, too.
fn f2fs_paths(beginning: &[u8]) -> Vec<String> {
    const AT: usize = 1 << 10;
    const DEVICES_AT: usize = AT + 2201;
    const DEVICE_BYTES: usize = 68;
    const PATH_BYTES: usize = 64;
    if little(beginning, AT).is_none_or(|word| word & 0xffff_ffff != 0xf2f5_2010) {
        return Vec::new();
    }
    let path = |index: usize| {
        let at = DEVICES_AT + index * DEVICE_BYTES;
        let path = beginning.get(at..at + PATH_BYTES)?.split(|&byte| byte == 0).next()?;
        (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned())
    };
    (1..8).filter_map(path).collect()
}

fn f2fs(machine: &Machine<'_>, beginning: &[u8]) -> Option<Filesystem> {
    let number = |path: &String| Some(machine.tree.by_path(Path::new(path), &machine.roots.dev)?.number);
    let devices: Vec<DeviceNumber> = f2fs_paths(beginning).iter().filter_map(number).collect();
    (!devices.is_empty()).then_some(Filesystem::F2fs { devices })
}

/// The realtime device of an XFS, if it has one (fs/xfs, `struct xfs_dsb`: `sb_blocksize`, `sb_rblocks`, `sb_rextsize`).
fn xfs(beginning: &[u8]) -> Option<Filesystem> {
    let word = |at: usize| Some(u64::from(u32::from_be_bytes(beginning.get(at..at + 4)?.try_into().ok()?)));
    let blocks = u64::from_be_bytes(beginning.get(16..24)?.try_into().ok()?);
    let realtime = Realtime { block_bytes: word(4)?, blocks, extent_blocks: word(80)? };
    (beginning.starts_with(b"XFSB") && blocks > 0).then_some(Filesystem::Xfs(realtime))
}

/// The 64-bit number at an offset, its lowest byte first.
fn little(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
