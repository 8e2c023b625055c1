//! What every run of the suite tries, in one boot: of each kind of thing that only a guest has the most telling scenarios, which are
//! md, LVM, device mapper, NVMe, SCSI with two paths, a limit of a control group of version 2, and devices that others use. They stand
//! in the tables of the other files as `Tier::Core`.

use rdsk_testkit::guest::{Disk, Tier};
use rdsk_testkit::{Need, requires};

use crate::{faults, guest, identity, refusals, stacks};

const MIB: u64 = 1 << 20;

#[test]
fn what_the_suite_tries_is_as_expected() {
    // The campaign tries these, too, in guests of their own.
    if Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let two_paths = "wwn=0x5000c500a1b2c3d4";
    let mut guest = guest()
        .modules(&["ext4", "btrfs", "raid1", "raid456", "dm_mod", "dm_thin_pool", "nvmet", "sd_mod"])
        .carried(&["scsi_debug"])
        .programs(&["mkfs.ext4", "mkfs.btrfs", "btrfs", "mdadm", "sfdisk", "thin_check", "unshare", "blkid"])
        .programs(&refusals::LVM)
        .disk(Disk::virtio("A", 64 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .disk(Disk::virtio("C", 48 * MIB))
        .disk(Disk::nvme("NV", 16 * MIB).serial("NV1"))
        .disk(Disk::scsi("S", 48 * MIB).properties(two_paths))
        .disk(Disk::scsi("P", 0).over("S").properties(two_paths))
        .disk(Disk::scsi("T", 64 * MIB))
        .boot();
    stacks::try_core(&mut guest);
    identity::try_core(&mut guest);
    refusals::try_core(&mut guest);
    faults::try_core(&mut guest);
}
