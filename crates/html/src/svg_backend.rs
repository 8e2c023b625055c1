//! A backend of plotters that writes SVG with classes instead of colours, so that one drawing fits a light and a dark page, with
//! eighths of a pixel, and with all dots of a cloud in a few paths: an element each would be 10 MB for 100,000 points.

use crate::palette::Paint;
use crate::shapes::{bar, escaped, line, mark, px, text_width};
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

    fn write(&mut self, element: &str) {
        self.flush_dots();
        self.body.push_str(element);
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
        write!(self.dots.path, "M{} {}h0", px(pixels(x)), px(pixels(y)))
            .expect("writing to a String cannot fail");
        self.dots.count += 1;
        if self.dots.count == MAX_DOTS {
            self.flush_dots();
        }
    }
}

/// Pixels of a coordinate.
fn pixels(coordinate: i32) -> f64 {
    f64::from(coordinate) / f64::from(FINE)
}

fn path_of(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{command}{} {}", px(pixels(x)), px(pixels(y)))
            .expect("writing to a String cannot fail");
    }
    path
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
        self.dot(point, Paint::of_code(color).class());
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
        let at = (pixels(left.min(right)), pixels(top.min(bottom)));
        let size = (pixels((right - left).abs()), pixels((bottom - top).abs()));
        self.write(&bar(Paint::of_code(style.color()), at, size));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done {
        if style.color().alpha > 0.0 {
            let width = pixels(style.stroke_width().try_into().unwrap_or(FINE));
            self.write(&line(Paint::of_code(style.color()), width, &path_of(path)));
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
        let paint = Paint::of_code(style.color());
        if radius <= DOT.unsigned_abs() {
            self.dot(center, paint.class());
            return Ok(());
        }
        let radius = pixels(radius.try_into().unwrap_or(FINE));
        self.write(&mark(paint, (pixels(center.0), pixels(center.1)), radius));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vert: I,
        style: &S,
    ) -> Done {
        let (class, path) = (Paint::of_code(style.color()).class(), path_of(vert));
        self.write(&format!(r#"<path class="area {class}" d="{path}Z"/>"#));
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, (x, y): BackendCoord) -> Done {
        let class = Paint::of_code(style.color()).class();
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
        let (x, y) = (px(pixels(x)), px(pixels(y)));
        let turn = match style.transform() {
            FontTransform::Rotate270 => format!(r#" transform="rotate(-90 {x} {y})""#),
            _ => String::new(),
        };
        let text = escaped(text);
        self.write(&format!(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_share_a_path_and_hidden_ones_are_left_out() {
        let mut body = String::new();
        let mut backend = SvgBackend::new((100, 50), &mut body);
        let color = BackendColor { alpha: 1.0, rgb: Paint::of_series(1).code() };
        for x in [80, 80, 81, 160] {
            backend.draw_circle((x, 40), DOT.unsigned_abs(), &color, true).unwrap();
        }
        backend.present().unwrap();
        assert_eq!(body, r#"<path class="dot c1" d="M10 5h0M20 5h0"/>"#);
    }
}
