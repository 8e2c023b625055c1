//! A figure as SVG: axes, series and intervals, in the size of a wide screen, of a phone, or as a file with title, legend and
//! colours of its own. It decides nothing about values.

use crate::axis::{Along, Coordinate, range};
use crate::figure::{Axis, Figure, Plot, Scale, Series, Shape};
use crate::legend;
use crate::palette::{BACKGROUND, Paint, Theme, hex, rules};
use crate::shapes::{Align, Text, bar, dots, escaped, line, mark, px, short, text_width};
use std::collections::HashSet;

/// Font sizes in pixels.
const LABEL: f64 = 12.0;
const TITLE: f64 = 16.0;
/// Height of a row of bars on a wide drawing; on a narrow one its label stands above it.
const ROW: u32 = 34;
const NARROW_ROW: u32 = 48;
/// The least room for each bar of a row, whose bars take a little more than half of it.
const SLOT: u32 = 9;
/// Where the bars of a row begin and end around its middle, in rows, below the name that a narrow drawing has there. The script of the
/// page has the same figures.
const BAR: (f64, f64) = (-0.18, 0.38);
/// How much larger, in pixels, a mark is than one of the next series: where both lie at one place, a rim shows the one below. All
/// series together share the second length.
const RIM: f64 = 0.9;
const RIMS: f64 = 4.5;
/// Width of the line of an interval in pixels, and of the rim on each of its sides where it crosses a bar.
const INTERVAL: f64 = 1.4;
const AROUND: f64 = 1.0;
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
     .area,text{fill:currentColor}";

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
    /// Both ranges.
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

/// A plot between its axes.
struct Frame<'p> {
    plot: &'p Plot,
    medium: Medium,
    x: Coordinate<'p>,
    y: Coordinate<'p>,
    /// Left, top, right, bottom.
    area: [f64; 4],
}

impl<'p> Frame<'p> {
    fn new(plot: &'p Plot, medium: Medium, (width, height): (u32, u32)) -> Self {
        let longest = plot.y.ticks.iter().map(|tick| text_width(&short(&tick.label))).fold(0.0, f64::max);
        let labels = match (plot.y.scale == Scale::Rows, medium) {
            (true, Medium::Narrow) => 8.0,
            (true, _) => (longest * LABEL + 14.0).clamp(60.0, 340.0),
            (false, Medium::Narrow) => 58.0,
            (false, _) => 70.0,
        };
        let (left, top) = (6.0 + labels, 8.0);
        let right = f64::from(width) - if medium == Medium::Narrow { 14.0 } else { 24.0 };
        let bottom = f64::from(height - BELOW);
        // The first row is the uppermost.
        let upwards = if plot.y.scale == Scale::Rows { (top, bottom) } else { (bottom, top) };
        Self {
            plot,
            medium,
            x: Coordinate::new(&plot.x, range(plot, Along::X), (left, right)),
            y: Coordinate::new(&plot.y, range(plot, Along::Y), upwards),
            area: [left, top, right, bottom],
        }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.pixel(x), self.y.pixel(y))
    }

    /// A line through these values.
    fn path(&self, values: impl IntoIterator<Item = (f64, f64)>) -> String {
        path(values.into_iter().map(|value| self.at(value)))
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
    Drawn { elements, size, area: frame.area, x: frame.x.ends(), y: frame.y.ends() }
}

/// A figure as a file: SVG with title, legend and the light colours; `None` if there is nothing to draw.
pub fn svg(figure: &Figure) -> Option<String> {
    let crate::figure::Drawing::Plot(plot) = &figure.drawing else { return None };
    let drawn = draw(plot, Medium::File);
    let (width, height) = drawn.size;
    let title = escaped(&figure.title);
    let (legend, legend_height) = legend::of_file(plot, width);
    let top = 40;
    let all = height + top + legend_height;
    let (rules, background) = (rules(Theme::Light), hex(BACKGROUND.0));
    let (elements, below) = (&drawn.elements, height + top);
    Some(format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{all}" viewBox="0 0 {width} {all}" font-family="DejaVu Sans, Arial, Helvetica, sans-serif">
<title>{title}</title><desc>{desc}</desc><style>{STROKES}{rules}</style>
<rect width="{width}" height="{all}" fill="{background}"/>
<text class="ink" x="16" y="26" font-size="{TITLE}" font-weight="bold">{title}</text>
<g transform="translate(0 {top})">{elements}</g>
<g transform="translate(0 {below})">{legend}</g>
</svg>
"##,
        desc = escaped(&figure.shows),
    ))
}

fn size(plot: &Plot, medium: Medium) -> (u32, u32) {
    let rows: u32 = plot.y.ticks.len().try_into().unwrap_or(u32::MAX).clamp(1, 400);
    let slots = plot.series.iter().map(|series| match series.shape {
        Shape::Bar { slots, .. } => u32::try_from(slots).unwrap_or(u32::MAX).min(100),
        _ => 1,
    });
    let least = slots.max().unwrap_or(1) * SLOT;
    match (plot.y.scale, medium) {
        (Scale::Rows, Medium::Narrow) => (358, rows * NARROW_ROW.max(least) + BELOW + 10),
        (Scale::Rows, _) => (860, rows * ROW.max(least) + BELOW + 10),
        (_, Medium::Narrow) => (358, 300),
        (_, _) => (860, 380),
    }
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
    grid + &axes + &title(&plot.y, (6.0, f64::midpoint(top, bottom)), Text::BELOW, true)
}

/// The names of the rows, beside the bars or above them.
fn row_labels(frame: &Frame<'_>) -> String {
    let [left, top, _, bottom] = frame.area;
    let has_bars = frame.plot.series.iter().any(|series| matches!(series.shape, Shape::Bar { .. }));
    let middle = if has_bars { 0.5 + f64::midpoint(BAR.0, BAR.1) } else { 0.5 };
    let height = (bottom - top) / frame.plot.y.ticks.len().max(1) as f64;
    let name = |(index, tick): (usize, &crate::figure::Tick)| {
        let y = |share: f64| top + height * (index as f64 + share);
        let (at, align) = match frame.medium {
            Medium::Narrow => ((left + 4.0, y(0.15)), Align::Start),
            Medium::Wide | Medium::File => ((left - 8.0, y(middle)), Align::End),
        };
        Text { at, align, down: Text::CENTRE, size: LABEL, is_upright: false }.element(&short(&tick.label))
    };
    frame.plot.y.ticks.iter().enumerate().map(name).collect()
}

/// Pixels that have a dot, by colour.
type Taken = HashSet<(usize, i64, i64)>;

fn series_elements(frame: &Frame<'_>, series: &Series, taken: &mut Taken) -> String {
    let plot = frame.plot;
    let color = plot.color_of(series);
    let paint = Paint::of_series(color);
    let values = || series.points.iter().map(|point| (point.x, point.y));
    let above = plot.series.iter().rev().take_while(|other| other.name != series.name).count();
    let rim = rim(above, plot.series.len());
    let marks = |radius: f64| -> String { values().map(|at| mark(paint, frame.at(at), radius)).collect() };
    let drawn = match series.shape {
        Shape::Line => {
            let width = if series.points.len() > 400 { 1.2 } else { 2.0 };
            let marks = if series.has_marks() { marks(2.5 + rim) } else { String::new() };
            line(paint, width, &frame.path(values())) + &marks
        }
        Shape::Level => {
            let ends: Vec<(f64, f64)> = values().collect();
            ends.chunks(2).map(|pair| line(paint, 1.6, &frame.path(pair.iter().copied()))).collect()
        }
        Shape::Mark => marks(4.0 + rim),
        Shape::Cloud => {
            let pixels = values().map(|at| frame.at(at));
            let is_free = |&(x, y): &(f64, f64)| taken.insert((color, whole(x), whole(y)));
            dots(paint, pixels.filter(is_free))
        }
        Shape::Bar { slot, slots } => {
            let (low, high) = slot_of_row(slot, slots);
            let one = |point: &crate::figure::Point| {
                let (begin, end) =
                    (frame.at((point.from, point.y + low)), frame.at((point.x, point.y + high)));
                let at = (begin.0.min(end.0), begin.1.min(end.1));
                bar(paint, at, ((end.0 - begin.0).abs(), (end.1 - begin.1).abs()))
            };
            series.points.iter().map(one).collect()
        }
    };
    drawn + &intervals(frame, series)
}

/// The pixel that a place is on.
#[expect(clippy::cast_possible_truncation, reason = "no drawing is wider than a few thousand pixels")]
fn whole(pixels: f64) -> i64 {
    pixels.floor() as i64
}

/// How much larger, in pixels, marks are that so many of all series lie above.
fn rim(above: usize, series: usize) -> f64 {
    RIM.min(RIMS / series.saturating_sub(1).max(1) as f64) * above as f64
}

/// Where a bar begins and ends around the middle of its row, in rows.
fn slot_of_row(slot: usize, slots: usize) -> (f64, f64) {
    let (begin, end) = BAR;
    let height = (end - begin) / slots.max(1) as f64;
    (begin + height * slot as f64, begin + height * (slot as f64 + 0.86))
}

/// The intervals, in the colour of text on bars, with a rim that shows them there, and in that of the series elsewhere.
fn intervals(frame: &Frame<'_>, series: &Series) -> String {
    let own = Paint::of_series(frame.plot.color_of(series)).solid();
    let with_interval = series.points.iter().filter_map(|point| Some((point, point.interval?)));
    let lines = with_interval.map(|(point, (low, high))| match series.shape {
        Shape::Bar { slot, slots } => {
            let (begin, end) = slot_of_row(slot, slots);
            let y = point.y + f64::midpoint(begin, end);
            let path = frame.path([(low, y), (high, y)]);
            line(Paint::Ground, INTERVAL + 2.0 * AROUND, &path) + &line(Paint::Ink, INTERVAL, &path)
        }
        _ if frame.plot.y.scale == Scale::Rows => {
            line(own, INTERVAL, &frame.path([(low, point.y), (high, point.y)]))
        }
        _ => line(own, INTERVAL, &frame.path([(point.x, low), (point.x, high)])),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_below_others_has_a_rim_of_its_own() {
        for all in [2, 6, 16] {
            let rims: Vec<f64> = (0..all).map(|above| rim(above, all)).collect();
            assert!(rims.windows(2).all(|pair| pair[1] - pair[0] >= 0.3 - 1e-9), "{all}: {rims:?}");
            assert!(rims[0] == 0.0 && rims[all - 1] <= RIMS + 1e-9, "{all}: {rims:?}");
        }
    }
}
