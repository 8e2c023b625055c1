//! `larger-blocks-help`: the same streams move clearly more with larger blocks.

use super::prelude::*;
use rdsk_analysis::scale::{Grid, Point};

pub(super) const RULE: Rule = Rule::new("larger-blocks-help", Severity::Remark, Needs::Counters, check);

/// From this factor between the smallest blocks and the best it is worth a word.
const FACTOR: f64 = 1.25;
/// A block size with this part of the best rate is large enough.
const ENOUGH: f64 = 0.9;
fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    analysis.scale().iter().filter_map(|grid| of_grid(analysis, grid)).collect()
}

/// The stream count at which it helps most.
fn of_grid(analysis: &Analysis<'_>, grid: &Grid<'_>) -> Option<Finding> {
    let gains = grid.counts().into_iter().filter_map(|count| {
        let mut points: Vec<&Point<'_>> =
            grid.lines.iter().filter_map(|line| line.point(count)).filter(|point| is_sound(point)).collect();
        let first = *points.first()?;
        points.retain(|point| point.cell.sitting() == first.cell.sitting());
        let sure = analysis.comparisons(Kind::Blocks).filter(|one| one.base.id == first.cell.id);
        let gains = sure.filter_map(|one| {
            let ratio = one.ratio.ok().filter(|ratio| ratio.mean >= FACTOR && ratio.is_sure())?;
            Some((ratio, *points.iter().find(|point| point.cell.id == one.cell.id)?))
        });
        let (ratio, best) = gains.max_by(|one, other| one.0.mean.total_cmp(&other.0.mean))?;
        Some((ratio, first, best, points))
    });
    let (ratio, first, best, points) = gains.max_by(|one, other| one.0.mean.total_cmp(&other.0.mean))?;
    let most = best.bytes_per_s()?;
    let enough = points.iter().find(|point| point.bytes_per_s().is_some_and(|rate| rate >= ENOUGH * most))?;
    let size = |point: &Point<'_>| Bytes(point.cell.workload.block_bytes);
    let title = format!(
        "{}s of {} are {} as fast as those of {} ({} to {})",
        grid.op,
        size(best),
        words::times(ratio.mean),
        size(first),
        words::figure(ratio.low),
        words::figure(ratio.high)
    );
    let text = format!(
        "{} With {}, blocks of {} give {} and blocks of {} give {}. Every I/O costs the same time besides its bytes, and \
         larger blocks pay it less often; {} have nine tenths of the best rate.",
        words::interval(ratio.low, ratio.high),
        words::plural(u64::from(first.count()), "stream"),
        size(first),
        words::rate(first.bytes_per_s()?),
        size(best),
        words::rate(most),
        size(enough),
    );
    let cited =
        |point: &&Point<'_>| cite(point.cell, "bytes_per_s", words::rate(point.bytes_per_s().unwrap_or(0.0)));
    let advice =
        format!("use blocks of at least {} (--bs, or what the program calls its buffer)", size(enough));
    let effect = format!(
        "{}s of {} are {} as fast as those of {}",
        grid.op,
        size(best),
        words::times(ratio.mean),
        size(first)
    );
    Some(
        RULE.finding(title, text)
            .effect(Stake::Cost, Some(ratio.mean), effect)
            .within(ratio.low, ratio.high)
            .evidence(points.iter().take(MAX_CITED).map(cited))
            .advice(advice)
            .cells(points.iter().map(|point| point.cell)),
    )
}

fn is_sound(point: &Point<'_>) -> bool {
    point.failed.is_empty()
        && reached_device(point.cell)
        && point.bytes_per_s().is_some_and(|rate| rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, estimate, in_rounds, record, with, without_counters};
    use rdsk_model::{CellRecord, Experiment, IoPath, Op};

    fn scale(size: u64, rate: u64) -> CellRecord {
        let bytes = rate << 20;
        let id = format!("scale/read/{size}/1");
        with(in_rounds(cell(&id, Op::Read, IoPath::Direct, size, bytes / size, 1_000_000_000)), |cell| {
            cell.experiment = Experiment::Scale;
            cell.result.bytes_per_s = Some(estimate(bytes as f64));
        })
    }

    #[test]
    fn fires_and_names_the_smallest_size_that_is_enough() {
        let cells = vec![scale(16 << 10, 36), scale(128 << 10, 62), scale(1 << 20, 67)];
        let finding = fires(RULE, &record(vec![disk()], cells));
        assert_eq!(finding.title, "reads of 1 MiB are 1.86x as fast as those of 16 KiB (1.83 to 1.89)");
        assert!(finding.text.starts_with("The 95% interval is 1.8"), "{}", finding.text);
        assert!(finding.advice.unwrap().contains("at least 128 KiB"));
    }

    #[test]
    fn is_silent_where_size_hardly_matters_or_nothing_reached_the_device() {
        silent(RULE, &record(vec![disk()], vec![scale(16 << 10, 60), scale(1 << 20, 67)]));
        silent(RULE, &record(vec![disk()], vec![scale(16 << 10, 36)]));
        let blind = [scale(16 << 10, 36), scale(1 << 20, 67)].map(without_counters);
        silent(RULE, &record(vec![disk()], blind.into()));
        let unsure = with(scale(16 << 10, 36), |cell| {
            for (visit, factor) in cell.result.visits.iter_mut().zip([1, 6, 1, 4, 1, 8]) {
                visit.elapsed_ns = visit.elapsed_ns * factor / 3;
            }
        });
        silent(RULE, &record(vec![disk()], vec![unsure, scale(1 << 20, 67)]));
        let short = with(scale(16 << 10, 36), |cell| cell.result.visits.truncate(2));
        silent(RULE, &record(vec![disk()], vec![short, scale(1 << 20, 67)]));
    }
}
