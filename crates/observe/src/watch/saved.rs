//! One interval from two saved trees of procfs: `diskstats` and `uptime`, copied at two moments. It reads no clock.

use super::devices::natural;
use super::{Counters, growth};
use crate::ObserveError;
use crate::diskstat::{parse_stat, without_flushes};
use crate::still::{UNCOUNTED_MULTIPATH, UNCOUNTED_RAM, doubted, has_done};
use crate::sysfs::UNCOUNTED_PARTITION;
use rdsk_model::{DiskStat, Uncounted, WatchInterval, WatchedDevice, is_nvme_path};
use rdsk_sys::files::is_numbered;
use std::fs;
use std::path::Path;

/// A hundredth of a second: what `uptime` counts in.
const TICK_NS: u64 = 10_000_000;

/// Fields of a partition before Linux 2.6.25: reads, sectors read, writes, sectors written (its Documentation/iostats.txt).
const OLD_PARTITION_FIELDS: usize = 4;
const OLD_PARTITION: &str =
    "no counters: Linux before 2.6.25 counts no times of a partition; its disk has them";

/// Drivers whose devices take bios, for which no flush is counted.
const TAKE_BIOS: [&str; 8] = ["dm-", "md", "zram", "bcache", "drbd", "pmem", "ram", "zd"];

/// What the devices of two trees did in between: those of these names, or without any every whole disk that the later
/// tree shows to have been used.
///
/// # Errors
/// If a file is missing, empty or no file of the kernel, the second tree is not later than the first, or neither has a
/// device of one of the names.
pub fn saved_interval(from: &Path, to: &Path, names: &[String]) -> Result<WatchInterval, ObserveError> {
    let (began, ended) = (uptime(from)?, uptime(to)?);
    let interval_ns = ended
        .checked_sub(began)
        .filter(|ticks| *ticks > 0)
        .and_then(|ticks| ticks.checked_mul(TICK_NS))
        .ok_or(ObserveError::NotLater { from_ticks: began, to_ticks: ended })?;
    let (before, after) = (diskstats(from)?, diskstats(to)?);
    let mut listed: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    listed.sort_by_key(|name| natural(name));
    listed.dedup();
    if let Some(name) = names.iter().find(|name| !listed.contains(name)) {
        return Err(ObserveError::NotInTree { name: name.clone() });
    }
    let shown: Vec<&String> = if names.is_empty() {
        let used = |name: &str| !matches!(after.get(name), Some(Ok(stat)) if !has_done(stat));
        listed.iter().filter(|name| used(name) && disk_of(name, &listed).is_none()).collect()
    } else {
        names.iter().collect()
    };
    let devices = shown.into_iter().filter_map(|name| {
        let growth = growth(before.get(name), after.get(name))?;
        let growth = growth.and_then(|growth| match after.get(name) {
            Some(Ok(stat)) => counted_growth(name, growth, stat, &listed),
            _ => Ok(growth),
        });
        Some(WatchedDevice::by_counters(name.as_str(), growth))
    });
    Ok(WatchInterval { interval_ns, devices: devices.collect() })
}

/// What a growth of the counters of a device up to these says, among all devices of the trees: nothing where the kernel prints zeros because
/// it does not count.
fn counted_growth(
    name: &str,
    growth: DiskStat,
    stat: &DiskStat,
    listed: &[String],
) -> Result<DiskStat, Uncounted> {
    let disk = disk_of(name, listed);
    let has_paths = |name: &str| listed.iter().any(|path| is_nvme_path(path, name));
    if disk.is_some_and(|disk| has_paths(disk)) {
        return Err(Uncounted::Unreadable(format!("no counters: {UNCOUNTED_PARTITION}")));
    }
    let is_multipath = has_paths(name);
    let doubt = if is_multipath {
        Some(UNCOUNTED_MULTIPATH)
    } else {
        is_numbered(name, "ram").then_some(UNCOUNTED_RAM)
    };
    if let Some(why) = doubt.filter(|_| !has_done(stat)) {
        return Err(Uncounted::Unknown(doubted(name, why).to_string()));
    }
    let takes_bios =
        is_multipath || name.starts_with("md_") || TAKE_BIOS.iter().any(|driver| is_numbered(name, driver));
    Ok(if disk.is_some() || takes_bios { without_flushes(growth) } else { growth })
}

/// The disk of which a name is a partition's: `sda` of `sda1`, `nvme0n1` of `nvme0n1p2`; the trees say no more.
fn disk_of<'all>(name: &str, listed: &'all [String]) -> Option<&'all String> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk.len() == name.len() {
        return None;
    }
    let numbered = disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    let disk = numbered.unwrap_or(disk);
    listed.iter().find(|name| *name == disk)
}

/// The first number of `uptime`, in hundredths of a second.
fn uptime(tree: &Path) -> Result<u64, ObserveError> {
    let text = read(&tree.join("uptime"))?;
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    let ticks = || {
        let (seconds, hundredths) = word.split_once('.')?;
        let hundredths = (hundredths.len() == 2).then(|| hundredths.parse::<u64>().ok())??;
        seconds.parse::<u64>().ok()?.checked_mul(100)?.checked_add(hundredths)
    };
    ticks().ok_or_else(|| ObserveError::NotANumber(word.to_owned()))
}

/// The counters by name. A line is `major minor name`, followed by the fields of a `stat` file.
fn diskstats(tree: &Path) -> Result<Counters, ObserveError> {
    let path = tree.join("diskstats");
    let text = read(&path)?;
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, name, fields @ ..] = &words[..] else {
            let wanted = DiskStat::MIN_FIELDS + 3;
            return Err(ObserveError::TooFewFields { found: words.len(), wanted });
        };
        let is_number = |field: &&str| field.parse::<u64>().is_ok();
        let counters = if fields.len() == OLD_PARTITION_FIELDS && fields.iter().all(is_number) {
            Err(Uncounted::Unreadable(OLD_PARTITION.to_owned()))
        } else {
            Ok(parse_stat(&fields.join(" "))?)
        };
        Ok(((*name).to_owned(), counters))
    };
    let counters: Counters =
        text.lines().filter(|text| !text.trim().is_empty()).map(line).collect::<Result<_, _>>()?;
    if counters.is_empty() { Err(ObserveError::NoDiskstats { path }) } else { Ok(counters) }
}

/// The text of a file; what is no UTF-8 in a name is replaced.
fn read(path: &Path) -> Result<String, ObserveError> {
    let bytes = fs::read(path).map_err(|source| ObserveError::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn tree(uptime: &str, diskstats: &str) -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("uptime"), uptime).unwrap();
        fs::write(tree.path().join("diskstats"), diskstats).unwrap();
        tree
    }

    fn line(name: &str, reads: u64) -> String {
        format!("   8  0 {name} {reads} 0 {} 1 0 0 0 0 0 2 2 0 0 0 0 0 0\n", reads * 8)
    }

    #[test]
    fn whole_disks_that_were_used_are_shown_by_number() {
        let names = ["sdb", "sda1", "sda", "nvme0n1p2", "nvme0n1", "md10", "md2", "sdz1"];
        let text = |reads| names.map(|name| line(name, reads)).concat() + &line("loop0", 0);
        let (from, to) = (tree("10.00 3.0\n", &text(5)), tree("12.50 3.0\n", &text(9)));
        let interval = saved_interval(from.path(), to.path(), &[]).unwrap();
        assert_eq!(interval.interval_ns, 2_500_000_000);
        let shown: Vec<&str> = interval.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(shown, ["md2", "md10", "nvme0n1", "sda", "sdb", "sdz1"]);
        assert!(interval.devices.iter().all(|device| device.growth.as_ref().unwrap().read_ios == 4));
        let named = saved_interval(from.path(), to.path(), &["loop0".into(), "sda1".into()]).unwrap();
        let growths = named.devices.iter().map(|device| device.growth.as_ref().unwrap().read_ios);
        assert_eq!(growths.collect::<Vec<_>>(), [0, 4]);
    }

    /// `sysstat` passes such zeros on.
    #[test]
    fn zeros_that_the_kernel_prints_without_counting_are_unknown() {
        let names = [
            "sda", "sda1", "dm-3", "md0", "zram0", "nvme0n1", "nvme0c1n1", "nvme0n1p1", "nvme1n1",
            "nvme1n1p1",
        ];
        let text = |reads| names.map(|name| line(name, reads)).concat();
        let (from, to) = (tree("1.00 0", &text(5)), tree("2.00 0", &text(9)));
        let interval = saved_interval(from.path(), to.path(), &names.map(String::from)).unwrap();
        let flushes = interval.devices.iter().map(|device| match &device.growth {
            Ok(growth) => growth.flush_ios.map_or("uncounted", |_| "counted"),
            Err(why) => why.state().as_str(),
        });
        let expected = [
            "counted", "uncounted", "uncounted", "uncounted", "uncounted", "uncounted", "counted",
            "unreadable", "counted", "uncounted",
        ];
        assert_eq!(flushes.collect::<Vec<_>>(), expected);
        // Before 6.4 the paths count, and the device does not.
        let text = |reads| line("nvme0n1", 0) + &line("nvme0c0n1", reads) + &line("ram0", 0);
        let (from, to) = (tree("1.00 0", &text(5)), tree("2.00 0", &text(9)));
        let old =
            saved_interval(from.path(), to.path(), &["nvme0n1".into(), "nvme0c0n1".into(), "ram0".into()])
                .unwrap();
        let words = old
            .devices
            .iter()
            .map(|device| device.growth.as_ref().map_or_else(|why| why.state().as_str(), |_| "counted"));
        assert_eq!(words.collect::<Vec<_>>(), ["unknown", "counted", "unknown"]);
    }

    #[test]
    fn what_came_and_went_is_said() {
        let from = tree("1.00 0", &(line("sda", 5) + &line("sdb", 3)));
        let to = tree("2.00 0", &(line("sdb", 2) + &line("sdc", 1)));
        let interval = saved_interval(from.path(), to.path(), &[]).unwrap();
        let words: Vec<&str> = interval
            .devices
            .iter()
            .map(|device| device.growth.as_ref().unwrap_err().state().as_str())
            .collect();
        assert_eq!(words, ["vanished", "restarted", "appeared"]);
    }

    /// As Linux 2.6.24 prints it.
    #[test]
    fn a_partition_of_an_old_kernel_refuses_no_file() {
        let text = |reads: u64| {
            format!(
                "   8    0 sda {reads} 5 800 50 200 10 1600 90 0 120 140\n   8    1 sda1 {reads} 800 200 1600\n"
            )
        };
        let (from, to) = (tree("1.00 0", &text(100)), tree("6.00 0", &text(150)));
        let shown = saved_interval(from.path(), to.path(), &[]).unwrap();
        let growths: Vec<_> = shown
            .devices
            .iter()
            .map(|device| (&*device.name, device.growth.as_ref().unwrap().read_ios))
            .collect();
        assert_eq!(growths, [("sda", 50)]);
        let named = saved_interval(from.path(), to.path(), &["sda1".into()]).unwrap();
        let why = named.devices[0].growth.as_ref().unwrap_err();
        assert_eq!(why.state().as_str(), "unreadable");
        assert!(why.to_string().contains("before 2.6.25"), "{why}");
    }

    #[test]
    fn trees_that_are_none_are_errors() {
        let good = tree("5.00 0", &line("sda", 5));
        let of = |from: &TempDir, to: &TempDir| saved_interval(from.path(), to.path(), &[]).unwrap_err();
        for (uptime, diskstats) in
            [("x", ""), ("6", ""), ("6.5 0", ""), ("6.00", "8 0\n"), ("6.00", "8 0 sda 1 2 x\n")]
        {
            let error = of(&good, &tree(uptime, diskstats));
            let is_ours = matches!(error, ObserveError::NotANumber(_) | ObserveError::TooFewFields { .. });
            assert!(is_ours, "{uptime} {diskstats}: {error}");
        }
        let empty = of(&good, &tree("6.00 0", "\n"));
        assert!(
            matches!(&empty, ObserveError::NoDiskstats { path } if path.ends_with("diskstats")),
            "{empty}"
        );
        for uptime in ["5.00 0", "4.99 0"] {
            let error = of(&good, &tree(uptime, &line("sda", 6)));
            assert!(matches!(error, ObserveError::NotLater { from_ticks: 500, .. }), "{error}");
        }
        let missing = tempfile::tempdir().unwrap();
        assert!(matches!(of(&good, &missing), ObserveError::Read { .. }));
        let later = tree("6.00 0", &line("sda", 6));
        let unknown = saved_interval(good.path(), later.path(), &["sdq".into()]).unwrap_err();
        assert!(matches!(unknown, ObserveError::NotInTree { name } if name == "sdq"));
    }
}
