//! The colours of figures, in light and in dark. Each has a contrast of at least 4.5 to its background (WCAG 2.1, AA), which a test
//! holds. It draws nothing.

use plotters_backend::BackendColor;

/// The colour of a series on a light and on a dark background.
pub(crate) const SERIES: [(Rgb, Rgb); 9] = [
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
pub(crate) const INK: (Rgb, Rgb) = ((0x33, 0x3c, 0x46), (0xc9, 0xd1, 0xd9));
/// Lines of the grid, which carry no information that the labels do not.
pub(crate) const GRID: (Rgb, Rgb) = ((0xe1, 0xe6, 0xeb), (0x30, 0x38, 0x41));
/// What figures stand on.
pub(crate) const BACKGROUND: (Rgb, Rgb) = ((0xff, 0xff, 0xff), (0x16, 0x1b, 0x22));

/// Red, green and blue.
pub(crate) type Rgb = (u8, u8, u8);

/// The class of an element of this colour: `c3`, `ink`, `grid`.
pub(crate) fn class_of(color: BackendColor) -> String {
    match SERIES.iter().position(|(light, _)| *light == color.rgb) {
        Some(index) => format!("c{index}"),
        None if color.rgb == GRID.0 => "grid".into(),
        None => "ink".into(),
    }
}

/// Rules that give each class its colour: the light ones, or the dark ones.
pub(crate) fn rules(theme: Theme) -> String {
    let of = |pair: (Rgb, Rgb)| match theme {
        Theme::Light => pair.0,
        Theme::Dark => pair.1,
    };
    let series = SERIES.iter().enumerate().map(|(index, pair)| (format!("c{index}"), of(*pair)));
    let others = [("ink".to_owned(), of(INK)), ("grid".to_owned(), of(GRID))];
    let rule = |(class, (r, g, b)): (String, Rgb)| format!(".{class}{{color:#{r:02x}{g:02x}{b:02x}}}");
    series.chain(others).map(rule).collect()
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
    fn a_class_stands_for_one_colour() {
        let color = |rgb| BackendColor { alpha: 1.0, rgb };
        assert_eq!(class_of(color(SERIES[3].0)), "c3");
        assert_eq!(class_of(color(INK.0)), "ink");
        assert_eq!(class_of(color(GRID.0)), "grid");
        let classes = rules(Theme::Dark).matches(".c").count();
        assert_eq!(classes, SERIES.len());
    }
}
