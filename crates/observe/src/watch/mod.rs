//! The live view's counters: what some devices did between two looks at them. Devices may come and go in between, which it
//! says. It derives no columns and prints nothing.

mod block;
mod command;
mod devices;
mod saved;

pub use command::{dirty_bytes, family, process_calls};
pub use devices::{devices_of, flush_places, natural};
pub use saved::saved_interval;

use crate::bpf::BpfError;
use crate::delta::delta;
use crate::diskstat::{parse_stat, without_flushes};
use crate::read_text;
use crate::still::{has_done, why_silent};
use crate::sysfs::{UNCOUNTED_PARTITION, block_path, counts_flushes, nvme_disk_with_paths, why_unnamed};
use block::BlockCounts;
use rdsk_model::{DiskStat, Uncounted, WatchInterval, WatchedDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a look may take, and more for each device, without being taken again: its one time is that of all of them.
const LOOK_TIME: Duration = Duration::from_millis(1);
const DEVICE_TIME: Duration = Duration::from_micros(100);
/// Most looks for one that is quick.
const LOOKS: usize = 4;

/// Which devices are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Every whole disk with a medium, whenever it appears; a loop or ram device from the moment on when it does something.
    All,
    /// These, by kernel name.
    Named(Vec<String>),
}

/// The counters by kernel name, or why a device has none; one that is not there has no entry.
type Counters = BTreeMap<String, Result<DiskStat, Uncounted>>;

/// One look at the counters.
#[derive(Debug)]
struct Sample {
    at: Instant,
    stats: Counters,
}

/// Watches some devices.
pub struct Watcher {
    sys: PathBuf,
    choice: Choice,
    last: Sample,
    /// BPF programs that count too, or why they do not any more.
    block: Option<Result<BlockCounts, BpfError>>,
    /// Loop and ram devices, and drives without a medium, that have done something.
    active: BTreeSet<String>,
}

impl Watcher {
    /// Takes the first look. `sys` is `/sys`, or a tree that stands for it.
    pub fn new(choice: Choice, sys: &Path) -> Self {
        let last = Sample::take(&choice, sys);
        Self { sys: sys.to_owned(), choice, last, block: None, active: BTreeSet::new() }
    }

    /// Has BPF programs count the devices that are there now, too.
    ///
    /// # Errors
    /// Why that is not possible; then the counters of sysfs are all.
    pub fn with_block_layer(&mut self) -> Result<(), BpfError> {
        self.block = Some(Ok(BlockCounts::load(&devices::countable(&self.choice, &self.sys), &self.sys)?));
        // Both begin now.
        self.last = Sample::take(&self.choice, &self.sys);
        Ok(())
    }

    /// In words, that BPF programs count in another way than the best, and why; `None` where they do not, or do not count.
    pub fn limit(&self) -> Option<String> {
        self.block.as_ref()?.as_ref().ok()?.limit()
    }

    /// What happened since the last look that this function took, or since the first one.
    pub fn next_interval(&mut self) -> WatchInterval {
        let now = Sample::take(&self.choice, &self.sys);
        let mut interval = self.interval_to(&now);
        self.add_block_layer(&mut interval, &now);
        self.leave_out_idle(&mut interval);
        self.last = now;
        interval
    }

    /// Adds what the programs counted, where there are any, and where they do not count a device, why.
    fn add_block_layer(&mut self, interval: &mut WatchInterval, now: &Sample) {
        let Some(block) = &mut self.block else { return };
        let mut counted = BTreeMap::new();
        if let Ok(counts) = block {
            match counts.growth(&now.stats) {
                Ok(growths) => counted = growths,
                // A map that cannot be read once will not be read later.
                Err(error) => *block = Err(error),
            }
        }
        for device in &mut interval.devices {
            device.block = counted.remove(&device.name);
            if device.block.is_none() {
                let why = || why_not_counted(&device.name, &self.sys).into();
                device.why_no_block = Some(block.as_ref().err().map_or_else(why, BpfError::words_and_hint));
            }
        }
    }

    /// The same by the kernel's counters alone, and without beginning a new interval.
    pub fn so_far(&mut self) -> WatchInterval {
        let now = Sample::take(&self.choice, &self.sys);
        let mut interval = self.interval_to(&now);
        self.leave_out_idle(&mut interval);
        interval
    }

    /// Processes that this one started, directly or not, and that the programs could not follow: they count as others.
    pub fn unfollowed(&self) -> u64 {
        self.block.as_ref().and_then(|block| block.as_ref().ok()).map_or(0, BlockCounts::unfollowed)
    }

    fn interval_to(&self, now: &Sample) -> WatchInterval {
        let interval_ns = u64::try_from(now.at.duration_since(self.last.at).as_nanos()).unwrap_or(u64::MAX);
        let names: BTreeSet<&String> = self.last.stats.keys().chain(now.stats.keys()).collect();
        let mut devices: Vec<WatchedDevice> = names
            .into_iter()
            .filter_map(|name| {
                let growth = growth(self.last.stats.get(name), now.stats.get(name))?;
                Some(WatchedDevice::by_counters(name.as_str(), growth))
            })
            .collect();
        for device in &mut devices {
            if let (Ok(growth), Some(Ok(stat))) = (&device.growth, now.stats.get(&device.name))
                && growth.is_idle()
                && let Some(why) = why_silent(&device.name, stat, &self.sys)
            {
                device.growth = Err(Uncounted::Unknown(why.to_string()));
            }
        }
        match &self.choice {
            Choice::Named(names) => {
                devices.sort_by_key(|device| names.iter().position(|name| *name == device.name));
            }
            Choice::All => devices.sort_by_key(|device| devices::natural(&device.name)),
        }
        WatchInterval { interval_ns, devices }
    }

    /// Of all devices, keeps the disks, and what else was seen to do something.
    fn leave_out_idle(&mut self, interval: &mut WatchInterval) {
        if self.choice != Choice::All {
            return;
        }
        let moved = |device: &&WatchedDevice| {
            device.growth.as_ref().is_ok_and(has_done)
                || device.block.as_ref().is_some_and(|block| !block.is_idle())
        };
        self.active.extend(interval.devices.iter().filter(moved).map(|device| device.name.clone()));
        interval.devices.retain(|device| {
            self.active.contains(&device.name) || devices::is_disk_of_its_own(&device.name, &self.sys)
        });
    }
}

/// In words, why programs that count others do not count a device.
fn why_not_counted(name: &str, sys: &Path) -> &'static str {
    let directory = block_path(sys, name);
    if let Some(why) = why_unnamed(name, sys) {
        why
    } else if directory.exists() && !directory.join("dev").exists() {
        "it is hidden and has no number, by which the programs would know it"
    } else {
        "it was set up, or removed, after counting began"
    }
}

impl Sample {
    /// All devices get one time, so a look that took long, as where the program lost its processor in between, is taken again.
    fn take(choice: &Choice, sys: &Path) -> Self {
        first_quick(|| Self::look(choice, sys), |sample| LOOK_TIME + DEVICE_TIME * count(&sample.stats))
    }

    /// One look, and how long it took. Its time is the middle.
    fn look(choice: &Choice, sys: &Path) -> (Duration, Self) {
        let names = match choice {
            Choice::All => devices::whole_disks(sys),
            Choice::Named(names) => names.clone(),
        };
        let start = Instant::now();
        let stats = names.into_iter().filter_map(|name| Some((read(&name, sys)?, name)));
        let stats = stats.map(|(stat, name)| (name, stat)).collect();
        let took = start.elapsed();
        (took, Self { at: start + took / 2, stats })
    }
}

fn count(stats: &Counters) -> u32 {
    u32::try_from(stats.len()).unwrap_or(u32::MAX)
}

/// The first of some looks that did not take longer than `limit`, or the quickest. One that is not twice as quick as those before shows
/// that looks take so long here.
fn first_quick<T>(mut look: impl FnMut() -> (Duration, T), limit: impl Fn(&T) -> Duration) -> T {
    let (mut least, mut best) = look();
    for _ in 1..LOOKS {
        if least <= limit(&best) {
            break;
        }
        let (took, next) = look();
        let was_chance = took * 2 <= least;
        if took < least {
            (least, best) = (took, next);
        }
        if !was_chance {
            break;
        }
    }
    best
}

/// The counters of a device; `None` if there is no such device.
fn read(name: &str, sys: &Path) -> Option<Result<DiskStat, Uncounted>> {
    let directory = block_path(sys, name);
    if directory.exists() && nvme_disk_with_paths(name, sys).is_some() {
        return Some(Err(Uncounted::Unreadable(format!("no counters: {UNCOUNTED_PARTITION}"))));
    }
    match read_text(&directory.join("stat")).and_then(|text| parse_stat(&text)) {
        Ok(stat) => Some(Ok(if counts_flushes(&directory) { stat } else { without_flushes(stat) })),
        Err(_) if !directory.exists() => None,
        Err(error) => Some(Err(Uncounted::Unreadable(format!("no counters: {error}")))),
    }
}

/// What happened between two looks at a device; `None` if it was there at neither.
fn growth(
    before: Option<&Result<DiskStat, Uncounted>>,
    after: Option<&Result<DiskStat, Uncounted>>,
) -> Option<Result<DiskStat, Uncounted>> {
    Some(match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => Err(Uncounted::Appeared),
        (Some(_), None) => Err(Uncounted::Vanished),
        (_, Some(Err(why))) | (Some(Err(why)), _) => Err(why.clone()),
        (Some(Ok(before)), Some(Ok(after))) => {
            delta(before, after).map_err(|error| Uncounted::Restarted(error.to_string()))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::BlockActivity;
    use rdsk_testkit::{FakeDisk, FakeSys};

    /// A disk's counters: `ios` reads of 4 KiB.
    fn stat(ios: u64) -> String {
        format!("{ios} 0 {} {ios} 0 0 0 0 0 {ios} {ios} 0 0 0 0 0 0\n", ios * 8)
    }

    fn set(fake: &FakeSys, name: &str, ios: u64) {
        std::fs::write(fake.sys().join("class/block").join(name).join("stat"), stat(ios)).unwrap();
    }

    fn reads(interval: &WatchInterval) -> Vec<(&str, Result<u64, &'static str>)> {
        let of = |device: &'_ WatchedDevice| match &device.growth {
            Ok(growth) => Ok(growth.read_ios),
            Err(why) => Err(why.state().as_str()),
        };
        interval.devices.iter().map(|device| (device.name.as_str(), of(device))).collect()
    }

    #[test]
    fn a_look_that_takes_long_is_taken_again() {
        for (took_ms, taken) in
            [(&[1][..], 0), (&[30, 2], 1), (&[30, 12, 2], 2), (&[30, 50], 0), (&[30, 20], 1)]
        {
            let mut looks = took_ms.iter().map(|&ms| Duration::from_millis(ms)).zip(0..);
            let seen = first_quick(|| looks.next().unwrap(), |_| Duration::from_millis(2));
            assert_eq!((seen, looks.next()), (taken, None));
        }
    }

    #[test]
    fn devices_come_and_go_and_start_anew() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
        set(&fake, "sda", 10);
        set(&fake, "sdb", 10);
        let sys = fake.sys();
        let mut watcher = Watcher::new(Choice::All, &sys);
        set(&fake, "sda", 15);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(5)), ("sdb", Ok(0))]);
        set(&fake, "sda", 3);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Err("restarted")), ("sdb", Ok(0))]);
        set(&fake, "sda", 4);
        for place in ["block", "class/block"] {
            std::fs::rename(sys.join(place).join("sdb"), sys.join(place).join("sdc")).unwrap();
        }
        let expected = [("sda", Ok(1)), ("sdb", Err("vanished")), ("sdc", Err("appeared"))];
        assert_eq!(reads(&watcher.next_interval()), expected);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(0)), ("sdc", Ok(0))]);
        std::fs::write(sys.join("class/block/sdc/stat"), "no counters").unwrap();
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(0)), ("sdc", Err("unreadable"))]);
    }

    #[test]
    fn named_devices_keep_their_order_and_are_looked_for_again() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
        let sys = fake.sys();
        let mut watcher = Watcher::new(Choice::Named(vec!["sdb".into(), "sda".into()]), &sys);
        assert_eq!(reads(&watcher.next_interval()), [("sdb", Ok(0)), ("sda", Ok(0))]);
        std::fs::rename(sys.join("class/block/sdb"), sys.join("class/block/away")).unwrap();
        assert_eq!(reads(&watcher.next_interval()), [("sdb", Err("vanished")), ("sda", Ok(0))]);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(0))]);
        std::fs::rename(sys.join("class/block/away"), sys.join("class/block/sdb")).unwrap();
        assert_eq!(reads(&watcher.next_interval()), [("sdb", Err("appeared")), ("sda", Ok(0))]);
    }

    #[test]
    fn a_loop_device_is_shown_from_its_first_request_on() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::loop_device("loop0", 1 << 20));
        let mut watcher = Watcher::new(Choice::All, &fake.sys());
        set(&fake, "sda", 0);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(0))]);
        set(&fake, "loop0", 2);
        assert_eq!(reads(&watcher.next_interval()), [("loop0", Ok(2)), ("sda", Ok(0))]);
        assert_eq!(reads(&watcher.next_interval()), [("loop0", Ok(0)), ("sda", Ok(0))]);
        let mut named = Watcher::new(Choice::Named(vec!["loop0".into()]), &fake.sys());
        assert_eq!(reads(&named.next_interval()), [("loop0", Ok(0))]);
    }

    #[test]
    fn what_programs_saw_of_a_loop_device_shows_it() {
        let mut watcher = Watcher::new(Choice::All, &FakeSys::new().sys());
        let mut shown = |block: Option<BlockActivity>| {
            let growth = Err(Uncounted::Unknown("nobody counts".into()));
            let device = WatchedDevice { block, ..WatchedDevice::by_counters("loop0", growth) };
            let mut interval = WatchInterval { interval_ns: 1, devices: vec![device] };
            watcher.leave_out_idle(&mut interval);
            interval.devices.len()
        };
        assert_eq!((shown(None), shown(Some(BlockActivity::default()))), (0, 0));
        assert_eq!(shown(Some(BlockActivity { discards: 1, ..BlockActivity::default() })), 1);
        assert_eq!(shown(Some(BlockActivity::default())), 1, "from then on");
    }

    #[test]
    fn flushes_of_a_device_that_takes_bios_are_not_counted() {
        let fake =
            FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::dm("dm-0", "v-l", "LVM-x", 1 << 30));
        let sys = fake.sys();
        for (name, has_queues) in [("sda", true), ("dm-0", false)] {
            let directory = sys.join("class/block").join(name);
            std::fs::create_dir_all(directory.join("queue")).unwrap();
            if has_queues {
                std::fs::create_dir_all(directory.join("mq/0")).unwrap();
            }
            let stat = "1 0 8 1 0 0 0 0 0 0 0 0 0 0 0 7 7\n";
            std::fs::write(directory.join("stat"), stat).unwrap();
        }
        let mut watcher = Watcher::new(Choice::Named(vec!["sda".into(), "dm-0".into()]), &sys);
        let interval = watcher.next_interval();
        let flushes: Vec<Option<u64>> =
            interval.devices.iter().map(|device| device.growth.as_ref().unwrap().flush_ios).collect();
        assert_eq!(flushes, [Some(0), None]);
    }

    #[test]
    fn partitions_of_a_device_with_paths_are_not_counted() {
        let fake = FakeSys::new().disk(FakeDisk::nvme("nvme0n1")).partition("nvme0n1", 1, 1 << 20, 1 << 30);
        let sys = fake.sys();
        let watcher = || Watcher::new(Choice::Named(vec!["nvme0n1".into(), "nvme0n1p1".into()]), &sys);
        set(&fake, "nvme0n1", 1);
        set(&fake, "nvme0n1p1", 1);
        assert_eq!(reads(&watcher().next_interval()), [("nvme0n1", Ok(0)), ("nvme0n1p1", Ok(0))]);
        std::fs::create_dir(sys.join("class/block/nvme0c0n1")).unwrap();
        let expected = [("nvme0n1", Ok(0)), ("nvme0n1p1", Err("unreadable"))];
        assert_eq!(reads(&watcher().next_interval()), expected);
    }

    #[test]
    fn counters_that_are_off_or_none_prove_nothing_while_they_stand_still() {
        let disks = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::nvme("nvme0n1"));
        let fake = disks.disk(FakeDisk::dm("dm-0", "v-l", "LVM-x", 1 << 30));
        let sys = fake.sys();
        let directory = |name: &str| sys.join("class/block").join(name);
        std::fs::create_dir_all(directory("sda").join("mq/0")).unwrap();
        for name in ["sda", "dm-0"] {
            std::fs::create_dir_all(directory(name).join("queue")).unwrap();
            std::fs::write(directory(name).join("queue/iostats"), "0\n").unwrap();
        }
        std::fs::create_dir(directory("nvme0c0n1")).unwrap();
        let release = fake.proc().join("sys/kernel/osrelease");
        std::fs::create_dir_all(release.parent().unwrap()).unwrap();
        std::fs::write(&release, "6.1.0-56-amd64\n").unwrap();
        let names = ["sda", "dm-0", "nvme0n1"];
        for (name, ios) in [("sda", 5), ("dm-0", 0), ("nvme0n1", 0)] {
            set(&fake, name, ios);
        }
        let mut watcher = Watcher::new(Choice::Named(names.map(String::from).to_vec()), &sys);
        let unknown = Err("unknown");
        assert_eq!(reads(&watcher.next_interval()), names.map(|name| (name, unknown)));
        // Drivers may count in spite of the switch, and kernels count such a device from 6.4 on.
        set(&fake, "dm-0", 1);
        set(&fake, "nvme0n1", 1);
        let after = [("sda", unknown), ("dm-0", Ok(1)), ("nvme0n1", Ok(1))];
        assert_eq!(reads(&watcher.next_interval()), after);
        let after = [("sda", unknown), ("dm-0", Ok(0)), ("nvme0n1", Ok(0))];
        assert_eq!(reads(&watcher.next_interval()), after);
        // From 6.5 on what a mapped device counted before the switch says nothing of later either.
        std::fs::write(&release, "6.5.0\n").unwrap();
        let after = [("sda", unknown), ("dm-0", unknown), ("nvme0n1", Ok(0))];
        assert_eq!(reads(&watcher.next_interval()), after);
        // Requests are counted by the block layer alone: what it counted before the switch says nothing of later.
        std::fs::write(directory("sda").join("queue/iostats"), "1\n").unwrap();
        set(&fake, "sda", 7);
        assert_eq!(reads(&watcher.next_interval())[0], ("sda", Ok(2)));
        std::fs::write(directory("sda").join("queue/iostats"), "0\n").unwrap();
        assert_eq!(reads(&watcher.next_interval())[0], ("sda", unknown));
        let stat = parse_stat(&stat(5)).unwrap();
        assert!(
            why_silent("sda", &stat, &sys)
                .is_some_and(|why| why.to_string().starts_with("queue/iostats of sda is 0"))
        );
        assert!(why_silent("nvme0n1", &stat, &sys).is_none());
        let idle = parse_stat(&self::stat(0)).unwrap();
        assert!(
            why_silent("nvme0n1", &idle, &sys)
                .is_some_and(|why| why.to_string().contains("stood still, and not every"))
        );
    }

    #[test]
    fn so_far_begins_no_new_interval() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda"));
        set(&fake, "sda", 1);
        let mut watcher = Watcher::new(Choice::All, &fake.sys());
        set(&fake, "sda", 4);
        assert_eq!(reads(&watcher.so_far()), [("sda", Ok(3))]);
        assert_eq!(reads(&watcher.next_interval()), [("sda", Ok(3))]);
    }
}
