//! The zones page: the rate at each position, how much it scatters, and the time that was not spent in I/O. It draws what
//! [`rdsk_analysis::zones`] derives.

mod answer;
mod bars;

pub(super) use answer::answer;

use super::Plots;
use crate::cells;
use crate::chart::{self, Axes, Series};
use crate::figures::{MISSING, Unit, significant};
use crate::page::{Page, Tone};
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics::{is_of_memory, whole};
use rdsk_analysis::zones::{MIN_PASSES, Steps, Zones};
use rdsk_model::{CellRecord, Experiment, Pattern};
use rdsk_units::{Bytes, percent};

/// Minimum number of passes for a meaningful scatter.
const FEW_PASSES: usize = 2;

/// Rows of bands of one test at most.
const MAX_BANDS: usize = 4;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>, plots: Plots) {
    page.heading("ZONES: speed by position");
    let groups = cells::groups_by(analysis, Experiment::Zones, |cell| cell.workload.op);
    let of_device: Vec<Vec<(&CellRecord, &Zones)>> =
        groups.iter().map(|cells| device_cells_with_zones(analysis, cells)).collect();
    for cells in &of_device {
        for (_, of_target) in by_key(cells.iter().map(|entry| (&entry.0.workload.targets, *entry))) {
            bars::draw(page, analysis, &of_target);
        }
        draw_doubts(page, analysis, cells);
    }
    for cells in &groups {
        draw_rates(page, analysis, cells);
    }
    if plots == Plots::Drawn {
        let cells: Vec<&CellRecord> = groups.iter().flatten().copied().collect();
        draw_curve(page, analysis, &cells_with_zones(analysis, &cells));
    }
    for cells in &of_device {
        draw_bands(page, analysis, cells);
        for (_, of_target) in by_key(cells.iter().map(|entry| (&entry.0.workload.targets, *entry))) {
            draw_advice(page, analysis, &of_target);
        }
    }
}

/// The cells that visited a position.
fn cells_with_zones<'a>(
    analysis: &'a Analysis<'_>,
    cells: &[&'a CellRecord],
) -> Vec<(&'a CellRecord, &'a Zones)> {
    cells.iter().filter_map(|cell| Some((*cell, analysis.zones(cell)?))).collect()
}

/// The same without what memory or a hole answered, which says nothing about a disk.
fn device_cells_with_zones<'a>(
    analysis: &'a Analysis<'_>,
    cells: &[&'a CellRecord],
) -> Vec<(&'a CellRecord, &'a Zones)> {
    let of_device: Vec<&CellRecord> = cells.iter().copied().filter(|cell| !is_of_memory(cell)).collect();
    cells_with_zones(analysis, &of_device)
}

/// One direction: all block sizes on all targets.
fn draw_rates(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    let Some(first) = cells.first() else { return };
    let op = first.workload.op;
    let moves_start = first.workload.points.as_ref().is_some_and(|points| points.moves_start);
    let measured = cells_with_zones(analysis, cells);
    let order = match first.workload.pattern {
        Pattern::Random => "in shuffled order",
        Pattern::Sequential if moves_start && measured.iter().any(|(_, zones)| zones.passes > 1) => {
            "in ascending order, each sweep from another start"
        }
        Pattern::Sequential => "in ascending order",
    };
    let places = measured.iter().map(|(_, zones)| zones.positions.len()).max().unwrap_or(0);
    page.blank();
    page.sentence(
        Tone::Plain,
        "  ",
        format!("{op}, up to {places} positions, {order}; host = time between I/Os"),
    );
    let heads = [
        "blocks\nof", "sweeps", "start\nMiB/s", "end\nMiB/s", "ratio", "spread", "host\nµs", "util\n%",
        "remark",
    ];
    for (_, cells) in by_key(cells.iter().map(|cell| (&cell.workload.targets, *cell))) {
        draw_target(page, analysis, cells[0]);
        let rows: Vec<Vec<String>> =
            cells_with_zones(analysis, &cells).into_iter().map(|(cell, zones)| row(cell, zones)).collect();
        page.table_with(&heads, &rows, &[heads.len() - 1]);
        cells::draw_whys(page, analysis, &cells, |cell| Bytes(cell.workload.block_bytes).to_string());
    }
}

/// The target that the rows below are of, where there are several.
fn draw_target(page: &mut Page, analysis: &Analysis<'_>, cell: &CellRecord) {
    if let Some(name) = cells::target_name(analysis, cell) {
        page.sentence(Tone::Heading, "  ", name);
    }
}

/// Why steps of the rate are shown as no zones, for each target by the block size that shows them best.
fn draw_doubts(page: &mut Page, analysis: &Analysis<'_>, measured: &[(&CellRecord, &Zones)]) {
    for (_, of_target) in by_key(measured.iter().map(|entry| (&entry.0.workload.targets, entry))) {
        let Some((cell, zones)) = bars::clearest(of_target.into_iter().copied()) else { continue };
        if bars::is_limited(cell) {
            continue;
        }
        let sweeps = match zones.passes {
            1 => "1 whole sweep".to_owned(),
            many => format!("{many} whole sweeps"),
        };
        let why = match zones.steps {
            Steps::Untold => format!(
                "a change with time looks the same after {sweeps} in this order; --runs 4 or --order shuffled separates them"
            ),
            Steps::Shared => {
                "other I/O shared the processors or the device meanwhile, which looks the same".to_owned()
            }
            Steps::None | Steps::Shown | Steps::OfOnePass => continue,
        };
        page.sentence(Tone::Plain, format!("  Steps at {}: ", full_name(analysis, cell)), format!("{why}."));
    }
}

/// Bands beside the main mode, a row each.
fn draw_bands(page: &mut Page, analysis: &Analysis<'_>, measured: &[(&CellRecord, &Zones)]) {
    let groups = by_key(measured.iter().map(|entry| (&entry.0.workload.targets, entry)));
    let mut has_head = false;
    for (_, of_target) in groups {
        let rows = bands(analysis, &of_target);
        if rows.is_empty() {
            continue;
        }
        if !has_head {
            page.blank();
            page.line("  Bands of I/Os slower (+) or faster (-) than most:");
            has_head = true;
        }
        draw_target(page, analysis, of_target[0].0);
        let heads = ["blocks of", "by ms", "share", "cause"];
        page.table_with(&heads, &rows, &[heads.len() - 1]);
    }
}

fn bands(analysis: &Analysis<'_>, measured: &[&(&CellRecord, &Zones)]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (cell, zones) in measured.iter().filter(|(cell, _)| !bars::is_limited(cell)) {
        let Some(latency_bands) = &zones.latency_bands else { continue };
        for band in latency_bands.bands.iter().take(MAX_BANDS) {
            rows.push(vec![
                size(analysis, cell),
                format!(
                    "{}{}",
                    if band.offset_ns < 0.0 { "-" } else { "+" },
                    significant(band.offset_ns.abs() / 1e6)
                ),
                percent(band.share),
                latency_bands.cause.word().to_owned(),
            ]);
        }
        if latency_bands.bands.len() > MAX_BANDS {
            rows.push(vec![format!("and {} more", latency_bands.bands.len() - MAX_BANDS)]);
        }
    }
    rows
}

/// The direction, where both were measured, and what stands behind it.
fn with_op(analysis: &Analysis<'_>, cell: &CellRecord, name: &str) -> String {
    let has_others =
        cells::of_experiment(analysis, Experiment::Zones).any(|other| other.workload.op != cell.workload.op);
    let op = if has_others { format!("{} ", cell.workload.op) } else { String::new() };
    format!("{op}{name}")
}

/// The block size, behind the direction.
fn size(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    with_op(analysis, cell, &Bytes(cell.workload.block_bytes).to_string())
}

/// The block size on its target, behind the direction.
fn full_name(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let size = Bytes(cell.workload.block_bytes);
    let target = cells::target_name(analysis, cell);
    with_op(analysis, cell, &target.map_or_else(|| size.to_string(), |target| format!("{target} {size}")))
}

fn row(cell: &CellRecord, zones: &Zones) -> Vec<String> {
    let is_limited = bars::is_limited(cell);
    let unless_limited = |bytes_per_s: Option<f64>| bytes_per_s.filter(|_| !is_limited);
    let rate = |bytes_per_s: Option<f64>| Unit::MIB_PER_S.figure_or_missing(unless_limited(bytes_per_s));
    let ends = unless_limited(zones.outer_bytes_per_s).zip(zones.inner_bytes_per_s);
    let ratio = ends.map(|(outer, inner)| outer / inner);
    vec![
        Bytes(cell.workload.block_bytes).to_string(),
        zones.passes.to_string(),
        rate(zones.outer_bytes_per_s),
        rate(zones.inner_bytes_per_s),
        ratio.map_or_else(|| MISSING.into(), |ratio| format!("{}x", significant(ratio))),
        if is_limited { MISSING.to_owned() } else { scatter(zones) },
        Unit::MICROSECONDS.figure(zones.outside_ns),
        zones.busy_share.map_or_else(|| MISSING.into(), |share| significant(share * 100.0)),
        cells::remark(cell),
    ]
}

fn draw_curve(page: &mut Page, analysis: &Analysis<'_>, measured: &[(&CellRecord, &Zones)]) {
    let series: Vec<Series> = measured
        .iter()
        .map(|(cell, zones)| Series {
            label: full_name(analysis, cell),
            points: zones
                .positions
                .iter()
                .map(|position| {
                    let rate = position.bytes_per_s(zones.block_bytes) / 1_048_576.0;
                    (position.offset_bytes as f64, rate)
                })
                .collect(),
        })
        .collect();
    page.blank();
    let at = |x: f64| if x > 0.0 { Bytes(whole(x)).approx() } else { "0".to_owned() };
    let axes =
        Axes { top: chart::Top::Most, unit: "MiB/s, median of each position", along: "position", at: &at };
    chart::draw(page, &series, &axes);
}

/// The scatter; besides it, I/Os may be late by as much as a band.
fn scatter(zones: &Zones) -> String {
    let around = zones.scatter.map_or_else(|| MISSING.into(), percent);
    if zones.latency_bands.is_some() { format!("{around} + bands") } else { around }
}

/// What the block sizes of a target that were measured more than once leave to be done where none of them is steady. Where the spread comes
/// from time, larger blocks are no remedy.
fn draw_advice(page: &mut Page, analysis: &Analysis<'_>, measured: &[(&CellRecord, &Zones)]) {
    let unlimited = measured.iter().filter(|(cell, _)| !bars::is_limited(cell));
    let repeated: Vec<&Zones> =
        unlimited.map(|(_, zones)| *zones).filter(|zones| zones.passes >= FEW_PASSES).collect();
    let target = measured.first().and_then(|(cell, _)| cells::target_name(analysis, cell));
    let of_target = target.map_or_else(String::new, |name| format!("{name}: "));
    draw_pass_scatter(page, &of_target, &repeated);
    let is_in_time = |zones: &&Zones| !zones.is_tight() && zones.scatters_in_time();
    if let Some(zones) = repeated.iter().copied().find(is_in_time) {
        let text = format!(
            "{of_target}the spread at {} comes from time, not from block size; repeat on an idle device.",
            Bytes(zones.block_bytes)
        );
        page.sentence(Tone::Plain, "  Advice: ", text);
        return;
    }
    let has_several = repeated.iter().any(|zones| zones.block_bytes != repeated[0].block_bytes);
    if has_several && !repeated.iter().any(|zones| zones.is_tight()) {
        let limit = percent(rdsk_analysis::zones::TIGHT);
        let text = format!(
            "{of_target}every block size has slower bands or a spread of more than {limit}: use larger blocks."
        );
        page.sentence(Tone::Plain, "  Advice: ", text);
    }
}

/// How far whole passes lie apart where that is more than a fraction of a percent and no change over them was found.
fn draw_pass_scatter(page: &mut Page, of_target: &str, repeated: &[&Zones]) {
    let scatter = |zones: &&Zones| zones.pass_scatter.filter(|_| zones.drift.is_none());
    let widest = repeated.iter().filter_map(|zones| Some((scatter(zones)?, *zones)));
    let Some((most, zones)) = widest.max_by(|left, right| left.0.total_cmp(&right.0)) else { return };
    if most < rdsk_analysis::zones::MIN_DRIFT {
        return;
    }
    let few = match zones {
        zones if zones.rounds >= MIN_PASSES => String::new(),
        zones if zones.rounds == zones.passes => format!("; fewer than {MIN_PASSES} cannot show a trend"),
        zones => {
            format!("; fewer than {MIN_PASSES} repeats of them, {} here, cannot show a trend", zones.rounds)
        }
    };
    page.sentence(
        Tone::Plain,
        "  Spread: ",
        format!("{of_target}sweeps differ with a standard deviation of {}{few}.", percent(most)),
    );
}

#[cfg(test)]
mod tests {
    use crate::style::Style;
    use rdsk_analysis::fixtures::zones::made;
    use rdsk_model::{Target, Verdict, VerdictCode};

    /// Levels of 10 and 11 ms lie 0.7 ms from their mean by that measure. A ± would be a margin of 95 %, which they do not have.
    #[test]
    fn the_scatter_of_passes_is_a_standard_deviation() {
        let (record, _) = made(60, 2, |_, pass, _| 10_000_000 + 1_000_000 * u64::from(pass));
        let page = crate::tests::text(&record, Style::default());
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "sweeps differ with a standard deviation of 6.7%; fewer than 8 cannot show a trend.";
        assert!(page.contains(words), "{page}");
    }

    /// Found by a user: a limit lets I/Os pass in bursts, so that the median of one of them is many times the rate.
    #[test]
    fn positions_under_a_limit_are_not_compared() {
        let (mut record, mut cell) = made(60, 3, |place, _, _| 10_000_000 * (1 + u64::from(place / 30)));
        let text = "31 I/Os per second are the limit of 31".into();
        cell.verdict = Some(Verdict { code: VerdictCode::Throttled, device_share: Some(1.0), text });
        record.cells = vec![cell];
        let page = crate::tests::text(&record, Style::default());
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            page.contains("limited by a control group") && page.contains("positions are not compared"),
            "{page}"
        );
        assert!(!page.contains("from start to end") && !page.contains("Use blocks of"), "{page}");
    }

    /// Rows of targets with long names keep their figures: the name stands above them.
    #[test]
    fn long_names_cost_no_figure() {
        let late = |place: u32, _: u32, _: u32| 10_000_000 + if place % 5 == 3 { 8_000_000 } else { 0 };
        let (mut record, mut cell) = made(60, 3, late);
        cell.verdict =
            Some(Verdict { code: VerdictCode::Unverified, device_share: None, text: "why".into() });
        let mut other = cell.clone();
        other.id.push_str("@1");
        other.workload.targets = vec![1];
        record.cells = vec![cell, other];
        let names = ["a".repeat(60), "b".repeat(60)];
        record.targets[0].name.clone_from(&names[0]);
        record.targets.push(Target { index: 1, name: names[1].clone(), ..record.targets[0].clone() });
        let page = crate::tests::text(&record, Style::default());
        let zones: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("ZONES")).collect();
        for name in &names {
            assert_eq!(
                zones.iter().filter(|line| line.trim() == name).count(),
                3,
                "zones, rates and bands: {page}"
            );
        }
        let rows: Vec<&&str> = zones.iter().filter(|line| line.ends_with("  unverified")).collect();
        assert_eq!(rows.len(), 2, "{page}");
        for row in rows {
            let rate = row.split_whitespace().nth(3).and_then(|figure| figure.parse::<f64>().ok());
            assert!(rate.is_some(), "{row}: {page}");
        }
        assert!(!zones.iter().any(|line| line.ends_with('…')), "{page}");
    }
}
