//! The stripe page: chunk and full stripe with their confidence, what the requests cost by size and by offset, what
//! partial stripes made the members read, and what to write. It draws what [`rdsk_analysis::stripe`] derives.

use crate::cells;
use crate::chart::{self, Axes, Series};
use crate::figures::{MISSING, significant};
use crate::page::{Page, Tone};
use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::{MemberLayout, SURE, StripeResult};
use rdsk_model::{CellRecord, Experiment, Op, Record};
use rdsk_units::{Bytes, percent};

/// A size less likely than this is not shown: it would be taken for an answer.
const WORTH_SAYING: f64 = 0.5;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    page.heading("STRIPE: chunk and full stripe, from request latencies");
    for cell in cells::of(analysis, Experiment::Stripe) {
        match analysis.stripe(cell) {
            Some(reading) => draw_cell(page, analysis, cell, reading),
            // Reads beside writes: the page of the writes includes what they show.
            None if !cell.result.points.is_empty() => {}
            None => cells::draw_whys(page, analysis, &[cell], |cell| cell.id.clone()),
        }
    }
}

fn draw_cell(page: &mut Page, record: &Record, cell: &CellRecord, result: &StripeResult) {
    let op = match cell.workload.op {
        Op::Write => "durable direct writes",
        Op::Read => "direct reads",
    };
    let target = cells::target_name(record, cell).map_or_else(String::new, |name| format!("{name}: "));
    let made = if result.requests < result.planned {
        format!("{} of {} requests", result.requests, result.planned)
    } else {
        format!("{} requests", result.requests)
    };
    let op = match &result.counted {
        Some(layout) if layout.writes > 0 && result.requests > result.timed => {
            "direct reads and durable direct writes"
        }
        _ => op,
    };
    let sizes = match (Bytes(result.smallest_bytes), Bytes(result.largest_bytes)) {
        (smallest, largest) if smallest == largest => smallest.to_string(),
        (smallest, largest) => format!("{smallest} to {largest}"),
    };
    page.sentence(Tone::Plain, "  ", format!("{target}{op} one at a time, {made} of {sizes}"));
    cells::draw_whys(page, record, &[cell], |cell| cell.id.clone());
    if !result.is_of_device {
        page.line("  These requests did not reach a device, so they say nothing about its stripes.");
        return;
    }
    draw_answer(page, result);
    draw_reasons(page, result);
    draw_offsets(page, result);
    draw_sizes(page, result);
    if result.is_conclusive() {
        page.sentence(Tone::Plain, "  Advice: ", format!("{}.", result.advice()));
    }
}

/// What was found, a line each, with its confidence.
fn draw_answer(page: &mut Page, result: &StripeResult) {
    let Some(chunk) = result.chunk() else {
        page.sentence(Tone::Plain, "  ", without_chunk(result));
        return;
    };
    let row = |name: &str, bytes: u64, confidence: f64, words: String| {
        let how = match &result.counted {
            Some(layout) if layout.is_sure() => "counted".to_owned(),
            Some(_) => "counted, not certain".to_owned(),
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
        let what = if result.counted.as_ref().is_some_and(has_copies) {
            "chunks side by side"
        } else {
            "data members"
        };
        let members = format!("{} {what} of {}", bytes / chunk.0, Bytes(chunk.0));
        let mut words = row("full stripe", bytes, confidence, members);
        if result.counted.as_ref().is_some_and(|layout| layout.needs_words && layout.is_sure()) {
            words[2] = "from the kernel".into();
        }
        rows.push(words);
    }
    let parity = match result.parity() {
        Some(true) => "yes",
        Some(false) => "no",
        None => MISSING,
    };
    rows.push(vec!["parity".into(), parity.into(), String::new(), String::new()]);
    if let Some(begin) = result.start_offset_bytes().filter(|&begin| begin > 0) {
        rows.push(vec!["first stripe at".into(), Bytes(begin).to_string(), String::new(), String::new()]);
    }
    page.table_with(&["", "size", "confidence", ""], &rows, &[3]);
    if let Some(level) = result.counted.as_ref().and_then(level_words) {
        page.sentence(Tone::Plain, "  level: ", format!("{level}."));
    }
    if let Some(words) = parity_words(result) {
        page.sentence(Tone::Plain, "  parity reads: ", words);
    }
}

/// What there is to say when no chunk was seen.
pub(crate) fn without_chunk(result: &StripeResult) -> String {
    if !result.is_conclusive() {
        return "There were too few requests to tell whether there is a stripe.".into();
    }
    let sure = result.none_confidence();
    let doubt = if sure >= SURE { "" } else { ", which is not certain" };
    if let Some(layout) = &result.counted {
        let seen = if sure >= SURE { "" } else { " is seen" };
        let level = layout.level.map_or_else(String::new, |level| format!(": {}", level.name()));
        return format!("No stripe{seen}{doubt}{level}.");
    }
    format!(
        "No stripe is seen{doubt} (confidence {}). These requests cannot show full stripes larger than {}.",
        percent(sure),
        Bytes(result.largest_bytes / 2)
    )
}

fn has_copies(layout: &MemberLayout) -> bool {
    layout.copies.is_some_and(|copies| copies > 1)
}

/// The level as it was counted: `RAID 5, left-symmetric, 4 members`.
fn level_words(layout: &MemberLayout) -> Option<String> {
    let mut words = vec![layout.level?.name().to_owned()];
    words.extend(layout.rotation.map(|rotation| rotation.name().to_owned()));
    words.extend(layout.copies.filter(|&copies| copies > 1).map(|copies| format!("{copies} copies")));
    words.push(format!("{} members", layout.members));
    Some(words.join(", "))
}

/// The reads that partial stripes caused, where they were counted.
fn parity_words(result: &StripeResult) -> Option<String> {
    let layout = result.counted.as_ref().filter(|layout| layout.writes > 0)?;
    if layout.writes_with_reads == 0 {
        // Parity further down, where nothing was counted, may have read all the same.
        layout.parity_members?;
        return Some("no write made a member read.".into());
    }
    Some(format!(
        "{} of {} writes made members read {} in all.",
        layout.writes_with_reads,
        layout.writes,
        Bytes(layout.caused_read_bytes).approx()
    ))
}

fn draw_reasons(page: &mut Page, result: &StripeResult) {
    if let Some(layout) = &result.counted {
        for reason in &layout.evidence {
            page.sentence(Tone::Plain, "  counted: ", format!("{reason}."));
        }
        if let Some(declared) = &layout.declared {
            page.sentence(Tone::Plain, "  kernel: ", format!("{}.", declared.text));
        }
        for doubt in &layout.doubts {
            page.sentence(Tone::Plain, "  uncertain: ", format!("{doubt}."));
        }
    }
    if result.timed > 0 && !result.agrees() {
        page.sentence(Tone::Plain, "  timed: ", "the latencies of these requests alone do not show it.");
        return;
    }
    for reason in result.answer.evidence.iter().filter(|_| result.timed > 0) {
        page.sentence(Tone::Plain, "  timed: ", format!("{reason}."));
    }
    if let Some((_, text)) = &result.hints {
        page.sentence(Tone::Plain, "  hints: ", format!("{text}."));
    }
}

fn draw_offsets(page: &mut Page, result: &StripeResult) {
    if result.answer.boundary_profile.is_empty() {
        return;
    }
    page.blank();
    let unit = Bytes(result.smallest_bytes);
    page.line(format!("  Cost over offset, ms: requests of {unit} and {} at a boundary", Bytes(unit.0 * 2)));
    let rows: Vec<Vec<String>> = result
        .answer
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
    let sizes = &result.answer.sizes;
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
    let series = |label: &str, of: fn(&rdsk_analysis::stripe::SizePoint) -> Option<f64>| Series {
        label: label.into(),
        points: sizes.iter().filter_map(|size| Some(((size.bytes as f64).log2(), of(size)? / 1e6))).collect(),
    };
    let all = [series(whole, |size| size.aligned_median_ns), series("others", |size| size.other_median_ns)];
    page.blank();
    chart::draw(page, &all, &Axes { unit: "ms", along: "size", at: &chart::size_of_log2 });
}

fn millis(ns: f64) -> String {
    significant(ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::stripe::counted_as;
    use rdsk_model::ArrayFacts;

    fn page(level: &str, below: Option<&str>, reached: impl Fn(u64) -> Vec<bool>) -> String {
        let facts = |device: &str, level: &str| ArrayFacts {
            device: device.into(),
            source: "md".into(),
            level: Some(level.into()),
            chunk_bytes: Some(64 << 10),
            ..ArrayFacts::default()
        };
        let mut record = counted_as(reached);
        let device = record.targets[0].device.as_mut().unwrap();
        device.array = Some(facts("md0", level));
        device.arrays_below = below.map(|level| facts("md1", level)).into_iter().collect();
        let text =
            crate::experiment(&Analysis::of(&record), Experiment::Stripe, crate::style::Style::default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_not_counted_below_is_said_in_words() {
        let by_turns = |offset: u64| [0, 1].map(|member| offset / (64 << 10) % 2 == member).to_vec();
        let sure = page("raid0", Some("raid1"), by_turns);
        assert!(sure.contains("parity no") && sure.contains("no write made a member read."), "{sure}");
        assert!(!sure.contains("uncertain"), "{sure}");
        let why = "uncertain: md1 below is raid5 with chunks of 64 KiB, which these counts do not show.";
        let seen = page("raid0", Some("raid5"), by_turns);
        assert!(seen.contains(why) && seen.contains("parity –") && seen.contains("not certain"), "{seen}");
        assert!(!seen.contains("no write made a member read"), "{seen}");
        let mirror = page("raid1", Some("raid5"), |_| vec![true; 2]);
        assert!(mirror.contains("No stripe is seen, which is not certain: RAID 1.") && mirror.contains(why));
    }

    #[test]
    fn a_cache_is_no_mirror() {
        let seen = page("bcache", None, |_| vec![true; 2]);
        assert!(seen.contains("No stripe is seen, which is not certain."), "{seen}");
        assert!(seen.contains("uncertain: md0 is a cache and no array"), "{seen}");
        assert!(!seen.contains("RAID 1"), "{seen}");
    }
}
