//! The jobs of a document as they are shown: each with its host and its options, then the sum of several of one name, and with
//! `fio --client` the sum of all hosts. It makes no cell.

use super::document::{Direction, Document, Job, Latencies, OptionTexts, Syncs};
use super::latency;
use super::notes::Notes;
use super::options::{Options, common, words};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What fio calls the sum of all hosts (3.33, 2026-11).
const ALL_CLIENTS: &str = "All clients";

/// A job, or a sum of jobs.
#[derive(Debug)]
pub(super) struct Entry {
    /// `HOST/JOB`, or `JOB` where there is but one host.
    pub(super) name: String,
    /// Its host, of `fio --client`.
    host: Option<String>,
    pub(super) job: Job,
    /// Its own options, beside those of all jobs.
    pub(super) options: OptionTexts,
    /// Whether these are all that were given.
    pub(super) are_whole: bool,
    /// How many jobs the figures are of, where that is known.
    pub(super) streams: Option<u32>,
    pub(super) targets: Vec<String>,
    pub(super) is_sum: bool,
}

/// The entries of a document, in its order, and behind them the sums.
pub(super) fn entries(document: &mut Document, notes: &mut Notes) -> Vec<Entry> {
    let mut clients = std::mem::take(&mut document.client_stats);
    let is_total = |job: &mut Job| -> bool { job.jobname == ALL_CLIENTS && job.options.is_empty() };
    let total = clients.pop_if(is_total);
    let hosts = host_names(&clients);
    let of_jobs = std::mem::take(&mut document.jobs).into_iter().map(|job| (job, None, Source::Local));
    let of_clients = clients.into_iter().zip(hosts).map(|(job, host)| (job, host, Source::Client));
    let jobs: Vec<(Job, Option<String>, Source)> = of_jobs.chain(of_clients).collect();
    let kind = |job: &Job, host: &Option<String>| {
        (host.clone(), job.jobname.clone(), words(&job.options).collect::<Vec<_>>())
    };
    let mut alike: HashMap<_, u32> = HashMap::new();
    for (job, host, _) in &jobs {
        *alike.entry(kind(job, host)).or_default() += 1;
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(jobs.len());
    for (job, host, source) in jobs {
        let is_grouped = alike[&kind(&job, &host)] == 1;
        entries.push(entry(job, host, source, &document.global_options, is_grouped));
    }
    let sums = sums(&entries);
    let total = total.and_then(|total| sum_of_hosts(total, &entries, notes));
    entries.extend(sums);
    entries.extend(total);
    entries
}

/// Whose document a job is in: the server drops options that fio itself repeats (3.33: those of all jobs of a group but the
/// first, 2026-11).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Local,
    Client,
}

/// `is_grouped` says that the document has no other one with its name and options, so that what numjobs started is reported together
/// (group_reporting itself is in no document).
fn entry(job: Job, host: Option<String>, source: Source, global: &OptionTexts, is_grouped: bool) -> Entry {
    let has_own = words(&job.options).next().is_some();
    let are_whole = has_own || (source == Source::Local && !global.is_empty());
    let shown = Options { job: &job.options, global, are_whole };
    let streams = if is_grouped { shown.job_count() } else { Some(1) };
    let on_host = |target: String| host.as_ref().map_or(target.clone(), |host| format!("{host}:{target}"));
    let targets = shown.targets(&job.jobname).into_iter().map(on_host).collect();
    let name = host.as_ref().map_or(job.jobname.clone(), |host| format!("{host}/{}", job.jobname));
    Entry { name, host, options: job.options.clone(), job, are_whole, streams, targets, is_sum: false }
}

/// The host of each job: its name, with the port where several servers have one name.
fn host_names(clients: &[Job]) -> Vec<Option<String>> {
    let mut ports: BTreeMap<&str, HashSet<Option<u32>>> = BTreeMap::new();
    for job in clients {
        ports.entry(job.hostname.as_deref().unwrap_or_default()).or_default().insert(job.port);
    }
    let name = |job: &Job| {
        let host = job.hostname.clone()?;
        let port = job.port.filter(|_| ports[host.as_str()].len() > 1);
        Some(port.map_or(host.clone(), |port| format!("{host}:{port}")))
    };
    clients.iter().map(name).collect()
}

/// The sums of jobs of one name on one host that ran side by side.
fn sums(entries: &[Entry]) -> Vec<Entry> {
    let mut order = Vec::new();
    let mut groups: HashMap<(&str, u32), Vec<&Entry>> = HashMap::new();
    for entry in entries {
        let key = (entry.name.as_str(), entry.job.groupid);
        let group = groups.entry(key).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(entry);
    }
    let several =
        order.into_iter().map(|key| &groups[&key]).filter(|group| group.len() > 1 && ran_together(group));
    several.map(|group| sum(&format!("{}#sum", group[0].name), added(group), group)).collect()
}

/// Whether the times of jobs have a part in common, as far as fio says when they began.
fn ran_together(group: &[&Entry]) -> bool {
    let runtime = |job: &Job| directions(job).map(|direction| direction.runtime).max().unwrap_or(0);
    let times = group.iter().filter_map(|entry| {
        let start = entry.job.job_start?;
        Some((start, start.saturating_add(runtime(&entry.job))))
    });
    let (starts, ends): (Vec<u64>, Vec<u64>) = times.unzip();
    starts.iter().max() <= ends.iter().min() || starts.is_empty()
}

/// The entry of a sum: what the jobs have in common.
fn sum(name: &str, job: Job, members: &[&Entry]) -> Entry {
    let (options, are_same) = common(members.iter().map(|entry| &entry.options));
    let streams =
        members.iter().map(|entry| entry.streams).try_fold(0, |sum: u32, streams| sum.checked_add(streams?));
    let mut named = HashSet::new();
    let all_targets = members.iter().flat_map(|entry| &entry.targets);
    let targets = all_targets.filter(|target| named.insert(target.as_str())).cloned().collect();
    let are_whole = are_same && members.iter().all(|entry| entry.are_whole);
    Entry { name: name.into(), host: None, job, options, are_whole, streams, targets, is_sum: true }
}

/// fio's sum of all hosts. It adds up whatever it has, and divides by the longest time: none of jobs that waited for each other.
fn sum_of_hosts(total: Job, entries: &[Entry], notes: &mut Notes) -> Option<Entry> {
    let moved: Vec<&Entry> = entries
        .iter()
        .filter(|entry| directions(&entry.job).any(|direction| direction.total_ios > 0))
        .collect();
    let mut groups: HashMap<&Option<String>, u32> = HashMap::new();
    let is_one_group = moved
        .iter()
        .all(|entry| *groups.entry(&entry.host).or_insert(entry.job.groupid) == entry.job.groupid);
    if moved.len() < 2 {
        return None;
    }
    if !is_one_group {
        notes.add(
            ALL_CLIENTS,
            "fio's sum is of jobs that ran one after the other, over the time of the longest, and left out",
        );
        return None;
    }
    Some(sum(ALL_CLIENTS, total, &moved))
}

fn directions(job: &Job) -> impl Iterator<Item = &Direction> {
    [&job.read, &job.write, &job.trim, &job.mixed].into_iter().flatten()
}

/// The figures of jobs that ran side by side, over the time of the longest, as fio adds up a group.
fn added(group: &[&Entry]) -> Job {
    let sum_of = |which: fn(&Job) -> Option<&Direction>| {
        let parts = group.iter().filter_map(|entry| which(&entry.job)).filter(|part| part.total_ios > 0);
        let parts: Vec<&Direction> = parts.collect();
        (parts.len() > 1).then(|| added_direction(&parts))
    };
    let syncs: Vec<&Syncs> = group.iter().filter_map(|entry| entry.job.sync.as_ref()).collect();
    Job {
        error: group.iter().map(|entry| entry.job.error).find(|&error| error != 0).unwrap_or(0),
        total_err: 0,
        read: sum_of(|job| job.read.as_ref()),
        write: sum_of(|job| job.write.as_ref()),
        trim: None,
        mixed: sum_of(|job| job.mixed.as_ref()),
        sync: (!syncs.is_empty()).then(|| added_syncs(&syncs)),
        ..group[0].job.clone()
    }
}

fn added_direction(parts: &[&Direction]) -> Direction {
    let sum =
        |which: fn(&Direction) -> u64| parts.iter().map(|part| which(part)).fold(0, u64::saturating_add);
    let counted = |which: fn(&Direction) -> &Latencies| {
        added_latencies(
            &parts.iter().map(|part| (which(part), latency::count(which(part), part))).collect::<Vec<_>>(),
        )
    };
    Direction {
        io_bytes: sum(|part| part.io_bytes),
        total_ios: sum(|part| part.total_ios),
        short_ios: sum(|part| part.short_ios),
        drop_ios: sum(|part| part.drop_ios),
        runtime: parts.iter().map(|part| part.runtime).max().unwrap_or(0),
        clat_ns: counted(|part| &part.clat_ns),
        lat_ns: counted(|part| &part.lat_ns),
        ..Direction::default()
    }
}

fn added_syncs(parts: &[&Syncs]) -> Syncs {
    let counted: Vec<(&Latencies, u64)> =
        parts.iter().map(|part| (&part.lat_ns, part.lat_ns.count.unwrap_or(part.total_ios))).collect();
    let total_ios = parts.iter().map(|part| part.total_ios).fold(0, u64::saturating_add);
    Syncs { total_ios, lat_ns: added_latencies(&counted) }
}

/// Latencies, each with its number, as one. Only bins show how all of them are distributed.
fn added_latencies(parts: &[(&Latencies, u64)]) -> Latencies {
    let taken: Vec<&(&Latencies, u64)> = parts.iter().filter(|(_, count)| *count > 0).collect();
    let count = taken.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let total_ns = taken.iter().map(|(part, count)| Some(part.mean? * *count as f64)).sum::<Option<f64>>();
    let mut bins: BTreeMap<String, u64> = BTreeMap::new();
    if taken.iter().all(|(part, _)| !part.bins.is_empty()) {
        for (at, more) in taken.iter().flat_map(|(part, _)| &part.bins) {
            let sum = bins.entry(at.clone()).or_default();
            *sum = sum.saturating_add(*more);
        }
    }
    Latencies {
        min: taken.iter().filter_map(|(part, _)| part.min).min(),
        max: taken.iter().filter_map(|(part, _)| part.max).max(),
        mean: total_ns.filter(|_| count > 0).map(|total| total / count as f64),
        count: Some(count),
        percentile: BTreeMap::new(),
        bins,
    }
}
