//! A figure as SVG: axes, series and intervals, in the size of a wide screen, of a phone, or as a file with title, legend and
//! colours of its own. It decides nothing about values.

use crate::axis::{Along, Coord, range};
use crate::figure::{Figure, Plot, Point, Scale, Series, Shape};
use crate::legend;
use crate::palette::{BACKGROUND, Paint, Theme, hex, rules};
use crate::shapes::{escaped, short, text_width};
use crate::svg_backend::{DOT, FINE, SvgBackend};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::convert::Infallible;

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

type Area<'a> = DrawingArea<SvgBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SvgBackend<'b>, Cartesian2d<Coord, Coord>>;
type Error = DrawingAreaErrorKind<Infallible>;

/// Draws a plot.
///
/// # Panics
/// Never: plotters fails only where its backend does, and this one cannot.
pub(crate) fn draw(plot: &Plot, medium: Medium) -> Drawn {
    let size = size(plot, medium);
    let mut elements = String::new();
    let (area, x, y) = {
        let root = SvgBackend::new(size, &mut elements).into_drawing_area();
        draw_on(&root, plot, medium).expect("a backend that writes to a String never fails")
    };
    Drawn { elements, size, area, x, y }
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

fn fine(pixels: f64) -> i32 {
    let rounded = (pixels * f64::from(FINE)).round().clamp(0.0, 1e6);
    rdsk_analysis::metrics::whole(rounded).try_into().unwrap_or(i32::MAX)
}

fn color(paint: Paint) -> RGBColor {
    let (red, green, blue) = paint.code();
    RGBColor(red, green, blue)
}

fn font(pixels: f64, anchor: Pos) -> TextStyle<'static> {
    ("sans-serif", fine(pixels)).into_font().color(&color(Paint::Ink)).pos(anchor)
}

type Geometry = ([f64; 4], (f64, f64), (f64, f64));

fn draw_on(root: &Area<'_>, plot: &Plot, medium: Medium) -> Result<Geometry, Error> {
    let (x, y) = (range(plot, Along::X), range(plot, Along::Y));
    let has_rows = plot.y.scale == Scale::Rows;
    let longest = plot.y.ticks.iter().map(|tick| text_width(&short(&tick.label))).fold(0.0, f64::max);
    let left = match (has_rows, medium) {
        (true, Medium::Narrow) => 8.0,
        (true, _) => (longest * LABEL + 14.0).clamp(60.0, 340.0),
        (false, Medium::Narrow) => 58.0,
        (false, _) => 70.0,
    };
    let mut chart = ChartBuilder::on(root)
        .margin_top(fine(8.0))
        .margin_left(fine(6.0))
        .margin_right(fine(if medium == Medium::Narrow { 14.0 } else { 24.0 }))
        .set_label_area_size(LabelAreaPosition::Left, fine(left))
        .set_label_area_size(LabelAreaPosition::Bottom, fine(f64::from(BELOW)))
        .build_cartesian_2d(Coord::new(&plot.x, x.clone()), Coord::new(&plot.y, y.clone()))?;
    draw_mesh(&mut chart, plot, medium)?;
    for series in &plot.series {
        draw_series(&mut chart, plot, series)?;
    }
    let (across, down) = chart.plotting_area().get_pixel_range();
    if has_rows {
        draw_row_labels(root, plot, medium, (across.start, down.start, down.end))?;
    }
    root.present()?;
    let pixels = |coordinate: i32| f64::from(coordinate) / f64::from(FINE);
    let area = [pixels(across.start), pixels(down.start), pixels(across.end), pixels(down.end)];
    Ok((area, (x.start, x.end), (y.start, y.end)))
}

fn draw_mesh(chart: &mut Chart<'_, '_>, plot: &Plot, medium: Medium) -> Result<(), Error> {
    let (grid, ink) = (color(Paint::Grid), color(Paint::Ink));
    let has_rows = plot.y.scale == Scale::Rows;
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(ShapeStyle { color: ink.into(), filled: false, stroke_width: FINE.unsigned_abs() })
        .bold_line_style(ShapeStyle { color: grid.into(), filled: false, stroke_width: FINE.unsigned_abs() })
        .light_line_style(TRANSPARENT)
        .label_style(font(LABEL, Pos::new(HPos::Center, VPos::Center)))
        .axis_desc_style(font(LABEL, Pos::new(HPos::Center, VPos::Center)))
        .set_all_tick_mark_size(fine(4.0))
        .x_desc(plot.x.label())
        .x_labels(if medium == Medium::Narrow { 4 } else { 12 });
    if has_rows {
        mesh.y_labels(0).disable_y_mesh();
    } else {
        mesh.y_desc(plot.y.label()).y_labels(7);
    }
    mesh.draw()
}

/// The names of the rows, beside the bars or above them; plotters would cut them off.
fn draw_row_labels(
    root: &Area<'_>,
    plot: &Plot,
    medium: Medium,
    (left, top, bottom): (i32, i32, i32),
) -> Result<(), Error> {
    let rows = plot.y.ticks.len().max(1) as f64;
    let has_bars = plot.series.iter().any(|series| matches!(series.shape, Shape::Bar { .. }));
    let middle = if has_bars { 0.5 + f64::midpoint(BAR.0, BAR.1) } else { 0.5 };
    for (index, tick) in plot.y.ticks.iter().enumerate() {
        let height = f64::from(bottom - top) / rows;
        let begin = f64::from(top) + height * index as f64;
        let at = |share: f64| fine((begin + height * share) / f64::from(FINE));
        let text = short(&tick.label);
        if medium == Medium::Narrow {
            let style = font(LABEL, Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(text, (left + fine(4.0), at(0.15)), style))?;
        } else {
            let style = font(LABEL, Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(text, (left - fine(8.0), at(middle)), style))?;
        }
    }
    Ok(())
}

fn draw_series(chart: &mut Chart<'_, '_>, plot: &Plot, series: &Series) -> Result<(), Error> {
    let color = color(Paint::of_series(plot.color_of(series)));
    let points = || series.points.iter();
    let at = |point: &Point| (point.x, point.y);
    let above = plot.series.iter().rev().take_while(|other| other.name != series.name).count();
    let rim = rim(above, plot.series.len());
    match series.shape {
        Shape::Line => {
            let width = fine(if series.points.len() > 400 { 1.2 } else { 2.0 }).unsigned_abs();
            let line = ShapeStyle { color: color.into(), filled: false, stroke_width: width };
            chart.draw_series([PathElement::new(points().map(at).collect::<Vec<_>>(), line)])?;
            if series.has_marks() {
                chart.draw_series(
                    points().map(|point| Circle::new(at(point), fine(2.5 + rim), color.filled())),
                )?;
            }
        }
        Shape::Level => {
            let line =
                ShapeStyle { color: color.into(), filled: false, stroke_width: fine(1.6).unsigned_abs() };
            let whole: Vec<(f64, f64)> = points().map(at).collect();
            chart.draw_series(whole.chunks(2).map(|pair| PathElement::new(pair.to_vec(), line)))?;
        }
        Shape::Mark => {
            chart
                .draw_series(points().map(|point| Circle::new(at(point), fine(4.0 + rim), color.filled())))?;
        }
        Shape::Cloud => {
            chart.draw_series(points().map(|point| Circle::new(at(point), DOT, color.filled())))?;
        }
        Shape::Bar { slot, slots } => {
            let (low, high) = bar(slot, slots);
            chart.draw_series(points().map(|point| {
                Rectangle::new([(point.from, point.y + low), (point.x, point.y + high)], color.filled())
            }))?;
        }
    }
    draw_intervals(chart, plot, series)
}

/// How much larger, in pixels, marks are that so many of all series lie above.
fn rim(above: usize, all: usize) -> f64 {
    RIM.min(RIMS / all.saturating_sub(1).max(1) as f64) * above as f64
}

/// Where a bar begins and ends around the middle of its row, in rows.
fn bar(slot: usize, slots: usize) -> (f64, f64) {
    let (begin, end) = BAR;
    let height = (end - begin) / slots.max(1) as f64;
    (begin + height * slot as f64, begin + height * (slot as f64 + 0.86))
}

/// The intervals, in the colour of text on bars, with a rim that shows them there, and in that of the series elsewhere.
fn draw_intervals(chart: &mut Chart<'_, '_>, plot: &Plot, series: &Series) -> Result<(), Error> {
    let own = Paint::of_series(plot.color_of(series)).solid();
    let line = |ends: [(f64, f64); 2], paint: Paint, width: f64| {
        let style = ShapeStyle {
            color: color(paint).into(),
            filled: false,
            stroke_width: fine(width).unsigned_abs(),
        };
        PathElement::new(ends.to_vec(), style)
    };
    let lines = series.points.iter().filter_map(|point| Some((point, point.interval?)));
    let lines = lines.flat_map(|(point, (low, high))| match series.shape {
        Shape::Bar { slot, slots } => {
            let (begin, end) = bar(slot, slots);
            let y = point.y + f64::midpoint(begin, end);
            let ends = [(low, y), (high, y)];
            vec![line(ends, Paint::Ground, INTERVAL + 2.0 * AROUND), line(ends, Paint::Ink, INTERVAL)]
        }
        _ if plot.y.scale == Scale::Rows => vec![line([(low, point.y), (high, point.y)], own, INTERVAL)],
        _ => vec![line([(point.x, low), (point.x, high)], own, INTERVAL)],
    });
    chart.draw_series(lines.collect::<Vec<_>>())?;
    Ok(())
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
