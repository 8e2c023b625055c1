//! The jobs of loads, and the answers to needs.

use super::{Labelled, head, label, labels, sample, summary};
use rdsk_analysis::need::{self, Outcome};
use rdsk_model::{KindResult, Record};
use std::collections::HashSet;

/// The jobs of the cells, by kind of request.
pub(super) fn jobs(text: &mut String, cells: &[Labelled<'_>]) {
    let kinds: Vec<(String, &KindResult)> = cells.iter().flat_map(kinds_of).collect();
    head(text, "rdsk_job_requests", "gauge", "", "Requests of a job that completed.");
    for (labels, kind) in &kinds {
        sample(text, "rdsk_job_requests", labels, kind.ops as f64);
    }
    let name = "rdsk_job_latency_seconds";
    let help = "Latency of the requests of a job, from their arrival where it has a rate.";
    head(text, name, "summary", "seconds", help);
    for (labels, kind) in &kinds {
        summary(text, name, labels, &kind.latency_ns);
    }
    let name = "rdsk_job_unsent_requests";
    head(text, name, "gauge", "requests", "Requests that arrived at a rate and were never sent.");
    for cell in cells {
        for job in &cell.cell.result.jobs {
            if let Some(rate) = &job.rate {
                sample(
                    text,
                    name,
                    &format!("{},{}", cell.labels, label("job", &job.name)),
                    rate.unsent as f64,
                );
            }
        }
    }
}

fn kinds_of<'a>(cell: &'a Labelled<'a>) -> impl Iterator<Item = (String, &'a KindResult)> {
    cell.cell.result.jobs.iter().flat_map(|job| {
        job.kinds().map(|(word, kind)| {
            let names = labels(&[("job", job.name.as_str()), ("kind", word)]);
            (format!("{},{names}", cell.labels), kind)
        })
    })
}

/// The answers of checks.
pub(super) fn needs(text: &mut String, records: &[&Record]) {
    let mut series = HashSet::new();
    let asked = records.iter().filter_map(|record| Some((*record, record.need.as_ref()?)));
    let labelled = asked.map(|(record, need)| {
        let id = if records.len() > 1 { format!("{},", label("id", &record.id)) } else { String::new() };
        (record, format!("{id}{}", label("need", &need.name)))
    });
    let asked: Vec<(&Record, String)> =
        labelled.filter(|(_, labels)| series.insert(labels.clone())).collect();
    let name = "rdsk_need_info";
    head(text, name, "gauge", "", "The answer to a need: PASS, FAIL or UNSURE; the value is 1.");
    for (record, labels) in &asked {
        let answer = need::outcome(&need::judge(record));
        sample(text, name, &format!("{labels},{}", label("answer", answer.as_str())), 1.0);
    }
    let name = "rdsk_need_threshold_met";
    head(
        text,
        name,
        "gauge",
        "",
        "1 if a figure is on the good side of its threshold, 0 if not; none where that is not sure.",
    );
    for (record, need_labels) in &asked {
        for judged in need::judge(record) {
            let met = match judged.outcome {
                Outcome::Pass => 1.0,
                Outcome::Fail => 0.0,
                Outcome::Unsure | Outcome::Exempt => continue,
            };
            let threshold = judged.threshold;
            let facts = [
                ("job", threshold.job.as_str()),
                ("of", threshold.of.as_str()),
                ("statistic", threshold.statistic.as_str()),
            ];
            sample(text, name, &format!("{need_labels},{}", labels(&facts)), met);
        }
    }
}
