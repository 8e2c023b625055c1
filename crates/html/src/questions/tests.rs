//! Figures against the Records that they are derived from.

use super::*;
use crate::figure::{Drawing, Plot, Series, Shape};
use rdsk_analysis::fixtures;
use rdsk_model::{CellRecord, Op, Record};

const MIB: f64 = 1_048_576.0;

fn of_record(analysis: &Analysis<'_>) -> Vec<Section> {
    sections(&[Subject { name: "", analysis }])
}

fn plots(analysis: &Analysis<'_>) -> Vec<(Figure, Plot)> {
    let drawn = |figure: Figure| match figure.drawing.clone() {
        Drawing::Plot(plot) => Some((figure, plot)),
        Drawing::Nothing { .. } => None,
    };
    of_record(analysis).into_iter().flat_map(|section| section.figures).filter_map(drawn).collect()
}

fn plot_of(record: &Record, id: &str) -> Plot {
    let found = plots(&Analysis::of(record)).into_iter().find(|(figure, _)| figure.id == id);
    found.unwrap_or_else(|| panic!("{id} is drawn")).1
}

fn named<'a>(plot: &'a Plot, name: &str) -> &'a Series {
    let names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
    plot.series
        .iter()
        .find(|series| series.name == name)
        .unwrap_or_else(|| panic!("{name} is among {names:?}"))
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

#[test]
fn every_question_has_figures_with_whole_tables_and_ids_of_their_own() {
    let record = whole_run();
    let analysis = Analysis::of(&record);
    let sections = of_record(&analysis);
    let asked: Vec<Experiment> = sections.iter().map(|section| section.experiment).collect();
    assert_eq!(asked, Experiment::ALL);
    let mut ids: Vec<&str> = Vec::new();
    for figure in sections.iter().flat_map(|section| &section.figures) {
        assert!(!ids.contains(&figure.id.as_str()), "{}", figure.id);
        assert!(
            figure.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            figure.id
        );
        ids.push(&figure.id);
        assert!(
            figure.shows.ends_with('.') && !figure.title.ends_with('.'),
            "{}: {}",
            figure.id,
            figure.shows
        );
        for row in &figure.table.rows {
            assert_eq!(row.len(), figure.table.heads.len(), "{}: {row:?}", figure.id);
        }
    }
    for (figure, plot) in plots(&analysis) {
        for series in &plot.series {
            assert!(!series.points.is_empty(), "{}: {}", figure.id, series.name);
            assert!(
                series.points.iter().all(|point| point.x.is_finite() && point.y.is_finite()),
                "{}",
                figure.id
            );
        }
        let mut names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plot.series.len(), "{}: names differ", figure.id);
    }
}

#[test]
fn an_empty_record_has_no_figures() {
    let record = Record { cells: Vec::new(), ..fixtures::run() };
    assert_eq!(of_record(&Analysis::of(&record)), []);
}

#[test]
fn bars_of_the_headline_are_the_means_of_its_cells_and_reads_lie_beside_writes() {
    let record = fixtures::run();
    let plot = plot_of(&record, "headline-rates");
    let place = |label: &str| plot.y.ticks.iter().find(|tick| tick.label == label).unwrap().at;
    let label = |id: &str| rdsk_report::workload_label(record.cell(id).unwrap());
    let ids = ["headline/read/sequential", "headline/write/sequential"];
    assert_eq!(label(ids[0]), label(ids[1]));
    let row = place(&label(ids[0]));
    let rates = ids.map(|id| record.cell(id).unwrap().result.bytes_per_s.unwrap());
    let highest = rates[0].mean.max(rates[1].mean);
    for ((name, rate), id) in ["read", "write"].into_iter().zip(rates).zip(ids) {
        let series = named(&plot, name);
        let index = series.points.iter().position(|point| point.y == row).unwrap();
        let point = series.points[index];
        assert!(same(point.x, 100.0 * rate.mean / highest), "{id}: {point:?}");
        let ends = rate.low.zip(rate.high).unwrap();
        let (low, high) = point.interval.unwrap();
        assert!(same(low, 100.0 * ends.0 / highest) && same(high, 100.0 * ends.1 / highest), "{point:?}");
        let words = rdsk_report::RateTexts::of(&Analysis::of(&record), record.cell(id).unwrap());
        let words = format!("{} {} {}", words.rate, words.margin, words.marks);
        assert_eq!(series.labels[index], words.trim_end());
    }
    let shapes: Vec<Shape> = plot.series.iter().map(|series| series.shape).collect();
    assert_eq!(shapes, [0, 1].map(|slot| Shape::Bar { slot, slots: 2 }));
    let random = place(&label("headline/read/random/qd1"));
    let read = named(&plot, "read").points.iter().find(|point| point.y == random).unwrap();
    assert!(read.x <= 100.0, "{read:?}");
}

#[test]
fn a_bar_that_is_not_the_devices_has_its_mark_and_what_that_means() {
    let mut record = fixtures::run();
    let cell = record.cells.iter_mut().find(|cell| cell.id == "headline/write/sequential").unwrap();
    cell.verdict.as_mut().unwrap().code = rdsk_model::VerdictCode::PageCache;
    let sections = of_record(&Analysis::of(&record));
    let Figure { shows, drawing: Drawing::Plot(plot), .. } = &sections[0].figures[0] else {
        panic!("rates are drawn")
    };
    assert!(shows.ends_with(" r = RAM (page cache)."), "{shows}");
    let marked: Vec<&String> =
        named(plot, "write").labels.iter().filter(|words| words.ends_with(" r")).collect();
    assert_eq!(marked.len(), 1, "{plot:?}");
    let rows = &sections[0].figures[0].table.rows;
    assert!(rows.iter().any(|row| row.last().is_some_and(|remark| remark == "RAM (page cache)")), "{rows:?}");
}

#[test]
fn more_in_flight_is_a_line_of_iops_and_one_of_latency() {
    let record = fixtures::run();
    let plot = plot_of(&record, "headline-depth-random-4096");
    let cells = ["headline/read/random/qd1", "headline/read/random/qd32"].map(|id| record.cell(id).unwrap());
    let (rates, times) = (named(&plot, "read rate"), named(&plot, "read latency"));
    assert!(!rates.is_right && times.is_right && plot.right.is_some());
    for ((cell, rate), time) in cells.iter().zip(&rates.points).zip(&times.points) {
        let depth = f64::from(cell.workload.queue_depth * cell.workload.streams);
        assert_eq!((rate.x, time.x), (depth, depth));
        assert!(same(rate.y, cell.result.ops_per_s.unwrap().mean), "{rate:?}");
        let p50 = cell.result.latency_ns.as_ref().unwrap().p50.unwrap();
        assert!(same(time.y, p50 as f64 / 1e3) || same(time.y, p50 as f64 / 1e6), "{time:?}");
    }
}

/// Each result measured one depth: the line goes through all of them, and the colour is the direction.
#[test]
fn results_of_one_depth_each_are_joined() {
    let at_depth = |depth: u32| {
        let mut record = fixtures::run();
        record.cells.retain(|cell| cell.id == "headline/read/random/qd32");
        let mut cell = record.cells.remove(0);
        (cell.id, cell.experiment, cell.workload.queue_depth) =
            ("fio/job/read".into(), Experiment::Fio, depth);
        record.cells = vec![cell];
        record
    };
    let records = [1, 8, 64].map(at_depth);
    let analyses = records.each_ref().map(Analysis::of);
    let names = ["a", "b", "c"];
    let subjects: Vec<Subject<'_, '_>> =
        names.iter().zip(&analyses).map(|(name, analysis)| Subject { name, analysis }).collect();
    let figures = sections(&subjects).into_iter().flat_map(|section| section.figures);
    let figure = figures.into_iter().find(|figure| figure.id.starts_with("fio-depth-")).unwrap();
    let Drawing::Plot(plot) = &figure.drawing else { panic!("{figure:?}") };
    let depths: Vec<f64> = named(plot, "read rate").points.iter().map(|point| point.x).collect();
    let streams = f64::from(records[0].cells[0].workload.streams);
    assert_eq!(depths, [1.0, 8.0, 64.0].map(|depth| depth * streams));
    assert_eq!(figure.table.rows.len(), 3);
}

/// 44 % of the reads wait one revolution more: a median of few of them would be now with, now without it.
#[test]
fn a_line_over_positions_does_not_hop_between_bands() {
    let late = |place: u32, pass: u32, number: u32| {
        let draw = (u64::from(place) * 7919 + u64::from(pass) * 104_729 + u64::from(number) * 13) % 100;
        10_000_000 + u64::from(place % 7) * 1000 + if draw < 44 { 8_333_333 } else { 0 }
    };
    let (record, cell) = fixtures::zones::made(600, 6, late);
    let analysis = Analysis::of(&record);
    let bands = analysis.zones(record.cell(&cell.id).unwrap()).unwrap().latency_bands.clone();
    assert_eq!(bands.map(|found| found.bands.len()), Some(1), "the fixture has a band");
    let plot = plot_of(&record, "zones-rate");
    let line = plot.series.iter().find(|series| series.shape == Shape::Line).unwrap();
    assert!(line.points.len() > 40, "{} points", line.points.len());
    for point in &line.points {
        // 1 MiB in 10 ms, or in 18.3: 100 or 54.5 MiB/s, and 73 MiB/s over the time of both.
        assert!((point.y - 73.2).abs() < 12.0, "{point:?}");
    }
    let dots = plot.series.iter().find(|series| series.shape == Shape::Cloud).unwrap();
    assert!(dots.is_right && plot.right.is_some());
    assert!(dots.points.iter().any(|dot| (dot.y - 18.33).abs() < 0.1), "the late ones are seen");
}

#[test]
fn a_cloud_has_a_dot_for_each_io_at_its_place_and_rate() {
    let slow = |place: u32, pass: u32, _: u32| 10_000_000 + u64::from(place) * 1000 + u64::from(pass);
    let (record, cell) = fixtures::zones::made(60, 3, slow);
    let plot = plot_of(&record, "zones-read-1-mib");
    let places = cell.workload.points.as_ref().unwrap();
    for (pass, run) in (1..).zip(&cell.result.points) {
        let dots = named(&plot, &format!("sweep {pass}"));
        assert_eq!(dots.points.len(), run.order.len());
        for ((dot, &place), &latency_ns) in dots.points.iter().zip(&run.order).zip(&run.latency_ns) {
            let offset_gib = places.offset_bytes[place as usize] as f64 / (1 << 30) as f64;
            assert!(same(dot.x, offset_gib), "{dot:?}");
            assert!(same(dot.y, 1e9 / latency_ns as f64), "1 MiB in that time: {dot:?}");
        }
    }
    assert_eq!(plot.legend()[0], "one I/O", "all passes have one colour");
}

#[test]
fn scaling_has_a_line_for_each_number_of_streams() {
    let record = fixtures::run();
    let analysis = Analysis::of(&record);
    for op in [Op::Read, Op::Write] {
        let plot = plot_of(&record, &format!("scale-{op}"));
        let grid = analysis.scale().iter().find(|grid| grid.op == op).unwrap();
        assert_eq!(plot.series.len(), grid.counts().len());
        for point in grid.lines.iter().flat_map(|line| &line.points) {
            let name = rdsk_analysis::words::plural(u64::from(point.count()), "stream");
            let block = point.cell.workload.block_bytes as f64;
            let drawn = named(&plot, &name).points.iter().find(|drawn| drawn.x == block).unwrap();
            assert!(same(drawn.y, point.bytes_per_s().unwrap() / MIB));
        }
    }
}

#[test]
fn paths_without_a_whole_pass_are_named_and_have_their_rates() {
    let figure = |record: &Record, id: &str| {
        let sections = of_record(&Analysis::of(record)).into_iter();
        sections.flat_map(|section| section.figures).find(|figure| figure.id == id)
    };
    let whole = fixtures::run();
    assert_eq!(figure(&whole, "paths-rate"), None);
    assert!(!figure(&whole, "paths-time").unwrap().shows.contains("No whole sweep"));
    let mut cut = fixtures::run();
    let cell = cut.cells.iter_mut().find(|cell| cell.id == "paths/write/buffered").unwrap();
    // More bytes to a pass than the cell moved.
    cell.result.pass_bytes = cell.result.bytes.map(|bytes| 2 * bytes);
    let shows = figure(&cut, "paths-time").unwrap().shows;
    assert!(
        shows.ends_with(
            "No whole sweep, and so no bar: write buffered; their rates are in the figure of rates."
        ),
        "{shows}"
    );
    let plot = plot_of(&cut, "paths-rate");
    let row = plot.y.ticks.iter().position(|tick| tick.label == "buffered").unwrap();
    let cell = cut.cell("paths/write/buffered").unwrap();
    let on_disk = rdsk_analysis::metrics::stable_rate(cell).unwrap();
    assert!(on_disk < cell.result.bytes_per_s.unwrap().mean, "it returned earlier");
    let writes = named(&plot, "write");
    let point = writes.points.iter().find(|point| same(point.y, row as f64)).unwrap();
    assert!(same(point.x, on_disk / MIB / 1024.0) && point.interval.is_none(), "{point:?}");
    let index = writes.points.iter().position(|other| other == point).unwrap();
    assert!(writes.labels[index].ends_with("iB/s"), "no mark of the page cache: {:?}", writes.labels);
}

#[test]
fn reads_that_writes_caused_are_in_order_and_only_of_paths_that_read() {
    let record = fixtures::run();
    let analysis = Analysis::of(&record);
    let figures = of_record(&analysis).into_iter().flat_map(|section| section.figures);
    let (mut drawn, mut places) = (0, Vec::new());
    for figure in figures.filter(|figure| figure.id.starts_with("align-reads")) {
        let Drawing::Plot(plot) = &figure.drawing else { panic!("{figure:?}") };
        for series in &plot.series {
            assert!(series.points.iter().any(|point| point.x > 0.0), "{} read nothing", series.name);
        }
        places = plot.y.ticks.iter().map(|tick| tick.label.clone()).collect();
        drawn += 1;
    }
    assert_eq!(drawn, 1);
    let aligned = places.iter().take_while(|place| place.ends_with(" aligned")).count();
    assert!(aligned > 0 && places[aligned..].iter().all(|place| place.contains(" at +")), "{places:?}");
    assert!(places.iter().all(|place| place.contains(" B") || place.contains("iB")), "{places:?}");
}

#[test]
fn the_parts_of_a_pass_lie_end_to_end() {
    let record = fixtures::run();
    let plot = plot_of(&record, "paths-time");
    let parts =
        ["until the last call returned", "close", "flush until on disk"].map(|name| named(&plot, name));
    for last in &parts[2].points {
        let at = |series: &Series| series.points.iter().find(|point| point.y == last.y).copied();
        let returned = at(parts[0]).unwrap();
        assert_eq!(returned.from, 0.0);
        let closed = at(parts[1]).unwrap();
        assert!(
            same(closed.from, returned.x) && same(last.from, closed.x),
            "{returned:?} {closed:?} {last:?}"
        );
    }
    let buffered = record.cell("paths/write/buffered").unwrap();
    let stable_ns = rdsk_analysis::passes::per_pass(buffered, buffered.result.to_stable_ns.unwrap()).unwrap();
    assert!(parts[2].points.iter().any(|point| same(point.x, stable_ns / 1e6)), "{:?}", parts[2].points);
}

#[test]
fn what_was_not_sampled_says_why_it_is_not_drawn() {
    let mut record = fixtures::run();
    let strip = |cell: &mut CellRecord| {
        cell.result.windows = None;
        cell.evidence.device.iter_mut().for_each(|device| device.in_flight_series.clear());
    };
    record.cells.iter_mut().filter(|cell| cell.experiment == Experiment::Stream).for_each(strip);
    let analysis = Analysis::of(&record);
    let figures: Vec<Figure> = of_record(&analysis).into_iter().flat_map(|section| section.figures).collect();
    for name in ["stream-depth-", "stream-rate-"] {
        let figure = figures.iter().find(|figure| figure.id.starts_with(name)).unwrap();
        assert!(matches!(&figure.drawing, Drawing::Nothing { why } if why.ends_with('.')), "{figure:?}");
        assert!(!figure.table.rows.is_empty(), "the table stays");
    }
}

/// A run with cells of every experiment.
fn whole_run() -> Record {
    let mut record = fixtures::run();
    record.copies = vec![fixtures::copies::to_file(&[100_000_000, 120_000_000])];
    let mut job = record.cells[0].clone();
    (job.id, job.experiment) = ("fio/job/read".into(), Experiment::Fio);
    record.cells.push(job);
    record.cells.extend(fixtures::load().cells);
    record
}

/// The flush of `conv=fdatasync` returns last, and is no time elsewhere.
#[test]
fn the_flush_of_a_copy_is_a_part_of_its_own() {
    let bars = |flush_ns: u64| {
        let mut record = whole_run();
        for run in &mut record.copies[0].runs {
            (run.flush_ns, run.write_ns) = (flush_ns, run.write_ns.map(|write_ns| write_ns - flush_ns));
        }
        let analysis = Analysis::of(&record);
        let figure = super::dd::figures(&[Subject { name: "", analysis: &analysis }]).remove(0);
        let Drawing::Plot(plot) = figure.drawing else { panic!("nothing is drawn") };
        let first = |series: &Series| {
            let round = |value: f64| (value * 1000.0).round() / 1000.0;
            (series.name.clone(), round(series.points[0].from), round(series.points[0].x))
        };
        let column = figure.table.heads.iter().position(|head| head.starts_with("in the flush")).unwrap();
        let bars: Vec<_> = plot.series.iter().map(first).collect();
        (bars, figure.table.rows[0][column].clone())
    };
    let bar = |name: &str, from: f64, to: f64| (name.to_owned(), from, to);
    // In milliseconds, of a copy of 100 ms.
    let (with, flush) = bars(40_000_000);
    assert_eq!(flush, "40.0");
    assert_eq!(
        with[1..4],
        [
            bar("in write(2)", 10.0, 50.0),
            bar("elsewhere until the last of these returned", 50.0, 59.9),
            bar("flush that the operands ask for", 59.9, 99.9),
        ]
    );
    let (without, none) = bars(0);
    assert!(without.iter().all(|(name, ..)| name != "flush that the operands ask for"));
    assert_eq!(none, "0");
}

#[test]
fn several_records_share_the_figures_of_every_question() {
    let (one, other) = (whole_run(), whole_run());
    let (first, second) = (Analysis::of(&one), Analysis::of(&other));
    let subjects =
        [Subject { name: "before", analysis: &first }, Subject { name: "after", analysis: &second }];
    let sections = sections(&subjects);
    let asked: Vec<Experiment> = sections.iter().map(|section| section.experiment).collect();
    assert_eq!(asked, Experiment::ALL);
    let mut ids: Vec<&str> = Vec::new();
    for figure in sections.iter().flat_map(|section| &section.figures) {
        assert!(!ids.contains(&figure.id.as_str()), "{} is there once", figure.id);
        assert!(figure.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        ids.push(&figure.id);
        for row in &figure.table.rows {
            assert_eq!(row.len(), figure.table.heads.len(), "{}: {row:?}", figure.id);
        }
        let Drawing::Plot(plot) = &figure.drawing else { continue };
        let mut names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plot.series.len(), "{}: names differ", figure.id);
        for name in ["before", "after"] {
            assert!(
                names.iter().any(|series| series.starts_with(name)),
                "{name} in {}: {names:?}",
                figure.id
            );
        }
    }
    let bars = &sections[0].figures[0].drawing;
    let Drawing::Plot(plot) = bars else { panic!("rates are drawn") };
    let slots: Vec<_> = plot.series.iter().map(|series| series.shape).collect();
    assert_ne!(slots[0], slots[1], "bars of two Records lie side by side");
}

/// As where one result had 6.68 of 8 in flight and the other all of them.
#[test]
fn what_asks_the_same_meets_whatever_depth_was_reached() {
    let (whole, mut short) = (whole_run(), whole_run());
    for cell in &mut short.cells {
        cell.result.in_flight_mean = cell.result.in_flight_mean.map(|mean| 0.6 * mean);
    }
    let (first, second) = (Analysis::of(&whole), Analysis::of(&short));
    let subjects = [Subject { name: "a", analysis: &first }, Subject { name: "b", analysis: &second }];
    let sections = sections(&subjects);
    let Drawing::Plot(plot) = &sections[0].figures[0].drawing else { panic!("rates are drawn") };
    let of_one = plot_of(&whole, "headline-rates");
    assert_eq!(plot.y.ticks, of_one.y.ticks, "a row each");
    assert_eq!(
        plot.series.iter().map(|series| series.points.len()).max(),
        Some(of_one.series[0].points.len())
    );
}

#[test]
fn the_colour_of_several_results_is_the_result_in_every_figure() {
    let records = [whole_run(), whole_run(), whole_run()];
    let analyses = records.each_ref().map(Analysis::of);
    let names = ["first", "second", "third"];
    let subjects: Vec<Subject<'_, '_>> =
        names.iter().zip(&analyses).map(|(name, analysis)| Subject { name, analysis }).collect();
    let mut seen = 0;
    for figure in sections(&subjects).iter().flat_map(|section| &section.figures) {
        let Drawing::Plot(plot) = &figure.drawing else { continue };
        for series in &plot.series {
            let look = series.look.unwrap_or_else(|| panic!("{}: {}", figure.id, series.name));
            let result = names.iter().position(|name| series.name.starts_with(name));
            assert_eq!(result, Some(look.color), "{}: {}", figure.id, series.name);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn paths_of_several_records_stand_below_each_other() {
    let (one, other) = (fixtures::run(), fixtures::run());
    let (first, second) = (Analysis::of(&one), Analysis::of(&other));
    let subjects = [Subject { name: "a", analysis: &first }, Subject { name: "b", analysis: &second }];
    let figures = sections(&subjects).into_iter().flat_map(|section| section.figures);
    let figure = figures.into_iter().find(|figure| figure.id == "paths-time").unwrap();
    let Drawing::Plot(plot) = &figure.drawing else { panic!("{figure:?}") };
    for pair in plot.y.ticks.chunks(2) {
        let [one, other] = pair else { panic!("{:?}", plot.y.ticks) };
        assert_eq!(one.label.strip_prefix("a: "), other.label.strip_prefix("b: "));
    }
    assert_eq!(plot.y.ticks.len(), 2 * plot_of(&one, "paths-time").y.ticks.len());
}

#[test]
fn each_target_of_a_set_has_a_line_and_the_bytes_of_its_streams() {
    let mut record = fixtures::run();
    let mut other = record.targets[0].clone();
    (other.index, other.name) = (1, "other".into());
    record.targets.push(other);
    record.cells.retain(|cell| cell.experiment == Experiment::Scale && cell.workload.op == Op::Read);
    for cell in &mut record.cells {
        cell.workload.targets = vec![0, 1];
        cell.result.streams.iter_mut().for_each(|stream| stream.target = stream.index % 2);
    }
    let analysis = Analysis::of(&record);
    let most = analysis.scale()[0].counts().into_iter().max().unwrap();
    let point = analysis.scale()[0].lines[0].point(most).unwrap();
    assert_eq!(point.targets.len(), 2, "{point:?}");
    let plot = plot_of(&record, "scale-read-targets");
    assert_eq!(plot.series.len(), 2);
    for (series, share) in plot.series.iter().zip(&point.targets) {
        assert_eq!(series.points.len(), analysis.scale()[0].lines.len());
        assert!(same(series.points[0].y, share.bytes_per_s / MIB), "{series:?}");
    }
    assert!(
        plots(&Analysis::of(&fixtures::run())).iter().all(|(figure, _)| !figure.id.ends_with("-targets"))
    );
}

#[test]
fn the_rows_of_iostat_are_the_table_of_the_depth() {
    let record = fixtures::run();
    let figures: Vec<Figure> =
        of_record(&Analysis::of(&record)).into_iter().flat_map(|section| section.figures).collect();
    let depths: Vec<&Figure> =
        figures.iter().filter(|figure| figure.id.starts_with("stream-depth-")).collect();
    assert!(!depths.is_empty());
    for figure in depths {
        assert!(figure.table.heads.iter().any(|head| head == "w/s" || head == "r/s"), "{figure:?}");
    }
}

/// Each word of a page stands for one thing, and for one that its readers know.
#[test]
fn figures_use_the_words_of_fio_and_iostat() {
    let record = whole_run();
    let ours = [
        "record", "records", "record", "records", "cell", "cells", "visit", "visits", "pass", "passes",
        "verdict", "tells", "told", "somebody", "nobody",
    ];
    for figure in of_record(&Analysis::of(&record)).into_iter().flat_map(|section| section.figures) {
        let mut texts = vec![figure.title.clone(), figure.shows.clone(), figure.table.left_out.clone()];
        texts.extend(figure.table.heads.clone());
        if let Drawing::Plot(plot) = &figure.drawing {
            texts.extend([plot.x.label(), plot.y.label()]);
            texts.extend(plot.series.iter().map(|series| series.name.clone()));
        }
        for word in texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric())) {
            assert!(!ours.contains(&word.to_lowercase().as_str()), "{word} in {}: {texts:?}", figure.id);
        }
    }
}

/// As those of a btrfs over two disks.
#[test]
fn a_row_of_iostat_names_its_device_where_a_target_has_several() {
    let mut record = fixtures::run();
    let left_out = |record: &Record| -> Vec<String> {
        let figures: Vec<Figure> =
            of_record(&Analysis::of(record)).into_iter().flat_map(|section| section.figures).collect();
        figures
            .into_iter()
            .filter(|figure| figure.id.starts_with("stream-depth-"))
            .map(|figure| figure.table.left_out)
            .collect()
    };
    assert!(left_out(&record).iter().all(|text| text == "Columns that are 0 in every row are left out."));
    for cell in &mut record.cells {
        let Some(own) = cell.evidence.device.first().cloned() else { continue };
        let other = rdsk_model::DeviceEvidence { name: "sdb".into(), ..own.clone() };
        cell.evidence.device.push(other);
        cell.evidence.counted = vec![rdsk_model::Counted {
            target: own.target,
            devices: vec![own.name.clone(), "sdb".into()],
            written_least: 1.0,
            written_most: Some(1.0),
            why: None,
        }];
    }
    let told = left_out(&record);
    assert!(!told.is_empty());
    for text in told {
        assert!(text.ends_with("The row is that of sda alone; the data lie on sda and sdb."), "{text}");
    }
}
