//! `rdsk load --fio`: a job file of fio as the phases of a load, and where it runs. It reads the file, what it includes and the variables
//! that it names, and looks at its target; it opens nothing for writing.

use super::job_text::text_of;
use crate::grammar::COMMON;
use crate::usage::usage;
use crate::value;
use clap::Args;
use rdsk_loads::{FioError, FioLoad, FioPlace, FioTarget, JobFile, Surroundings};
use rdsk_model::{Problem, ProblemKind, TargetKind};
use rdsk_targets::{Examined, Place, Roots, examine};
use rdsk_units::printable;
use std::io;
use std::path::Path;

/// A job file of fio.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FioArgs {
    /// Run a job file of fio as it is, once; a TARGET replaces the one that it names
    #[arg(long, value_name = "FILE", help_heading = COMMON, value_parser = value::text)]
    pub(super) fio: Option<String>,
    /// Show what is understood of the job file, as TOML that rdsk load takes, and run nothing
    #[arg(long, requires = "fio", help_heading = COMMON)]
    pub(super) showcmd: bool,
}

/// The load of a job file, and the target that it runs on.
///
/// # Errors
/// The options that cannot be, by line; or why there is no such target.
pub(super) fn load(name: &str, targets: &[String]) -> Result<(FioLoad, String), Problem> {
    let file = parse(name, &text_of(name)?)?;
    let problem = |error: FioError| refused(&error);
    match targets {
        [] => {
            let (target, facts, note) = own_target(&file.place().map_err(problem)?)?;
            let mut load = file.load(facts).map_err(problem)?;
            load.notes.extend(note);
            Ok((load, target))
        }
        [target] => {
            let examined = examine(target, &Roots::default()).map_err(|error| error.problem())?;
            Ok((file.load(facts_of(&examined)).map_err(problem)?, target.clone()))
        }
        _ => Err(usage(
            "a job file of fio runs on one target",
            "name one target behind --fio FILE, or none for the one that the file names",
        )),
    }
}

fn parse(name: &str, text: &str) -> Result<JobFile, Problem> {
    let memory_mib = rustix::system::sysinfo();
    let around = Surroundings {
        variable: &|name| std::env::var(name).ok(),
        read: &|name| text_of(name).map_err(|problem| io::Error::other(problem.message)),
        page_bytes: rdsk_sys::cache::page_size(),
        memory_mib: memory_mib.totalram.saturating_mul(memory_mib.mem_unit.into()) >> 20,
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
    };
    JobFile::parse(name, text, &around).map_err(|error| refused(&error))
}

/// The target that a job file names, what it is, and what the reader should know of it.
fn own_target(place: &FioPlace) -> Result<(String, FioTarget, Option<String>), Problem> {
    let name = match place {
        FioPlace::Named(name) if !Path::new(name).exists() && !name.starts_with("/dev/") => {
            let parent = Path::new(name).parent().map(|parent| parent.display().to_string());
            let directory = parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".into());
            let note = format!("there is no {}; a test file beside it stands for it", printable(name));
            return Ok((directory, FioTarget::Directory, Some(note)));
        }
        FioPlace::Named(name) | FioPlace::Directory(name) => name,
    };
    let examined = examine(name, &Roots::default()).map_err(|error| error.problem())?;
    Ok((name.clone(), facts_of(&examined), None))
}

fn facts_of(examined: &Examined) -> FioTarget {
    let bytes = examined.target.size_bytes;
    match (&examined.place, examined.target.kind) {
        (Place::Directory { .. }, _) => FioTarget::Directory,
        (_, TargetKind::File) => FioTarget::File(bytes),
        (_, TargetKind::Block | TargetKind::Sim) => FioTarget::Device(bytes),
    }
}

fn refused(error: &FioError) -> Problem {
    let lines = error.to_string();
    let lines: Vec<String> = lines.lines().map(printable).collect();
    let hint = "change these lines, or describe the load in a TOML file; docs/experiments/load.md has what fio's options become";
    Problem::new(ProblemKind::Usage, "bad-load", lines.join("; "), hint)
}
