//! What the programs counted of a device against what the kernel counted meanwhile: what they missed, and the same sum by both
//! sources. Arithmetic only; it reads nothing and judges nothing.

use crate::bpf::layout::{BlockOp, RequestKind};
use crate::bpf::snapshot::Counted;
use crate::bpf::visit::Ended;
use rdsk_model::{CountedDevice, DiskStat};
use rdsk_sys::files::is_numbered;

/// In which form a driver takes I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Bios,
    /// Bios, as the device mapper does: where one has data and asks for a flush before it, both are counted, the flush as a write
    /// without sectors (drivers/md/dm.c, `__dm_io_complete`).
    MappedBios,
    Requests,
}

impl Takes {
    /// The form in which this one does.
    pub(super) fn of(device: &CountedDevice) -> Self {
        match (device.takes_bios, is_numbered(&device.device, "dm-")) {
            (false, _) => Self::Requests,
            (true, true) => Self::MappedBios,
            (true, false) => Self::Bios,
        }
    }
}

/// What the programs and sysfs counted as done while the programs counted, or as begun where they took times for a part of it only;
/// `None` where sysfs cannot be read.
pub(super) fn by_both(ended: &Ended, device: usize, driver: Takes) -> Option<(u64, u64)> {
    let stat_of = |stats: &[Option<DiskStat>]| stats.get(device).copied().flatten();
    let (first, last) = (stat_of(&ended.stats[0])?, stat_of(&ended.stats[1])?);
    let its = &ended.counted.devices[device];
    let completed = completions(&last).saturating_sub(completions(&first));
    let (bpf, sysfs) = if ended.timed == ended.observed {
        // What was passed over ended, too.
        (its.completed + unended(ended, device) + its.unseen + its.earlier + its.empty, completed)
    } else {
        // The ends of most requests were not seen; their beginnings are those of what ended and of what is in flight.
        let began = (completed + last.in_flight).saturating_sub(first.in_flight);
        (begun(&ended.counted, device), began)
    };
    // A driver that takes bios counts a flush as a write, or not at all, and a bio that it splits once or by its parts (dm of
    // Linux 6.1: a read that a striped volume cut into four is four reads). The commits of a journal have data and ask for a flush.
    let empty = counts_of(&ended.counted, device).filter(|(kind, _)| is_empty(kind));
    let flushes: u64 = empty.map(|(_, count)| count).sum();
    let parts = match driver {
        Takes::Requests => 0,
        Takes::Bios => its.splits,
        Takes::MappedBios => its.splits.saturating_add(flushes_before_data(&ended.counted, device)),
    };
    let bpf = bpf - flushes.min(bpf.saturating_sub(sysfs)) + parts.min(sysfs.saturating_sub(bpf));
    let bpf = bpf - own_parts(ended, device).min(bpf.saturating_sub(sysfs));
    let (least, most) = counted_between(ended, device).unwrap_or((sysfs, sysfs));
    Some((bpf, bpf.clamp(least.min(sysfs), most.max(sysfs))))
}

/// The fewest and the most that the kernel counted while the programs did: these began between two looks at its counters, and ended
/// between two. On a busy machine, others' requests on the same device end between the looks of each pair.
fn counted_between(ended: &Ended, device: usize) -> Option<(u64, u64)> {
    let are_ends = ended.timed == ended.observed;
    let counted = |stats: &[Option<DiskStat>]| {
        let stat = stats.get(device).copied().flatten()?;
        let in_flight = if are_ends { 0 } else { stat.in_flight };
        Some(completions(&stat).saturating_add(in_flight))
    };
    let [before_first, before_last] = ended.just_before.each_ref().map(|stats| counted(stats));
    let [first, last] = ended.stats.each_ref().map(|stats| counted(stats));
    Some((before_last?.saturating_sub(first?), last?.saturating_sub(before_first?)))
}

/// Ends of which the programs saw no beginning, although they saw all bytes begin that the kernel counted: a driver that cuts bios
/// itself ends each part (RAID 10 of md on 6.1, 2026-11: a read of 256 KiB over four chunks has one beginning and four ends).
fn own_parts(ended: &Ended, device: usize) -> u64 {
    let moved = |stats: &[Option<DiskStat>]| Some(stats.get(device).copied().flatten()?.moved_bytes());
    let (Some(first), Some(last)) = (moved(&ended.stats[0]), moved(&ended.stats[1])) else { return 0 };
    let begun = ended.counted.begun_bytes(device);
    let all_began = ended.timed == ended.observed && begun > 0 && begun == last.saturating_sub(first);
    if all_began { ended.counted.devices[device].unseen } else { 0 }
}

/// Requests of a device whose end was not seen, but for those that the kernel had in flight when counting ended.
pub(super) fn unended(ended: &Ended, device: usize) -> u64 {
    let in_flight = ended.stats[1].get(device).copied().flatten().map_or(0, |stat| stat.in_flight);
    let its = &ended.counted.devices[device];
    let left = its.in_flight_at_end.saturating_sub(in_flight);
    its.lost.saturating_add(left.saturating_sub(flushes_in_flight(ended, device)))
}

/// Flushes that had begun and not ended when counting ended: the kernel has them among what is in flight on some versions only (6.18
/// has, 6.1 has not).
fn flushes_in_flight(ended: &Ended, device: usize) -> u64 {
    let flushes_of = |stats: &[Option<DiskStat>]| stats.get(device).copied().flatten()?.flush_ios;
    let (Some(first), Some(last)) = (flushes_of(&ended.stats[0]), flushes_of(&ended.stats[1])) else {
        return 0;
    };
    let began = ended.counted.issued(device, BlockOp::Flush) + ended.counted.devices[device].earlier_flushes;
    began.saturating_sub(last.saturating_sub(first))
}

/// Of these, those that the programs certainly passed over. Others' I/O goes on below a target, and requests end between the last
/// look of the programs and that of the kernel: at most as many as the kernel counted around both.
fn missed_of(ended: &Ended, device: usize) -> u64 {
    if ended.timed == ended.whole {
        let healed = ended.counted.devices[device].lost;
        unended(ended, device).saturating_sub(ended_meanwhile(ended, device)).max(healed)
    } else {
        ended.counted.devices[device].lost
    }
}

/// What the kernel completed around the moment at which counting ended.
fn ended_meanwhile(ended: &Ended, device: usize) -> u64 {
    completed_between(&ended.just_before[1], &ended.stats[1], device)
}

fn completed_between(before: &[Option<DiskStat>], after: &[Option<DiskStat>], device: usize) -> u64 {
    let completions_of =
        |stats: &[Option<DiskStat>]| stats.get(device).copied().flatten().map(|stat| completions(&stat));
    match (completions_of(before), completions_of(after)) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => 0,
    }
}

/// Bios that others may have had under way when counting began, whose ends are no loss: as many as the kernel had in flight just
/// after, and those that it ended around that moment. When a bio was made nothing says, when a request was the programs look at.
fn earlier_bios(ended: &Ended, device: usize) -> u64 {
    let in_flight = ended.stats[0].get(device).copied().flatten().map_or(0, |stat| stat.in_flight);
    in_flight.saturating_add(completed_between(&ended.just_before[0], &ended.stats[0], device))
}

/// What the programs did not count in whole.
pub(super) fn lost_of(ended: &Ended, device: usize, driver: Takes) -> u64 {
    let its = &ended.counted.devices[device];
    let earlier = if driver == Takes::Requests { 0 } else { earlier_bios(ended, device) };
    let unseen = its.unseen.saturating_sub(own_parts(ended, device)).saturating_sub(earlier);
    missed_of(ended, device).saturating_add(unseen).saturating_add(its.overflowed)
}

/// What a device was given, and the bios without data that only ask for a flush: sysfs counts them as writes, and a driver that takes
/// requests never sees them.
fn begun(counted: &Counted, device: usize) -> u64 {
    let requests: u64 = counts_of(counted, device).map(|(_, count)| count).sum();
    requests + counted.devices[device].flush_bios
}

/// All requests that a device completed.
fn completions(stat: &DiskStat) -> u64 {
    let rest = [stat.discard_ios, stat.flush_ios].into_iter().flatten();
    rest.fold(stat.read_ios.saturating_add(stat.write_ios), u64::saturating_add)
}

/// The requests of one device by kind.
pub(super) fn counts_of(counted: &Counted, device: usize) -> impl Iterator<Item = (&RequestKind, u64)> {
    counted.requests.iter().filter(move |(kind, _)| kind.device == device).map(|(kind, &count)| (kind, count))
}

/// Whether these are bios without data that ask for a flush, which arrive as writes where a driver takes bios.
pub(super) fn is_empty(kind: &RequestKind) -> bool {
    kind.bytes == 0 && kind.flags.is_preflush()
}

/// Writes with data that ask for a flush before it.
fn flushes_before_data(counted: &Counted, device: usize) -> u64 {
    let is_one = |kind: &RequestKind| kind.op == BlockOp::Write && kind.bytes > 0 && kind.flags.is_preflush();
    counts_of(counted, device).filter(|(kind, _)| is_one(kind)).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::snapshot::DeviceCounted;
    use std::time::Duration;

    /// Where others' requests end while counting ends, those in flight by the programs and not by the kernel are no loss; what the
    /// kernel did not complete meanwhile is one.
    #[test]
    fn what_ended_around_the_end_of_counting_is_not_lost() {
        let whole = Duration::from_secs(1);
        let lost = |in_flight_at_end: u64, healed: u64, ended_between: u64, in_flight: u64| {
            let device = DeviceCounted { in_flight_at_end, lost: healed, ..DeviceCounted::default() };
            let stat = |read_ios, in_flight| Some(DiskStat { read_ios, in_flight, ..DiskStat::default() });
            let (before, after) = (vec![stat(100, 9)], vec![stat(100 + ended_between, in_flight)]);
            let counted = Counted { devices: vec![device], ..Counted::default() };
            let stats = [vec![stat(0, 0)], after];
            let just_before = [stats[0].clone(), before];
            let ended = Ended { counted, stats, just_before, observed: whole, timed: whole, whole };
            lost_of(&ended, 0, Takes::Requests)
        };
        assert_eq!((lost(5, 0, 0, 5), lost(5, 0, 3, 2), lost(5, 0, 4, 2)), (0, 0, 0));
        assert_eq!((lost(5, 0, 0, 2), lost(5, 0, 1, 2), lost(0, 2, 0, 0), lost(3, 2, 3, 0)), (3, 2, 2, 2));
    }

    /// What others' requests ended between the two looks around a moment may be on either side of it.
    #[test]
    fn what_ended_between_two_looks_is_no_difference() {
        let whole = Duration::from_secs(1);
        let both = |completed: u64| {
            let stat = |read_ios| vec![Some(DiskStat { read_ios, ..DiskStat::default() })];
            let device = DeviceCounted { completed, ..DeviceCounted::default() };
            let counted = Counted { devices: vec![device], ..Counted::default() };
            let (just_before, stats) = ([stat(100), stat(1000)], [stat(130), stat(1050)]);
            by_both(
                &Ended { counted, stats, just_before, observed: whole, timed: whole, whole },
                0,
                Takes::Requests,
            )
        };
        assert_eq!([both(870), both(920), both(950)], [870, 920, 950].map(|all| Some((all, all))));
        assert_eq!((both(800), both(960)), (Some((800, 870)), Some((960, 950))));
    }

    /// 32 reads of 256 KiB, of which a driver ended each in four parts; the kernel counted so many bytes and I/Os.
    fn in_parts(bytes: u64, read_ios: u64) -> Ended {
        let whole = Duration::from_secs(1);
        let device = DeviceCounted { completed: 32, unseen: 96, ..DeviceCounted::default() };
        let reads = RequestKind::from([1 << 31, 256 << 10]);
        let counted = Counted {
            interval_ns: 1,
            devices: vec![device],
            requests: [(reads, 32)].into(),
            bios: std::collections::BTreeMap::new(),
        };
        let last = DiskStat { read_ios, read_sectors: bytes / 512, ..DiskStat::default() };
        let stats = [vec![Some(DiskStat::default())], vec![Some(last)]];
        Ended { counted, just_before: stats.clone(), stats, observed: whole, timed: whole, whole }
    }

    #[test]
    fn parts_that_a_driver_ends_are_no_loss_where_all_bytes_were_seen_to_begin() {
        let by_parts = in_parts(8 << 20, 128);
        assert_eq!(
            (lost_of(&by_parts, 0, Takes::Bios), by_both(&by_parts, 0, Takes::Bios)),
            (0, Some((128, 128)))
        );
        let by_bios = in_parts(8 << 20, 32);
        assert_eq!(
            (lost_of(&by_bios, 0, Takes::Bios), by_both(&by_bios, 0, Takes::Bios)),
            (0, Some((32, 32)))
        );
        let missed = in_parts(32 << 20, 128);
        assert_eq!(
            (lost_of(&missed, 0, Takes::Bios), by_both(&missed, 0, Takes::Bios)),
            (96, Some((128, 128)))
        );
    }

    /// 40 plain writes and ten that ask for a flush before their data: the device mapper counts 60, whatever else it is 50. What is more
    /// than these was missed.
    #[test]
    fn a_flush_before_the_data_is_counted_too_where_a_device_is_mapped() {
        let whole = Duration::from_secs(1);
        let both = |driver, write_ios: u64| {
            let [plain, commit] = [0_u64, 3].map(|flags| RequestKind::from([1 << 31 | flags << 8 | 1, 4096]));
            let counted = Counted {
                devices: vec![DeviceCounted { completed: 50, ..DeviceCounted::default() }],
                requests: [(plain, 40), (commit, 10)].into(),
                ..Counted::default()
            };
            let last = DiskStat { write_ios, ..DiskStat::default() };
            let stats = [vec![Some(DiskStat::default())], vec![Some(last)]];
            let just_before = stats.clone();
            by_both(&Ended { counted, stats, just_before, observed: whole, timed: whole, whole }, 0, driver)
        };
        let device = |device: &str, takes_bios| {
            let (target, device) = (0, device.to_owned());
            CountedDevice { target, device, kind: None, takes_bios, below: Vec::new(), lost: None }
        };
        let of = |name: &str, takes_bios| Takes::of(&device(name, takes_bios));
        assert_eq!((of("dm-3", true), of("md0", true)), (Takes::MappedBios, Takes::Bios));
        assert_eq!((of("dm-3", false), of("sda", false)), (Takes::Requests, Takes::Requests));
        let mapped = [50, 60, 65].map(|counted| both(Takes::MappedBios, counted));
        assert_eq!(mapped, [Some((50, 50)), Some((60, 60)), Some((60, 65))]);
        assert_eq!([Takes::Bios, Takes::Requests].map(|driver| both(driver, 60)), [Some((50, 60)); 2]);
    }

    /// Others' I/O that was under way when counting began ends unseen, and that is no loss. Of a bio only the kernel's own number of those
    /// in flight says; of a request the programs know.
    #[test]
    fn what_began_before_counting_is_not_lost() {
        let whole = Duration::from_secs(1);
        let lost = |driver, unseen: u64, before: [u64; 2], after: [u64; 2]| {
            let device = DeviceCounted { unseen, ..DeviceCounted::default() };
            let stat = |[write_ios, in_flight]: [u64; 2]| {
                Some(DiskStat { write_ios, in_flight, ..DiskStat::default() })
            };
            let end = vec![stat([after[0] + unseen, 0])];
            let (stats, just_before) = ([vec![stat(after)], end.clone()], [vec![stat(before)], end]);
            let counted = Counted { devices: vec![device], ..Counted::default() };
            let ended = Ended { counted, stats, just_before, observed: whole, timed: whole, whole };
            lost_of(&ended, 0, driver)
        };
        assert_eq!(lost(Takes::Bios, 2, [100, 2], [100, 2]), 0);
        assert_eq!(lost(Takes::Bios, 2, [100, 2], [101, 1]), 0, "one ended between two looks");
        assert_eq!(lost(Takes::Bios, 3, [100, 2], [100, 2]), 1);
        assert_eq!(lost(Takes::Requests, 2, [100, 2], [100, 2]), 2);
    }

    /// A flush that is under way when counting ends is no loss where the kernel does not have it among what is in flight.
    #[test]
    fn a_flush_that_goes_on_is_not_lost() {
        let whole = Duration::from_secs(1);
        let flush = RequestKind::from([1 << 31 | 2, 0]);
        let unended = |in_flight_at_end: u64, earlier_flushes: u64, ended_flushes: u64| {
            let device = DeviceCounted { in_flight_at_end, earlier_flushes, ..DeviceCounted::default() };
            let counted =
                Counted { devices: vec![device], requests: [(flush, 7)].into(), ..Counted::default() };
            let stat = |flushes| Some(DiskStat { flush_ios: Some(flushes), ..DiskStat::default() });
            let stats = [vec![stat(50)], vec![stat(50 + ended_flushes)]];
            let just_before = stats.clone();
            unended(&Ended { counted, stats, just_before, observed: whole, timed: whole, whole }, 0)
        };
        assert_eq!((unended(1, 0, 6), unended(1, 1, 7), unended(1, 0, 7), unended(2, 0, 6)), (0, 0, 1, 1));
    }

    /// Where the ends were not seen, what began is compared: requests of all kinds, and bios that only ask for a flush, which sysfs
    /// counts as writes and no driver is given. Where bios stand for requests, these are among the kinds.
    #[test]
    fn what_began_is_all_that_sysfs_will_count() {
        let word = |device: u64, op: u64| device << 32 | 1 << 31 | op;
        let kind = |device, op| RequestKind::from([word(device, op), 4096]);
        let device = |flush_bios| DeviceCounted { flush_bios, ..DeviceCounted::default() };
        let counted = Counted {
            interval_ns: 1,
            devices: vec![device(4), device(0)],
            requests: [(kind(0, 0), 100), (kind(0, 1), 20), (kind(0, 2), 3), (kind(1, 0), 7)].into(),
            bios: std::collections::BTreeMap::new(),
        };
        assert_eq!((begun(&counted, 0), begun(&counted, 1)), (100 + 20 + 3 + 4, 7));
    }
}
