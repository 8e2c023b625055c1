//! Rows of a page: a name and a text beside it, wrapped at 80 columns. It knows nothing about their content.

const WIDTH: usize = 80;

/// A heading and the rows below it.
pub(crate) struct Rows {
    pub(crate) text: String,
    /// Columns before the text of a row.
    indent: usize,
}

impl Rows {
    /// A page that starts with a heading; the texts of its rows start at column `indent`, which is more than 2.
    pub(crate) fn new(heading: &str, indent: usize) -> Self {
        Self { text: heading.to_owned(), indent }
    }

    pub(crate) fn add(&mut self, name: &str, text: &str) {
        self.add_lines(name, &wrapped(text, WIDTH - self.indent));
    }

    /// Adds a row of lines that are not wrapped.
    pub(crate) fn add_lines(&mut self, name: &str, lines: &[String]) {
        let mut name = name;
        for line in lines {
            self.text.push_str(&format!("  {name:<width$}{line}\n", width = self.indent - 2));
            name = "";
        }
    }
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
}
