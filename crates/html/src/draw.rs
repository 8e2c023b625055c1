//! A figure as SVG: axes, series and intervals, in the size of a wide screen, of a phone, or as a file with title, legend and
//! colours of its own. It decides nothing about values.

use crate::axis::{Along, Coordinate, range};
use crate::figure::{Axis, Figure, Plot, Point, Scale, Series, Shape, Tick};
use crate::legend;
use crate::palette::{BACKGROUND, Paint, Theme, hex, rules};
use crate::shapes::{Align, Text, band, bar, dots, escaped, line, mark, px, short, text_width};
use std::collections::HashSet;

/// Font sizes in pixels.
const LABEL: f64 = 12.0;
const TITLE: f64 = 16.0;
/// Width of a drawing: of a wide screen and a file, and of a phone.
const WIDTHS: (u32, u32) = (960, 358);
/// The least height of a row of bars on a wide drawing; on a narrow one its label stands above it.
const ROW: u32 = 34;
const NARROW_ROW: u32 = 48;
/// The least height of a bar, and of one with words at its end.
const SLOT: f64 = 8.0;
const WORDED_SLOT: f64 = 14.0;
/// Where the bars of a row begin and end around its middle, in rows: below the name that a narrow drawing has there.
const BARS: (f64, f64) = (-0.4, 0.4);
const NARROW_BARS: (f64, f64) = (-0.18, 0.42);
/// Radius of a mark, the same for all of them.
const MARK: f64 = 3.5;
/// Width of the line of an interval in pixels, and of the rim on each of its sides where it crosses a bar.
const INTERVAL: f64 = 1.4;
const AROUND: f64 = 1.0;
/// From the end of a bar to the words beside it.
const TO_WORDS: f64 = 6.0;
/// Space for the labels and the title of the lower axis.
const BELOW: u32 = 44;
/// Length of the mark at a label of an axis, and how far the label is from the axis.
const TICK: f64 = 4.0;
const FROM_AXIS: f64 = 8.0;
/// Labels of an axis upwards; of one along a wide and a narrow drawing.
const LABELS_UP: usize = 7;
const LABELS_ALONG: (usize, usize) = (12, 4);
/// What is in every figure whatever its colours are.
pub(crate) const STROKES: &str = ".line{fill:none;stroke:currentColor;stroke-linejoin:round}\
     .dot{fill:none;stroke:currentColor;stroke-width:2.4;stroke-linecap:round}\
     .area,text{fill:currentColor}\
     .band{fill:currentColor;fill-opacity:.2}";

/// Where a drawing is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    Wide,
    Narrow,
    /// A file of its own: with title, legend and the light colours.
    File,
}

/// A plot as the elements of an SVG.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) elements: String,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    /// The plot between its axes in pixels: left, top, right, bottom.
    pub(crate) area: [f64; 4],
    /// The ranges of the axes; that on the right is the left one again where there is none.
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) right: (f64, f64),
    /// Where bars begin and end around the middle of their row, in rows.
    pub(crate) bars: (f64, f64),
}

/// A plot between its axes.
struct Frame<'p> {
    plot: &'p Plot,
    medium: Medium,
    x: Coordinate<'p>,
    y: Coordinate<'p>,
    right: Option<Coordinate<'p>>,
    width: f64,
    /// Left, top, right, bottom.
    area: [f64; 4],
}

impl<'p> Frame<'p> {
    fn new(plot: &'p Plot, medium: Medium, (width, height): (u32, u32)) -> Self {
        let longest = plot.y.ticks.iter().map(|tick| text_width(&short(&tick.label))).fold(0.0, f64::max);
        let is_narrow = medium == Medium::Narrow;
        let numbers = if is_narrow { 58.0 } else { 70.0 };
        let labels = match plot.y.scale {
            Scale::Rows if is_narrow => 8.0,
            Scale::Rows => (longest * LABEL + 14.0).clamp(60.0, 340.0),
            _ => numbers,
        };
        let words = plot.series.iter().flat_map(|series| &series.labels);
        let words = words.map(|words| text_width(words) * LABEL).fold(0.0, f64::max);
        let beside = match &plot.right {
            Some(_) => numbers,
            None if words > 0.0 => words + TO_WORDS,
            None if is_narrow => 14.0,
            None => 24.0,
        };
        let (left, top) = (6.0 + labels, 8.0);
        let right = f64::from(width) - beside;
        let bottom = f64::from(height - BELOW);
        // The first row is the uppermost.
        let upwards = if plot.y.scale == Scale::Rows { (top, bottom) } else { (bottom, top) };
        let on_right = |axis| Coordinate::new(axis, range(plot, Along::Right), upwards);
        Self {
            plot,
            medium,
            x: Coordinate::new(&plot.x, range(plot, Along::X), (left, right)),
            y: Coordinate::new(&plot.y, range(plot, Along::Y), upwards),
            right: plot.right.as_deref().map(on_right),
            width: width.into(),
            area: [left, top, right, bottom],
        }
    }

    /// Where a value of a series lies.
    fn at(&self, series: &Series, (x, y): (f64, f64)) -> (f64, f64) {
        let upwards = self.right.as_ref().filter(|_| series.is_right).unwrap_or(&self.y);
        (self.x.pixel(x), upwards.pixel(y))
    }

    /// A line through these values of a series.
    fn path(&self, series: &Series, values: impl IntoIterator<Item = (f64, f64)>) -> String {
        path(values.into_iter().map(|value| self.at(series, value)))
    }
}

/// A line through these pixels: `M1 2L3 4`.
fn path(pixels: impl IntoIterator<Item = (f64, f64)>) -> String {
    let step = |(index, (x, y)): (usize, (f64, f64))| {
        format!("{}{} {}", if index == 0 { 'M' } else { 'L' }, px(x), px(y))
    };
    pixels.into_iter().enumerate().map(step).collect()
}

/// Draws a plot.
pub(crate) fn draw(plot: &Plot, medium: Medium) -> Drawn {
    let size = size(plot, medium);
    let frame = Frame::new(plot, medium, size);
    let mut elements = mesh(&frame);
    // Another dot on a pixel of the same colour could not be seen.
    let mut taken = HashSet::new();
    for series in &plot.series {
        elements += &series_elements(&frame, series, &mut taken);
    }
    if plot.y.scale == Scale::Rows {
        elements += &row_labels(&frame);
    }
    let right = frame.right.as_ref().unwrap_or(&frame.y).ends();
    Drawn {
        elements,
        size,
        area: frame.area,
        x: frame.x.ends(),
        y: frame.y.ends(),
        right,
        bars: bars_of(medium),
    }
}

/// A figure as a file: SVG with title, legend and the light colours; `None` if there is nothing to draw.
pub fn svg(figure: &Figure) -> Option<String> {
    let crate::figure::Drawing::Plot(plot) = &figure.drawing else { return None };
    let drawn = draw(plot, Medium::File);
    let (width, height) = drawn.size;
    let title = escaped(&figure.title);
    let (legend, legend_height) = legend::of_file(plot, width);
    let top = 40;
    let total_height = height + top + legend_height;
    let (rules, background) = (rules(Theme::Light), hex(BACKGROUND.0));
    let (elements, below) = (&drawn.elements, height + top);
    Some(format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total_height}" viewBox="0 0 {width} {total_height}" font-family="DejaVu Sans, Arial, Helvetica, sans-serif">
<title>{title}</title><desc>{desc}</desc><style>{STROKES}{rules}</style>
<rect width="{width}" height="{total_height}" fill="{background}"/>
<text class="ink" x="16" y="26" font-size="{TITLE}" font-weight="bold">{title}</text>
<g transform="translate(0 {top})">{elements}</g>
<g transform="translate(0 {below})">{legend}</g>
</svg>
"##,
        desc = escaped(&figure.shows),
    ))
}

fn bars_of(medium: Medium) -> (f64, f64) {
    if medium == Medium::Narrow { NARROW_BARS } else { BARS }
}

fn size(plot: &Plot, medium: Medium) -> (u32, u32) {
    let is_narrow = medium == Medium::Narrow;
    let width = if is_narrow { WIDTHS.1 } else { WIDTHS.0 };
    if plot.y.scale != Scale::Rows {
        return (width, if is_narrow { 300 } else { 380 });
    }
    let slots = plot.series.iter().map(|series| match series.shape {
        Shape::Bar { slots, .. } => slots.min(100),
        _ => 1,
    });
    let is_worded = plot.series.iter().any(|series| !series.labels.is_empty());
    let slot = if is_worded { WORDED_SLOT } else { SLOT };
    let (begin, end) = bars_of(medium);
    let bars = slots.max().unwrap_or(1) as f64 * slot / (end - begin);
    let row = f64::from(if is_narrow { NARROW_ROW } else { ROW }).max(bars);
    let rows = plot.y.ticks.len().clamp(1, 400) as f64;
    (width, u32::try_from(whole(rows * row)).unwrap_or(u32::MAX / 2) + BELOW + 10)
}

/// Grid, axes, and their labels and titles.
fn mesh(frame: &Frame<'_>) -> String {
    let [left, top, right, bottom] = frame.area;
    let plot = frame.plot;
    let most = if frame.medium == Medium::Narrow { LABELS_ALONG.1 } else { LABELS_ALONG.0 };
    let label = |at: (f64, f64), align: Align, down: f64, words: &str| {
        Text { at, align, down, size: LABEL, is_upright: false }.element(words)
    };
    let (mut grid, mut axes) = (String::new(), String::new());
    let along = frame.x.labels(most).into_iter().map(|tick| (frame.x.pixel(tick.at), tick.label));
    for (x, words) in along {
        grid += &line(Paint::Grid, 1.0, &path([(x, top), (x, bottom)]));
        axes += &line(Paint::Ink, 1.0, &path([(x, bottom), (x, bottom + TICK)]));
        axes += &label((x, bottom + FROM_AXIS), Align::Middle, Text::BELOW, &words);
    }
    axes += &line(Paint::Ink, 1.0, &path([(left, bottom), (right, bottom)]));
    axes += &line(Paint::Ink, 1.0, &path([(left, top), (left, bottom)]));
    let title = |axis: &Axis, at: (f64, f64), down: f64, is_upright: bool| {
        Text { at, align: Align::Middle, down, size: LABEL, is_upright }.element(&axis.label())
    };
    axes += &title(&plot.x, (f64::midpoint(left, right), bottom + f64::from(BELOW)), Text::ABOVE, false);
    // The names of rows are no values.
    if plot.y.scale == Scale::Rows {
        return grid + &axes;
    }
    for (y, words) in frame.y.labels(LABELS_UP).into_iter().map(|tick| (frame.y.pixel(tick.at), tick.label)) {
        grid += &line(Paint::Grid, 1.0, &path([(left, y), (right, y)]));
        axes += &line(Paint::Ink, 1.0, &path([(left - TICK, y), (left, y)]));
        axes += &label((left - FROM_AXIS, y), Align::End, Text::CENTRE, &words);
    }
    let middle = f64::midpoint(top, bottom);
    if let Some((coordinate, axis)) = frame.right.as_ref().zip(plot.right.as_deref()) {
        for Tick { at, label: words } in coordinate.labels(LABELS_UP) {
            let y = coordinate.pixel(at);
            axes += &line(Paint::Ink, 1.0, &path([(right, y), (right + TICK, y)]));
            axes += &label((right + FROM_AXIS, y), Align::Start, Text::CENTRE, &words);
        }
        axes += &line(Paint::Ink, 1.0, &path([(right, bottom), (right, top)]));
        axes += &title(axis, (frame.width - 6.0, middle), Text::ABOVE, true);
    }
    grid + &axes + &title(&plot.y, (6.0, middle), Text::BELOW, true)
}

/// The names of the rows, beside the bars or above them.
fn row_labels(frame: &Frame<'_>) -> String {
    let [left, top, _, bottom] = frame.area;
    let height = (bottom - top) / frame.plot.y.ticks.len().max(1) as f64;
    let name = |(index, tick): (usize, &Tick)| {
        let y = |share: f64| top + height * (index as f64 + share);
        let (at, align) = match frame.medium {
            Medium::Narrow => ((left + 4.0, y(0.15)), Align::Start),
            Medium::Wide | Medium::File => ((left - 8.0, y(0.5)), Align::End),
        };
        Text { at, align, down: Text::CENTRE, size: LABEL, is_upright: false }.element(&short(&tick.label))
    };
    frame.plot.y.ticks.iter().enumerate().map(name).collect()
}

/// Pixels that have a dot, by colour.
type Taken = HashSet<(String, i64, i64)>;

fn series_elements(frame: &Frame<'_>, series: &Series, taken: &mut Taken) -> String {
    let paint = Paint::of(frame.plot, series);
    let values = || series.points.iter().map(|point| (point.x, point.y));
    let marks = || -> String { values().map(|at| mark(paint, frame.at(series, at), MARK)).collect() };
    let drawn = match series.shape {
        Shape::Line => {
            let width = if series.points.len() > 400 { 1.2 } else { 2.0 };
            let marks = if series.has_marks() { marks() } else { String::new() };
            line(paint, width, &frame.path(series, values())) + &marks
        }
        Shape::Level => {
            let ends: Vec<(f64, f64)> = values().collect();
            ends.chunks(2).map(|pair| line(paint, 1.6, &frame.path(series, pair.iter().copied()))).collect()
        }
        Shape::Course => band_of(frame, series, paint) + &line(paint, 1.8, &frame.path(series, values())),
        Shape::Mark => marks(),
        Shape::Cloud => {
            let pixels = values().map(|at| frame.at(series, at));
            let is_free = |&(x, y): &(f64, f64)| taken.insert((paint.class(), whole(x), whole(y)));
            dots(paint, pixels.filter(is_free))
        }
        Shape::Bar { slot, slots } => {
            let (low, high) = slot_of_row(frame.medium, slot, slots);
            let drawn_bar = |point: &Point| {
                let (begin, end) = (
                    frame.at(series, (point.from, point.y + low)),
                    frame.at(series, (point.x, point.y + high)),
                );
                let at = (begin.0.min(end.0), begin.1.min(end.1));
                bar(paint, at, ((end.0 - begin.0).abs(), (end.1 - begin.1).abs()))
            };
            series.points.iter().map(drawn_bar).collect()
        }
    };
    let intervals = if series.shape == Shape::Course { String::new() } else { intervals(frame, series) };
    drawn + &intervals + &words_at_ends(frame, series)
}

/// The range around a line, from its first value to its last.
fn band_of(frame: &Frame<'_>, series: &Series, paint: Paint) -> String {
    let edge = |point: &Point, end: fn((f64, f64)) -> f64| (point.x, point.interval.map_or(point.y, end));
    let above = series.points.iter().map(|point| edge(point, |range| range.1));
    let below = series.points.iter().rev().map(|point| edge(point, |range| range.0));
    band(paint, &frame.path(series, above.chain(below)))
}

/// The words of bars, behind their ends and their intervals.
fn words_at_ends(frame: &Frame<'_>, series: &Series) -> String {
    let Shape::Bar { slot, slots } = series.shape else { return String::new() };
    let (low, high) = slot_of_row(frame.medium, slot, slots);
    let text = |(point, words): (&Point, &String)| {
        let far = point.interval.map_or(point.x, |(_, high)| high.max(point.x));
        let (x, y) = frame.at(series, (far, point.y + f64::midpoint(low, high)));
        let at = (x + TO_WORDS, y);
        Text { at, align: Align::Start, down: Text::CENTRE, size: LABEL, is_upright: false }.element(words)
    };
    series.points.iter().zip(&series.labels).map(text).collect()
}

/// The pixel that a place is on.
#[expect(clippy::cast_possible_truncation, reason = "no drawing is wider than a few thousand pixels")]
fn whole(pixels: f64) -> i64 {
    pixels.floor() as i64
}

/// Where a bar begins and ends around the middle of its row, in rows.
fn slot_of_row(medium: Medium, slot: usize, slots: usize) -> (f64, f64) {
    let (begin, end) = bars_of(medium);
    let height = (end - begin) / slots.max(1) as f64;
    (begin + height * slot as f64, begin + height * (slot as f64 + 0.86))
}

/// The intervals, in the colour of text on bars, with a rim that shows them there, and in that of the series elsewhere.
fn intervals(frame: &Frame<'_>, series: &Series) -> String {
    let own = Paint::of(frame.plot, series).solid();
    let with_interval = series.points.iter().filter_map(|point| Some((point, point.interval?)));
    let lines = with_interval.map(|(point, (low, high))| match series.shape {
        Shape::Bar { slot, slots } => {
            let (begin, end) = slot_of_row(frame.medium, slot, slots);
            let y = point.y + f64::midpoint(begin, end);
            let path = frame.path(series, [(low, y), (high, y)]);
            line(Paint::Ground, INTERVAL + 2.0 * AROUND, &path) + &line(Paint::Ink, INTERVAL, &path)
        }
        _ if frame.plot.y.scale == Scale::Rows => {
            line(own, INTERVAL, &frame.path(series, [(low, point.y), (high, point.y)]))
        }
        _ => line(own, INTERVAL, &frame.path(series, [(point.x, low), (point.x, high)])),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_has_one_size() {
        let points = || vec![Point::at(1.0, 1.0), Point::at(2.0, 3.0)];
        let series = [("first", Shape::Line), ("second", Shape::Mark), ("third", Shape::Line)];
        let series = series.map(|(name, shape)| Series::new(name, shape, points()));
        let plot = Plot::new(Axis::from_zero("time", "s"), Axis::from_zero("rate", "MiB/s"), series);
        let drawn = draw(&plot, Medium::Wide).elements;
        assert_eq!(drawn.matches("<circle").count(), 6);
        assert_eq!(drawn.matches(&format!("r=\"{MARK}\"")).count(), 6, "{drawn}");
    }

    #[test]
    fn a_range_is_a_band_around_its_line() {
        let point = |x: f64| Point { interval: Some((1.0, 3.0)), ..Point::at(x, 2.0) };
        let series = Series::new("rate", Shape::Course, vec![point(0.0), point(1.0), point(2.0)]);
        let plot = Plot::new(Axis::from_zero("time", "s"), Axis::from_zero("rate", "MiB/s"), [series]);
        let drawn = draw(&plot, Medium::Wide).elements;
        let band = drawn.split("class=\"band c0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(band.matches(['M', 'L']).count(), 6, "there above the line, back below it: {band}");
        assert!(band.ends_with('Z') && !drawn.contains("<circle"), "{drawn}");
    }

    #[test]
    fn values_on_the_right_have_an_axis_of_their_own() {
        let left = Series::new("rate", Shape::Line, vec![Point::at(0.0, 100.0), Point::at(1.0, 100.0)]);
        let points = vec![Point::at(0.0, 0.1), Point::at(1.0, 0.1)];
        let right = Series { is_right: true, ..Series::new("latency", Shape::Line, points) };
        let plot = Plot::new(Axis::from_zero("depth", ""), Axis::from_zero("rate", "IOPS"), [left, right]);
        let drawn = draw(&plot.with_right(Axis::from_zero("p50", "ms")), Medium::Wide);
        assert!(drawn.y.1 >= 100.0 && (0.1..1.0).contains(&drawn.right.1), "{:?} {:?}", drawn.y, drawn.right);
        assert!(drawn.elements.contains("p50, ms</text>"));
    }
}
