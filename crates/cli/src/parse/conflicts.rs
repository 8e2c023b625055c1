//! Flags that conflict with each other or with the command. Pure but for two questions to the kernel: which processors this process
//! may use, and whether two paths are the same file.

use super::usage;
use crate::cli_args::{CliArgs, JsonPlace, RunMode};
use crate::same_place::is_same_place;
use crate::subcommand::{SCALE, STREAM};
use rdsk_experiment::max_streams;
use rdsk_model::{EngineKind, Op, Problem};
use rdsk_targets::Overwrite;
use rdsk_units::{Bytes, Nanos};

/// Most memory for the buffers of all I/Os in flight. What they really take is held against what the machine has when all is planned.
const MAX_BUFFERS_BYTES: u64 = 4 << 30;

pub(super) fn check(args: &CliArgs) -> Result<(), Problem> {
    output(args)?;
    time(args)?;
    permission(args)?;
    sizes(args)?;
    depth_and_streams(args)?;
    processors(args)
}

fn refuse(is_conflict: bool, message: impl Into<String>, hint: impl Into<String>) -> Result<(), Problem> {
    if is_conflict { Err(usage(message, hint)) } else { Ok(()) }
}

fn output(args: &CliArgs) -> Result<(), Problem> {
    refuse(
        args.has("json-compact") && args.json.is_none(),
        "--json-compact needs --json",
        "add --json FILE, or leave --json-compact out",
    )?;
    refuse(
        args.has("history") && args.has("no-history"),
        "--history conflicts with --no-history",
        "leave one of them out",
    )?;
    refuse(
        !args.forms.is_empty() && args.run_mode == RunMode::PlanOnly,
        "--markdown, --csv, --openmetrics and --report conflict with --dry-run",
        "leave them out: nothing is measured that they could show",
    )?;
    let forms = args.forms.iter().map(|(_, place)| place);
    let places: Vec<&JsonPlace> = args.json.iter().chain(forms).collect();
    for (index, place) in places.iter().enumerate() {
        let (message, hint) = match place {
            JsonPlace::Stdout => {
                ("two documents go to standard output".to_owned(), "give one of them a file")
            }
            JsonPlace::File(path) => (
                format!("two documents go to the same file, {}", path.display()),
                "give each a file of its own",
            ),
        };
        refuse(places[..index].iter().any(|other| is_same(other, place)), message, hint)?;
    }
    Ok(())
}

/// Whether two documents would go to the same place.
fn is_same(left: &JsonPlace, right: &JsonPlace) -> bool {
    match (left, right) {
        (JsonPlace::File(left), JsonPlace::File(right)) => left == right || is_same_place(left, right),
        _ => left == right,
    }
}

fn time(args: &CliArgs) -> Result<(), Problem> {
    refuse(
        args.has("runtime") && args.has("budget") && args.subcommand != &SCALE,
        "--runtime conflicts with --budget",
        "give --runtime for each cell, or --budget for everything",
    )?;
    let budget_ns = args.options.budget_ns;
    let stagger_ns = args.options.stagger_ns.unwrap_or(0);
    let streams = max_streams(&args.experiments, &args.options);
    refuse(
        args.has("budget")
            && args.has("stagger")
            && stagger_ns.saturating_mul(u64::from(streams.saturating_sub(1))) >= budget_ns,
        format!(
            "--stagger {} of {streams} streams takes all of --budget {}",
            Nanos(stagger_ns),
            Nanos(budget_ns)
        ),
        "write a shorter --stagger or a longer --budget, or leave --budget out",
    )?;
    refuse(
        args.has("full") && args.has("points"),
        "--points conflicts with --full",
        "give --full for every block, or --points for some",
    )
}

fn permission(args: &CliArgs) -> Result<(), Problem> {
    let overwrite = args.permission.overwrite == Overwrite::Allowed;
    let destroy = args.permission.destroy.is_some();
    refuse(
        overwrite && destroy,
        "--destroy conflicts with --overwrite",
        "--destroy is for a block device, --overwrite for a file; measure them one at a time",
    )?;
    let flag = if destroy { "--destroy" } else { "--overwrite" };
    let only_reads = args.options.ops.as_ref().is_some_and(|ops| !ops.contains(&Op::Write));
    refuse(
        only_reads && (overwrite || destroy),
        format!("{flag} conflicts with --rw read"),
        format!("leave {flag} out, or add write to --rw"),
    )?;
    refuse(
        only_reads && args.options.end_fsync,
        "--end-fsync conflicts with --rw read",
        "leave --end-fsync out, or add write to --rw",
    )?;
    refuse(
        (overwrite || destroy) && args.targets.is_empty(),
        format!("{flag} needs a target"),
        "name the device or the file; in a directory rdsk creates a file of its own",
    )
}

fn max_block_bytes(args: &CliArgs) -> Option<u64> {
    args.options.block_bytes.as_ref().and_then(|sizes| sizes.iter().max()).copied()
}

fn sizes(args: &CliArgs) -> Result<(), Problem> {
    let Some(pass_bytes) = args.options.pass_bytes else { return Ok(()) };
    let block_bytes = max_block_bytes(args).unwrap_or(0);
    refuse(
        pass_bytes < block_bytes,
        format!("--bytes {} is less than one block of --bs {}", Bytes(pass_bytes), Bytes(block_bytes)),
        format!("write --bytes {} or more", Bytes(block_bytes)),
    )?;
    let size_bytes = args.size_bytes.unwrap_or(u64::MAX);
    refuse(
        args.options.offset_bytes.saturating_add(pass_bytes) > size_bytes,
        format!("--bytes {} does not fit into --size {}", Bytes(pass_bytes), Bytes(size_bytes)),
        "write a larger --size, or a smaller --bytes or --offset",
    )
}

fn depth_and_streams(args: &CliArgs) -> Result<(), Problem> {
    let options = &args.options;
    let depth = options.queue_depth.unwrap_or(1);
    refuse(
        depth > 1 && options.engine == Some(EngineKind::Sync),
        format!("--iodepth {depth} conflicts with --engine sync"),
        "the sync engine has one I/O in flight per stream; write --engine io_uring, aio or threads, or --streams for more",
    )?;
    refuse(
        args.subcommand == &STREAM && options.stream_counts.as_ref().is_some_and(|counts| counts.len() > 1),
        "rdsk stream takes one number of --streams",
        "write one number here; rdsk scale compares several",
    )?;
    let block_bytes = max_block_bytes(args).unwrap_or(1);
    refuse(
        u128::from(block_bytes) * u128::from(depth) * u128::from(max_streams(&args.experiments, options))
            > u128::from(MAX_BUFFERS_BYTES),
        format!("--bs times --iodepth times --streams is more than {} of buffers", Bytes(MAX_BUFFERS_BYTES)),
        "make one of them smaller",
    )
}

fn processors(args: &CliArgs) -> Result<(), Problem> {
    let pinned = &args.options.pin_cpus;
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
    use crate::flags::testing::parsed;

    #[test]
    fn conflicting_flags_are_refused() {
        let cases: &[(&[&str], &str)] = &[
            (&["paths", "--runtime", "1s", "--budget", "9s"], "--runtime conflicts with --budget"),
            (&["run", "--json-compact"], "--json-compact needs --json"),
            (&["run", "--history", "h", "--no-history"], "--history conflicts with --no-history"),
            (
                &["scale", "--stagger", "1h", "--streams", "2", "--budget", "3s"],
                "--stagger 1 h 00 min 00 s of 2 streams takes all of --budget 3.00 s",
            ),
            (
                &["scale", "--stagger", "1h", "--budget", "3s"],
                "--stagger 1 h 00 min 00 s of 10 streams takes all of --budget 3.00 s",
            ),
            (&["run", "--iodepth", "32", "--engine", "sync"], "--iodepth 32 conflicts with --engine sync"),
            (&["run", "x", "--destroy", "S", "--overwrite"], "--destroy conflicts with --overwrite"),
            (&["paths", "x", "--destroy", "S", "--rw", "read"], "--destroy conflicts with --rw read"),
            (&["run", "x", "--overwrite", "--rw", "read"], "--overwrite conflicts with --rw read"),
            (&["stream", "--end-fsync", "--rw", "read"], "--end-fsync conflicts with --rw read"),
            (&["run", "--destroy", "S"], "--destroy needs a target"),
            (&["run", "--overwrite"], "--overwrite needs a target"),
            (
                &["paths", "--bs", "4k,1M", "--bytes", "64k"],
                "--bytes 64 KiB is less than one block of --bs 1 MiB",
            ),
            (&["paths", "--bytes", "1M", "--size", "512k"], "--bytes 1 MiB does not fit into --size 512 KiB"),
            (
                &["stream", "--bs", "1G", "--iodepth", "8"],
                "--bs times --iodepth times --streams is more than 4 GiB",
            ),
            (&["scale", "--bs", "1G"], "--bs times --iodepth times --streams is more than 4 GiB"),
        ];
        for (line, message) in cases {
            let problem = parsed(line).expect_err(&format!("{line:?} was accepted"));
            assert!(problem.message.contains(message), "{line:?}: {}", problem.message);
            assert!(problem.hint.is_some());
        }
    }

    #[test]
    fn their_neighbours_are_fine() {
        for line in [
            &["paths", "--budget", "9s"][..],
            &["run", "--iodepth", "1", "--engine", "sync"],
            &["scale", "--stagger", "1s", "--streams", "2", "--budget", "3s"],
            &["scale", "--stagger", "1h", "--streams", "1", "--budget", "3s"],
            &["scale", "--stagger", "300ms", "--budget", "3s"],
            &["scale", "--bs", "1G", "--streams", "4"],
            &["run", "--iodepth", "32", "--engine", "uring"],
            &["paths", "x", "--destroy", "S", "--rw", "read,write"],
            &["paths", "--bs", "1M", "--bytes", "1M", "--size", "1M"],
        ] {
            assert!(parsed(line).is_ok(), "{line:?}");
        }
    }

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(ranges([0, 1, 2, 5, 7, 8].into_iter()), "0-2,5,7-8");
    }
}
