//! What decides between the positions of a target: the factor from the fastest zone to the slowest, the zones as bars, and the block
//! size to use. It judges nothing.

use crate::cells::target_name;
use crate::figures::{Unit, fio_size, rate};
use crate::page::{Bar, Page, Tone};
use rdsk_analysis::words::{nanos, times};
use rdsk_analysis::zones::{Cause, MIN_POSITIONS, Steps, TIGHT, Zone, Zones};
use rdsk_analysis::{Analysis, metrics};
use rdsk_model::{CellRecord, Op, VerdictCode};
use rdsk_units::{Bytes, percent};

/// Bars of one target at most.
const MAX_BARS: usize = 16;

/// One target in one direction: the cell that shows its zones best, with its sentence, its bars, and the rule that its block sizes give.
pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, cells: &[(&CellRecord, &Zones)]) {
    let Some((cell, zones)) = clearest(cells.iter().copied()) else { return };
    page.blank();
    if let Some(name) = target_name(analysis, cell) {
        page.sentence(Tone::Heading, "  ", name);
    }
    page.sentence(Tone::Heading, "  ", sentence(cell, zones));
    if zones.differ() && !is_limited(cell) {
        page.bars(bars(zones));
    }
    if let Some(rule) = rule(cells) {
        page.sentence(Tone::Plain, "  ", rule);
    }
}

/// The cell that shows its zones best: of those that no limit of a control group held back, if there are any.
pub(super) fn clearest<'a>(
    cells: impl Iterator<Item = (&'a CellRecord, &'a Zones)>,
) -> Option<(&'a CellRecord, &'a Zones)> {
    cells.min_by(|left, right| {
        is_limited(left.0).cmp(&is_limited(right.0)).then_with(|| left.1.by_clearness(right.1))
    })
}

/// Whether a limit of a control group set the rate: the time of a single I/O is then what a portion let pass, and positions say nothing.
pub(super) fn is_limited(cell: &CellRecord) -> bool {
    metrics::has_verdict(cell, VerdictCode::Throttled)
}

/// `1.80x from start to end: 57.0 → 31.7 MiB/s (random 20M reads, QD1, 8 zones)`.
pub(super) fn sentence(cell: &CellRecord, zones: &Zones) -> String {
    let asked = asked(cell);
    if is_limited(cell) {
        let mean = cell.result.bytes_per_s.map_or_else(String::new, |mean| format!(": {}", rate(mean.mean)));
        return format!("limited by a control group{mean}; positions are not compared ({asked})");
    }
    if zones.differ() {
        let (fast, slow) = (zones.fastest(), zones.slowest());
        let is_end = |zone: &Zone, end: Option<&Zone>| end.is_some_and(|end| end.first == zone.first);
        let where_to = match () {
            () if is_end(fast, zones.zones.first()) && is_end(slow, zones.zones.last()) => {
                "from start to end"
            }
            () if is_end(slow, zones.zones.first()) && is_end(fast, zones.zones.last()) => {
                "from end to start"
            }
            () => "between zones",
        };
        let unit = Unit::fit(&Unit::RATES, [fast.bytes_per_s, slow.bytes_per_s]);
        let rates =
            format!("{} → {} {}", unit.figure(fast.bytes_per_s), unit.figure(slow.bytes_per_s), unit.name);
        // A single sweep has each position once: what moves a few of them moves the boundary.
        let sweep = if zones.passes == 1 { ", a single sweep" } else { "" };
        return format!(
            "{} {where_to}: {rates} ({asked}, {} zones{sweep})",
            times(zones.factor()),
            zones.zones.len()
        );
    }
    let positions = rdsk_analysis::words::plural(zones.positions.len() as u64, "position");
    let rates = zones.outer_bytes_per_s.zip(zones.inner_bytes_per_s);
    let ends =
        rates.map(|(outer, inner)| format!("{} at the start, {} at the end", rate(outer), rate(inner)));
    if zones.passes == 0 || zones.positions.len() < 2 {
        let ends = ends.filter(|_| zones.positions.len() >= MIN_POSITIONS);
        let ends = ends.map_or_else(String::new, |ends| format!(": {ends}"));
        return format!("ran out of budget, {positions} measured{ends} ({asked})");
    }
    if zones.steps == Steps::None && !zones.is_level() {
        return without_zones(zones, &asked, &positions);
    }
    let ends = ends.map_or_else(String::new, |ends| format!(": {ends}"));
    let what = match zones.steps {
        Steps::Untold => "steps that may be changes over time",
        Steps::Shared => "steps that may be other I/O",
        Steps::Shown | Steps::OfOnePass => "no zones, steps below 5%",
        Steps::None => "same speed everywhere",
    };
    let spread = zones.scatter.map_or_else(String::new, |scatter| format!(", spread {}", percent(scatter)));
    format!("{what}{ends} ({asked}, {positions}{spread})")
}

/// `no clear zones: 9 in 10 positions give 1.87–2.26 GiB/s (random 1M reads, QD1, 40 positions, spread of a position 0%)`: where fast and slow
/// places alternate, the rates at both ends are an accident.
fn without_zones(zones: &Zones, asked: &str, positions: &str) -> String {
    let usual = zones.usual_bytes_per_s().map_or_else(String::new, |(low, high)| {
        let unit = Unit::fit(&Unit::RATES, [low, high]);
        let share = if zones.positions.len() < MIN_POSITIONS { "" } else { "9 in 10 " };
        format!(": {share}positions give {}–{} {}", unit.figure(low), unit.figure(high), unit.name)
    });
    let spread = zones
        .scatter
        .map_or_else(String::new, |scatter| format!(", spread of a position {}", percent(scatter)));
    format!("no clear zones{usual} ({asked}, {positions}{spread})")
}

/// `random 20M reads, QD1`; a read behind the one before it is faster than one elsewhere.
fn asked(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let (pattern, size) = (workload.pattern, fio_size(workload.block_bytes));
    format!("{pattern} {size} {}s, QD{}", workload.op, metrics::wanted_depth(workload))
}

fn bars(zones: &Zones) -> Vec<Bar> {
    let fastest = zones.fastest().bytes_per_s;
    let unit = Unit::fit(&Unit::RATES, zones.zones.iter().map(|zone| zone.bytes_per_s));
    let bar = |zone: &Zone| Bar {
        name: format!("{} – {}", Bytes(zone.begin_bytes).approx(), Bytes(zone.end_bytes).approx()),
        figure: unit.text(zone.bytes_per_s),
        share: zone.bytes_per_s / fastest,
    };
    let mut bars: Vec<Bar> = zones.zones.iter().take(MAX_BARS).map(bar).collect();
    if zones.zones.len() > MAX_BARS {
        bars.push(Bar {
            name: format!("and {} more", zones.zones.len() - MAX_BARS),
            figure: String::new(),
            share: 0.0,
        });
    }
    bars
}

/// `Use blocks of at least 5M: at 1M, 44% of the reads take 8.05 ms longer, one missed revolution.`; `None` where every block size does.
fn rule(cells: &[(&CellRecord, &Zones)]) -> Option<String> {
    let repeated = || cells.iter().filter(|(cell, zones)| zones.scatter.is_some() && !is_limited(cell));
    let smallest =
        repeated().filter(|(_, zones)| zones.is_tight()).map(|(_, zones)| zones.block_bytes).min()?;
    let smaller = repeated().filter(|(_, zones)| zones.block_bytes < smallest && !zones.is_tight());
    let (cell, zones) = smaller.max_by_key(|(_, zones)| zones.block_bytes)?;
    let why = match &zones.latency_bands {
        Some(bands) => {
            let late = bands.bands.iter().filter(|band| band.offset_ns > 0.0);
            let largest = late.max_by(|left, right| left.share.total_cmp(&right.share))?;
            let cause = if bands.cause == Cause::Unknown {
                String::new()
            } else {
                format!(", {}", bands.cause.word())
            };
            format!(
                "{} of the {}s take {} longer{cause}",
                percent(largest.share),
                op_of(cell),
                nanos(metrics::whole(largest.offset_ns))
            )
        }
        // What scatters with time does so at every block size.
        None if zones.scatters_in_time() => return None,
        None => format!(
            "the {}s spread by {}, more than {}",
            op_of(cell),
            percent(zones.scatter?),
            percent(TIGHT)
        ),
    };
    let (use_bytes, size) = (fio_size(smallest), fio_size(zones.block_bytes));
    Some(format!("Use blocks of at least {use_bytes}: at {size}, {why}."))
}

fn op_of(cell: &CellRecord) -> Op {
    cell.workload.op
}
