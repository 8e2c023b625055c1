//! `cpu-bound`: the processor, not the device, was busy all the time.

use super::Rule;
use super::common::{cite, cite_all, how_many, ids, with_verdict};
use rdsk_analysis::{metrics, words};
use rdsk_model::{Confidence, Finding, Record, VerdictCode};
use rdsk_units::percent;

pub(super) const RULE: Rule = Rule { code: "cpu-bound", check };

fn check(record: &Record) -> Vec<Finding> {
    let cells = with_verdict(record, VerdictCode::CpuBound);
    if cells.is_empty() {
        return Vec::new();
    }
    let evidence = cite_all(&cells, |cell| {
        let cpu_ns = metrics::cpu_ns(cell).unwrap_or(0);
        let per_io = words::nanos(cpu_ns / cell.result.ops.unwrap_or(1).max(1));
        let share = percent(metrics::ratio(cpu_ns, cell.result.elapsed_ns.unwrap_or(1).max(1)));
        cite(cell, "cpu per I/O", format_args!("{per_io}, cpu / elapsed = {share}"))
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("the processor is the limit: {}", how_many(&cells)),
        text: "Processor time of this process fills nearly all of the elapsed time: a faster device would give the same \
               figure."
            .into(),
        evidence,
        confidence: Confidence::Measured,
        advice: Some("raise --streams or --bs to see what the device can do beyond one processor".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, record, with};
    use rdsk_model::{CpuTime, IoPath, Op};

    #[test]
    fn fires_on_a_busy_processor_and_is_silent_on_an_idle_one() {
        let idle = cell("z", Op::Read, IoPath::Direct, 4096, 100_000, 100_000_000);
        let busy = with(idle.clone(), |cell| {
            cell.result.cpu_ns = Some(CpuTime { user: 15_000_000, system: 80_000_000 });
        });
        let finding = fires(RULE, &record(vec![disk()], vec![busy]));
        assert_eq!(finding.evidence, ["z: cpu per I/O = 950 ns, cpu / elapsed = 95.0 %"]);
        silent(RULE, &record(vec![disk()], vec![idle]));
    }
}
