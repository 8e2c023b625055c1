//! Many disks on a page and as JSON: which of them are slower than the others of their model, and the models. It draws what
//! `rdsk_compare::fleet` found and computes nothing.

mod json;

pub use json::fleet_json;

use crate::compare::Extent;
use crate::figures::MISSING;
use crate::page::{Page, Tone};
use crate::style::Style;
use crate::table::{end_of, shortened};
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words::{self, few, plural, times};
use rdsk_compare::Metric;
use rdsk_compare::fleet::{ComparedWith, Fleet, Group, MIN_ALIKE, MIN_FACTOR, Outlier, Series};
use rdsk_model::VerdictCode;
use rdsk_units::{grouped, printable};

/// Rows of a short table, and disks that the first sentence names.
const MOST_ROWS: usize = 12;
const MOST_NAMES: usize = 5;
/// Columns of a host's name, a model and a firmware.
const HOST_COLUMNS: usize = 20;
const MODEL_COLUMNS: usize = 24;

/// The fleet as text; no line is wider than [`Style::width`]. It begins with the sentence that decides.
pub fn fleet_text(fleet: &Fleet, extent: Extent, style: Style) -> String {
    let mut page = Page::default();
    let tone = if fleet.outliers.is_empty() { Tone::Heading } else { Tone::Warning };
    page.sentence(tone, "", decision(fleet));
    page.sentence(Tone::Plain, "", scope(fleet));
    draw_outliers(&mut page, fleet, extent);
    draw_groups(&mut page, fleet, extent);
    let is_cut = [fleet.outliers.len(), fleet.groups.len()].iter().any(|&rows| rows > MOST_ROWS);
    if is_cut && extent == Extent::Short {
        page.blank();
        page.line("All rows: --details");
    }
    page.render(style)
}

/// `5 of 500 disks are slower than the others of their model: a sda, b sda and 3 others.`
fn decision(fleet: &Fleet) -> String {
    let count = |count: usize| grouped(count as u64);
    let (slower, compared) = (fleet.outliers.len(), plural(fleet.compared as u64, "disk"));
    if fleet.compared == 0 {
        let largest = fleet.groups.first().map_or(0, |group| group.disks);
        return format!(
            "No disk is compared: that takes {MIN_ALIKE} of one model with the same tests, and of no model there are more than {}.",
            count(largest)
        );
    }
    if slower == 0 {
        return format!("No outlier among {compared}: none is clearly slower than the others of its model.");
    }
    let names: Vec<String> = fleet.outliers.iter().map(|outlier| name(fleet, outlier)).collect();
    let (are, its) = if slower == 1 { ("is", "its") } else { ("are", "their") };
    let names = few(&names, MOST_NAMES, "other");
    format!("{} of {compared} {are} slower than the others of {its} model: {names}.", count(slower))
}

/// `web17 sda`.
fn name(fleet: &Fleet, outlier: &Outlier) -> String {
    let disk = &fleet.disks[outlier.disk];
    let host = shortened(&printable(&disk.host), HOST_COLUMNS);
    format!("{host} {}", end_of(&printable(&disk.device)))
}

/// What was read, what was left out, and what the first sentence means.
fn scope(fleet: &Fleet) -> String {
    let (disks, hosts) = (fleet.disks.len() as u64, fleet.hosts as u64);
    let mut said = vec![format!("Read: {} of {}.", plural(disks, "disk"), plural(hosts, "host"))];
    let alone = disks - fleet.compared as u64;
    if alone > 0 && fleet.compared > 0 {
        let are = if alone == 1 { "is" } else { "are" };
        said.push(format!(
            "{} {are} not compared: fewer than {MIN_ALIKE} of a model, or other tests.",
            plural(alone, "disk")
        ));
    }
    if fleet.replaced > 0 {
        said.push(format!(
            "{} left out: the latest run of each disk counts.",
            plural(fleet.replaced as u64, "older run")
        ));
    }
    if fleet.without_figures > 0 {
        said.push(format!("{} without a figure of one disk.", plural(fleet.without_figures as u64, "run")));
    }
    if fleet.compared > 0 {
        said.push(format!(
            "Named is what is at least {} slower; a fleet of equal disks has an outlier by chance in 1 of 20 cases at most.",
            times(MIN_FACTOR)
        ));
    }
    said.join(" ")
}

fn draw_outliers(page: &mut Page, fleet: &Fleet, extent: Extent) {
    if fleet.outliers.is_empty() {
        return;
    }
    page.heading("OUTLIERS: of each disk the figure that stands out most");
    let shown = if extent == Extent::Full { fleet.outliers.len() } else { MOST_ROWS };
    let shown = || fleet.outliers.iter().take(shown);
    let row = |outlier: &Outlier| {
        let series = fleet.series_of(outlier.worst);
        vec![
            name(fleet, outlier),
            test(series),
            value(series, outlier.worst.value),
            value(series, outlier.median),
            times(outlier.factor),
            format!("{}/{}", outlier.slower, outlier.compared),
        ]
    };
    let heads = ["disk", "figure", "measured", "median", "slower", "slow"];
    page.table_with(&heads, &shown().map(row).collect::<Vec<_>>(), &[1]);
    page.sentence(
        Tone::Plain,
        "  ",
        format!(
            "median: of the others of its model; slow: figures at least {} slower, of all",
            times(MIN_FACTOR)
        ),
    );
    let models = distinct(fleet.groups.iter().map(|group| &group.model));
    for outlier in shown() {
        let disk = &fleet.disks[outlier.disk];
        let group = || format!("{}{}", model(disk.model.as_deref()), firmware(disk.firmware.as_deref()));
        let facts: Vec<String> = (models.len() > 1)
            .then(group)
            .into_iter()
            .chain(disk.serial.as_ref().map(|serial| format!("serial {serial}")))
            .chain(remark(outlier.worst.verdict).map(|remark| format!("not of the disk alone: {remark}")))
            .collect();
        if !facts.is_empty() {
            page.sentence(Tone::Plain, format!("  {}: ", name(fleet, outlier)), facts.join("; "));
        }
    }
}

/// What a figure shows that is not simply the disk's.
const fn remark(verdict: VerdictCode) -> Option<&'static str> {
    match verdict {
        VerdictCode::CpuBound => Some("CPU bound"),
        VerdictCode::SourceBound => Some("bound by the generation of data"),
        VerdictCode::Throttled => Some("limited by a cgroup"),
        VerdictCode::Disturbed => Some("other I/O at the same time"),
        VerdictCode::Unverified => Some("no counters reach the disk"),
        VerdictCode::Device | VerdictCode::PageCache | VerdictCode::Hole | VerdictCode::Incomplete => None,
    }
}

fn draw_groups(page: &mut Page, fleet: &Fleet, extent: Extent) {
    let Some(reference) = fleet.reference.map(|place| &fleet.series[place]) else { return };
    page.heading(format!("MODELS: {}", reference.test));
    let row = |group: &Group| {
        let rate = |pick: fn((f64, f64, f64)) -> f64| {
            group.rate.map_or_else(|| MISSING.to_owned(), |rate| value(reference, pick(rate)))
        };
        let outliers = match group.compared_with {
            ComparedWith::None => MISSING.to_owned(),
            _ => group.outliers.to_string(),
        };
        vec![
            model(group.model.as_deref()),
            group.firmware.as_deref().map_or_else(|| MISSING.to_owned(), printable_short),
            grouped(group.disks as u64),
            rate(|(median, ..)| median),
            rate(|(_, low, _)| low),
            rate(|(.., high)| high),
            outliers,
        ]
    };
    let heads = ["model", "firmware", "disks", "median", "5%", "95%", "outliers"];
    let shown = if extent == Extent::Full { fleet.groups.len() } else { MOST_ROWS };
    let rows: Vec<Vec<String>> = fleet.groups.iter().take(shown).map(row).collect();
    page.table_with(&heads, &rows, &[1]);
    let not_compared = fleet.groups.iter().any(|group| group.compared_with == ComparedWith::None);
    let meaning = if not_compared {
        format!("; {MISSING} outliers: fewer than {MIN_ALIKE} of the model")
    } else {
        String::new()
    };
    page.sentence(Tone::Plain, "  ", format!("5%, 95%: so many of the disks are slower{meaning}"));
}

fn printable_short(text: &str) -> String {
    shortened(&printable(text), MODEL_COLUMNS)
}

fn model(model: Option<&str>) -> String {
    model.map_or_else(|| "unknown model".to_owned(), printable_short)
}

fn firmware(firmware: Option<&str>) -> String {
    firmware.map_or_else(String::new, |firmware| format!(", firmware {}", printable_short(firmware)))
}

/// `random read 4K QD32`, `p99 of random read 4K QD32`.
fn test(series: &Series) -> String {
    match series.metric {
        Metric::Rate => series.test.clone(),
        Metric::P50 | Metric::P99 => format!("{} of {}", series.metric.as_str(), series.test),
    }
}

fn value(series: &Series, value: f64) -> String {
    match (series.metric, series.io_bytes) {
        (Metric::P50 | Metric::P99, _) => words::mean_nanos(value),
        (Metric::Rate, None) => words::rate(value),
        (Metric::Rate, Some(bytes)) => words::iops(value / bytes.max(1) as f64),
    }
}

#[cfg(test)]
mod tests;
