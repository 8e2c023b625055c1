//! A figure as SVG: axes, series and intervals, in the size of a wide screen, of a phone, or as a file with title, legend and
//! colours of its own. It decides nothing about values.

use crate::axis::{Along, Coord, range};
use crate::figure::{Figure, Plot, Point, Scale, Series, Shape};
use crate::palette::{BACKGROUND, GRID, INK, Rgb, SERIES, Theme, rules};
use crate::svg_backend::{DOT, FINE, SvgBackend, escaped, text_width};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::convert::Infallible;
use std::fmt::Write as _;

/// Font sizes in pixels.
const LABEL: f64 = 12.0;
const TITLE: f64 = 16.0;
/// Lines with at most this many values have a mark on each.
const FEW_MARKS: usize = 40;
/// Height of a row of bars on a wide drawing; on a narrow one its label stands above it.
const ROW: u32 = 34;
const NARROW_ROW: u32 = 48;
/// Where the bars of a row begin and end around its middle, in rows, below the name that a narrow drawing has there. The script of the
/// page has the same figures.
const BAR: (f64, f64) = (-0.18, 0.38);
/// How much larger, in pixels, a mark is than one of the next series: where both lie at one place, a rim shows the one below.
const RIM: f64 = 0.9;
/// Series above one that make its marks larger.
const MAX_RIMS: usize = 3;
/// Space for the labels and the title of the lower axis.
const BELOW: u32 = 44;
/// Characters of the name of a row, and in the legend of a file, that are drawn; the table has all of them.
const MAX_LABEL: usize = 44;
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
    let (legend, legend_height) = legend(plot, width);
    let top = 40;
    let all = height + top + legend_height;
    let (rules, (r, g, b)) = (rules(Theme::Light), BACKGROUND.0);
    let (elements, below) = (&drawn.elements, height + top);
    Some(format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{all}" viewBox="0 0 {width} {all}" font-family="DejaVu Sans, Arial, Helvetica, sans-serif">
<title>{title}</title><desc>{desc}</desc><style>{STROKES}{rules}</style>
<rect width="{width}" height="{all}" fill="#{r:02x}{g:02x}{b:02x}"/>
<text class="ink" x="16" y="26" font-size="{TITLE}" font-weight="bold">{title}</text>
<g transform="translate(0 {top})">{elements}</g>
<g transform="translate(0 {below})">{legend}</g>
</svg>
"##,
        desc = escaped(&figure.shows),
    ))
}

/// The legend of a file, in as many lines as it needs, and its height; nothing where one colour is all there is.
fn legend(plot: &Plot, width: u32) -> (String, u32) {
    let names = plot.legend();
    let mut text = String::new();
    let (mut x, mut line) = (16.0, 0_u32);
    if names.len() < 2 {
        return (text, 8);
    }
    for (index, name) in names.iter().enumerate() {
        let name = short(name);
        let wide = 24.0 + text_width(&name) * LABEL + 14.0;
        if x + wide > f64::from(width) && x > 16.0 {
            (x, line) = (16.0, line + 1);
        }
        let y = 6 + line * 18;
        let color = index % SERIES.len();
        write!(
            text,
            r#"<rect class="area c{color}" x="{x:.0}" y="{y}" width="12" height="12"/><text class="ink" x="{:.0}" y="{}" font-size="{LABEL}">{}</text>"#,
            x + 18.0,
            y + 10,
            escaped(&name)
        )
        .expect("writing to a String cannot fail");
        x += wide;
    }
    (text, 14 + (line + 1) * 18)
}

fn size(plot: &Plot, medium: Medium) -> (u32, u32) {
    let rows: u32 = plot.y.ticks.len().try_into().unwrap_or(u32::MAX).clamp(1, 400);
    match (plot.y.scale, medium) {
        (Scale::Rows, Medium::Narrow) => (358, rows * NARROW_ROW + BELOW + 10),
        (Scale::Rows, _) => (860, rows * ROW + BELOW + 10),
        (_, Medium::Narrow) => (358, 300),
        (_, _) => (860, 380),
    }
}

fn fine(pixels: f64) -> i32 {
    let rounded = (pixels * f64::from(FINE)).round().clamp(0.0, 1e6);
    rdsk_analysis::metrics::whole(rounded).try_into().unwrap_or(i32::MAX)
}

fn color(rgb: Rgb) -> RGBColor {
    RGBColor(rgb.0, rgb.1, rgb.2)
}

fn font(pixels: f64, anchor: Pos) -> TextStyle<'static> {
    ("sans-serif", fine(pixels)).into_font().color(&color(INK.0)).pos(anchor)
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
    let (grid, ink) = (color(GRID.0), color(INK.0));
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

/// A name that is no wider than there is room: both of its ends, which tell names apart.
fn short(label: &str) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= MAX_LABEL {
        return label.to_owned();
    }
    let (first, last) = (MAX_LABEL / 2, letters.len() - (MAX_LABEL - 1) / 2);
    letters[..first].iter().chain(&['…']).chain(&letters[last..]).collect()
}

fn draw_series(chart: &mut Chart<'_, '_>, plot: &Plot, series: &Series) -> Result<(), Error> {
    let color = color(SERIES[plot.color_of(series) % SERIES.len()].0);
    let points = || series.points.iter();
    let at = |point: &Point| (point.x, point.y);
    let above = plot.series.iter().rev().take_while(|other| other.name != series.name).count();
    let rim = RIM * above.min(MAX_RIMS) as f64;
    match series.shape {
        Shape::Line => {
            let width = fine(if series.points.len() > 400 { 1.2 } else { 2.0 }).unsigned_abs();
            let line = ShapeStyle { color: color.into(), filled: false, stroke_width: width };
            chart.draw_series([PathElement::new(points().map(at).collect::<Vec<_>>(), line)])?;
            if series.points.len() <= FEW_MARKS {
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

/// Where a bar begins and ends around the middle of its row, in rows.
fn bar(slot: usize, slots: usize) -> (f64, f64) {
    let (begin, end) = BAR;
    let height = (end - begin) / slots.max(1) as f64;
    (begin + height * slot as f64, begin + height * (slot as f64 + 0.86))
}

/// The intervals, in the colour of text on bars and in that of the series elsewhere.
fn draw_intervals(chart: &mut Chart<'_, '_>, plot: &Plot, series: &Series) -> Result<(), Error> {
    let own = color(SERIES[plot.color_of(series) % SERIES.len()].0);
    let style = |rgb: RGBColor| ShapeStyle {
        color: rgb.into(),
        filled: false,
        stroke_width: fine(1.4).unsigned_abs(),
    };
    let lines = series.points.iter().filter_map(|point| {
        let (low, high) = point.interval?;
        Some(match series.shape {
            Shape::Bar { slot, slots } => {
                let (begin, end) = bar(slot, slots);
                let y = point.y + f64::midpoint(begin, end);
                PathElement::new(vec![(low, y), (high, y)], style(color(INK.0)))
            }
            _ if plot.y.scale == Scale::Rows => {
                PathElement::new(vec![(low, point.y), (high, point.y)], style(own))
            }
            _ => PathElement::new(vec![(point.x, low), (point.x, high)], style(own)),
        })
    });
    chart.draw_series(lines.collect::<Vec<_>>())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(short("write direct"), "write direct");
        let long = short(&format!("first{}last", "x".repeat(100)));
        assert_eq!(long.chars().count(), MAX_LABEL);
        assert!(long.starts_with("first") && long.contains('…') && long.ends_with("last"), "{long}");
    }
}
