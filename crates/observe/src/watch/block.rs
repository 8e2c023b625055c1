//! What BPF programs counted of the watched devices between two looks. They stay attached in between; a look reads their maps.

use super::Counters;
use crate::bpf::{
    BlockDevice, BpfError, Counted, DeviceCounted, DeviceTotals, Programs, Snapshot, activity_of,
    raw_in_words,
};
use crate::still::why_silent;
use crate::sysfs::{block_path, why_unnamed};
use rdsk_model::{BlockActivity, DiskStat};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs that count some devices.
pub(super) struct BlockCounts {
    programs: Programs,
    /// Kernel names, in the order of the programs.
    names: Vec<String>,
    last: Snapshot,
    /// Requests of each device that only seem to be in flight, because their completion was passed over.
    phantoms: Vec<u64>,
    /// For each device, since when its bytes are compared with those of the kernel.
    since: Vec<Option<Since>>,
    /// Of each device that takes bios, how many that were under way at the beginning have not ended yet; at most.
    earlier: Vec<u64>,
    sys: PathBuf,
}

/// A moment at which nothing was in flight, and what was seen to begin from then on.
#[derive(Clone, Copy, Debug)]
struct Since {
    stat: DiskStat,
    begun_bytes: u64,
}

impl Since {
    /// The moment of these counters of a device, if they can be read, move where something happens, and nothing is in flight.
    fn at(name: &str, stat: Option<DiskStat>, sys: &Path) -> Option<Self> {
        let stat = stat.filter(|stat| stat.in_flight == 0 && why_silent(name, stat, sys).is_none())?;
        Some(Self { stat, begun_bytes: 0 })
    }

    /// Whether all bytes that the kernel counted were seen to begin. Then ends without a beginning are parts of what a driver cut
    /// itself: RAID 10 of md ends a read over four chunks four times (6.1, 2026-11).
    fn saw_all_begin(&self, now: &DiskStat) -> bool {
        let moved = now.moved_bytes().checked_sub(self.stat.moved_bytes());
        self.begun_bytes > 0 && moved.is_some_and(|moved| moved <= self.begun_bytes)
    }
}

impl BlockCounts {
    /// Counts these devices from now on.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) fn load(names: &[String], sys: &Path) -> Result<Self, BpfError> {
        let (mut counted, mut devices) = (Vec::new(), Vec::new());
        for name in names {
            let device = BlockDevice::read(&block_path(sys, name));
            if let Some(device) = device.filter(|_| why_unnamed(name, sys).is_none()) {
                counted.push(name.clone());
                devices.push(device);
            }
        }
        if devices.is_empty() {
            let why = names.iter().find_map(|name| why_unnamed(name, sys));
            return Err(BpfError::NoDevice(why.unwrap_or("there is no device to count")));
        }
        Self::by(Programs::load_with_children(&devices)?, counted, sys)
    }

    /// Counts with these programs, which were loaded for these devices.
    fn by(programs: Programs, names: Vec<String>, sys: &Path) -> Result<Self, BpfError> {
        programs.start(|_| {});
        let last = programs.snapshot()?;
        let now = |name: &String| super::read(name, sys).and_then(Result::ok);
        let stats: Vec<Option<DiskStat>> = names.iter().map(now).collect();
        let takes_bios =
            |name: &str| BlockDevice::read(&block_path(sys, name)).is_some_and(|device| device.queues == 0);
        let in_flight = |(name, stat): (&String, &Option<DiskStat>)| {
            stat.filter(|_| takes_bios(name)).map_or(0, |stat| stat.in_flight)
        };
        let earlier = names.iter().zip(&stats).map(in_flight).collect();
        let since = names.iter().zip(stats).map(|(name, stat)| Since::at(name, stat, sys)).collect();
        let (phantoms, sys) = (vec![0; names.len()], sys.to_owned());
        Ok(Self { programs, names, last, phantoms, since, earlier, sys })
    }

    /// In words, that the programs are not attached in the best way, and why not.
    pub(super) fn limit(&self) -> Option<String> {
        raw_in_words(&self.programs)
    }

    /// What was counted since the last call, by device. `stats` are the kernel's counters just before.
    ///
    /// # Errors
    /// Why the maps cannot be read any more.
    pub(super) fn growth(&mut self, stats: &Counters) -> Result<BTreeMap<String, BlockActivity>, BpfError> {
        let now = self.programs.snapshot()?;
        self.programs.forget_deepest();
        let counted = self.last.until(&now);
        let before = std::mem::replace(&mut self.last, now);
        let mut growths = BTreeMap::new();
        for (index, name) in self.names.iter().enumerate() {
            let its = &counted.devices[index];
            let idle_before = stats.get(name).and_then(|stat| stat.as_ref().ok().copied());
            let unseen = unseen(&mut self.since[index], &counted, index, idle_before.as_ref());
            let unseen = without(&mut self.earlier[index], unseen);
            let mut growth = growth_of(&counted, index, name, self.phantoms[index], unseen);
            growth.depth_ns =
                depth_ns(&before.devices[index], its, self.phantoms[index], counted.interval_ns);
            // If nothing was in flight on either side of the look, whatever the programs have in flight is none.
            let idle_after = super::read(name, &self.sys).and_then(Result::ok);
            if let (Some(before), Some(after)) = (idle_before, idle_after)
                && before == after
                && let Some(since) = Since::at(name, Some(after), &self.sys)
            {
                let new = its.in_flight_at_end.saturating_sub(self.phantoms[index]);
                self.phantoms[index] = its.in_flight_at_end;
                self.since[index] = Some(since);
                self.earlier[index] = 0;
                growth.lost = growth.lost.saturating_add(new);
            }
            growth.deepest = growth.deepest.filter(|_| growth.lost == 0);
            // That depends on switches, which may be turned meanwhile.
            if why_unnamed(name, &self.sys).is_none() {
                growths.insert(name.clone(), growth);
            }
        }
        Ok(growths)
    }

    /// Processes of ours that could not be followed, so that theirs counts as others' I/O.
    pub(super) fn unfollowed(&self) -> u64 {
        self.last.unfollowed
    }
}

/// Ends of a device whose beginnings were missed, where the kernel's counters were these just before.
fn unseen(since: &mut Option<Since>, counted: &Counted, index: usize, now: Option<&DiskStat>) -> u64 {
    let unseen = counted.devices[index].unseen;
    let Some(since) = since else { return unseen };
    since.begun_bytes = since.begun_bytes.saturating_add(counted.begun_bytes(index));
    if now.is_some_and(|now| since.saw_all_begin(now)) { 0 } else { unseen }
}

/// Unseen beginnings, but for those before counting, of which fewer are left then.
fn without(earlier: &mut u64, unseen: u64) -> u64 {
    let of_earlier = unseen.min(*earlier);
    *earlier -= of_earlier;
    unseen - of_earlier
}

/// Requests × time in flight. What was in flight at the beginning was so from there on, and the sum of the interval is modulo 2^64
/// until it has it; what only seems to be in flight was so for the whole interval.
fn depth_ns(before: &DeviceTotals, counted: &DeviceCounted, phantoms: u64, interval_ns: u64) -> u64 {
    let began_with = before.begun_and_not_ended().wrapping_sub(phantoms);
    let sum = counted.depth_ns.wrapping_add(began_with.wrapping_mul(interval_ns));
    // The lanes are not read at one moment: where nothing was in flight, that leaves some microseconds on either side of 0.
    if sum.cast_signed() < 0 { 0 } else { sum }
}

fn growth_of(counted: &Counted, index: usize, name: &str, phantoms: u64, unseen: u64) -> BlockActivity {
    let its: &DeviceCounted = &counted.devices[index];
    let lost = its.lost.saturating_add(unseen).saturating_add(its.overflowed);
    let deepest = (lost == 0).then(|| its.deepest.saturating_sub(phantoms));
    BlockActivity { deepest, lost, ..activity_of(counted, index, 0, name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::UNNAMED_NVME;
    use rdsk_model::Op;
    use rdsk_testkit::{FakeDisk, FakeSys, LoopDevice, Need, Turn, requires};
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

    #[test]
    fn devices_whose_bios_do_not_name_them_are_not_counted() {
        let path = FakeDisk { major_minor: (259, 7), ..FakeDisk::loop_device("nvme0c0n1", 1 << 30) };
        let fake = FakeSys::new().disk(FakeDisk::nvme("nvme0n1")).disk(path).disk(FakeDisk::scsi("sda"));
        let sys = fake.sys();
        let names_them = |name: &str| why_unnamed(name, &sys).is_none();
        assert!(!names_them("nvme0n1") && !names_them("nvme0n1p2"));
        assert!(names_them("sda") && names_them("nvme0c0n1") && names_them("nvme1n1"));
        let refused = BlockCounts::load(&["nvme0n1".to_owned()], &sys).map(drop);
        assert_eq!(refused.map_err(|error| error.words()), Err(UNNAMED_NVME.to_owned()));
    }

    /// What passes a bio itself on instead of a clone, and what that lies on, unless it takes requests.
    #[test]
    fn devices_that_pass_bios_on_are_not_counted() {
        let md = |name: &str, level: &str| FakeDisk::md(name, level, 2, 65536, 1 << 30);
        let disks = FakeSys::new()
            .disk(md("md0", "linear"))
            .disk(md("md4", "raid0"))
            .disk(md("md5", "faulty"))
            .disk(md("md6", "raid1"))
            // Any that takes bios; the directory `bcache` makes it one.
            .disk(md("bcache7", "raid1"))
            .disk(FakeDisk::scsi("sda"));
        let fake = disks.partition("md0", 1, 1 << 20, 1 << 20).partition("bcache7", 1, 1 << 20, 1 << 20);
        let sys = fake.sys();
        for name in ["bcache7", "md6", "sda"] {
            fake.set_attribute(name, "bcache/running", "1\n");
        }
        fake.set_attribute("sda", "mq/0/nr_tags", "64\n");
        let are_unnamed = |names: &[&str], expected: bool| {
            names.iter().for_each(|name| assert_eq!(why_unnamed(name, &sys).is_some(), expected, "{name}"));
        };
        are_unnamed(&["bcache7", "bcache7p1", "md0", "md0p1", "md5", "md6"], true);
        are_unnamed(&["md4", "sda"], false);
        fake.set_attribute("md4", "queue/iostats", "0\n");
        are_unnamed(&["md4"], true);
        let refused = BlockCounts::load(&["bcache7".to_owned()], &sys).map(|_| ());
        assert!(refused.is_err_and(|why| why.words().starts_with("bios of bcache devices")));
    }

    /// Such requests have no partition, and it would seem to be idle; the disk counts all of them.
    #[test]
    fn a_partition_is_not_counted_while_statistics_of_its_disk_are_off() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).partition("sda", 1, 1 << 20, 1 << 20);
        fake.set_attribute("sda", "mq/0/nr_tags", "64\n");
        let why = |name: &str| why_unnamed(name, &fake.sys());
        assert_eq!((why("sda1"), why("sda")), (None, None));
        fake.set_attribute("sda", "queue/iostats", "0\n");
        assert!(why("sda1").is_some_and(|why| why.contains("queue/iostats of its disk is 0")));
        assert_eq!(why("sda"), None);
    }

    /// What only seems to be in flight is found where nothing is, unless the counters would not show it.
    #[test]
    fn a_quiet_moment_is_one_whose_counters_would_move() {
        let fake =
            FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::dm("dm-0", "v-l", "LVM-x", 1 << 30));
        let sys = fake.sys();
        let quiet = |name: &str, read_ios| {
            let stat = DiskStat { read_ios, ..DiskStat::default() };
            Since::at(name, Some(stat), &sys).is_some()
        };
        assert!(quiet("sda", 0) && quiet("dm-0", 0));
        for name in ["sda", "dm-0"] {
            let queue = block_path(&sys, name).join("queue");
            std::fs::create_dir_all(&queue).unwrap();
            std::fs::write(queue.join("iostats"), "0\n").unwrap();
        }
        assert!(!quiet("sda", 0) && !quiet("sda", 5), "it was counted before");
        assert!(!quiet("dm-0", 0) && !quiet("dm-0", 5), "the kernel is not known");
        let release = fake.proc().join("sys/kernel/osrelease");
        std::fs::create_dir_all(release.parent().unwrap()).unwrap();
        std::fs::write(&release, "6.1.0-56-amd64\n").unwrap();
        assert!(!quiet("dm-0", 0) && quiet("dm-0", 5), "it counts by itself");
        std::fs::write(&release, "6.12.1\n").unwrap();
        assert!(!quiet("dm-0", 5), "it was counted before the switch");
    }

    #[test]
    fn ends_are_parts_where_all_bytes_were_seen_to_begin() {
        let stat = |reads: u64, in_flight: u64| DiskStat {
            read_ios: reads,
            read_sectors: reads * 8,
            in_flight,
            ..DiskStat::default()
        };
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda"));
        let at = |stat| Since::at("sda", stat, &fake.sys());
        assert!(at(Some(stat(1, 1))).is_none() && at(None).is_none());
        let since = at(Some(stat(100, 0))).unwrap();
        assert!(!since.saw_all_begin(&stat(100, 0)), "nothing began");
        let since = Since { begun_bytes: 10 * 4096, ..since };
        assert!(since.saw_all_begin(&stat(110, 0)));
        assert!(since.saw_all_begin(&stat(108, 2)), "two have not ended");
        assert!(!since.saw_all_begin(&stat(111, 0)), "one was missed");
        assert!(!since.saw_all_begin(&stat(3, 0)), "the device is another one");
    }

    #[test]
    fn what_was_under_way_at_the_beginning_is_not_missed_when_it_ends() {
        let mut earlier = 3;
        let missed = [2, 0, 2, 5].map(|unseen| without(&mut earlier, unseen));
        assert_eq!((missed, earlier), ([0, 0, 1, 5], 0));
    }

    const READS: u64 = 200;
    /// The kernel may pass over an event of a program that runs already.
    const ATTEMPTS: usize = 50;

    fn read(file: &File) {
        let mut memory = vec![0_u8; 8192];
        let start = memory.as_ptr().align_offset(4096);
        for index in 0..READS {
            file.read_exact_at(&mut memory[start..start + 4096], index % 256 * 4096).unwrap();
        }
    }

    #[test]
    fn programs_that_are_attached_the_other_way_count_the_same_and_say_so() {
        if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
            return;
        }
        let _turn = Turn::Bpf.take();
        let disk = LoopDevice::builder().size(1 << 20).create().unwrap();
        let name = disk.path().file_name().unwrap().to_str().unwrap().to_owned();
        let (sys, flag) = (Path::new("/sys"), i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap());
        let file = OpenOptions::new().read(true).custom_flags(flag).open(disk.path()).unwrap();
        let best = BlockCounts::load(std::slice::from_ref(&name), sys).unwrap();
        let device = BlockDevice::read(&block_path(sys, &name)).unwrap();
        let raw =
            BlockCounts::by(Programs::load_as_raw(&[device]).unwrap(), vec![name.clone()], sys).unwrap();
        assert_eq!(best.limit(), None);
        let limit = raw.limit().unwrap();
        assert!(limit.contains("raw_tp") && limit.ends_with("because a test wants it so"), "{limit}");
        for mut counts in [best, raw] {
            let exact = (0..ATTEMPTS).any(|_| {
                // What was read before is not looked at.
                counts.growth(&BTreeMap::new()).unwrap();
                read(&file);
                let growth = counts.growth(&BTreeMap::new()).unwrap().remove(&name).unwrap();
                let is_own = |bio: &&rdsk_model::Bio| bio.task == "this" && bio.op == Op::Read;
                let own: u64 = growth.bios.iter().filter(is_own).map(|bio| bio.count).sum();
                let issued: u64 = growth.requests.iter().map(|one| one.count).sum();
                assert!(own <= READS, "{own}");
                own == READS && issued >= READS && growth.latency.count() == issued
            });
            assert!(exact, "{:?}", counts.limit());
        }
    }
}
