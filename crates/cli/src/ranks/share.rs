//! What a line may ask of several ranks, and the share of one of them: its part of a file that all write, its seed. It opens nothing.

use crate::measuring::Measurement;
use rdsk_experiment::{EvidenceChoice, RankPlace, Request};
use rdsk_model::{Experiment, Problem, ProblemKind, TargetKind};
use rdsk_stats::rng::SplitMix64;
use rdsk_targets::{Access, Examined, Overwrite, Place, Roots, Sharing, authorize, examine};
use rdsk_units::{Bytes, printable};
use std::time::Duration;

/// Parts of a file begin at multiples of this, which whole blocks of every filesystem and device begin at.
const GRAIN_BYTES: u64 = 1 << 20;

/// How often, and how far apart, a file is looked at that is in use.
const LOOKS: u32 = 10;
const LOOKS_APART: Duration = Duration::from_millis(50);

/// The refusal of what several ranks do not do.
pub(super) fn refused(what: &str, hint: &str) -> Problem {
    Problem::new(ProblemKind::Refused, "not-on-ranks", format!("not on several ranks: {what}"), hint)
}

/// Refuses what several ranks do not do.
///
/// # Errors
/// The refusal.
pub(super) fn check(asked: &Measurement) -> Result<(), Problem> {
    let is_known = |experiment: &Experiment| {
        matches!(experiment, Experiment::Load | Experiment::Headline | Experiment::Scale)
    };
    let hint = "mpirun starts rdsk load, rdsk check, rdsk scale and rdsk run --only headline,scale";
    if !asked.experiments.iter().all(is_known) {
        let other = asked.experiments.iter().find(|experiment| !is_known(experiment));
        return Err(refused(other.map_or("this", |experiment| experiment.as_str()), hint));
    }
    if asked.experiments.contains(&Experiment::Scale) {
        check_scale(asked)?;
    }
    if asked.options.promise.is_some() {
        return Err(refused("the search for the highest rate (--p99, --p999)", "give each rank a --rate"));
    }
    if asked.options.is_sustained {
        return Err(refused("--sustained", "leave it out; --budget makes the turns longer"));
    }
    if asked.common.run.resume.is_some() || asked.common.run.dry_run {
        return Err(refused("--resume and --dry-run", "leave them out"));
    }
    if asked.common.may_destroy() {
        if asked.common.targets.len() != 1 {
            return Err(refused("writing to several block devices", "name one"));
        }
        if !writes_in_parts(&asked.experiments) {
            let hint = "start rdsk load or rdsk scale, whose ranks have a part each, or leave --destroy out";
            return Err(refused("the writes of this command to one block device", hint));
        }
    }
    if asked.common.targets.iter().any(|name| name.starts_with("sim:")) {
        return Err(refused("simulated targets, whose time is virtual", "run rdsk without mpirun"));
    }
    Ok(())
}

/// Whether what is asked for writes to one target in parts, one for each rank.
fn writes_in_parts(experiments: &[Experiment]) -> bool {
    matches!(experiments, [Experiment::Load | Experiment::Scale])
}

/// Refuses what numbers of hosts are not compared with.
fn check_scale(asked: &Measurement) -> Result<(), Problem> {
    if asked.common.targets.len() > 1 {
        return Err(refused("scale of several targets", "name one target"));
    }
    if asked.options.stream_counts.as_ref().is_some_and(|counts| counts.len() > 1) {
        let hint =
            "name one number, which each rank has, or leave --streams out: numbers of hosts are compared";
        return Err(refused("several numbers of streams", hint));
    }
    if asked.options.stagger_ns.is_some_and(|stagger_ns| stagger_ns > 0) {
        return Err(refused("streams that start one after the other (--stagger)", "leave --stagger out"));
    }
    Ok(())
}

/// Makes a request that of one rank of several, which is at this place, and gives the size of the file of which each rank writes a part.
/// Where numbers of hosts are compared, each rank reads a part of its own, too: what another one has read may lie in a cache that both use.
///
/// # Errors
/// Where its targets cannot be shared.
pub(super) fn share(
    request: &mut Request,
    (rank, ranks): (u32, u32),
    place: RankPlace,
    seed: u64,
) -> Result<Option<u64>, Problem> {
    request.options.rank = Some(place);
    // The first rank of a host counts for all of its ranks; to BPF programs, the others are other programs.
    request.options.evidence = EvidenceChoice::Sysfs;
    // All draw other offsets and other data.
    request.options.seed = Some(SplitMix64::from_index(seed, u64::from(rank)).next_u64() >> 11);
    let writes = request.options.phases.iter().flatten().any(|job| job.writes.is_some());
    let compares = request.experiments.contains(&Experiment::Scale);
    if compares {
        request.options.stagger_ns = Some(0);
    }
    for name in request.targets.clone() {
        let examined = examine(&name, &Roots::default()).map_err(|error| error.problem())?;
        // The test file of a directory is this rank's own.
        if matches!(examined.place, Place::Directory { .. }) {
            continue;
        }
        let size_bytes = examined.target.size_bytes;
        let may_write = match examined.target.kind {
            TargetKind::Block => request.permission.destroy.is_some(),
            _ => writes || request.permission.overwrite == Overwrite::Allowed,
        };
        if !may_write {
            if compares {
                take_part(request, size_bytes, rank, ranks)?;
            }
            continue;
        }
        if !writes_in_parts(&request.experiments) {
            let hint = "name a directory, where each rank has its own test file, or leave --overwrite out";
            return Err(refused(
                &format!("the writes of this command to one file, {}", printable(&name)),
                hint,
            ));
        }
        if request.targets.len() > 1 {
            return Err(refused("writing to several files", "name one file, or directories"));
        }
        // Where it is shared already, all ranks have proven it together.
        if request.permission.sharing == Sharing::Alone {
            unused(request)?;
            request.permission.sharing = Sharing::Ranks;
        }
        take_part(request, size_bytes, rank, ranks)?;
        return Ok(Some(size_bytes));
    }
    Ok(None)
}

/// Proves that the one target of a request may be written, while no rank has it open for writing: all wait for each other before the first
/// one opens it. From then on the other ranks may have it open, and no other program that shows itself.
///
/// # Errors
/// The refusal.
pub(super) fn unused(request: &Request) -> Result<Examined, Problem> {
    let name = request.targets.first().map_or(".", String::as_str);
    let mut looks = 0;
    loop {
        let examined = examine(name, &request.roots).map_err(|error| error.problem())?;
        looks += 1;
        match authorize(&examined, Access::Write, &request.permission) {
            Ok(()) => return Ok(examined),
            // Another rank of this host may just be looking at it, too.
            Err(refusal) if refusal.code == "in-use" && looks < LOOKS => std::thread::sleep(LOOKS_APART),
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

/// Refuses to write parts of a file that has another size on another rank: it may be the same file, whose size is not known everywhere
/// yet, and parts of different sizes overlap. `least` and `most` are those of all ranks.
///
/// # Errors
/// The refusal.
pub(super) fn check_sizes(least: Option<u64>, most: Option<u64>) -> Result<(), Problem> {
    if least == most {
        return Ok(());
    }
    let size = |bytes: Option<u64>| bytes.map_or("not known".into(), |bytes| Bytes(bytes).exact());
    let what = format!("a file whose size differs between ranks: {} and {}", size(least), size(most));
    Err(refused(&what, "give it the same size on all hosts"))
}

/// Gives a request, and the jobs of a load, the part of this rank: whether a file is the same on two hosts cannot be seen for sure, so no two ranks ever
/// write to the same part.
fn take_part(request: &mut Request, size_bytes: u64, rank: u32, ranks: u32) -> Result<(), Problem> {
    let options = &mut request.options;
    let first_bytes = options.offset_bytes.next_multiple_of(GRAIN_BYTES);
    let room_bytes = size_bytes.saturating_sub(first_bytes);
    let part_bytes = room_bytes / u64::from(ranks) / GRAIN_BYTES * GRAIN_BYTES;
    let begin_bytes = first_bytes + u64::from(rank) * part_bytes;
    if part_bytes == 0 || begin_bytes + part_bytes > size_bytes {
        let what = format!("a file of {}, which has no part of 1 MiB for each of {ranks}", Bytes(size_bytes));
        return Err(refused(&what, "name a larger file"));
    }
    options.offset_bytes = begin_bytes;
    if let Some(place) = &mut options.rank {
        place.part_bytes = Some(part_bytes);
    }
    for job in options.phases.iter_mut().flatten() {
        if job.fresh_space {
            return Err(refused("newly allocated space in one file (--fresh)", "name a directory"));
        }
        if job.offset_bytes >= part_bytes {
            let what = format!(
                "job {}, which begins behind the part of {} that each has",
                job.name,
                Bytes(part_bytes)
            );
            return Err(refused(&what, "name a larger file"));
        }
        let left_bytes = part_bytes - job.offset_bytes;
        job.span_bytes = if job.span_bytes == 0 { left_bytes } else { job.span_bytes.min(left_bytes) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_experiment::PlanOptions;
    use rdsk_model::{LoadJob, StopFlag};
    use rdsk_targets::Permission;

    fn request(job: LoadJob, offset_bytes: u64) -> Request {
        Request {
            command: Vec::new(),
            label: None,
            experiments: vec![Experiment::Load],
            targets: vec!["file".into()],
            permission: Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() },
            size_bytes: None,
            resume: None,
            options: PlanOptions { phases: vec![vec![job]], offset_bytes, ..PlanOptions::default() },
            roots: Roots::default(),
            stop: StopFlag::new(),
        }
    }

    #[test]
    fn no_two_ranks_write_to_the_same_part_and_none_beyond_the_file() {
        const MIB: u64 = 1 << 20;
        for (size_bytes, offset_bytes, ranks) in [(64 * MIB, 0, 4), (65 * MIB + 17, 3, 5), (7 * MIB, 0, 7)] {
            let mut end_bytes = offset_bytes;
            for rank in 0..ranks {
                let mut request = request(LoadJob::random_reads("load", 0), offset_bytes);
                take_part(&mut request, size_bytes, rank, ranks).unwrap();
                let begin_bytes = request.options.offset_bytes;
                assert!(begin_bytes >= end_bytes, "{rank} of {ranks} begins in the part before");
                end_bytes = begin_bytes + request.options.phases[0][0].span_bytes;
            }
            assert!(end_bytes <= size_bytes, "{end_bytes} of {size_bytes}");
        }
        let small = take_part(&mut request(LoadJob::random_reads("load", 0), 0), 3 * MIB, 0, 4).unwrap_err();
        assert!(small.message.contains("no part of 1 MiB"), "{small}");
        assert!(check_sizes(None, None).is_ok() && check_sizes(Some(7), Some(7)).is_ok());
        assert!(check_sizes(Some(7), Some(8)).is_err() && check_sizes(None, Some(8)).is_err());
        let fresh = LoadJob { fresh_space: true, ..LoadJob::random_reads("log", 0) };
        assert!(take_part(&mut request(fresh, 0), 64 * MIB, 0, 4).is_err());
    }
}
