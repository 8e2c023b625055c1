//! `waits-above-device`: one I/O at a time took much longer than its request was in the device. Where a limit of a control group is
//! known to be the reason, `throttled` says so instead.

use super::prelude::*;
use rdsk_analysis::contention::contention;
use rdsk_analysis::in_device::InDevice;

pub(super) const RULE: Rule = Rule::new("waits-above-device", Severity::Cause, Needs::Counters, check);

/// Share of an I/O's time that must have passed outside the device.
const MOSTLY: f64 = 0.5;
/// The least such time: waking a thread on a slow or virtual machine may take a tenth of it.
const MIN_OUTSIDE_NS: f64 = 200_000.0;
/// Share of that time that computing, and waiting for a processor, may have taken.
const MAX_CPU: f64 = 0.5;
/// I/Os below which one that was late decides the mean.
const MIN_OPS: u64 = 30;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| waits(analysis, cell).is_some());
    let cited = |cell: &CellRecord| {
        let times = waits(analysis, cell)
            .map(|times| (words::mean_nanos(times.call_ns), words::mean_nanos(times.device_ns)));
        let (call, device) = times.unwrap_or_default();
        cite(cell, "mean latency", format_args!("{call}, of it in the device = {device}"))
    };
    let text = "Requests reached the device long after the call, or the call returned long after the device was done, so the figure is not \
                the device's. A cgroup limit that rdsk cannot read, io.cost, io.latency, writeback throttling or a filesystem lock does this.";
    let advice = "compare outside the container or slice, and read io.max, io.latency and io.cost of every cgroup above";
    let mut findings = RULE.about_any(&cells, "I/Os waited above the device", text, cited, advice);
    let (lines, named) = in_force(&cells);
    for finding in &mut findings {
        finding.evidence.extend(lines.iter().cloned());
    }
    let Some(worst) = cells
        .iter()
        .filter_map(|cell| waits(analysis, cell))
        .max_by(|a, b| factor(*a).total_cmp(&factor(*b)))
    else {
        return findings;
    };
    let what = format!(
        "I/Os waited above the device: {}, {} of {} each{named}",
        how_many(&cells),
        words::mean_nanos(worst.outside_ns()),
        words::mean_nanos(worst.call_ns)
    );
    // That it was outside the device is measured; what held it is not.
    let valued =
        |finding: Finding| finding.inferred().effect(Stake::Figure, Some(factor(worst)), what.clone());
    findings.into_iter().map(valued).collect()
}

/// The controllers and limits in force on the cells' targets, one line each, and a clause that names them. That they held the I/O is
/// not known.
fn in_force(cells: &[&CellRecord]) -> (Vec<String>, String) {
    let (mut lines, mut names): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for cell in cells {
        let limits = cell.evidence.limits.iter().filter(|limit| limit.op == cell.workload.op);
        let limits = limits.map(|limit| {
            let bytes = limit.bytes_per_s.map(|bytes| format!(" {bytes} bytes/s"));
            let ops = limit.ops_per_s.map(|ops| format!(" {ops} IOPS"));
            let setting = [bytes, ops].into_iter().flatten().collect::<String>();
            (limit.target, "a limit", &limit.device, &limit.source, setting)
        });
        let controls = cell.evidence.controls.iter().map(|control| {
            let kind = if control.source.ends_with("/io.latency") { "io.latency" } else { "io.cost" };
            (
                control.target,
                kind,
                &control.device,
                &control.source,
                format!(" {}", printable(&control.setting)),
            )
        });
        for (target, kind, device, source, setting) in limits.chain(controls) {
            let device = printable(device);
            let line = format!("in force on {device}: {} ={setting}", printable(source));
            let name = format!("{kind} is on for {device}");
            if !cell.workload.targets.contains(&target) || lines.contains(&line) || lines.len() >= MAX_CITED {
                continue;
            }
            lines.push(line);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let named = if names.is_empty() { String::new() } else { format!("; {}", names.join(", ")) };
    (lines, named)
}

fn factor(times: InDevice) -> f64 {
    times.call_ns / times.device_ns.max(1.0)
}

/// The times of a cell whose I/Os waited outside the device for a reason that no other rule names.
fn waits(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<InDevice> {
    use VerdictCode::{CpuBound, Disturbed, SourceBound, Throttled};
    let is_explained =
        [CpuBound, Disturbed, SourceBound, Throttled].iter().any(|&code| has_verdict(cell, code))
            || contention(cell).is_some_and(|contention| contention.is_much() || contention.is_quota());
    // What some visits took is not held against the processor time of all; at the rates of I/Os that wait so long, all are followed.
    let is_of_all = part_in_words(cell).is_empty();
    let times = analysis.in_device(cell).filter(|_| is_of_all && !is_explained)?;
    let outside_ns = times.outside_ns();
    // Cells too short to know what else computed still know how long their own threads waited for a processor.
    let waited_ns = cell.evidence.processor.and_then(|processor| processor.own_wait_ns).unwrap_or(0);
    let cpu_ns = metrics::ratio(
        metrics::cpu_ns(cell)?.saturating_add(waited_ns),
        cell.result.ops.filter(|&ops| ops >= MIN_OPS)?,
    );
    let is_long = outside_ns >= MIN_OUTSIDE_NS && outside_ns >= MOSTLY * times.call_ns;
    (is_long && cpu_ns <= MAX_CPU * outside_ns).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{CpuTime, IoControl, IoPath, Limit, Op, ProcessorUse, Record};

    /// A thousand reads of 4 ms each, whose requests were this long in the device.
    fn reads(device_ns: u64, change: impl FnOnce(&mut CellRecord)) -> Record {
        reads_of(1000, device_ns, change)
    }

    /// So many of them.
    fn reads_of(count: u64, device_ns: u64, change: impl FnOnce(&mut CellRecord)) -> Record {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, count, count * 4_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), count, 4096)];
        let cell = with(counted(cell, bios, vec![request(Op::Read, 4096, count)]), |cell| {
            cell.evidence.device_latency_ns = Some(fixtures::latency(count, device_ns));
        });
        record(vec![disk()], vec![with(cell, change)])
    }

    #[test]
    fn fires_where_most_of_the_time_is_above_the_device() {
        let finding = fires(RULE, &reads(100_000, |_| {}));
        assert_eq!(
            finding.evidence,
            ["sequential direct 4K reads: mean latency = 4.00 ms, of it in the device = 100 µs"]
        );
        let effect = finding.effect.unwrap();
        assert_eq!(
            effect.text,
            "I/Os waited above the device: sequential direct 4K reads, 3.90 ms of 4.00 ms each"
        );
        fires(RULE, &reads(1_990_000, |_| {}));
    }

    #[test]
    fn names_the_controllers_in_force_on_its_targets() {
        let control = |target: u32, file: &str, setting: &str| IoControl {
            target,
            device: "sda".into(),
            source: format!("/sys/fs/cgroup/{file}"),
            setting: setting.into(),
        };
        let finding = fires(
            RULE,
            &reads(100_000, |cell| {
                cell.evidence.controls = vec![
                    control(0, "io.cost.qos", "enable=1 min=50.00 max=150.00"),
                    control(0, "io.cost.model", "rrandiops=100"),
                    control(0, "db/io.latency", "target=75"),
                    control(7, "other/io.latency", "target=1"),
                ];
                cell.evidence.limits = vec![Limit {
                    target: 0,
                    device: "sda".into(),
                    source: "/sys/fs/cgroup/x/io.max".into(),
                    op: Op::Read,
                    bytes_per_s: Some(1 << 40),
                    ops_per_s: None,
                }];
            }),
        );
        assert_eq!(
            finding.evidence[1..],
            [
                "in force on sda: /sys/fs/cgroup/x/io.max = 1099511627776 bytes/s",
                "in force on sda: /sys/fs/cgroup/io.cost.qos = enable=1 min=50.00 max=150.00",
                "in force on sda: /sys/fs/cgroup/io.cost.model = rrandiops=100",
                "in force on sda: /sys/fs/cgroup/db/io.latency = target=75",
            ]
        );
        let text = finding.effect.unwrap().text;
        assert!(
            text.ends_with("3.90 ms of 4.00 ms each; a limit is on for sda, io.cost is on for sda, io.latency is on for sda"),
            "{text}"
        );
    }

    #[test]
    fn is_silent_where_the_device_or_something_known_took_the_time() {
        silent(RULE, &reads(2_010_000, |_| {}));
        silent(RULE, &reads(100_000, |cell| cell.evidence.bpf = None));
        let busy = CpuTime { user: 2_500_000_000, system: 0 };
        silent(RULE, &reads(100_000, |cell| cell.result.cpu_ns = Some(busy)));
        let limit = Limit {
            target: 0,
            device: "sda".into(),
            source: "/sys/fs/cgroup/x/io.max".into(),
            op: Op::Read,
            bytes_per_s: None,
            ops_per_s: Some(250),
        };
        silent(RULE, &reads(100_000, |cell| cell.evidence.limits = vec![limit]));
    }

    #[test]
    fn is_silent_where_its_own_threads_waited_for_a_processor() {
        // Cells of less than 0.2 s are too short to see who else used the processors.
        let short = |wait_ns: u64| {
            reads_of(30, 100_000, move |cell| {
                cell.result.cpu_ns = Some(CpuTime { user: 0, system: 0 });
                cell.evidence.processor = Some(ProcessorUse {
                    interval_ns: 120_000_000,
                    processors: 2,
                    own_wait_ns: Some(wait_ns),
                    pressure_ns: Some(120_000_000),
                    ..ProcessorUse::default()
                });
            })
        };
        fires(RULE, &short(1_000_000));
        silent(RULE, &short(60_000_000));
    }

    #[test]
    fn is_silent_of_a_few() {
        silent(
            RULE,
            &reads_of(29, 100_000, |cell| cell.result.cpu_ns = Some(CpuTime { user: 0, system: 0 })),
        );
    }

    #[test]
    fn is_silent_below_what_waking_a_thread_takes() {
        let quick = |cell: &mut CellRecord| {
            fixtures::retimed(cell, 250_000_000);
        };
        silent(RULE, &reads(60_000, quick));
    }
}
