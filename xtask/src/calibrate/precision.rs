//! Whether `rdsk run` ends within its budget, and whether its intervals are as narrow as those of an earlier program. Both
//! programs run in turn on the same built-in systems, whose steady rates they know.

use super::Settings;
use super::coverage::HEADLINE;
use super::real::record_of;
use super::table::{Table, percent};
use super::trials::{Campaign, median};
use crate::programs;
use anyhow::{Context as _, Result};
use rdsk_model::Record;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The systems, and whether they are steady. Those that are not begin each visit of random writes in a cache of their own, which
/// an earlier program that visits a cell once cannot see: the width of their intervals is told and not judged.
const SYSTEMS: &[(&str, bool)] = &[
    ("linux-10k", false),
    ("linux-10k-raid0", false),
    ("wd2500", true),
    ("ssd-slc", true),
    ("tms-ramsan", true),
];
/// The default budget, and how much longer a run may take: I/O in flight is waited for.
const BUDGET_NS: u64 = 60_000_000_000;
const OVERRUN: f64 = 1.02;
/// How much wider than those of the earlier program the intervals may be. No interval is judged that is narrower than the
/// precision that a run aims at by default.
const WIDER: f64 = 1.5;
const PRECISION: f64 = 0.02;

/// The table of all systems.
pub(crate) fn tables(campaign: &Campaign, settings: &Settings, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = [
        "system",
        "runs",
        "longest, s",
        "median ±, %",
        "±, % of the earlier program",
        "steady",
        "its longest, s",
    ];
    let mut table = Table::new("Default runs".into(), head.map(str::to_owned).to_vec());
    let this = programs::executable(&settings.root, &["--release", "--package", "rdsk", "--bin", "rdsk"])?;
    for (system, is_steady) in SYSTEMS {
        let (mut new, mut old) = (Seen::default(), Seen::default());
        let earlier = settings.old.as_deref().filter(|program| knows(program, system));
        for seed in seeds.clone() {
            if campaign.is_interrupted() {
                return Ok(vec![table]);
            }
            let words = format!("run sim:{system} --seed {seed}");
            new.add(&record_of(campaign, &this, &words)?);
            if let Some(program) = earlier {
                old.add(&record_of(campaign, program, &words)?);
            }
        }
        let (width, before) = (median(&new.margins), median(&old.margins));
        let is_narrow = earlier.is_none() || !is_steady || width <= (WIDER * before).max(PRECISION);
        let longest_ns = new.longest_ns.context("no simulated time")?;
        let is_quick = longest_ns as f64 <= OVERRUN * BUDGET_NS as f64;
        let seconds = |ns: u64| format!("{:.1}", ns as f64 / 1e9);
        table.row(
            vec![
                format!("`sim:{system}`"),
                (seeds.end - seeds.start).to_string(),
                seconds(longest_ns),
                percent(width),
                if earlier.is_some() { percent(before) } else { "–".into() },
                if *is_steady { "yes" } else { "no: told, not judged" }.into(),
                old.longest_ns.map_or_else(|| "–".into(), seconds),
            ],
            Some(is_narrow && is_quick),
        );
        println!("{}", table.last_line());
    }
    Ok(vec![table])
}

/// Whether a program has this system built in.
fn knows(program: &Path, system: &str) -> bool {
    Command::new(program).args(["sim", "show", system]).output().is_ok_and(|output| output.status.success())
}

/// What the runs of one program gave.
#[derive(Default)]
struct Seen {
    margins: Vec<f64>,
    /// None if the program does not say.
    longest_ns: Option<u64>,
}

impl Seen {
    fn add(&mut self, record: &Record) {
        self.longest_ns = self.longest_ns.max(record.simulated_ns);
        let cells = record.cells.iter().filter(|cell| HEADLINE.iter().any(|(id, _)| *id == cell.id));
        self.margins.extend(cells.filter_map(|cell| cell.result.bytes_per_s?.margin()));
    }
}
