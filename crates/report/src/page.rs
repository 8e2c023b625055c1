//! A page under construction: lines, wrapped sentences, tables. The only place where untrusted text is made safe, lines
//! are cut to the width, and colour is put on. It knows nothing of what is drawn.

use crate::style::{Charset, Color, Style, ascii};
use crate::table::Table;
use rdsk_units::printable;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns that tables and charts are laid out for.
pub(crate) const WIDTH: usize = 80;
/// Longer lines are hard to read, however wide the terminal.
const MAX_WIDTH: usize = 120;
/// Narrower than this nothing can be drawn; the terminal wraps.
const MIN_WIDTH: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Heading,
    Warning,
    Error,
}

#[derive(Clone, Debug)]
enum Item {
    Line(Tone, String),
    /// A sentence, wrapped at render time; the first line starts with `lead`, the others are indented as far.
    Sentence {
        tone: Tone,
        lead: String,
        text: String,
    },
    /// The first of several wordings that fits into so many lines; the last one, cut, where none does.
    Wordings {
        tone: Tone,
        lead: String,
        texts: Vec<String>,
        max_lines: usize,
    },
    Table(Table),
    Bars(Vec<Bar>),
}

/// A name, a figure with its unit, and a bar as long as its share of the longest one.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) figure: String,
    /// 0 to 1.
    pub(crate) share: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    items: Vec<Item>,
}

impl Page {
    /// An empty line, unless there is one already or nothing above it.
    pub(crate) fn blank(&mut self) {
        let is_blank = matches!(self.items.last(), Some(Item::Line(_, line)) if line.is_empty());
        if !self.items.is_empty() && !is_blank {
            self.items.push(Item::Line(Tone::Plain, String::new()));
        }
    }

    /// A heading with an empty line before it.
    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blank();
        self.items.push(Item::Line(Tone::Heading, text.into()));
    }

    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.items.push(Item::Line(Tone::Plain, text.into()));
    }

    /// A sentence behind a lead such as `  why: `.
    pub(crate) fn sentence(&mut self, tone: Tone, lead: impl Into<String>, text: impl Into<String>) {
        self.items.push(Item::Sentence { tone, lead: lead.into(), text: text.into() });
    }

    /// A sentence in so many lines at most: the first of its wordings, the longest before the shortest, that fits.
    pub(crate) fn wordings(
        &mut self,
        tone: Tone,
        lead: impl Into<String>,
        texts: Vec<String>,
        max_lines: usize,
    ) {
        self.items.push(Item::Wordings { tone, lead: lead.into(), texts, max_lines });
    }

    /// A table without lines, two columns in: the first column left, the others right-aligned. A head may have several
    /// lines.
    pub(crate) fn table(&mut self, heads: &[impl AsRef<str>], rows: &[Vec<String>]) {
        self.table_with(heads, rows, &[]);
    }

    /// As [`Page::table`], with further columns that are left-aligned because they hold words. Where it is too wide for the page, the
    /// names of the first column are shortened before a figure is cut.
    pub(crate) fn table_with(&mut self, heads: &[impl AsRef<str>], rows: &[Vec<String>], words: &[usize]) {
        self.items.push(Item::Table(Table::new(heads, rows, words)));
    }

    /// Bars below each other, two columns in, as long as the page has room for.
    pub(crate) fn bars(&mut self, bars: Vec<Bar>) {
        self.items.push(Item::Bars(bars));
    }

    /// The tables, each with the heading and the line above it.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<(String, &Table)> {
        let (mut heading, mut above) = ("", "");
        let mut tables = Vec::new();
        for item in &self.items {
            match item {
                Item::Line(Tone::Heading, text) => (heading, above) = (text, ""),
                Item::Line(_, text) | Item::Sentence { text, .. } => above = text,
                Item::Table(table) => tables.push((format!("{heading} {above}"), table)),
                _ => {}
            }
        }
        tables
    }

    pub(crate) fn render(&self, style: Style) -> String {
        let width = width(style);
        let safe = |text: &str| safe(text, style.charset);
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Line(Tone::Heading, line) if safe(line).width() > width => {
                    for line in wrap("", &safe(line), width) {
                        push(&mut text, Tone::Heading, &line, width, style);
                    }
                }
                Item::Line(tone, line) => push(&mut text, *tone, &safe(line), width, style),
                Item::Sentence { tone, lead, text: words } => {
                    for line in wrap(&safe(lead), &safe(words), width) {
                        push(&mut text, *tone, &line, width, style);
                    }
                }
                Item::Table(table) => {
                    for line in table.lines(width, style.charset) {
                        push(&mut text, Tone::Plain, &safe(&line), width, style);
                    }
                }
                Item::Bars(bars) => {
                    for line in bar_lines(bars, width) {
                        push(&mut text, Tone::Plain, &safe(&line), width, style);
                    }
                }
                Item::Wordings { tone, lead, texts, max_lines } => {
                    let texts: Vec<String> = texts.iter().map(|text| with_units(&safe(text))).collect();
                    for line in first_fitting(&safe(lead), &texts, *max_lines, (width, dots(style))) {
                        push(&mut text, *tone, &line, width, style);
                    }
                }
            }
        }
        text
    }
}

/// The longest bar on a page of 80 columns.
const BAR_COLUMNS: usize = 28;

/// `  0–12 GiB   57.0 MiB/s  ████████`: names left, figures right, then the bars.
fn bar_lines(bars: &[Bar], width: usize) -> Vec<String> {
    let widest = |text: fn(&Bar) -> &String| bars.iter().map(|bar| text(bar).width()).max().unwrap_or(0);
    let (name, figure) = (widest(|bar| &bar.name), widest(|bar| &bar.figure));
    let room = width.saturating_sub(2 + name + 2 + figure + 2).min(BAR_COLUMNS);
    let line = |bar: &Bar| {
        let pad = |text: &str, columns: usize| " ".repeat(columns.saturating_sub(text.width()));
        let length = columns_of(bar.share, room);
        let (behind_name, before_figure) = (pad(&bar.name, name), pad(&bar.figure, figure));
        format!("  {}{behind_name}  {before_figure}{}  {}", bar.name, bar.figure, "█".repeat(length))
    };
    bars.iter().map(line).collect()
}

/// So many of the columns; one at least, so that a slow zone is no missing one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 times a few dozen"
)]
fn columns_of(share: f64, columns: usize) -> usize {
    ((share.clamp(0.0, 1.0) * columns as f64).round() as usize).clamp(columns.min(1), columns)
}

/// Untrusted text made safe, in the characters of the page: what they are decides where lines end.
fn safe(text: &str, charset: Charset) -> String {
    let text = printable(text);
    match charset {
        Charset::Unicode => text.to_string(),
        Charset::Ascii => ascii(&text),
    }
}

/// The columns that a page uses.
pub(crate) fn width(style: Style) -> usize {
    style.width.clamp(MIN_WIDTH, MAX_WIDTH)
}

fn first_fitting(
    lead: &str,
    texts: &[String],
    max_lines: usize,
    (width, dots): (usize, &str),
) -> Vec<String> {
    let mut shown = Vec::new();
    for text in texts {
        shown = wrap(lead, text, width);
        if shown.len() <= max_lines {
            return shown;
        }
    }
    shown.truncate(max_lines.max(1));
    if let Some(last) = shown.last_mut() {
        *last = cut_with(&format!("{last} {dots}"), width, dots);
    }
    shown
}

fn push(text: &mut String, tone: Tone, line: &str, width: usize, style: Style) {
    let line = line.trim_end();
    let cut = cut_with(line, width, dots(style));
    let look = match (style.color, tone) {
        (Color::Never, _) | (_, Tone::Plain) => anstyle::Style::new(),
        (Color::Always, Tone::Heading) => anstyle::Style::new().bold(),
        (Color::Always, Tone::Warning) => anstyle::AnsiColor::Yellow.on_default(),
        (Color::Always, Tone::Error) => anstyle::AnsiColor::Red.on_default(),
    };
    let look = if cut.is_empty() { anstyle::Style::new() } else { look };
    text.push_str(&format!("{look}{cut}{look:#}\n"));
}

/// What stands for the rest of a line that was cut.
const fn dots(style: Style) -> &'static str {
    match style.charset {
        Charset::Unicode => "…",
        Charset::Ascii => "...",
    }
}

/// The line, or as much of it as fits, with `…` for the rest.
pub(crate) fn cut(line: &str, width: usize) -> String {
    cut_with(line, width, "…")
}

fn cut_with(line: &str, width: usize, dots: &str) -> String {
    if line.width() <= width {
        return line.into();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used + dots.width() > width {
            break;
        }
        kept.push(c);
    }
    kept.push_str(dots);
    kept
}

/// The text with a space that breaks no line between a figure and its unit.
fn with_units(text: &str) -> String {
    const UNITS: [&str; 13] =
        ["B", "KiB", "MiB", "GiB", "TiB", "KiB/s", "MiB/s", "GiB/s", "ns", "µs", "us", "ms", "s"];
    let mut joined = String::with_capacity(text.len());
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        let follows_figure = joined.ends_with(|c: char| c.is_ascii_digit());
        if !joined.is_empty() {
            joined.push(if is_unit && follows_figure { '\u{a0}' } else { ' ' });
        }
        joined.push_str(word);
    }
    joined
}

/// Words filled into lines of the width. A word longer than a line is broken.
fn wrap(lead: &str, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(lead.width().min(width / 2));
    let mut lines = Vec::new();
    let mut line = lead.to_owned();
    let mut is_empty = true;
    for word in
        text.split(' ').filter(|word| !word.is_empty()).flat_map(|word| pieces(word, width - indent.len()))
    {
        if !is_empty && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    lines.push(line);
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// A word in pieces that fit a line each.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width {
            pieces.push(String::new());
            used = 0;
        }
        used += columns;
        pieces.last_mut().expect("the list starts with one piece and only grows").push(c);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(page: &Page, width: usize) -> String {
        page.render(Style { width, ..Style::default() })
    }

    #[test]
    fn sentences_wrap_under_their_lead() {
        let mut page = Page::default();
        page.sentence(Tone::Plain, "  why: ", "one two three four five six seven eight nine ten");
        assert_eq!(render(&page, 40), "  why: one two three four five six seven\n       eight nine ten\n");
    }

    #[test]
    fn bars_are_as_long_as_there_is_room() {
        let bar =
            |name: &str, figure: &str, share: f64| Bar { name: name.into(), figure: figure.into(), share };
        let mut page = Page::default();
        page.bars(vec![bar("0–12 GiB", "57.0 MiB/s", 1.0), bar("12–74.5 GiB", "28.5 MiB/s", 0.5)]);
        let text = render(&page, 40);
        assert_eq!(text, "  0–12 GiB     57.0 MiB/s  █████████████\n  12–74.5 GiB  28.5 MiB/s  ███████\n");
        assert_eq!(render(&page, 80).lines().next().unwrap().matches('█').count(), BAR_COLUMNS);
        let ascii = page.render(Style { charset: Charset::Ascii, ..Style::default() });
        assert!(ascii.is_ascii() && ascii.contains("##"), "{ascii}");
    }

    #[test]
    fn a_unit_stays_with_its_figure() {
        let mut page = Page::default();
        page.sentence(Tone::Plain, "", "the intervals overlap widely here, ±67.6% each");
        assert_eq!(render(&page, 40), "the intervals overlap widely here,\n±67.6% each\n");
    }

    #[test]
    fn the_first_wording_that_fits_is_taken_and_the_last_is_cut() {
        let texts = || vec!["one two ".repeat(12), "three four ".repeat(8), "five".into()];
        let drawn = |texts: Vec<String>, max_lines| {
            let mut page = Page::default();
            page.wordings(Tone::Plain, "1 ", texts, max_lines);
            render(&page, 40)
        };
        assert!(drawn(texts(), 3).starts_with("1 one two") && drawn(texts(), 3).lines().count() == 3);
        assert_eq!(drawn(texts(), 1), "1 five\n");
        let cut = drawn(texts()[..1].to_vec(), 2);
        assert_eq!(cut.lines().count(), 2);
        assert!(cut.ends_with("…\n") && cut.lines().all(|line| line.width() <= 40), "{cut}");
        assert_eq!(drawn(Vec::new(), 2), "");
        let unit = drawn(vec!["a cache that has no less than about 512 KiB.".into()], 2);
        assert_eq!(unit, "1 a cache that has no less than about\n  512 KiB.\n");
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let mut page = Page::default();
        page.line("x".repeat(200));
        page.line("デ".repeat(100));
        page.sentence(Tone::Plain, "- ", "y".repeat(200));
        page.table(&["name", "value"], &[vec!["z".repeat(100), "1".into()]]);
        for line in render(&page, 80).lines() {
            assert!(line.width() <= 80, "{line}");
        }
    }

    #[test]
    fn untrusted_text_is_made_safe_and_colour_is_ours_alone() {
        let mut page = Page::default();
        page.heading("\u{1b}[2Jname\nnext");
        page.table(&["a"], &[vec!["b\u{7}\n".into()]]);
        page.sentence(Tone::Error, "", "c\u{202e}");
        let plain = render(&page, 80);
        assert_eq!(plain, "\\x1b[2Jname\\x0anext\n  a\n  b\\x07\\x0a\nc\\u{202e}\n");
        let colored = page.render(Style { color: Color::Always, ..Style::default() });
        assert_eq!(colored.matches('\u{1b}').count(), 4);
        assert!(colored.starts_with("\u{1b}[1m\\x1b[2J"));
    }

    #[test]
    fn tables_align_figures_right_and_words_left() {
        let mut page = Page::default();
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        page.table_with(
            &["", "MiB/s", "verdict"],
            &[row(["read", "9.5", "device"]), row(["write", "120", "hole"])],
            &[2],
        );
        assert_eq!(
            render(&page, 80),
            "         MiB/s  verdict\n  read     9.5  device\n  write    120  hole\n"
        );
    }
}
