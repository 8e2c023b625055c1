//! `stripe`: chunk and full stripe, and how sure they are.

use super::without_chunk;
use crate::cells::{self, target_name};
use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::{SURE, StripeResult};
use rdsk_analysis::words::plural;
use rdsk_model::Experiment;
use rdsk_units::{Bytes, percent};

pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let texts: Vec<String> = cells::of_experiment(analysis, Experiment::Stripe)
        .filter_map(|cell| {
            let result = analysis.stripe(cell)?;
            let target = target_name(analysis, cell).map_or_else(String::new, |name| format!("{name}: "));
            Some(format!("{target}{}", words(result)))
        })
        .collect();
    match &texts[..] {
        [] => vec!["no request was made".into()],
        [_] => texts,
        [first, others @ ..] => {
            vec![
                texts.join("; "),
                format!("{first}; {} more: --details", plural(others.len() as u64, "target")),
            ]
        }
    }
}

fn words(result: &StripeResult) -> String {
    if !result.is_of_device && result.described.is_none() {
        return "the requests did not reach a device".into();
    }
    let Some((chunk, chunk_confidence)) = result.chunk() else {
        // The first sentence; how far the requests can see is on the page of its own.
        let text = without_chunk(result);
        return text
            .split_once(". ")
            .map_or(text.as_str(), |(first, _)| first)
            .trim_end_matches('.')
            .to_owned();
    };
    let sure = |confidence: f64| match &result.described {
        Some(_) => "from the kernel".to_owned(),
        None if confidence >= SURE => percent(confidence),
        None => format!("{}, not certain", percent(confidence)),
    };
    let stripe = result.stripe().map_or_else(String::new, |(bytes, confidence)| {
        format!(", full stripe {} ({})", Bytes(bytes), sure(confidence))
    });
    let parity = match result.parity {
        Some(true) => ", with parity",
        Some(false) => ", without parity",
        None => "",
    };
    format!("chunk {} ({}){stripe}{parity}", Bytes(chunk), sure(chunk_confidence))
}
