//! Every experiment of the model is complete: a question that plans cells, a page, a command and a documentation page.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, rdsk};
use rdsk_model::{Experiment, Record};
use rdsk_testkit::cli;
use std::path::Path;
use std::time::Duration;

/// Longer than a whole experiment takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);

/// The command that asks it; the headline is only a part of `rdsk run`.
fn command(experiment: Experiment) -> Vec<&'static str> {
    match experiment {
        Experiment::Headline => vec!["run", "--only", "headline", "--details"],
        _ => vec![experiment.as_str()],
    }
}

#[test]
fn every_experiment_has_a_question_a_page_and_a_command() {
    let help = rdsk(["--help"]).stdout;
    let directory = tempfile::tempdir().unwrap();
    for &experiment in Experiment::PLANNED {
        let name = experiment.as_str();
        let word = command(experiment)[0];
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(word)), "{word}: {help}");
        let file = directory.path().join(format!("{name}.json"));
        let mut line = command(experiment);
        // Without a budget `align` and `stream` do everything they can: 23 s of a processor and 11 MB.
        line.extend([
            "sim:linux-disk",
            "--seed",
            "1",
            "--budget",
            "30s",
            "-q",
            "--json",
            file.to_str().unwrap(),
        ]);
        let run = cli::run(common::command(line), LONG);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        let heading = format!("{}: ", name.to_uppercase());
        assert!(run.stdout.lines().any(|line| line.starts_with(&heading)), "{heading}{}", run.stdout);
        let record: Record = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert!(record.cells.iter().any(|cell| cell.result.bytes.is_some_and(|bytes| bytes > 0)), "{name}");
        for cell in &record.cells {
            assert_eq!(cell.experiment, experiment, "{}", cell.id);
            assert!(cell.id.starts_with(&format!("{name}/")), "{}", cell.id);
        }
    }
}

#[test]
fn every_experiment_has_a_documentation_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for &experiment in Experiment::PLANNED {
        let name = experiment.as_str();
        let page = std::fs::read_to_string(docs.join(format!("experiments/{name}.md"))).unwrap();
        let title = page.lines().next().unwrap().to_lowercase();
        assert!(title.starts_with(&format!("# {name}")), "{title}");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["The question", "What is done", "How to read the page", "Example"], "{name}");
        assert!(page.contains(&format!("rdsk {}", command(experiment).join(" "))), "{name}");
    }
}
