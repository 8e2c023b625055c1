//! The Records of ranks as one result. They are added one after the other, so that no more than one of them is held. The evidence of a
//! host is that of its first rank, whose counters ran while all ranks of that host did; the verdict is that of each host.

use crate::merge_cell::CellPool;
use crate::summary::{on_first, shares, turns, with_turns};
use rdsk_model::{
    AtOnce, CellRecord, Estimate, Evidence, Problem, ProblemKind, RankRun, RankVisit, Record, Status,
    StreamResult, Target, Verdict, VerdictCode,
};
use rdsk_stats::mean_interval;
use std::collections::BTreeMap;

/// The tests of one host: their counters, and the evidence of its first rank.
#[derive(Debug)]
struct Host {
    name: String,
    targets: Vec<Target>,
    cpu_count: Option<u32>,
    cells: Vec<CellPool>,
}

impl Host {
    /// With its first rank.
    fn new(rank: &RankRun, part: &Record) -> Self {
        Self {
            name: rank.host.clone(),
            targets: part.targets.clone(),
            cpu_count: part.host.as_ref().map(|host| host.cpu_count),
            cells: part.cells.iter().map(CellPool::new).collect(),
        }
    }
}

/// The boot of the kernel of a rank; a rank that does not know it counts as alone on its own.
fn boot(rank: &RankRun) -> String {
    if rank.boot.is_empty() { format!("rank {}", rank.rank) } else { rank.boot.clone() }
}

/// The ranks so far.
#[derive(Debug)]
pub struct Merge {
    record: Record,
    size: u32,
    cells: Vec<CellPool>,
    /// By the boot of their kernels.
    hosts: BTreeMap<String, Host>,
}

impl Merge {
    /// Begins with the part of one rank, best that of rank 0; `None` where it is no part of a run of several ranks.
    pub fn new(mut first: Record) -> Option<Self> {
        let rank = first.ranks.first()?.clone();
        let hosts = BTreeMap::from([(boot(&rank), Host::new(&rank, &first))]);
        let cells = std::mem::take(&mut first.cells).iter().map(CellPool::new).collect();
        let record = Record { findings: Vec::new(), sustained: Vec::new(), ..first };
        Some(Self { record, size: rank.ranks, cells, hosts })
    }

    /// Adds the part of another rank; false where it is none of this run, or is there already.
    pub fn add(&mut self, part: &Record) -> bool {
        let Some(rank) =
            part.ranks.first().filter(|rank| rank.ranks == self.size && rank.run == self.record.ranks[0].run)
        else {
            return false;
        };
        if self.record.ranks.iter().any(|run| run.rank == rank.rank) {
            return false;
        }
        for pool in &mut self.cells {
            if let Some(cell) = part.cell(&pool.cell.id) {
                pool.add(cell);
            }
        }
        self.record.elapsed_ns = self.record.elapsed_ns.max(part.elapsed_ns);
        let notes = self.record.notes.clone();
        let new = part.notes.iter().filter(|note| !notes.contains(note));
        self.record.notes.extend(new.map(|note| format!("rank {}: {note}", rank.rank)));
        self.record.ranks.push(rank.clone());
        self.add_host(rank, part);
        true
    }

    fn add_host(&mut self, rank: &RankRun, part: &Record) {
        let Some(host) = self.hosts.get_mut(&boot(rank)) else {
            self.hosts.insert(boot(rank), Host::new(rank, part));
            return;
        };
        for pool in &mut host.cells {
            if let Some(cell) = part.cell(&pool.cell.id) {
                pool.add(cell);
                let process = &mut pool.cell.evidence.process;
                *process = process.plus(cell.evidence.process);
            }
        }
    }

    /// The result of all ranks; those that are missing or ended early are named in its error.
    pub fn result(self) -> Record {
        let Self { mut record, size, cells, hosts, .. } = self;
        record.ranks.sort_by_key(|rank| rank.rank);
        let missing = (0..size).filter(|&rank| !record.ranks.iter().any(|run| run.rank == rank));
        let missing: Vec<RankRun> =
            missing.map(|rank| RankRun { rank, ranks: size, ..RankRun::default() }).collect();
        record.ranks.extend(missing);
        record.ranks.sort_by_key(|rank| rank.rank);
        let hosts: Vec<Host> = hosts.into_values().collect();
        record.cells = cells.into_iter().map(|pool| of_all(pool, &hosts, &record.ranks)).collect();
        if let Some((status, problem)) = how_ended(&record.ranks) {
            (record.status, record.error) = (status, Some(problem));
        }
        record
    }
}

/// One test of all ranks: rates over the time in which all ran, evidence of every host.
fn of_all(pool: CellPool, hosts: &[Host], ranks: &[RankRun]) -> CellRecord {
    let mut cell = pool.result();
    let mut shares = shares(ranks, &cell.id);
    if let Some(at_once) = cell.workload.at_once {
        // A rate of fewer ranks is that of no number of hosts.
        if lacks_some(ranks, at_once, &cell.id) {
            shares.clear();
        }
        let turns = shares.iter().zip(&mut cell.result.visits);
        turns.for_each(|(share, visit)| visit.overlap = share.overlap());
        add_streams(&mut cell, ranks);
    }
    let rates: Vec<f64> = shares.iter().filter_map(|share| share.bytes_per_s).collect();
    if let Some(mean) = rdsk_stats::mean(&rates) {
        let half = mean_interval(&rates).map(|interval| (interval.high - interval.low) / 2.0);
        let bytes_per_s = Estimate::around(mean, half);
        let bytes_of_each = cell.result.bytes.zip(cell.result.ops).filter(|&(_, ops)| ops > 0);
        cell.result.ops_per_s = bytes_of_each.map(|(bytes, ops)| bytes_per_s.over(bytes as f64 / ops as f64));
        cell.result.bytes_per_s = Some(bytes_per_s);
    }
    let of_hosts = hosts.iter().filter_map(|host| {
        let of_host = host.cells.iter().find(|pool| pool.cell.id == cell.id && !pool.has_waited())?;
        Some((host, of_host.clone().result()))
    });
    let of_hosts: Vec<(&Host, CellRecord)> = of_hosts.collect();
    let verdicts = of_hosts.iter().map(|(host, cell)| {
        (host.name.as_str(), rdsk_analysis::verdict(cell, &host.targets, host.cpu_count))
    });
    cell.verdict = verdict_of_all(verdicts.collect());
    let named = of_hosts.into_iter().map(|(host, cell)| named(host, cell.evidence, hosts.len()));
    cell.evidence = named.reduce(Evidence::plus).unwrap_or_default();
    cell
}

/// Whether a rank that was to issue a test with others had no turn of it, or may have been one of them.
fn lacks_some(ranks: &[RankRun], at_once: AtOnce, cell: &str) -> bool {
    let present = with_turns(ranks, cell);
    let mut boots: Vec<&str> = Vec::new();
    ranks.iter().any(|rank| {
        let place = match at_once {
            AtOnce::Ranks(_) => Some(rank.rank as usize),
            AtOnce::Hosts(_) if rank.boot.is_empty() => None,
            AtOnce::Hosts(_) => Some(boots.iter().position(|boot| *boot == rank.boot).unwrap_or_else(|| {
                boots.push(&rank.boot);
                boots.len() - 1
            })),
        };
        place.is_none_or(|place| place < at_once.count() as usize) && !present.contains(&rank.rank)
    })
}

/// Of a test that compares numbers of ranks, each rank that issued it becomes a stream of each visit, on the clock of rank 0: what each had
/// says how evenly they were served, and what stands behind a limit.
fn add_streams(cell: &mut CellRecord, ranks: &[RankRun]) {
    let present = with_turns(ranks, &cell.id);
    for (turn, visit) in turns(ranks, &cell.id).iter().zip(&mut cell.result.visits) {
        let first_ns = turn.iter().map(|part| on_first(part.start_ns, &part.clock)).min().unwrap_or(0);
        let since = |ns: u64, part: &RankVisit| on_first(ns, &part.clock).saturating_sub(first_ns);
        let stream = |(&index, part): (&u32, &&RankVisit)| StreamResult {
            index,
            target: cell.workload.targets.first().copied().unwrap_or(0),
            start_ns: since(part.start_ns, part),
            end_ns: since(part.end_ns, part),
            bytes: part.bytes,
            ops: part.ops,
            active_ns: None,
        };
        visit.streams = present.iter().zip(turn).map(stream).collect();
    }
}

/// The evidence of a host; with several of them, devices have the name of theirs, as `node1:sda`.
fn named(host: &Host, mut evidence: Evidence, hosts: usize) -> Evidence {
    if hosts > 1 {
        for device in &mut evidence.device {
            device.name = format!("{}:{}", host.name, device.name);
        }
    }
    evidence
}

/// The verdict that all hosts have, else the first that is not of a device, with its host.
fn verdict_of_all(verdicts: Vec<(&str, Verdict)>) -> Option<Verdict> {
    let differs = verdicts.iter().position(|(_, verdict)| verdict.code != VerdictCode::Device);
    let hosts = verdicts.len();
    let (host, verdict) = verdicts.into_iter().nth(differs.unwrap_or(0))?;
    let text = if hosts > 1 { format!("on {host}: {}", verdict.text) } else { verdict.text.clone() };
    Some(Verdict { text, ..verdict })
}

/// How a run ended of which not all ranks came to their end; `None` where all did.
fn how_ended(ranks: &[RankRun]) -> Option<(Status, Problem)> {
    let list = |is: &dyn Fn(&RankRun) -> bool| {
        let names = ranks.iter().filter(|rank| is(rank)).map(|rank| match rank.host.as_str() {
            "" => rank.rank.to_string(),
            host => format!("{} on {host}", rank.rank),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let size = ranks.len();
    let silent = list(&|rank| rank.status.is_none());
    if !silent.is_empty() {
        let message = format!("partial: of {size} ranks, these ended without a word: {silent}");
        let hint = "mpirun says why; what all ranks measured until then is in the result";
        return Some((Status::Failed, Problem::new(ProblemKind::Io, "rank-gone", message, hint)));
    }
    // Ranks that ended since another one did say so.
    let is_cause = |rank: &&RankRun| {
        let code = rank.error.as_ref().map(|error| error.code.as_str());
        !matches!(code, Some("rank-differs" | "rank-failed" | "rank-gone"))
    };
    let failed: Vec<&RankRun> = ranks.iter().filter(|rank| rank.status == Some(Status::Failed)).collect();
    let failed = failed.iter().find(|rank| is_cause(rank)).or(failed.first());
    if let Some(RankRun { rank, host, error, .. }) = failed {
        let why = error.as_ref().map_or("it failed", |error| error.message.as_str());
        let kind = error.as_ref().map_or(ProblemKind::Io, |error| error.kind);
        let message = format!("partial: rank {rank} on {host}: {why}");
        let hint = error.as_ref().and_then(|error| error.hint.clone()).unwrap_or_default();
        return Some((Status::Failed, Problem::new(kind, "rank-failed", message, hint.as_str())));
    }
    let stopped = list(&|rank| rank.status == Some(Status::Interrupted));
    (!stopped.is_empty()).then(|| {
        let message = format!("partial: a signal ended these of {size} ranks: {stopped}");
        let hint = "the result holds what was measured until then";
        (Status::Interrupted, Problem::new(ProblemKind::Interrupted, "interrupted", message, hint))
    })
}
