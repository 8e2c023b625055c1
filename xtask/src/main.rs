//! The project's own tasks: test, ci, arch, bpf, docs, schema, same-records, bench, calibrate, screenshots, dist, campaign. It is the
//! one place that knows how the tests are run, and it is never part of the program.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner prints for its user")]

mod arch;
#[cfg(feature = "measure")]
mod bench;
mod bpf;
#[cfg(feature = "measure")]
mod calibrate;
mod campaign;
mod dist;
#[cfg(feature = "measure")]
mod docs;
#[cfg(feature = "measure")]
mod fio_files;
mod options;
#[cfg_attr(not(feature = "measure"), allow(dead_code, reason = "the tasks that measure name the commit"))]
mod origin;
#[cfg_attr(not(feature = "measure"), expect(dead_code, reason = "the tasks that measure use more of it"))]
mod programs;
#[cfg(feature = "measure")]
mod same_records;
#[cfg(any(test, feature = "schema"))]
mod schema;
mod screenshots;
mod step;
mod suite;
mod test_counts;
mod tools;

use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--only STEP[,STEP]] [--all]
                              all checks that must pass, but test programs that are unchanged since they passed, unless --all is given;
                              steps: tools, fmt, build, test, and with CI=true, or when named, bpf, schema, clippy, mpi, doc
  ci                          all of it, as the build server runs it: a skip of something installable fails
  arch                        the architecture checks alone (they are part of test, too)
  docs [--check]              fill rdsk's figures into the pages of docs/reports; with --check, report where they differ (part of test)
  schema [--check]            write the JSON Schemas of docs/ from the types; with --check, compare them (part of ci)
  bpf [--check]               compile the BPF programs of crates/observe; with --check, compare the object (part of ci)
  same-records OTHER_RDSK [--this RDSK] [--only TEXT]
                              measure every simulated system with every experiment by two programs; fails if a value differs
  bench [TEXT] [--pairs N] [--seconds N]
                              what rdsk costs, by programs in turn: engines against fio, copies against dd, IOPS with the BPF observer on
                              and off, dd beside rdsk watch; the history; with TEXT, what has it in its name
  calibrate [PART ...] [--runs N] [--first-seed N]
                              how often intervals hold the truth and findings are false, in docs/calibration.md; without a part,
                              all simulated ones; real ones: equal-files, false-real,
                              compare-real
  dist [--check]              a static program, one for mpirun, their .deb and .rpm, a container's recipe, in target/dist; with --check, from two
                              directories, which must give the same bytes
  dist --try [SYSTEM ...]     install what dist made in root trees and run it: debian12, debian13, rpm, mpi12, mpi13, empty (root)
  screenshots [DIRECTORY]     pages of every experiment as pictures to look at: light, dark, phone and print (target/screenshots); with --docs also those of the documents
  campaign [NAME]             a long series of tests with a page of results in xtask/records/campaigns; without a name, the list
  campaign fio-files DIRECTORY [--run]
                              what becomes of each job file of fio below it: understood, or refused and why; with --run, what can be is
                              run by rdsk and by fio on one disk, whose log is compared (root, FUSE, loop devices, fio)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match command {
        "test" => suite::run(&root(), rest, suite::Strictness::from_environment()),
        "ci" => suite::run(&root(), rest, suite::Strictness::InstallableMustRun),
        "arch" => arch::run(&root()).map(|()| ExitCode::SUCCESS),
        "bpf" => bpf::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "measure")]
        "campaign" if rest.first().is_some_and(|name| name == "fio-files") => {
            fio_files::run(&root(), &rest[1..])
        }
        #[cfg(not(feature = "measure"))]
        "campaign" if rest.first().is_some_and(|name| name == "fio-files") => {
            with_feature("measure", command, rest)
        }
        "campaign" => campaign::run(&root(), rest),
        "dist" => dist::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        "screenshots" => screenshots::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "measure")]
        "bench" => bench::run(rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "measure")]
        "calibrate" => calibrate::run(&root(), rest),
        #[cfg(feature = "measure")]
        "docs" => docs::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "measure")]
        "same-records" => same_records::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "schema")]
        "schema" => schema::run(&root(), rest).map(|()| ExitCode::SUCCESS),
        #[cfg(not(feature = "measure"))]
        "bench" | "calibrate" | "docs" | "same-records" => with_feature("measure", command, rest),
        #[cfg(not(feature = "schema"))]
        "schema" => with_feature("schema", command, rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        unknown => Err(anyhow::anyhow!("unknown command \"{unknown}\"\n{USAGE}")),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Builds the task runner with what a task needs, and has that one do it.
#[cfg(not(all(feature = "measure", feature = "schema")))]
fn with_feature(feature: &str, command: &str, rest: &[String]) -> anyhow::Result<ExitCode> {
    let words = ["run", "--quiet", "--package", "xtask", "--features", feature, "--"];
    let mut cargo = suite::cargo(&root(), &words);
    let status = cargo.arg(command).args(rest).status().context("cargo cannot be started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes a file and the directories that it needs.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let directory = path.parent().context("a file lies in a directory")?;
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// The root of the workspace, wherever the task was started from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the root of the workspace")
        .to_owned()
}
