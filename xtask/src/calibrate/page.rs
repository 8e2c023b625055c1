//! The page of the campaign, docs/calibration.md. It is written by hand but for what stands between `<!-- part NAME -->` and
//! `<!-- end -->`: the tables of a part, with date, commit and settings, which this puts there.

use super::Part;
use super::table::Table;
use crate::origin;
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

const END: &str = "<!-- end -->\n";

/// The tables of a part, with what they rest on.
pub(crate) fn measured(
    part: &Part,
    commit: &str,
    seeds: &Range<u64>,
    took: Duration,
    tables: &[Table],
) -> Result<String> {
    // A simulated figure is the same everywhere.
    let machine = if part.is_real { origin::machine() } else { "simulated".to_owned() };
    let mut text = format!(
        "`cargo xtask calibrate {}`, {} runs of each with seeds from {}, on {} from commit {commit}, in {} min; {machine}.\n",
        part.name,
        seeds.end - seeds.start,
        seeds.start,
        origin::now("+%F")?,
        took.as_secs().div_ceil(60),
    );
    for table in tables {
        write!(text, "\n{}", table.draw()).expect("a String takes everything");
    }
    Ok(text)
}

/// The page with this text as that of the part.
///
/// # Errors
/// When the page has no place for the part.
pub(crate) fn with(page: &str, part: &str, text: &str) -> Result<String> {
    let begin = format!("<!-- part {part} -->\n");
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("docs/calibration.md has no {begin}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("part {part} has no {END}"))?;
    Ok(format!("{before}{begin}{text}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::PARTS;

    #[test]
    fn a_part_that_runs_again_replaces_its_own_tables_only() {
        let page = "# Calibration\n\n<!-- part power -->\none\n<!-- end -->\nnote\n<!-- part coverage -->\ntwo\n<!-- end -->\n";
        let again = with(page, "power", "three\n").unwrap();
        assert_eq!(again, page.replace("one", "three"));
        assert_eq!(with(&again, "power", "three\n").unwrap(), again);
        assert!(with(page, "equal", "").is_err());
    }

    #[test]
    fn the_page_has_a_place_for_every_part() {
        let page = std::fs::read_to_string(crate::root().join("docs/calibration.md")).unwrap();
        for part in PARTS {
            with(&page, part.name, "").unwrap();
        }
        assert_eq!(page.matches("<!-- part ").count(), PARTS.len());
    }
}
