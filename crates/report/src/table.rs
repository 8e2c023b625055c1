//! A table as it is laid out for a page: columns without lines between them. Where it is too wide, the names in its first column are
//! shortened in the middle, so that the figures behind them stay whole. It knows nothing of what is in it.

use crate::style::{Charset, ascii};
use comfy_table::{CellAlignment, ContentArrangement, presets};
use rdsk_units::printable;
use unicode_width::UnicodeWidthStr as _;

/// Columns of a target's name.
const NAME_COLUMNS: usize = 16;

/// Before every line.
const INDENT: &str = "  ";
/// Between two columns.
const GAP: u16 = 2;
/// A name with fewer columns shows nothing.
const MIN_NAME: usize = 12;

/// Heads and rows, safe to show.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns beside the first that hold words.
    words: Vec<usize>,
}

impl Table {
    pub(crate) fn new(heads: &[impl AsRef<str>], rows: &[Vec<String>], words: &[usize]) -> Self {
        Self {
            heads: heads.iter().map(|head| head.as_ref().to_owned()).collect(),
            rows: rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect(),
            words: words.to_vec(),
        }
    }

    /// The lines, as far as possible within the width.
    pub(crate) fn lines(&self, width: usize, charset: Charset) -> Vec<String> {
        let lines = layout(&self.heads, &self.rows, &self.words);
        let shown = |line: &String| match charset {
            Charset::Unicode => line.width(),
            Charset::Ascii => ascii(line).width(),
        };
        let widest = lines.iter().map(shown).max().unwrap_or(0);
        if widest <= width {
            return lines;
        }
        let name = self.rows.iter().filter_map(|row| row.first()).map(|name| name.width()).max().unwrap_or(0);
        // Words at the end that have no room even so are cut there, and cost no name more than the figures need.
        let at_end = |excess: &usize| name >= *excess + MIN_NAME;
        let words = self.words_at_end();
        let excesses = [widest - width, (widest - width).saturating_sub(words)];
        let least =
            name.saturating_sub(excesses.into_iter().find(at_end).unwrap_or(excesses[1])).max(MIN_NAME);
        let dots = if charset == Charset::Ascii { "..." } else { "…" };
        let mut rows = self.rows.clone();
        for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shortened_with(name, least, dots);
        }
        layout(&self.heads, &rows, &self.words)
    }

    /// The width of the last column and the space before it, if it holds words.
    fn words_at_end(&self) -> usize {
        let last = self.heads.len().saturating_sub(1);
        if !self.words.contains(&last) {
            return 0;
        }
        let widest = self.rows.iter().filter_map(|row| row.get(last)).map(|cell| cell.width()).max();
        widest.unwrap_or(0) + usize::from(GAP)
    }
}

fn layout(heads: &[String], rows: &[Vec<String>], words: &[usize]) -> Vec<String> {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_words = index == 0 || words.contains(&index);
        column.set_padding((0, if index + 1 == heads.len() { 0 } else { GAP }));
        column.set_cell_alignment(if is_words { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.to_string().lines().map(|line| format!("{INDENT}{}", line.trim_end())).collect()
}

/// A name in so many columns, with its end, which holds the size and distinguishes it from others.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    shortened_with(name, most, "…")
}

fn shortened_with(name: &str, most: usize, dots: &str) -> String {
    use unicode_width::UnicodeWidthChar as _;
    if name.width() <= most {
        return name.to_owned();
    }
    let room = most.saturating_sub(dots.width());
    let kept = |letters: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let fits = |letter: &char| {
            used += letter.width().unwrap_or(0);
            used <= room
        };
        letters.take_while(fits).collect::<Vec<char>>()
    };
    let start = kept(&mut name.chars(), room.div_ceil(2));
    let end = kept(&mut name.chars().rev(), room / 2);
    format!("{}{dots}{}", String::from_iter(start), String::from_iter(end.iter().rev()))
}

/// The end of a target's name, which distinguishes targets better than the start.
pub(crate) fn end_of(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME_COLUMNS {
        return name.into();
    }
    format!("…{}", name.chars().skip(length + 1 - NAME_COLUMNS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_size() {
        assert_eq!(shortened("align/write/uncached-buffered/4096+27", 28), "align/write/un…fered/4096+27");
        assert_eq!(shortened("paths/read/direct", 28), "paths/read/direct");
        assert_eq!(shortened("ディスクのなまえ", 8), "ディ…え");
    }

    #[test]
    fn names_are_shortened_before_figures_are_cut() {
        let rows = [vec!["n".repeat(90), "123,456".into(), "device".into()]];
        for (charset, dots) in [(Charset::Unicode, "…"), (Charset::Ascii, "...")] {
            let lines = Table::new(&["", "MiB/s", "verdict"], &rows, &[2]).lines(80, charset);
            assert!(lines[1].width() <= 80 && lines[1].ends_with("n  123,456  device"), "{lines:?}");
            assert!(lines[1].contains(dots), "{lines:?}");
        }
    }

    #[test]
    fn words_without_room_cost_no_name_more_than_the_figures_need() {
        let rows = [vec!["read/4096".into(), "123,456".into(), "w".repeat(200)]];
        let lines = Table::new(&["", "MiB/s", "what"], &rows, &[2]).lines(80, Charset::Unicode);
        assert!(lines[1].starts_with("  read/4096  123,456  www"), "{lines:?}");
        let rows = [vec!["n".repeat(90), "123,456".into(), "w".repeat(200)]];
        let lines = Table::new(&["", "MiB/s", "what"], &rows, &[2]).lines(80, Charset::Unicode);
        assert!(lines[1].find("123,456").is_some_and(|place| place < 80), "{lines:?}");
    }
}
