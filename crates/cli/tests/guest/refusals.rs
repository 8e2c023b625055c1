//! The table of refusals. A row says how a device comes into use, what rdsk must answer, and how it comes out of use again.

use rdsk_testkit::guest::{Booted, Disk, Tier};
use rdsk_testkit::{Need, requires};

use crate::refusal::{Refusal, try_all};
use crate::{guest, in_use, labels, names, openers, sideways};

const MIB: u64 = 1 << 20;
pub(crate) const LVM: [&str; 10] = [
    "lvm", "pvcreate", "vgcreate", "lvcreate", "lvrename", "lvremove", "vgchange", "vgremove", "pvremove",
    "dmsetup",
];
const CIPHERS: [&str; 6] =
    ["xts", "aesni_intel", "aes_generic", "sha256_generic", "algif_skcipher", "algif_hash"];

fn has_guest() -> bool {
    Tier::Extended.is_wanted() && requires(&[Need::Root, Need::Guest])
}

/// Every row of every table.
fn rows() -> Vec<Refusal> {
    [
        in_use::ROWS,
        labels::ROWS,
        openers::DEVICES,
        openers::FILES,
        names::DEVICES,
        names::FILES,
        names::IMAGES,
        sideways::STACKED,
        sideways::ROWS,
    ]
    .concat()
}

/// Tries the rows of the core set, of which the last takes a path of `$S` away.
pub(crate) fn try_core(guest: &mut Booted) {
    let core: Vec<Refusal> = rows().into_iter().filter(|row| row.tier == Tier::Core).collect();
    try_all(guest, "core", "$A $B $S", &core);
}

/// The process that holds things in the guest.
#[test]
#[ignore = "started inside of the guest"]
fn child_that_holds() {
    rdsk_testkit::holder::hold();
}

#[test]
fn what_the_kernel_uses_is_not_written() {
    if !has_guest() {
        return;
    }
    let mut guest = guest()
        .modules(&[
            "ext4", "raid1", "dm_mod", "dm_crypt", "dm_multipath", "dm_round_robin", "loop", "btrfs",
            "bcache", "dm_writecache",
        ])
        .modules(&CIPHERS)
        .programs(&[
            "dumpe2fs", "tune2fs", "mkfs.ext4", "mke2fs", "mkswap", "swapon", "swapoff", "mdadm",
            "cryptsetup", "sfdisk",
        ])
        .programs(&["mkfs.btrfs", "btrfs", "mkfs.f2fs", "make-bcache", "unshare"])
        .programs(&LVM)
        // The least that ZFS takes, and its label is looked for on.
        .disk(Disk::virtio("A", 64 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .boot();
    try_all(&mut guest, "in use by the kernel", "$A $B", in_use::ROWS);
    try_all(&mut guest, "members that are not active", "$A $B", labels::ROWS);
}

#[test]
fn what_others_have_open_is_not_written() {
    if !has_guest() {
        return;
    }
    let mut guest = guest()
        .modules(&["ext4", "raid0", "raid1", "loop", "nbd", "nvmet", "target_core_mod", "target_core_file"])
        .modules(&["target_core_iblock", "fuse", "dm_mod", "nvmet_tcp", "nvme_tcp"])
        .programs(&[
            "mkfs.ext4", "dumpe2fs", "tune2fs", "mkswap", "swapon", "swapoff", "mdadm", "sfdisk",
            "nbd-server", "nbd-client", "fuse2fs", "flock", "unshare",
        ])
        .programs(&LVM)
        .file(std::env::current_exe().unwrap(), "/usr/bin/holder")
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .boot();
    try_all(&mut guest, "open or exported", "$A $B", openers::DEVICES);
    try_all(&mut guest, "files", "$A $B", openers::FILES);
    try_all(&mut guest, "under another name", "$A $B", names::DEVICES);
    try_all(&mut guest, "files under another name", "$A $B", names::FILES);
}

#[test]
fn what_newer_kernels_mount_from_files_is_not_written() {
    if !has_guest() || !requires(&[Need::GuestSince(6, 12)]) {
        return;
    }
    let image = tempfile::NamedTempFile::new().unwrap();
    rdsk_testkit::holder::write_image(image.path(), 8 * MIB);
    let mut guest = guest()
        .since(6, 12)
        .modules(&["ext4", "erofs", "loop"])
        .programs(&["mkfs.ext4", "unshare"])
        .file(std::env::current_exe().unwrap(), "/usr/bin/holder")
        .file(image.path(), "/image")
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .boot();
    try_all(&mut guest, "images", "$A $B", names::IMAGES);
}

#[test]
fn what_shares_sectors_with_something_in_use_is_not_written() {
    if !has_guest() {
        return;
    }
    let mut guest = guest()
        .modules(&["ext4", "dm_mod", "dm_snapshot", "dm_thin_pool"])
        .programs(&["mkfs.ext4", "sfdisk", "thin_check"])
        .programs(&LVM)
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::scsi("S", 48 * MIB).properties("wwn=0x5000c500a1b2c3d4"))
        .disk(Disk::scsi("P", 0).over("S").properties("wwn=0x5000c500a1b2c3d4"))
        .boot();
    try_all(&mut guest, "sideways", "$A", sideways::STACKED);
    try_all(&mut guest, "paths", "$S", sideways::ROWS);
}

/// docs/refusals.md is what people read before they trust a disk to rdsk: it lists every row, under its code, and no other.
#[test]
fn the_page_of_refusals_lists_every_row() {
    let page = include_str!("../../../../docs/refusals.md");
    let rows = rows();
    assert!(rows.len() >= 70, "{} rows", rows.len());
    let listed: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [name, _, code] = cells[..] else { return None };
            Some((name.trim_start(), code.strip_prefix('`')?.strip_suffix('`')?))
        })
        .collect();
    for row in &rows {
        assert!(
            listed.contains(&(row.name, row.code)),
            "{} ({}) is not in docs/refusals.md",
            row.name,
            row.code
        );
    }
    assert_eq!(listed.len(), rows.len(), "the page lists what is no row");
}
