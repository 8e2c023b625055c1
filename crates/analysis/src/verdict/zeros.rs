//! I/O that no medium served although requests reached the device: the disks below a mapped device moved less than it did, there are
//! none, or all that came back is zeros. Thin volumes and LUNs, SSDs, sparse images and null devices return zeros for blocks that
//! hold nothing, and count such reads like any other. And I/O that the processor does by itself on a disk that is memory, past the block
//! layer: no request is made, and no counter of the device moves.

use super::Judgement;
use super::facts::Facts;
use crate::{metrics, words};
use rdsk_model::{Device, DeviceEvidence, Layer, Op, Pattern, ReadContent, Target, TargetKind, VerdictCode};
use rdsk_units::printable;
use std::collections::BTreeSet;

/// Below this share of bytes from the disks at the bottom, something above them answered some of the reads.
const BELOW_SHARE: f64 = 0.9;
/// Pages that have to be looked at before zeros say anything of a device: fewer would leave too much to chance.
pub const MIN_PAGES: u64 = 4;
/// The same where some are zeros and some are not, and the share of zeros that is worth a word.
const MIN_PAGES_OF_SOME: u64 = 16;
const MIN_SHARE: f64 = 0.1;

/// Step 7 of the verdict: `hole` and `unverified`, of devices.
pub(super) fn judge(facts: &Facts<'_>) -> Judgement {
    if facts.is_simulated() {
        return None;
    }
    let of_reads = || {
        let is_read = facts.cell.workload.op == Op::Read;
        if is_read { unwritten_zones(facts).or_else(|| only_zeros(facts)) } else { None }
    };
    null_device(facts).or_else(|| no_disk(facts)).or_else(|| below(facts)).or_else(of_reads)
}

/// null_blk completes requests without any data, or keeps the data in memory: a device for tests of the block layer.
fn null_device(facts: &Facts<'_>) -> Judgement {
    let names = facts.targets.iter().flat_map(|target| target.stack.iter());
    let by_name =
        names.into_iter().find(|name| name.strip_prefix("nullb").is_some_and(|rest| !rest.is_empty()));
    let name = by_name.or_else(|| facts.devices().find_map(made_by_null_blk))?;
    let text = format!("{} is null_blk, which answers without any disk", printable(name));
    Some((VerdictCode::Unverified, text))
}

/// The name of the device, or of one below it, that null_blk drives: its maker chooses the name.
fn made_by_null_blk(device: &Device) -> Option<&String> {
    const KIND: &str = "null_blk";
    fn below(layers: &[Layer]) -> Option<&String> {
        layers.iter().find_map(|layer| {
            Some(&layer.name).filter(|_| layer.kind == KIND).or_else(|| below(&layer.below))
        })
    }
    Some(&device.name).filter(|_| device.kind.as_deref() == Some(KIND)).or_else(|| below(&device.below))
}

/// A device of device mapper over nothing, such as `zero`, returns zeros and forgets what is written.
fn no_disk(facts: &Facts<'_>) -> Judgement {
    let device = facts.devices().find(|device| metrics::is_mapped(device) && device.below.is_empty())?;
    let text = format!("{} is a mapped device with no disk below it", printable(&device.name));
    Some((VerdictCode::Unverified, text))
}

/// Whether only the content of the reads speaks against the device.
pub(super) fn read_only_zeros(facts: &Facts<'_>) -> bool {
    facts.cell.workload.op == Op::Read
        && !facts.is_simulated()
        && null_device(facts).is_none()
        && no_disk(facts).is_none()
        && below(facts).is_none()
        && unwritten_zones(facts).is_none()
        && only_zeros(facts).is_some()
}

/// A mapped device whose disks moved less than it did.
fn below(facts: &Facts<'_>) -> Judgement {
    let [target] = facts.targets[..] else { return None };
    let op = facts.cell.workload.op;
    let device = target.device.as_ref()?;
    let own = own_bytes(facts, target, device)?;
    let lower = bottom_bytes(facts, target, device)?;
    // Device mapper may count what it splits twice (measured on 6.1, 2026-11: 18 MiB for 9 MiB), so what completed counts. Pages
    // overwritten in memory complete more often than they are written.
    let is_bound = op == Op::Read || facts.is_direct();
    let least = if is_bound { own.min(facts.bytes) } else { own.min(facts.bytes) / 2 };
    if metrics::ratio(lower.1, least) >= BELOW_SHARE {
        return None;
    }
    let name = printable(&device.name);
    let (verb, rest) = op.select(
        ("read", "something between them answered the rest"),
        ("wrote", "something between them kept, packed or dropped the rest"),
    );
    let did = format!(
        "{name} {verb} {}, but {} below it {}",
        words::bytes(own),
        words::list(&lower.0),
        words::bytes(lower.1)
    );
    Some(match facts.cell.result.content {
        Some(content) if op == Op::Read && is_zeros(content) => {
            let why = "what came back is zeros: most of what was read was never written, and needs no disk";
            (VerdictCode::Hole, format!("{did}, and {why}"))
        }
        _ => (VerdictCode::Unverified, format!("{did}: {rest}")),
    })
}

/// What the disks below a mapped device moved, in words, where that is what completed and the device counted clearly more: device mapper
/// may count what it splits twice (measured on 6.1, 2026-11: dm-linear over two disks, 334 MiB for 167 MiB).
pub(super) fn counted_twice(facts: &Facts<'_>) -> Option<String> {
    let [target] = facts.targets[..] else { return None };
    let device = target.device.as_ref().filter(|device| metrics::is_mapped(device))?;
    let own = own_bytes(facts, target, device)?;
    let (names, lower) = bottom_bytes(facts, target, device)?;
    let is_whole = metrics::ratio(lower, facts.bytes) >= BELOW_SHARE;
    (is_whole && metrics::ratio(lower, own) < BELOW_SHARE).then(|| {
        let below = words::list(&names);
        format!(
            "{below} below it {}: device mapper counts what it splits more than once",
            words::bytes(lower)
        )
    })
}

/// What the device itself moved, if its counters stand for the target.
fn own_bytes(facts: &Facts<'_>, target: &Target, device: &Device) -> Option<u64> {
    let op = facts.cell.workload.op;
    match facts.cell.evidence.counters_of(target.index)[..] {
        [own] if own.name == device.name => metrics::bytes_of(own, op).filter(|&bytes| bytes > 0),
        _ => None,
    }
}

/// The disks at the bottom of a mapped device or array, and what they moved together; `None` if one of them is not counted, or if
/// nothing is below it. The disk of a partition counts what its other partitions read too, so that it hides more than it invents.
fn bottom_bytes(facts: &Facts<'_>, target: &Target, device: &Device) -> Option<(Vec<String>, u64)> {
    let mut names = BTreeSet::new();
    let mut left: Vec<&Layer> = device.below.iter().collect();
    while let Some(layer) = left.pop() {
        if layer.below.is_empty() {
            names.insert(layer.name.as_str());
        }
        left.extend(&layer.below);
    }
    let devices = &facts.cell.evidence.device;
    let find =
        |name: &str| devices.iter().find(|device| device.target == target.index && device.name == name);
    let counted: Vec<&DeviceEvidence> = names.iter().map(|name| find(name)).collect::<Option<_>>()?;
    let op = facts.cell.workload.op;
    let bytes = counted.iter().map(|device| metrics::bytes_of(device, op)).sum::<Option<u64>>()?;
    let names: Vec<String> = names.into_iter().map(printable).collect();
    (!names.is_empty()).then_some((names, bytes))
}

/// Whether all targets are devices that may return zeros without storing any. A file's own extents, and those of a file behind a loop
/// device, say what was written.
fn need_not_store(facts: &Facts<'_>) -> bool {
    let may = |target: &&Target| {
        target.kind == TargetKind::Block && target.device.as_ref().is_some_and(Device::may_invent_zeros)
    };
    facts.cell.evidence.loops.is_empty() && facts.targets.iter().all(may)
}

/// Whether it was not checked if such devices hold anything where they were read: there was no time, or direct I/O is not had.
pub(super) fn is_content_unknown(facts: &Facts<'_>) -> bool {
    let pages = facts.cell.result.content.map_or(0, |content| content.pages);
    facts.cell.workload.op == Op::Read && !facts.is_simulated() && pages < MIN_PAGES && need_not_store(facts)
}

/// Zones hold less than was read: what lies behind a write pointer returns zeros without the medium (ZBC, ZAC and NVMe ZNS). Wherever the
/// written zones are, the rest of the span holds nothing.
fn unwritten_zones(facts: &Facts<'_>) -> Judgement {
    let span = facts.cell.workload.span_bytes.max(1);
    let written = facts.targets.iter().map(|&target| {
        let bytes = target.device.as_ref()?.zone_written_bytes?;
        Some((metrics::ratio(bytes, span), bytes, target))
    });
    let shares: Vec<(f64, u64, &Target)> = written.collect::<Option<_>>()?;
    let (share, bytes, target) = shares.into_iter().max_by(|share, other| share.0.total_cmp(&other.0))?;
    let name = target.device.as_ref().map_or_else(String::new, |device| printable(&device.name));
    (1.0 - share >= MIN_SHARE).then(|| {
        let held = if bytes == 0 { "nothing".to_owned() } else { format!("only {}", words::bytes(bytes)) };
        let text = format!(
            "the zones of {name} hold {held} (their write pointers), so that at least {} of the span was never written and reads as zeros \
             without the medium",
            rdsk_units::percent(1.0 - share)
        );
        (VerdictCode::Hole, text)
    })
}

/// Nothing but zeros was found in what came back from a device that need not store any.
fn only_zeros(facts: &Facts<'_>) -> Judgement {
    let content =
        facts.cell.result.content.filter(|&content| content.pages >= MIN_PAGES && is_zeros(content))?;
    if !need_not_store(facts) {
        return None;
    }
    let text = format!(
        "{} read {}, but the {} that were checked held only zeros: a device that stores nothing there (never written, or discarded) answers \
         without its medium",
        facts.device_names,
        words::bytes(facts.moved.unwrap_or(0)),
        words::plural(content.pages, "place"),
    );
    Some((VerdictCode::Unverified, text))
}

/// What was looked at, where a device that need not store them brought back some zeros beside data.
pub(super) fn some_zeros(facts: &Facts<'_>) -> Option<ReadContent> {
    let content = facts.cell.result.content.filter(|content| content.pages >= MIN_PAGES_OF_SOME)?;
    let is_some = content.zero_pages as f64 >= MIN_SHARE * content.pages as f64 && !is_zeros(content);
    let is_read = facts.cell.workload.op == Op::Read && !facts.is_simulated();
    (is_some && is_read && need_not_store(facts)).then_some(content)
}

fn is_zeros(content: ReadContent) -> bool {
    content.pages > 0 && content.zero_pages == content.pages
}

/// From this share of bytes on the device counted them.
const COUNTED_SHARE: f64 = 0.9;

/// Files of a filesystem that is mounted with `dax` (Documentation/filesystems/dax.rst), and buffered reads of the disk itself on
/// kernels before 6.4, which asked its driver for single pages (measured on 6.1 with pmem and `queue/iostats` 1, 2026-11: 29 MiB read,
/// none counted, no bio).
pub(super) fn past_the_block_layer(facts: &Facts<'_>) -> Judgement {
    let disk = facts.memory_disk()?;
    facts.share.filter(|&share| share < COUNTED_SHARE)?;
    let how = match facts.filesystems().find(|filesystem| has_dax(&filesystem.options)) {
        Some(filesystem) => {
            format!("{} is mounted with dax, where the processor copies", printable(&filesystem.kind))
        }
        None if is_by_pages(facts) => "this kernel has the processor copy single pages".to_owned(),
        None => return None,
    };
    let text = format!(
        "{how} without a request, so that {disk} counts nothing: the figure is that of the processor and this memory, and no counter \
         proves it"
    );
    Some((VerdictCode::Unverified, text))
}

/// `dax`, or `dax=always`; with `dax=inode`, which is the default, and `dax=never` the options do not say.
fn has_dax(options: &str) -> bool {
    options.split(',').any(|option| ["dax", "dax=always"].contains(&option))
}

/// Whether buffered reads reached the disk page by page: no process was charged for them, and memory had nothing.
fn is_by_pages(facts: &Facts<'_>) -> bool {
    let workload = &facts.cell.workload;
    let is_uncounted = facts.moved == Some(0) && facts.process_share == Some(0.0);
    workload.op == Op::Read
        && !facts.is_direct()
        && !facts.is_file()
        && is_uncounted
        && memory_had_nothing(facts)
}

/// Whether memory can have answered nothing: none of the span was cached at the start, and no byte was read twice.
pub(super) fn memory_had_nothing(facts: &Facts<'_>) -> bool {
    let cell = facts.cell;
    let passes = metrics::visits(cell) * facts.targets.len().max(1) as u64;
    let is_random = cell.workload.pattern == Pattern::Random;
    // Random places repeat; few of a large span hardly do.
    let most = cell.workload.span_bytes.saturating_mul(passes) / if is_random { 20 } else { 1 };
    let was_empty = cell.evidence.page_cache.is_some_and(|cache| cache.before.cached_bytes == Some(0));
    was_empty && facts.bytes <= most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, with};
    use crate::verdict::verdict;
    use rdsk_model::{CellRecord, DiskStat, IoPath, LoopFile, Target, Verdict};

    const MIB: u64 = 1 << 20;

    /// 64 MiB of direct reads of the fixtures' disk, of which so many of 64 pages are zeros.
    fn read(zero_pages: u64) -> CellRecord {
        with(cell("z", Op::Read, IoPath::Direct, MIB, 64, 500_000_000), |cell| {
            cell.result.content = Some(ReadContent { pages: 64, zero_pages });
        })
    }

    fn on(cell: &CellRecord, change: impl FnOnce(&mut Device)) -> Verdict {
        let mut target = fixtures::disk();
        let device = target.device.as_mut().unwrap();
        (device.rotational, device.discards) = (Some(false), Some(true));
        change(device);
        verdict(cell, &[target], Some(8))
    }

    #[test]
    fn zeros_prove_no_medium_unless_the_device_has_to_read_them() {
        let judged = on(&read(64), |_| {});
        assert_eq!(judged.code, VerdictCode::Unverified, "{}", judged.text);
        assert!(
            judged.text.contains("but the 64 places that were checked held only zeros:"),
            "{}",
            judged.text
        );
        assert_eq!(on(&read(63), |_| {}).code, VerdictCode::Device, "some of it is data");
        let plain = |device: &mut Device| (device.rotational, device.discards) = (Some(true), Some(false));
        assert_eq!(on(&read(64), plain).code, VerdictCode::Device, "a hard disk reads zeros too");
        let thin = |device: &mut Device| (device.rotational, device.discards) = (Some(true), Some(true));
        assert_eq!(on(&read(64), thin).code, VerdictCode::Unverified, "a LUN that can forget");
        let none = with(read(0), |cell| cell.result.content = Some(ReadContent::default()));
        assert_eq!(on(&none, |_| {}).code, VerdictCode::Device, "nothing was looked at");
        let untold = with(read(0), |cell| cell.result.content = None);
        assert_eq!(on(&untold, |_| {}).code, VerdictCode::Device);
        let page = with(read(0), |cell| cell.result.content = Some(ReadContent { pages: 1, zero_pages: 1 }));
        assert_eq!(on(&page, |_| {}).code, VerdictCode::Device, "one page is a matter of chance");
        let looped = with(read(64), |cell| cell.evidence.loops = vec![LoopFile::default()]);
        assert_eq!(on(&looped, |_| {}).code, VerdictCode::Device, "the file behind it tells");
    }

    /// A ZNS namespace that was never written (2026-11): 15 of 27 cells `device`, 8 `unverified`.
    #[test]
    fn zones_that_hold_nothing_were_not_read_from_the_medium() {
        let zoned = |written_bytes: Option<u64>, pages: u64| {
            let cell = with(read(pages), |cell| {
                cell.workload.span_bytes = 1 << 30;
                cell.result.content = Some(ReadContent { pages, zero_pages: pages });
            });
            on(&cell, |device| device.zone_written_bytes = written_bytes)
        };
        for pages in [0, 64] {
            let empty = zoned(Some(0), pages);
            assert_eq!(empty.code, VerdictCode::Hole, "{}", empty.text);
            let words = "the zones of sda hold nothing (their write pointers), so that at least 100% of the span was never written";
            assert!(empty.text.starts_with(words), "{}", empty.text);
        }
        assert_eq!(zoned(Some(512 * MIB), 0).code, VerdictCode::Hole, "at least half of it");
        assert_eq!(zoned(Some(960 * MIB), 0).code, VerdictCode::Device, "6% at least");
        assert_eq!(
            zoned(Some(8 << 30), 64).code,
            VerdictCode::Unverified,
            "what was read may be empty all the same"
        );
        assert_eq!(zoned(None, 0).code, VerdictCode::Device);
    }

    #[test]
    fn some_zeros_are_told_of_a_device_that_need_not_store_them() {
        let told = |pages: u64, zero_pages: u64, rotational: bool| {
            let mut target = fixtures::disk();
            let device = target.device.as_mut().unwrap();
            (device.rotational, device.discards) = (Some(rotational), Some(false));
            let read = with(read(0), |cell| cell.result.content = Some(ReadContent { pages, zero_pages }));
            let read = with(read, |cell| {
                cell.verdict = Some(verdict(cell, std::slice::from_ref(&target), Some(8)));
            });
            crate::read_some_zeros(&read, &[target]).map(|content| content.zero_pages)
        };
        assert_eq!(told(64, 60, false), Some(60));
        assert_eq!(told(64, 7, false), Some(7));
        assert_eq!(told(64, 6, false), None, "a tenth");
        assert_eq!(told(64, 64, false), None, "all of them have a verdict of their own");
        assert_eq!(told(15, 14, false), None, "too few places");
        assert_eq!(told(64, 60, true), None, "a hard disk reads zeros too");
    }

    #[test]
    fn a_device_without_a_disk_is_not_called_one() {
        let mut target = fixtures::disk();
        target.stack = vec!["nullb0".into()];
        let judged = verdict(&read(0), &[target], Some(8));
        assert_eq!(judged.code, VerdictCode::Unverified, "{}", judged.text);
        assert!(judged.text.contains("nullb0 is null_blk"), "{}", judged.text);
        let named =
            on(&read(0), |device| (device.name, device.kind) = ("slow".into(), Some("null_blk".into())));
        assert!(named.text.contains("slow is null_blk"), "{}", named.text);
        let below = on(&read(0), |device| {
            let null = Layer { name: "slow".into(), kind: "null_blk".into(), ..Layer::default() };
            (device.kind, device.below) = (Some("partition".into()), vec![null]);
        });
        assert!(
            below.code == VerdictCode::Unverified && below.text.contains("slow is null_blk"),
            "{}",
            below.text
        );
    }

    /// The fixtures' disk as a mapped device over sdb, which read so many bytes.
    fn above(zero_pages: u64, below_bytes: u64) -> CellRecord {
        with(read(zero_pages), |cell| {
            cell.evidence.device.push(DeviceEvidence {
                name: "sdz".into(),
                read_bytes: Some(below_bytes),
                diskstat: Some(DiskStat::default()),
                ..DeviceEvidence::default()
            });
        })
    }

    fn mapped(zero_pages: u64, below_bytes: u64) -> Verdict {
        on_pool(&above(zero_pages, below_bytes))
    }

    fn on_pool(cell: &CellRecord) -> Verdict {
        on(cell, |device| {
            let disk = Layer { name: "sdz".into(), kind: "disk".into(), ..Layer::default() };
            let pool =
                Layer { name: "dm-9".into(), kind: "dm".into(), below: vec![disk], ..Layer::default() };
            (device.kind, device.below) = (Some("dm LVM".into()), vec![pool]);
        })
    }

    #[test]
    fn what_the_disks_below_did_not_read_somebody_else_answered() {
        let hole = mapped(64, MIB);
        assert_eq!(hole.code, VerdictCode::Hole, "{}", hole.text);
        assert!(hole.text.contains("but sdz below it 1 MiB, and what came back is zeros"), "{}", hole.text);
        let cached = mapped(0, MIB);
        assert_eq!(cached.code, VerdictCode::Unverified, "{}", cached.text);
        assert!(cached.text.contains("something between them answered the rest"), "{}", cached.text);
        assert_eq!(mapped(0, 64 * MIB).code, VerdictCode::Device);
        let twice = with(above(0, 64 * MIB), |cell| cell.evidence.device[0].read_bytes = Some(128 * MIB));
        assert_ne!(on_pool(&twice).code, VerdictCode::Unverified, "it counted twice what it split");
    }

    /// As dm-flakey does with `drop_writes`.
    #[test]
    fn writes_that_no_disk_below_got_are_not_the_devices() {
        let wrote = |path: IoPath, completed: u64, below_bytes: u64| {
            let cell = with(cell("w", Op::Write, path, MIB, completed / MIB, 500_000_000), |cell| {
                cell.result.to_stable_ns = Some(500_000_000);
                cell.evidence.device.push(DeviceEvidence {
                    name: "sdz".into(),
                    write_bytes: Some(below_bytes),
                    diskstat: Some(DiskStat::default()),
                    ..DeviceEvidence::default()
                });
            });
            on_pool(&cell)
        };
        let dropped = wrote(IoPath::Direct, 64 * MIB, 0);
        assert_eq!(dropped.code, VerdictCode::Unverified, "{}", dropped.text);
        assert!(
            dropped.text.contains("wrote 64 MiB, but sdz below it 0 B: something between them kept"),
            "{}",
            dropped.text
        );
        assert_eq!(wrote(IoPath::Direct, 64 * MIB, 64 * MIB).code, VerdictCode::Device);
        assert_eq!(wrote(IoPath::Direct, 64 * MIB, 128 * MIB).code, VerdictCode::Device, "two copies");
        assert_eq!(wrote(IoPath::Buffered, 64 * MIB, 0).code, VerdictCode::Unverified);
        let split = wrote(IoPath::Buffered, 64 * MIB, 32 * MIB);
        assert_eq!(split.code, VerdictCode::Device, "half of it may be what was split: {}", split.text);
    }

    #[test]
    fn what_device_mapper_counts_twice_is_said_to_be() {
        let twice = with(above(0, 64 * MIB), |cell| {
            cell.evidence.device[0].read_bytes = Some(128 * MIB);
            cell.evidence.process.read_bytes = Some(128 * MIB);
        });
        let judged = on_pool(&twice);
        let text = "read 128 MiB for 64 MiB completed (2.00x; sdz below it 64 MiB: device mapper counts what it splits more than once)";
        assert!(judged.code == VerdictCode::Device && judged.text.contains(text), "{}", judged.text);
        let once = with(twice, |cell| cell.evidence.device[1].read_bytes = Some(128 * MIB));
        assert!(!on_pool(&once).text.contains("more than once"), "the disks read as much");
    }

    #[test]
    fn a_mapped_device_over_nothing_is_no_disk() {
        for op in [Op::Read, Op::Write] {
            let cell = cell("n", op, IoPath::Direct, MIB, 64, 500_000_000);
            let judged = on(&cell, |device| device.kind = Some("dm".into()));
            assert_eq!(judged.code, VerdictCode::Unverified, "{}", judged.text);
            assert!(judged.text.contains("a mapped device with no disk below it"), "{}", judged.text);
        }
    }

    #[test]
    fn only_dax_for_all_files_is_known_from_the_options() {
        assert!(has_dax("rw,relatime,dax=always") && has_dax("dax,rw"));
        assert!(!has_dax("rw,dax=never") && !has_dax("rw,dax=inode") && !has_dax("rw,nodax"));
    }

    #[track_caller]
    fn check(cell: &CellRecord, target: Target, code: VerdictCode, words: &str) {
        let verdict = verdict(cell, &[target], Some(8));
        assert_eq!(verdict.code, code, "{}", verdict.text);
        assert!(verdict.text.contains(words), "{}", verdict.text);
    }

    /// On a disk that is memory the processor copies, past the block layer (6.1 with pmem and counters on).
    #[test]
    fn what_no_request_was_made_for_is_not_the_page_cache() {
        let on_pmem = |mut target: Target, options: &str| {
            let device = target.device.as_mut().unwrap();
            device.name = "pmem0".into();
            target.stack = vec!["pmem0".into()];
            if let Some(filesystem) = &mut target.filesystem {
                filesystem.options = options.into();
            }
            target
        };
        let uncounted = |path: IoPath| {
            with(cell("t", Op::Read, path, 1 << 20, 64, 500_000_000), |cell| {
                (cell.evidence.device[0].name, cell.evidence.device[0].read_bytes) =
                    ("pmem0".into(), Some(0));
                cell.evidence.process.read_bytes = Some(0);
            })
        };
        let dax = || on_pmem(fixtures::file(), "rw,dax=always");
        let direct = uncounted(IoPath::Direct);
        check(&direct, dax(), VerdictCode::Unverified, "is mounted with dax");
        check(&direct, on_pmem(fixtures::file(), "rw"), VerdictCode::PageCache, "despite O_DIRECT");
        let buffered = |cached_bytes: u64| {
            with(uncounted(IoPath::Buffered), |cell| {
                let cache = cell.evidence.page_cache.get_or_insert_default();
                cache.before.cached_bytes = Some(cached_bytes);
                cell.workload.span_bytes = u64::MAX / 64;
            })
        };
        check(&buffered(0), dax(), VerdictCode::Unverified, "is mounted with dax");
        check(&buffered(0), on_pmem(fixtures::disk(), ""), VerdictCode::Unverified, "copy single pages");
        check(&buffered(1 << 30), on_pmem(fixtures::disk(), ""), VerdictCode::PageCache, "memory answered");
    }
}
