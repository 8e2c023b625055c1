//! Of whom all that the kernel has cached may be dropped: of what is ours alone.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{LONG, MIB, claimed, overwrite, turn};
use rdsk_targets::{Access, Permission};
use rdsk_testkit::{LoopDevice, Need, requires, wait_until};

#[test]
fn a_device_while_nobody_uses_it() {
    let _turn = turn();
    let needs = [Need::Root, Need::Loop, Need::Tool("lsblk"), Need::Tool("wipefs"), Need::Ext4];
    if !requires(&needs) {
        return;
    }
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    device.mkfs_ext4("home").unwrap();
    let claim = claimed(device.path(), Access::Read, &Permission::default());
    // The program that looks at new devices may have it open for a moment.
    assert!(wait_until(LONG, || claim.may_be_dropped_whole()));
    let mount = device.mount().unwrap();
    assert!(!claim.may_be_dropped_whole(), "it is mounted since it was claimed");
    drop(mount);
    assert!(wait_until(LONG, || claim.may_be_dropped_whole()));
}

#[test]
fn no_file_of_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    assert!(!claimed(&path, Access::Read, &Permission::default()).may_be_dropped_whole());
    assert!(!claimed(&path, Access::Write, &overwrite()).may_be_dropped_whole());
}
