//! A block device that several processes hold together, on real loop devices.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{LONG, MIB, destroy, look, refusal, turn, write_mode};
use rdsk_targets::{Access, DeviceHold, Permission, Roots, Sharing, claim};
use rdsk_testkit::{LoopDevice, Need, requires, wait_until};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

#[test]
fn a_device_that_ranks_hold_together_is_theirs_until_the_last_one_ends() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop, Need::Tool("lsblk"), Need::Tool("wipefs")]) {
        return;
    }
    let device = || LoopDevice::builder().size(8 * MIB).create().unwrap();
    let (device, other) = (device(), device());
    let alone = destroy(device.backing_path().to_str().unwrap());
    let examined = look(device.path());
    let exclusive = || {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(device.path(), flags, Mode::empty())
    };
    let me = std::process::id();
    let first = DeviceHold::take(&examined).unwrap();
    assert!(DeviceHold::of_process(me, first.descriptor(), &look(other.path())).is_err(), "another device");
    // What is open without being exclusive is no hold.
    let plain = std::fs::File::open(other.path()).unwrap();
    assert!(DeviceHold::of_process(me, plain.as_raw_fd(), &look(other.path())).is_err());
    let second = DeviceHold::of_process(me, first.descriptor(), &examined).unwrap();
    let held = |hold| Permission { sharing: Sharing::Held(Arc::new(hold)), ..alone.clone() };
    let (of_first, of_second) = (held(first), held(second));
    let claims = [&of_first, &of_second]
        .map(|held| claim(look(device.path()), Access::Write, held, &Roots::default()).unwrap());
    let open = [&claims[0], &claims[1]].map(|claim| claim.open(write_mode()).unwrap());
    assert_eq!(refusal(device.path(), &alone).code, "in-use", "others get nothing");
    // One rank is gone with all that it had open.
    let [claim, last] = claims;
    let [fd, last_fd] = open;
    drop((claim, of_first, fd));
    assert_eq!(exclusive().unwrap_err(), Errno::BUSY);
    last.judge_again(&last_fd).unwrap();
    drop((last, of_second, last_fd));
    assert!(wait_until(LONG, || exclusive().is_ok()), "the device is free");
}
