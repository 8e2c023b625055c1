//! Rows of a page: a name and a text beside it, wrapped at the page's columns. It knows nothing about their content.

/// The least columns of a text beside its name; a narrower page has it below.
const MIN_TEXT: usize = 24;
/// Columns before a text that stands below its name.
const BELOW: usize = 4;

/// A heading and the rows below it.
pub(crate) struct Rows {
    pub(crate) text: String,
    /// Columns before the text of a row.
    indent: usize,
    /// Columns of the page.
    columns: usize,
}

impl Rows {
    /// A page of this many columns that starts with a heading; the texts of its rows start at column `indent`, which is more
    /// than 2.
    pub(crate) fn new(heading: &str, indent: usize, columns: usize) -> Self {
        Self { text: heading.to_owned(), indent, columns }
    }

    pub(crate) fn add(&mut self, name: &str, text: &str) {
        self.add_lines(name, &wrapped(text, self.columns - self.text_column()));
    }

    /// Adds a row of lines that are not wrapped.
    pub(crate) fn add_lines(&mut self, name: &str, lines: &[String]) {
        let column = self.text_column();
        let mut name = name;
        if column < self.indent && !name.is_empty() {
            self.text.push_str(&format!("  {name}\n"));
            name = "";
        }
        for line in lines {
            self.text.push_str(&format!("  {name:<width$}{line}\n", width = column - 2));
            name = "";
        }
    }

    /// Where texts start: below their names where the page is too narrow for both.
    fn text_column(&self) -> usize {
        if self.columns < self.indent + MIN_TEXT { BELOW } else { self.indent }
    }
}

/// Names with a text each, `margin` columns from the edge (2 at most), on a page of this many columns.
pub(crate) fn name_list(names: &[(&str, String)], widest: usize, margin: usize, columns: usize) -> String {
    let dropped = 2 - margin.min(2);
    let mut rows = Rows::new("", widest + 4, columns + dropped);
    names.iter().for_each(|(name, text)| rows.add(name, text));
    rows.text.lines().map(|line| format!("{}\n", &line[dropped..])).collect()
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("muchtoolong a", 4), ["muchtoolong", "a"]);
    }

    #[test]
    fn a_text_stands_beside_its_name_or_below_it_on_a_narrow_page() {
        let page = |indent| {
            let mut rows = Rows::new("", indent, 40);
            rows.add("free", "58.3 GiB of 252 GiB, of which root alone may use 12 GiB");
            rows.text
        };
        assert_eq!(
            page(15),
            "  free         58.3 GiB of 252 GiB, of\n               which root alone may use\n               12 GiB\n"
        );
        assert_eq!(page(24), "  free\n    58.3 GiB of 252 GiB, of which root\n    alone may use 12 GiB\n");
    }
}
