//! Values that conflict with each other or with the command; flags that never go together are refused by the grammar. Pure but for two
//! questions to the kernel: which processors this process may use, and whether two paths are the same file.

use super::Measurement;
use crate::usage::usage;
use rdsk_experiment::{BudgetSource, max_streams};
use rdsk_model::{EngineKind, Experiment, Op, Problem};
use rdsk_units::{Bytes, Nanos};

/// Most memory for the buffers of all I/Os in flight. What they really take is held against what the machine has when all is planned.
const MAX_BUFFERS_BYTES: u64 = 4 << 30;

/// Refuses what means nothing together. `rw` is what stands behind `--rw` on the line.
///
/// # Errors
/// A usage error that names the flags.
pub(super) fn check(asked: &Measurement, rw: Option<&str>) -> Result<(), Problem> {
    asked.common.check_output()?;
    refuse(
        !asked.common.forms().is_empty() && asked.common.run.dry_run,
        "--markdown, --csv, --openmetrics and --report conflict with --dry-run",
        "leave them out: nothing is measured that they could show",
    )?;
    time(asked)?;
    permission(asked, rw)?;
    sizes(asked)?;
    depth_and_streams(asked)?;
    processors(asked)
}

fn refuse(is_conflict: bool, message: impl Into<String>, hint: impl Into<String>) -> Result<(), Problem> {
    if is_conflict { Err(usage(message, hint)) } else { Ok(()) }
}

fn is(asked: &Measurement, experiment: Experiment) -> bool {
    asked.command == experiment.as_str()
}

fn time(asked: &Measurement) -> Result<(), Problem> {
    let options = &asked.options;
    let has_budget = options.budget_source == BudgetSource::Requested;
    refuse(
        options.runtime_ns.is_some() && has_budget && !is(asked, Experiment::Scale),
        "--runtime conflicts with --budget",
        "give --runtime for each test, or --budget for everything",
    )?;
    let streams = max_streams(&asked.experiments, options);
    let stagger_ns = options.stagger_ns.unwrap_or(0);
    refuse(
        has_budget
            && options.stagger_ns.is_some()
            && stagger_ns.saturating_mul(u64::from(streams.saturating_sub(1))) >= options.budget_ns,
        format!(
            "--stagger {} of {streams} streams takes all of --budget {}",
            Nanos(stagger_ns),
            Nanos(options.budget_ns)
        ),
        "write a shorter --stagger or a longer --budget, or leave --budget out",
    )
}

fn permission(asked: &Measurement, rw: Option<&str>) -> Result<(), Problem> {
    let common = &asked.common;
    let may_overwrite = common.may_overwrite();
    let flag = if common.overwrite { "--overwrite" } else { "--destroy" };
    let only_reads = asked.options.ops.as_ref().is_some_and(|ops| !ops.contains(&Op::Write));
    let has_jobs = !asked.options.phases.is_empty();
    let reads = match rw {
        Some(rw) => format!("--rw {rw}"),
        None if has_jobs => "jobs that only read".to_owned(),
        None => "a command that only reads".to_owned(),
    };
    let write = if has_jobs { "name jobs that write, such as --rw randrw" } else { "add write to --rw" };
    refuse(
        only_reads && may_overwrite,
        format!("{flag} conflicts with {reads}"),
        format!("leave {flag} out, or {write}"),
    )?;
    refuse(
        only_reads && asked.options.end_fsync,
        "--end-fsync conflicts with --rw read",
        "leave --end-fsync out, or add write to --rw",
    )?;
    refuse(
        may_overwrite && common.targets.is_empty(),
        format!("{flag} needs a target"),
        "name the device or the file; in a directory rdsk creates a file of its own",
    )
}

fn max_block_bytes(asked: &Measurement) -> Option<u64> {
    asked.options.block_bytes.as_ref().and_then(|sizes| sizes.iter().max()).copied()
}

fn sizes(asked: &Measurement) -> Result<(), Problem> {
    let Some(pass_bytes) = asked.options.pass_bytes else { return Ok(()) };
    let block_bytes = max_block_bytes(asked).unwrap_or(0);
    refuse(
        pass_bytes < block_bytes,
        format!("--bytes {} is less than one block of --bs {}", Bytes(pass_bytes), Bytes(block_bytes)),
        format!("write --bytes {} or more", Bytes(block_bytes)),
    )?;
    let size_bytes = asked.common.size.unwrap_or(u64::MAX);
    refuse(
        asked.options.offset_bytes.saturating_add(pass_bytes) > size_bytes,
        format!("--bytes {} does not fit into --size {}", Bytes(pass_bytes), Bytes(size_bytes)),
        "write a larger --size, or a smaller --bytes or --offset",
    )
}

fn depth_and_streams(asked: &Measurement) -> Result<(), Problem> {
    let options = &asked.options;
    let depth = options.queue_depth.unwrap_or(1);
    refuse(
        depth > 1 && options.engine == Some(EngineKind::Sync),
        format!("--iodepth {depth} conflicts with --engine sync"),
        "the sync engine has one I/O in flight per stream; write --engine io_uring, aio or threads, or --streams for more",
    )?;
    refuse(
        is(asked, Experiment::Stream)
            && options.stream_counts.as_ref().is_some_and(|counts| counts.len() > 1),
        "rdsk stream takes one number of --streams",
        "write one number here; rdsk scale compares several",
    )?;
    let block_bytes = max_block_bytes(asked).unwrap_or(1);
    refuse(
        u128::from(block_bytes) * u128::from(depth) * u128::from(max_streams(&asked.experiments, options))
            > u128::from(MAX_BUFFERS_BYTES),
        format!("--bs times --iodepth times --streams is more than {} of buffers", Bytes(MAX_BUFFERS_BYTES)),
        "make one of them smaller",
    )
}

fn processors(asked: &Measurement) -> Result<(), Problem> {
    let pinned = &asked.options.pin_cpus;
    if pinned.is_empty() {
        return Ok(());
    }
    // If the kernel does not say, the engine finds out.
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Ok(()) };
    let usable = |cpu: usize| cpu < rustix::thread::CpuSet::MAX_CPU && allowed.is_set(cpu);
    let Some(cpu) = pinned.iter().find(|&&cpu| !usable(cpu)) else { return Ok(()) };
    Err(usage(
        format!("--pin: processor {cpu} is not available to this process"),
        format!("it may use {}", ranges((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| usable(cpu)))),
    ))
}

/// Processors as the kernel lists them: `0-3,8`.
fn ranges(cpus: impl Iterator<Item = usize>) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let words: Vec<String> = spans
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(ranges([0, 1, 2, 5, 7, 8].into_iter()), "0-2,5,7-8");
    }
}
