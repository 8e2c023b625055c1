//! Findings that say in one place what the same verdict says of many cells: `hole-read`, `cached-read`, `disturbed`,
//! `throttled`, `cpu-bound` and `source-bound`. They add no judgement of their own, only what BPF counted beside it.

use super::prelude::*;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::{is_burst, verdicts_by_direction};
use rdsk_model::Limit;

/// Bytes that the device moved per byte of the cell from which they are worth a figure.
const MORE: f64 = 1.05;

pub(super) const HOLE_READ: Rule = Rule::new("hole-read", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Hole));
    let text = "Parts of the file, of the file behind a loop device, of the thin volume or of the zones were never written. Reads of them \
                return zeros without a disk, even with O_DIRECT, so the figure is partly or wholly that of RAM.";
    let has_zones = |cell: &&CellRecord| {
        metrics::first_device(analysis, cell).is_some_and(|device| device.zone_written_bytes.is_some())
    };
    let advice = if cells.iter().any(has_zones) {
        write_first(analysis, &cells)
    } else {
        "measure a file that was really written (dd if=/dev/urandom), or give a directory and let rdsk write a test \
         file"
    };
    let findings =
        HOLE_READ.about_any(&cells, "unallocated blocks were read, not the disk", text, cite_hole, advice);
    let shares = cells.iter().filter_map(|cell| metrics::hole_share(cell));
    let Some(most) = shares.max_by(f64::total_cmp) else { return findings };
    let what = format!(
        "unallocated blocks were read, not the disk: {}, up to {} never written",
        how_many(&cells),
        percent(most)
    );
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
});

pub(super) const CACHED_READ: Rule = Rule::new(
    "cached-read",
    Severity::Invalid,
    Needs::Counters,
    |analysis| {
        // A warm cell measures memory on purpose: nothing to warn of.
        let cells = cells(analysis, |cell| {
            has_verdict(cell, VerdictCode::PageCache)
                && !is_of_loop_file(cell, &analysis.targets)
                && cell.workload.op == Op::Read
                && cell.workload.cache != CacheState::Warm
        });
        let text = "Some or all of the data was still in RAM (page cache). The figure mixes the speed of RAM with that of the device.";
        let advice = "use direct I/O, read a span larger than memory, or run where rdsk may drop the cache";
        let findings = CACHED_READ.about_any(
            &cells,
            "RAM (page cache) answered reads",
            text,
            |cell| cite_cached(analysis, cell),
            advice,
        );
        let shares = cells.iter().filter_map(|cell| cell.verdict.as_ref()?.device_share);
        let Some(least) = shares.min_by(f64::total_cmp) else { return findings };
        let what = format!(
            "RAM (page cache) answered reads: {}, and the device moved as little as {} of the bytes",
            how_many(&cells),
            percent(least)
        );
        findings.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
    },
);

pub(super) const DISTURBED: Rule = Rule::new("disturbed", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Disturbed));
    let text = "The device, or a disk below it, moved more data or served more requests than these tests issued. Other I/O takes time from \
                them and makes them less steady.";
    let advice = "stop what else uses the device, or repeat the run when it is idle";
    let findings = DISTURBED.about_any(
        &cells,
        "other I/O on the device",
        text,
        |cell| cite_others(analysis, cell),
        advice,
    );
    let shares = cells.iter().filter_map(|cell| cell.verdict.as_ref()?.device_share);
    // Other requests may have been many and small: then only their number shows.
    let most = shares.filter(|share| *share >= MORE).max_by(f64::total_cmp);
    let what = most.map(|share| {
        let (tests, times) = (how_many(&cells), words::times(share));
        format!("other I/O on the device, which moved up to {times} as many bytes as rdsk: {tests}")
    });
    let valued = |finding: Finding| match &what {
        Some(what) => finding.effect(Stake::Figure, None, what.clone()),
        None => finding,
    };
    findings.into_iter().map(Finding::covering_verdicts).map(valued).collect()
});

pub(super) const THROTTLED: Rule = Rule::new("throttled", Severity::Invalid, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::Throttled));
    let limits: Vec<&Limit> = cells.iter().flat_map(|cell| limits_on(analysis, cell)).collect();
    let text = format!(
        "{} limits the I/O of this device, which moved {}. The device itself is at least as fast.",
        limiting(&limits),
        in_force(&limits)
    );
    let advice = "run outside the limited cgroup (container, slice), or raise the limit";
    let findings = THROTTLED.about_any(
        &cells,
        "limited by a cgroup",
        text,
        |cell| cite_throttled(analysis, cell),
        advice,
    );
    let bursts = cells.iter().filter(|cell| is_burst(cell, &analysis.targets)).count();
    let above = match bursts {
        0 => String::new(),
        count if count == cells.len() => ", above it in bursts".to_owned(),
        some => format!(", {some} above it in bursts"),
    };
    let what = format!("a cgroup limits the rate to {}: {}{above}", in_force(&limits), how_many(&cells));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
});

/// The limits on what a cell did: of a load that reads and writes, on the direction that they hold back.
fn limits_on<'c>(analysis: &Analysis<'_>, cell: &'c CellRecord) -> Vec<&'c Limit> {
    let of_each = verdicts_by_direction(cell, &analysis.targets, None);
    let is_held = |op: Op| match &of_each {
        Some([reads, writes]) => op.select(reads, writes).code == VerdictCode::Throttled,
        None => op == cell.workload.op,
    };
    cell.evidence.limits.iter().filter(|limit| is_held(limit.op)).collect()
}

/// `4.00 MiB/s and 1000 IOPS`: the limits that are in force. The evidence says by which files.
fn in_force(limits: &[&Limit]) -> String {
    let devices = distinct(limits.iter().map(|limit| printable(&limit.device)));
    let on = |limit: &Limit| match devices.len() {
        1 => String::new(),
        _ => format!(" on {}", printable(&limit.device)),
    };
    let bytes = limits.iter().filter_map(|limit| {
        let rate = words::rate(limit.bytes_per_s? as f64);
        Some(format!("{rate}{}", on(limit)))
    });
    let ios = limits.iter().filter_map(|limit| Some(format!("{} IOPS{}", limit.ops_per_s?, on(limit))));
    words::list(&distinct(bytes.chain(ios)))
}

/// `Cgroup /sys/fs/cgroup/slow/io.max`: the files that hold these limits.
fn limiting(limits: &[&Limit]) -> String {
    let files = distinct(limits.iter().map(|limit| printable(&limit.source)));
    if files.is_empty() { "A cgroup".into() } else { format!("Cgroup {}", words::list(&files)) }
}

pub(super) const CPU_BOUND: Rule = Rule::new("cpu-bound", Severity::Cause, Needs::Counters, |analysis| {
    let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::CpuBound));
    let text = "rdsk kept a CPU busy for nearly all of the time. A faster device would give the same figure.";
    let advice = "measure with more streams (rdsk scale) or larger blocks to see what the device can do beyond one CPU";
    CPU_BOUND.about_any(&cells, "CPU bound", text, |cell| cite_cpu(analysis, cell), advice)
});

pub(super) const SOURCE_BOUND: Rule = Rule::new(
    "source-bound",
    Severity::Cause,
    Needs::Counters,
    |analysis| {
        let cells = cells(analysis, |cell| has_verdict(cell, VerdictCode::SourceBound));
        let text = "Between two writes the device waited while rdsk generated the data of the next one. A faster device would give nearly \
                    the same figure.";
        let advice = "measure with more streams (rdsk scale) or deeper queues, so that data is generated while other writes are in flight, or measure reads";
        SOURCE_BOUND.about_any(&cells, "generating the write data is the limit", text, cite_source, advice)
    },
);

/// With what BPF counted of our own reads.
fn cite_cached(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let own = analysis.block_io(cell).map_or(String::new(), |block_io| {
        let (own, calls) = (block_io.own(cell.workload.op), block_io.calls());
        let part = block_io.part_in_words();
        format!("; {} for {}{part}", words::plural(own.count, "bio"), words::plural(calls, "read"))
    });
    format!("{}{own}", cite_verdict(cell))
}

/// With what BPF counted of others.
fn cite_others(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let block_io = analysis.block_io(cell);
    let others = block_io.iter().flat_map(|block_io| {
        let by_others = |op: Op| (op, block_io.by(op, |origin| origin == Origin::Other));
        [by_others(Op::Read), by_others(Op::Write)]
    });
    let parts: Vec<String> = others
        .filter(|(_, sum)| sum.count > 0)
        .map(|(op, sum)| {
            format!("{} of {} {}", words::plural(sum.count, "bio"), words::bytes(sum.bytes), verb(op))
        })
        .collect();
    let others = if parts.is_empty() {
        String::new()
    } else {
        format!("; by {} = {}{}", Origin::Other, words::list(&parts), part_in_words(cell))
    };
    format!("{}{others}", cite_verdict(cell))
}

fn verb(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "written",
    }
}

/// With the time that a request was in the device: a control group holds it back before it exists.
fn cite_throttled(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let held = analysis.in_device(cell).map(|times| {
        format!(
            "; of {} for each I/O its request was {} in the device{}",
            words::mean_nanos(times.call_ns),
            words::mean_nanos(times.device_ns),
            part_in_words(cell)
        )
    });
    format!("{}{}", cite_verdict(cell), held.unwrap_or_default())
}

/// The time between the writes, and whose it was.
fn cite_source(cell: &CellRecord) -> String {
    let gap = cell.result.in_flight_mean.map(|mean| 1.0 - mean / f64::from(cell.workload.streams.max(1)));
    let user_ns = cell.result.cpu_ns.map_or(0, |cpu| cpu.user);
    let gap = gap.map_or_else(|| "unknown".into(), percent);
    cite(
        cell,
        "time between the writes",
        format_args!("{gap}, CPU time of rdsk's own code = {}", words::nanos(user_ns)),
    )
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

fn cite_cpu(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let cpu_ns = metrics::cpu_ns(cell).unwrap_or(0);
    let per_io = words::nanos(cpu_ns / cell.result.ops.unwrap_or(1).max(1));
    let share = percent(metrics::ratio(cpu_ns, cell.result.elapsed_ns.unwrap_or(1).max(1)));
    let device = analysis.in_device(cell).map(|times| {
        format!(
            ", in the device = {} of {}{}",
            words::mean_nanos(times.device_ns),
            words::mean_nanos(times.call_ns),
            part_in_words(cell)
        )
    });
    cite(cell, "cpu per I/O", format_args!("{per_io}, cpu / elapsed = {share}{}", device.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{cell, disk, file, read_from_memory, record, with};
    use rdsk_model::{CpuTime, ExtentEvidence, IoPath};

    #[test]
    fn fires_on_a_sparse_file_and_is_silent_on_a_written_one() {
        let sparse = ExtentEvidence { mapped_bytes: 0, unwritten_bytes: 0, hole_bytes: 64 << 20, extents: 0 };
        let hole = with(cell("h", Op::Read, IoPath::Direct, 1 << 20, 64, 2_000_000), |cell| {
            *cell = read_from_memory(cell.clone());
            cell.workload.path = IoPath::Direct;
            cell.evidence.extents = Some(sparse);
        });
        let finding = fires(HOLE_READ, &record(vec![file()], vec![hole.clone()]));
        assert_eq!(
            finding.evidence,
            ["sequential direct 1M reads: share never written = 100%, device read = 0 B"]
        );
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

    /// Of reads, by a cgroup.
    fn limit(ops_per_s: u64) -> Limit {
        Limit {
            target: 0,
            device: "sda".into(),
            source: "/sys/fs/cgroup/x/io.max".into(),
            op: Op::Read,
            bytes_per_s: None,
            ops_per_s: Some(ops_per_s),
        }
    }

    #[test]
    fn fires_at_the_limit_and_is_silent_below_it() {
        let limited = |ops_per_s| {
            with(cell("t", Op::Read, IoPath::Direct, 4096, 512, 2_000_000_000), |cell| {
                cell.evidence.limits = vec![limit(ops_per_s)];
            })
        };
        let finding = fires(THROTTLED, &record(vec![disk()], vec![limited(256)]));
        assert!(finding.evidence[0].contains("io.max"), "{:?}", finding.evidence);
        silent(THROTTLED, &record(vec![disk()], vec![limited(10_000)]));
    }

    #[test]
    fn fires_where_data_generation_takes_the_time_and_is_silent_where_the_writes_do() {
        let writes = |in_flight: f64| {
            with(cell("g", Op::Write, IoPath::Direct, 1 << 20, 64, 500_000_000), |cell| {
                cell.result.in_flight_mean = Some(in_flight);
                cell.result.cpu_ns = Some(CpuTime { user: 200_000_000, system: 20_000_000 });
            })
        };
        let finding = fires(SOURCE_BOUND, &record(vec![disk()], vec![writes(0.6)]));
        assert_eq!(
            finding.evidence,
            [
                "sequential direct 1M writes: time between the writes = 40.0%, CPU time of rdsk's own code = 200 ms"
            ]
        );
        silent(SOURCE_BOUND, &record(vec![disk()], vec![writes(0.9)]));
    }

    #[test]
    fn bios_say_what_others_did_and_what_was_held_back() {
        let own = || bio(Op::Read, "this", Some("pread64"), 64, 1 << 20);
        let whole = cell("d", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let shared = with(whole, |cell| cell.evidence.device[0].read_bytes = Some(90 << 20));
        let others = bio(Op::Read, "other", Some("read"), 208, 128 << 10);
        let requests = vec![request(Op::Read, 1 << 20, 64), request(Op::Read, 128 << 10, 208)];
        let shared = counted(shared, vec![own(), others], requests);
        let finding = fires(DISTURBED, &record(vec![disk()], vec![shared]));
        assert!(
            finding.evidence[0].ends_with("; by other processes = 208 bios of 26 MiB read"),
            "{:?}",
            finding.evidence
        );
        let limited = with(cell("t", Op::Read, IoPath::Direct, 4096, 512, 2_000_000_000), |cell| {
            cell.evidence.device_latency_ns = Some(crate::fixtures::latency(512, 60_000));
            cell.evidence.limits = vec![limit(256)];
        });
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 512, 4096)];
        let limited = counted(limited, bios, vec![request(Op::Read, 4096, 512)]);
        let burst = with(limited.clone(), |cell| {
            cell.id = "b".into();
            cell.evidence.limits = vec![limit(100)];
        });
        let finding = fires(THROTTLED, &record(vec![disk()], vec![limited.clone(), burst]));
        let effect = finding.effect.as_ref().map(|effect| effect.text.as_str());
        let expected = "a cgroup limits the rate to 256 IOPS and 100 IOPS: 2 tests, 1 above it in bursts";
        assert_eq!(effect, Some(expected));
        let other = with(limited.clone(), |cell| {
            cell.id = "o".into();
            cell.evidence.limits = vec![Limit { device: "sdb".into(), ..limit(300) }];
        });
        let limits: Vec<&Limit> = [&limited, &other].iter().flat_map(|cell| &cell.evidence.limits).collect();
        assert_eq!(in_force(&limits), "256 IOPS on sda and 300 IOPS on sdb");
        assert!(
            finding.evidence[0].ends_with("; of 3.91 ms for each I/O its request was 60.0 µs in the device"),
            "{:?}",
            finding.evidence
        );
    }

    #[test]
    fn fires_on_a_busy_processor_and_is_silent_on_an_idle_one() {
        let idle = cell("z", Op::Read, IoPath::Direct, 4096, 100_000, 100_000_000);
        let busy = with(idle.clone(), |cell| {
            cell.result.cpu_ns = Some(CpuTime { user: 15_000_000, system: 80_000_000 });
        });
        let finding = fires(CPU_BOUND, &record(vec![disk()], vec![busy]));
        assert_eq!(
            finding.evidence,
            ["sequential direct 4K reads: cpu per I/O = 950 ns, cpu / elapsed = 95.0%"]
        );
        silent(CPU_BOUND, &record(vec![disk()], vec![idle]));
    }
}
