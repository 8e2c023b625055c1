//! The page of a load: what each of its jobs reached, with the latencies of its reads, writes and flushes; and, where it was asked whether
//! a need is met, the answer first.

mod need;
mod promise;

use crate::cells;
use crate::page::{Page, Tone};
use crate::spark;
use promise::{draw_promise, promise_sentence};
use rdsk_analysis::promise::Promised;
use rdsk_analysis::steady::{Course, Measure};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{Arrivals, CellRecord, Experiment, JobResult, KindResult, LoadJob, OffsetRule, Requests};
use rdsk_units::{Bytes, Nanos, count, grouped};

/// Width of a curve in columns.
const CURVE_WIDTH: usize = 24;
/// From this size on, what requests move matters more than how many there are.
const LARGE_BYTES: f64 = 65_536.0;
/// A rate below this would be shown as none.
const LEAST_SHOWN_PER_S: f64 = 0.01;
/// Jobs that a sentence names.
const MAX_JOBS: usize = 4;
/// A curve of fewer points shows nothing.
const MIN_CURVE: usize = 4;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    if let Some(need) = &analysis.need {
        need::draw(page, analysis, need);
    }
    if let Some(promised) = Promised::of(analysis) {
        draw_promise(page, analysis, &promised);
        return;
    }
    for cell in cells::of_experiment(analysis, Experiment::Load) {
        draw_cell(page, analysis, cell);
    }
}

/// What decides, in a sentence: the answer to a need, the rate that keeps a promise, or what each job reached.
pub(crate) fn sentence(analysis: &Analysis<'_>) -> Option<String> {
    if let Some(need) = &analysis.need {
        return need::sentence(analysis, need);
    }
    if let Some(promised) = Promised::of(analysis) {
        return Some(promise_sentence(analysis, &promised));
    }
    let of_job = |job: &JobResult| {
        let seconds = job.elapsed_ns.max(1) as f64 / 1e9;
        let kind = |(word, kind): (&str, &KindResult)| {
            let p99 = kind
                .latency_ns
                .p99
                .map_or(String::new(), |ns| format!(" with a p99 of {}", words::nanos(ns)));
            format!("{}/s {word}{p99}", count(kind.ops as f64 / seconds))
        };
        let kinds: Vec<String> = job.kinds().map(kind).collect();
        match kinds.is_empty() {
            true => format!("{}: no request completed", job.name),
            false => format!("{}: {}", job.name, kinds.join(", ")),
        }
    };
    let jobs =
        cells::of_experiment(analysis, Experiment::Load).flat_map(|cell| &cell.result.jobs).map(of_job);
    let jobs: Vec<String> = jobs.take(MAX_JOBS).collect();
    (!jobs.is_empty()).then(|| jobs.join("; "))
}

fn draw_cell(page: &mut Page, analysis: &Analysis<'_>, cell: &CellRecord) {
    page.blank();
    let target = cells::target_name(analysis, cell).map_or(String::new(), |name| format!(" on {name}"));
    let names: Vec<String> = cell.workload.jobs.iter().map(|job| job.name.clone()).collect();
    page.heading(format!("LOAD: {}{target}", words::list(&names)));
    if cell.result.jobs.is_empty() {
        page.sentence(Tone::Warning, "  not measured: ", cell.result.why.clone());
        return;
    }
    let heads = ["", "rate", "bandwidth", "p50", "p99", "p99.9", "max"];
    let mut rows = Vec::new();
    for (job, result) in cell.workload.jobs.iter().zip(&cell.result.jobs) {
        rows.extend(rows_of(job, result));
    }
    if !rows.is_empty() {
        page.table(&heads, &rows);
    }
    for (job, result) in cell.workload.jobs.iter().zip(&cell.result.jobs) {
        page.sentence(Tone::Plain, format!("  {}: ", job.name), asked(job));
        if result.kinds().next().is_none() {
            page.sentence(Tone::Warning, "    ", nothing_completed(job, result));
            continue;
        }
        let texts = [kept_up(job, result), course(result), by_time(result)];
        for text in texts.into_iter().flatten() {
            page.sentence(Tone::Plain, "    ", text);
        }
    }
    draw_verdict(page, cell);
}

/// What moved the bytes.
fn draw_verdict(page: &mut Page, cell: &CellRecord) {
    if let Some(verdict) = &cell.verdict {
        let has_ramp = cell.workload.jobs.iter().any(|job| job.ramp_ns > 0);
        let ramp = if has_ramp { "; the ramp included" } else { "" };
        page.sentence(
            Tone::Plain,
            format!("  {}: ", cells::verdict_word(cell)),
            format!("{}{ramp}", verdict.text),
        );
    }
}

/// The reads, writes, trims and flushes of a job.
fn rows_of(job: &LoadJob, result: &JobResult) -> Vec<Vec<String>> {
    let seconds = (result.elapsed_ns.max(1) as f64) / 1e9;
    let row = |(word, kind): (&'static str, &KindResult)| {
        let word = job.flush.filter(|_| word == "flushes").map_or(word, |flush| flush.call.as_str());
        let latency = &kind.latency_ns;
        let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), words::nanos);
        let bandwidth =
            if kind.bytes > 0 { words::rate(kind.bytes as f64 / seconds) } else { "–".to_owned() };
        vec![
            format!("{} {word}", job.name),
            format!("{}/s", count(kind.ops as f64 / seconds)),
            bandwidth,
            time(latency.p50),
            time(latency.p99),
            time(latency.p999),
            time(latency.max),
        ]
    };
    result.kinds().map(row).collect()
}

/// That a job has no figures, and what gives some.
fn nothing_completed(job: &LoadJob, result: &JobResult) -> String {
    let ran = Nanos(result.elapsed_ns);
    if result.elapsed_ns == 0 && job.ramp_ns > 0 {
        return format!("it was over before its ramp of {}", Nanos(job.ramp_ns));
    }
    let gap = job.offered_per_s().map(|per_s| 1.0 / per_s).filter(|gap| gap * 1e9 > result.elapsed_ns as f64);
    match gap {
        Some(seconds) => format!(
            "no request completed in {ran}: at this rate one arrives every {}; a higher rate or a longer --budget has some",
            words::mean_nanos(seconds * 1e9)
        ),
        None => format!("no request completed in {ran}"),
    }
}

/// What was asked of a job, in words.
fn asked(job: &LoadJob) -> String {
    let mut parts = Vec::new();
    if (1..100).contains(&job.trim_percent) {
        parts.push(format!("{}% trims", job.trim_percent));
    }
    if job.reads.is_some() && job.writes.is_some() {
        let rest = if job.trims.is_some() { " of the rest" } else { "" };
        parts.push(format!("{}% reads{rest}", job.read_percent));
    }
    for (word, requests) in [("reads", &job.reads), ("writes", &job.writes), ("trims", &job.trims)] {
        if let Some(requests) = requests {
            let aligned = requests
                .align_bytes
                .map_or(String::new(), |bytes| format!(" at multiples of {}", Bytes(bytes)));
            parts.push(format!("{word} {} {}{aligned}", rule(&requests.offsets), sizes(requests)));
        }
    }
    if job.trims_before_writes {
        parts.push("each write after a trim of its blocks".into());
    }
    parts.push(job.path.to_string());
    if job.dsync {
        parts.push("O_DSYNC".into());
    }
    if let Some(flush) = job.flush {
        let every =
            if flush.every == 1 { String::new() } else { format!(" {}", grouped(flush.every.into())) };
        let word = if flush.every == 1 { "write" } else { " writes" };
        parts.push(format!("{} after every{every} {}", flush.call, word.trim()));
    }
    parts.push(format!("QD{}", job.queue_depth));
    if job.streams > 1 {
        parts.push(format!("{} streams", job.streams));
    }
    if job.think_ns > 0 {
        let every =
            if job.think_every == 1 { "request".into() } else { format!("{} requests", job.think_every) };
        parts.push(format!("{} rest after every {every}", words::nanos(job.think_ns)));
    }
    if job.ramp_ns > 0 {
        parts.push(format!("counted after a ramp of {}", words::nanos(job.ramp_ns)));
    }
    if let Some(lasts_ns) = job.lasts_ns {
        parts.push(format!("{} at most", words::nanos(lasts_ns)));
    }
    if job.fresh_space {
        parts.push("into newly allocated space".into());
    }
    parts.push(match job.offered_per_s() {
        Some(per_s) if per_s < LEAST_SHOWN_PER_S => {
            format!("open loop, one request in {}, {}", words::mean_nanos(1e9 / per_s), arrivals(job))
        }
        Some(per_s) => format!("open loop, {}/s, {}", count(per_s), arrivals(job)),
        None => "closed loop".into(),
    });
    parts.join(", ")
}

fn arrivals(job: &LoadJob) -> &'static str {
    match job.rate.map(|rate| rate.arrivals) {
        Some(Arrivals::Poisson) => "Poisson arrivals",
        Some(Arrivals::Constant) | None => "equally spaced",
    }
}

fn rule(offsets: &OffsetRule) -> String {
    match offsets {
        OffsetRule::Sequential => "sequential".into(),
        OffsetRule::Skips { skip_bytes } if *skip_bytes < 0 => {
            format!("sequential {} back each,", Bytes(skip_bytes.unsigned_abs()))
        }
        OffsetRule::Skips { skip_bytes } => {
            format!("sequential with holes of {},", Bytes(skip_bytes.unsigned_abs()))
        }
        OffsetRule::Uniform => "random".into(),
        OffsetRule::Once => "random, each block once,".into(),
        OffsetRule::Zipf { theta } => format!("zipf {theta}"),
        OffsetRule::Pareto { skew } => format!("pareto {skew}"),
        OffsetRule::Normal { deviation_percent } => format!("normal {deviation_percent}%"),
        OffsetRule::Zoned { zones } => format!("in {} zones", zones.len()),
    }
}

fn sizes(requests: &Requests) -> String {
    let (min, max) = (requests.min_bytes(), requests.max_bytes());
    if min == max { Bytes(min).to_string() } else { format!("{}–{}", Bytes(min), Bytes(max)) }
}

/// Whether the job became steady, and when.
fn course(result: &JobResult) -> Option<String> {
    let course = Course::of(result)?;
    let (least, largest) = course.range();
    let bytes: u64 = result.kinds().map(|(_, kind)| kind.bytes).sum();
    let mean_bytes = bytes as f64 / result.requests().max(1) as f64;
    let with_unit = |figure: f64| match course.measure {
        Measure::Rate if mean_bytes >= LARGE_BYTES => words::rate(figure * mean_bytes),
        Measure::Rate => format!("{}/s", count(figure)),
        Measure::Median => words::mean_nanos(figure),
    };
    let what = match course.measure {
        Measure::Rate => "rate",
        Measure::Median => "median latency",
    };
    let (least, largest) = (with_unit(least), with_unit(largest));
    let range = if least == largest { least } else { format!("{least}–{largest}") };
    let whole = Nanos(course.part_ns * course.parts.len() as u64);
    Some(match course.steady_from {
        Some(0) => format!("steady from the start: {what} {range} in each tenth of {whole}"),
        Some(from) => {
            let first = course.parts.first().copied().unwrap_or_default();
            let begin = Nanos(course.part_ns * from as u64);
            format!(
                "steady from {begin} of {whole} on: {what} {range} in each tenth; at first {}",
                with_unit(first)
            )
        }
        None => format!("not steady: {what} {range} in the tenths of {whole}"),
    })
}

/// The latencies of its slowest kind of request in the order of time, where they differ.
fn by_time(result: &JobResult) -> Option<String> {
    let shown = result.kinds().filter_map(|(word, kind)| Some((word, kind, kind.latency_ns.p99?)));
    let (word, kind, _) = shown.max_by_key(|(.., p99)| *p99)?;
    let p99s: Vec<u64> = kind.windows.iter().filter_map(|window| window.p99_ns).collect();
    let worst = kind.windows.iter().max_by_key(|window| window.p99_ns)?;
    if p99s.len() < kind.windows.len() / 2 || p99s.len() < MIN_CURVE {
        return None;
    }
    Some(format!(
        "p99 of {word} by time {}, at most {} at {}",
        spark::line(&p99s, CURVE_WIDTH),
        words::nanos(worst.p99_ns?),
        Nanos(worst.begin_ns)
    ))
}

/// How a job kept up with its rate.
fn kept_up(job: &LoadJob, result: &JobResult) -> Option<String> {
    let (offered, rate) = (job.offered_per_s()?, result.rate.as_ref()?);
    let lag = rate.lag_ns.p99.map_or(String::new(), |ns| format!(", 99% sent within {}", words::nanos(ns)));
    let sent = rate.due.saturating_sub(rate.unsent);
    Some(if rate.is_kept() {
        let last = if rate.unsent == 0 {
            String::new()
        } else {
            format!(", {} more at the end not sent", rate.unsent)
        };
        format!(
            "kept up with {}/s: {} requests{last}{lag}; latencies count from the arrival",
            count(offered),
            grouped(sent)
        )
    } else {
        format!(
            "fell behind {}/s: {} of {} requests were never sent{lag}; latencies count from the arrival",
            count(offered),
            grouped(rate.unsent),
            grouped(rate.due)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::alone;

    #[test]
    fn a_ramp_and_what_a_sequence_leaves_out_are_said() {
        let mut record = rdsk_analysis::fixtures::load();
        let cell = &mut record.cells[0];
        cell.result.warmup_ns = Some(2_000_000_000);
        for job in &mut cell.workload.jobs {
            job.ramp_ns = 2_000_000_000;
        }
        let log = cell.workload.jobs[1].writes.as_mut().expect("it writes");
        log.offsets = OffsetRule::Skips { skip_bytes: 4096 };
        let database = cell.workload.jobs[0].reads.as_mut().expect("it reads");
        database.align_bytes = Some(65_536);
        let text = alone(&record, Experiment::Load).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "writes sequential with holes of 4 KiB, 2300 B",
            "reads random 8 KiB at multiples of 64 KiB, writes random 8 KiB",
            "counted after a ramp of 2.00 s",
            "; the ramp included",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("Warm-up"), "a ramp was asked for, and nothing differs: {text}");
        let back = rule(&OffsetRule::Skips { skip_bytes: -8192 });
        assert_eq!(back, "sequential 8 KiB back each,");
    }
}
