//! Speed by position: a cloud with a dot for each I/O, the zones and bands that were found in it, the level of each pass, and the
//! medians of all block sizes, targets and Records over each other.

use super::Subject;
use super::parts::{evidence, joined, names_of, on_target, owner, ran, slug, targets_slug};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::zones::{LatencyBand, MIN_SHARE, Position, Steps, Zone, Zones};
use rdsk_model::{CellRecord, Experiment, Op, PointRun};
use rdsk_report::{Unit, significant, verdict_word};
use rdsk_stats::median;
use rdsk_units::{Bytes, Nanos, percent};

/// Values of a line over the positions.
const MAX_ON_LINE: usize = 300;
/// Rows of a table of positions.
const MAX_ROWS: usize = 100;

pub(super) fn figures(subject: &Subject<'_, '_>) -> Vec<Figure> {
    let analysis = subject.analysis;
    let mut figures = overlay(&[*subject]);
    for cell in ran(analysis, Experiment::Zones) {
        let Some(zones) = analysis.zones(cell) else { continue };
        figures.push(cloud(analysis, cell, zones));
    }
    figures.extend(passes(subject));
    figures
}

/// The medians of each position: one figure per direction, a line per block size, target and Record.
pub(super) fn overlay(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let cells = subjects.iter().flat_map(|subject| {
        let seen = move |cell| Some((subject, cell, subject.analysis.zones(cell)?));
        ran(subject.analysis, Experiment::Zones).filter_map(seen)
    });
    let by_op = by_key(cells.map(|one| (one.1.workload.op, one)));
    by_op.into_iter().map(|(op, cells)| medians(subjects, op, &cells)).collect()
}

fn medians(
    subjects: &[Subject<'_, '_>],
    op: Op,
    cells: &[(&Subject<'_, '_>, &CellRecord, &Zones)],
) -> Figure {
    let ends = cells.iter().filter_map(|(_, _, zones)| zones.positions.last());
    let along = unit_along(ends.map(|last| last.offset_bytes));
    let unit = Unit::fit(&Unit::RATES, cells.iter().map(|(_, _, zones)| zones.median_bytes_per_s));
    let name = |subject: &Subject<'_, '_>, cell: &CellRecord| {
        joined(&owner(subjects, subject, cell), &Bytes(cell.workload.block_bytes).to_string())
    };
    let line = |(subject, cell, zones): &(&Subject<'_, '_>, &CellRecord, &Zones)| {
        Series::new(name(subject, cell), Shape::Line, course(zones, along, unit))
    };
    let row = |(subject, cell, zones): &(&Subject<'_, '_>, &CellRecord, &Zones)| {
        let ratio = zones.outer_bytes_per_s.zip(zones.inner_bytes_per_s).map(|(outer, inner)| outer / inner);
        vec![
            name(subject, cell),
            zones.passes.to_string(),
            unit.figure_or_missing(zones.outer_bytes_per_s),
            unit.figure_or_missing(zones.inner_bytes_per_s),
            rdsk_report::or_missing(ratio.map(significant)),
            rdsk_report::or_missing(zones.scatter.map(percent)),
            rdsk_report::or_missing(zones.busy_share.map(percent)),
            verdict_word(cell),
        ]
    };
    let rate = format!("outer, {}", unit.name);
    let inner = format!("inner, {}", unit.name);
    let heads = ["", "whole passes", &rate, &inner, "ratio", "scatter", "device busy", "verdict"];
    let plot = Plot::new(
        Axis::from_zero("position", along.name),
        Axis::from_zero("median rate", unit.name),
        cells.iter().map(line),
    );
    Figure {
        id: format!("zones-{op}-medians"),
        title: format!("Rate over position, {op}: the median of each position"),
        shows: "One line for each block size: the rate at the median latency of each position; where there are more than 300, the \
                median of neighbours. Outer is the tenth of the positions with the lowest offsets, inner the tenth with the \
                highest."
            .into(),
        drawing: Drawing::of(plot, "No position was visited."),
        table: Table::new(heads, cells.iter().map(row)),
        evidence: evidence(cells.iter().map(|(subject, cell, _)| (name(subject, cell), *cell))),
    }
}

/// The rate over the positions; of very many, the median of as many neighbours as make the line readable.
fn course(zones: &Zones, along: Unit, unit: Unit) -> Vec<Point> {
    let each = zones.positions.len().div_ceil(MAX_ON_LINE).max(1);
    let point = |part: &[Position]| {
        let rates: Vec<f64> = part.iter().map(|position| position.bytes_per_s(zones.block_bytes)).collect();
        let middle = part.get(part.len() / 2)?;
        Some(Point::at(along.of(middle.offset_bytes as f64), unit.of(median(&rates)?)))
    };
    zones.positions.chunks(each).filter_map(point).collect()
}

/// The unit of positions, by the largest: a small first one must not make it bytes.
fn unit_along(offsets: impl Iterator<Item = u64>) -> Unit {
    Unit::fit(&Unit::SIZES, offsets.max().map(|offset| offset as f64))
}

fn cloud(analysis: &Analysis<'_>, cell: &CellRecord, zones: &Zones) -> Figure {
    let along = unit_along(zones.positions.last().map(|last| last.offset_bytes).into_iter());
    let unit = Unit::fit(&Unit::RATES, [zones.median_bytes_per_s]);
    let (op, block) = (cell.workload.op, Bytes(zones.block_bytes));
    let mut series: Vec<Series> =
        (1..).zip(&cell.result.points).map(|(pass, run)| dots(cell, pass, run, along, unit)).collect();
    series.extend(levels(zones, along, unit));
    let dots: usize = cell.result.points.iter().map(|run| run.latency_ns.len()).sum();
    let plot = Plot::new(Axis::from_zero("position", along.name), Axis::from_zero("rate", unit.name), series);
    Figure {
        id: format!("zones-{op}-{}{}", slug(&block.to_string()), targets_slug(analysis, cell)),
        title: format!("Rate over position, {op}s of {block}{}", on_target(analysis, cell)),
        shows: format!(
            "A dot for each of {} I/Os in {} at {}. {}{}",
            rdsk_units::grouped(dots as u64),
            rdsk_analysis::words::plural(cell.result.points.len() as u64, "pass").replace("passs", "passes"),
            rdsk_analysis::words::plural(zones.positions.len() as u64, "position"),
            zones_in_words(zones),
            bands_in_words(zones),
        ),
        drawing: Drawing::of(plot, "No position was visited."),
        table: positions(zones, along, unit),
        evidence: evidence_of_cell(analysis, cell),
    }
}

fn evidence_of_cell(analysis: &Analysis<'_>, cell: &CellRecord) -> Vec<String> {
    evidence([(format!("{} on {}", cell.name(), names_of(analysis, &cell.workload.targets)), cell)])
}

/// One pass: the rate of each of its I/Os at its place.
fn dots(cell: &CellRecord, pass: usize, run: &PointRun, along: Unit, unit: Unit) -> Series {
    let places = cell.workload.points.as_ref();
    let dot = |(&place, &latency_ns): (&u32, &u64)| {
        let (offset, bytes) = places?.get(place as usize, cell.workload.block_bytes)?;
        let rate = bytes as f64 * 1e9 / latency_ns.max(1) as f64;
        Some(Point::at(along.of(offset as f64), unit.of(rate)))
    };
    let points = run.order.iter().zip(&run.latency_ns).filter_map(dot).collect();
    Series { legend: "one I/O".into(), ..Series::new(format!("pass {pass}"), Shape::Cloud, points) }
}

/// The rate of each zone, where the passes show zones. A band has no line: its distance is from the
/// main mode, which is not the median.
fn levels(zones: &Zones, along: Unit, unit: Unit) -> Option<Series> {
    let has_zones = zones.steps == Steps::Shown || zones.steps == Steps::OfOnePass;
    let piece = |zone: &Zone| {
        let at = |bytes: u64| Point::at(along.of(bytes as f64), unit.of(zone.bytes_per_s));
        [at(zone.begin_bytes), at(zone.end_bytes)]
    };
    let points = zones.zones.iter().flat_map(piece).collect();
    has_zones.then(|| Series::new("median of each zone", Shape::Level, points))
}

/// `7.4 ms later`: a band beside the main line.
fn distance(band: &LatencyBand) -> String {
    let distance = Nanos(rdsk_analysis::metrics::whole(band.offset_ns.abs().round()));
    format!("{distance} {}", if band.offset_ns < 0.0 { "earlier" } else { "later" })
}

fn zones_in_words(zones: &Zones) -> String {
    match zones.steps {
        Steps::Shown => format!("The passes agree on {} zones. ", zones.zones.len()),
        Steps::OfOnePass => {
            format!(
                "The one pass shows {} levels; a change with time would look the same. ",
                zones.zones.len()
            )
        }
        Steps::None => "The passes show no steps between zones. ".into(),
        Steps::Shared => {
            "The medians have steps, which are not told from the work of other programs meanwhile. ".into()
        }
        Steps::Untold => {
            "The medians have steps, which these passes cannot tell from a change with time. ".into()
        }
    }
}

fn bands_in_words(zones: &Zones) -> String {
    let Some(found) = &zones.latency_bands else {
        return format!("No band beside the main line holds {} of the I/Os or more.", percent(MIN_SHARE));
    };
    let band = |band: &LatencyBand| format!("{} of the I/Os end {}", percent(band.share), distance(band));
    let bands: Vec<String> = found.bands.iter().map(band).collect();
    format!("Beside the main line {}: {}.", rdsk_analysis::words::list(&bands), found.cause.word())
}

/// Median and worst rate of each position, or of some evenly chosen ones.
fn positions(zones: &Zones, along: Unit, unit: Unit) -> Table {
    let every = zones.positions.len().div_ceil(MAX_ROWS).max(1);
    let row = |position: &Position| {
        let worst = zones.block_bytes as f64 * 1e9 / position.max_ns.max(1) as f64;
        vec![
            along.figure(position.offset_bytes as f64),
            unit.figure(position.bytes_per_s(zones.block_bytes)),
            unit.figure(worst),
        ]
    };
    let heads = [
        format!("position, {}", along.name),
        format!("median, {}", unit.name),
        format!("slowest, {}", unit.name),
    ];
    let left_out = if every == 1 {
        String::new()
    } else {
        format!("One of every {every} positions is listed; the JSON of the Record has all of them.")
    };
    let rows = zones.positions.iter().step_by(every).map(row).collect();
    Table { heads: heads.to_vec(), rows, left_out, ..Table::default() }
}

/// The median rate of each pass: one figure per direction, a line for each block size and target with more than one pass.
fn passes(subject: &Subject<'_, '_>) -> Vec<Figure> {
    let seen = |cell| Some((cell, pass_rates(cell)?));
    let cells = ran(subject.analysis, Experiment::Zones).filter_map(seen);
    let by_op = by_key(cells.map(|one| (one.0.workload.op, one)));
    by_op.into_iter().map(|(op, cells)| passes_of(subject, op, &cells)).collect()
}

/// Bytes per second at the median latency of each pass; `None` with fewer than two.
fn pass_rates(cell: &CellRecord) -> Option<Vec<f64>> {
    let block = cell.workload.block_bytes as f64;
    let rate = |run: &PointRun| {
        let rates: Vec<f64> = run.latency_ns.iter().map(|&ns| block * 1e9 / ns.max(1) as f64).collect();
        median(&rates)
    };
    let rates: Vec<f64> = cell.result.points.iter().filter_map(rate).collect();
    (rates.len() > 1).then_some(rates)
}

fn passes_of(subject: &Subject<'_, '_>, op: Op, cells: &[(&CellRecord, Vec<f64>)]) -> Figure {
    let unit = Unit::fit(&Unit::RATES, cells.iter().flat_map(|(_, rates)| rates.iter().copied()));
    let name = |cell: &CellRecord| {
        joined(&owner(&[*subject], subject, cell), &Bytes(cell.workload.block_bytes).to_string())
    };
    let line = |(cell, rates): &(&CellRecord, Vec<f64>)| {
        let points = (1_u32..).zip(rates).map(|(pass, &rate)| Point::at(f64::from(pass), unit.of(rate)));
        Series::new(name(cell), Shape::Line, points.collect())
    };
    let most = cells.iter().map(|(_, rates)| rates.len()).max().unwrap_or(0);
    let ticks =
        (1_u32..).take(most).map(|pass| crate::figure::Tick { at: f64::from(pass), label: pass.to_string() });
    let heads = cells.iter().map(|(cell, _)| format!("{}, {}", name(cell), unit.name));
    let row = |pass: usize| {
        let rates = cells.iter().map(|(_, rates)| unit.figure_or_missing(rates.get(pass).copied()));
        std::iter::once((pass + 1).to_string()).chain(rates).collect()
    };
    Figure {
        id: format!("zones-{op}-passes"),
        title: format!("Rate of each pass, {op}"),
        shows: "The median rate over all positions, pass by pass, one line for each block size: a line that rises or falls is a \
                change with time, not with position."
            .into(),
        drawing: Drawing::Plot(Plot::new(
Axis::from_zero("pass", "").with_ticks(ticks.collect()),
Axis::from_zero("median rate", unit.name),
cells.iter().map(line),
)),
        table: Table::new(std::iter::once("pass".to_owned()).chain(heads), (0..most).map(row)),
        evidence: cells.iter().flat_map(|(cell, _)| evidence_of_cell(subject.analysis, cell)).collect(),
    }
}
