//! A small chart on the terminal: points over a labelled grid, a letter per series, readable in plain ASCII. It draws what
//! it is given and computes nothing.

use crate::figures::significant;
use crate::page::Page;
use rdsk_analysis::metrics::whole;
use rdsk_units::Bytes;

/// Columns of the grid; with the labels of the y axis a line has less than 80.
const WIDTH: usize = 64;
const HEIGHT: usize = 12;
/// Where several points of different series meet.
const MIXED: char = '#';
/// The letters of the series; those that are beyond them share the last.
const LETTERS: &[u8] = b"*ox+abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Fewer places along the x axis than this are no curve: a table says as much.
const MIN_PLACES: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) label: String,
    /// The points; those that are not finite are left out.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What the y axis ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// The largest point.
    Largest,
    /// The points that most are like: a few far above them stand at the edge, and a line says so.
    Most,
}

#[derive(Clone, Copy)]
pub(crate) struct Axes<'a> {
    pub(crate) top: Top,
    pub(crate) unit: &'a str,
    /// What the x axis is.
    pub(crate) along: &'a str,
    /// The label of a place on the x axis; the leftmost and the rightmost point get one.
    pub(crate) at: &'a dyn Fn(f64) -> String,
}

/// The label of a size whose logarithm is drawn.
pub(crate) fn size_of_log2(x: f64) -> String {
    Bytes(whole(x.exp2().round())).to_string()
}

fn letter(index: usize) -> char {
    char::from(LETTERS[index.min(LETTERS.len() - 1)])
}

/// Draws the series over each other, the y axis from 0. Nothing where there are too few places for a curve.
pub(crate) fn draw(page: &mut Page, series: &[Series], axes: &Axes<'_>) {
    let finite = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    let finite_points: Vec<(f64, f64)> =
        series.iter().flat_map(|curve| curve.points.iter().copied().filter(finite)).collect();
    let largest = match axes.top {
        Top::Largest => highest(&finite_points),
        Top::Most => highest_of_most(&finite_points),
    };
    // Of the thousands of places of a whole disk, so many decide.
    let mut places: Vec<f64> = Vec::new();
    for &(x, _) in &finite_points {
        if places.len() < MIN_PLACES && !places.contains(&x) {
            places.push(x);
        }
    }
    if largest <= 0.0 || places.len() < MIN_PLACES {
        return;
    }
    let (left, right) = finite_points
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &(x, _)| (low.min(x), high.max(x)));
    let mut grid = vec![[' '; WIDTH]; HEIGHT];
    for (index, curve) in series.iter().enumerate() {
        let letter = letter(index);
        for &(x, y) in curve.points.iter().filter(|point| finite(point)) {
            let column = step(if right > left { (x - left) / (right - left) } else { 0.5 }, WIDTH);
            let row = HEIGHT - 1 - step(y / largest, HEIGHT);
            let place = &mut grid[row][column];
            *place = if *place == ' ' || *place == letter { letter } else { MIXED };
        }
    }
    let labels: Vec<String> = (0..HEIGHT).map(|row| label(row, largest)).collect();
    let widest = labels.iter().map(String::len).max().unwrap_or(0);
    for (row, label) in grid.iter().zip(&labels) {
        page.line(format!("  {label:>widest$} |{}", row.iter().collect::<String>()));
    }
    page.line(format!("  {:>widest$} +{}", "0", "-".repeat(WIDTH)));
    let (first, middle, last) = ((axes.at)(left), axes.along, (axes.at)(right));
    let half = (WIDTH / 2).saturating_sub(middle.len() / 2 + first.len());
    let rest = (WIDTH / 2).saturating_sub(middle.len().div_ceil(2) + last.len());
    page.line(format!("  {:widest$}  {first}{}{middle}{}{last}", "", " ".repeat(half), " ".repeat(rest)));
    let key: Vec<String> = series
        .iter()
        .enumerate()
        .map(|(index, curve)| format!("{} {}", letter(index), curve.label))
        .collect();
    page.sentence(crate::page::Tone::Plain, "  ", format!("{}: {}", axes.unit, key.join(", ")));
    let above: Vec<f64> = finite_points.iter().map(|&(_, y)| y).filter(|&y| y > largest).collect();
    if !above.is_empty() {
        let points = rdsk_analysis::words::plural(above.len() as u64, "point");
        let most = significant(above.iter().copied().fold(0.0, f64::max));
        let text = format!("At the upper edge: {points} above {}, up to {most}.", significant(largest));
        page.sentence(crate::page::Tone::Plain, "  ", text);
    }
}

fn highest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|&(_, y)| y).fold(0.0, f64::max)
}

/// A point further above nine of ten others than this sets no axis, which then ends a quarter above these.
const FAR: f64 = 2.0;
const ABOVE_MOST: f64 = 1.25;

fn highest_of_most(points: &[(f64, f64)]) -> f64 {
    let mut values: Vec<f64> = points.iter().map(|&(_, y)| y).collect();
    values.sort_by(f64::total_cmp);
    let most = rdsk_stats::quantile_sorted(&values, 0.9).unwrap_or(0.0);
    let highest = highest(points);
    if most > 0.0 && highest > FAR * most { ABOVE_MOST * most } else { highest }
}

/// The figure beside every third line, that of its middle; the others have none.
fn label(row: usize, largest: f64) -> String {
    if !row.is_multiple_of(3) {
        return String::new();
    }
    significant(largest * (HEIGHT - row) as f64 / HEIGHT as f64)
}

/// The step of a share from 0 to 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 times a few dozen"
)]
fn step(share: f64, steps: usize) -> usize {
    ((share.clamp(0.0, 1.0) * steps as f64).ceil() as usize).clamp(1, steps) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    #[test]
    fn points_stand_where_they_belong() {
        let mut page = Page::default();
        let falling = Series { label: "1M".into(), points: vec![(0.0, 60.0), (50.0, 45.0), (100.0, 30.0)] };
        let other = Series { label: "5M".into(), points: vec![(0.0, 60.0), (100.0, 60.0), (50.0, f64::NAN)] };
        let at = |x: f64| format!("{x}%");
        draw(
            &mut page,
            &[falling, other],
            &Axes { top: Top::Largest, unit: "MiB/s", along: "place", at: &at },
        );
        let text = page.render(Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 3);
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(lines[0].starts_with("  60.0 |#") && lines[0].ends_with('o'), "{text}");
        assert!(lines[6].ends_with('*') && lines[3].contains('*'), "{text}");
        assert!(lines[HEIGHT + 1].trim_start().starts_with("0%") && lines[HEIGHT + 1].ends_with("100%"));
        assert_eq!(lines[HEIGHT + 2], "  MiB/s: * 1M, o 5M");
    }

    /// One position that a cache answered would press all others onto the lowest line.
    #[test]
    fn a_point_far_above_the_others_stands_at_the_edge() {
        let drawn = |top: Top| {
            let mut page = Page::default();
            let mut points: Vec<(f64, f64)> = (0..40).map(|x| (f64::from(x), 50.0)).collect();
            points[20].1 = 5000.0;
            let series = Series { label: "1M".into(), points };
            draw(&mut page, &[series], &Axes { top, unit: "MiB/s", along: "x", at: &|x| x.to_string() });
            page.render(Style::default())
        };
        let text = drawn(Top::Most);
        assert!(text.starts_with("  62.5 |") && text.lines().next().unwrap().contains('*'), "{text}");
        assert!(text.ends_with("  At the upper edge: 1 point above 62.5, up to 5000.\n"), "{text}");
        let text = drawn(Top::Largest);
        assert!(text.starts_with("  5000 |") && !text.contains("edge"), "{text}");
    }

    #[test]
    fn two_places_are_no_curve_and_every_series_has_its_letter() {
        let along = |places: u32| (0..places).map(|x| (f64::from(x), 1.0 + f64::from(x))).collect::<Vec<_>>();
        let drawn = |count: usize, places: u32| {
            let mut page = Page::default();
            let series: Vec<Series> = (0..count)
                .map(|index| Series { label: format!("s{index}"), points: along(places) })
                .collect();
            draw(
                &mut page,
                &series,
                &Axes { top: Top::Largest, unit: "MiB/s", along: "x", at: &|x| x.to_string() },
            );
            page.render(Style::default())
        };
        assert_eq!(drawn(2, 2), "");
        let text = drawn(40, 3);
        let key: String = text.lines().skip(HEIGHT + 2).map(str::trim).collect::<Vec<_>>().join(" ");
        let letters: Vec<&str> = key.split(", ").filter_map(|one| one.trim().rsplit(' ').nth(1)).collect();
        assert_eq!(letters.len(), 40, "{text}");
        assert_eq!(rdsk_analysis::groups::distinct(letters.iter()).len(), 40, "{letters:?}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let mut page = Page::default();
        draw(
            &mut page,
            &[Series::default()],
            &Axes { top: Top::Largest, unit: "MiB/s", along: "place", at: &|x| x.to_string() },
        );
        assert_eq!(page.render(Style::default()), "");
    }
}
