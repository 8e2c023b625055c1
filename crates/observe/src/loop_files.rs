//! The backing files of the loop devices in a stack: where they lie, how they are allocated and how much of them is cached. It
//! opens them for reading, reads none of their data and judges nothing.

use crate::stack::{Stack, btrfs_devices};
use crate::sysfs::{MAX_LEVELS, block_path, name_by_number, name_of};
use rdsk_model::{Clock, ExtentEvidence, LoopFile, PageCache, PageCacheState, SECTOR_BYTES, Target};
use rdsk_sys::cache::{CacheStat, cachestat};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::extents::{Flush, extents, summarise};
use rdsk_sys::files::{read_number, read_word};
use rdsk_sys::mounts::{Mount, mount_of, mounts_of};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};

/// Loop devices below one target.
const MAX_LOOPS: usize = 64;
/// A list of extents is asked for again when this many times its own duration has passed.
const EXTENTS_PAUSE: u64 = 20;

/// One loop device and its open backing file.
#[derive(Debug)]
pub(crate) struct LoopWatch {
    facts: LoopFile,
    /// `None` if it is a device or could not be opened.
    file: Option<File>,
    /// Where the loop device begins in the file.
    offset_bytes: u64,
    /// The parts of the file that the target uses: first byte and length.
    parts: Vec<(u64, u64)>,
    before: PageCacheState,
    after: PageCacheState,
    extents: Option<ExtentEvidence>,
    /// When the extents were last asked for, and how long that took.
    asked_ns: Option<(u64, u64)>,
}

/// The loop devices in the stack of a target: itself, below it, and below the filesystems that hold their files.
pub(crate) fn loops_of(target: &Target, stack: &Stack, sys: &Path, proc: &Path) -> Vec<LoopWatch> {
    let mounts = mounts_of(&proc.join("self"));
    let mut names: Vec<String> = stack.tops.iter().chain(&stack.lower()).cloned().collect();
    names.extend(target.stack.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    let mut loops: Vec<LoopWatch> = Vec::new();
    let mut index = 0;
    while index < names.len() && loops.len() < MAX_LOOPS && index < MAX_LOOPS * MAX_LEVELS {
        let place = Place::of(&block_path(sys, &names[index]));
        index += 1;
        let Some(place) = place else { continue };
        // The disk of a partition comes behind it; what comes first is how the target reaches the device.
        if let Some(same) = loops.iter_mut().find(|same| place.is_of(&same.facts.device)) {
            same.add(place.partition);
            continue;
        }
        let Some(mut watch) = LoopWatch::of(target.index, &place.disk, sys, &mounts) else { continue };
        watch.begin_with(place.partition);
        names.extend(
            watch.facts.below.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>(),
        );
        loops.push(watch);
    }
    loops
}

/// Where a name of a stack leads in sysfs.
struct Place {
    /// Directory of the disk.
    disk: PathBuf,
    partition: Option<Partition>,
}

/// A part of a disk, in bytes from its start.
#[derive(Clone, Debug)]
struct Partition {
    name: String,
    begin_bytes: u64,
    size_bytes: u64,
}

impl Place {
    fn of(device: &Path) -> Option<Self> {
        let own = device.canonicalize().ok()?;
        if !own.join("partition").exists() {
            return Some(Self { disk: own, partition: None });
        }
        let bytes = |file: &str| Some(read_number::<u64>(&own.join(file))?.saturating_mul(SECTOR_BYTES));
        let partition =
            Partition { name: name_of(&own)?, begin_bytes: bytes("start")?, size_bytes: bytes("size")? };
        Some(Self { disk: own.parent()?.to_owned(), partition: Some(partition) })
    }

    fn is_of(&self, device: &str) -> bool {
        name_of(&self.disk).is_some_and(|name| name == device)
    }
}

impl LoopWatch {
    fn of(target: u32, directory: &Path, sys: &Path, mounts: &[Mount]) -> Option<Self> {
        let shown = read_word(&directory.join("loop/backing_file"))?;
        let device = name_of(directory)?;
        let number = |file: &str| read_number::<u64>(&directory.join("loop").join(file));
        let backing = backing_of(&device, directory, &shown);
        // The number goes first: the name may lead to another mount here than where the device was set up.
        let is_on = |mount: &&Mount| Some(mount.number) == backing.on;
        let by_name = mount_of(mounts, Path::new(&shown));
        let mount = mount_of(mounts.iter().filter(is_on), Path::new(&shown))
            .or_else(|| mounts.iter().rfind(is_on))
            .or(by_name);
        let below = match &backing.is_device {
            Some(number) => name_by_number(sys, *number),
            None => backing.on.and_then(|number| name_by_number(sys, number)).or_else(|| {
                let source = std::fs::metadata(&mount?.source).ok()?;
                let number = DeviceNumber::from_raw(source.rdev());
                source.file_type().is_block_device().then(|| name_by_number(sys, number))?
            }),
        };
        // Of several devices of a filesystem the mount names one only, which says nothing of the others.
        let is_one = |name: &String| {
            backing.is_device.is_some() || btrfs_devices(name, sys).is_none_or(|(_, names)| names.len() < 2)
        };
        let below = below.filter(is_one);
        let shown_bytes = read_number::<u64>(&directory.join("size"))?;
        let shown_bytes = shown_bytes.saturating_mul(SECTOR_BYTES);
        let offset_bytes = number("offset").unwrap_or(0);
        Some(Self {
            facts: LoopFile {
                target,
                device,
                file: shown,
                filesystem: mount.filter(|_| backing.is_device.is_none()).map(|mount| mount.kind.clone()),
                direct_io: number("dio").map(|value| value != 0),
                below,
                partitions: Vec::new(),
                size_bytes: shown_bytes,
                extents: None,
                page_cache: None,
            },
            file: backing.file,
            offset_bytes,
            parts: vec![(offset_bytes, shown_bytes)],
            before: PageCacheState::default(),
            after: PageCacheState::default(),
            extents: None,
            asked_ns: None,
        })
    }

    /// Leaves only a partition of what the device shows, if the target reaches it through one.
    fn begin_with(&mut self, partition: Option<Partition>) {
        if partition.is_some() {
            (self.facts.size_bytes, self.parts) = (0, Vec::new());
            self.add(partition);
        }
    }

    /// Adds a further partition through which the target reaches the device, unless it uses all of it anyhow.
    fn add(&mut self, partition: Option<Partition>) {
        let is_whole = self.facts.partitions.is_empty() && !self.parts.is_empty();
        let Some(partition) =
            partition.filter(|partition| !is_whole && !self.facts.partitions.contains(&partition.name))
        else {
            return;
        };
        self.parts.push((self.offset_bytes.saturating_add(partition.begin_bytes), partition.size_bytes));
        self.facts.size_bytes = self.facts.size_bytes.saturating_add(partition.size_bytes);
        self.facts.partitions.push(partition.name);
    }

    pub(crate) fn target(&self) -> u32 {
        self.facts.target
    }

    /// The device that carries its file, with the index of the target.
    pub(crate) fn carrier(&self) -> Option<(u32, String)> {
        Some((self.facts.target, self.facts.below.clone()?))
    }

    /// The loop device and the one that carries its file.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &str> {
        [Some(&self.facts.device), self.facts.below.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// Just before the first I/O.
    pub(crate) fn begin(&mut self) {
        self.before = self.cached();
    }

    /// When the last I/O returned.
    pub(crate) fn end_io(&mut self) {
        self.after = self.cached();
    }

    /// What one visit saw.
    pub(crate) fn end(&mut self, clock: &dyn Clock) -> LoopFile {
        self.ask_for_extents(clock);
        let page_cache = PageCache { before: self.before, after: self.after, stable: None };
        let is_known = page_cache.before.cached_bytes.is_some();
        LoopFile { extents: self.extents, page_cache: is_known.then_some(page_cache), ..self.facts.clone() }
    }

    /// What of the parts is cached; unknown if it is of one of them.
    fn cached(&self) -> PageCacheState {
        let state_of = |&(begin, length): &(u64, u64)| cachestat(self.file.as_ref()?, begin, length).ok();
        let states: Option<Vec<_>> = self.parts.iter().map(state_of).collect();
        let dirty = |states: &Vec<CacheStat>| {
            states
                .iter()
                .try_fold(0, |sum, state| Some(sum + state.dirty_bytes()? + state.writeback_bytes()?))
        };
        PageCacheState {
            cached_bytes: states.as_ref().map(|states| states.iter().map(CacheStat::cached_bytes).sum()),
            dirty_bytes: states.as_ref().and_then(dirty),
        }
    }

    /// Whether the file ends before what the loop device shows of it. It was longer when the device was set up.
    fn is_shortened(&self, file: &File) -> bool {
        let end = |&(begin, length): &(u64, u64)| begin.saturating_add(length);
        let end_bytes = self.parts.iter().map(end).max().unwrap_or(0);
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() < end_bytes)
    }

    /// A file in very many pieces takes long to list; then an older list has to do for a while.
    fn ask_for_extents(&mut self, clock: &dyn Clock) {
        let Some(file) = &self.file else { return };
        // What lies beyond the end of a file that was shortened meanwhile is no hole: there were data when it was read, or an error.
        if self.is_shortened(file) {
            self.extents = None;
            return;
        }
        let begin_ns = clock.now_ns();
        let is_recent =
            |(asked_ns, took_ns): (u64, u64)| begin_ns - asked_ns < took_ns.saturating_mul(EXTENTS_PAUSE);
        if self.asked_ns.is_some_and(is_recent) {
            return;
        }
        let mut total = ExtentEvidence::default();
        let is_listed = self.parts.iter().all(|&(begin, length)| {
            let Ok(list) = extents(file, begin, length, Flush::Never) else { return false };
            let sum = summarise(&list, begin, length);
            total.mapped_bytes += sum.mapped_bytes;
            total.unwritten_bytes += sum.unwritten_bytes;
            total.hole_bytes += sum.hole_bytes;
            total.extents += sum.extents;
            true
        });
        self.asked_ns = Some((begin_ns, clock.now_ns().saturating_sub(begin_ns)));
        self.extents = is_listed.then_some(total);
    }
}

#[derive(Debug, Default)]
struct Backing {
    file: Option<File>,
    /// Number of the device that a regular file's filesystem has, `259:2`; of tmpfs and others it is an invented one.
    on: Option<DeviceNumber>,
    /// Number of the block device that the backing is.
    is_device: Option<DeviceNumber>,
}

/// Opens the backing file by the name that sysfs shows, unless the kernel says that this name leads to another file here.
fn backing_of(device: &str, directory: &Path, shown: &str) -> Backing {
    let told = open_for_reading(&Path::new("/dev").join(device));
    let is_ours = |file: &File| {
        let own = read_word(&directory.join("dev"));
        file.metadata().is_ok_and(|meta| Some(DeviceNumber::from_raw(meta.rdev()).to_string()) == own)
    };
    let told = told.filter(is_ours).and_then(|file| rdsk_sys::device::loop_backing(&file).ok());
    let is_plain = std::fs::metadata(shown).is_ok_and(|meta| meta.is_file());
    let file = if is_plain { open_for_reading(Path::new(shown)) } else { None };
    let is_same = |file: &File| match (&told, file.metadata()) {
        (Some(told), Ok(meta)) => (meta.dev(), meta.ino()) == (told.dev, told.ino),
        (None, Ok(_)) => true,
        (_, Err(_)) => false,
    };
    let file = file.filter(is_same);
    let by_name = std::fs::metadata(shown).ok();
    let by_name_device =
        || by_name.as_ref().filter(|meta| meta.file_type().is_block_device()).map(MetadataExt::rdev);
    let rdev = told.as_ref().map_or_else(by_name_device, |told| (told.rdev != 0).then_some(told.rdev));
    let on = told.map(|told| told.dev).or_else(|| by_name.as_ref().map(MetadataExt::dev));
    Backing { file, on: on.map(DeviceNumber::from_raw), is_device: rdev.map(DeviceNumber::from_raw) }
}

/// Opens without waiting for anything; `None` where that is not allowed.
fn open_for_reading(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Some(File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::{RealClock, target_on, write};
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};

    /// A fake loop device, its partition and a mapped device over it, and the real file behind it.
    #[test]
    fn a_loop_is_found_through_partition_and_mapping() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("backing");
        std::fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .partition("sda", 1, 1 << 20, 4 << 20)
            .disk(FakeDisk::dm("dm-0", "lin", "", 2 << 20))
            .holder("sda1", "dm-0");
        let sys = fake.sys();
        let loop_directory = sys.join("block/sda").canonicalize().unwrap();
        write(&loop_directory.join("loop/backing_file"), &format!("{}\n", file.display()));
        write(&loop_directory.join("loop/dio"), "1\n");
        write(&loop_directory.join("size"), "16384\n");
        let mut target = target_on(0, "dm-0", "253:0");
        target.stack = vec!["dm-0".into(), "sda1".into(), "sda".into()];
        let stack = Stack::read(&target, &sys).unwrap();
        let mut found = loops_of(&target, &stack, &sys, Path::new("/proc"));
        assert_eq!(found.len(), 1, "{found:?}");
        let watch = &mut found[0];
        watch.begin();
        watch.end_io();
        let seen = watch.end(&RealClock::default());
        assert_eq!((seen.device.as_str(), seen.direct_io, seen.size_bytes), ("sda", Some(true), 4 << 20));
        assert_eq!(seen.partitions, ["sda1"]);
        assert_eq!(seen.file, file.display().to_string());
        assert!(seen.filesystem.is_some());
        assert_eq!(seen.page_cache.unwrap().before.cached_bytes, Some(0));
        if let Some(extents) = seen.extents {
            assert_eq!((extents.hole_bytes, extents.mapped_bytes), (4 << 20, 0));
        }
        std::fs::File::options().write(true).open(&file).unwrap().set_len(4 << 20).unwrap();
        let shortened = watch.end(&RealClock::default());
        assert_eq!(shortened.extents, None, "what is beyond the end of the file is no hole");
    }

    /// A file of 8 MiB whose last 3 MiB are written, with a hole below the first partition and data below the second.
    #[test]
    fn a_partition_has_the_extents_below_its_own_sectors() {
        const MIB: u64 = 1 << 20;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("backing");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(8 * MIB).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 3 << 20], 5 * MIB).unwrap();
        file.sync_all().unwrap();
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).partition("sda", 1, MIB, 4 * MIB).partition(
            "sda",
            2,
            5 * MIB,
            2 * MIB,
        );
        let sys = fake.sys();
        let disk = sys.join("block/sda").canonicalize().unwrap();
        write(&disk.join("loop/backing_file"), &format!("{}\n", path.display()));
        write(&disk.join("size"), "16384\n");
        let seen_by = |name: &str, number: &str, below: &[&str]| {
            let mut target = target_on(0, name, number);
            target.stack = below.iter().map(|name| (*name).to_owned()).collect();
            let stack = Stack::read(&target, &sys).unwrap();
            let mut found = loops_of(&target, &stack, &sys, Path::new("/proc"));
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].begin();
            found[0].end_io();
            let seen = found[0].end(&RealClock::default());
            let written = seen.extents.map(|extents| extents.mapped_bytes + extents.unwritten_bytes);
            (seen.partitions, seen.size_bytes, written, seen.extents.map(|extents| extents.hole_bytes))
        };
        let (first, second) =
            (seen_by("sda1", "8:1", &["sda1", "sda"]), seen_by("sda2", "8:2", &["sda2", "sda"]));
        let whole = seen_by("sda", "8:0", &["sda"]);
        assert_eq!((first.0, first.1), (vec!["sda1".to_owned()], 4 * MIB));
        assert_eq!((second.0, second.1), (vec!["sda2".to_owned()], 2 * MIB));
        assert_eq!((whole.0, whole.1), (Vec::new(), 8 * MIB));
        // A filesystem without FIEMAP shows nothing.
        if whole.2.is_some() {
            assert_eq!((first.2, first.3), (Some(0), Some(4 * MIB)));
            assert_eq!((second.2, second.3), (Some(2 * MIB), Some(0)));
            assert_eq!((whole.2, whole.3), (Some(3 * MIB), Some(5 * MIB)));
        }
    }

    /// A file on a btrfs of two devices, whatever filesystem the machine has: the fake tree says which devices it lies on.
    #[test]
    fn one_of_several_devices_does_not_stand_for_a_filesystem() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(8 << 20).unwrap();
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::scsi("sdb"))
            .disk(FakeDisk::scsi("sdc"));
        let sys = fake.sys();
        let loop_directory = sys.join("block/sda").canonicalize().unwrap();
        write(&loop_directory.join("loop/backing_file"), &format!("{}\n", file.path().display()));
        write(&loop_directory.join("size"), "16384\n");
        let on = sys
            .join("dev/block")
            .join(DeviceNumber::from_raw(file.as_file().metadata().unwrap().dev()).to_string());
        std::os::unix::fs::symlink(sys.join("class/block/sdb"), on).unwrap();
        let target = target_on(0, "sda", "8:0");
        let below = || {
            let stack = Stack::read(&target, &sys).unwrap();
            loops_of(&target, &stack, &sys, Path::new("/nonexistent")).remove(0).facts.below
        };
        assert_eq!(below().as_deref(), Some("sdb"));
        let devices = sys.join("fs/btrfs/0f7e/devices");
        std::fs::create_dir_all(devices.join("sdb")).unwrap();
        assert_eq!(below().as_deref(), Some("sdb"));
        std::fs::create_dir_all(devices.join("sdc")).unwrap();
        assert_eq!(below(), None);
    }

    #[test]
    fn a_file_that_is_gone_is_only_a_name() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda"));
        let directory = fake.sys().join("block/sda").canonicalize().unwrap();
        write(&directory.join("loop/backing_file"), "/nowhere/b.img (deleted)\n");
        write(&directory.join("size"), "2048\n");
        let target = target_on(0, "sda", "8:0");
        let stack = Stack::read(&target, &fake.sys()).unwrap();
        let found = loops_of(&target, &stack, &fake.sys(), Path::new("/nonexistent"));
        let [watch] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (watch.facts.filesystem.as_deref(), watch.facts.below.as_deref(), watch.facts.direct_io),
            (None, None, None)
        );
        let plain = FakeSys::new().disk(FakeDisk::scsi("sdb"));
        let target = target_on(0, "sdb", "8:16");
        let stack = Stack::read(&target, &plain.sys()).unwrap();
        assert!(loops_of(&target, &stack, &plain.sys(), Path::new("/proc")).is_empty());
    }
}
