//! The elements of a drawing as SVG: lines, bars and marks in a paint, and what text needs. It knows no values and no axes.

use crate::palette::{Mark, Paint};

/// Width of the line around what is empty, in pixels.
const RIM: f64 = 1.6;
/// Half of the side of a square, over the radius of a disc that looks as large.
const SQUARE: f64 = 0.9;
/// Characters of the name of a row, and in the legend of a file, that are drawn; the table has all of them.
const MAX_NAME: usize = 44;

/// Pixels with as many decimals as are needed: `12`, `12.5`, `12.13`.
pub(crate) fn px(pixels: f64) -> String {
    let text = format!("{pixels:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A line of this width along a path.
pub(crate) fn line(paint: Paint, width: f64, path: &str) -> String {
    let (class, width) = (paint.class(), px(width));
    format!(r#"<path class="line {class}"{} stroke-width="{width}" d="{path}"/>"#, dashes(paint.dashes()))
}

/// The area inside a closed path, faint enough to show what lies below.
pub(crate) fn band(paint: Paint, path: &str) -> String {
    format!(r#"<path class="band {}" d="{path}Z"/>"#, paint.class())
}

fn dashes(dashes: &str) -> String {
    if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) }
}

/// A bar with its upper left corner at `(x, y)`: filled for the first series of a colour, empty for others. One that is no larger
/// than its own frame is filled, too.
pub(crate) fn bar(paint: Paint, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let frame = paint.frame().filter(|_| width.min(height) > 2.0 * RIM);
    let (class, extra, inset) = match frame {
        None => ("area", String::new(), 0.0),
        Some(around) => {
            ("line empty", format!(r#"{} stroke-width="{}""#, dashes(around), px(RIM)), RIM / 2.0)
        }
    };
    let inner = |length: f64| px((length - 2.0 * inset).max(0.0));
    format!(
        r#"<rect class="{class} {}"{extra} x="{}" y="{}" width="{}" height="{}"/>"#,
        paint.class(),
        px(x + inset),
        px(y + inset),
        inner(width),
        inner(height)
    )
}

/// A mark of this radius around `(x, y)`.
pub(crate) fn mark(paint: Paint, (x, y): (f64, f64), radius: f64) -> String {
    let class = paint.class();
    let around = || format!(r#"class="line empty {class}" stroke-width="{}""#, px(RIM));
    let circle = |attributes: String, radius: f64| {
        format!(r#"<circle {attributes} cx="{}" cy="{}" r="{}"/>"#, px(x), px(y), px(radius))
    };
    let square = |attributes: String, half: f64| {
        let side = px(2.0 * half);
        format!(
            r#"<rect {attributes} x="{}" y="{}" width="{side}" height="{side}"/>"#,
            px(x - half),
            px(y - half)
        )
    };
    let filled = || format!(r#"class="area {class}""#);
    match paint.mark() {
        Mark::Disc => circle(filled(), radius),
        Mark::Ring => circle(around(), radius - RIM / 2.0),
        Mark::Square => square(filled(), radius * SQUARE),
        Mark::Frame => square(around(), radius * SQUARE - RIM / 2.0),
    }
}

/// Dots in one path; browsers are slow with very long ones.
const MAX_DOTS: usize = 4000;

/// Dots in as few paths as browsers like: an element each would be 10 MB for 100,000 of them.
pub(crate) fn dots(paint: Paint, places: impl Iterator<Item = (f64, f64)>) -> String {
    let dots: Vec<String> = places.map(|(x, y)| format!("M{} {}h0", px(x), px(y))).collect();
    let path = |dots: &[String]| format!(r#"<path class="dot {}" d="{}"/>"#, paint.class(), dots.concat());
    dots.chunks(MAX_DOTS).map(path).collect()
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Start,
    Middle,
    End,
}

/// Where a text stands, and how.
pub(crate) struct Text {
    pub(crate) at: (f64, f64),
    pub(crate) align: Align,
    /// From its place down to the line that the letters stand on, in sizes of the font: not every program knows `dominant-baseline`.
    pub(crate) down: f64,
    /// Font size in pixels.
    pub(crate) size: f64,
    /// Whether it reads upwards.
    pub(crate) is_upright: bool,
}

impl Text {
    /// The text hangs below its place, stands around it, or above it.
    pub(crate) const BELOW: f64 = 0.78;
    pub(crate) const CENTRE: f64 = 0.35;
    pub(crate) const ABOVE: f64 = -0.3;

    /// The words as an element.
    pub(crate) fn element(&self, words: &str) -> String {
        let (x, y, size) = (px(self.at.0), px(self.at.1), self.size);
        let anchor = match self.align {
            Align::Start => "start",
            Align::Middle => "middle",
            Align::End => "end",
        };
        let turn =
            if self.is_upright { format!(r#" transform="rotate(-90 {x} {y})""#) } else { String::new() };
        format!(
            r#"<text class="ink" x="{x}" y="{y}" dy="{:.1}" font-size="{size}" text-anchor="{anchor}"{turn}>{}</text>"#,
            self.down * size,
            escaped(words)
        )
    }
}

/// Text as it stands inside an element.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

/// Width of a text over the size of its font, about: no font is at hand.
pub(crate) fn text_width(text: &str) -> f64 {
    let wide = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ' ' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' => 0.95,
        _ => 0.64,
    };
    text.chars().map(wide).sum()
}

/// A name that is no wider than there is room: both of its ends, which distinguish names.
pub(crate) fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MAX_NAME {
        return name.to_owned();
    }
    let (first, last) = (MAX_NAME / 2, letters.len() - (MAX_NAME - 1) / 2);
    letters[..first].iter().chain(&['…']).chain(&letters[last..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_no_more_digits_than_they_need() {
        assert_eq!([px(12.0), px(12.5), px(12.125), px(0.0), px(-0.5)], ["12", "12.5", "12.12", "0", "-0.5"]);
    }

    #[test]
    fn dots_share_a_path() {
        let places = [(10.0, 5.0), (20.0, 5.0)];
        assert_eq!(
            dots(Paint::of_series(1), places.into_iter()),
            r#"<path class="dot c1" d="M10 5h0M20 5h0"/>"#
        );
        let many = dots(Paint::of_series(1), std::iter::repeat_n(places[0], MAX_DOTS + 1));
        assert_eq!(many.matches("<path").count(), 2);
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(escaped("<img src=x onerror=\"a&b\">"), "&lt;img src=x onerror=&quot;a&amp;b&quot;&gt;");
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(short("write direct"), "write direct");
        let long = short(&format!("first{}last", "x".repeat(100)));
        assert_eq!(long.chars().count(), MAX_NAME);
        assert!(long.starts_with("first") && long.contains('…') && long.ends_with("last"), "{long}");
    }

    #[test]
    fn what_is_empty_is_no_larger_than_what_is_filled() {
        let place = |index| Paint::of_series(index);
        assert_eq!(mark(place(0), (5.0, 5.0), 3.0), r#"<circle class="area c0" cx="5" cy="5" r="3"/>"#);
        assert_eq!(
            mark(place(9), (5.0, 5.0), 3.0),
            r#"<circle class="line empty c0" stroke-width="1.6" cx="5" cy="5" r="2.2"/>"#
        );
        assert_eq!(
            bar(place(1), (2.0, 3.0), (10.0, 6.0)),
            r#"<rect class="area c1" x="2" y="3" width="10" height="6"/>"#
        );
        assert_eq!(
            bar(place(10), (2.0, 3.0), (10.0, 6.0)),
            r#"<rect class="line empty c1" stroke-width="1.6" x="2.8" y="3.8" width="8.4" height="4.4"/>"#
        );
        for small in [(1.0, 6.0), (3.2, 6.0), (10.0, 0.5)] {
            assert_eq!(bar(place(10), (2.0, 3.0), small), bar(place(1), (2.0, 3.0), small), "{small:?}");
        }
    }
}
