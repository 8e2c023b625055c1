//! Findings that say in one place what the same verdict says of many cells: `hole-read`, `cached-read`, `disturbed`,
//! `throttled` and `cpu-bound`. They add no judgement of their own.

use super::common::{cells, cite, has_verdict, how_many, is_of_loop_file};
use super::{Needs, Rule};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CacheState, CellRecord, Finding, Op, Severity, Stake, VerdictCode};
use rdsk_units::{Bytes, percent};

/// Bytes that the device moved per byte of the cell from which they are worth a figure.
const MORE: f64 = 1.05;

pub(super) const HOLE_READ: Rule = Rule::new("hole-read", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Hole));
    let text = "Parts of the file, or of the file behind a loop device, were never written. The filesystem returns zeros for \
                them without reading a device, even with O_DIRECT, so the figure is partly or wholly that of memory.";
    let advice = "measure a file that was really written (dd if=/dev/urandom), or give a directory and let rdsk write a test \
                  file";
    let found = HOLE_READ.about_any(&cells, "holes were read, not a disk", text, cite_hole, advice);
    let shares = cells.iter().filter_map(|cell| metrics::hole_share(cell));
    let Some(most) = shares.max_by(f64::total_cmp) else { return found };
    let what =
        format!("holes were read, not a disk: {}, up to {} never written", how_many(&cells), percent(most));
    found.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
});

pub(super) const CACHED_READ: Rule = Rule::new(
    "cached-read",
    Severity::Invalid,
    Needs::Counters,
    |analysis| {
        // A warm cell measures memory on purpose: nothing to warn of.
        let cells = cells(analysis, |cell| {
            has_verdict(cell, VerdictCode::PageCache)
                && !is_of_loop_file(analysis, cell)
                && cell.workload.op == Op::Read
                && cell.workload.cache != CacheState::Warm
        });
        let text = "Some or all of the data was still in memory, so the figure mixes the speed of memory with that of the \
                device.";
        let advice = "use direct I/O, read a span larger than memory, or run where rdsk may drop the cache";
        let found = CACHED_READ.about_any(&cells, "memory answered reads", text, cite_verdict, advice);
        let shares = cells.iter().filter_map(|cell| cell.verdict.as_ref()?.device_share);
        let Some(least) = shares.min_by(f64::total_cmp) else { return found };
        let what = format!(
            "memory answered reads: {}, and the device moved down to {} of the bytes",
            how_many(&cells),
            percent(least)
        );
        found.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
    },
);

pub(super) const DISTURBED: Rule = Rule::new("disturbed", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Disturbed));
    let text = "The device, or a disk below it, did work that the cell did not request: more data, or requests of others beside \
                its own. Other I/O takes time from the measurement and makes it less steady.";
    let advice = "stop whatever else uses the device, or repeat the run when it is idle";
    let findings = DISTURBED.about_any(&cells, "other programs used the device", text, cite_verdict, advice);
    let shares = cells.iter().filter_map(|cell| cell.verdict.as_ref()?.device_share);
    // Others may have been many and small: then only their requests show.
    let most = shares.filter(|share| *share >= MORE).max_by(f64::total_cmp);
    let what = most.map(|share| {
        let (cells, times) = (how_many(&cells), words::times(share));
        format!("other programs used the device, which moved up to {times} as many bytes as rdsk: {cells}")
    });
    let valued = |finding: Finding| match &what {
        Some(what) => finding.effect(Stake::Figure, None, what.clone()),
        None => finding,
    };
    findings.into_iter().map(Finding::covering_verdicts).map(valued).collect()
});

pub(super) const THROTTLED: Rule = Rule::new("throttled", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Throttled));
    let text = "The control group that rdsk runs in limits the I/O of this device, and the measured rate is that limit. The \
                device itself is at least as fast.";
    let advice =
        "run outside the limited group (container, slice), or raise the limit in the file named above";
    THROTTLED.about_any(&cells, "a control group sets the rate", text, cite_verdict, advice)
});

pub(super) const CPU_BOUND: Rule = Rule::new("cpu-bound", Severity::Cause, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::CpuBound));
    let text = "rdsk used the processor for nearly all of the elapsed time: a faster device would give the same figure.";
    let advice = "raise --streams or --bs to see what the device can do beyond one processor";
    CPU_BOUND.about_any(&cells, "the processor is the limit", text, cite_cpu, advice)
});

fn cite_verdict(cell: &CellRecord) -> String {
    cite(cell, "verdict", cell.verdict.as_ref().map_or("", |verdict| verdict.text.as_str()))
}

fn cite_hole(cell: &CellRecord) -> String {
    if metrics::hole_share(cell).is_none() {
        return cite_verdict(cell);
    }
    let holes = metrics::hole_share(cell).map_or_else(|| "unknown".into(), percent);
    let moved =
        metrics::device_bytes(cell, Op::Read).map_or("not counted".into(), |moved| Bytes(moved).approx());
    cite(cell, "share never written", format_args!("{holes}, device read = {moved}"))
}

fn cite_cpu(cell: &CellRecord) -> String {
    let cpu_ns = metrics::cpu_ns(cell).unwrap_or(0);
    let per_io = words::nanos(cpu_ns / cell.result.ops.unwrap_or(1).max(1));
    let share = percent(metrics::ratio(cpu_ns, cell.result.elapsed_ns.unwrap_or(1).max(1)));
    cite(cell, "cpu per I/O", format_args!("{per_io}, cpu / elapsed = {share}"))
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, file, read_from_memory, record, with};
    use rdsk_model::{CpuTime, ExtentEvidence, IoPath, Limit};

    #[test]
    fn fires_on_a_sparse_file_and_is_silent_on_a_written_one() {
        let sparse = ExtentEvidence { mapped_bytes: 0, unwritten_bytes: 0, hole_bytes: 64 << 20, extents: 0 };
        let hole = with(cell("h", Op::Read, IoPath::Direct, 1 << 20, 64, 2_000_000), |cell| {
            *cell = read_from_memory(cell.clone());
            cell.workload.path = IoPath::Direct;
            cell.evidence.extents = Some(sparse);
        });
        let finding = fires(HOLE_READ, &record(vec![file()], vec![hole.clone()]));
        assert_eq!(finding.evidence, ["h: share never written = 100 %, device read = 0 B"]);
        let written = with(cell("w", Op::Read, IoPath::Direct, 1 << 20, 64, 2_000_000), |cell| {
            cell.evidence.extents = Some(ExtentEvidence { mapped_bytes: 64 << 20, hole_bytes: 0, ..sparse });
        });
        silent(HOLE_READ, &record(vec![file()], vec![written]));
    }

    #[test]
    fn fires_on_a_cached_read_and_is_silent_on_a_cold_or_a_warm_one() {
        let cold = cell("c", Op::Read, IoPath::Buffered, 1 << 20, 64, 500_000_000);
        let cached = read_from_memory(cold.clone());
        let finding = fires(CACHED_READ, &record(vec![disk()], vec![cold.clone(), cached.clone()]));
        assert!(finding.evidence[0].contains("sda read 0 B"), "{:?}", finding.evidence);
        let warm = with(cached, |cell| cell.workload.cache = CacheState::Warm);
        silent(CACHED_READ, &record(vec![disk()], vec![cold, warm]));
    }

    #[test]
    fn fires_on_foreign_reads_and_is_silent_on_our_own() {
        let own = cell("own", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let shared = with(own.clone(), |cell| {
            cell.id = "shared".into();
            cell.evidence.device[0].read_bytes = Some(90 << 20);
        });
        let finding = fires(DISTURBED, &record(vec![disk()], vec![own.clone(), shared]));
        assert_eq!(finding.cells, ["shared"]);
        assert!(finding.evidence[0].contains("26 MiB for others"), "{:?}", finding.evidence);
        silent(DISTURBED, &record(vec![disk()], vec![own]));
    }

    #[test]
    fn fires_at_the_limit_and_is_silent_below_it() {
        let limited = |ops_per_s| {
            with(cell("t", Op::Read, IoPath::Direct, 4096, 512, 2_000_000_000), |cell| {
                cell.evidence.limits = vec![Limit {
                    target: 0,
                    device: "sda".into(),
                    source: "/sys/fs/cgroup/x/io.max".into(),
                    op: Op::Read,
                    bytes_per_s: None,
                    ops_per_s: Some(ops_per_s),
                }];
            })
        };
        let finding = fires(THROTTLED, &record(vec![disk()], vec![limited(256)]));
        assert!(finding.evidence[0].contains("io.max"), "{:?}", finding.evidence);
        silent(THROTTLED, &record(vec![disk()], vec![limited(10_000)]));
    }

    #[test]
    fn fires_on_a_busy_processor_and_is_silent_on_an_idle_one() {
        let idle = cell("z", Op::Read, IoPath::Direct, 4096, 100_000, 100_000_000);
        let busy = with(idle.clone(), |cell| {
            cell.result.cpu_ns = Some(CpuTime { user: 15_000_000, system: 80_000_000 });
        });
        let finding = fires(CPU_BOUND, &record(vec![disk()], vec![busy]));
        assert_eq!(finding.evidence, ["z: cpu per I/O = 950 ns, cpu / elapsed = 95.0 %"]);
        silent(CPU_BOUND, &record(vec![disk()], vec![idle]));
    }
}
