//! The scale page: what more streams, larger blocks and more targets give. Every rate is that of the time in which all
//! streams ran; the ramp before it is told apart.

use crate::cells;
use crate::chart::{self, Axes, Series};
use crate::figures::{MISSING, Unit, significant};
use crate::page::{Page, Tone};
use rdsk_model::{CellRecord, Experiment, Op, Record, StreamResult};
use rdsk_units::{Bytes, Nanos};

pub(crate) fn draw(page: &mut Page, record: &Record) {
    page.heading("SCALE: block size × streams, MiB/s while all streams run");
    for cells in cells::groups_by(record, Experiment::Scale, |cell| cell.workload.op) {
        draw_group(page, record, &cells);
    }
    draw_directions(page, record);
}

/// One direction.
fn draw_group(page: &mut Page, record: &Record, cells: &[&CellRecord]) {
    let Some(first) = cells.first() else { return };
    if let Some(names) = cells::target_name(record, first) {
        page.sentence(Tone::Heading, "  ", names);
    }
    let (sizes, streams) = (sizes(cells), streams(cells));
    let mut heads = vec![first.workload.op.to_string()];
    heads.extend(streams.iter().map(|count| match count {
        1 => "1 stream".to_owned(),
        count => format!("{count} streams"),
    }));
    heads.extend(["speed-up".to_owned(), "fairness".to_owned()]);
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = sizes.iter().map(|&size| row(cells, size, &streams)).collect();
    page.table(&heads, &rows);
    cells::draw_whys(page, record, cells, label);
    draw_targets(page, cells);
    draw_starts(page, cells);
    draw_chart(page, cells, &sizes, &streams);
}

fn sizes(cells: &[&CellRecord]) -> Vec<u64> {
    let mut sizes: Vec<u64> = cells.iter().map(|cell| cell.workload.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn streams(cells: &[&CellRecord]) -> Vec<u32> {
    let mut counts: Vec<u32> = cells.iter().map(|cell| cell.workload.streams).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// `64 KiB, 3 streams`.
fn label(cell: &CellRecord) -> String {
    let streams = cell.workload.streams;
    format!("{}, {streams} stream{}", Bytes(cell.workload.block_bytes), if streams == 1 { "" } else { "s" })
}

fn find<'a>(cells: &[&'a CellRecord], size: u64, streams: u32) -> Option<&'a CellRecord> {
    let fits = |cell: &&&CellRecord| (cell.workload.block_bytes, cell.workload.streams) == (size, streams);
    cells.iter().find(fits).copied()
}

fn rate(cell: &CellRecord) -> Option<f64> {
    cell.result.bytes_per_s.map(|rate| rate.mean)
}

fn row(cells: &[&CellRecord], size: u64, counts: &[u32]) -> Vec<String> {
    let rates: Vec<Option<f64>> =
        counts.iter().map(|&count| find(cells, size, count).and_then(rate)).collect();
    let mut row = vec![Bytes(size).to_string()];
    row.extend(rates.iter().map(|&rate| Unit::MIB_PER_S.figure_or_missing(rate)));
    let one = counts.iter().position(|&count| count == 1).and_then(|index| rates[index]);
    let most = rates.last().copied().flatten().filter(|_| counts.len() > 1);
    let speed_up = one.zip(most).filter(|&(one, _)| one > 0.0).map(|(one, most)| most / one);
    row.push(speed_up.map_or_else(|| MISSING.into(), |factor| format!("{} ×", significant(factor))));
    let fairness = counts.last().and_then(|&count| fairness(find(cells, size, count)?));
    row.push(fairness.map_or_else(|| MISSING.into(), significant));
    row
}

/// Jain's index over the rates of the streams, each over its own time; `None` for one stream.
fn fairness(cell: &CellRecord) -> Option<f64> {
    let rates: Vec<f64> = last_streams(cell).iter().filter_map(stream_rate).collect();
    (rates.len() > 1).then(|| rdsk_stats::jain(&rates))
}

/// The streams of the cell's last visit.
fn last_streams(cell: &CellRecord) -> &[StreamResult] {
    cell.result.visits.last().map_or(&[], |visit| &visit.streams)
}

fn stream_rate(stream: &StreamResult) -> Option<f64> {
    let elapsed_ns = stream.end_ns.checked_sub(stream.start_ns).filter(|&elapsed_ns| elapsed_ns > 0)?;
    Some(stream.bytes as f64 * 1e9 / elapsed_ns as f64)
}

/// What each target gave, in the cell with the most streams of each block size, where there are several targets.
fn draw_targets(page: &mut Page, cells: &[&CellRecord]) {
    let Some(most) = streams(cells).last().copied() else { return };
    let chosen: Vec<&&CellRecord> =
        cells.iter().filter(|cell| cell.workload.streams == most && !last_streams(cell).is_empty()).collect();
    let Some(targets) = chosen.first().map(|cell| &cell.workload.targets).filter(|targets| targets.len() > 1)
    else {
        return;
    };
    let head = format!("{most} streams by target");
    let names: Vec<String> = targets.iter().map(|index| format!("target {index}")).collect();
    let mut heads = vec![head.as_str()];
    heads.extend(names.iter().map(String::as_str));
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|cell| {
            let mut row = vec![Bytes(cell.workload.block_bytes).to_string()];
            row.extend(targets.iter().map(|&index| {
                let mine = last_streams(cell).iter().filter(|stream| stream.target == index);
                Unit::MIB_PER_S.figure(mine.filter_map(stream_rate).sum())
            }));
            row
        })
        .collect();
    page.blank();
    page.table(&heads, &rows);
}

/// How the streams started: as asked for, and really.
fn draw_starts(page: &mut Page, cells: &[&CellRecord]) {
    let mut latest: Option<(u64, u64)> = None;
    for cell in cells {
        let asked_ns = cell.workload.stagger_ns;
        for stream in cell.result.visits.iter().flat_map(|visit| &visit.streams) {
            let late_ns = stream.start_ns.abs_diff(asked_ns * u64::from(stream.index));
            latest = latest.filter(|&(late, _)| late >= late_ns).or(Some((late_ns, asked_ns)));
        }
    }
    let Some((late_ns, asked_ns)) = latest else { return };
    let asked = match asked_ns {
        0 => "together".to_owned(),
        asked_ns => format!("{} apart", Nanos(asked_ns)),
    };
    let text = format!("{asked}; none began more than {} from its time.", Nanos(late_ns));
    page.sentence(Tone::Plain, "  Streams start ", text);
    let ramps = cells.iter().flat_map(|cell| &cell.result.visits).filter_map(|visit| visit.overlap);
    if let Some(ramp_ns) = ramps.map(|overlap| overlap.start_ns).max().filter(|_| asked_ns > 0) {
        let text = format!("up to {}, left out of the rates.", Nanos(ramp_ns));
        page.sentence(Tone::Plain, "  Ramp until the last one began: ", text);
    }
}

fn draw_chart(page: &mut Page, cells: &[&CellRecord], sizes: &[u64], counts: &[u32]) {
    if sizes.len() < 2 {
        return;
    }
    let series: Vec<Series> = counts
        .iter()
        .map(|&count| Series {
            label: if count == 1 { "1 stream".into() } else { format!("{count} streams") },
            points: sizes
                .iter()
                .filter_map(|&size| {
                    Some(((size as f64).log2(), find(cells, size, count).and_then(rate)? / 1_048_576.0))
                })
                .collect(),
        })
        .collect();
    page.blank();
    let [first, .., last] = sizes else { return };
    let below = [Bytes(*first).to_string(), "block size".into(), Bytes(*last).to_string()];
    chart::draw(page, &series, &Axes { unit: "MiB/s", below });
    page.blank();
}

/// Writes against reads, where both were measured in the same cells.
fn draw_directions(page: &mut Page, record: &Record) {
    let of = |op: Op| -> Vec<&CellRecord> {
        cells::of(record, Experiment::Scale).filter(|cell| cell.workload.op == op).collect()
    };
    let (reads, writes) = (of(Op::Read), of(Op::Write));
    for count in streams(&reads) {
        let shares: Vec<f64> = sizes(&reads)
            .iter()
            .filter_map(|&size| {
                let read = find(&reads, size, count).and_then(rate).filter(|&rate| rate > 0.0)?;
                Some((find(&writes, size, count).and_then(rate)? / read - 1.0) * 100.0)
            })
            .collect();
        let (Some(low), Some(high)) =
            (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max))
        else {
            continue;
        };
        let plural = if count == 1 { "" } else { "s" };
        page.sentence(
            Tone::Plain,
            "  ",
            format!("With {count} stream{plural}, writes are {low:+.0} % to {high:+.0} % against reads of the same size."),
        );
    }
}
