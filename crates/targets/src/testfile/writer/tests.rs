//! Writing without enough space, beyond what the plan allows.

use super::*;
use rdsk_testkit::{LoopDevice, Need, requires};

#[test]
fn no_space_is_an_error_that_names_the_directory_and_leaves_nothing() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    device.mkfs_ext4("small").unwrap();
    let mount = device.mount().unwrap();
    let stop = StopFlag::new();
    let options = FillOptions { goal_bytes: 1 << 30, max_elapsed: None, seed: 1, stop: &stop };
    let file = TestFile::create(mount.path()).unwrap();
    let error = write(&file, &options, &mut |_| {}).unwrap_err();
    assert_eq!(error.code(), "no-space");
    assert!(error.to_string().contains(&shown(mount.path())), "{error}");

    // Without a reservation the writes themselves reach the end.
    let mut writer = Writer::new(&file);
    let chunk = vec![1; CHUNK_BYTES + ALIGN];
    let skip = chunk.as_ptr().align_offset(ALIGN);
    let failed = (0..64).find_map(|_| writer.write(&chunk[skip..skip + CHUNK_BYTES]).err()).unwrap();
    assert!(matches!(&failed, TargetError::NoSpace { done_bytes, .. } if *done_bytes > 8 * MIB), "{failed}");
    let path = file.path.clone();
    assert!(path.exists());
    drop(file);
    assert!(!path.exists());
}

/// A quota is not in what the filesystem says of its free space; here the filesystem itself is smaller than what was planned.
#[test]
fn an_adaptive_file_is_as_large_as_what_may_be_reserved() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    device.mkfs_ext4("quota").unwrap();
    let mount = device.mount().unwrap();
    let stop = StopFlag::new();
    let max_elapsed = Some(Duration::from_secs(600));
    let options = FillOptions { goal_bytes: 64 * MIB, max_elapsed, seed: 1, stop: &stop };
    let file = TestFile::create(mount.path()).unwrap();
    let made = write(&file, &options, &mut |_| {}).unwrap();
    // Of 64 MiB a quarter fits, and a tenth of that stays free.
    assert_eq!(made.bytes, 14 * MIB);
}

#[test]
fn time_is_up_earlier_for_slow_disks_and_never_before_a_mebibyte() {
    let directory = tempfile::tempdir().unwrap();
    let file = TestFile::create(directory.path()).unwrap();
    let second = Duration::from_secs(1);
    let after = |elapsed: Duration, done_bytes, last_flush| {
        let mut writer = Writer::new(&file);
        writer.start = Instant::now().checked_sub(elapsed).unwrap();
        writer.done_bytes = done_bytes;
        writer.last_flush = last_flush;
        writer.is_enough(second)
    };
    let none = Duration::ZERO;
    assert!(!after(second / 2, 64 * MIB, none));
    assert!(after(second / 2, 64 * MIB, second / 2), "the last flush must fit too");
    assert!(after(second, 64 * MIB, none));
    assert!(!after(second, 8 * MIB, none), "small files may take twice as long");
    assert!(after(2 * second, 8 * MIB, none));
    assert!(after(second / 2, 1 << 20, 2 * second), "a disk that slow gets one mebibyte");
}
