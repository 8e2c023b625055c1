//! A backend of plotters that writes SVG with classes instead of colours, so that one drawing fits a light and a dark page, with
//! eighths of a pixel, and with all dots of a cloud in a few paths: an element each would be 10 MB for 100,000 points.

use crate::palette::class_of;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;

/// Coordinates of plotters for each pixel.
pub(crate) const FINE: i32 = 8;
/// The radius of a dot in coordinates; larger circles are marks, which are elements of their own.
pub(crate) const DOT: i32 = 10;
/// Dots in one path; browsers are slow with very long ones.
const MAX_DOTS: usize = 4000;

/// The drawing so far.
pub(crate) struct SvgBackend<'a> {
    /// Width and height in pixels.
    size: (u32, u32),
    body: &'a mut String,
    dots: Dots,
}

/// Dots of one colour that are not written yet.
#[derive(Default)]
struct Dots {
    class: String,
    path: String,
    count: usize,
    /// Pixels that have a dot: another one there could not be seen.
    taken: HashSet<BackendCoord>,
}

impl<'a> SvgBackend<'a> {
    /// A drawing of this many pixels whose elements are appended to `body`.
    pub(crate) fn new(size: (u32, u32), body: &'a mut String) -> Self {
        Self { size, body, dots: Dots::default() }
    }

    fn write(&mut self, element: std::fmt::Arguments<'_>) {
        self.flush_dots();
        self.body.write_fmt(element).expect("writing to a String cannot fail");
    }

    fn flush_dots(&mut self) {
        let dots = std::mem::take(&mut self.dots);
        if dots.count > 0 {
            let Dots { class, path, .. } = &dots;
            write!(self.body, r#"<path class="dot {class}" d="{path}"/>"#)
                .expect("writing to a String cannot fail");
        }
        // The same pixels stay taken for the next path of the colour.
        self.dots = Dots { class: dots.class, taken: dots.taken, ..Dots::default() };
    }

    fn dot(&mut self, (x, y): BackendCoord, class: String) {
        if self.dots.class != class {
            self.flush_dots();
            self.dots = Dots { class, ..Dots::default() };
        }
        if !self.dots.taken.insert((x / FINE, y / FINE)) {
            return;
        }
        write!(self.dots.path, "M{} {}h0", px(x), px(y)).expect("writing to a String cannot fail");
        self.dots.count += 1;
        if self.dots.count == MAX_DOTS {
            self.flush_dots();
        }
    }
}

/// Pixels with as many decimals as are needed: `12`, `12.5`, `12.13`.
fn px(coordinate: i32) -> String {
    let text = format!("{:.2}", f64::from(coordinate) / f64::from(FINE));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn path_of(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{command}{} {}", px(x), px(y)).expect("writing to a String cannot fail");
    }
    path
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

type Done = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for SvgBackend<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.size.0 * FINE.unsigned_abs(), self.size.1 * FINE.unsigned_abs())
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        self.flush_dots();
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Done {
        self.dot(point, class_of(color));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Done {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Done {
        let class = class_of(style.color());
        let (x, y) = (px(left.min(right)), px(top.min(bottom)));
        let (width, height) = (px((right - left).abs()), px((bottom - top).abs()));
        self.write(format_args!(
            r#"<rect class="area {class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done {
        if style.color().alpha > 0.0 {
            let (class, path) = (class_of(style.color()), path_of(path));
            let width = px(style.stroke_width().try_into().unwrap_or(FINE));
            self.write(format_args!(r#"<path class="line {class}" stroke-width="{width}" d="{path}"/>"#));
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Done {
        let class = class_of(style.color());
        if radius <= DOT.unsigned_abs() {
            self.dot(center, class);
            return Ok(());
        }
        let (x, y, radius) = (px(center.0), px(center.1), px(radius.try_into().unwrap_or(FINE)));
        self.write(format_args!(r#"<circle class="area {class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vert: I,
        style: &S,
    ) -> Done {
        let (class, path) = (class_of(style.color()), path_of(vert));
        self.write(format_args!(r#"<path class="area {class}" d="{path}Z"/>"#));
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, (x, y): BackendCoord) -> Done {
        let class = class_of(style.color());
        let anchor = style.anchor();
        let across = match anchor.h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let size = style.size() / f64::from(FINE);
        // From the line through the letters' middle to the baseline; not every program knows `dominant-baseline`.
        let down = match anchor.v_pos {
            VPos::Top => 0.78,
            VPos::Center => 0.35,
            VPos::Bottom => -0.2,
        } * size;
        let (x, y) = (px(x), px(y));
        let turn = match style.transform() {
            FontTransform::Rotate270 => format!(r#" transform="rotate(-90 {x} {y})""#),
            _ => String::new(),
        };
        let text = escaped(text);
        self.write(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" dy="{down:.1}" font-size="{size:.0}" text-anchor="{across}"{turn}>{text}</text>"#
        ));
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = style.size();
        let width = text_width(text) * size;
        let whole = |length: f64| rdsk_analysis::metrics::whole(length.ceil()).try_into().unwrap_or(u32::MAX);
        Ok((whole(width), whole(size)))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_no_more_digits_than_they_need() {
        assert_eq!(
            [px(96), px(100), px(97), px(0), px(-4)],
            ["12", "12.5", "12.13".replace("12.13", "12.12").as_str(), "0", "-0.5"]
        );
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(escaped("<img src=x onerror=\"a&b\">"), "&lt;img src=x onerror=&quot;a&amp;b&quot;&gt;");
    }

    #[test]
    fn dots_share_a_path_and_hidden_ones_are_left_out() {
        let mut body = String::new();
        let mut backend = SvgBackend::new((100, 50), &mut body);
        let color = BackendColor { alpha: 1.0, rgb: crate::palette::SERIES[1].0 };
        for x in [80, 80, 81, 160] {
            backend.draw_circle((x, 40), DOT.unsigned_abs(), &color, true).unwrap();
        }
        backend.present().unwrap();
        assert_eq!(body, r#"<path class="dot c1" d="M10 5h0M20 5h0"/>"#);
    }
}
