//! Where a byte of a target lies on the disks below it, and whether the target's device still exists: details that the
//! kernel's errors lack. It reads sysfs and asks device mapper; it opens no target.

use crate::sysfs::{MAX_LEVELS, block_path, name_of};
use rdsk_model::{IoError, SECTOR_BYTES, Target, TargetKind};
use rdsk_sys::dm::{DmLine, DmQuestion, lines, open_control};
use rdsk_sys::files::{names_in, read_number, read_word};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to report with a failed I/O: that the device is gone, or which byte of the disk below it was. `None` if there is
/// nothing to add. While the kernel removes a disk, it fails its I/O and still lists it, which is waited for until `patience_ends`.
pub fn words_of(error: &IoError, target: &Target, sys: &Path, patience_ends: Instant) -> Option<String> {
    const EIO: i32 = 5;
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    const ENOSPC: i32 = 28;
    // A write beyond the end of a device has no room there, and one that is gone has no bytes.
    let has_no_room = error.errno == ENOSPC && target.kind == TargetKind::Block;
    if [ENXIO, ENODEV].contains(&error.errno) && target.device.is_some() {
        while gone(target, sys).is_none() && Instant::now() < patience_ends {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    if let Some(gone) = gone(target, sys)
        && (has_no_room || [EIO, ENXIO, ENODEV].contains(&error.errno))
    {
        return Some(format!("{gone} is gone: the kernel no longer lists it"));
    }
    if error.errno == EIO
        && let Some(words) = shortened(target, sys)
    {
        return Some(words);
    }
    if error.stream.is_none() || target.kind != TargetKind::Block {
        return None;
    }
    let (disk, byte) = on_disk(target, error.offset_bytes, sys, &table)?;
    Some(format!("the I/O began at byte {byte} of {disk}"))
}

/// The first device of the target's stack that is no longer in sysfs.
pub fn gone(target: &Target, sys: &Path) -> Option<String> {
    let own = target.device.as_ref()?;
    // Without sysfs nothing is known, and a device of another namespace never had a directory here.
    if !sys.join("dev/block").is_dir() {
        return None;
    }
    if !sys.join("dev/block").join(&own.major_minor).exists() {
        return Some(own.name.clone());
    }
    target.stack.iter().find(|name| !block_path(sys, name).exists()).cloned()
}

/// That a target's device left, in words: it is no longer in sysfs, or has no bytes. While the kernel removes a disk, and where a medium
/// was taken out, it is still listed.
pub fn left(target: &Target, sys: &Path) -> Option<String> {
    if let Some(gone) = gone(target, sys) {
        return Some(format!("{gone} is gone: the kernel no longer lists it"));
    }
    let own = target.device.as_ref()?;
    let size = read_word(&sys.join("dev/block").join(&own.major_minor).join("size"))?;
    (size == "0").then(|| format!("{} is gone: it has 0 bytes by now", own.name))
}

/// That the file below a loop device of the stack ends before the loop device does: it was shortened after it was set up. The kernel
/// shows the file by a path, so a file whose path leads elsewhere by now has no words.
fn shortened(target: &Target, sys: &Path) -> Option<String> {
    let own = target.device.as_ref().map(|device| &device.name);
    own.into_iter().chain(&target.stack).find_map(|name| {
        let directory = block_path(sys, name);
        let shown = read_word(&directory.join("loop/backing_file"))?;
        let shown_bytes = read_number::<u64>(&directory.join("size"))?.checked_mul(SECTOR_BYTES)?;
        let offset = read_number(&directory.join("loop/offset")).unwrap_or(0);
        let file = std::fs::metadata(&shown).ok().filter(std::fs::Metadata::is_file)?;
        let has_bytes = file.len().saturating_sub(offset);
        (has_bytes < shown_bytes).then(|| {
            format!(
                "the backing file of {name} has become shorter: it has {has_bytes} of its {shown_bytes} bytes"
            )
        })
    })
}

/// Asks device mapper for the table of a device, by its number.
fn table(major_minor: &str) -> Option<Vec<DmLine>> {
    lines(open_control(Path::new("/dev")).ok()?, major_minor.parse().ok()?, DmQuestion::Table).ok()
}

/// The disk below a block device that holds one of its bytes, and which byte of the disk that is; `None` for the disk
/// itself, and if the mapping between the two is more than an offset.
fn on_disk(
    target: &Target,
    offset_bytes: u64,
    sys: &Path,
    table: &dyn Fn(&str) -> Option<Vec<DmLine>>,
) -> Option<(String, u64)> {
    let mut directory =
        sys.join("dev/block").join(&target.device.as_ref()?.major_minor).canonicalize().ok()?;
    let mut byte = offset_bytes;
    let mut moved = false;
    for _ in 0..MAX_LEVELS {
        let Some((below, there)) = one_down(&directory, byte, sys, table) else { break };
        (directory, byte, moved) = (below, there, true);
    }
    // A device with any other mapping is not a disk, so its own offset does not help the user.
    let is_disk = names_in(&directory.join("slaves")).is_empty();
    if moved && is_disk { Some((name_of(&directory)?, byte)) } else { None }
}

/// The device directly below, and the same byte there.
fn one_down(
    directory: &Path,
    byte: u64,
    sys: &Path,
    table: &dyn Fn(&str) -> Option<Vec<DmLine>>,
) -> Option<(PathBuf, u64)> {
    if directory.join("partition").exists() {
        let start: u64 = read_number(&directory.join("start"))?;
        return Some((directory.parent()?.to_owned(), byte.checked_add(start.checked_mul(SECTOR_BYTES)?)?));
    }
    if !directory.join("dm").is_dir() {
        return None;
    }
    let sector = byte / SECTOR_BYTES;
    let lines = table(&read_word(&directory.join("dev"))?)?;
    let line = lines
        .iter()
        .find(|line| sector >= line.start_sectors && sector - line.start_sectors < line.length_sectors)?;
    let words: Vec<&str> = line.parameters.split_ascii_whitespace().collect();
    // `linear DEVICE START`, `flakey DEVICE START …`, `delay DEVICE START MS …` (Documentation/admin-guide/device-mapper);
    // `crypt CIPHER KEY IV DEVICE START` only adds an offset, too.
    let (device, start) = match (line.kind.as_str(), words.as_slice()) {
        ("linear" | "flakey" | "delay", [device, start, ..]) => (device, start),
        ("crypt", [_, _, _, device, start, ..]) => (device, start),
        _ => return None,
    };
    let start: u64 = start.parse().ok()?;
    let first = start.checked_mul(SECTOR_BYTES)?;
    let below = sys.join("dev/block").join(device).canonicalize().ok()?;
    Some((below, first.checked_add(byte - line.start_sectors * SECTOR_BYTES)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::{target_on, write};
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};

    const MIB: u64 = 1 << 20;

    fn error(errno: i32, offset_bytes: u64) -> IoError {
        IoError { target: 0, stream: Some(0), offset_bytes, errno, message: String::new() }
    }

    fn words_now(error: &IoError, target: &Target, sys: &Path) -> Option<String> {
        words_of(error, target, sys, Instant::now())
    }

    /// sda with a partition that starts at 1 MiB, and dm-0 above it.
    fn tree() -> FakeSys {
        FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .partition("sda", 1, MIB, 100 * MIB)
            .disk(FakeDisk::dm("dm-0", "lin", "", 8 * MIB))
            .holder("sda1", "dm-0")
    }

    fn line(kind: &str, start_sectors: u64, parameters: &str) -> DmLine {
        DmLine { start_sectors, length_sectors: 4096, kind: kind.into(), parameters: parameters.into() }
    }

    #[test]
    fn offsets_add_up_down_to_the_disk() {
        let fake = tree();
        let none = |_: &str| None;
        let of = |name: &str, number: &str, byte: u64, table: &dyn Fn(&str) -> Option<Vec<DmLine>>| {
            on_disk(&target_on(0, name, number), byte, &fake.sys(), table)
        };
        assert_eq!(of("sda1", "8:1", 4096, &none), Some(("sda".into(), MIB + 4096)));
        assert_eq!(of("sda", "8:0", 4096, &none), None, "it is the disk itself");
        let two = |number: &str| {
            assert_eq!(number, "253:0");
            Some(vec![line("linear", 0, "8:1 2048"), line("flakey", 4096, "8:0 100 1 2")])
        };
        assert_eq!(of("dm-0", "253:0", 512, &two), Some(("sda".into(), 2 * MIB + 512)));
        assert_eq!(of("dm-0", "253:0", 2 * MIB + 512, &two), Some(("sda".into(), 51_200 + 512)));
        assert_eq!(of("dm-0", "253:0", 5 * MIB, &two), None, "beyond the table");
        let striped = |_: &str| Some(vec![line("striped", 0, "2 128 8:1 0 8:1 4096")]);
        assert_eq!(of("dm-0", "253:0", 512, &striped), None, "more than an offset lies between");
        assert_eq!(of("dm-0", "253:0", 512, &none), None, "nobody may look");
    }

    #[test]
    fn a_device_that_left_sysfs_is_gone() {
        let fake = tree();
        let mut target = target_on(0, "sda1", "8:1");
        assert_eq!(
            words_now(&error(5, 0), &target, &fake.sys()).as_deref(),
            Some("the I/O began at byte 1048576 of sda")
        );
        target.stack.push("sdz".into());
        assert_eq!(gone(&target, &fake.sys()).as_deref(), Some("sdz"), "one below it");
        let missing = target_on(0, "sdq", "65:0");
        for errno in [5, 6, 19, 28] {
            let words = words_now(&error(errno, 0), &missing, &fake.sys()).unwrap();
            assert_eq!(words, "sdq is gone: the kernel no longer lists it");
        }
        assert_eq!(words_now(&error(12, 0), &missing, &fake.sys()), None, "no memory is another matter");
        let file = Target { kind: TargetKind::File, ..missing.clone() };
        assert_eq!(words_now(&error(28, 0), &file, &fake.sys()), None, "a full filesystem is another matter");
        assert_eq!(gone(&missing, Path::new("/nonexistent")), None, "without sysfs nothing is known");
        assert!(
            left(&missing, &fake.sys()).unwrap().starts_with("sdq is gone: the kernel no longer lists it")
        );
        let disk = target_on(0, "sda", "8:0");
        assert_eq!(left(&disk, &fake.sys()), None);
        write(&fake.sys().join("block/sda").canonicalize().unwrap().join("size"), "0\n");
        assert_eq!(left(&disk, &fake.sys()).as_deref(), Some("sda is gone: it has 0 bytes by now"));
        // It goes while the words for its last error are looked for.
        let words = words_now(&error(19, 0), &disk, &fake.sys());
        assert!(words.is_none_or(|words| !words.contains("gone")), "it is still listed");
        let until = Instant::now() + Duration::from_secs(60);
        let listed = fake.sys().join("dev/block/8:0");
        std::thread::scope(|scope| {
            let words = scope.spawn(|| words_of(&error(19, 0), &disk, &fake.sys(), until));
            std::thread::sleep(Duration::from_millis(100));
            std::fs::remove_file(&listed).unwrap();
            assert_eq!(words.join().unwrap().unwrap(), "sda is gone: the kernel no longer lists it");
        });
    }

    #[test]
    fn a_loop_device_outlives_the_end_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("backing");
        let file = std::fs::File::create(&path).unwrap();
        let fake = tree();
        let loop_directory = fake.sys().join("block/sda").canonicalize().unwrap();
        write(&loop_directory.join("loop/backing_file"), &format!("{}\n", path.display()));
        write(&loop_directory.join("loop/offset"), "4096\n");
        write(&loop_directory.join("size"), "16\n");
        let mut target = target_on(0, "sda1", "8:1");
        target.stack = vec!["sda1".into(), "sda".into()];
        let words = |errno: i32| words_now(&error(errno, 0), &target, &fake.sys()).unwrap_or_default();
        file.set_len(8192).unwrap();
        assert_eq!(words(5), "the backing file of sda has become shorter: it has 4096 of its 8192 bytes");
        assert!(!words(6).contains("shorter"), "only an I/O error means that");
        file.set_len(12288).unwrap();
        assert_eq!(words(5), "the I/O began at byte 1048576 of sda");
    }
}
