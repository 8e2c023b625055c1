//! The Plan in words, for `--dry-run`: what would be done, to what, for how long. Nothing is looked up.

use crate::header::size_with_bytes;
use crate::page::{Page, Tone, cut};
use crate::replaced::replaced_text;
use crate::style::Style;
use rdsk_model::{Cell, Experiment, Extent, Op, Plan, Sync, Target, TargetKind, Workload};
use rdsk_units::{Bytes, Nanos, percent};

/// Columns of the longest cell id that is shown whole.
const ID_WIDTH: usize = 44;
/// A margin below this is asked for so that no test has enough repeats before the time is over.
const LEAST_PRECISION: f64 = 0.001;

/// The Plan as text for a page of this style, cells in their first order, with what writing would touch first.
pub fn plan_text(plan: &Plan, targets: &[Target], style: Style) -> String {
    let mut page = Page::default();
    page.heading(match plan.cells.len() {
        1 => "DRY RUN: 1 test, nothing is measured".to_owned(),
        many => format!("DRY RUN: {many} tests, nothing is measured"),
    });
    for target in targets {
        let what = match (target.kind, target.made_by_rdsk) {
            (TargetKind::File, true) => "a test file that rdsk creates and removes",
            (TargetKind::File, false) => "an existing file",
            (TargetKind::Block, _) => "a block device",
            (TargetKind::Sim, _) => "simulated",
        };
        let access = match writes(plan, target.index) {
            0 => "only read".into(),
            1 => "WRITTEN by 1 test".into(),
            count => format!("WRITTEN by {count} tests"),
        };
        let size = size_with_bytes(target.size_bytes);
        page.sentence(Tone::Plain, "  target  ", format!("{}: {what}, {size}, {access}", target.name));
        if writes(plan, target.index) > 0 && target.kind != TargetKind::Sim && !target.made_by_rdsk {
            page.sentence(Tone::Plain, "          ", replaced_text(&target.name));
        }
    }
    let budget = if plan.is_unlimited() { "no limit".into() } else { Nanos(plan.budget_ns).to_string() };
    let rounds = match plan.rounds {
        1 => "one repeat".to_owned(),
        many => format!("at least {many} repeats, every second one in reverse order"),
    };
    let tests = if plan.is_whole_run() { "reads" } else { "tests" };
    let further = match plan.precision {
        precision if precision < LEAST_PRECISION => "further repeats".to_owned(),
        precision => format!("{tests} wider than ±{}", percent(precision)),
    };
    page.sentence(
        Tone::Plain,
        "  time    ",
        format!("{budget} for all tests in {rounds}; time that is left goes to {further}"),
    );
    for note in &plan.notes {
        page.sentence(Tone::Plain, "  note    ", format!("{note}."));
    }
    page.blank();
    for &experiment in Experiment::ALL {
        let rows: Vec<Vec<String>> = (0..plan.cells.len())
            .filter(|&index| plan.cells[index].experiment == experiment)
            .map(|index| row(plan, index, &plan.cells[index]))
            .collect();
        if !rows.is_empty() {
            page.table_with(&["test", "workload", "how much"], &rows, &[1, 2]);
            page.blank();
        }
    }
    for cell in &plan.cells {
        if let Some(reason) = &cell.not_applicable {
            page.sentence(Tone::Plain, format!("  {}: n/a: ", cell.id), reason);
        }
    }
    page.render(style)
}

/// Cells that write to a target.
fn writes(plan: &Plan, target: u32) -> usize {
    let is_writing = |cell: &&Cell| {
        cell.workload.op == Op::Write
            && cell.not_applicable.is_none()
            && cell.workload.targets.contains(&target)
    };
    plan.cells.iter().filter(is_writing).count()
}

fn row(plan: &Plan, index: usize, cell: &Cell) -> Vec<String> {
    // Complete passes may take what they take.
    let share_ns = plan.share_ns(index);
    let share = if plan.is_unlimited() { "no limit".into() } else { Nanos(share_ns).to_string() };
    let how_much = match (&cell.not_applicable, cell.extent) {
        (Some(_), _) => "n/a".into(),
        (None, Extent::Pass { bytes }) => format!("{}, {share}", Bytes(bytes).approx()),
        (None, Extent::Passes { bytes }) => format!("passes of {}, {share}", Bytes(bytes).approx()),
        (None, Extent::Once { .. }) => "once, to its end".into(),
        (None, Extent::Timed | Extent::Samples { .. } | Extent::Sustained(_)) => share,
    };
    let ramp_ns = cell.workload.ramp_ns();
    let how_much = match ramp_ns {
        0 => how_much,
        _ => format!("{how_much} after a ramp of {}", Nanos(ramp_ns)),
    };
    vec![cut(&cell.id, ID_WIDTH), workload(&cell.workload), how_much]
}

/// `rand direct 4 KiB qd32`; the direction stands in the cell's id.
fn workload(workload: &Workload) -> String {
    let pattern = match workload.pattern {
        rdsk_model::Pattern::Sequential => "seq",
        rdsk_model::Pattern::Random => "rand",
    };
    let mut words = vec![pattern.into(), workload.path.to_string(), Bytes(workload.block_bytes).to_string()];
    if workload.queue_depth > 1 {
        words.push(format!("qd{}", workload.queue_depth));
    }
    if workload.streams > 1 {
        words.push(format!("×{}", workload.streams));
    }
    if workload.shift_bytes > 0 {
        words.push(format!("+{}", workload.shift_bytes));
    }
    match workload.sync {
        Sync::None => {}
        Sync::Dsync => words.push("dsync".into()),
        Sync::FsyncAtEnd => words.push("fsync".into()),
    }
    words.join(" ")
}
