//! One or several Records as a page for a browser, and their figures as files. A figure is data first ([`Figure`], derived from the
//! Analysis) and drawn second; the page is one file that loads nothing from elsewhere. It reads nothing but the Records, measures
//! nothing and writes no file.

mod axis;
mod draw;
mod figure;
mod legend;
mod page;
mod palette;
mod questions;
mod shapes;
mod verdict;

pub use draw::svg;
pub use figure::{Axis, Drawing, Figure, Look, Plot, Point, Scale, Series, Shape, Table, Tick};
pub use page::{FIRST_BYTES, page};
pub use questions::{Section, Subject, sections};

#[cfg(test)]
mod tests;
