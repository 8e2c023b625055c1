//! The top of a short page: what was measured, on what, how long it took, and how it ended if it did not end well. It draws
//! no figure of a cell.

use super::Limits;
use crate::header::{measured_by, stack_text, took, write_cache};
use crate::page::{Page, Tone};
use crate::replaced::replaced;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{Record, Status, Target, TargetKind};
use rdsk_units::Bytes;

/// Lines of the description of a single target.
const TARGET_LINES: usize = 3;
/// Lines of an error, and of its hint.
const ERROR_LINES: usize = 2;

pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, limits: &Limits) {
    let record: &Record = analysis;
    let lead = format!("{}  ", measured_by(record));
    let label = record.label.as_ref().map_or(String::new(), |label| format!("\"{label}\"; "));
    let took = took(record);
    match &record.targets[..] {
        [target] => {
            let full = format!("{label}{}; {took}", described(record, target));
            let brief = format!("{label}{}: {}; {took}", target.name, kind(target));
            page.wordings(Tone::Heading, lead, vec![full, brief], TARGET_LINES);
        }
        many => {
            page.wordings(Tone::Heading, lead, vec![format!("{label}{} targets; {took}", many.len())], 1);
            for target in many.iter().take(limits.targets) {
                let brief = format!("{}: {}", target.name, kind(target));
                page.wordings(Tone::Plain, "  ", vec![described(record, target), brief], 1);
            }
            if many.len() > limits.targets {
                page.line(format!("  and {} more: --details", many.len() - limits.targets));
            }
        }
    }
    if let Some(text) = replaced(record) {
        page.sentence(Tone::Plain, "  ", text);
    }
    draw_status(page, record);
    super::answers::draw_targets(page, analysis, limits);
    page.blank();
}

/// `test file of 1 GiB`; `file` where another program measured and does not show the size.
fn kind(target: &Target) -> String {
    let size = |before: &str| match target.size_bytes {
        0 => String::new(),
        bytes => format!("{before}{}", Bytes(bytes).approx()),
    };
    match (target.kind, target.made_by_rdsk) {
        (TargetKind::File, true) => format!("test file{}", size(" of ")),
        (TargetKind::File, false) => format!("file{}", size(" of ")),
        (TargetKind::Block, _) => format!("block device{}", size(" of ")),
        (TargetKind::Sim, _) => format!("simulated{}", size(", ")),
    }
}

/// `.: test file of 1 GiB on ext4 on vda: 256 GiB, rotational, write back cache without FUA; docker on vm`.
pub(crate) fn described(record: &Record, target: &Target) -> String {
    let filesystem = target.filesystem.as_ref().map(|filesystem| format!(" on {}", filesystem.kind));
    let has_layers =
        target.filesystem.is_some() || target.device.as_ref().is_some_and(|device| !device.below.is_empty());
    let stack = stack_text(target).filter(|_| has_layers).map(|stack| format!(" on {stack}"));
    let facts = target.device.as_ref().map_or_else(Vec::new, |device| {
        // The size of a whole device is that of the target.
        let size = device.size_bytes.filter(|&size| size != target.size_bytes);
        let rotational = device.rotational.map(|yes| if yes { "rotational" } else { "not rotational" });
        let facts = [
            device.model.clone(),
            size.map(|size| Bytes(size).approx()),
            rotational.map(String::from),
            write_cache(device),
        ];
        facts.into_iter().flatten().collect()
    });
    let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
    let host = record.host.as_ref().and_then(|host| host.virtualization.as_ref());
    let host = host.map_or(String::new(), |host| format!("; {host}"));
    format!(
        "{}: {}{}{}{facts}{host}",
        target.name,
        kind(target),
        filesystem.unwrap_or_default(),
        stack.unwrap_or_default()
    )
}

fn draw_status(page: &mut Page, record: &Record) {
    match record.status {
        Status::Complete => {}
        Status::Interrupted => page.sentence(Tone::Warning, "", "Interrupted: the figures are partial."),
        Status::Failed => page.sentence(Tone::Error, "", "Failed: the figures are partial or missing."),
    }
    if let Some(error) = &record.error {
        page.wordings(Tone::Error, "  error: ", vec![error.message.clone()], ERROR_LINES);
    }
    let failed: Vec<_> = record.cells.iter().filter(|cell| !cell.result.errors.is_empty()).collect();
    if let Some((first, error)) = failed.first().and_then(|first| Some((first, first.result.errors.first()?)))
    {
        let text = format!(
            "in {} of {} tests, first in {}: {} at byte {}",
            failed.len(),
            record.cells.len(),
            words::test(first),
            error.message,
            error.offset_bytes
        );
        page.wordings(Tone::Error, "  I/O failed ", vec![text], ERROR_LINES);
    }
    if record.cells.is_empty() {
        page.line("  Nothing was measured.");
        // Here they say why, and there is no other page that could.
        record.notes.iter().for_each(|note| page.sentence(Tone::Plain, "  note: ", note));
    }
}
