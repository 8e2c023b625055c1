//! An SVG figure as PNG, with the fonts of this machine. It draws nothing itself.

use rdsk_model::{Problem, ProblemKind};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::Arc;

/// Pixels of the file for each pixel of the figure: sharp on paper and on dense screens.
const SCALE: f32 = 2.0;
/// Fonts that look as the page does, the best first.
const FAMILIES: [&str; 4] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Arial"];

/// The fonts of this machine.
///
/// # Errors
/// When there is none: a figure without its text says nothing.
pub(super) fn fonts() -> Result<Arc<fontdb::Database>, Problem> {
    let mut fonts = fontdb::Database::new();
    fonts.load_system_fonts();
    let is_there =
        |name: &&str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
    let family = FAMILIES.iter().find(|name| is_there(name)).map(ToString::to_string);
    let any = || fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
    let Some(family) = family.or_else(any) else {
        return Err(Problem::new(
            ProblemKind::Refused,
            "no-font",
            "this machine has no font for the text of a PNG figure",
            "install one (apt-get install fonts-dejavu-core), or write --svg",
        ));
    };
    fonts.set_sans_serif_family(family);
    Ok(Arc::new(fonts))
}

/// The figure as PNG.
///
/// # Errors
/// When it is too large for memory.
pub(super) fn png(svg: &str, fonts: &Arc<fontdb::Database>) -> Result<Vec<u8>, Problem> {
    let options = Options { fontdb: Arc::clone(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| failed(&"it has no size"))?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| failed(&"it is too large"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(
        ProblemKind::Io,
        "no-png",
        format!("a figure cannot be made a PNG: {error}"),
        "write --svg, which needs no pixels",
    )
}
