//! The stripe page: chunk and full stripe with where they are from, what requests cost (of each kind with what the disks did for it, or by
//! size and by offset), and what to write. It draws what [`rdsk_analysis::stripe`] derives.

mod answer;

pub(super) use answer::answer;

use crate::cells;
use crate::chart::{self, Axes, Series};
use crate::figures::{MISSING, significant};
use crate::page::{Page, Tone};
use rdsk_analysis::Analysis;
use rdsk_analysis::metrics::{self, whole};
use rdsk_analysis::stripe::{DiskBytes, SURE, StripeResult};
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_units::{Bytes, percent};

/// A size less likely than this is not shown: it would be taken for an answer.
const WORTH_SAYING: f64 = 0.5;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    page.heading("STRIPE: chunk and full stripe");
    for cell in cells::of_experiment(analysis, Experiment::Stripe) {
        match analysis.stripe(cell) {
            Some(reading) => draw_cell(page, analysis, cell, reading),
            // Requests of another kind: the page of the first cell has them all.
            None if metrics::ran(cell) => {}
            None => cells::draw_whys(page, analysis, &[cell], |cell| cell.id.clone()),
        }
    }
}

fn draw_cell(page: &mut Page, analysis: &Analysis<'_>, cell: &CellRecord, result: &StripeResult) {
    let op = match cell.workload.op {
        Op::Write => "direct sync writes",
        Op::Read => "direct reads",
    };
    let target = cells::target_name(analysis, cell).map_or_else(String::new, |name| format!("{name}: "));
    let made = if result.requests < result.planned {
        format!("{} of {} requests", result.requests, result.planned)
    } else {
        format!("{} requests", result.requests)
    };
    let sizes = match (Bytes(result.smallest_bytes), Bytes(result.largest_bytes)) {
        (smallest, largest) if smallest == largest => smallest.to_string(),
        (smallest, largest) => format!("{smallest} to {largest}"),
    };
    page.sentence(Tone::Plain, "  ", format!("{target}{op} one at a time, {made} of {sizes}"));
    cells::draw_whys(page, analysis, &[cell], |cell| cell.id.clone());
    if !result.is_of_device {
        page.line("  These requests did not reach a device, so they say nothing about its stripes.");
    }
    if result.described.is_some() {
        draw_answer(page, result);
        draw_words(page, result);
        draw_costs(page, result);
    } else if result.is_of_device {
        draw_answer(page, result);
        draw_reasons(page, result);
        draw_offsets(page, result);
        draw_sizes(page, result);
    }
    if result.is_conclusive() {
        page.sentence(Tone::Plain, "  Advice: ", format!("{}.", result.advice));
    }
}

/// Chunk, full stripe and parity, a line each, with where they are from.
fn draw_answer(page: &mut Page, result: &StripeResult) {
    let Some(chunk) = result.chunk() else {
        page.sentence(Tone::Plain, "  ", without_chunk(result));
        return;
    };
    let row = |name: &str, bytes: u64, confidence: f64, words: String| {
        let how = match &result.described {
            Some(_) => "from the kernel".to_owned(),
            None if confidence >= SURE => percent(confidence),
            None => format!("{}, not certain", percent(confidence)),
        };
        if confidence < WORTH_SAYING {
            return vec![name.to_owned(), MISSING.into(), "not certain".into(), String::new()];
        }
        vec![name.to_owned(), Bytes(bytes).to_string(), how, words]
    };
    let mut rows = vec![row("chunk", chunk.0, chunk.1, String::new())];
    if let Some((bytes, confidence)) = result.stripe() {
        let what = if has_copies(result) { "chunks side by side" } else { "data members" };
        let members = format!("{} {what} of {}", bytes / chunk.0, Bytes(chunk.0));
        rows.push(row("full stripe", bytes, confidence, members));
    }
    let parity = match result.parity {
        Some(true) => "yes",
        Some(false) => "no",
        None => MISSING,
    };
    rows.push(vec!["parity".into(), parity.into(), String::new(), String::new()]);
    if let Some(begin) = result.start_offset_bytes.filter(|&begin| begin > 0) {
        rows.push(vec!["first stripe at".into(), Bytes(begin).to_string(), String::new(), String::new()]);
    }
    page.table_with(&["", "size", "confidence", ""], &rows, &[3]);
}

/// What there is to say when no chunk was seen.
pub(crate) fn without_chunk(result: &StripeResult) -> String {
    if !result.is_conclusive() {
        return "There were too few requests to show whether there is a stripe.".into();
    }
    let sure = result.none_confidence;
    let doubt = if sure >= SURE { "" } else { ", which is not certain" };
    if let Some(described) = &result.described {
        let level = described.levels.first().map_or("", |layout| layout.level.name());
        return match described.has_hidden_stripes() {
            true => format!("No stripe is that of all of it: {level}, over arrays that differ."),
            false => format!("No stripe: {level}."),
        };
    }
    format!(
        "No stripe is seen{doubt} (confidence {}). These requests cannot show full stripes larger than {}.",
        percent(sure),
        Bytes(result.largest_bytes / 2)
    )
}

fn has_copies(result: &StripeResult) -> bool {
    let first = result.described.as_ref().and_then(|described| described.levels.first());
    first.and_then(|layout| layout.copies).is_some_and(|copies| copies > 1)
}

/// The kernel's words, level by level, and what is doubtful about them or about the figures.
fn draw_words(page: &mut Page, result: &StripeResult) {
    let Some(described) = &result.described else { return };
    for layout in &described.levels {
        page.sentence(
            Tone::Plain,
            "  kernel: ",
            format!("{}, as {} says.", layout.sentence(), layout.source),
        );
    }
    for doubt in &described.doubts {
        page.sentence(Tone::Plain, "  uncertain: ", format!("{doubt}."));
    }
    if let Some((_, text)) = &result.hints {
        page.sentence(Tone::Plain, "  hints: ", format!("{text}."));
    }
}

/// What each kind of request took, and what the disks below the array did for it.
fn draw_costs(page: &mut Page, result: &StripeResult) {
    if result.costs.is_empty() {
        return;
    }
    page.blank();
    let text = "Cost of one request: median, and what the disks below the array did for it";
    page.sentence(Tone::Plain, "  ", text);
    let rows: Vec<Vec<String>> = result
        .costs
        .iter()
        .map(|cost| {
            let disks = |bytes: fn(&DiskBytes) -> f64| {
                cost.disks
                    .as_ref()
                    .map_or_else(|| MISSING.into(), |disks| Bytes(whole(bytes(disks))).approx())
            };
            vec![
                cost.name(),
                Bytes(cost.request.bytes).to_string(),
                cost.count.to_string(),
                cost.median_ns.map_or_else(|| MISSING.into(), |ns| millis(ns as f64)),
                disks(|disks| disks.read_bytes),
                disks(|disks| disks.write_bytes),
            ]
        })
        .collect();
    page.table(&["", "size", "count", "ms", "disks read", "disks wrote"], &rows);
}

fn draw_reasons(page: &mut Page, result: &StripeResult) {
    for reason in &result.evidence {
        page.sentence(Tone::Plain, "  timed: ", format!("{reason}."));
    }
    if let Some((_, text)) = &result.hints {
        page.sentence(Tone::Plain, "  hints: ", format!("{text}."));
    }
}

fn draw_offsets(page: &mut Page, result: &StripeResult) {
    if result.boundary_profile.is_empty() {
        return;
    }
    page.blank();
    let unit = Bytes(result.smallest_bytes);
    let text = format!("Cost over offset, ms: requests of {unit} and {} at a boundary", Bytes(unit.0 * 2));
    page.sentence(Tone::Plain, "  ", text);
    let rows: Vec<Vec<String>> = result
        .boundary_profile
        .iter()
        .map(|step| {
            vec![
                Bytes(step.boundary_bytes).to_string(),
                step.count.to_string(),
                millis(step.after_median_ns),
                millis(step.after_spread_ns),
                millis(step.across_median_ns),
                if result.chunk().is_some_and(|(chunk, _)| chunk == step.boundary_bytes) {
                    "< the chunk".into()
                } else {
                    String::new()
                },
            ]
        })
        .collect();
    let heads = ["odd multiples of", "count", "starts there", "spread", "crosses it", ""];
    page.table_with(&heads, &rows, &[heads.len() - 1]);
}

fn draw_sizes(page: &mut Page, result: &StripeResult) {
    let sizes = &result.sizes;
    if sizes.is_empty() {
        return;
    }
    page.blank();
    let whole = if result.chunk().is_some() { "full stripes" } else { "aligned" };
    page.line("  Cost over size, ms (medians)");
    let heads = ["sizes from", "count", whole, "count", "others"];
    let rows: Vec<Vec<String>> = sizes
        .iter()
        .map(|size| {
            let cost = |ns: Option<f64>| ns.map_or_else(|| MISSING.into(), millis);
            vec![
                Bytes(size.bytes).to_string(),
                size.aligned_count.to_string(),
                cost(size.aligned_median_ns),
                size.other_count.to_string(),
                cost(size.other_median_ns),
            ]
        })
        .collect();
    page.table(&heads, &rows);
    let series = |label: &str, median_ns: fn(&rdsk_analysis::stripe::SizePoint) -> Option<f64>| Series {
        label: label.into(),
        points: sizes
            .iter()
            .filter_map(|size| Some(((size.bytes as f64).log2(), median_ns(size)? / 1e6)))
            .collect(),
    };
    let curves =
        [series(whole, |size| size.aligned_median_ns), series("others", |size| size.other_median_ns)];
    page.blank();
    chart::draw(
        page,
        &curves,
        &Axes { top: chart::Top::Largest, unit: "ms", along: "size", at: &chart::size_of_log2 },
    );
}

fn millis(ns: f64) -> String {
    significant(ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::stripe::{described, words};
    use rdsk_model::ArrayFacts;

    fn page(array: ArrayFacts, below: &[ArrayFacts]) -> String {
        let record = described(array, below);
        let text = crate::tests::alone(&record, Experiment::Stripe);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_kernels_words_stand_with_what_requests_cost() {
        let offset =
            ArrayFacts { target_offset_bytes: Some(1 << 20), ..words("md0", "raid5", Some(64 << 10)) };
        let text = page(offset, &[]);
        for part in [
            "chunk 64 KiB from the kernel",
            "full stripe 192 KiB from the kernel 3 data members of 64 KiB",
            "parity yes",
            "first stripe at 128 KiB",
            "kernel: md0 is RAID 5, left-symmetric, 4 members, chunk 64 KiB, full stripe 192 KiB, as md says.",
            "single chunks 64 KiB 192",
            "Advice: write multiples of 192 KiB at 128 KiB and then at multiples of 192 KiB from there",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("timed") && !text.contains("uncertain"), "{text}");
    }

    #[test]
    fn stacks_are_said_level_by_level_and_what_is_busy_is_doubted() {
        let below = ["md1", "md2"].map(|name| words(name, "raid5", Some(512 << 10)));
        let text = page(words("md0", "raid0", Some(64 << 10)), &below);
        assert!(
            text.contains("kernel: md0 is RAID 0, 4 members, chunk 64 KiB, full stripe 256 KiB"),
            "{text}"
        );
        assert!(text.contains("kernel: md1 and md2 are RAID 5") && text.contains("parity yes"), "{text}");
        let mirror = page(words("md0", "raid1", None), &[]);
        assert!(mirror.contains("No stripe: RAID 1.") && mirror.contains("4 copies"), "{mirror}");
        let busy = ArrayFacts { activity: Some("resync".into()), ..words("md0", "raid0", Some(64 << 10)) };
        assert!(page(busy, &[]).contains("uncertain: md0 is busy with a resync."));
    }
}
