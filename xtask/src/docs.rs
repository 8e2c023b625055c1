//! The pages of docs/reports: the table of each report, what rdsk gives on the report's simulated system beside it, and
//! the error of each cell. A page has the commands, the report's figures and what is allowed; this runs the built program and fills in
//! what it gives. `--check` says where a page differs from that.

mod counts;
mod figures;
mod page;

use crate::{options, programs};
use anyhow::{Result, ensure};
use figures::Records;
use std::fs;
use std::path::Path;

/// Names of the pages, each with what finds the figure of a row in the Records of the commands above it.
const PAGES: &[(&str, page::FigureOf)] = &[
    ("paths", figures::paths),
    ("stream", figures::stream),
    ("zones", figures::zones),
    ("scale", figures::scale),
    ("align", figures::align),
];

/// Fills in the pages, or with `--check` compares them.
///
/// # Errors
/// When the program cannot be built or run, when a cell is outside its tolerance, or when a page differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let is_check = options::is_check(arguments)?;
    fill_in(root, &programs::rdsk(root)?, is_check)
}

fn fill_in(root: &Path, program: &Path, is_check: bool) -> Result<()> {
    let (mut outside, mut different) = (Vec::new(), Vec::new());
    for (name, figure_of) in PAGES {
        let path = root.join("docs/reports").join(name).with_extension("md");
        let before = fs::read_to_string(&path)?;
        let mut records = Records::new(program);
        let filled = page::filled(&before, &mut records, *figure_of)?;
        let text = counts::settled(&filled.text)?;
        outside.extend(filled.outside.into_iter().map(|row| format!("{name}: {row}")));
        if let (true, Some(line)) = (is_check, first_difference(&before, &text)) {
            different.push(format!("{} differs from what the code gives, {line}", path.display()));
        } else if !is_check {
            crate::write(&path, &text)?;
            println!("wrote {}", path.display());
        }
    }
    ensure!(outside.is_empty(), "outside the tolerance:\n  {}", outside.join("\n  "));
    ensure!(different.is_empty(), "{}\nrun cargo xtask docs and commit", different.join("\n"));
    Ok(())
}

/// Where two texts differ first, in words; `None` where they are the same.
fn first_difference(there: &str, wanted: &str) -> Option<String> {
    if there == wanted {
        return None;
    }
    let mut pairs = there.lines().zip(wanted.lines()).enumerate();
    Some(match pairs.find(|(_, (there, wanted))| there != wanted) {
        Some((index, (there, wanted))) => format!("line {}:\n  - {there}\n  + {wanted}", index + 1),
        None => "in its length".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::{Need, requires};

    #[test]
    fn the_pages_are_what_the_program_gives() {
        if !requires(&[Need::Ci]) {
            return;
        }
        let root = crate::root();
        let program = programs::rdsk(&root).unwrap();
        fill_in(&root, &program, true).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").unwrap(), "line 2:\n  - b\n  + c");
        assert_eq!(first_difference("a\n", "a\nb\n").unwrap(), "in its length");
    }
}
