//! `rdsk watch`: what block devices do, live on a screen or as lines; what the I/O of a command became; and one report from two
//! saved trees. It opens no device, unless `--sync` is to
//! flush it, and writes nothing but its output.

mod child;
mod lines;
mod options;
mod screen;
mod wake;

use crate::{exit, out};
use options::Form;
pub(crate) use options::Watch;
use rdsk_analysis::groups::distinct;
use rdsk_experiment::EvidenceChoice;
use rdsk_model::{Problem, ProblemKind};
use rdsk_observe::ObserveError;
use rdsk_observe::watch::{Choice, Watcher, devices_of, saved_interval};
use rdsk_units::printable;
use std::error::Error as _;
use std::io::IsTerminal as _;
use std::path::Path;

const SYS: &str = "/sys";
const PROC: &str = "/proc";

/// Watches as the line says, and gives the exit code.
///
/// # Errors
/// When a device is unknown, or what is read or written fails.
pub(crate) fn watch(options: &Watch) -> Result<u8, Problem> {
    if let Some((from, to)) = options.saved() {
        return saved(options, from, to);
    }
    let (sys, proc) = (Path::new(SYS), Path::new(PROC));
    let names: Result<Vec<Vec<String>>, ObserveError> =
        options.devices.iter().map(|name| devices_of(name, sys, proc)).collect();
    let names = names.map(|names| names.concat()).map_err(|error| problem_of(&error))?;
    let mut watcher =
        Watcher::new(if names.is_empty() { Choice::All } else { Choice::Named(distinct(names)) }, sys);
    let why_no_bpf = match options.evidence {
        EvidenceChoice::Sysfs => Some("--evidence sysfs was given".to_owned()),
        EvidenceChoice::Auto | EvidenceChoice::Bpf => {
            watcher.with_block_layer().err().map(|no| no.words_and_hint())
        }
    };
    if let (EvidenceChoice::Bpf, Some(why)) = (options.evidence, &why_no_bpf) {
        return Err(Problem::new(
            ProblemKind::Refused,
            "no-bpf",
            format!("BPF programs cannot count: {why}"),
            "run as root, or leave --evidence bpf out",
        ));
    }
    if let Some(limit) = watcher.limit() {
        out::warning(&limit);
    }
    if !options.command.is_empty() {
        return child::watch(options, watcher, why_no_bpf);
    }
    let is_screen = options.form() == Form::Suitable && std::io::stdout().is_terminal();
    if is_screen {
        return screen::watch(options, watcher, why_no_bpf);
    }
    if let (EvidenceChoice::Auto, Some(why)) = (options.evidence, &why_no_bpf) {
        out::warning(&format!("exact sizes and times in the device are not shown: {why}"));
    }
    lines::watch(options, watcher)
}

/// One report from two saved trees.
fn saved(options: &Watch, from: &Path, to: &Path) -> Result<u8, Problem> {
    let names: Vec<String> = options.devices.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let interval = saved_interval(from, to, &names).map_err(|error| match error {
        ObserveError::Read { .. } => Problem { hint: Some(COPY_HINT.into()), ..problem_of(&error) },
        error => problem_of(&error),
    })?;
    out::data(&lines::text(&interval, "", options))?;
    Ok(exit::DONE)
}

/// How a saved tree is made.
const COPY_HINT: &str =
    "copy /proc/diskstats and /proc/uptime into a directory each time, outside of containers";

fn problem_of(error: &ObserveError) -> Problem {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    let hint = match error {
        ObserveError::Read { .. } | ObserveError::NoDevice { .. } => {
            "rdsk info lists the block devices; a file or directory stands for the device below it"
        }
        ObserveError::NotLater { .. } => "give --from and --to two copies of one boot, the earlier one first",
        ObserveError::NotInTree { .. } => "name a device of diskstats, or none for all of them",
        ObserveError::TooFewFields { .. }
        | ObserveError::NotANumber(_)
        | ObserveError::NoDiskstats { .. } => COPY_HINT,
    };
    Problem::new(ProblemKind::Refused, "watch", printable(&format!("{error}{cause}")), hint)
}
