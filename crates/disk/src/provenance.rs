//! Where each figure of a system is from, as its text says it: the comment behind a figure begins with a mark. A system that
//! extends another has the figures of both. It judges no figure and simulates nothing.

use crate::error::ParamError;
use crate::systems::{DEVICE, chain, line_at, malformed};
use std::fmt;
use toml::de::{DeTable, DeValue};

/// Where a figure is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The report of the system states it, or it follows from what the report states.
    Report,
    /// A data sheet of the part, or of one of its series.
    DataSheet,
    /// What such hosts and devices usually have: from memory, unchecked.
    Typical,
    /// Chosen so that the model gives these cells of the report.
    Fitted {
        /// The cells, by their names in docs/reports; at least one.
        cells: Vec<String>,
    },
}

impl Mark {
    /// The words with which a comment begins, up to the cells of a fit.
    const WORDS: [&'static str; 4] = ["from the report", "from a data sheet", "typical", "fitted to"];

    /// The mark of a comment, and the rest of it.
    fn parse_prefix(comment: &str) -> Option<(Mark, &str)> {
        let (word, rest) = Self::WORDS.iter().find_map(|word| Some((*word, comment.strip_prefix(word)?)))?;
        let mark = match word {
            "from the report" => Mark::Report,
            "from a data sheet" => Mark::DataSheet,
            "typical" => Mark::Typical,
            _ => {
                let (cells, rest) = quoted(rest)?;
                return Some((Mark::Fitted { cells }, note(rest)));
            }
        };
        Some((mark, note(rest)))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Report => out.write_str(Self::WORDS[0]),
            Mark::DataSheet => out.write_str(Self::WORDS[1]),
            Mark::Typical => out.write_str(Self::WORDS[2]),
            Mark::Fitted { cells } => {
                let cells: Vec<String> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
                write!(out, "{} {}", Self::WORDS[3], cells.join(" and "))
            }
        }
    }
}

/// The quoted names at the start of a text, joined by "and", and what follows them; `None` without one.
fn quoted(text: &str) -> Option<(Vec<String>, &str)> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let at = rest.trim_start();
        let at = if names.is_empty() { at } else { at.strip_prefix("and ").unwrap_or(at) };
        let Some((name, after)) = at.strip_prefix('"').and_then(|inside| inside.split_once('"')) else {
            return (!names.is_empty()).then_some((names, rest));
        };
        names.push(name.to_owned());
        rest = after;
    }
}

/// What follows a mark, without what separates it.
fn note(rest: &str) -> &str {
    rest.trim_start_matches([':', ',', ';', ' ']).trim_end()
}

/// One figure of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The key with its tables: `luns[0].device.disk.rpm`.
    pub key: String,
    /// As the text has it: `7200`, `"nearest"`.
    pub value: String,
    /// The system whose text has it.
    pub system: String,
    /// Where it is from; `None` where the text does not say.
    pub mark: Option<Mark>,
    /// The rest of its comment.
    pub note: String,
}

impl Figure {
    /// The tables of the key: `luns[0].device.disk`.
    fn table(&self) -> &str {
        self.key.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The line of a text that sets it.
    fn line(&self) -> String {
        let key = self.key.rsplit('.').next().unwrap_or(&self.key);
        let mark = self.mark.as_ref().map(ToString::to_string);
        let words: Vec<String> =
            mark.into_iter().chain((!self.note.is_empty()).then(|| self.note.clone())).collect();
        let comment = if words.is_empty() { String::new() } else { format!(" # {}", words.join(": ")) };
        format!("{key} = {}{comment}", self.value)
    }
}

/// Every figure of a system, in the order of its text; what it is (`about`, `report`) is none. `text` is the system's
/// own.
///
/// # Errors
/// As [`crate::parse`], as far as the texts cannot be read.
pub fn figures(name: &str, text: &str) -> Result<Vec<Figure>, ParamError> {
    let mut figures: Vec<Figure> = Vec::new();
    for (name, text) in chain(name, text)? {
        let own = figures_of(&name, &text)?;
        figures.retain(|earlier| !own.iter().any(|figure| is_replaced(&earlier.key, &figure.key)));
        for figure in own {
            match figures.iter().position(|earlier| earlier.key == figure.key) {
                Some(earlier) => figures[earlier] = figure,
                None => figures.insert(place_of(&figures, &figure), figure),
            }
        }
    }
    Ok(figures)
}

/// How many figures of a system have which mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// From the report.
    pub report: usize,
    /// From a data sheet.
    pub data_sheet: usize,
    /// Typical.
    pub typical: usize,
    /// Fitted.
    pub fitted: usize,
    /// Without a mark.
    pub unmarked: usize,
}

impl Tally {
    /// Counts.
    pub fn of<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Tally {
        let mut tally = Tally::default();
        for figure in figures {
            let count = match figure.mark {
                Some(Mark::Report) => &mut tally.report,
                Some(Mark::DataSheet) => &mut tally.data_sheet,
                Some(Mark::Typical) => &mut tally.typical,
                Some(Mark::Fitted { .. }) => &mut tally.fitted,
                None => &mut tally.unmarked,
            };
            *count += 1;
        }
        tally
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { report, data_sheet, typical, fitted, unmarked } = self;
        write!(
            out,
            "{report} from the report, {data_sheet} from a data sheet, {typical} typical, {fitted} fitted"
        )?;
        if *unmarked > 0 { write!(out, ", {unmarked} unmarked") } else { Ok(()) }
    }
}

/// Whether a figure belongs to a device of one kind, and the other to one of another kind in the same place.
fn is_replaced(earlier: &str, new: &str) -> bool {
    let split = |key: &str| {
        let (place, rest) = key.split_once(&format!(".{DEVICE}."))?;
        Some((place.to_owned(), rest.split('.').next()?.to_owned()))
    };
    split(earlier).zip(split(new)).is_some_and(|(earlier, new)| earlier.0 == new.0 && earlier.1 != new.1)
}

/// The text of a system without `extends`, from all its figures: it gives the same system again.
pub fn complete_text(about: &str, report: &str, figures: &[Figure]) -> String {
    let mut text = format!("about = {}\nreport = {}\n", basic_string(about), basic_string(report));
    let mut table = String::new();
    for figure in figures {
        if figure.table() != table {
            text.push_str(&headers(&table, figure.table()));
            figure.table().clone_into(&mut table);
        }
        text.push_str(&figure.line());
        text.push('\n');
    }
    text
}

/// Words as a string of TOML.
fn basic_string(words: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", words.chars().map(escaped).collect::<String>())
}

/// The headers that lead from one table to the next.
fn headers(from: &str, to: &str) -> String {
    let mut text = String::from("\n");
    let (mut at, mut path, mut is_open) = (String::new(), String::new(), false);
    for step in to.split('.') {
        let dot = if at.is_empty() { "" } else { "." };
        at = format!("{at}{dot}{step}");
        path = format!("{path}{dot}{}", step.split('[').next().unwrap_or(step));
        is_open = step.ends_with(']');
        let is_known = from == at || from.strip_prefix(&at).is_some_and(|rest| rest.starts_with('.'));
        if is_open && !is_known {
            text.push_str(&format!("[[{path}]]\n"));
        }
    }
    if !is_open {
        text.push_str(&format!("[{path}]\n"));
    }
    text
}

/// Where a figure that the systems before do not have belongs: behind those of its table, before the tables inside it, or
/// behind what shares most of its path.
fn place_of(figures: &[Figure], new: &Figure) -> usize {
    let table = new.table();
    if let Some(last) = figures.iter().rposition(|earlier| earlier.table() == table) {
        return last + 1;
    }
    let is_inside =
        |earlier: &Figure| earlier.key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    if let Some(first) = figures.iter().position(is_inside) {
        return first;
    }
    let steps = |key: &str| key.split(['.', '[', ']']).map(str::to_owned).collect::<Vec<_>>();
    let shared = |earlier: &Figure| {
        steps(&earlier.key).iter().zip(&steps(&new.key)).take_while(|(left, right)| left == right).count()
    };
    let most = figures.iter().map(shared).max().unwrap_or(0);
    figures.iter().rposition(|earlier| shared(earlier) == most).map_or(0, |last| last + 1)
}

/// The figures that one text sets.
fn figures_of(name: &str, text: &str) -> Result<Vec<Figure>, ParamError> {
    let root = DeTable::parse(text).map_err(|error| malformed(text, &error))?;
    let mut values = Vec::new();
    collect(root.get_ref(), "", &mut values);
    values.retain(|(key, _)| !matches!(key.as_str(), "about" | "report" | "extends"));
    values.sort_by_key(|(_, span)| span.start);
    let lines: Vec<&str> = text.lines().collect();
    let figure = |(key, span): (String, std::ops::Range<usize>)| {
        let value = text.get(span.clone()).unwrap_or_default().to_owned();
        let line = lines.get(line_at(text, span.start) - 1).copied().unwrap_or_default();
        // No value of a system holds a `#`.
        let comment = line.split_once('#').map_or("", |(_, comment)| comment.trim());
        let (mark, note) =
            Mark::parse_prefix(comment).map_or((None, comment), |(mark, note)| (Some(mark), note));
        Figure { key, value, system: name.to_owned(), mark, note: note.to_owned() }
    };
    Ok(values.into_iter().map(figure).collect())
}

/// Keys and places of all values that are neither tables nor lists of tables.
fn collect(table: &DeTable<'_>, path: &str, values: &mut Vec<(String, std::ops::Range<usize>)>) {
    for (name, value) in table {
        let dot = if path.is_empty() { "" } else { "." };
        let key = format!("{path}{dot}{}", name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => collect(inner, &key, values),
            DeValue::Array(list) => {
                for (index, element) in list.iter().enumerate() {
                    if let DeValue::Table(inner) = element.get_ref() {
                        collect(inner, &format!("{key}[{index}]"), values);
                    }
                }
            }
            _ => values.push((key, value.span())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{NAMES, source};
    use crate::systems::{load, parse};

    fn built_in(name: &str) -> Vec<Figure> {
        figures(name, source(name).expect("it is built in")).expect("it can be read")
    }

    #[test]
    fn every_figure_of_every_built_in_system_is_marked() {
        let unmarked: Vec<String> = NAMES
            .iter()
            .flat_map(|name| built_in(name))
            .filter(|figure| figure.mark.is_none() || figure.note.is_empty())
            .map(|figure| format!("{}: {} = {} # {}", figure.system, figure.key, figure.value, figure.note))
            .collect();
        assert!(unmarked.is_empty(), "{} unmarked:\n{}", unmarked.len(), unmarked.join("\n"));
    }

    #[test]
    fn an_unmarked_figure_is_seen() {
        let all = figures("mine", "extends = \"wd2500\"\nhost.cost.byte_ns = 1 # a guess\n")
            .expect("it can be read");
        let unmarked: Vec<&Figure> = all.iter().filter(|figure| figure.mark.is_none()).collect();
        assert_eq!(unmarked.len(), 1);
        assert_eq!((unmarked[0].key.as_str(), unmarked[0].note.as_str()), ("host.cost.byte_ns", "a guess"));
        assert_eq!((unmarked[0].system.as_str(), unmarked[0].value.as_str()), ("mine", "1"));
        assert!(Mark::parse_prefix("fitted to the direct writes").is_none(), "a fit names its cells");
    }

    #[test]
    fn a_mark_is_read_with_its_cells_and_its_note() {
        let (mark, note) =
            Mark::parse_prefix("fitted to \"read, raw\" and \"x: y\": half a turn").expect("marked");
        assert_eq!(mark, Mark::Fitted { cells: vec!["read, raw".into(), "x: y".into()] });
        assert_eq!(
            (note, mark.to_string().as_str()),
            ("half a turn", "fitted to \"read, raw\" and \"x: y\"")
        );
        assert_eq!(
            Mark::parse_prefix("from the report, reason 3: 4 KB"),
            Some((Mark::Report, "reason 3: 4 KB"))
        );
    }

    /// The page of a system is a text to start from, whichever others it extends.
    #[test]
    fn the_complete_text_gives_the_same_system_again() {
        for name in NAMES {
            let params = load(name).expect("it is built in").params;
            let text = complete_text(&params.about, &params.report, &built_in(name));
            let again = parse(name, &text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            assert_eq!(again.params, params, "{name}");
            assert_eq!(figures(name, &text).expect("it can be read").len(), built_in(name).len());
        }
    }
}
