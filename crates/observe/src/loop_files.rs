//! The backing files of the loop devices in a stack: where they lie, how they are allocated and how much of them is cached. It
//! opens them for reading, reads none of their data and judges nothing.

use crate::read_trimmed;
use crate::stack::Stack;
use crate::sysfs::{MAX_LEVELS, block_path, name_of};
use rdsk_model::{Clock, ExtentEvidence, LoopFile, PageCache, PageCacheState, Target};
use rdsk_sys::cache::cachestat;
use rdsk_sys::extents::{Flush, extents_of, summarise};
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
    offset_bytes: u64,
    before: PageCacheState,
    after: PageCacheState,
    extents: Option<ExtentEvidence>,
    /// When the extents were last asked for, and how long that took.
    asked_ns: Option<(u64, u64)>,
}

/// The loop devices in the stack of a target: itself, below it, and below the filesystems that hold their files.
pub(crate) fn loops_of(target: &Target, stack: &Stack, sys: &Path, proc: &Path) -> Vec<LoopWatch> {
    let mounts = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let mut names: Vec<String> = stack.tops.iter().chain(&stack.lower()).cloned().collect();
    names.extend(target.stack.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    let mut found: Vec<LoopWatch> = Vec::new();
    let mut index = 0;
    while index < names.len() && found.len() < MAX_LOOPS && index < MAX_LOOPS * MAX_LEVELS {
        let directory = disk_directory(&block_path(sys, &names[index]));
        index += 1;
        let Some(watch) =
            directory.and_then(|directory| LoopWatch::of(target.index, &directory, sys, &mounts))
        else {
            continue;
        };
        if found.iter().any(|known| known.facts.device == watch.facts.device) {
            continue;
        }
        names.extend(
            watch.facts.below.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>(),
        );
        found.push(watch);
    }
    found
}

/// The directory of the disk of a partition, or that of the device itself.
fn disk_directory(device: &Path) -> Option<PathBuf> {
    let own = device.canonicalize().ok()?;
    if own.join("partition").exists() { Some(own.parent()?.to_owned()) } else { Some(own) }
}

impl LoopWatch {
    fn of(target: u32, directory: &Path, sys: &Path, mounts: &str) -> Option<Self> {
        let shown = read_trimmed(&directory.join("loop/backing_file"))?;
        let device = name_of(directory)?;
        let number = |file: &str| read_trimmed(&directory.join("loop").join(file))?.parse::<u64>().ok();
        let backing = backing_of(&device, directory, &shown);
        let mount = mounts.lines().filter_map(Mount::parse);
        let mount = match &backing.on {
            Some(on) => mount
                .filter(|mount| mount.number == *on || mount.holds(&shown))
                .max_by_key(|mount| (mount.number == *on, mount.holds(&shown).then_some(mount.point.len()))),
            None => mount.filter(|mount| mount.holds(&shown)).max_by_key(|mount| mount.point.len()),
        };
        let below = match &backing.is_device {
            Some(number) => device_name(sys, number),
            None => backing.on.as_deref().and_then(|number| device_name(sys, number)).or_else(|| {
                let source = std::fs::metadata(mount.as_ref()?.source).ok()?;
                source.file_type().is_block_device().then(|| device_name(sys, &numbers(source.rdev())))?
            }),
        };
        let shown_bytes = read_trimmed(&directory.join("size"))?.parse::<u64>().ok()?.saturating_mul(512);
        Some(Self {
            facts: LoopFile {
                target,
                device,
                file: shown,
                filesystem: mount.filter(|_| backing.is_device.is_none()).map(|mount| mount.kind.to_owned()),
                direct_io: number("dio").map(|value| value != 0),
                below,
                size_bytes: shown_bytes,
                extents: None,
                page_cache: None,
            },
            file: backing.file,
            offset_bytes: number("offset").unwrap_or(0),
            before: PageCacheState::default(),
            after: PageCacheState::default(),
            extents: None,
            asked_ns: None,
        })
    }

    pub(crate) fn target(&self) -> u32 {
        self.facts.target
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

    fn cached(&self) -> PageCacheState {
        let seen = self
            .file
            .as_ref()
            .and_then(|file| cachestat(file, self.offset_bytes, self.facts.size_bytes).ok());
        PageCacheState {
            cached_bytes: seen.map(|seen| seen.cached_bytes()),
            dirty_bytes: seen.and_then(|seen| Some(seen.dirty_bytes()? + seen.writeback_bytes()?)),
        }
    }

    /// A file in very many pieces takes long to list; then an older list has to do for a while.
    fn ask_for_extents(&mut self, clock: &dyn Clock) {
        let Some(file) = &self.file else { return };
        let begin_ns = clock.now_ns();
        let is_recent =
            |(asked_ns, took_ns): (u64, u64)| begin_ns - asked_ns < took_ns.saturating_mul(EXTENTS_PAUSE);
        if self.asked_ns.is_some_and(is_recent) {
            return;
        }
        let size_bytes = self.facts.size_bytes;
        let listed = extents_of(file, self.offset_bytes, size_bytes, Flush::Never);
        self.asked_ns = Some((begin_ns, clock.now_ns().saturating_sub(begin_ns)));
        self.extents = listed.ok().map(|list| {
            let sum = summarise(&list, self.offset_bytes, size_bytes);
            ExtentEvidence {
                mapped_bytes: sum.mapped_bytes,
                unwritten_bytes: sum.unwritten_bytes,
                hole_bytes: sum.hole_bytes,
                extents: sum.extents,
            }
        });
    }
}

#[derive(Debug, Default)]
struct Backing {
    file: Option<File>,
    /// Number of the device that a regular file's filesystem has, `259:2`; of tmpfs and others it is an invented one.
    on: Option<String>,
    /// Number of the block device that the backing is.
    is_device: Option<String>,
}

/// Opens the backing file by the name that sysfs shows, unless the kernel says that this name leads to another file here.
fn backing_of(device: &str, directory: &Path, shown: &str) -> Backing {
    let told = open_for_reading(&Path::new("/dev").join(device));
    let is_ours = |file: &File| {
        let own = read_trimmed(&directory.join("dev"));
        file.metadata().is_ok_and(|meta| Some(numbers(meta.rdev())) == own)
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
    Backing { file, on: on.map(numbers), is_device: rdev.map(numbers) }
}

/// Opens without waiting for anything; `None` where that is not allowed.
fn open_for_reading(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Some(File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?))
}

/// `259:2` for a device number as stat(2) gives it.
fn numbers(dev: u64) -> String {
    format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev))
}

/// The kernel name of the block device with this number.
fn device_name(sys: &Path, number: &str) -> Option<String> {
    name_of(&sys.join("dev/block").join(number).canonicalize().ok()?)
}

/// What a line of mountinfo says: `id parent major:minor root point options … - type source options`.
#[derive(Clone, Copy, Debug)]
struct Mount<'a> {
    number: &'a str,
    point: &'a str,
    kind: &'a str,
    source: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(2);
        let (number, _root, point) = (words.next()?, words.next()?, words.next()?);
        let mut words = filesystem.split(' ');
        Some(Self { number, point, kind: words.next()?, source: words.next()? })
    }

    fn holds(&self, file: &str) -> bool {
        Path::new(file).starts_with(self.point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::{RealClock, target_on, write};
    use rdsk_testkit::fakesys::{FakeDisk, FakeSys};

    #[test]
    fn mounts_are_lines_of_mountinfo() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(
            (mount.number, mount.point, mount.kind, mount.source),
            ("98:0", "/mnt2", "ext3", "/dev/root")
        );
        assert!(mount.holds("/mnt2/a/b.img") && !mount.holds("/mnt22/a"));
        assert!(Mount::parse("nonsense").is_none());
    }

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
        let stack = Stack::of(&target, &sys).unwrap();
        let mut found = loops_of(&target, &stack, &sys, Path::new("/proc"));
        assert_eq!(found.len(), 1, "{found:?}");
        let watch = &mut found[0];
        watch.begin();
        watch.end_io();
        let seen = watch.end(&RealClock::default());
        assert_eq!((seen.device.as_str(), seen.direct_io, seen.size_bytes), ("sda", Some(true), 8 << 20));
        assert_eq!(seen.file, file.display().to_string());
        assert!(seen.filesystem.is_some());
        assert_eq!(seen.page_cache.unwrap().before.cached_bytes, Some(0));
        if let Some(extents) = seen.extents {
            assert_eq!((extents.hole_bytes, extents.mapped_bytes), (8 << 20, 0));
        }
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        std::fs::File::open(&file).unwrap().sync_all().unwrap();
    }

    #[test]
    fn a_file_that_is_gone_is_only_a_name() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda"));
        let directory = fake.sys().join("block/sda").canonicalize().unwrap();
        write(&directory.join("loop/backing_file"), "/nowhere/b.img (deleted)\n");
        write(&directory.join("size"), "2048\n");
        let target = target_on(0, "sda", "8:0");
        let stack = Stack::of(&target, &fake.sys()).unwrap();
        let found = loops_of(&target, &stack, &fake.sys(), Path::new("/nonexistent"));
        let [watch] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (watch.facts.filesystem.as_deref(), watch.facts.below.as_deref(), watch.facts.direct_io),
            (None, None, None)
        );
        let plain = FakeSys::new().disk(FakeDisk::scsi("sdb"));
        let target = target_on(0, "sdb", "8:16");
        let stack = Stack::of(&target, &plain.sys()).unwrap();
        assert!(loops_of(&target, &stack, &plain.sys(), Path::new("/proc")).is_empty());
    }
}
