//! `rdsk info --json`: the document, schema `rdsk.info/1`. It draws nothing.

use super::{Facts, TargetInfo};
use rdsk_model::Problem;
use rdsk_targets::Place;
use serde_json::{Value, json};

/// The document on all targets; `error` is what kept the command from examining them.
pub(crate) fn document(infos: &[TargetInfo], error: Option<&Problem>) -> String {
    let failed = error.is_some() || infos.iter().any(|info| info.outcome.is_err());
    let document = json!({
        "schema": "rdsk.info/1",
        "rdsk_version": env!("CARGO_PKG_VERSION"),
        "status": if failed { "failed" } else { "complete" },
        "error": error,
        "targets": infos.iter().map(target).collect::<Vec<Value>>(),
    });
    format!("{document:#}")
}

fn target(info: &TargetInfo) -> Value {
    match &info.outcome {
        Err(problem) => json!({ "name": info.name, "error": problem }),
        Ok(facts) => with_facts(info, facts),
    }
}

fn with_facts(info: &TargetInfo, facts: &Facts) -> Value {
    let examined = &facts.examined;
    let (place, free_bytes, total_bytes) = match &examined.place {
        Place::Directory { free_bytes, total_bytes, .. } => {
            ("directory", Some(*free_bytes), Some(*total_bytes))
        }
        Place::File { .. } => ("file", None, None),
        Place::Block { .. } => ("block", None, None),
        Place::Sim(_) => ("sim", None, None),
    };
    json!({
        "name": info.name,
        "error": null,
        "place": place,
        "free_bytes": free_bytes,
        "total_bytes": total_bytes,
        "target": examined.target,
        "identities": examined.identities,
        "no_identities": examined.no_identities,
        "uses": examined.uses,
        "doubts": examined.doubts,
        "signatures": examined.signatures,
        "allocation": examined.allocation,
        "reading": answer(&facts.reading),
        "writing": answer(&facts.writing),
        "writing_with_flag": facts.with_flag.as_ref().map(|(flag, given)| {
            json!({ "flag": flag, "allowed": given.is_ok(), "refusal": given.as_ref().err(), "part_bytes": facts.part_bytes })
        }),
    })
}

fn answer(answer: &Result<(), Problem>) -> Value {
    json!({ "allowed": answer.is_ok(), "refusal": answer.as_ref().err() })
}
