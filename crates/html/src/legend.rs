//! Legends: a name for each kind of series, with the colour, dash and mark that stand for it, on a page and in a file.

use crate::figure::{Plot, Series, Shape};
use crate::palette::{COLORS, Paint};
use crate::shapes::{bar, escaped, line, mark, short, text_width};
use rdsk_analysis::groups::by_key;
use std::fmt::Write as _;

/// Font size of a name in a file, in pixels.
const FONT: f64 = 12.0;
/// Width of a key that shows a colour, and of one that shows a dash and a mark; their height.
const SMALL: f64 = 12.0;
const LARGE: f64 = 40.0;
pub(crate) const HEIGHT: u32 = 12;
/// Pixels from one line of a file's legend to the next.
const LINE: u32 = 18;

/// What stands for one kind of series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Its key as SVG, from 0 to the width of all keys and from 0 to [`HEIGHT`].
    pub(crate) key: String,
    pub(crate) name: String,
}

/// The entries of a plot, and the width of their keys in pixels; none where one colour is all there is.
pub(crate) fn entries(plot: &Plot) -> (Vec<Entry>, f64) {
    let kinds = by_key(plot.series.iter().map(|series| (series.legend.as_str(), series)));
    let is_styled = |series: &Series| series.look.is_some_and(|look| look.style > 0);
    let is_large = kinds.len() > COLORS || plot.series.iter().any(is_styled);
    let width = if is_large { LARGE } else { SMALL };
    if kinds.len() < 2 {
        return (Vec::new(), width);
    }
    let entry = |(name, series): (&str, Vec<&Series>)| {
        let paint = Paint::of(plot, series[0]);
        let key =
            if is_large { sample(paint, &series) } else { bar(paint, (0.0, 0.0), (width, HEIGHT.into())) };
        Entry { key, name: name.to_owned() }
    };
    (kinds.into_iter().map(entry).collect(), width)
}

/// A piece of a bar, or of a line with what is drawn of its marks.
fn sample(paint: Paint, series: &[&Series]) -> String {
    let middle = f64::from(HEIGHT) / 2.0;
    if series.iter().any(|series| matches!(series.shape, Shape::Bar { .. })) {
        return bar(paint, (1.0, 1.0), (LARGE - 2.0, f64::from(HEIGHT) - 2.0));
    }
    let is_line = |series: &Series| matches!(series.shape, Shape::Line | Shape::Level | Shape::Course);
    let mut key = String::new();
    if series.iter().any(|series| is_line(series)) {
        key += &line(paint, 2.0, &format!("M0 {middle}L{LARGE} {middle}"));
    }
    if series.iter().any(|series| series.has_marks()) {
        key += &mark(paint, (LARGE / 2.0, middle), 4.0);
    }
    key
}

/// The legend of a file, in as many lines as it needs, and its height; nothing where one colour is all there is.
pub(crate) fn of_file(plot: &Plot, width: u32) -> (String, u32) {
    let (entries, key_width) = entries(plot);
    let mut text = String::new();
    let (mut x, mut lines) = (16.0, 0_u32);
    if entries.is_empty() {
        return (text, 8);
    }
    for Entry { key, name } in entries {
        let name = short(&name);
        let wide = key_width + 6.0 + text_width(&name) * FONT + 20.0;
        if x + wide > f64::from(width) && x > 16.0 {
            (x, lines) = (16.0, lines + 1);
        }
        let y = 6 + lines * LINE;
        write!(
            text,
            r#"<g transform="translate({x:.0} {y})">{key}</g><text class="ink" x="{:.0}" y="{}" font-size="{FONT}">{}</text>"#,
            x + key_width + 6.0,
            y + 10,
            escaped(&name)
        )
        .expect("writing to a String cannot fail");
        x += wide;
    }
    (text, 14 + (lines + 1) * LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Point};
    use std::collections::HashSet;

    fn plot(count: usize, shape: Shape) -> Plot {
        let points = || vec![Point::at(1.0, 0.0), Point::at(2.0, 0.0)];
        Plot {
            x: Axis::from_zero("time", "s"),
            y: Axis::from_zero("rate", "MiB/s"),
            right: None,
            series: (0..count).map(|index| Series::new(format!("run {index}"), shape, points())).collect(),
        }
    }

    #[test]
    fn every_key_of_many_series_differs_from_every_other() {
        for shape in [Shape::Line, Shape::Mark, Shape::Bar { slot: 0, slots: 1 }] {
            let (entries, width) = entries(&plot(36, shape));
            let keys: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
            assert_eq!((keys.len(), width), (36, LARGE), "{shape:?}");
        }
    }

    #[test]
    fn few_series_need_no_more_than_colours_and_one_needs_no_legend() {
        let (some, width) = entries(&plot(9, Shape::Line));
        assert_eq!((some.len(), width), (9, SMALL));
        assert!(
            some.iter().all(|entry| !entry.key.contains("dash") && !entry.key.contains("path")),
            "{some:?}"
        );
        assert_eq!(entries(&plot(1, Shape::Line)).0, []);
    }

    #[test]
    fn a_key_shows_what_the_drawing_has() {
        let drawn = crate::draw::draw(&plot(12, Shape::Line), crate::draw::Medium::Wide).elements;
        // The eleventh line: the second colour, dashed, with rings.
        let (entries, _) = entries(&plot(12, Shape::Line));
        for part in [r#"class="line c1" stroke-dasharray="8 4""#, r#"<circle class="line empty c1""#] {
            assert!(drawn.contains(part), "{part}: {drawn}");
            assert!(entries[10].key.contains(part), "{part}: {}", entries[10].key);
        }
    }
}
