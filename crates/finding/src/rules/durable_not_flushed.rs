//! `durable-not-flushed`: writes that asked to be durable, on a filesystem that was mounted so that it sends no flush.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("durable-not-flushed", Severity::Invalid, Needs::Counters, check);

/// The options with which filesystems send no flush: ext4, btrfs, f2fs, gfs2 and nilfs2; f2fs for fsync(2) alone; ext3; reiserfs; overlay,
/// which passes on no fsync(2) either (Documentation/filesystems/ext4, f2fs, overlayfs).
const UNSAFE: [&str; 5] = ["nobarrier", "fsync_mode=nobarrier", "barrier=0", "barrier=none", "volatile"];

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.sync != Sync::None
            && !is_simulated(analysis, cell)
            && option(analysis, cell).is_some()
            && has_volatile_cache(analysis, cell)
            && lacks_flushes(cell)
            && !goes_past_cache(analysis, cell)
    });
    let Some(&first) = cells.first() else { return Vec::new() };
    let option = option(analysis, first).unwrap_or_default();
    let device =
        metrics::first_device(analysis, first).map_or_else(String::new, |device| printable(&device.name));
    let cited = |cell: &CellRecord| {
        let flushes = metrics::flushes(cell).unwrap_or(0);
        let fua = analysis
            .block_io(cell)
            .and_then(BlockIo::fua_per_write)
            .map_or_else(String::new, |fua| format!(", with FUA = {} each", words::figure(fua)));
        cite(cell, "flushes", format_args!("{flushes} for {} writes{fua}", cell.result.ops.unwrap_or(0)))
    };
    let text = format!(
        "The filesystem is mounted with {option} and sends no flush, so these writes returned with their data in the volatile cache of \
         {device}. They are no sync writes, and a power failure may lose the data and damage the filesystem."
    );
    let mut finding = RULE
        .about(&cells, "never flushed", text, cited)
        .effect(
            Stake::Figure,
            None,
            format!(
                "sync writes were never flushed ({option}): {}; a power failure may lose them",
                how_many(&cells)
            ),
        )
        .advice(format!(
            "mount it without {option}; if a battery protects the cache, let the device report write through"
        ));
    finding.evidence.insert(0, format!("mount option: {option}; {device}: queue/write_cache = write back"));
    vec![finding]
}

/// The option of the cell's filesystem that keeps flushes back.
fn option(record: &Record, cell: &CellRecord) -> Option<&'static str> {
    let options = &metrics::first_target(record, cell)?.filesystem.as_ref()?.options;
    UNSAFE.into_iter().find(|unsafe_option| options.split(',').any(|option| option == *unsafe_option))
}

fn has_volatile_cache(record: &Record, cell: &CellRecord) -> bool {
    metrics::first_device(record, cell).is_some_and(Device::has_volatile_cache)
}

/// Whether fewer flushes were counted than the writes need: one may serve all that are in flight, and those that others sent count too.
/// A single sync at the end needs one for each visit.
fn lacks_flushes(cell: &CellRecord) -> bool {
    let Some(flushes) = metrics::flushes(cell) else { return false };
    let in_flight = u64::from(cell.workload.streams.max(1)) * u64::from(cell.workload.queue_depth.max(1));
    let needed = match cell.workload.sync {
        Sync::Dsync => cell.result.ops.unwrap_or(0) / in_flight,
        Sync::None | Sync::FsyncAtEnd => metrics::visits(cell),
    };
    flushes < needed.div_ceil(2)
}

/// Whether the writes went past the cache one by one. Where a device supports FUA, the kernel sends a direct `O_DSYNC` write over blocks
/// that are there as one with FUA, whatever the mount option says of flushes (Linux 4.18 and later: `iomap_dio_bio_iter` and its
/// forerunners in fs/iomap). Without a count of such writes, they are taken for granted.
fn goes_past_cache(analysis: &Analysis<'_>, cell: &CellRecord) -> bool {
    let may_have_fua = cell.workload.path == IoPath::Direct && cell.workload.sync == Sync::Dsync;
    let has_fua = || metrics::first_device(analysis, cell).is_some_and(|device| device.fua == Some(true));
    may_have_fua
        && analysis
            .block_io(cell)
            .and_then(BlockIo::fua_per_write)
            .map_or_else(has_fua, |fua| fua >= EACH_WRITE)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{counted, request};
    use crate::fixtures::{self, file, make_durable, record, with};
    use rdsk_model::{Request, Target};

    fn durable(flushes: u64) -> CellRecord {
        let cell = fixtures::cell("d", Op::Write, IoPath::Direct, 4096, 5000, 500_000_000);
        let cell = with(cell, make_durable);
        with(cell, |cell| cell.evidence.device[0].flushes = Some(flushes))
    }

    fn mounted(options: &str) -> Target {
        let mut target = file();
        if let Some(filesystem) = &mut target.filesystem {
            filesystem.options = options.into();
        }
        target
    }

    #[test]
    fn fires_on_durable_writes_that_a_mount_option_leaves_in_the_cache() {
        for option in UNSAFE {
            let target = mounted(&format!("rw,relatime,rw,{option},errors=continue"));
            let finding = fires(RULE, &record(vec![target], vec![durable(3)]));
            assert_eq!(
                finding.evidence,
                [
                    format!("mount option: {option}; sda: queue/write_cache = write back"),
                    "sequential direct 4K sync writes: flushes = 3 for 5000 writes".to_owned()
                ]
            );
        }
        let at_end = with(durable(0), |cell| cell.workload.sync = Sync::FsyncAtEnd);
        fires(RULE, &record(vec![mounted("rw,nobarrier")], vec![at_end]));
    }

    /// A direct durable write goes past the cache of a device with FUA, and nothing else does.
    #[test]
    fn writes_with_fua_need_no_flush() {
        let on = |fua: Option<bool>, cell: CellRecord| {
            let mut target = mounted("rw,nobarrier");
            target.device.as_mut().unwrap().fua = fua;
            record(vec![target], vec![cell])
        };
        let by_bpf = |fua: u64| {
            let requests = vec![
                Request { fua: true, ..request(Op::Write, 4096, fua) },
                request(Op::Write, 4096, 5000 - fua),
            ];
            counted(durable(0), Vec::new(), requests)
        };
        let buffered = |cell: CellRecord| with(cell, |cell| cell.workload.path = IoPath::Buffered);
        let at_end = |cell: CellRecord| with(cell, |cell| cell.workload.sync = Sync::FsyncAtEnd);
        silent(RULE, &on(Some(true), durable(0)));
        silent(RULE, &on(Some(true), by_bpf(4990)));
        silent(RULE, &on(None, by_bpf(4990)));
        for cell in [buffered(durable(0)), at_end(durable(0)), buffered(by_bpf(4990)), by_bpf(10)] {
            fires(RULE, &on(Some(true), cell));
        }
        for fua in [Some(false), None] {
            fires(RULE, &on(fua, durable(0)));
        }
        let finding = fires(RULE, &on(Some(true), by_bpf(0)));
        assert_eq!(
            finding.evidence[1],
            "sequential direct 4K sync writes: flushes = 0 for 5000 writes, with FUA = 0.00 each"
        );
    }

    #[test]
    fn is_silent_where_flushes_were_sent_or_none_is_needed() {
        let target = || mounted("rw,nobarrier");
        silent(RULE, &record(vec![mounted("rw,relatime")], vec![durable(0)]));
        silent(RULE, &record(vec![target()], vec![durable(5000)]));
        let deep = with(durable(200), |cell| cell.workload.queue_depth = 32);
        silent(RULE, &record(vec![target()], vec![deep]));
        let plain = with(durable(0), |cell| cell.workload.sync = Sync::None);
        silent(RULE, &record(vec![target()], vec![plain]));
        let unknown = with(durable(0), |cell| cell.evidence.device[0].flushes = None);
        silent(RULE, &record(vec![target()], vec![unknown]));
        let mut through = target();
        through.device.as_mut().unwrap().write_cache = Some("write through".into());
        silent(RULE, &record(vec![through], vec![durable(0)]));
    }
}
