//! A table as it is laid out for a page: columns without lines between them. Where it is too wide, the names in its first column are
//! shortened in the middle, so that the figures behind them stay whole; where that is not enough, the columns stand below each other,
//! each part with the names. It knows nothing of what is in it.

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

/// Columns below which long names are abbreviated before they are cut.
const NARROW: usize = 60;

/// Heads and rows, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// Each column but the first: its head, and what stands in it.
    #[cfg(test)]
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let cells = |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(String::as_str).collect();
        self.heads.iter().enumerate().skip(1).map(move |(at, head)| (head.as_str(), cells(at)))
    }

    /// The lines, as far as possible within the width.
    pub(crate) fn lines(&self, width: usize, charset: Charset) -> Vec<String> {
        if charset == Charset::Ascii {
            let plain = |texts: &Vec<String>| texts.iter().map(|text| ascii(text)).collect();
            let (heads, rows) = (plain(&self.heads), self.rows.iter().map(plain).collect());
            return Self { heads, rows, words: self.words.clone() }.lines_within(width, "...");
        }
        self.lines_within(width, "…")
    }

    /// The same of texts in the characters of the page; `dots` stand for what was left out.
    fn lines_within(&self, width: usize, dots: &str) -> Vec<String> {
        let lines = layout(&self.heads, &self.rows, &self.words);
        let widest = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        if widest <= width {
            return lines;
        }
        if width < NARROW {
            let in_fios_words = self.in_fios_words();
            if in_fios_words != *self {
                return in_fios_words.lines_within(width, dots);
            }
        }
        let name = self.rows.iter().filter_map(|row| row.first()).map(|name| name.width()).max().unwrap_or(0);
        // Words at the end that have no room even so are cut there, and cost no name more than the figures need.
        let at_end = |excess: &usize| name >= *excess + MIN_NAME;
        let words = self.words_at_end();
        let excesses = [widest - width, (widest - width).saturating_sub(words)];
        let least =
            name.saturating_sub(excesses.into_iter().find(at_end).unwrap_or(excesses[1])).max(MIN_NAME);
        let mut rows = self.rows.clone();
        for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shortened_with(name, least, dots);
        }
        let lines = layout(&self.heads, &rows, &self.words);
        let widest = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        // Words that are longer than a line are cut wherever they stand.
        let are_long_words = words > 0 && words + MIN_NAME + INDENT.len() > width;
        if widest <= width || (are_long_words && widest - words <= width) {
            lines
        } else {
            self.in_parts(width, dots)
        }
    }

    /// With the names of tests in fio's words, so that reads and writes stay apart where long names are cut.
    fn in_fios_words(&self) -> Self {
        let mut table = self.clone();
        for name in table.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = name.replace("sequential", "seq").replace("random", "rand");
        }
        table
    }

    /// The columns in parts that fit, below each other; every part begins with the names, and with their units where these have a column.
    fn in_parts(&self, width: usize, dots: &str) -> Vec<String> {
        let has_units = self.words.contains(&1) && self.heads.get(1).is_some_and(String::is_empty);
        let first = if has_units { 2 } else { 1 };
        let column_width = |column: usize| {
            let texts = self.rows.iter().filter_map(|row| row.get(column)).chain(self.heads.get(column));
            texts.flat_map(|text| text.lines()).map(unicode_width::UnicodeWidthStr::width).max().unwrap_or(0)
        };
        let units = if has_units { usize::from(GAP) + column_width(1) } else { 0 };
        let name = column_width(0).min(width / 2 - INDENT.len());
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut used = width;
        for column in first..self.heads.len() {
            let needed = usize::from(GAP) + column_width(column);
            match parts.last_mut() {
                Some(part) if used + needed <= width => part.push(column),
                _ => {
                    parts.push(vec![column]);
                    used = INDENT.len() + name + units;
                }
            }
            used += needed;
        }
        parts.iter().flat_map(|columns| self.part(columns, first, (name, dots))).collect()
    }

    /// Some columns behind the first ones.
    fn part(&self, columns: &[usize], first: usize, (name, dots): (usize, &str)) -> Vec<String> {
        let shown: Vec<usize> = (1..first).chain(columns.iter().copied()).collect();
        let pick = |texts: &Vec<String>| -> Vec<String> {
            let named = texts.first().map(|text| shortened_with(text, name, dots));
            let others = shown.iter().map(|&column| texts.get(column).cloned().unwrap_or_default());
            named.into_iter().chain(others).collect()
        };
        // A row that only says something of the one above it stands once.
        let is_first = columns.first() == Some(&first);
        let has_figures = |row: &&Vec<String>| {
            is_first || columns.iter().any(|&column| row.get(column).is_some_and(|text| !text.is_empty()))
        };
        let rows: Vec<Vec<String>> = self.rows.iter().filter(has_figures).map(pick).collect();
        let places = shown.iter().enumerate().filter(|(_, column)| self.words.contains(column));
        let words: Vec<usize> = places.map(|(place, _)| place + 1).collect();
        layout(&pick(&self.heads), &rows, &words)
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
    fn columns_that_do_not_fit_stand_below_with_the_names() {
        let rows = [
            vec!["64 KiB".into(), "67.2 (22.4)".into(), "67.0 (7.44)".into(), "0.37x".into()],
            vec!["1 MiB".into(), "67.2 (22.4)".into(), "67.0 (7.44)".into(), "0.37x".into()],
        ];
        let heads = ["read", "3 streams", "9 streams", "speed-up"];
        let lines = Table::new(&heads, &rows, &[]).lines(40, Charset::Unicode);
        assert_eq!(
            lines,
            [
                "  read      3 streams    9 streams",
                "  64 KiB  67.2 (22.4)  67.0 (7.44)",
                "  1 MiB   67.2 (22.4)  67.0 (7.44)",
                "  read    speed-up",
                "  64 KiB     0.37x",
                "  1 MiB      0.37x",
            ]
        );
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
