//! The pages of docs/reports: the table of each report, what rdsk gives on the report's simulated system beside it, and
//! the error of each cell. The figures come from running the built program; `--check` says where a page differs from them.

mod counts;
mod graphs;
mod measured;
mod page;
mod tables;

use std::fs;
use std::path::Path;

/// Writes the pages, or with `--check` compares them.
///
/// # Errors
/// When the program cannot be built or run, when a cell is outside its tolerance, or when a page differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => anyhow::bail!("cargo xtask docs takes --check or nothing"),
    };
    draw(root, &crate::programs::rdsk(root)?, check)
}

fn draw(root: &Path, program: &Path, check: bool) -> anyhow::Result<()> {
    let directory = root.join("docs/reports");
    let mut outside = Vec::new();
    let mut different = Vec::new();
    for page in [tables::paths, tables::stream, graphs::zones, graphs::scale, tables::align] {
        let mut report = page(program)?;
        counts::settle(&mut report)?;
        outside.extend(report.outside());
        let path = directory.join(format!("{}.md", report.name));
        let text = report.markdown();
        if check {
            let there = fs::read_to_string(&path).unwrap_or_default();
            if let Some(line) = first_difference(&there, &text) {
                different.push(format!("{} differs from what the code gives, {line}", path.display()));
            }
        } else {
            crate::write(&path, &text)?;
            println!("wrote {}", path.display());
        }
    }
    anyhow::ensure!(outside.is_empty(), "outside the tolerance:\n  {}", outside.join("\n  "));
    anyhow::ensure!(different.is_empty(), "{}\nrun cargo xtask docs and commit", different.join("\n"));
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

    #[test]
    fn the_pages_are_what_the_program_gives() {
        let root = crate::root();
        let program = crate::programs::rdsk(&root).unwrap();
        draw(&root, &program, true).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").unwrap(), "line 2:\n  - b\n  + c");
        assert_eq!(first_difference("a\n", "a\nb\n").unwrap(), "in its length");
    }
}
