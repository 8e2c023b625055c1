//! The page of the campaign: a section per part, each with its date, commit and settings. A part that runs again replaces its
//! own section only.

use super::Part;
use super::table::Table;
use crate::origin;
use anyhow::Result;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

const INTRODUCTION: &str = "\
# Calibration

Whether what rdsk says at 95 % is right 95 times in 100, whether two equal targets are called different, and how often a finding
is false or missed. Made by `cargo xtask calibrate [PART …]`; each part says when, from which commit and with how many runs. A
figure that is wanted and missed is marked **no**.

Simulated noise changes the pace of the device, in steps of 0.1 s of virtual time where it has steps: it goes on between the visits
of a cell, which are seconds apart, and is the same for all cells at the same moment. Its mean is known, so the true rate is, too:
that of the same device without noise, times the mean pace (0.9 where it stalls for 10 % of the time). Run n has seed n, so every
figure of a simulated part can be had again.

Some constants were chosen by trials like these, on runs below 1000 or on series of the statistics alone: how much wider the interval
over a few rounds is than Student's (`FEW_SAMPLES`, `SLOW` and `SLOW_CORRELATION` in crates/stats/src/rounds.rs, runs 0 to 99 of the
coverage), how clear a common drift must be (`CLEAR` in crates/stats/src/common_drift.rs), how long a state may last and how probable each is
(crates/stats/src/lasting.rs), and the chance at which targets are called different (`ALPHA_OF_TARGETS` in
crates/analysis/src/comparison.rs). Figures of the same runs are not independent of that choice; each part names its seeds.
";

/// The text of a part.
pub(crate) struct Section {
    name: &'static str,
    text: String,
}

impl Section {
    /// The tables of a part, with what they rest on.
    pub(crate) fn new(
        part: &Part,
        commit: &str,
        seeds: &Range<u64>,
        took: Duration,
        tables: &[Table],
    ) -> Result<Self> {
        // A simulated figure is the same everywhere.
        let machine = if part.is_real { origin::machine() } else { "simulated".to_owned() };
        let mut text = format!("## {}\n\n{}\n\n", part.title, part.about);
        let line = format!(
            "`cargo xtask calibrate {}`, {} runs of each with seeds from {}, on {} from commit {commit}, in {} min; {machine}.",
            part.name,
            seeds.end - seeds.start,
            seeds.start,
            origin::now("+%F")?,
            took.as_secs().div_ceil(60),
        );
        writeln!(text, "{line}").expect("a String takes everything");
        for table in tables {
            write!(text, "\n{}", table.draw()).expect("a String takes everything");
        }
        Ok(Self { name: part.name, text })
    }
}

fn begin(name: &str) -> String {
    format!("<!-- part {name} -->\n")
}

const END: &str = "<!-- end -->\n";

/// The page with this section instead of its earlier one, in the order of the parts.
pub(crate) fn with(page: &str, parts: &[Part], section: &Section) -> String {
    let mut text = INTRODUCTION.to_owned();
    for part in parts {
        let before = page.split_once(&begin(part.name)).and_then(|(_, rest)| rest.split_once(END));
        let its = if part.name == section.name {
            Some(section.text.as_str())
        } else {
            before.map(|(text, _)| text)
        };
        if let Some(its) = its {
            write!(text, "\n{}{its}{END}", begin(part.name)).expect("a String takes everything");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::PARTS;

    #[test]
    fn a_part_that_runs_again_replaces_its_own_section_only() {
        let section = |name: &'static str, text: &str| Section { name, text: format!("{text}\n") };
        let first = with("", PARTS, &section("power", "one"));
        let both = with(&first, PARTS, &section("coverage", "two"));
        let again = with(&both, PARTS, &section("power", "three"));
        assert!(again.starts_with("# Calibration") && again.matches("<!-- part").count() == 2, "{again}");
        let place = |text: &str| again.find(text);
        assert!(place("two\n") < place("three\n") && place("one\n").is_none(), "{again}");
        assert_eq!(with(&again, PARTS, &section("power", "three")), again);
    }
}
