//! The colours of figures, in light and in dark, and what else distinguishes series where there are more of them than colours: dashes
//! and the shape of marks. Each colour has a contrast of at least 4.5 to its background (WCAG 2.1, AA), which a test holds. It draws
//! nothing.

use crate::figure::{Look, Plot, Series};

/// The colour of a series on a light and on a dark background.
const SERIES: [(Rgb, Rgb); 9] = [
    ((0x1a, 0x62, 0xa8), (0x6d, 0xb3, 0xf2)),
    ((0xad, 0x4b, 0x00), (0xf0, 0xa3, 0x5e)),
    ((0x14, 0x71, 0x43), (0x5f, 0xcf, 0x95)),
    ((0x7a, 0x46, 0xb8), (0xbb, 0x9d, 0xf2)),
    ((0xb4, 0x28, 0x3a), (0xf4, 0x8c, 0x94)),
    ((0x0b, 0x6e, 0x7c), (0x5c, 0xc9, 0xd6)),
    ((0x75, 0x56, 0x1f), (0xd4, 0xb1, 0x7a)),
    ((0xa3, 0x2c, 0x83), (0xec, 0x8f, 0xd0)),
    ((0x54, 0x5f, 0x6b), (0xa9, 0xb4, 0xbf)),
];
/// Text and axes.
const INK: (Rgb, Rgb) = ((0x33, 0x3c, 0x46), (0xc9, 0xd1, 0xd9));
/// Lines of the grid, which carry no information that the labels do not.
const GRID: (Rgb, Rgb) = ((0xe1, 0xe6, 0xeb), (0x30, 0x38, 0x41));
/// What figures stand on.
pub(crate) const BACKGROUND: (Rgb, Rgb) = ((0xff, 0xff, 0xff), (0x16, 0x1b, 0x22));

/// How many series have a colour of their own.
pub(crate) const COLORS: usize = SERIES.len();
/// Lengths of dashes and gaps in pixels. The first series have none; each time all colours were used, the next ones begin.
const DASHES: [&str; 4] = ["", "8 4", "2 3", "10 3 2 3"];
/// Shapes of marks, which change with the dashes, and once more when all dashes were used.
const MARKS: [Mark; 4] = [Mark::Disc, Mark::Ring, Mark::Square, Mark::Frame];
/// Lines that differ from each other: nine colours, each with every pair of a dash and a mark.
const STYLES: usize = DASHES.len() * MARKS.len();

/// Red, green and blue.
pub(crate) type Rgb = (u8, u8, u8);

/// The shape that stands on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    /// A disc that is empty.
    Ring,
    Square,
    /// A square that is empty.
    Frame,
}

/// What an element is painted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// A colour, and which dash and mark go with it: 0 for the first series, which need no more than a colour.
    Series {
        color: usize,
        style: usize,
    },
    Ink,
    Grid,
    /// What figures stand on: around a line that crosses a bar.
    Ground,
}

impl Paint {
    /// That of a series: of its own look, or of its place in the legend.
    pub(crate) fn of(plot: &Plot, series: &Series) -> Self {
        let Some(Look { color, style }) = series.look else { return Self::of_series(plot.place_of(series)) };
        // Beyond the last colour the first come again with the styles that reads and writes of one result leave.
        Self::Series { color: color % COLORS, style: (style + 2 * (color / COLORS)) % STYLES }
    }

    /// That of the series at this place of the legend.
    pub(crate) fn of_series(place: usize) -> Self {
        Self::Series { color: place % COLORS, style: place / COLORS % STYLES }
    }

    /// The same colour without dashes.
    pub(crate) fn solid(self) -> Self {
        match self {
            Self::Series { color, .. } => Self::Series { color, style: 0 },
            other => other,
        }
    }

    /// The class of an element of this colour: `c3`, `ink`, `grid`, `ground`.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Series { color, .. } => format!("c{color}"),
            Self::Ink => "ink".into(),
            Self::Grid => "grid".into(),
            Self::Ground => "ground".into(),
        }
    }

    fn style(self) -> usize {
        match self {
            Self::Series { style, .. } => style,
            Self::Ink | Self::Grid | Self::Ground => 0,
        }
    }

    /// The dashes of a line; empty for none.
    pub(crate) fn dashes(self) -> &'static str {
        DASHES[self.style() % DASHES.len()]
    }

    /// The shape of its marks.
    pub(crate) fn mark(self) -> Mark {
        MARKS[(self.style() + self.style() / DASHES.len()) % MARKS.len()]
    }

    /// The dashes around an empty bar; `None` for a filled one.
    pub(crate) fn frame(self) -> Option<&'static str> {
        (self.style() > 0).then(|| DASHES[(self.style() - 1) % DASHES.len()])
    }
}

/// Rules that give each class its colour: the light ones, or the dark ones.
pub(crate) fn rules(theme: Theme) -> String {
    let colour = |pair: (Rgb, Rgb)| match theme {
        Theme::Light => pair.0,
        Theme::Dark => pair.1,
    };
    let series = SERIES.iter().enumerate().map(|(index, pair)| (format!("c{index}"), colour(*pair)));
    let others = [
        ("ink".to_owned(), colour(INK)),
        ("grid".to_owned(), colour(GRID)),
        ("ground".to_owned(), colour(BACKGROUND)),
    ];
    let rule = |(class, rgb): (String, Rgb)| format!(".{class}{{color:{}}}", hex(rgb));
    // What is empty covers the lines below it.
    let empty = format!(".empty{{fill:{}}}", hex(colour(BACKGROUND)));
    series.chain(others).map(rule).chain([empty]).collect()
}

/// `#1a62a8`.
pub(crate) fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Which of the two colours is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Relative luminance (WCAG 2.1).
    fn luminance((r, g, b): Rgb) -> f64 {
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (a, b) = (luminance(one), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_can_be_read_on_its_background() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
        for (light, dark) in SERIES.into_iter().chain([INK]) {
            assert!(contrast(light, BACKGROUND.0) >= 4.5, "{light:?}");
            assert!(contrast(dark, BACKGROUND.1) >= 4.5, "{dark:?}");
        }
    }

    #[test]
    fn every_colour_is_a_class() {
        assert_eq!(Paint::of_series(3).class(), "c3");
        assert_eq!(rules(Theme::Dark).matches(".c").count(), COLORS);
    }

    #[test]
    fn lines_differ_in_colour_dash_or_mark_and_the_first_ones_in_colour_alone() {
        let look = |place| {
            let paint = Paint::of_series(place);
            (paint.class(), paint.dashes(), paint.mark() as u8)
        };
        let all: HashSet<_> = (0..COLORS * STYLES).map(look).collect();
        assert_eq!(all.len(), 144);
        assert!((0..COLORS).map(look).all(|(_, dashes, mark)| (dashes, mark) == ("", Mark::Disc as u8)));
        // Lines of many values have no marks: dashes and colours alone distinguish 36.
        let lines: HashSet<_> = (0..36).map(look).map(|(class, dashes, _)| (class, dashes)).collect();
        assert_eq!(lines.len(), 36);
        let bars: HashSet<_> =
            (0..45).map(Paint::of_series).map(|paint| (paint.class(), paint.frame())).collect();
        assert_eq!(bars.len(), 45);
        assert_eq!(Paint::of_series(12).solid(), Paint::of_series(3));
    }
}
