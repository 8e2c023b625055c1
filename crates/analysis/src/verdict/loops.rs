//! What answered below a loop device: its backing file's disk, or memory, or nothing. A loop device counts every request that it
//! passes on, whether a disk is behind its file or not, so its own counters prove nothing.

use super::Judgement;
use super::facts::Facts;
use crate::medium::is_memory_disk;
use crate::{metrics, words};
use rdsk_model::{DeviceEvidence, ExtentEvidence, LoopFile, Op, Sync, TargetKind, VerdictCode};
use rdsk_units::{percent, printable};

/// Below this share of bytes from the disk below, memory or nothing answered some of them.
const BELOW_SHARE: f64 = 0.9;
/// From this share of the file on, what is cached or was never written is all of it.
const WHOLE_SHARE: f64 = 0.9;
/// From this share of never written bytes on, missing reads of the disk are attributed to them.
const HOLE_SHARE: f64 = 0.1;
/// A file without any counters below is not read from its cache while less than this share of it is cached.
const CACHED_SHARE: f64 = 0.01;
/// Loop devices one upon the other that are followed.
const MAX_NESTED: usize = 8;

/// The judgement of a cell over loop devices that memory or a hole answered; `None` if disks did, or nothing is known.
///
/// Of two loop devices that moved 6 and 2 GiB, a disk moved 1.5 GiB below the first and all below the second: 4.5 of 8 GiB are missing,
/// 56 %, and the verdict is that of the first. If a disk had moved 5.3 GiB of the 6, 0.7 of 8 GiB would be missing, 9 %, which
/// counters may be off by, and the disks would have done it.
pub(super) fn judge(facts: &Facts<'_>) -> Judgement {
    let evidence = &facts.cell.evidence;
    let mut answers: Vec<(u64, Answer)> = Vec::new();
    for file in evidence.loops.iter().filter(|file| facts.cell.workload.targets.contains(&file.target)) {
        // A loop device below another one's file is judged with that.
        if evidence.loops.iter().any(|other| other.target == file.target && is_below(other, file)) {
            continue;
        }
        if let (Some(moved), Some(answer)) = (moved_by(facts, file), answer_of(facts, file, MAX_NESTED)) {
            answers.push((moved, answer));
        }
    }
    let missing: f64 = answers.iter().map(|(moved, answer)| *moved as f64 * answer.missing).sum();
    // Devices without a loop device may carry the rest.
    let moved = facts.moved.unwrap_or(0).max(answers.iter().map(|(moved, _)| *moved).max().unwrap_or(0));
    if moved == 0 || missing / (moved as f64) <= 1.0 - BELOW_SHARE {
        return None;
    }
    let part = |(moved, answer): &(u64, Answer)| *moved as f64 * answer.missing;
    let (_, worst) = answers.iter().max_by(|a, b| part(a).total_cmp(&part(b)))?;
    let others = answers.iter().filter(|answer| part(answer) > 0.0).count() - 1;
    let more = if others > 0 { format!("; {others} more loop devices likewise") } else { String::new() };
    Some((worst.code, format!("{}{more}", worst.text)))
}

/// What one loop device did not get from a disk.
struct Answer {
    /// Share of its bytes.
    missing: f64,
    code: VerdictCode,
    text: String,
}

/// Whether the file of `upper` lies on the loop device `lower`, or a partition of it.
fn is_below(upper: &LoopFile, lower: &LoopFile) -> bool {
    upper.device != lower.device && upper.below.as_deref().is_some_and(|below| carries(below, &lower.device))
}

/// Whether `name` is the loop device or one of its partitions.
fn carries(name: &str, device: &str) -> bool {
    name.strip_prefix(device).is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix('p')
                .is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn device<'a>(facts: &Facts<'a>, target: u32, name: &str) -> Option<&'a DeviceEvidence> {
    facts.cell.evidence.device.iter().find(|device| device.target == target && device.name == name)
}

/// Bytes that a loop device moved for the cell, as far as it is known.
fn moved_by(facts: &Facts<'_>, file: &LoopFile) -> Option<u64> {
    let own = device(facts, file.target, &file.device)?;
    metrics::bytes_of(own, facts.cell.workload.op).filter(|&bytes| bytes > 0)
}

/// `None` if a disk moved its bytes, or if that is not known.
fn answer_of(facts: &Facts<'_>, file: &LoopFile, levels: usize) -> Option<Answer> {
    let in_memory = in_memory(facts, file);
    let nested = || {
        let loops = facts.cell.evidence.loops.iter();
        let mut lower = loops.filter(|lower| lower.target == file.target && is_below(file, lower));
        let lower = lower.next().filter(|_| levels > 0)?;
        answer_of(facts, lower, levels - 1).map(|answer| Answer {
            text: format!(
                "the file of {} lies on {}; {}",
                printable(&file.device),
                printable(&lower.device),
                answer.text
            ),
            ..answer
        })
    };
    let own = || match facts.cell.workload.op {
        Op::Read => read(facts, file),
        Op::Write => written(facts, file),
    };
    // What lies lower is the better reason for as much.
    in_memory.or_else(|| {
        nested()
            .into_iter()
            .chain(own())
            .reduce(|low, high| if high.missing > low.missing { high } else { low })
    })
}

/// The backing file lies in memory.
fn in_memory(facts: &Facts<'_>, file: &LoopFile) -> Option<Answer> {
    let kind = file.filesystem.as_deref().filter(|kind| matches!(*kind, "tmpfs" | "ramfs"));
    let disk = file.below.as_deref().filter(|below| is_memory_disk(below));
    let keeper = match (kind, disk) {
        (Some(kind), _) => format!("on {kind}, which keeps its files in memory"),
        (None, Some(disk)) => format!("on {}, which is memory", printable(disk)),
        (None, None) => return None,
    };
    let text = format!(
        "{}, but its backing file {} is {keeper}: no disk was reached",
        did(facts, file),
        shown(file)
    );
    Some(Answer { missing: 1.0, code: VerdictCode::PageCache, text })
}

fn read(facts: &Facts<'_>, file: &LoopFile) -> Option<Answer> {
    let moved = moved_by(facts, file)?;
    let below = file.below.as_deref().and_then(|below| device(facts, file.target, below));
    let below_bytes = below.and_then(|below| metrics::bytes_of(below, Op::Read));
    let share = below_bytes.map(|bytes| metrics::ratio(bytes, moved).min(1.0));
    let counted = match (below, below_bytes) {
        (Some(below), Some(bytes)) => format!("; {} read {}", printable(&below.name), words::bytes(bytes)),
        _ => String::new(),
    };
    let answer = |missing: f64, code: VerdictCode, why: String| {
        Some(Answer { missing, code, text: format!("{}, but {why}{counted}", did(facts, file)) })
    };
    let holes = file.extents.map_or(0.0, |extents| never_written(&extents));
    let missing = 1.0 - share.unwrap_or(0.0);
    // What was never written is not read from a disk, whatever else reads there meanwhile.
    let is_surely_hole = least_in_holes(facts, file) >= WHOLE_SHARE;
    // A filesystem on the loop device has written what it gives back.
    let may_be_hole = holes >= HOLE_SHARE && !facts.is_file();
    if is_surely_hole
        || (may_be_hole
            && share.is_some()
            && missing >= 0.5 * holes
            && !is_mostly_cached(facts, file, missing))
    {
        let part = match file.partitions.as_slice() {
            [] => String::new(),
            parts => format!(" below {}", printable(&parts.join(", "))),
        };
        let why = format!(
            "{} of its backing file {}{part} was never written, and the filesystem returns zeros for that without reading",
            percent(holes),
            shown(file)
        );
        return answer(if is_surely_hole { 1.0 } else { missing }, VerdictCode::Hole, why);
    }
    if file.direct_io != Some(true) {
        return through_cache(facts, file, moved, share)
            .and_then(|(missing, why)| answer(missing, VerdictCode::PageCache, why));
    }
    share.filter(|&share| share < BELOW_SHARE).and_then(|_| {
        let name = shown(file);
        let why = format!("the disk below read less, although direct I/O is on for its backing file {name}");
        answer(missing, VerdictCode::Unverified, why)
    })
}

/// Whether more of the bytes that no disk read came from the page cache of the backing file than from holes of it: the cell's span may
/// lie outside of these as a whole and is cached, or they explain less than half.
///
/// A file of 10 GiB has 3 GiB that were never written, and no disk read anything of a span of 1 GiB. If 0.95 GiB of the file were cached
/// before each visit, the span may be those: memory. With 0.1 GiB cached it is not, and the holes stay the better reason. If the
/// span is all of the file, the holes explain 30 % of what is missing, and the cache the other 70 % if it held 6.3 GiB or more.
fn is_mostly_cached(facts: &Facts<'_>, file: &LoopFile, missing: f64) -> bool {
    let (Some(extents), Some(cached_bytes)) =
        (file.extents, file.page_cache.and_then(|cache| cache.before.cached_bytes))
    else {
        return false;
    };
    let span_bytes = facts.cell.workload.span_bytes.min(file.size_bytes).max(1);
    let of_span = |bytes: u64| metrics::ratio(bytes, span_bytes.saturating_mul(metrics::visits(facts.cell)));
    let may_be_written = metrics::ratio(extents.mapped_bytes, span_bytes) >= WHOLE_SHARE;
    let by_cache = (missing - never_written(&extents)).max(0.0);
    file.direct_io != Some(true)
        && match may_be_written {
            true => of_span(cached_bytes) >= WHOLE_SHARE,
            false => by_cache > never_written(&extents) && of_span(cached_bytes) >= WHOLE_SHARE * by_cache,
        }
}

/// What the page cache of the backing file answered of reads without direct I/O of the loop device: the share, and why.
fn through_cache(
    facts: &Facts<'_>,
    file: &LoopFile,
    moved: u64,
    share: Option<f64>,
) -> Option<(f64, String)> {
    let through = format!("it goes through the page cache of its backing file {}", shown(file));
    let all_bytes = file.size_bytes.saturating_mul(metrics::visits(facts.cell)).max(1);
    let cache = file.page_cache.and_then(|cache| cache.before.cached_bytes.zip(cache.after.cached_bytes));
    // Cached pages are not read again, whatever else the disk does meanwhile.
    if let Some((before, _)) = cache
        && metrics::ratio(before, all_bytes) >= WHOLE_SHARE
    {
        return Some((1.0, format!("{through}, which held all of it")));
    }
    if let Some(share) = share {
        let missing = 1.0 - share;
        return (share < BELOW_SHARE)
            .then(|| (missing, format!("{through}, and {} came from there", percent(missing))));
    }
    // Without counters below, what was fetched shows in the growth of the cache. A server that lets nothing be cached leaves
    // it empty.
    let (before, after) = cache?;
    let grown = after.saturating_sub(before);
    let fetched = metrics::ratio(grown, moved);
    let is_used = metrics::ratio(after, all_bytes) >= CACHED_SHARE;
    (is_used && fetched < BELOW_SHARE)
        .then(|| (1.0 - fetched, format!("{through}, which grew by only {}", words::bytes(grown))))
}

fn written(facts: &Facts<'_>, file: &LoopFile) -> Option<Answer> {
    let moved = moved_by(facts, file)?;
    let below = device(facts, file.target, file.below.as_deref()?)?;
    // Without a sync the figure is that of the return; the flush after the cell is not in it.
    let is_returned = facts.cell.workload.sync == Sync::None && facts.is_direct();
    let bytes =
        if is_returned { Some(below.diskstat?.write_bytes()) } else { metrics::bytes_of(below, Op::Write) }?;
    // A filesystem on it writes its metadata in that flush, several times as much where it copies on write (btrfs, measured 2026-11-23
    // on 6.18: 48 KiB by the return, 600 KiB in the end), so both counts must be those of the return.
    let own = device(facts, file.target, &file.device).and_then(|own| own.diskstat);
    let returned = own.map(|counted| counted.write_bytes()).filter(|&bytes| is_returned && bytes > 0);
    let moved = returned.map_or(moved, |bytes| bytes.min(moved));
    let share = metrics::ratio(bytes, moved).min(1.0);
    if share >= BELOW_SHARE {
        return None;
    }
    let when = if is_returned { " by the time the last write returned" } else { "" };
    let (code, why) = if file.direct_io == Some(true) {
        (VerdictCode::Unverified, "the disk below wrote less, although direct I/O is on for its backing file")
    } else {
        (VerdictCode::PageCache, "the page cache of its backing file took the data:")
    };
    let text = format!(
        "{} wrote {}, but {why} {}; {} wrote {}{when}",
        printable(&file.device),
        words::bytes(moved),
        shown(file),
        printable(&below.name),
        words::bytes(bytes)
    );
    Some(Answer { missing: 1.0 - share, code, text })
}

/// `loop0 read 6.91 GiB`.
fn did(facts: &Facts<'_>, file: &LoopFile) -> String {
    let did = facts.cell.workload.op.select("read", "wrote");
    let moved = moved_by(facts, file).map_or_else(|| "something".into(), words::bytes);
    format!("{} {did} {moved}", printable(&file.device))
}

fn shown(file: &LoopFile) -> String {
    printable(&file.file)
}

/// Share of the cell's span that lies in what was never written, at least: all of the span that the written bytes of the file
/// cannot fill. 0 where the cell does not read from the loop device itself or a partition of it.
fn least_in_holes(facts: &Facts<'_>, file: &LoopFile) -> f64 {
    let target = facts.targets.iter().find(|target| target.index == file.target);
    let is_itself = target.is_some_and(|target| {
        target.kind == TargetKind::Block
            && target.device.as_ref().is_some_and(|device| carries(&device.name, &file.device))
    });
    let Some(extents) = file.extents.filter(|_| is_itself) else { return 0.0 };
    let span_bytes = facts.cell.workload.span_bytes.min(file.size_bytes);
    let never_bytes = extents.unwritten_bytes + extents.hole_bytes;
    let holes = span_bytes.saturating_sub(file.size_bytes.saturating_sub(never_bytes));
    metrics::ratio(holes, span_bytes.max(1))
}

/// Share of a file's bytes that lie in holes or were reserved and never written.
fn never_written(extents: &ExtentEvidence) -> f64 {
    let never = extents.unwritten_bytes + extents.hole_bytes;
    metrics::ratio(never, (never + extents.mapped_bytes).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, with};
    use crate::verdict::verdict;
    use rdsk_model::{CellRecord, DiskStat, IoPath, PageCache, PageCacheState, Verdict};

    const MIB: u64 = 1 << 20;
    const SIZE: u64 = 64 * MIB;

    /// A direct cell of 64 MiB on loop8, whose file on ext4 lies on vda, which moved so many bytes.
    fn on_loop(op: Op, direct_io: bool, below_bytes: u64, change: impl FnOnce(&mut LoopFile)) -> CellRecord {
        with(cell("l", op, IoPath::Direct, MIB, 64, 500_000_000), |cell| {
            cell.evidence.device[0].name = "loop8".into();
            let moved = |wanted: Op| Some(if op == wanted { below_bytes } else { 0 });
            cell.evidence.device.push(DeviceEvidence {
                name: "vda".into(),
                read_bytes: moved(Op::Read),
                write_bytes: moved(Op::Write),
                diskstat: Some(DiskStat { write_sectors: below_bytes / 512, ..DiskStat::default() }),
                ..DeviceEvidence::default()
            });
            let mut file = LoopFile {
                device: "loop8".into(),
                file: "/srv/b.img".into(),
                filesystem: Some("ext4".into()),
                direct_io: Some(direct_io),
                below: Some("vda".into()),
                size_bytes: SIZE,
                extents: Some(ExtentEvidence { mapped_bytes: SIZE, extents: 1, ..ExtentEvidence::default() }),
                page_cache: cached(0, 0),
                ..LoopFile::default()
            };
            change(&mut file);
            cell.evidence.loops = vec![file];
        })
    }

    fn cached(before: u64, after: u64) -> Option<PageCache> {
        let state = |bytes| PageCacheState { cached_bytes: Some(bytes), dirty_bytes: Some(0) };
        Some(PageCache { before: state(before), after: state(after), stable: None })
    }

    fn on_tmpfs(file: &mut LoopFile) {
        file.filesystem = Some("tmpfs".into());
        (file.below, file.extents) = (None, None);
    }

    fn judged(cell: &CellRecord) -> Verdict {
        let mut target = fixtures::disk();
        target.device.as_mut().unwrap().name = cell.evidence.device[0].name.clone();
        verdict(cell, &[target], Some(8))
    }

    #[track_caller]
    fn check(cell: &CellRecord, code: VerdictCode, words: &str) {
        let verdict = judged(cell);
        assert_eq!(verdict.code, code, "{}", verdict.text);
        assert!(verdict.text.contains(words), "\"{words}\" is not in \"{}\"", verdict.text);
    }

    #[test]
    fn a_file_in_memory_is_no_disk_whatever_the_loop_device_counts() {
        for op in [Op::Read, Op::Write] {
            for direct_io in [true, false] {
                check(&on_loop(op, direct_io, 0, on_tmpfs), VerdictCode::PageCache, "/srv/b.img is on tmpfs");
                let zram = on_loop(op, direct_io, SIZE, |file| file.below = Some("zram0".into()));
                check(&zram, VerdictCode::PageCache, "is on zram0, which is memory");
            }
        }
    }

    #[test]
    fn a_disk_that_moved_the_bytes_is_a_device() {
        for direct_io in [true, false] {
            check(&on_loop(Op::Read, direct_io, SIZE, |_| {}), VerdictCode::Device, "loop8 read 64 MiB");
            check(&on_loop(Op::Write, direct_io, SIZE, |_| {}), VerdictCode::Device, "loop8 wrote 64 MiB");
        }
        // Direct I/O passes what is cached.
        let passed = on_loop(Op::Read, true, SIZE, |file| file.page_cache = cached(SIZE, SIZE));
        check(&passed, VerdictCode::Device, "");
        let unknown = on_loop(Op::Read, true, 0, |file| (file.below, file.filesystem) = (None, None));
        check(&unknown, VerdictCode::Device, "");
    }

    #[test]
    fn metadata_written_after_the_return_is_not_missing_below() {
        let later = |below_bytes: u64| {
            let cell = with(on_loop(Op::Write, true, below_bytes, |_| {}), |cell| {
                let devices = &mut cell.evidence.device;
                devices[0].write_bytes = Some(8 * SIZE);
                devices[1].write_bytes = Some(7 * SIZE + below_bytes);
            });
            let mut file = fixtures::file();
            file.device.as_mut().unwrap().name = "loop8".into();
            verdict(&cell, &[file], Some(8))
        };
        assert_eq!(later(SIZE).code, VerdictCode::Device, "{}", later(SIZE).text);
        let less = later(SIZE / 2);
        assert_eq!(less.code, VerdictCode::Unverified, "{}", less.text);
        assert!(less.text.contains("loop8 wrote 64 MiB, but the disk below wrote less"), "{}", less.text);
    }

    #[test]
    fn what_was_never_written_is_a_hole() {
        let hole = |file: &mut LoopFile| {
            file.extents = Some(ExtentEvidence { hole_bytes: SIZE, ..ExtentEvidence::default() });
        };
        for direct_io in [true, false] {
            check(
                &on_loop(Op::Read, direct_io, 0, hole),
                VerdictCode::Hole,
                "100% of its backing file /srv/b.img",
            );
            // Others may read from the disk meanwhile.
            check(&on_loop(Op::Read, direct_io, SIZE, hole), VerdictCode::Hole, "never written");
        }
        let half = |below_bytes: u64| {
            on_loop(Op::Read, true, below_bytes, |file| {
                let half = SIZE / 2;
                file.extents = Some(ExtentEvidence {
                    mapped_bytes: half,
                    unwritten_bytes: half,
                    extents: 2,
                    hole_bytes: 0,
                });
            })
        };
        check(&half(SIZE / 2), VerdictCode::Hole, "50.0% of its backing file");
        check(&half(SIZE), VerdictCode::Device, "");
        // The span may be the part that was written.
        let part = with(on_loop(Op::Read, true, SIZE, hole), |cell| {
            cell.workload.span_bytes = SIZE / 32;
            let extents = cell.evidence.loops[0].extents.as_mut().unwrap();
            (extents.mapped_bytes, extents.hole_bytes) = (SIZE / 32, SIZE - SIZE / 32);
        });
        check(&part, VerdictCode::Device, "");
        let below_a_partition = on_loop(Op::Read, true, 0, |file| {
            hole(file);
            file.partitions = vec!["loop8p1".into()];
        });
        check(&below_a_partition, VerdictCode::Hole, "file /srv/b.img below loop8p1 was never written");
        // A filesystem on the loop device wrote what it reads, wherever else the file has holes.
        let mut file = fixtures::file();
        file.device.as_mut().unwrap().name = "loop8".into();
        let of_file = verdict(&on_loop(Op::Read, true, SIZE, hole), &[file.clone()], Some(8));
        assert_eq!(of_file.code, VerdictCode::Device, "{}", of_file.text);
        let cached = verdict(&on_loop(Op::Read, false, 0, hole), &[file], Some(8));
        assert_eq!(cached.code, VerdictCode::PageCache, "{}", cached.text);
        // Writes fill holes.
        check(&on_loop(Op::Write, true, SIZE, hole), VerdictCode::Device, "");
    }

    #[test]
    fn the_page_cache_of_the_file_answers_without_direct_io() {
        let whole = |file: &mut LoopFile| file.page_cache = cached(SIZE, SIZE);
        check(
            &on_loop(Op::Read, false, 0, whole),
            VerdictCode::PageCache,
            "which held all of it; vda read 0 B",
        );
        check(&on_loop(Op::Read, false, SIZE, whole), VerdictCode::PageCache, "which held all of it");
        let half = on_loop(Op::Read, false, SIZE / 2, |file| file.page_cache = cached(SIZE / 2, SIZE));
        check(&half, VerdictCode::PageCache, "and 50.0% came from there; vda read 32 MiB");
        check(
            &on_loop(Op::Read, true, SIZE / 2, |_| {}),
            VerdictCode::Unverified,
            "the disk below read less",
        );
    }

    #[test]
    fn without_counters_below_the_growth_of_the_cache_tells() {
        let server = |before, after| {
            on_loop(Op::Read, false, 0, |file| {
                (file.below, file.filesystem) = (None, Some("nfs4".into()));
                file.page_cache = cached(before, after);
            })
        };
        check(&server(0, SIZE), VerdictCode::Device, "");
        check(&server(0, SIZE / 4), VerdictCode::PageCache, "which grew by only 16 MiB");
        check(&server(0, 0), VerdictCode::Device, "");
    }

    #[test]
    fn writes_stay_in_the_page_cache_of_the_file() {
        let late = with(on_loop(Op::Write, false, SIZE, |_| {}), |cell| {
            cell.evidence.device[1].diskstat = Some(DiskStat::default());
        });
        check(&late, VerdictCode::PageCache, "vda wrote 0 B by the time the last write returned");
        let durable = with(late, |cell| cell.workload.sync = Sync::Dsync);
        check(&durable, VerdictCode::Device, "");
        check(
            &on_loop(Op::Write, true, SIZE / 2, |_| {}),
            VerdictCode::Unverified,
            "the disk below wrote less",
        );
    }

    /// Holes of the partition that are not in the span, or are the smaller part of what no disk read, do not hide the cache.
    #[test]
    fn what_was_cached_is_not_called_a_hole_for_one_elsewhere() {
        let on_partition = |mapped_bytes: u64, size_bytes: u64, before: u64, direct_io: bool| {
            let cell = on_loop(Op::Read, direct_io, 0, |file| {
                file.size_bytes = size_bytes;
                file.partitions = vec!["loop8p1".into()];
                let hole_bytes = size_bytes - mapped_bytes;
                file.extents =
                    Some(ExtentEvidence { mapped_bytes, hole_bytes, unwritten_bytes: 0, extents: 1 });
                file.page_cache = cached(before, before);
            });
            with(cell, |cell| cell.workload.span_bytes = SIZE)
        };
        let elsewhere = on_partition(SIZE, 4 * SIZE, SIZE, false);
        check(&elsewhere, VerdictCode::PageCache, "it goes through the page cache of its backing file");
        let less = on_partition(SIZE * 7 / 10, SIZE, SIZE * 7 / 10, false);
        check(&less, VerdictCode::PageCache, "it goes through the page cache of its backing file");
        // Without anything cached, holes are what is left.
        check(&on_partition(SIZE, 4 * SIZE, 0, false), VerdictCode::Hole, "never written");
        check(&on_partition(SIZE / 4, SIZE, SIZE / 4, false), VerdictCode::Hole, "never written");
        check(&on_partition(SIZE, 4 * SIZE, SIZE, true), VerdictCode::Hole, "never written");
    }

    #[test]
    fn a_loop_over_a_loop_is_judged_by_the_lowest() {
        let nested = |lower: fn(&mut LoopFile)| {
            with(on_loop(Op::Read, true, SIZE, |file| file.below = Some("loop7p1".into())), |cell| {
                cell.evidence.device[1].name = "loop7p1".into();
                let mut disk = cell.evidence.device[1].clone();
                disk.name = "loop7".into();
                cell.evidence.device.push(disk);
                let mut file = LoopFile { device: "loop7".into(), ..cell.evidence.loops[0].clone() };
                file.below = None;
                lower(&mut file);
                cell.evidence.loops.push(file);
            })
        };
        let memory = nested(on_tmpfs);
        check(&memory, VerdictCode::PageCache, "the file of loop8 lies on loop7; loop7 read 64 MiB, but");
        check(&nested(|_| {}), VerdictCode::Device, "");
        assert!(carries("loop7p12", "loop7") && !carries("loop71", "loop7") && !carries("loop7p", "loop7"));
    }

    #[test]
    fn of_several_loop_devices_the_share_in_memory_counts() {
        let two = |in_memory: u64| {
            with(on_loop(Op::Read, true, SIZE, |_| {}), |cell| {
                let mut dm = cell.evidence.device[0].clone();
                dm.name = "dm-0".into();
                cell.evidence.device.insert(0, dm);
                let parts = [("loop8", SIZE - in_memory), ("loop9", in_memory)];
                cell.evidence.device[1].read_bytes = Some(parts[0].1);
                let mut other = cell.evidence.device[1].clone();
                (other.name, other.read_bytes) = ("loop9".into(), Some(parts[1].1));
                cell.evidence.device.push(other);
                let mut file = LoopFile { device: "loop9".into(), ..cell.evidence.loops[0].clone() };
                on_tmpfs(&mut file);
                cell.evidence.loops.push(file);
            })
        };
        check(&two(SIZE / 2), VerdictCode::PageCache, "loop9 read 32 MiB, but its backing file");
        check(&two(SIZE / 50), VerdictCode::Device, "");
    }

    /// A limit on the disk of the file, which may hold for what the loop device does there or not.
    #[test]
    fn a_rate_above_the_limit_of_the_disk_below_is_no_burst() {
        let limited = |cell: CellRecord, device: &str, bytes_per_s: u64| {
            with(cell, |cell| {
                cell.evidence.limits = vec![rdsk_model::Limit {
                    target: 0,
                    device: device.into(),
                    source: "io.max".into(),
                    op: Op::Read,
                    bytes_per_s: Some(bytes_per_s),
                    ops_per_s: None,
                }];
            })
        };
        let cached_file = |file: &mut LoopFile| file.page_cache = cached(SIZE, SIZE);
        for device in ["vda", "vda1"] {
            let cached = limited(on_loop(Op::Read, false, 0, cached_file), device, MIB);
            check(&cached, VerdictCode::PageCache, "which held all of it");
            let from_disk = limited(on_loop(Op::Read, true, SIZE, |_| {}), device, 128 * MIB);
            check(&from_disk, VerdictCode::Throttled, "io.max");
        }
    }

    #[test]
    fn a_limit_in_force_is_still_the_limit() {
        let limited = with(on_loop(Op::Read, true, 0, on_tmpfs), |cell| {
            cell.evidence.limits = vec![rdsk_model::Limit {
                target: 0,
                device: "loop8".into(),
                source: "io.max".into(),
                op: Op::Read,
                bytes_per_s: Some(128 * MIB),
                ops_per_s: None,
            }];
        });
        check(&limited, VerdictCode::Throttled, "io.max");
    }
}
