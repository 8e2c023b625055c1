//! What a program of one process makes of mpirun, and of the parts that ranks have left: no figure of one rank is taken for that of all.

use crate::support::{LONG, rdsk, record_of};
use rdsk_testkit::cli::{self, Ended};
use serde_json::{Value, json};
use std::path::Path;

/// The part of a rank of three, made of the Record of a simulated load.
fn part(record: &Value, rank: u64, status: &str) -> Value {
    let mut part = record.clone();
    let bytes = record["cells"][0]["result"]["bytes"].clone();
    let clock = json!({"offset_ns": rank * 3_600_000_000_000_u64, "uncertainty_ns": 5000, "at_ns": 9});
    part["ranks"] = json!([{
        "rank": rank, "run": "01", "ranks": 3, "host": format!("node{rank}"), "boot": format!("b{rank}"), "targets": ["sim:linux-disk"],
        "status": status, "error": null, "clock_before": clock, "clock_after": clock, "sent_messages": 0, "sent_bytes": 0,
        "visits": [{
            "cell": record["cells"][0]["id"], "clock": clock, "agreed_ns": 9, "start_ns": rank * 3_600_000_000_000_u64 + 10,
            "end_ns": rank * 3_600_000_000_000_u64 + 1_000_000_010, "bytes": bytes, "ops": 7, "part_ns": 500_000_000,
            "parts": [1, 2],
        }],
    }]);
    part
}

fn put(directory: &Path, rank: u64, part: &Value) {
    std::fs::write(directory.join(format!("rank-{rank}.json")), part.to_string()).expect("a file of our own");
}

#[test]
fn the_parts_of_ranks_are_one_result_that_names_who_is_missing() {
    let record = record_of(rdsk(&[&"load", &"sim:linux-disk", &"--budget", &"2s"]));
    let place = tempfile::tempdir().expect("a directory");
    put(place.path(), 0, &part(&record, 0, "complete"));
    put(place.path(), 2, &part(&record, 2, "complete"));
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.arg("show").arg(place.path()).args(["--json", "-"]);
    let merged = cli::json(&cli::run(command, LONG));
    assert_eq!(merged["status"], "failed");
    assert_eq!(merged["error"]["message"], "partial: of 3 ranks, these ended without a word: 1");
    let ops =
        |record: &Value| record["cells"][0]["result"]["jobs"][0]["reads"]["ops"].as_u64().expect("reads");
    assert_eq!(ops(&merged), 2 * ops(&record));
    assert_eq!(merged["ranks"].as_array().map(Vec::len), Some(3));
    put(place.path(), 1, &part(&record, 1, "complete"));
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.arg("show").arg(place.path());
    let page = cli::run(command, LONG);
    assert_eq!(page.ended, Ended::Exited(0), "{}", page.stderr);
    assert!(
        page.stdout.contains("3 RANKS ON 3 HOSTS") && page.stdout.contains("1 h 00 min 00 s"),
        "{}",
        page.stdout
    );
    // A page of one result, and no fleet.
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.current_dir(place.path()).arg("report").arg(place.path()).args(["-o", "page.html"]);
    let report = cli::run(command, LONG);
    assert_eq!(report.ended, Ended::Exited(0), "{}", report.stderr);
    assert!(place.path().join("page.html").is_file(), "{}", report.stdout);
    // Two such directories are two runs, here the same one, and no fleet.
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.arg("compare").arg(place.path()).arg(place.path());
    let pair = cli::run(command, LONG);
    assert!(pair.stderr.contains(" are the same run, "), "{}{}", pair.stdout, pair.stderr);
    // Parts of two runs are no result.
    let mut other = part(&record, 1, "complete");
    other["ranks"][0]["run"] = json!("02");
    put(place.path(), 1, &other);
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.arg("show").arg(place.path());
    let refused = cli::run(command, LONG);
    assert_eq!(refused.ended, Ended::Exited(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("rank-1.json: it is no part of the same run"), "{}", refused.stderr);
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_refuses_to_be_one_of_several() {
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let mut command = rdsk(&[&"load", &"sim:linux-disk", &"--budget", &"1s"]);
        command.env(variable, "4");
        let run = cli::run(command, LONG);
        assert_eq!(run.ended, Ended::Exited(3), "{}", run.stderr);
        assert!(run.stderr.contains("rdsk-mpi") && run.stdout.is_empty(), "{}{}", run.stderr, run.stdout);
    }
    record_of({
        let mut command = rdsk(&[&"load", &"sim:linux-disk", &"--budget", &"1s"]);
        command.env("OMPI_COMM_WORLD_SIZE", "1");
        command
    });
}
